"""The memory of whole runs: at most 2.5 times the features and 1 GB, from the features to the evaluation and index."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.runs import Run, RunRequest, create_run
from udml_core.work.jobs.planning import plan

FACTOR, REST = 2.5, 1e9
"""Bytes of memory for each byte of features, and beside them with the program."""
CLASSES = 1_000
WORK = """
import resource, sys, time
from pathlib import Path
from threading import Thread
from udml_core.base.malloc import keep_freed_memory, release_freed_memory
keep_freed_memory()
from udml_core.runs import Run
from udml_core.work.workers import evaluate, train
evaluate.ASKED, evaluate.LONGEST_EXACT = 500, 0  # the memory of a chunk of queries does not depend on their number
train.make_sheets = lambda *_: None  # takes most of the time of 200,000 vectors, one sheet of thumbnails at a time

small, run, goal, extra, is_watched = sys.argv[1:]
peak = 0

def watch():
    global peak
    while True:
        peak = max(peak, memory("RssAnon"))
        time.sleep(0.01)

def memory(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))

assert train.work(Run(Path(small)), analyse=False).state == "done"
release_freed_memory()
most = memory("VmData") + min(int(goal) - memory("RssAnon"), int(extra))
if is_watched == "True":
    Thread(target=watch, daemon=True).start()
else:
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
train.work(Run(Path(run)), analyse=False)
print(peak)
"""
"""Works as a worker does, within a limit that the kernel keeps: an allocation beyond it fails.

`RLIMIT_DATA` counts private memory that can be written, and no mapped files, which the system can take back. It also
counts what libraries reserve and never touch: Arrow's allocator 1 GB, each thread its stack, faiss and torch their
tables, 0.5 to 1.6 GB together. So a small run loads every library and starts every thread first, and what is then
reserved but not in memory is added to the limit. What the program itself then has in memory counts.
"""
STACK = 2**19
"""Bytes that each thread reserves: faiss starts 32 to read lists ahead, for each slice of a search."""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="limits of memory differ")]


def write_table(path: Path, rows: int, width: int) -> Path:
    """Write invented vectors in classes, in blocks, because memory stays with this process."""
    random = np.random.default_rng(0)
    labels, centers = random.integers(0, CLASSES, rows), random.normal(size=(CLASSES, width)).astype(np.float32)
    vectors = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, width))
    for start in range(0, rows, 50_000):
        some = labels[start : start + 50_000]
        vectors[start : start + 50_000] = centers[some] + random.standard_normal((len(some), width), np.float32)
    vectors.flush()
    parquet.write_table(pa.table({"label": labels}), path.with_suffix(".parquet"))
    return path


def write_images(folder: Path, count: int, classes: int = 10) -> Path:
    """Write small colored images of patterns with noise, in one subfolder for each class."""
    random = np.random.default_rng(0)
    patterns = random.integers(40, 216, (classes, 16, 16, 3))
    for number in range(count):
        (parent := folder / f"class {number % classes}").mkdir(parents=True, exist_ok=True)
        pixels = patterns[number % classes] + random.integers(-40, 40, (16, 16, 3))
        Image.fromarray(pixels.astype(np.uint8)).save(parent / f"{number}.png")
    return folder


def check_limit(run: Run, small: Run, features: int, blocks: float = REST, watched: bool = False) -> None:
    """Execute a run in a process of its own that has the memory of the goal, and no room for a further copy.

    Args:
        run: The run.
        small: A run on a few rows of the same kind.
        features: Bytes of the features.
        blocks: Bytes of what a run computes at once, whatever its number of images, where a copy of the features is
            less than the goal leaves free.
        watched: Whether its memory is looked at a hundred times a second, in place of a limit: `RLIMIT_DATA` also
            counts the holes between large arrays that are freed, from which the system has taken the memory back.
    """
    goal, extra = FACTOR * features + REST, FACTOR * features + blocks
    environment = os.environ | {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}  # each thread has blocks
    arguments = [str(small.folder), str(run.folder), str(int(goal)), str(int(extra)), str(watched)]
    done = subprocess.run([sys.executable, "-c", WORK, *arguments], timeout=900, capture_output=True, text=True,
                          env=environment, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (STACK, STACK)))
    assert run.status().state == "done", (run.status().message, done.stderr[-2000:])
    assert int(done.stdout.splitlines()[-1]) < goal
    measured = run.evaluation()
    assert measured.keys() >= {"frozen", "centered pca", "final"}
    assert measured["final"]["effective rank"] > 1


def planned(dataset: Dataset, root: Path) -> Run:
    """Create a run of frozen features, of pixels at 112 px if there are images."""
    options = {} if dataset.is_table else {"backbone": "pixels", "size": 112}
    return create_run(plan(RunRequest(dataset=dataset.name, method="frozen", **options), dataset), root)


@pytest.mark.parametrize(("rows", "width", "blocks"), [(200_000, 64, 260e6), (1_000_000, 128, REST)])
def test_a_run_of_many_vectors_keeps_the_limit(rows: int, width: int, blocks: float, tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    small, run = (planned(catalog.load(str(write_table(tmp_path / f"{count}.npy", count, width))), tmp_path / "runs")
                  for count in (2_000, rows))
    check_limit(run, small, 4 * rows * width, blocks, watched=rows > 200_000)
    assert run.evaluation()["final"]["queries"] == 500
    assert run.gallery_path.is_dir() == (rows > 200_000)


def test_a_run_of_wide_pixels_keeps_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer images than the 37,632 values of each."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    small, run = (planned(catalog.load(str(write_images(tmp_path / str(count), count))), tmp_path / "runs")
                  for count in (40, 1_500))
    check_limit(run, small, 4 * 1_500 * 37_632)
    assert run.evaluation()["frozen"]["dimension"] == 37_632
