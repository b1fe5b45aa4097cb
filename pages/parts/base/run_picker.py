"""Choosing a run, and what is shown where there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeVar

import streamlit as st

from pages.parts.base.run_status import title_of
from udml_core.data.dataset import Dataset
from udml_core.runs import Run, list_runs, runs_folder

EVERY_RUN = "Train one, then come back."
LONGEST_NUMBER = 10
ABOUT_IMAGES = ("add", "subtract", "classes", "clusters", "pair", "picked", "selected", "cluster", "triplet",
                "second", "label", "asked")
"""What in the address names images or classes, and so means nothing on another data set."""
Choice = TypeVar("Choice", bound=str)


def chosen_run(label: str = "Run", parameter: str = "run", fits: Callable[[Run], bool] = lambda _run: True,
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
            into_address(about_images, "")
    into_address(parameter, chosen)
    return run


def in_address(parameter: str, choices: Iterable[Choice], default: Choice) -> Choice:
    """One of some choices, as the address has it."""
    wanted = st.query_params.get(parameter)
    return next((one for one in choices if one == wanted), default)


def into_address(parameter: str, value: str, default: str = "") -> None:
    """Keep a value in the address; what is as usual is left out, so that links stay short."""
    if value == default:
        st.query_params.pop(parameter, None)
    elif st.query_params.get(parameter) != value:
        st.query_params[parameter] = value


def number_in_address(parameter: str, default: float, low: float = -math.inf, high: float = math.inf) -> float:
    """A number between two ends, as the address has it."""
    try:
        value = float(st.query_params.get(parameter, default))
    except ValueError:
        return default
    return value if math.isfinite(value) and low <= value <= high else default


def numbers_in_address(parameter: str, count: int) -> list[int]:
    """Whole numbers below `count` as the address lists them, like 3.17.44; what is none of these is left out."""
    parts = st.query_params.get(parameter, "").split(".")
    numbers = (int(part) for part in parts if part.isdecimal() and len(part) < LONGEST_NUMBER)
    return list(dict.fromkeys(number for number in numbers if number < count))


def listed(numbers: Iterable[int]) -> str:
    """Numbers as `numbers_in_address` reads them."""
    return ".".join(map(str, numbers))


def search_with(dataset: Dataset, index: int) -> None:
    """Make an image of a data set the query: of the run that the page shows, else of the newest that can search it."""
    able = [run for run in list_runs(runs_folder()) if run.stored_status().state == "done"
            and run.spec().fingerprint == dataset.fingerprint]
    if not able:
        st.toast(f"This is {dataset.caption(index)}. Train on these images first, then search with any of them.",
                 icon=":material/image_search:")
        return
    here = next((run for run in able if run.id == st.query_params.get("run")), able[0])
    st.switch_page("pages/retrieval.py", query_params={"run": here.id, "add": str(index)})
