"""`udml app` and `udml-explorer`: what they hand to the server that they start."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.running import write_digits
from udml_core.__main__ import explore, main
from udml_core.base import started
from udml_core.base.paths import APP
from udml_core.cli import commands, opening
from udml_core.data import catalog

Started = list[tuple[list[str], dict[str, str]]]


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Started:
    """The commands and environments of the servers that would start."""
    calls: Started = []

    def become(command: list[str], environment: dict[str, str]) -> None:
        calls.append((command, environment))
        sys.exit(0)

    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(opening, "_become", become)
    return calls


def call(monkeypatch: pytest.MonkeyPatch, *words: str, program: Any = commands.main) -> int:
    """Call a program of the command line and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["udml", *words])
    with pytest.raises(SystemExit) as ended:
        program()
    return int(ended.value.code or 0)


def test_both_programs_start_the_server_and_remember_the_folder(
        tmp_path: Path, servers: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER", "lynx")
    folder = write_digits(tmp_path / "50% & more", 12)
    assert call(monkeypatch, "app", str(folder), "--port", "8600", "--runs", str(tmp_path / "runs")) == 0
    assert call(monkeypatch, str(folder), program=explore) == 0
    assert catalog.remembered_folders() == [str(folder)]
    (first, environment), (second, other) = servers
    assert first == [sys.executable, "-P", str(APP / "serve.py"), "--server.port", "8600"]
    assert second == first[:3]
    assert environment["UDML_RUNS"] == str(tmp_path / "runs")
    assert other["UDML_BROWSE"] == environment["UDML_BROWSE"] == str(folder)
    monkeypatch.setattr("os.environ", other)
    assert started.opens_browser()
    assert started.start_address().endswith("50%25+%26+more")


def test_a_used_port_is_one_line_at_once(servers: Started, monkeypatch: pytest.MonkeyPatch,
                                         capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert call(monkeypatch, "app", "--port", str(port)) == 1
    assert capsys.readouterr().err == (
        f"Port {port} is used, perhaps by this app: open http://127.0.0.1:{port}, or leave out --port.\n")
    assert not servers
    assert call(monkeypatch, "app", "--port", str(port)) == 0
    assert len(servers) == 1


@pytest.mark.parametrize(("variables", "words", "opens"), [
    ({"DISPLAY": ":0"}, [], True), ({}, [], sys.platform in ("win32", "darwin")), ({"BROWSER": "firefox"}, [], True),
    ({"DISPLAY": ":0"}, ["--no-browser"], False), ({"DISPLAY": ":0", "UDML_EXPOSED": "1"}, [], False)])
def test_a_browser_opens_where_there_is_a_screen(servers: Started, monkeypatch: pytest.MonkeyPatch,
                                                 variables: dict[str, str], words: list[str], opens: bool) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert call(monkeypatch, "app", *words) == 0
    ((_, environment),) = servers
    monkeypatch.setattr("os.environ", environment)
    assert started.opens_browser() == opens
    assert started.start_address() == ""


def test_a_data_set_is_opened_by_its_name_and_a_wrong_folder_starts_nothing(
        tmp_path: Path, servers: Started, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    for words in (["app", str(tmp_path / "missing")], ["app", str(tmp_path / "empty")], ["app", "--port", "0"]):
        assert call(monkeypatch, *words) == 2
    printed = capsys.readouterr().err
    assert "no folder of that name" in printed
    assert "has no images" in printed
    assert not servers
    assert call(monkeypatch, "app", "digits") == 0
    assert servers[0][1]["UDML_BROWSE"] == "digits"
    assert catalog.remembered_folders() == []


@pytest.mark.parametrize("words", [
    ["photos/none"], ["~/none#level=1", "--port", "8600"], ["--runs", "there", "./none"]])
def test_a_path_that_does_not_exist_is_refused_before_the_imports(words: list[str]) -> None:
    """Heavy modules would take seconds in an environment that was installed a moment ago."""
    code = ("import sys; from udml_core.__main__ import explore\ntry: explore()\nfinally: "
            "print(sorted({'numpy', 'typer', 'pydantic', 'torch'} & set(sys.modules)))")
    ended = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    name = next(word for word in words if "none" in word)
    assert (ended.returncode, ended.stdout) == (2, "[]\n")
    assert ended.stderr == f"There is no folder or file '{name}'. Name a folder or an archive of images, or a table.\n"


def test_both_programs_say_at_once_that_they_start(servers: Started, monkeypatch: pytest.MonkeyPatch,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    for words, program in ((["app", "digits"], main), (["digits"], explore)):
        assert call(monkeypatch, *words, program=program) == 0
        assert capsys.readouterr().err == "UDML Explorer starts …\n"
    assert call(monkeypatch, "methods", program=main) == 0
    assert "starts" not in capsys.readouterr().err


def test_the_hint_names_a_program_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("here", "other"):
        (tmp_path / folder).mkdir()
        for name in ("udml", "python"):
            (tmp_path / folder / name).touch(mode=0o755)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "here" / "python"))
    paths = {folder: str(tmp_path / folder) for folder in ("here", "other")}
    for path, words in (("here", ["udml"]), ("other", [f"{paths['here']}{os.sep}udml"])):
        monkeypatch.setenv("PATH", paths[path])
        assert started.program_words() == words
    (tmp_path / "here" / "udml").unlink()
    assert started.program_words() == [sys.executable, "-m", "udml_core"]
    monkeypatch.setattr(sys, "prefix", "/home/ann/.cache/uv/archive-v0/ZQMGmkwxEjgSP495")
    assert started.program_words() == ["uvx", "--from", "udml-explorer", "udml"]
