"""Files that the browser fetches by address: answers, names, the limit, and a server below a path."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from starlette.requests import Request
from starlette.responses import Response

import serve
from pages.parts.draw import transport
from pages.parts.draw.served import SERVED, ServedFiles


def fetched(files: ServedFiles, name: str) -> Response:
    """Return the answer to a request for a name."""
    request = Request({"type": "http", "method": "GET", "headers": [], "path_params": {"name": name}})
    with ThreadPoolExecutor(1) as pool:  # a browser of other tests has an event loop in this thread
        return pool.submit(asyncio.run, files._answer(request)).result()


def test_a_file_is_answered_with_its_kind_and_never_asked_for_again() -> None:
    files = ServedFiles()
    assert files.route("").path == "/served/{name}"
    assert files.address(b"points", "application/octet-stream", "a1") == "/served/a1"
    answer = fetched(files, "a1")
    assert (answer.status_code, bytes(answer.body), answer.media_type) == (200, b"points", "application/octet-stream")
    assert "immutable" in answer.headers["cache-control"]
    missing = fetched(files, "other")
    assert missing.status_code == 404
    assert "cache-control" not in missing.headers  # it may be there after the next load


def test_a_file_is_made_once_when_a_browser_fetches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    files, made = ServedFiles(), []

    def make() -> bytes:
        made.append(1)
        return b"sheet"

    files.route("")
    assert files.address_later(make, "image/jpeg", "s1") == "/served/s1"
    assert made == []
    for _ in range(2):
        answer = fetched(files, "s1")
        assert (answer.status_code, bytes(answer.body), answer.media_type) == (200, b"sheet", "image/jpeg")
    assert made == [1]
    monkeypatch.setattr(ServedFiles, "MOST_LATER", 1)
    files.address_later(make, "image/jpeg", "s2")
    assert [fetched(files, name).status_code for name in ("s1", "s2")] == [200, 200]
    monkeypatch.setattr(ServedFiles, "MOST", 1)
    files.address_later(make, "image/jpeg", "s3")
    assert [fetched(files, name).status_code for name in ("s2", "s3")] == [200, 200], "the newest file stays"
    assert fetched(files, "s1").status_code == 404


@pytest.mark.parametrize("base", ["udml", "/udml/", "udml/"])
def test_a_server_below_a_path_serves_below_it(base: str) -> None:
    files = ServedFiles()
    assert files.route(base).path == "/udml/served/{name}"
    assert files.address(b"", "image/jpeg", "a1") == "/udml/served/a1"


def test_files_unused_for_the_longest_time_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServedFiles, "MOST", 10)
    files = ServedFiles()
    for name in ("a", "b", "a", "c"):  # 4 bytes each: a is used again before c arrives
        files.address(b"1234", "image/jpeg", name)
    assert [fetched(files, name).status_code for name in "abc"] == [200, 404, 200]
    files.address(bytes(20), "image/jpeg", "large")  # larger than the limit: the newest file stays
    assert [fetched(files, name).status_code for name in ("a", "c", "large")] == [404, 404, 200]
    files.address(b"1234", "image/jpeg", "d")  # the bytes of what went are free again
    files.address(b"1234", "image/jpeg", "e")
    assert [fetched(files, name).status_code for name in ("large", "d", "e")] == [404, 200, 200]


def test_large_arrays_are_fetched_once_from_a_server_that_answers_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(getattr(route, "path", "") == "/served/{name}" for route in serve.app._user_routes)
    rows = np.arange(6, dtype=np.float32)
    monkeypatch.setattr(SERVED, "is_open", False)
    inside = transport.Message().once(rows)
    assert inside is not None
    assert inside["length"] == rows.nbytes
    monkeypatch.setattr(SERVED, "is_open", True)
    part = transport.Message().once(rows)
    assert part is not None
    assert set(part) == {"type", "url"}
    assert transport.Message().once(rows + 0) == part  # the same content has the same address
    assert bytes(fetched(SERVED, part["url"].rsplit("/", 1)[1]).body) == rows.tobytes()
    other = transport.Message().once(rows + 1)
    assert other is not None
    assert other["url"] != part["url"]
