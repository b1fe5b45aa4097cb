"""The search that the user chose for some images, in the same words on every page."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.exploration.race import FROZEN, Outcome, Race
from udml_core.runs import Run, runs_folder
from udml_core.runs.search.judged_runs import is_frozen
from udml_core.work.jobs.answering import evidence_words, judged_words
from udml_core.work.jobs.raced import judged_in_race
from udml_core.work.jobs.verdicts import against_advised

from ..shell.cached import dataset_at_hand
from ..shell.race_judgments import recipe_of, search_kind
from ..shell.race_verdict import frame_verdict, judgments_version
from ..shell.run_hash import RUN_HASH
from ..shell.run_status import escaped
from .using import PIN

UNKNOWN = "No judge has compared it with the plain search yet."


def own_line(run: Run, frame: str) -> str:
    """Return which search the user chose by its plain name, in Markdown; Search shows its steps."""
    return f"{PIN} **Your search: {escaped(search_kind(run, frame))}.**"


def show_own(run: Run, frame: str, key: str, more: str, show_actions: Callable[[], object]) -> None:
    """Show which search the user chose, actions beside it, and what judges and judgments say of it below.

    Args:
        run: The run of the search.
        frame: Its embedding.
        key: Key of the line.
        more: What follows its name, in Markdown.
        show_actions: Shows buttons or links.
    """
    with st.container(gap=None):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=key):
            st.markdown(f"{own_line(run, frame)} {more}".rstrip(), width="content")
            show_actions()
        if evidence := evidence_line(run, frame):
            st.caption(evidence)


def evidence_line(run: Run, frame: str) -> str:
    """Return what judges and judgments say of a search against the plain search, in Markdown; empty for the latter."""
    return escaped(_evidence(run, frame, judgments_version(run)))


def judgments_line(run: Run, frame: str) -> str:
    """Return what judgments alone say of a search, in Markdown; empty without any."""
    judged = judged_of(run, frame)
    said = "" if judged is None else judged_words(*judged, runs_folder(), dataset_at_hand(run.spec().dataset))
    return f":material/thumbs_up_down: {escaped(said)}" if said else ""


def judged_of(run: Run, frame: str) -> tuple[Race, Outcome] | None:
    """Return the newest race that judged a search, and what it said; None without one."""
    recipe = recipe_of(run, frame)
    return None if recipe is None else judged_in_race(run, recipe)


@st.cache_data(ttl="10s", max_entries=64, show_spinner=False, hash_funcs=RUN_HASH)
def _evidence(run: Run, frame: str, version: tuple[int, ...]) -> str:  # noqa: ARG001 (of the judgments)
    if is_frozen(run, frame):
        return ""
    if (judged := judged_of(run, frame)) is not None:
        return evidence_words(*judged, runs_folder(), dataset_at_hand(run.spec().dataset))
    said = frame_verdict(run, frame)[0]
    beside = "" if run.spec().method == FROZEN else _against_advised(run, frame)
    return " ".join(filter(None, (beside, said))) or UNKNOWN


def _against_advised(run: Run, frame: str) -> str:
    """Return what judges say of a chosen training against the search that a race advises; empty if nothing can."""
    with suppress(UserError):  # the images are missing, or an embedding was removed, which other pages say
        return against_advised(run, frame, dataset_at_hand(run.spec().dataset))
    return ""
