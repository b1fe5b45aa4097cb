"""Calls in a process with a limit on its memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from udml_core.base import bounded
from udml_core.base.errors import UserError
from udml_core.base.paths import python_path
from udml_core.data.sources.vector_files import ChoiceError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems make plain calls")
MOST_GROWTH = 100
"""Megabytes by which the server's largest memory may grow while it opens a bomb."""


@pytest.fixture(scope="module", autouse=True)
def bounded_calls() -> Iterator[None]:
    bounded.start(("tests.base.test_bounded",))
    yield
    bounded.stop()


def fill(megabytes: int) -> int:
    return len(np.ones(megabytes * 125_000))


def fail(error: Exception) -> None:
    raise error


def count(most: int, *, report: Callable[[float, str], None]) -> int:
    for number in range(most):
        report(number / most, f"step {number}")
    return os.getpid()


def test_a_call_has_a_process_of_its_own_and_reports() -> None:
    seen: list[tuple[float, str]] = []
    number = bounded.call("x.csv", count, 3, report=lambda share, step: seen.append((share, step)))
    assert number != os.getpid()
    assert seen == [(0.0, "step 0"), (1 / 3, "step 1"), (2 / 3, "step 2")]


def test_errors_keep_their_type_and_attributes() -> None:
    with pytest.raises(ChoiceError, match="wrong choose") as caught:
        bounded.call("x.csv", fail, ChoiceError("wrong", "choose", "change"))
    assert caught.value.change == "change"
    with pytest.raises(FileNotFoundError):
        bounded.call("x.csv", fail, FileNotFoundError("gone"))


def test_a_call_beyond_the_limit_names_file_and_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(bounded.VARIABLE, "0.5")
    assert bounded.call("x.csv", fill, 200) == 25_000_000
    with pytest.raises(UserError, match=r"^x\.csv needs more than 500\.0 MB of memory.*UDML_READ_GB=16"):
        bounded.call("x.csv", fill, 600)
    monkeypatch.setenv(bounded.VARIABLE, "2")
    assert bounded.call("x.csv", fill, 600) == 75_000_000


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_reader_that_dies_is_an_error_of_its_file(number: int) -> None:
    with pytest.raises(UserError, match=r"x\.csv needs more than"):
        bounded.call("x.csv", os.abort if number == signal.SIGSEGV else _kill_itself)
    assert bounded.call("x.csv", len, "abc") == 3


def _kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_of_readers_starts_again() -> None:
    assert bounded._forks is not None
    assert bounded._forks._process is not None
    bounded._forks._process.kill()
    bounded._forks._process.wait()
    assert bounded.call("x.csv", len, "abc") == 3


def test_a_small_call_takes_little_time() -> None:
    began = time.monotonic()
    for _ in range(20):
        bounded.call("x.csv", len, "abc")
    assert (time.monotonic() - began) / 20 < 0.25  # 0.006 s on an idle machine


OPENING = """
import sys
from pathlib import Path
from udml_core.base import bounded
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.given.own_columns import parse_columns
from udml_core.data.given.uploads import parse_upload

def largest():
    words = Path("/proc/self/status").read_text().split()
    return int(words[words.index("VmHWM:") + 1]) // 1000

if sys.argv[2] == "bounded":
    bounded.start()
digits = catalog.load("digits")
warm, path = largest(), Path(sys.argv[1])
try:
    if path.name.startswith("upload"):
        content = path.read_bytes()
        warm = largest() + 2 * len(content) // 10**6  # what was uploaded, and its copy for the reader
        parse_upload(parse_columns, content, path.name, digits)
    else:
        catalog.load(str(path))
    print("opened")
except UserError as error:
    print(error)
print(largest() - warm)
"""


def write_wide_table(path: Path) -> None:
    """Write vectors beside a CSV file of 45 MB, whose 15 million cells take 0.9 GB as texts."""
    np.save(path, np.ones((1000, 2)))
    row = ",".join(["ab"] * 15_000) + "\n"
    path.with_suffix(".csv").write_text(",".join(f"c{number}" for number in range(15_000)) + "\n" + row * 1000)


def write_wide_upload(path: Path) -> None:
    """Write a CSV file of 30 MB with 10 million different texts, which take 0.7 GB."""
    rows = ("".join(f"{number:02x}{row % 256:02x},"[:3] for number in range(10_000)) + "\n" for row in range(1000))
    path.write_text(",".join(f"c{number}" for number in range(10_001)) + "\n" + "".join(rows))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "write"), [("wide.npy", write_wide_table), ("upload.csv", write_wide_upload)])
@pytest.mark.parametrize("way", ["bounded", "plain"])
def test_the_memory_of_a_server_stays_flat(name: str, write: Callable[[Path], None], way: str, tmp_path: Path) -> None:
    path = tmp_path / name
    write(path)
    environment = os.environ | {"PYTHONPATH": python_path(), bounded.VARIABLE: "0.5",
                                "UDML_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", OPENING, str(path), way], env=environment, capture_output=True,
                          text=True, timeout=300, check=True)
    *words, growth = done.stdout.strip().splitlines()
    if way == "bounded":
        assert "needs more than 500.0 MB of memory" in words[-1]
        assert int(growth) < MOST_GROWTH
    else:  # the bomb is real: without a limit it fills the memory of the process that opens it
        assert int(growth) > 2 * MOST_GROWTH
