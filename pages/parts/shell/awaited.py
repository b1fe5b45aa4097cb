"""The images that the user has just opened: pages wait for their features, and then open with them."""

from __future__ import annotations

import html
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import streamlit as st

from udml_core.base.errors import UserError, counted
from udml_core.data.dataset import Dataset
from udml_core.data.features import stored_words
from udml_core.runs import Run, find_run, runs_folder
from udml_core.runs.analyses import Analysis
from udml_core.runs.search import FROZEN
from udml_core.runs.tasks import LIVE_STATES, Status
from udml_core.work import jobs
from udml_core.work.jobs.auditing import find_auditing
from udml_core.work.jobs.browse import continue_browsing
from udml_core.work.jobs.follow_ups import wants
from udml_core.work.jobs.stages import Stage, expected_seconds, features_seconds, promise_of, stage_of

from .cached import load_dataset
from .run_hash import RUN_HASH
from .run_status import UNSEEN, escaped
from .times import passed_words
from .user_errors import show_user_errors
from .views import view_link

AWAITED = "app-run-awaited"
"""Session key of the id of the run whose features the user waits for."""
PROMISED = "app-run-promised"
"""Session key of the time that was said last to be left."""
FIRST_IMAGES = "Search the first images"
"""What leads to Search while images are prepared."""
CHANGED = "app-exclusions-changed"
"""Session key of the name of the data set whose list of excluded images has changed."""


@dataclass(frozen=True)
class Shown:
    """What a bar showed last: the run, its images and encoder, the share, and whether it was in the last stage."""

    run: str = ""
    images: tuple[str, str] = ("", "")
    share: float = 0.0
    is_last: bool = False


def note_exclusion(dataset: Dataset) -> None:
    """Note that other images of a data set are excluded now, so that its features' run is made again."""
    st.session_state[CHANGED] = dataset.name


def is_renewed(run: Run) -> bool:
    """Return whether the next page prepares a run's images again, as other images of frozen features are excluded."""
    spec = run.spec()
    if spec.method != FROZEN or st.session_state.get(CHANGED) != spec.dataset:
        return False
    # The audit in progress comes first; until then, searches and groups leave the excluded images out by themselves.
    return find_auditing(load_dataset(spec.dataset), spec.encoder, runs_folder()).task is None


def renewed(run: Run) -> Run | None:
    """Prepare images again from which some were excluded in this session.

    Args:
        run: A run of their frozen features.

    Returns:
        The run without the images that are excluded now; None if it is not finished, and then awaited.
    """
    if not is_renewed(run):
        return run
    dataset = load_dataset(run.spec().dataset)  # where another click may end this run of the page
    state = continue_browsing(dataset, run.spec().encoder, runs_folder())
    if state.run is None and isinstance(state.task, Run):
        await_run(state.task)
    del st.session_state[CHANGED]
    return state.run


def await_run(run: Run) -> None:
    """Let pages wait for the features of images that the user looks at."""
    st.session_state[AWAITED] = run.id


def stop_waiting() -> None:
    """Let pages show another run."""
    st.session_state.pop(AWAITED, None)


def awaited_run() -> Run | None:
    """Return the run whose features the user waits for; None without one."""
    try:
        return find_run(st.session_state[AWAITED], runs_folder())
    except (KeyError, UserError):  # it may have been removed
        stop_waiting()
        return None


def show_awaited(run: Run) -> None:
    """Show in the place of a page how far the images are that the user has just opened."""
    with st.container(key="awaited", gap="small"):
        st.subheader("Your images are being prepared", anchor=False)
        show_progress(run, AWAITED, "The preparation of the images", "This page opens with your images by itself.",
                      is_enough=lambda status: status.can_search)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if st.session_state.get("page") != "retrieval":
                link_to_first_images()
            view_link("data", label="First findings of the audit", icon=":material/fact_check:", width="content",
                      query_params={"dataset": run.spec().dataset, "view": "audit"})
            st.button("Show another run meanwhile", icon=":material/swap_horiz:", key="awaited-skip", type="tertiary",
                      on_click=stop_waiting, help="The preparation goes on.")


def link_to_first_images() -> None:
    """Link Search, which finds images among the first ones while an awaited run prepares the others."""
    view_link("retrieval", label=FIRST_IMAGES, icon=":material/image_search:", width="content")


def say_ended() -> None:
    """Say once why there are no features of the images that the user waited for; nothing if there are."""
    if problem := st.session_state.pop(f"{AWAITED}-failure", ""):
        st.error(escaped(problem), icon=":material/error:")


@st.fragment(run_every="1s")
@show_user_errors()
def show_progress(task: Run | Analysis, begun: str, what: str = "Browsing",
                  meanwhile: str = "You can look at the images meanwhile.",
                  is_enough: Callable[[Status], bool] = lambda _status: False) -> None:
    """Show the step in progress; run the page again when it ends.

    Args:
        task: The step.
        begun: Name in the session that says that the further steps follow.
        what: The subject of the message if the step fails.
        meanwhile: What the user can expect, in one sentence.
        is_enough: Whether the page runs again before the step ends.
    """
    status = task.status()
    if is_enough(status):
        st.rerun(scope="app")
    if status.state not in LIVE_STATES and not _is_followed(task, status):
        if status.state != "done":
            st.session_state.pop(begun, None)
            st.session_state[f"{begun}-failure"] = f"{what} is {status.state}. {status.message}"
        st.rerun(scope="app")
    stage = stage_of(task, status)
    line = line_of(task, status)
    known = _stored_words(task if isinstance(task, Run) else task.run)
    meanwhile = f"{known} {meanwhile}".strip()
    bar, button = st.columns([4, 1], vertical_alignment="center")
    with bar:
        st.progress(_share(begun, task, stage), f"{line}. {meanwhile}")
        st.html(f'<div role="status" aria-live="polite" style="{UNSEEN}">{html.escape(line)}</div>')
    if button.button("Stop", icon=":material/stop:", key=f"{begun}-stop", width="stretch",
                     help="Steps that are finished stay, and the rest can be done later."):
        with st.spinner("Stopping …"):
            jobs.stop(task)
        st.session_state.pop(begun, None)
        st.rerun(scope="app")


def _is_followed(task: Run | Analysis, status: Status) -> bool:
    """Return whether the map of a finished run is computed before the audit that is awaited."""
    return status.state == "done" and isinstance(task, Run) and wants(task, "audit")


@st.cache_data(max_entries=16, show_spinner=False, hash_funcs=RUN_HASH)
def _stored_words(run: Run) -> str:
    """Say how many features were stored when the preparation was shown first, as later they all are."""
    with suppress(UserError):  # the data set is gone; the run says so itself
        return stored_words(load_dataset(run.spec().dataset), run.spec().encoder)
    return ""


def line_of(task: Run | Analysis, status: Status) -> str:
    """Return the stage of a preparation in words, with the time left or what it waits for."""
    return f"{stage_of(task, status).words}{_ahead(task, status)}"


def _ahead(task: Run | Analysis, status: Status) -> str:
    """Return the time left of the step in words, or what a task waits for."""
    if status.state == "running":
        now, stage = time.time(), stage_of(task, status)
        dataset = load_dataset((task if isinstance(task, Run) else task.run).spec().dataset)
        promise = st.session_state[PROMISED] = promise_of(
            (task.id, stage.number), status, now, st.session_state.get(PROMISED),
            expected_seconds(task, stage, len(dataset)), features_seconds(task, stage, len(dataset)))
        words = passed_words(status) if promise is None else promise.left_words(now)
        return words and f", {words}"
    if _is_followed(task, status):
        return ""
    ahead = 0 if isinstance(task, Analysis) else jobs.queue_position(task, runs_folder())
    return f": waiting for the device, behind {counted(ahead, 'run')}" if ahead else ": starting"


def _share(begun: str, task: Run | Analysis, stage: Stage) -> float:
    """Return the finished share of the whole preparation, which does not fall while its steps follow each other."""
    key = f"{begun}-share"
    run = task if isinstance(task, Run) else task.run
    shown: Shown = st.session_state.get(key, Shown())
    images = run.spec().fingerprint, run.spec().encoder.key
    # Another run of the same images goes on where an exclusion ended the one before; after the last stage it is new.
    goes_on = shown.run == run.id or (shown.images == images and not shown.is_last)
    share = max(stage.share, shown.share if goes_on else 0.0)
    st.session_state[key] = Shown(run.id, images, share, stage.number == stage.count)
    return share
