"""The table of the benchmark as text, ranked by one measure, and the runs behind a cell."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from udml_core.numerics.measures import MEASURES, measure_of
from udml_core.results.benchmark import NOT_RANKED, Benchmark, DataSet, Entry, ranks
from udml_core.runs import Run, runs_folder

from ..draw.tables import data_table
from ..results.table import spread_text
from ..shell.views import view_link

GROUP_WORDS = {"none": "no labels", "test images": "no labels, test images seen", "few": "few labels",
               "pairs": "pairs", "all": "all labels"}
"""What a method knows, in words."""
COST_CAPTION = ("Read seconds and memory as orders of magnitude: one process measures several methods in turn, so the "
                "first one pays for features that the others share, and memory contains what earlier ones left. Lines "
                "of code count the method's own file without comments; several methods may share a file.")
SHOWN_COSTS = ("processor seconds", "MB", "lines")
"""Costs that the table shows: seconds of the clock depend on what else the machine did."""
RANK, METHOD, KNOWS, AVERAGE = "Rank", "Method", "Training uses", "Average rank"


@dataclass(frozen=True)
class RankedTable:
    """The ranked methods.

    Attributes:
        frame: The table as text; one column for each data set.
        names: Title of each row.
        datasets: Name of the data set of each column that has one, by the column's title.
    """

    frame: pd.DataFrame
    names: list[str]
    datasets: dict[str, str]

    def cell(self, row: int, column: str) -> tuple[str, str | None]:
        """Return the method of a cell, and its data set; None for the other columns."""
        return self.names[row], self.datasets.get(column)


def ranked_table(benchmark: Benchmark, measure: str) -> RankedTable:
    """Rank the methods by a measure: by their average rank over the data sets.

    Ranks on different data sets cannot be compared, so a method that is not measured on all of them has no rank. It is
    listed below the others.
    """
    known = average_ranks(benchmark, measure)
    average = average_ranks(benchmark, measure, complete_methods(benchmark, measure))
    names = sorted(known, key=lambda name: (name not in average, average.get(name, known[name])))
    datasets = {dataset.title: dataset.name for dataset in benchmark.datasets.values()}
    several = len(datasets) > 1
    rows = []
    for name in names:
        entries = {dataset.title: dataset.entries.get(name) for dataset in benchmark.datasets.values()}
        entry = next(entry for entry in entries.values() if entry is not None)
        row: dict[str, object] = {METHOD: name, KNOWS: GROUP_WORDS[entry.group]}
        row |= {RANK: 1 + sum(value < average[name] for value in average.values()) if name in average else None}
        row |= {title: spread_text(entry.summary.get(measure), measure) if entry else ""
                for title, entry in entries.items()}
        row |= {AVERAGE: f"{average[name]:.1f}" if name in average else ""} if several else {}
        row |= {MEASURES[cost].name: _mean_cost([entry.summary[cost][0] for entry in entries.values()
                                              if entry and cost in entry.summary])
                for cost in SHOWN_COSTS if cost != measure}
        rows.append(row)
    frame = pd.DataFrame(rows)
    if names:
        frame = frame[[RANK, *frame.columns.drop(RANK)]].astype({RANK: "Int64"})
    return RankedTable(frame, names, datasets)


def complete_methods(benchmark: Benchmark, measure: str) -> set[str]:
    """Return the methods that are measured on every data set that has the measure."""
    measured = [{name for name, entry in dataset.entries.items() if measure in entry.summary}
                for dataset in benchmark.datasets.values()]
    return set.intersection(*(names for names in measured if names)) if any(measured) else set()


def average_ranks(benchmark: Benchmark, measure: str, among: Collection[str] | None = None) -> dict[str, float]:
    """Return each method's rank, the mean over the data sets on which it is measured.

    Args:
        benchmark: The measured methods.
        measure: The measure to rank by.
        among: The methods to rank; all if None.
    """
    ranks_by_method: dict[str, list[float]] = {}
    for dataset in benchmark.datasets.values():
        values = {name: entry.summary[measure][0] for name, entry in dataset.entries.items()
                  if measure in entry.summary and (among is None or name in among)}
        if values:
            own = ranks(np.array([list(values.values())]), measure_of(measure).better == "lower")[0]
            for name, rank in zip(values, own, strict=True):
                ranks_by_method.setdefault(name, []).append(float(rank))
    return {name: float(np.mean(values)) for name, values in ranks_by_method.items()}


def _mean_cost(values: list[float]) -> float | None:
    return round(float(np.mean(values))) if values else None


def show_cell(entry: Entry, dataset: DataSet) -> None:
    """Show the seeds of a method on a data set, and open its runs or state the command that makes them."""
    st.markdown(f"**{entry.name}** on {dataset.title}: {dataset.encoder}; {dataset.budget}.")
    runs = [Run(runs_folder() / run.id) for run in entry.runs]
    present = [run for run in runs if (run.folder / "spec.json").exists()]
    with st.container(horizontal=True, gap="small"):
        for number, run in enumerate(runs):
            if run in present:
                view_link("refine" if entry.recipe else "runs",
                             label=f"Open the run of seed {entry.runs[number].seed}", icon=":material/monitoring:",
                             width="content", query_params={"run": run.id})
    if len(present) < len(runs):
        st.caption(("Some runs" if present else "The runs") + " of this cell are not on this machine. This command "
                   "makes them, replaces the cell in the record, and lets you open them here:")
        st.code(command_of(entry, dataset), language="bash", wrap_lines=True)
    data_table(seeds_frame(entry), width="stretch", height="content",
               column_config={"_index": st.column_config.TextColumn("Measure", width=190)})
    for table, figures in entry.printed.items():
        values = ", ".join(f"{measure_of(measure).name} {value:g}" for measure, value in figures.items())
        mark = "comparable" if entry.comparable else ("**not comparable**: other images, another network or a smaller "
                                                      "budget")
        st.caption(f"{table} prints {values}; {mark}.")


def command_of(entry: Entry, dataset: DataSet) -> str:
    """Return the command that measures a cell again."""
    return (f'python -m experiments.benchmark --budget 60 --dataset {dataset.name} --row "{entry.name}" --again '
            "--force")


def seeds_frame(entry: Entry) -> pd.DataFrame:
    """Return every measure of each seed and the mean, as text."""
    measures = [measure for measure in entry.summary if measure not in NOT_RANKED]
    columns = {f"Seed {run.seed}": {measure_of(measure).name: spread_text((run.values[measure], 0.0), measure)
                                    for measure in measures if measure in run.values} for run in entry.runs}
    columns["Mean ± deviation"] = {measure_of(measure).name: spread_text(entry.summary[measure], measure)
                                   for measure in measures}
    return pd.DataFrame(columns).reindex([measure_of(measure).name for measure in measures]).fillna("")
