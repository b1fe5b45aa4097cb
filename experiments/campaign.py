"""Measure the rows that matter most within a budget of minutes.

    python -m experiments.campaign --budget 60 --runs runs/campaign
    python -m experiments.campaign --budget 30 --device cuda --runs runs/campaign

The rows are declared in `experiments/campaign_rows.py`, in order of importance. On a GPU the papers' own settings come
first, on a CPU the small tables. A record is written after every finished row, and the same command resumes: runs are
kept in the folder `--runs`, finished runs of an equal spec are reused, and rows of a record stay if their text and the
version of the protocol are equal. A row that does not fit into the remaining time is not started, unless `--force` is
given. At the end the command lists what was not measured. `--record FILE` measures one record only, `--row NAME` one
row, and `--again` measures rows that the record has already.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.campaign_rows import CPU, GPU, PlannedRow
from experiments.recording import is_comparable, provenance, write_record
from experiments.seen_categories import link_first_images
from experiments.zero_shot import MEASURES, find_or_create_run, finish_run, is_equal, plan_row, read_rows, row_result
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import Dataset

FURTHER_MEASURES = ("knn@200", "linear probe", "mprec@10")
SLOWEST, FASTEST = 5.0, 0.02
"""Range of the measured pace; 1 is as declared."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, required=True, metavar="MINUTES", help="time for all rows")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--runs", type=Path, default=Path("runs/campaign"), help="folder that keeps the runs")
    parser.add_argument("--out", type=Path, default=Path("assets/results"), help="folder of the records")
    parser.add_argument("--record", type=Path, help="measure only this record; a name or a file")
    parser.add_argument("--row", action="append", help="measure only this row; repeatable")
    parser.add_argument("--force", action="store_true", help="start rows that do not fit into the remaining time")
    parser.add_argument("--again", action="store_true", help="measure rows that the record has already")
    options = parser.parse_args()
    rows = [row for row in (CPU if options.device == "cpu" else (*GPU, *CPU))
            if (options.record is None or row.record == options.record.stem)
            and (not options.row or row.name in options.row)]
    if not rows:
        parser.error("no declared row has this record and name")
    missed = Campaign(options.budget, options.device, options.runs, options.out, options.force, options.again).run(rows)
    for row, reason in missed:
        print(f"not measured: {row.record}, {row.name}: {reason}", flush=True)


@dataclass
class Campaign:
    """Rows measured one after the other within a budget.

    Attributes:
        budget: Minutes for all rows.
        device: Device of the runs.
        runs: Folder that keeps the runs.
        out: Folder of the records.
        force: Whether rows start that do not fit into the remaining time.
        again: Whether rows are measured that the record has already.
        clock: Returns the time in seconds.
    """

    budget: float
    device: str
    runs: Path
    out: Path
    force: bool = False
    again: bool = False
    clock: Callable[[], float] = time.monotonic
    _estimated: dict[bool, float] = field(default_factory=lambda: {True: 0.0, False: 0.0}, init=False)
    _measured: dict[bool, float] = field(default_factory=lambda: {True: 0.0, False: 0.0}, init=False)

    def run(self, rows: list[PlannedRow]) -> list[tuple[PlannedRow, str]]:
        """Measure what fits, in order, and return what was not measured, with the reason."""
        began, missed = self.clock(), []
        for row in rows:
            left = 60 * self.budget - (self.clock() - began)
            path = self.out / f"{row.record}.json"
            stored = self._stored(row, path)
            if not self.again and is_equal(stored.get(row.name), row.row, row.seeds):
                print(f"{row.record}, {row.name}: in the record already", flush=True)
                continue
            expected = row.seconds * row.seeds * self._pace(row in GPU)
            if expected > left and not self.force:
                missed.append((row, f"needs about {expected / 60:.1f} minutes, {max(0.0, left) / 60:.1f} are left"))
                continue
            print(f"{row.record}, {row.name}: about {expected / 60:.1f} of {left / 60:.1f} minutes left", flush=True)
            started = self.clock()
            try:
                self._measure(row, path, stored)
            except UserError as error:
                missed.append((row, str(error)))
                continue
            self._estimated[row in GPU] += row.seconds * row.seeds
            self._measured[row in GPU] += self.clock() - started
        return missed

    def _pace(self, of_gpu: bool) -> float:
        """Return measured over declared seconds of the finished rows, declared for a GPU or not; 1 at first."""
        declared = self._estimated[of_gpu]
        return min(SLOWEST, max(FASTEST, self._measured[of_gpu] / declared)) if declared else 1.0

    def _stored(self, row: PlannedRow, path: Path) -> dict[str, Any]:
        """Return the stored rows beside which a row is stored."""
        return read_rows(path)

    def _measure(self, row: PlannedRow, path: Path, stored: dict[str, Any]) -> None:
        """Measure a row and write its record."""
        with first_images(row, self.runs):
            dataset = catalog.load(row.dataset)
            specs = [plan_row(dataset, row.row, seed, device=self.device) for seed in range(row.seeds)]
            runs = [finish_run(find_or_create_run(spec, self.runs), row.name) for spec in specs]
        stored[row.name] = row_result(row.row, runs, specs[0], dataset, (*MEASURES, *FURTHER_MEASURES))
        if row.printed:
            stored[row.name]["printed"] = dict(row.printed)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_record(path, self._record(row, dataset, specs[0].split, stored))
        final = stored[row.name]["summary"]["final"]
        print("  " + "  ".join(f"{name} {mean:.1f} ±{deviation:.1f}" for name, (mean, deviation) in final.items()),
              flush=True)

    def _record(self, row: PlannedRow, dataset: Dataset, split: str, rows: dict[str, Any]) -> dict[str, Any]:
        """Return a record with the command that measures it alone."""
        command = (f"python -m experiments.campaign --budget {self.budget:g} --device {self.device} "
                   f"--record assets/results/{row.record}.json")
        images = f", the first {row.per_class} training images of every class" if row.per_class else ""
        return provenance("campaign") | {
            "command": command, "dataset": dataset.title, "images": len(dataset),
            "protocol": f"split {split}{images}; percent; [mean, standard deviation] over the seeds",
            "comparable": is_comparable(rows), "rows": rows}


@contextmanager
def first_images(row: PlannedRow, folder: Path) -> Iterator[None]:
    """Set UDML_DATA to a folder with the first images of every class, if the row asks for these."""
    before = os.environ.get("UDML_DATA")
    if row.per_class is None:
        yield
        return
    if before is None or not (Path(before) / row.dataset).is_dir():
        raise UserError(f"The data set {row.dataset} is not in a folder below UDML_DATA. Set UDML_DATA to the folder "
                        "of your data sets.")
    target = (folder / f"data-{row.dataset}-{row.per_class}").resolve()
    os.environ["UDML_DATA"] = str(link_first_images(row.dataset, row.per_class, target))
    try:
        yield
    finally:
        os.environ["UDML_DATA"] = before


if __name__ == "__main__":
    main()
