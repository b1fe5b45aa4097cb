"""A sweep of 200 finished runs is read in a fraction of a second."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from udml_core.data import catalog
from udml_core.runs.tasks import Status
from udml_core.work import sweeps
from udml_core.work.sweeps.group import Stored, sweep_at, write_sweep

pytestmark = pytest.mark.benchmark
SEEDS = 100


def finished_sweep(root: Path) -> sweeps.Sweep:
    """Write the files of 200 finished runs, without waiting for the disk."""
    spec = sweeps.complete(sweeps.make_sweep({
        "data": "digits", "methods": {"pca": {"dimension": [8, 16]}}, "seeds": SEEDS,
        "options": {"backbone": "pixels"}}, "many"))
    dataset = catalog.load("digits")
    planned = sweeps.plan_runs(spec, lambda _: dataset)
    row = {"epoch": 1, "validation map@r": 0.5}
    for number, run in enumerate(planned):
        folder = root / f"20261123-120000-pca-{number:06x}"
        (folder / "epochs" / "0001").mkdir(parents=True)
        assert run.spec is not None
        for name, text in (("spec.json", run.spec.model_dump_json()),
                           ("status.json", Status(state="done", started=1.0, finished=2.0).model_dump_json()),
                           ("metrics.jsonl", json.dumps(row) + "\n"),
                           ("evaluation.json", '{"final": {"map@r": 40.0}}')):
            (folder / name).write_text(text)
    sweep = sweep_at("many", root)
    write_sweep(sweep, Stored(spec=spec, keys=tuple(run.key for run in planned)))
    return sweep


def read(sweep: sweeps.Sweep) -> float:
    """Return the seconds in which a page reads a sweep's progress and measures."""
    began = time.perf_counter()
    members = sweep.members()
    assert sweeps.progress_of(members).counts == {"done": 2 * SEEDS}
    found = sweeps.combinations(members, ["dimension"], "validation map@r")
    assert len(sweeps.best_combinations(found)["digits"].runs) == SEEDS
    return time.perf_counter() - began


def test_200_runs_are_read_in_a_tenth_of_a_second(tmp_path: Path) -> None:
    sweep = finished_sweep(tmp_path)
    read(sweep)
    assert min(read(sweep) for _ in range(7)) < 0.1
