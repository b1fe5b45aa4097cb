"""What the start of a run consists of: from the submission to the end of the first epoch, in parts.

    python -m experiments.start_times --out assets/results/start-times.json

Each run is started as the app starts it, in a process of its own, and once more with a worker that has loaded its
libraries before, as Lab keeps one ready. Features are stored already. Nothing else must run.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from experiments.recording import provenance, record_parser, write_record
from udml_core.base import handover
from udml_core.data import catalog
from udml_core.runs import Run, RunRequest
from udml_core.runs.tasks import LIVE_STATES, TRAINING
from udml_core.work import jobs
from udml_core.work.jobs import dispatch, ready

RUNS = {"RPML on Digits, raw pixels": RunRequest(dataset="digits", method="rpml", backbone="pixels"),
        "RPML on Emoji, EfficientNet-Lite0": RunRequest(dataset="emoji", method="rpml", backbone="efficientnet-lite0")}
EPOCHS, ROUNDS, POLL = 3, 3, 0.02
MOST_WAIT, LOADED = 60.0, 15.0
"""Seconds until a worker offers itself at most, and until its libraries are loaded then."""
REST, FIRST_EPOCH, WHOLE = "other steps", "first epoch", "until the first epoch ends"


def main() -> None:
    options = record_parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"UDML_CACHE": f"{folder}/cache", "UDML_RUNS": f"{folder}/runs", "UDML_MAPS": "0",
                       "UDML_EXAMPLES": "0"}
        root = Path(folder) / "runs"
        rows = {}
        for name, request in RUNS.items():
            started(request, 0, root)  # features, and what is compiled once
            for is_ready in (False, True):
                parts = [started(request, 10 * is_ready + turn, root, is_ready) for turn in range(1, ROUNDS + 1)]
                title = f"{name}, {'a worker kept ready' if is_ready else 'a new process'}"
                rows[title] = {part: round(median(of.get(part, 0.0) for of in parts), 2) for part in parts[0]}
                print(title, rows[title], flush=True)
    write_record(options.out, provenance("start_times") | {
        "protocol": f"medians of {ROUNDS} starts of {EPOCHS} epochs, features stored; seconds from the submission to "
                    "the end of the first epoch, and of its parts as the run notes them",
        "datasets": {"Starts of runs": {"rows": rows}}})


def started(request: RunRequest, seed: int, root: Path, is_ready: bool = False) -> dict[str, float]:
    """Start a run as the app does, wait for its end, and return the seconds of the parts of its start."""
    if is_ready:
        wait_for_worker(root)
    request = request.model_copy(update={"seed": seed, "fields": {"epochs": EPOCHS}})
    run = jobs.submit(jobs.plan(request, catalog.load(request.dataset)), root)
    ends = 0.0
    while run.status().state in LIVE_STATES:
        ends = ends or (time.time() if run.status().epoch else 0.0)
        time.sleep(POLL)
    assert run.status().state == "done", run.status().message
    return parts_of(run, ends)


def parts_of(run: Run, ends: float) -> dict[str, float]:
    """Return the seconds of the parts of a run's start, the whole last.

    Args:
        run: The finished run.
        ends: When its first epoch ended, in seconds since 1970.
    """
    status = run.stored_status()
    noted: Mapping[str, float] = status.seconds
    before = [part for part in noted if part != TRAINING][:list(noted).index(TRAINING)]
    parts = {part: noted[part] for part in before}
    first = next(row["seconds"] for row in run.metrics()[0] if row["epoch"] == 1)
    whole = ends - status.ticket
    return parts | {FIRST_EPOCH: first, REST: whole - sum(parts.values()) - first, WHOLE: whole}


def wait_for_worker(root: Path) -> None:
    """Wait until a worker with loaded libraries is ready.

    Raises:
        TimeoutError: None is.
    """
    end = time.monotonic() + MOST_WAIT
    while time.monotonic() < end:
        ready.keep_ready(root)
        if handover.is_waiting(dispatch.ready_folder(root)):
            time.sleep(LOADED)
            return
        time.sleep(POLL)
    raise TimeoutError(f"No worker is ready after {MOST_WAIT:.0f} seconds.")


if __name__ == "__main__":
    main()
