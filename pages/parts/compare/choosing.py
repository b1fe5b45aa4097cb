"""Choosing the runs to compare; the address keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import streamlit as st

from udml_core.base.errors import capitalized, counted
from udml_core.runs import Run
from udml_core.runs.run_comparison import differing_settings, settings_of, share_images
from udml_core.runs.search import FROZEN
from udml_core.runs.verdict import standing

from ..shell.address import write_address
from ..shell.race_judgments import side_words
from ..shell.run_picker import app_run, run_just_chosen
from ..shell.run_status import escaped, run_title, run_titles
from ..shell.views import view_link

FEWEST, MOST = 2, 6
PARAMETER = "runs"
BOX = "compare-runs"


def choose_compared(runs: Sequence[Run], frames: Mapping[str, str] = MappingProxyType({})) -> list[Run]:
    """Choose two to six runs; at first the runs in the address, else the app's run and another on its images.

    A run that the user chooses in the sidebar starts a new comparison; a run that finishes does not.

    Args:
        runs: Finished runs, newest first.
        frames: The embeddings in view, by their runs' ids, if they are not those after training.
    """
    by_id = {run.id: run for run in runs}
    named = list(dict.fromkeys(filter(None, st.query_params.get(PARAMETER, "").split("."))))
    known = [run_id for run_id in named if run_id in by_id][:MOST]
    if len(known) < len(named):
        st.warning(f"The link names {counted(len(named), 'run')}, of which {len(known)} can be compared: a run was "
                   f"removed or is not finished, or there are more than {MOST}.", icon=":material/link_off:")
    own, just_chosen = by_id.get(app_run() or "", runs[0]), run_just_chosen()
    searches = {run_id: capitalized(side_words(by_id[run_id], frame)) for run_id, frame in frames.items()
                if run_id in by_id}
    box = "-".join((BOX, *searches.values()))  # the browser sends names, so other names need another box
    if box not in st.session_state:
        st.session_state[box] = known or compared_by_default(runs, own)
    elif own.id not in st.session_state[box] and just_chosen == own.id:
        st.session_state[box] = compared_by_default(runs, own)
    chosen: list[str] = st.multiselect(
        "Runs to compare", list(by_id), key=box, max_selections=MOST, on_change=_note_chosen, args=(box,),
        format_func=(run_titles(runs) | searches).__getitem__,
        placeholder="Choose two to six runs", label_visibility="collapsed")
    if own.id not in chosen and not rivals_of(own, runs) and chosen == compared_by_default(runs, own):
        _say_alone(own)
    write_address(PARAMETER, ".".join(chosen))
    return [by_id[run_id] for run_id in chosen]


def _note_chosen(box: str) -> None:
    """Keep the choice in the address before the page is drawn: whether refinements stay in view depends on it."""
    write_address(PARAMETER, ".".join(st.session_state[box]))


def compared_by_default(runs: Sequence[Run], own: Run) -> list[str]:
    """Return the ids of two runs on the same test images: one, and the best of those with different settings.

    Without labels no run is known to be best, and the frozen features are the other; beside frozen features, it is a
    training. The frozen features are always the first of the two, as in Search and Judge.

    Args:
        runs: Finished runs, newest first.
        own: The run to begin with; another if it is alone on its images.

    Returns:
        Two ids; if no runs share images, the ids of two runs on different images.
    """
    for first in [own, *runs]:
        rivals = rivals_of(first, runs)
        if rivals:
            other = max(rivals, key=lambda run: (are_different([first, run]), standing(run.evaluation()).after or 0.0,
                                                 (run.spec().method == FROZEN) != (first.spec().method == FROZEN)))
            return [run.id for run in sorted((first, other), key=lambda run: run.spec().method != FROZEN)]
    return [own.id, *(run.id for run in runs if run.id != own.id)][:FEWEST]


def rivals_of(run: Run, runs: Sequence[Run]) -> list[Run]:
    """Return the other runs on the same test images."""
    return [other for other in runs if other.id != run.id and share_images([run, other])]


def are_different(runs: Sequence[Run]) -> bool:
    """Return whether runs differ in a setting, such as the seed."""
    return bool(differing_settings([settings_of(run) for run in runs]))


def _say_alone(run: Run) -> None:
    """Say that the app's run has no rival, and offer to train one."""
    st.info(f"**{escaped(run_title(run))}** is the only finished run on its test images. Other runs are compared.",
            icon=":material/swap_horiz:")
    view_link("train", label="Train another run like it", icon=":material/model_training:",
                 query_params={"like": run.id})
