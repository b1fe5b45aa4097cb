"""Compute the maps and audits that runs want, one at a time and only while no run trains."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from pathlib import Path

import psutil
from filelock import Timeout

from udml_core.base import locks
from udml_core.base.errors import UserError
from udml_core.data.dataset import Report
from udml_core.runs import Run
from udml_core.runs.analyses import Analysis, AnalysisSpec, create_analysis
from udml_core.runs.opinions import OF_RUN
from udml_core.work.jobs.estimate import judging_kind, record_stage
from udml_core.work.jobs.follow_ups import is_busy, mapper_lock, next_map, withdraw
from udml_core.work.jobs.launch import start_in_background
from udml_core.work.jobs.needed_memory import check_analysis
from udml_core.work.workers.execute import Reporter

INTERVAL = 1.0
PAUSED = "paused while a run trains"
HANDOVER = 10.0
"""Seconds that a second process waits for the first to end; it leaves if the first goes on, which sees its run too."""
NICENESS = 15
log = logging.getLogger("udml")


def work(root: Path) -> None:
    """Compute all wanted maps and audits in a folder of runs; end when none is left or another process does it.

    It also ends when a run waits or trains, whose worker starts this process again: waiting costs nothing.

    Each map is computed by a process of its own, so that it can be cancelled and a crash ends only this map.
    """
    _lower_priority()
    try:
        with locks.held(mapper_lock(root), HANDOVER):
            while (following := next_map(root)) is not None and not is_busy(root):  # the run in progress comes back
                run, spec = following
                if is_busy(root, run):
                    time.sleep(INTERVAL)
                    continue
                try:
                    _compute(run, spec)
                except (UserError, OSError) as error:
                    log.info("no further map of %s: %s", run.id, error)
                    withdraw(run, "audit")
                    withdraw(run, "maps")
    except Timeout:
        log.info("another process computes the maps of %s", root)


def _compute(run: Run, spec: AnalysisSpec) -> None:
    """Compute what follows a run, and keep how long its second opinion took."""
    check_analysis(run, spec)
    analysis, began = create_analysis(run, spec), time.monotonic()
    start_in_background(analysis).wait()
    if spec == OF_RUN and analysis.is_done():
        record_stage(judging_kind(run.spec()), time.monotonic() - began, len(run.embeddings("final")))


def yielding(analysis: Analysis, reporter: Reporter) -> Report:
    """Return a report of progress that pauses the analysis while a run trains or waits for its device."""
    root = analysis.run.folder.parent
    checked = 0.0

    def report(share: float, phase: str) -> None:
        nonlocal checked
        if time.monotonic() - checked > INTERVAL:
            while is_busy(root):
                reporter.share(share, PAUSED)
                time.sleep(INTERVAL)
            checked = time.monotonic()
        reporter.share(share, phase)

    return report


def _lower_priority() -> None:
    """Let every other process go first; children inherit this."""
    with suppress(OSError, psutil.Error):
        psutil.Process().nice(getattr(psutil, "BELOW_NORMAL_PRIORITY_CLASS", NICENESS))  # a class on Windows only
