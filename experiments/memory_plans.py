"""The memory that a run was planned to need and needed in each of its parts, on features of very many dimensions.

    UDML_DATA=FOLDER python -m experiments.memory_plans --out assets/results/memory-plans.json

A run of frozen pixels is executed as the app does, in a process of its own with two threads: 5,902 birds (birds100 in
the folder of data sets) at 112 px have 37,632 dimensions. It takes about six minutes on two cores.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from experiments.recording import provenance, record_parser, write_record
from udml_core.data import catalog
from udml_core.runs import Run, RunRequest, create_run
from udml_core.work import jobs

CASES: Mapping[str, Mapping[str, Any]] = {
    "5,902 birds as pixels, 112 px": {"dataset": "birds100", "backbone": "pixels", "size": 112}}
FACTOR, REST = 2.5, 1.0
"""GB of memory besides mapped files that a run may need for each GB of its features, and beside them."""
POLL = 0.02
THREADS = "2"


def main() -> None:
    options = record_parser(__doc__).parse_args()
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"UDML_CACHE": f"{folder}/cache", "UDML_RUNS": f"{folder}/runs", "UDML_MAPS": "0",
                       "UDML_EXAMPLES": "0", "OMP_NUM_THREADS": THREADS, "NUMBA_NUM_THREADS": THREADS}
        for title, request in CASES.items():
            rows[title] = measure(Path(folder) / "runs", request)
    write_record(options.out, provenance("memory_plans") | {
        "protocol": f"a run of frozen features from files to its first map and graph, in a process of its own with "
                    f"{THREADS} threads; the memory of a part counts mapped files, which the system can take back; the "
                    "memory of the process's own was looked at 50 times a second; the goal is "
                    f"{FACTOR:g} times the features and {REST:g} GB",
        "datasets": {"Planned and needed memory": {"rows": rows}}})


def measure(root: Path, request: Mapping[str, Any]) -> dict[str, float]:
    """Execute a run, and return its seconds and its memory in GB."""
    dataset = catalog.load(request["dataset"])
    run = create_run(jobs.plan(RunRequest(method="frozen", **request), dataset), root)
    load, began, own = os.getloadavg()[0], time.monotonic(), 0.0
    process = subprocess.Popen([sys.executable, "-m", "udml_core", "work", str(run.folder)])
    while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
        own = max(own, own_memory(process.pid))
        time.sleep(POLL)
    process.returncode = os.waitstatus_to_exitcode(ended[1])
    return figures(run) | {
        "seconds": round(time.monotonic() - began), "processor seconds": round(ended[2].ru_utime + ended[2].ru_stime),
        "load": round(load, 1), "besides mapped files, GB": round(own, 2)}


def own_memory(pid: int) -> float:
    """Return the memory of a process in GB that no file holds; 0 when it has just ended."""
    with suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
        return 1024e-9 * int(next(line for line in lines if line.startswith("RssAnon")).split()[1])
    return 0.0


def figures(run: Run) -> dict[str, float]:
    """Return the memory of each part of a finished run, and of its features."""
    status = run.status()
    assert status.state == "done", status.message
    features = 4e-9 * run.embeddings("final").size  # frozen: the embedding is the features
    parts = jobs.memory_by_part(status)
    row = {"features' size, GB": features, "goal, GB": FACTOR * features + REST,
           "largest memory, GB": 1e-9 * max(status.peaks.values())}
    for name, sizes in parts.items():
        row |= {f"{name}, {what}, GB": 1e-9 * size for what, size in zip(("planned", "measured"), sizes, strict=True)
                if size is not None}
    return {name: round(value, 2) for name, value in row.items()}


if __name__ == "__main__":
    main()
