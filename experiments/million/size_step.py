"""A step of the table of sizes, in a process of its own that reads the library of any version since 0.2.

    PYTHONPATH=TREE python experiments/million/size_step.py STEP NAME ENCODER TRACE LIMIT

It appends what it reports to the file TRACE, a line of JSON each: the phase, its share, and the seconds, processor
seconds and peak memory so far. The kernel stops the step after LIMIT processor seconds; the file then tells how far it
came.
"""

from __future__ import annotations

import time

BEGAN = time.time()

import importlib  # noqa: E402 (the clock starts first)
import json  # noqa: E402
import os  # noqa: E402
import resource  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402
from contextlib import suppress  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

LEAST_SECONDS = 0.5
"""Seconds between two lines of the same phase."""
EPSILON = 0.65
RECIPE = "whiten+average:k=20,times=2"


def library(*names: str) -> Any:
    """Import the first of several modules that this version of the library has."""
    for name in names[:-1]:
        with suppress(ModuleNotFoundError):
            return importlib.import_module(f"udml_core.{name}")
    return importlib.import_module(f"udml_core.{names[-1]}")


def peak_memory() -> float:
    """Return the peak memory of this process in MB, since its start or since the library has reset the record."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


class Trace:
    """The file of a step's progress.

    Attributes:
        is_start: Whether the process ends when the embedding of a run is stored.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._phase, self._written, self._peak = "", 0.0, 0.0
        self.is_start = False

    def write(self, phase: str, share: float = 0.0, **more: Any) -> None:
        """Append a line if the phase is another one, or half a second has passed."""
        now = time.time()
        if phase == self._phase and now - self._written < LEAST_SECONDS and not more:
            return
        self._phase, self._written = phase, now
        row = {"phase": phase, "share": share, "seconds": now - BEGAN, "processor": time.process_time(),
               "memory": self.peak()} | more
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        if self.is_start and (phase == "evaluation" or "searchable" in more):
            os._exit(0)

    def peak(self) -> float:
        """Return the peak memory so far in MB, also after the library has reset the kernel's record."""
        self._peak = max(self._peak, peak_memory())
        return self._peak

    def report(self, share: float, step: str) -> None:
        """Receive the progress of the library."""
        self.write(step.partition(" · ")[0], float(share))


def main() -> None:
    step, name, encoder, path, limit = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 10))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    library("base.malloc", "malloc").keep_freed_memory()
    trace = Trace(Path(path))
    trace.write("process", began=BEGAN)
    STEPS[step](name, encoder, trace)
    trace.write("end", 1.0)


def read(name: str, _encoder: str, trace: Trace) -> None:
    """Read a data set for the first time: its file list, labels and fingerprint."""
    catalog = library("data.catalog")
    trace.write("imported")
    dataset = catalog.load(name)
    trace.write("read", 1.0, images=len(dataset))


def run(name: str, encoder: str, trace: Trace) -> None:
    """Execute a run of frozen features, without maps and graphs."""
    worker = library("work.workers.train", "workers.train")
    execute = library("work.workers.execute", "workers.execute")
    trace.write("imported")
    runs, planning = library("runs"), library("work.jobs.planning", "jobs.planning")
    dataset = library("data.catalog").load(name)
    backbone, size = encoder.split(":")
    options: dict[str, Any] = {} if dataset.vectors is not None else {"backbone": backbone, "size": int(size)}
    request = runs.RunRequest(dataset=name, method="frozen", **options)
    created = runs.create_run(planning.plan(request, dataset), runs.runs_folder())
    trace.write("planned", 0.0, run=created.id)
    _follow(execute.Reporter, trace)
    status = worker.work(created, analyse=False)
    assert status.state == "done", status.message


def pca(_name: str, _encoder: str, trace: Trace) -> None:
    """Compute the PCA map of all images."""
    _analyse(trace, kind="pca", scope="all", frames=("final",))


def umap(_name: str, _encoder: str, trace: Trace) -> None:
    """Compute the UMAP map of all images."""
    _analyse(trace, kind="umap", scope="all", frames=("final",))


def clusters(_name: str, _encoder: str, trace: Trace) -> None:
    """Compute the graph of the training half, and form the clusters at an ε."""
    analysis = _analyse(trace, kind="graph", scope="train", frames=("final",), n_neighbors=20)
    formed = analysis.result().clusters(EPSILON)
    trace.write("clusters", 1.0, clusters=len(formed.modes))


def refine(_name: str, _encoder: str, trace: Trace) -> None:
    """Refine the embedding of the test half."""
    _analyse(trace, kind="refine", scope="test", frames=("final",), recipe=RECIPE)


def start(name: str, encoder: str, trace: Trace) -> None:
    """Start another run, whose features are stored, and end when its embedding is stored."""
    os.environ["UDML_RUNS"] += "-start"
    trace.is_start = True
    run(name, encoder, trace)


STEPS: dict[str, Callable[[str, str, Trace], None]] = {
    step.__name__: step for step in (read, run, pca, umap, clusters, refine, start)}
"""The steps in their order."""


def _analyse(trace: Trace, **options: Any) -> Any:
    """Compute an analysis of the only run, in this process."""
    analyses = library("runs.analyses", "analyses")
    worker = library("work.workers.analyse", "workers.analyse")
    runs = library("runs")
    trace.write("imported")
    (only,) = runs.list_runs(runs.runs_folder())
    return worker.keep(only, analyses.plan_analysis(**options), trace.report)


def _follow(reporter: Any, trace: Trace) -> None:
    """Let the writer of a run's status also write the trace."""
    change, share = reporter.change, reporter.share

    def changed(self: Any, **values: Any) -> None:
        trace.peak()
        change(self, **values)
        phase = str(values.get("phase", self.status.phase)) or str(values.get("state", ""))
        more = {"searchable": True} if values.get("searchable") or values.get("state") == "done" else {}
        trace.write(phase.partition(" · ")[0], float(values.get("share", 0.0)), **more)

    def shared(self: Any, done: float, phase: str) -> None:
        share(self, done, phase)
        trace.report(done, phase)

    reporter.change, reporter.share = changed, shared


if __name__ == "__main__":
    main()
