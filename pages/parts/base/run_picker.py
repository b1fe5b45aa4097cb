"""Choosing a run, and advice when there is none."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.parts.base.address import write_address
from pages.parts.base.run_status import title_of
from udml_core.data.dataset import Dataset
from udml_core.runs import Run, list_runs, runs_folder

ADVICE = "Train a run, then come back."
IMAGE_PARAMETERS = ("add", "subtract", "classes", "clusters", "pair", "picked", "selected", "cluster", "triplet",
                    "second", "label", "asked", "query", "image")
"""Address parameters that name images or classes and so have no meaning on another data set."""


def pick_run(label: str = "Run", parameter: str = "run", fits: Callable[[Run], bool] = lambda _run: True,
             missing: str = "There is no finished run yet.", optional: bool = False,
             unfinished: bool = False) -> Run | None:
    """Choose a finished run; the address holds its id.

    If no run can be chosen, the page shows advice.

    Args:
        label: The label of the widget.
        parameter: Name in the address.
        fits: Whether a run can be chosen.
        missing: The message when no run can be chosen.
        optional: Whether "none" can be chosen.
        unfinished: Whether running and stopped runs with at least one epoch can be chosen.

    Returns:
        The run; None if there is none.
    """
    runs = list_runs(runs_folder())
    finished = [run for run in runs if run.stored_status().state == "done" and fits(run)]
    begun = [run for run in runs if unfinished and run not in finished and run.epoch_numbers() and fits(run)]
    if not finished + begun:
        if not optional:
            st.info(f"{missing} {ADVICE}", icon=":material/lightbulb:")
            st.page_link("pages/train.py", label="Train", icon=":material/model_training:")
        return None
    titles = {run.id: f"{title_of(run.spec())} · {run.id}" for run in finished}
    titles |= {run.id: f"{title_of(run.spec())} · {run.id} · {run.status().state}" for run in begun}
    choices = [*([""] if optional else []), *titles]
    wanted = st.query_params.get(parameter, choices[0])
    if wanted not in choices:
        st.warning(f"The link names a run that cannot be shown here: {wanted[:60]}. It was removed, is not finished, "
                   "or does not fit this page, so another run is shown.", icon=":material/link_off:")
    chosen = st.selectbox(label, choices, choices.index(wanted) if wanted in choices else 0, key=f"choose-{parameter}",
                          format_func=lambda run_id: titles.get(run_id, "none"))
    run = next((run for run in finished + begun if run.id == chosen), None)
    previous = next((run for run in runs if run.id == st.query_params.get(parameter)), None)
    if parameter == "run" and run and previous and previous.spec().fingerprint != run.spec().fingerprint:
        for image_parameter in IMAGE_PARAMETERS:
            write_address(image_parameter, "")
    write_address(parameter, chosen)
    return run


def open_search(dataset: Dataset, index: int) -> None:
    """Open the page Retrieval with an image of a data set as the query.

    The search uses the run on this page, else the newest run on the data set.
    """
    searchable = [run for run in list_runs(runs_folder()) if run.stored_status().state == "done"
                  and run.spec().fingerprint == dataset.fingerprint]
    if not searchable:
        st.toast(f"This is {dataset.caption(index)}. Train on this data set first to search with its images.",
                 icon=":material/image_search:")
        return
    run = next((run for run in searchable if run.id == st.query_params.get("run")), searchable[0])
    st.switch_page("pages/retrieval.py", query_params={"run": run.id, "add": str(index)})
