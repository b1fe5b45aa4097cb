"""The memory of whole runs: at most 2.5 times the features and 1 GB, from the features to the evaluation and index."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from udml_core.data import catalog
from udml_core.runs import Run, RunRequest, create_run
from udml_core.work.jobs.planning import plan

FACTOR, REST = 2.5, 1e9
"""Bytes of memory for each byte of features, and beside them."""
CLASSES = 1_000
WORK = """
import sys, time
from pathlib import Path
from threading import Thread
from udml_core.base.malloc import keep_freed_memory
keep_freed_memory()
from udml_core.runs import Run
from udml_core.work.workers import evaluate, train
evaluate.ASKED, evaluate.LONGEST_EXACT = 500, 0  # the memory of a chunk of queries does not depend on their number
peak = 0
def watch():
    global peak
    while True:
        line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon"))
        peak = max(peak, 1024 * int(line.split()[1]))
        time.sleep(0.01)
Thread(target=watch, daemon=True).start()
train.work(Run(Path(sys.argv[1])), analyse=False)
print(peak)
"""
"""Works as a worker does, and prints the peak of its memory besides mapped files, which the system can take back."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory differ")


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


def peak_of(run: Run) -> int:
    """Execute a run in a process of its own and return the bytes of memory that it needed at most."""
    done = subprocess.run([sys.executable, "-c", WORK, str(run.folder)], check=True, timeout=900, capture_output=True,
                          text=True)
    assert run.status().state == "done", run.status().message
    measured = run.evaluation()
    assert measured.keys() >= {"frozen", "centered pca", "final"}
    assert measured["final"]["effective rank"] > 1
    return int(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "width"), [(200_000, 64), (1_000_000, 128)])
def test_a_run_of_many_vectors_keeps_the_limit(rows: int, width: int, tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    table = catalog.load(str(write_table(tmp_path / "table.npy", rows, width)))
    run = create_run(plan(RunRequest(dataset=table.name, method="frozen"), table), tmp_path / "runs")
    assert peak_of(run) < FACTOR * 4 * rows * width + REST
    assert run.evaluation()["final"]["queries"] == 500
    assert run.gallery_path.is_dir() == (rows > 200_000)


@pytest.mark.slow
def test_a_run_of_wide_pixels_keeps_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer images than the 37,632 values of each."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    folder = catalog.load(str(write_images(tmp_path / "images", 1_500)))
    request = RunRequest(dataset=folder.name, method="frozen", backbone="pixels", size=112)
    run = create_run(plan(request, folder), tmp_path / "runs")
    assert peak_of(run) < FACTOR * 4 * 1_500 * 37_632 + REST
    assert run.evaluation()["frozen"]["dimension"] == 37_632
