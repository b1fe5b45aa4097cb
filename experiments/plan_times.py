"""How true the time is that a plan states before a run starts: on an idle machine, and beside two busy processes.

    python -m experiments.plan_times --out assets/results/plan-times.json

Each of ten plans is run until all of its parts are measured on this machine, then once more idle and once more beside
two processes that never rest. What the plan stated just before is compared with the time from the submission to the
results. Nothing else must run; it takes about a quarter of an hour on two cores.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments.recording import provenance, record_parser, write_record
from udml_core.data import catalog
from udml_core.runs import RunRequest
from udml_core.runs.tasks import LIVE_STATES
from udml_core.work import jobs

PLANS: tuple[tuple[str, str, str, Mapping[str, Any]], ...] = (
    ("digits", "pixels", "rpml", {"epochs": 20}), ("digits", "pixels", "plm", {"epochs": 20}),
    ("digits", "pixels", "deepcluster", {"epochs": 20}), ("digits", "pixels", "exemplar", {"epochs": 20}),
    ("digits", "pixels", "whiten", {}), ("digits", "pixels", "supcon", {"epochs": 20}),
    ("emoji", "squeezenet", "rpml", {"epochs": 20}), ("emoji", "squeezenet", "plm", {"epochs": 10}),
    ("emoji", "squeezenet", "pca", {}), ("emoji", "squeezenet", "supcon", {"epochs": 20}))
"""Data set, backbone, method and fields of each plan."""
MOST_BEFORE = 3
"""Runs after which every part of a plan is measured, at most."""
POLL = 0.1
IDLE, BUSY = 1.5, 3.0
"""The factors within which nine of ten plans should be, idle and beside busy processes."""
SPIN = "while True: pass"


def main() -> None:
    options = record_parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"UDML_CACHE": f"{folder}/cache", "UDML_RUNS": f"{folder}/runs", "UDML_MAPS": "0",
                       "UDML_EXAMPLES": "0"}
        rows = {f"{method} on {dataset}, {backbone}": measure(Path(folder) / "runs", dataset, backbone, method, fields)
                for dataset, backbone, method, fields in PLANS}
    write_record(options.out, provenance("plan_times") | {
        "protocol": "each plan is run until all of its parts are measured on this machine, so that its features are "
                    "stored, then once idle and once beside two processes that never rest; seconds from the submission "
                    "to the results, with the map and the graph",
        "datasets": {"Plans and what they took": {"rows": rows, "summary": summary(rows)}}})


def measure(root: Path, dataset: str, backbone: str, method: str, fields: Mapping[str, Any]) -> dict[str, float]:
    """Return what a plan states and what it takes, idle and beside busy processes."""
    request = RunRequest(dataset=dataset, method=method, backbone=backbone, fields=dict(fields))
    for seed in range(MOST_BEFORE):
        if stated(request, seed)[1]:
            break
        run_once(request, seed, root)
    row = dict[str, float]()
    for seed, name in ((10, "idle"), (20, "busy")):
        row[f"{name}, stated"], is_measured = stated(request, seed)
        assert is_measured, "all parts were measured"
        with busy_processes(2 * (name == "busy")):
            row[f"{name}, taken"] = run_once(request, seed, root)
        row[f"{name}, factor"] = row[f"{name}, taken"] / row[f"{name}, stated"]
    print(dataset, backbone, method, {key: round(value, 2) for key, value in row.items()}, flush=True)
    return {key: round(value, 2) for key, value in row.items()}


def stated(request: RunRequest, seed: int) -> tuple[float, bool]:
    """Return the seconds that a plan states, and whether all of them were measured."""
    planned = jobs.plan(request.model_copy(update={"seed": seed}), catalog.load(request.dataset))
    expected = jobs.estimate(planned, catalog.load(request.dataset))
    return expected.seconds, expected.measured


def run_once(request: RunRequest, seed: int, root: Path) -> float:
    """Submit a run as the app does, and return the seconds until its results."""
    began = time.monotonic()
    run = jobs.submit(jobs.plan(request.model_copy(update={"seed": seed}), catalog.load(request.dataset)), root)
    while run.status().state in LIVE_STATES:
        time.sleep(POLL)
    assert run.status().state == "done", run.status().message
    return time.monotonic() - began


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep processes busy meanwhile."""
    processes = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def summary(rows: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return how many plans are within the factor, longer or shorter, and the largest factors."""
    found = {"plans": float(len(rows))}
    for name, factor in (("idle", IDLE), ("busy", BUSY)):
        off = [max(row[f"{name}, factor"], 1 / row[f"{name}, factor"]) for row in rows.values()]
        found |= {f"{name}, within {factor:g}": float(sum(value <= factor for value in off)),
                  f"{name}, largest": round(max(off), 2)}
    return found


if __name__ == "__main__":
    main()
