"""Choosing a run, and what is shown where there is none."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.parts.base.address import write_address
from pages.parts.base.run_status import title_of
from udml_core.data.dataset import Dataset
from udml_core.runs import Run, list_runs, runs_folder

EVERY_RUN = "Train one, then come back."
ABOUT_IMAGES = ("add", "subtract", "classes", "clusters", "pair", "picked", "selected", "cluster", "triplet",
                "second", "label", "asked")
"""What in the address names images or classes, and so means nothing on another data set."""


def pick_run(label: str = "Run", parameter: str = "run", fits: Callable[[Run], bool] = lambda _run: True,
               missing: str = "Nothing can be shown yet: no run is done.", optional: bool = False,
               unfinished: bool = False) -> Run | None:
    """A finished run, kept in the address under `parameter`; None, with what to do next, where there is none.

    Args:
        fits: which runs can be chosen. missing: what to say where none can.
        optional: offer no run at all, too.
        unfinished: offer, behind the finished ones, those that kept an epoch and go on or were stopped, too.
    """
    runs = list_runs(runs_folder())
    done = [run for run in runs if run.stored_status().state == "done" and fits(run)]
    begun = [run for run in runs if unfinished and run not in done and run.epoch_numbers() and fits(run)]
    if not done + begun:
        if not optional:
            st.info(f"{missing} {EVERY_RUN}", icon=":material/lightbulb:")
            st.page_link("pages/train.py", label="Train", icon=":material/model_training:")
        return None
    titles = {run.id: f"{title_of(run.spec())} · {run.id}" for run in done}
    titles |= {run.id: f"{title_of(run.spec())} · {run.id} · {run.status().state}" for run in begun}
    choices = [*([""] if optional else []), *titles]
    wanted = st.query_params.get(parameter, choices[0])
    if wanted not in choices:
        st.warning(f"The link names a run that cannot be shown here, {wanted[:60]}: it is gone, not finished, or of "
                   "another kind. Another one is shown.", icon=":material/link_off:")
    chosen = st.selectbox(label, choices, choices.index(wanted) if wanted in choices else 0, key=f"choose-{parameter}",
                          format_func=lambda one: titles.get(one, "none"))
    run = next((run for run in done + begun if run.id == chosen), None)
    before = next((one for one in runs if one.id == st.query_params.get(parameter)), None)
    if parameter == "run" and run and before and before.spec().fingerprint != run.spec().fingerprint:
        for about_images in ABOUT_IMAGES:
            write_address(about_images, "")
    write_address(parameter, chosen)
    return run


def open_search(dataset: Dataset, index: int) -> None:
    """Make an image of a data set the query: of the run that the page shows, else of the newest that can search it."""
    able = [run for run in list_runs(runs_folder()) if run.stored_status().state == "done"
            and run.spec().fingerprint == dataset.fingerprint]
    if not able:
        st.toast(f"This is {dataset.caption(index)}. Train on these images first, then search with any of them.",
                 icon=":material/image_search:")
        return
    here = next((run for run in able if run.id == st.query_params.get("run")), able[0])
    st.switch_page("pages/retrieval.py", query_params={"run": here.id, "add": str(index)})
