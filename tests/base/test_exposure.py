"""What an exposed server reads, says and sends, and what leaves this computer."""

from __future__ import annotations

import ast
import os
import stat
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

import serve
from experiments.hold_fast.sockets import run_alone
from tests.app.opening import ROOT, opened, texts
from tests.running import spec, worked, write_digits
from udml_core.base.errors import UserError
from udml_core.base.paths import EXAMPLES, EXPOSED, expose, is_exposed, is_loopback, may_read, readable_roots
from udml_core.data import catalog
from udml_core.data.encoders import hub
from udml_core.runs import Run, create_run, find_run, own_copy, runs_folder
from udml_core.work.exporting import export
from udml_core.work.jobs import dispatch


@pytest.fixture
def exposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder outside of the folders that this exposed server reads."""
    monkeypatch.setenv(EXPOSED, "1")
    monkeypatch.setenv("UDML_DATA", str(tmp_path / "data"))
    write_digits(tmp_path / "data" / "inside", 8)
    return write_digits(tmp_path / "outside", 8)


# Who is exposed


def test_the_app_listens_at_this_computer_only() -> None:
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert is_loopback(settings["server"]["address"])
    assert settings["server"]["enableXsrfProtection"] is True
    assert "enableCORS" not in settings["server"], "Streamlit refuses other origins unless it is turned off"


@pytest.mark.parametrize(("address", "own"), [
    ("127.0.0.1", True), ("localhost", True), ("::1", True), ("127.8.8.8", True), ("0.0.0.0", False), ("::", False),
    (None, False), ("", False), ("192.168.0.7", False), ("example.org", False), ("unix:///run/udml.sock", False)])
def test_a_server_is_exposed_unless_it_listens_at_a_loopback_address(
        address: str | None, own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EXPOSED, "0")
    assert is_loopback(address) is own
    assert expose(address) is not own
    assert is_exposed() is not own, "processes that this one starts know it too"


def test_behind_a_proxy_the_user_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EXPOSED, "1")
    monkeypatch.delenv("UDML_RUNS")
    assert expose("127.0.0.1")
    assert os.environ["UDML_RUNS"] == str(runs_folder()), "workers start in another folder"


# What it reads


def test_links_and_dots_are_followed_before_a_path_is_compared(exposed: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "link").symlink_to(exposed)
    (exposed / "back").symlink_to(data / "inside")
    (tmp_path / "data-beside").mkdir()
    allowed = [data, data / "inside" / "class 0", data / "inside" / ".." / "inside", exposed / "back", EXAMPLES,
               runs_folder() / "a-run", data / "not there"]
    refused = [exposed, data / ".." / "outside", data / "link", data / "link" / "class 0", Path("/"), Path("/etc"),
               tmp_path / "data-beside", Path.home(), Path("."), Path("~"), Path("~nobody-of-this-name"), Path("a\0b")]
    assert [may_read(path) for path in (*allowed, *refused)] == [True] * len(allowed) + [False] * len(refused)


def test_every_way_to_name_a_path_is_limited(exposed: Path, tmp_path: Path) -> None:
    (tmp_path / "data" / "link").symlink_to(exposed)
    run = create_run(spec(), tmp_path / "elsewhere")
    refusal = r"no data set .* reads only folders in UDML_DATA, the runs, the uploads"
    for path in (exposed, tmp_path / "data" / "link", tmp_path / "data" / ".." / "outside", tmp_path / "nowhere"):
        for name in (str(path), f"{path}#level=1"):
            with pytest.raises(UserError, match=refusal):
                catalog.find(name)
            assert "does not read" in str(catalog.folder_of(name).missing())
            assert catalog.folder_of(name).levels() == []
    with pytest.raises(UserError, match="No run"):
        find_run(str(run.folder), runs_folder())
    assert catalog.load(str(tmp_path / "data" / "inside")).class_names
    assert "link" not in {source.title for source in catalog.sources()}
    for model in ("local-dir:/etc", "hf-hub:a/b", "../x"):
        with pytest.raises(UserError, match="named by letters, digits, dots and hyphens"):
            hub.check(f"timm:{model}")


def test_a_remembered_folder_is_listed_again_when_the_server_is_no_longer_exposed(
        exposed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EXPOSED, "0")
    catalog.remember(exposed)
    try:
        assert str(exposed) in catalog.remembered_folders()
        monkeypatch.setenv(EXPOSED, "1")
        assert str(exposed) not in catalog.remembered_folders()
    finally:
        monkeypatch.setenv(EXPOSED, "0")
        catalog.forget(exposed)


def test_images_behind_links_that_lead_out_are_no_part_of_a_data_set(exposed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "inside"
    Image.new("L", (16, 16)).save(tmp_path / "secret.png")
    (folder / "class 0" / "secret.png").symlink_to(tmp_path / "secret.png")
    (folder / "class 9").symlink_to(exposed / "class 1")
    (folder / "class 0" / "twin.png").symlink_to(next((folder / "class 1").iterdir()))
    names = catalog.load(str(folder)).names
    assert "class 0/twin.png" in names
    assert len(names) == 9


def test_no_page_opens_a_path_of_its_own() -> None:
    """Pages hand names to the library, which asks `may_read`; files of the cache are listed here."""
    known = {"pages/parts/draw/thumbnails.py"}
    opening = {"Path", "open", "listdir", "scandir", "existing_path"}
    found = {script.relative_to(ROOT).as_posix() for script in (ROOT / "pages").rglob("*.py")
             for node in ast.walk(ast.parse(script.read_text(encoding="utf-8")))
             if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in opening}
    assert found == known


def test_only_the_task_says_whether_its_worker_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exposed app may start the dispatcher that also executes runs of the command line."""
    environments: list[dict[str, str]] = []

    def start(*_: Any, env: dict[str, str], **__: Any) -> SimpleNamespace:
        environments.append(env)
        return SimpleNamespace(pid=2**30)

    monkeypatch.setattr(dispatch.subprocess, "Popen", start)
    monkeypatch.setenv(EXPOSED, "1")
    dispatch.start_worker(["work"], tmp_path / "log.txt", {})
    dispatch.start_worker(["work"], tmp_path / "log.txt", {EXPOSED: "1"})
    assert [EXPOSED in environment for environment in environments] == [False, True]


def test_the_page_data_says_what_an_exposed_server_reads_and_refuses_other_folders(exposed: Path) -> None:
    test = opened("data", **{"import": "1", "dataset": str(exposed)})
    assert "Other people can reach this server. It reads images only from UDML_DATA, the runs" in texts(test)
    assert "Choose a data set, or import its folder." in test.warning[0].value
    test.text_input(key="import-path").set_value(str(exposed)).run()
    next(button for button in test.button if button.label == "Open").click().run()
    assert not test.exception
    (error,) = test.error
    assert "reads only folders in" in error.value


def test_a_local_app_reads_every_folder_and_says_nothing(tmp_path: Path) -> None:
    assert "Other people" not in texts(opened("data", dataset="digits"))
    assert not is_exposed()
    assert len(catalog.load(str(write_digits(tmp_path / "anywhere", 8)))) == 8


# What it says and sends


async def _answer(app: Any) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        messages.append(message)

    await app({"type": "http"}, None, send)
    return messages


def test_every_answer_has_the_security_headers() -> None:
    async def page(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-frame-options", b"ALLOW")]})
        await send({"type": "http.response.body", "body": b"page"})

    start, body = run_alone(_answer(serve.SecurityHeaders(page)))
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    assert headers == {name.lower(): value for name, value in serve.HEADERS.items()}
    assert "default-src 'self'" in headers["content-security-policy"]
    assert not [word for word in headers["content-security-policy"].split() if "://" in word or word == "*"]
    assert body["body"] == b"page"


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_an_exposed_server_says_so_when_it_starts(
        address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EXPOSED, "0")
    options = {"server.address": address, "browser.serverAddress": "localhost"}
    monkeypatch.setattr(serve.st, "get_option", options.__getitem__)
    monkeypatch.setattr(serve, "warm_imports", lambda: None)

    async def start() -> None:
        async with serve.start(None):
            pass

    run_alone(start())
    printed = capsys.readouterr().err
    assert ("Other people can reach this server" in printed) == (address == "0.0.0.0")
    assert (str(readable_roots()["the runs"]) in printed) == (address == "0.0.0.0")


# What leaves this computer


@pytest.fixture(scope="module")
def folder_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run on a folder whose path would be recognized anywhere."""
    place = tmp_path_factory.mktemp("private-home-of-somebody")
    return worked(place / "runs", dataset=str(write_digits(place / "holiday", 60)), split="all",
                  fields={"dimension": 8, "epochs": 1, "n_neighbors": 8, "epsilon": 0.4})


def test_an_export_names_no_folder_of_this_computer(folder_run: Run, tmp_path: Path) -> None:
    files = export(folder_run, tmp_path / "out")
    assert {"spec.json", "embedder.safetensors", "index.faiss", "embeddings.parquet"} <= {path.name for path in files}
    for path in files:
        assert b"private-home-of-somebody" not in path.read_bytes(), path.name
    assert Run(tmp_path / "out").spec().dataset == "holiday"


def test_runs_are_private_to_the_user(folder_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    former = os.umask(0)
    try:
        made = create_run(folder_run.spec(), tmp_path / "runs")
        monkeypatch.delenv("UDML_EXAMPLES")
        copied = own_copy(Run(min(EXAMPLES.glob("*/spec.json")).parent), tmp_path / "runs")
    finally:
        os.umask(former)
    for run in (made, copied):
        assert stat.S_IMODE(run.folder.stat().st_mode) == 0o700
