"""Calls in a process with a limit on its memory."""

from __future__ import annotations

import io
import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, cast

import numpy as np
import psutil
import pytest
from PIL import Image, ImageFile

from tests.data.test_official_packed import write_cifar10
from udml_core.base import bounded
from udml_core.base.errors import UserError
from udml_core.base.paths import python_path
from udml_core.data import catalog, dataset
from udml_core.data.dataset import Dataset, UserImage
from udml_core.data.given.uploads import parse_upload
from udml_core.data.sources import image_rows, json_tables
from udml_core.data.sources.json_tables import open_columns
from udml_core.data.sources.official import packed
from udml_core.data.sources.table_files import column_names, names_only_paths
from udml_core.data.sources.vector_files import ChoiceError
from udml_core.runs.search import judgment_files

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


def fail_to_choose() -> None:
    raise ChoiceError("wrong", "choose", "change")


def fail_to_find() -> None:
    raise FileNotFoundError("gone")


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
        bounded.call("x.csv", fail_to_choose)
    assert caught.value.change == "change"
    with pytest.raises(FileNotFoundError):
        bounded.call("x.csv", fail_to_find)


def test_a_call_beyond_the_limit_names_file_and_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(bounded.VARIABLE, "0.5")
    assert bounded.call("x.csv", fill, 200) == 25_000_000
    with pytest.raises(UserError, match=r"^x\.csv needs more than 500\.0 MB of memory.*UDML_READ_GB=16"):
        bounded.call("x.csv", fill, 600)
    monkeypatch.setenv(bounded.VARIABLE, "2")
    assert bounded.call("x.csv", fill, 600) == 75_000_000


@pytest.mark.parametrize("value", ["inf", "nan", "-1", "0", "1e12", "much"])
def test_a_limit_that_makes_no_sense_is_ignored(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(bounded.VARIABLE, raising=False)
    usual = bounded.limit()
    monkeypatch.setenv(bounded.VARIABLE, value)
    assert bounded.limit() == usual
    assert bounded.call("x.csv", len, "abc") == 3


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


def children() -> set[int]:
    """Return the children of the process of readers; some may still be ending."""
    assert bounded._forks is not None
    assert bounded._forks._process is not None
    return {child.pid for child in psutil.Process(bounded._forks._process.pid).children()}


def call_and_next() -> tuple[int, int]:
    """Make a call, and return its process and the process that was begun for the next call."""
    before, until = children(), time.monotonic() + 30
    number = bounded.call("x.csv", os.getpid)
    while not (new := children() - before - {number}) and time.monotonic() < until:
        time.sleep(0.01)
    return number, new.pop()


def test_the_process_of_the_next_call_waits_for_it_and_is_replaced_if_it_was_ended() -> None:
    _, waiting = call_and_next()
    number, other = call_and_next()
    assert number == waiting
    os.kill(other, signal.SIGKILL)
    while psutil.pid_exists(other):
        time.sleep(0.01)
    assert bounded.call("x.csv", len, "abc") == 3


def test_a_process_that_still_imports_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imports_for_long.py").write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    began = time.monotonic()
    bounded._Forks(("imports_for_long",)).close()
    assert time.monotonic() - began < 30


def parse(content: bytes, name: str, dataset: Dataset) -> tuple[int, str, int, int]:
    return os.getpid(), f"{name} {content!r}", len(dataset), len(dataset.names)


def test_an_upload_is_parsed_by_another_process_without_pixels() -> None:
    digits = catalog.load("digits")
    number, *words = parse_upload(parse, b"a,b", "x.csv", digits)
    assert number != os.getpid()
    assert words == ["x.csv b'a,b'", 1797, 1797]


def test_images_of_a_folder_are_decoded_by_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        Image.new("RGB", (20, 20), (80 * number, 0, 0)).save(tmp_path / f"{number}.png")
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda _image: pytest.fail("decoded in the server"))
    assert len(catalog.load(str(tmp_path))) == 3


def test_images_whose_parts_can_be_larger_are_decoded_by_another_process(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        Image.new("RGB", (20, 20), (80 * number, 0, 0)).save(tmp_path / f"{number}.{'tif' if number else 'png'}")
    images = catalog.load(str(tmp_path)).images
    monkeypatch.setattr(dataset, "_upright_rgb", lambda _image: pytest.fail("decoded in the server"))
    assert [images[number].getpixel((0, 0)) for number in (1, 2)] == [(80, 0, 0), (160, 0, 0)]
    with pytest.raises(pytest.fail.Exception):
        images[0]  # a PNG file, which needs what its size says


def test_query_images_are_decoded_by_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO()
    Image.new("RGB", (40, 20), "red").save(content, "PNG")
    monkeypatch.setattr(dataset, "_upright_rgb", lambda _image: pytest.fail("decoded in the server"))
    read = UserImage(content.getvalue(), "a.png").reduced(8)
    assert (read.size, read.getpixel((0, 0))) == ((40, 20), (255, 0, 0))
    with pytest.raises(UserError, match=r"b\.png must be an image in one of the formats"):
        UserImage(b"text", "b.png").reduced()


def test_pickles_are_read_by_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "read_pickled_arrays", lambda _path: pytest.fail("unpickled in the server"))
    root = write_cifar10(tmp_path)
    assert catalog.find(str(root)).images == 12
    assert len(catalog.load(str(root))) == 12


def test_a_small_call_takes_less_time_than_a_process_of_its_own_would() -> None:
    def seconds(call: Callable[[], object], times: int) -> float:
        taken = []
        for _ in range(times):
            began = time.monotonic()
            call()
            taken.append(time.monotonic() - began)
        return median(taken)

    own = seconds(lambda: subprocess.run([sys.executable, "-c", "import numpy"], check=True), 5)
    assert seconds(lambda: bounded.call("x.csv", len, "abc"), 20) < own / 2  # 0.006 s, and 0.1 s, on an idle machine


OPENING = """
import sys
from pathlib import Path
from statistics import median
from udml_core.base import bounded
from udml_core.base.errors import UserError
from udml_core.data import catalog

def largest():
    words = Path("/proc/self/status").read_text().split()
    return int(words[words.index("VmHWM:") + 1]) // 1000

if sys.argv[2] == "bounded":
    bounded.start()
catalog.load("digits")
warm = largest()
try:
    catalog.load(sys.argv[1])
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


def write_repeating_pickles(path: Path) -> None:
    """Write a folder of CIFAR-10 whose pickles of 1 MB encode the same text 800 times."""
    path.mkdir()
    code = (b"\x80\x02c_codecs\nencode\nq\x00X" + struct.pack("<I", 10**6) + b"a" * 10**6 + b"X\x06\x00\x00\x00latin1"
            b"\x86q\x01]q\x02(" + b"h\x00h\x01R" * 800 + b"e.")
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch", "batches.meta"):
        (path / name).write_bytes(code)


def write_objects(path: Path) -> None:
    """Write a folder with an image and a description of 30 MB, whose ten million objects take 0.7 GB."""
    path.mkdir()
    Image.new("RGB", (20, 20)).save(path / "a.png")
    (path / "croissant.json").write_text('{"distribution": [' + "{}," * 10**7 + "{}]}")


@pytest.mark.slow
@pytest.mark.parametrize("write", [write_wide_table, write_repeating_pickles, write_objects],
                         ids=["table", "pickles", "objects"])
@pytest.mark.parametrize("way", ["bounded", "plain"])
def test_the_memory_of_a_server_stays_flat(way: str, write: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "bomb.npy"
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


def test_a_parquet_file_of_many_columns_is_read_by_another_process(tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    names = [f"c{number}" for number in range(100_000)]
    script = ("import sys, pyarrow as pa; from pyarrow import parquet; parquet.write_table(pa.table({f'c{number}': "
              "pa.array([], pa.bool_()) for number in range(int(sys.argv[2]))}), sys.argv[1])")
    subprocess.run([sys.executable, "-c", script, str(path), str(len(names))], check=True, timeout=300)
    assert path.stat().st_size < 20e6
    small = tmp_path / "small.parquet"
    subprocess.run([sys.executable, "-c", script, str(small), "3"], check=True, timeout=300)
    assert column_names(small) == ["c0", "c1", "c2"]
    assert catalog.table_of(str(small)) is not None  # imports the readers
    before = psutil.Process().memory_info().rss
    assert not names_only_paths(path, ("path",))
    for read in (lambda: column_names(path), lambda: catalog.table_of(str(path)).load(lambda *_: None)):  # type: ignore[union-attr]
        with pytest.raises(UserError, match="has 100,000 columns, and a table can have 20,000"):
            read()
    assert psutil.Process().memory_info().rss - before < 60e6


@pytest.mark.parametrize("name", ["metadata.jsonl", *json_tables.JSON_TABLES])
def test_lists_in_json_are_parsed_by_another_process(name: str, tmp_path: Path,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    files = [f"{number}.png" for number in range(2)]
    for file in files:
        Image.new("RGB", (20, 20)).save(tmp_path / file)
    rows = [{"file_name": file, "label": "c"} for file in files]
    (tmp_path / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows) if name.endswith("l") else "{}")
    monkeypatch.setattr(json_tables, "parse_json", lambda _content: pytest.fail("parsed in the server"))
    monkeypatch.setattr(image_rows, "parse_json", lambda _content: pytest.fail("parsed in the server"))
    loaded = catalog.load(str(tmp_path))
    assert (len(loaded), loaded.class_names) == (2, ("c",) if name.endswith("l") else ())


def test_the_list_of_saved_files_is_parsed_only_if_it_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / "own.arrow", tmp_path / "other.arrow"]
    state = json.dumps({"_data_files": [{"filename": "own.arrow"}]})
    (tmp_path / "state.json").write_text(state)
    assert image_rows._without_cache(tmp_path, files) == files[:1]
    (tmp_path / "state.json").write_text(state + " " * 2**20)
    monkeypatch.setattr(image_rows, "parse_json", lambda _content: pytest.fail("parsed in the server"))
    assert image_rows._without_cache(tmp_path, files) == files


def test_judgments_are_parsed_by_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgment_files, "parse_json", lambda _content: pytest.fail("parsed in the server"))
    with pytest.raises(UserError, match=r"has the format 'other'\. Expected a JSON file"):
        judgment_files._parse(b'{"format": "other"}', "a.json", cast(Any, None))


def test_names_of_columns_are_short(tmp_path: Path) -> None:
    path = tmp_path / "metadata.jsonl"
    path.write_text(json.dumps({"file_name": "a.png", "x" * 2**20: 1}))
    with pytest.raises(UserError, match=r"names of columns with 1,048,585 letters altogether.*Shorten the names"):
        open_columns(path)
