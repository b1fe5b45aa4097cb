"""Addresses for programs, on a real server: runs, searches, and what is refused."""

from __future__ import annotations

import http.client
import io
import json
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from PIL import Image

import serve
from experiments.real_server import ROOT, serving
from pages.parts.shell import programs
from tests.project.documents import blocks
from tests.running import worked
from udml_core.runs import Run
from udml_core.runs.search import Retrieval

IMAGE = 17


@dataclass(frozen=True)
class Served:
    """A server that exposes one of two runs."""

    url: str
    shown: Run
    hidden: Run


@contextmanager
def server(home: Path, **variables: str) -> Iterator[str]:
    environment = os.environ | {"UDML_CACHE": str(home / "cache"), "UDML_RUNS": str(home / "runs"),
                                "PYTHONPATH": str(ROOT), **variables}
    with serving("serve.py", environment) as (url, _):
        yield url


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("programs")
    shown, hidden = worked(home / "runs", seed=0), worked(home / "runs", seed=1)
    with server(home, UDML_API=f"absent-*, {shown.id[:-2]}*", UDML_EXPOSED="1") as url:
        yield Served(url, shown, hidden)


def asked(url: str, method: str, path: str, body: Any = None, **headers: str
          ) -> tuple[int, Any, http.client.HTTPMessage]:
    """Return the status, the content of the JSON, or the text, and the headers of an answer."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    is_json = answer.headers.get_content_type() == "application/json"
    return answer.status, json.loads(content) if is_json else content.decode(), answer.headers


def png_of(image: Image.Image) -> bytes:
    content = io.BytesIO()
    image.save(content, "PNG")
    return content.getvalue()


def bomb(side: int) -> bytes:
    """Return a PNG file that declares a huge image."""
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(100_000))) + chunk(b"IEND", b"")


def test_only_exposed_runs_are_listed(served: Served) -> None:
    status, content, headers = asked(served.url, "GET", "/api/runs")
    spec = served.shown.spec()
    assert status == 200
    assert content == {"runs": [{"id": served.shown.id, "method": "rpml", "dataset": "Digits",
                                 "fingerprint": spec.fingerprint}]}
    assert [name for name, value in serve.HEADERS.items() if headers[name] != value] == []
    assert headers["Cache-Control"] == "no-store"


def test_a_search_answers_what_the_library_finds(served: Served) -> None:
    opened = Retrieval(served.shown)
    image = opened.dataset.images[IMAGE]
    for gallery in ("all", "test"):
        status, content, headers = asked(served.url, "POST", f"/api/search?run={served.shown.id}&k=5&gallery={gallery}",
                                         png_of(image))
        assert (status, content["run"], content["gallery"]) == (200, served.shown.id, gallery)
        hits = opened.search_image(image, 5, gallery=gallery)  # type: ignore[arg-type]
        assert [hit["name"] for hit in content["hits"]] == [opened.dataset.names[hit.index] for hit in hits]
        assert [hit["rank"] for hit in content["hits"]] == [1, 2, 3, 4, 5]
        assert [hit["distance"] for hit in content["hits"]] == pytest.approx([hit.distance for hit in hits], rel=1e-4,
                                                                             abs=1e-3)
        assert opened.dataset.labels is not None
        assert [hit["labels"] for hit in content["hits"]] == [
            [opened.dataset.class_names[opened.dataset.labels[hit.index]]] for hit in hits]
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_the_example_of_the_documentation_searches_with_a_form(served: Served, tmp_path: Path,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    image = Retrieval(served.shown).dataset.images[IMAGE]
    (tmp_path / "query.jpg").write_bytes(png_of(image))
    document = (ROOT / "docs/http.md").read_text(encoding="utf-8")
    (code,) = [block.code for block in blocks(document) if block.language == "python"]
    names: dict[str, Any] = {}
    exec(code.replace("http://127.0.0.1:8501", served.url), names)
    raw = asked(served.url, "POST", f"/api/search?run={served.shown.id}&k=10", png_of(image))[1]
    assert names["hits"] == raw["hits"]
    address, form = f"/api/search?run={served.shown.id}", {"Content_Type": "multipart/form-data; boundary=b"}
    file = b'--b\r\nContent-Disposition: form-data; name=x; filename="q.png"\r\n\r\n%b\r\n'
    refusals = [(b"--b--\r\n", "must have one file, the image, got none"), (b"", "must have one file"),
                (b"--b\r\nContent-Disposition: form-data; name=x\r\n\r\n1\r\n--b--\r\n", "got none"),
                (b"--c", "The form could not be read"), (file % b"" + b"--b--\r\n", "The file of the form is empty"),
                (2 * (file % png_of(image)) + b"--b--\r\n", "must have one file, the image, got 2")]
    for body, reason in refusals:
        status, content, _ = asked(served.url, "POST", address, body, **form)
        assert (status, reason in content["error"]) == (400, True), content
    assert asked(served.url, "POST", address, b"", Content_Type="multipart/form-data")[0] == 400
    field = "--b\r\nContent-Disposition: form-data; name={}\r\n\r\n{}\r\n"
    fields = field.format("run", served.shown.id) + field.format("k", 3)
    filled = file % png_of(image) + f"{fields}--b--\r\n".encode()
    assert asked(served.url, "POST", "/api/search", filled, **form)[1]["hits"] == raw["hits"][:3]
    named = file % png_of(image) + (field.format("count", 3) + "--b--\r\n").encode()
    assert "'count' is unknown" in asked(served.url, "POST", address, named, **form)[1]["error"]
    assert "run is given twice" in asked(served.url, "POST", address, filled, **form)[1]["error"]


@pytest.mark.parametrize(("query", "status", "reason"), [
    ("k=0", 400, "between 1 and 100"), ("k=101", 400, "between 1 and 100"), ("k=-1", 400, "whole number"),
    ("k=%D9%A3", 400, "whole number"), ("gallery=../x", 400, "all"), ("k=5&k=6", 400, "k is given twice"),
    ("n=5", 400, "The parameter 'n' is unknown. Known: run, k, gallery.")])
def test_arguments_out_of_range_are_refused(query: str, status: int, reason: str, served: Served) -> None:
    image = png_of(Image.new("L", (8, 8)))
    answer = asked(served.url, "POST", f"/api/search?run={served.shown.id}&{query}", image)
    assert answer[0] == status
    assert reason in answer[1]["error"]


def test_hidden_and_unknown_runs_have_the_same_answer(served: Served) -> None:
    image = png_of(Image.new("L", (8, 8)))
    ids = (served.hidden.id, "absent", "..", str(served.shown.folder), served.shown.id[:-1] + "%00", "%00", "*")
    answers = [asked(served.url, "POST", f"/api/search?run={run_id}", image)[:2] for run_id in ids]
    assert answers == [(404, {"error": "No exposed run has this id. GET /api/runs lists the ids."})] * len(ids)
    for query in ("", "?k=5", "?run="):
        status, content, _ = asked(served.url, "POST", f"/api/search{query}", image)
        assert (status, content["error"]) == (400, "run is missing. GET /api/runs lists the ids.")
    begun = asked(served.url, "POST", f"/api/search?run={served.shown.id[:-1]}", image)
    assert (begun[0], begun[1]["run"]) == (200, served.shown.id), "the beginning of an id is enough"


@pytest.mark.parametrize("body", [b"no image", b"<svg/>", b"%!PS-Adobe", b"\x89PNG\r\n\x1a\n" + b"\0" * 50,
                                  bomb(30_000), bomb(2**31 - 1)])
def test_what_is_no_image_or_a_bomb_is_refused(body: bytes, served: Served) -> None:
    status, content, _ = asked(served.url, "POST", f"/api/search?run={served.shown.id}", body)
    assert status == 400
    assert content["error"].startswith("The body must be an image")
    assert str(ROOT) not in content["error"]
    empty = asked(served.url, "POST", f"/api/search?run={served.shown.id}", b"")
    assert (empty[0], empty[1]["error"][:18]) == (400, "The body is empty.")


def test_a_body_that_is_too_long_is_refused_whatever_it_declares(served: Served) -> None:
    path = f"/api/search?run={served.shown.id}"
    long = bytes(programs.MOST_BYTES + 1)
    assert asked(served.url, "POST", path, long)[0] == 413
    assert asked(served.url, "POST", path, iter([long[:2**20]] * 33))[0] == 413, "in chunks"
    assert asked(served.url, "GET", "/api/runs")[0] == 200


@pytest.mark.parametrize(("method", "path"), [("GET", "/api/search"), ("PUT", "/api/search"), ("DELETE", "/api/runs"),
                                              ("POST", "/api/runs")])
def test_other_methods_are_refused(method: str, path: str, served: Served) -> None:
    status, _, headers = asked(served.url, method, path)
    assert (status, headers["Allow"]) == (405, "POST" if path == "/api/search" else "GET")
    assert headers["Content-Security-Policy"]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", ["/api/nothing", "/api/", "/api", "/api/runs/1"])
def test_an_unknown_address_is_refused_as_json(method: str, path: str, served: Served) -> None:
    status, answer, headers = asked(served.url, method, path)
    assert (status, answer["error"].startswith("This address does not exist")) == (404, True)
    assert headers["Content-Security-Policy"]


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"},
                                     {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"}])
@pytest.mark.parametrize(("method", "path"), [("GET", "/api/runs"), ("POST", "/api/search")])
def test_other_sites_and_foreign_names_are_refused(headers: dict[str, str], method: str, path: str,
                                                   served: Served) -> None:
    status, answer, _ = asked(served.url, method, path, **headers)
    assert (status, list(answer)) == (403, ["error"])
    assert isinstance(asked(served.url, "GET", "/apiary", **headers)[1], str), "a page is refused in plain text"


@pytest.mark.slow
def test_without_the_variable_no_run_is_exposed(tmp_path: Path) -> None:
    run = worked(tmp_path / "runs", seed=0)
    with server(tmp_path, UDML_API="") as url:
        listed = asked(url, "GET", "/api/runs")[1]
        assert (listed["runs"], listed["reason"][:44]) == ([], "UDML_API is not set: start with UDML_API='*'")
        assert asked(url, "POST", f"/api/search?run={run.id}", png_of(Image.new("L", (8, 8))))[0] == 404


@pytest.mark.slow
def test_a_login_closes_the_addresses(tmp_path: Path) -> None:
    run = worked(tmp_path / "runs", seed=0)
    secrets = tmp_path / ".streamlit/secrets.toml"
    secrets.parent.mkdir()
    secrets.write_text('[auth]\nredirect_uri = "http://localhost/oauth2callback"\ncookie_secret = "a"\n')
    with server(tmp_path, UDML_API="*", HOME=str(tmp_path)) as url:
        for method, path, body in (("GET", "/api/runs", None), ("POST", f"/api/search?run={run.id}", b"")):
            status, content, _ = asked(url, method, path, body)
            assert (status, "log in" in content["error"]) == (403, True), path


@pytest.mark.slow
def test_images_that_do_not_arrive_hold_only_their_own_places_and_not_for_long(served: Served) -> None:
    address, path = urlsplit(served.url).netloc, f"/api/search?run={served.shown.id}"
    waiting = [http.client.HTTPConnection(address, timeout=programs.LONGEST_WAIT + 60)
               for _ in range(programs.MOST_WAITING)]
    for connection in waiting:
        connection.putrequest("POST", path)
        connection.putheader("Content-Length", "1000")
        connection.endheaders(b"half of an image")
    image = png_of(Image.new("L", (8, 8)))
    assert asked(served.url, "GET", "/api/runs")[0] == 200
    status, content, headers = asked(served.url, "POST", path, image)
    assert (status, headers["Retry-After"]) == (503, "5")
    assert "Try again" in content["error"]
    assert [connection.getresponse().status for connection in waiting] == [408] * programs.MOST_WAITING
    for connection in waiting:
        connection.close()
    assert asked(served.url, "POST", path, image)[0] == 200


def test_the_beginning_of_several_ids_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from udml_core.runs.search import programs as answers

    monkeypatch.setenv("UDML_API", "*")
    runs = [worked(tmp_path / "runs", seed=seed) for seed in (0, 1)]
    monkeypatch.setattr(answers, "list_runs", lambda _root: runs)
    with pytest.raises(answers.UnknownRunError, match="2 exposed runs have an id that begins so"):
        answers.exposed_run("20", tmp_path / "runs")
    assert answers.exposed_run(runs[1].id, tmp_path / "runs").id == runs[1].id
    monkeypatch.setenv("UDML_API", "absent")
    assert answers.why_no_run().startswith("No finished run yet:")


def test_a_run_whose_images_are_gone_names_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from udml_core.base.errors import UserError
    from udml_core.runs.search import programs as answers

    run = worked(tmp_path / "runs", seed=0)

    def fail(_run: Run) -> None:
        raise UserError("The folder /srv/secret does not exist.")

    monkeypatch.setattr(answers, "Retrieval", fail)
    with pytest.raises(answers.UnsearchableError) as raised:
        answers.open_exposed(run)
    assert "/srv" not in str(raised.value)
    assert raised.value.status == 409
