"""The runs behind a cell of the benchmark."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from udml_core.numerics.measures import measure_of
from udml_core.results.benchmark import NOT_RANKED, DataSet, Entry
from udml_core.runs import Run, runs_folder

from ..results.table import value_text


def show_cell(entry: Entry, dataset: DataSet) -> None:
    """Show the seeds of a method on a data set, and open its runs or state the command that makes them."""
    st.markdown(f"**{entry.name}** on {dataset.title}: {dataset.encoder}; {dataset.budget}.")
    runs = [Run(runs_folder() / run.id) for run in entry.runs]
    present = [run for run in runs if (run.folder / "spec.json").exists()]
    with st.container(horizontal=True, gap="small"):
        for number, run in enumerate(runs):
            if run in present:
                st.page_link("pages/refine.py" if entry.recipe else "pages/runs.py",
                             label=f"Open the run of seed {entry.runs[number].seed}", icon=":material/monitoring:",
                             width="content", query_params={"run": run.id})
    if len(present) < len(runs):
        st.caption(("Some runs" if present else "The runs") + " of this cell are not on this machine. This command "
                   "makes them, replaces the cell in the record, and lets you open them here:")
        st.code(command_of(entry, dataset), language="bash", wrap_lines=True)
    st.dataframe(seeds_frame(entry), width="stretch", height="content",
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
    columns = {f"Seed {run.seed}": {measure_of(measure).name: value_text((run.values[measure], 0.0), measure)
                                    for measure in measures if measure in run.values} for run in entry.runs}
    columns["Mean ± deviation"] = {measure_of(measure).name: value_text(entry.summary[measure], measure)
                                   for measure in measures}
    return pd.DataFrame(columns).reindex([measure_of(measure).name for measure in measures]).fillna("")
