"""A run that trains on the page where it was started: its map, a query's neighbors and its curves by epoch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.methods import Method
from udml_core.runs import Run, find_run, runs_folder
from udml_core.runs.live_steps import mark_watched
from udml_core.runs.tasks import LIVE_STATES, Status

from ..draw.gallery import gallery, mark_of
from ..maps.scatter import draw_map
from ..shell.cached import dataset_of, load_split
from ..shell.run_picker import choose_trained
from ..shell.user_errors import show_user_errors
from .flip import RESULT, epoch_key, flip, flip_key, last_epoch, leave_flip
from .measures import show_measures
from .pausing import rest, rests, show_continue, show_pause
from .preview import HEIGHT, line_below, show_before
from .settings import RESTORED
from .shown import NEIGHBORS, Shown, frame_at, moment_words
from .start_map import choose_colors
from .status_strip import show_status, strip_place
from .tiles import small_tile
from .watched import Watched, moments_of, watch_images

PARAMETER = "live"
STARTED = "lab-live"
"""Key of the run that this session started or opened here, which a later visit shows until the user leaves it."""
STEP = 0.8
"""Seconds between two looks at a run that trains; points travel for 0.7 s."""
CATCH_UP = 5
"""A run that trains faster than the page looks is shown epoch by epoch, faster by one epoch for so many behind."""
WIDTHS = [13, 7]
"""Widths of the middle and the right part of the page."""


def watched_run() -> Run | None:
    """Return the run that the page shows.

    The address names it, or this session started it, and the page shows its data set. A run that has ended is shown
    again where the page shows the choices of the last visit, as the navigation opens it.
    """
    wanted = st.query_params.get(PARAMETER, "")
    run_id = wanted or st.session_state.get(STARTED, "")
    with suppress(UserError):
        run = find_run(run_id, runs_folder()) if run_id else None
        is_back = st.session_state.get(RESTORED, False)
        if run is not None and (wanted or is_back or run.status().state in LIVE_STATES):
            if not wanted and run.spec().dataset != st.query_params.get("dataset"):
                return None
            st.query_params[PARAMETER] = st.session_state[STARTED] = run.id
            return run
    leave_run()
    return None


def watch(run: Run) -> None:
    """Show a run from now on; the other pages open with it too."""
    choose_trained(run)
    mark_watched(run)
    st.query_params[PARAMETER] = st.session_state[STARTED] = run.id


def leave_ended() -> None:
    """Show the preview again in place of a run that has ended: its measures are not of what is chosen now."""
    run = watched_run()
    if run is not None and run.status().state not in LIVE_STATES:
        leave_run()


def leave_run() -> None:
    """Show the preview again; the run goes on."""
    st.query_params.pop(PARAMETER, None)
    st.session_state.pop(STARTED, None)


def middle_and_right() -> tuple[DeltaGenerator, DeltaGenerator]:
    """Return the places of the picture and of the measures beside it."""
    center, right = st.columns(WIDTHS, gap="medium")
    measures = right.container(key="lab-right")
    measures.markdown("#### Result")
    return center.container(key="lab-center"), measures


def show_run(run: Run, chosen: type[Method]) -> None:
    """Show a run; while it trains, the page looks at it again and again.

    Args:
        run: The run.
        chosen: The method that is chosen beside it, which may be another.
    """
    is_live = run.status().state in LIVE_STATES or plays(run)
    st.fragment(_follow, run_every=STEP if is_live else None)(run, is_live, chosen.card.name)


def plays(run: Run, begin: bool = False) -> bool:
    """Return whether a run that was watched has finished before all of its epochs were shown.

    Args:
        run: The run.
        begin: Whether the run is watched from now on, so that its first epoch is shown first.
    """
    if begin:
        st.session_state.setdefault(_shown_key(run), -1)
    shown = st.session_state.get(_shown_key(run))
    return shown is not None and run.status().state == "done" and shown < len(moments_of(run)) - 1


def _shown_key(run: Run) -> str:
    """Return the session key of the position of the moment that was shown last, −1 before the first."""
    return f"lab-shown-{run.id}"


def next_epoch(run: Run, epochs: Sequence[float]) -> float:
    """Return the epoch after the one shown last; the newest if there is none."""
    shown = st.session_state.get(_shown_key(run), len(epochs) - 2)
    behind = len(epochs) - 1 - shown
    if behind > 0:  # most changes within the first epoch, of which no step is passed over
        shown += 1 if shown < 0 or epochs[shown] < 1 else 1 + (behind - 1) // CATCH_UP
    st.session_state[_shown_key(run)] = shown
    return epochs[min(shown, len(epochs) - 1)]


def _follow(run: Run, was_live: bool, chosen: str) -> None:
    """Draw the run; the page runs again when the training has ended."""
    status = run.status()
    if was_live and status.state not in LIVE_STATES and not plays(run):
        st.rerun(scope="app")
    if status.state in LIVE_STATES:
        mark_watched(run)
    center, right = middle_and_right()
    behind = st.container()  # reading data sets leaves empty elements, which would displace the map
    places = shown = None
    with center, show_user_errors():
        places = Places(strip_place(), st.container(), line_below())
        shown = _prepare(run, status, places, behind)
    with right, show_user_errors():
        show_measures(run, status, leave_run, None if shown is None else shown.epoch, chosen)
    with center, show_user_errors():
        if places is not None and shown is not None:
            _draw(run, status, places, shown)
        elif places is not None and not moments_of(run):
            _draw_before(run, status, places, behind)


@dataclass(frozen=True)
class Places:
    """The places in the middle of the page, reserved in this order before anything is computed."""

    strip: DeltaGenerator
    map: DeltaGenerator
    under: DeltaGenerator


def _draw_before(run: Run, status: Status, places: Places, behind: DeltaGenerator) -> None:
    """Show the map before training until the first epoch is stored."""
    show_status(places.strip, run, status, None)
    with behind:
        dataset = dataset_of(run)
    show_before(places.map, places.under, run.spec(), dataset)
    if status.state in LIVE_STATES:
        plays(run, begin=True)
        st.caption(":material/hourglass_top: The map of the run appears when its start has been measured.")


def _prepare(run: Run, status: Status, places: Places, behind: DeltaGenerator) -> Shown | None:
    """Choose the next epoch, or the one that the user chose, and compute what the page shows of it.

    Args:
        run: The run.
        status: Its status.
        places: The places in the middle of the page; a run that has ended gets the choice of the epoch.
        behind: The place of elements that reading leaves.

    Returns:
        The frame; None before the first epoch.
    """
    epochs = moments_of(run)
    if not epochs:
        return None
    with behind:
        watched = watch_images(run)
        is_moving = (status.state in LIVE_STATES or plays(run)) and not rests(run, status)
        raw = "" if status.state in LIVE_STATES or is_moving else flip(places.strip, watched, epochs, status)
    with places.under:
        epoch = next_epoch(run, epochs) if is_moving else _choose_epoch(run, epochs, status)
    with behind:
        return frame_at(watched, epoch, epochs, status, raw, is_moving)


def _draw(run: Run, status: Status, places: Places, shown: Shown) -> None:
    """Draw a frame: the line above the map, the map with a ring around the query, and the rows of neighbors."""
    watched, words, count = shown.watched, shown.words, f"{len(shown.watched.images):,} images"
    show_status(places.strip, run, status, None if shown.raw else shown.epoch, shown.newest, shown.is_moving)
    with places.map:
        draw_map(watched.dataset, shown.layout, shown.color, f"{words}, {count}", "lab-map", marks=[shown.ring],
                 height=HEIGHT, legend_below=True, tiles="all", fills=True)
    with places.under:
        if shown.is_moving:
            show_pause(run, status, partial(_pause, run, shown.epoch))
            st.caption(f"Click an image{_half(watched)} to make it the query.")
        choose_colors(run.spec(), watched.dataset)
    for of_row, near, place in shown.rows:
        _show_neighbors(watched.dataset, near, shown.ring.image, of_row, place)


def _half(watched: Watched) -> str:
    """Return which half of the split the images belong to; nothing where all images train."""
    if load_split(watched.run).name == "all":
        return ""
    return f" of the {'training' if watched.trained else 'test'} half"


def _pause(run: Run, epoch: float) -> None:
    """Let the training and the map rest; the slider chooses among the moments so far."""
    rest(run)
    st.session_state.pop(_shown_key(run), None)
    st.session_state[epoch_key(run)] = epoch
    leave_flip(run)


def _continue(run: Run, epochs: Sequence[float]) -> None:
    """Let a paused training go on, and the map from the moment that it shows."""
    run.end_pause()
    mark_watched(run)
    st.session_state[_shown_key(run)] = epochs.index(st.session_state.pop(epoch_key(run), epochs[-1]))


def _replay(run: Run, epochs: Sequence[float]) -> None:
    """Show the training again, from the chosen moment or from the start after the last."""
    chosen = st.session_state.get(epoch_key(run), epochs[-1])
    st.session_state[_shown_key(run)] = -1 if chosen == epochs[-1] else epochs.index(chosen)
    st.session_state.pop(epoch_key(run), None)
    st.session_state[flip_key(run)] = RESULT


def _choose_epoch(run: Run, epochs: list[float], status: Status) -> float:
    """Choose an epoch of a run that rests or has ended; at first the epoch that the run keeps."""
    if rests(run, status):
        show_continue(partial(_continue, run, epochs))
    if len(epochs) < 2:
        return epochs[-1]
    st.session_state.setdefault(epoch_key(run), last_epoch(run, epochs, status))
    if status.state == "done" and st.button("Replay", icon=":material/replay:", key="lab-replay", type="tertiary",
                                            on_click=_replay, args=(run, epochs)):
        st.rerun(scope="app")  # the fragment looks again and again only if the page asks for it
    return _slide(run, epochs, status)


def _slide(run: Run, epochs: list[float], status: Status) -> float:
    """Show the slider of the moments; the arrow keys take one step."""
    return float(st.select_slider("Epoch", epochs, key=epoch_key(run), label_visibility="collapsed",
                                format_func=lambda number: moment_words(run, number, status),
                                on_change=leave_flip, args=(run,)))


def _show_neighbors(dataset: Dataset, near: list[int], asked: int, words: str, place: str) -> None:
    """Show the images nearest to the query in one row, the query first."""
    hits = sum(mark_of(dataset, index, asked) == "hit" for index in near)
    counted = "" if dataset.labels is None else f": {hits} of {len(near)} have the query's class"
    st.caption(f"Nearest images {words}{counted}")
    gallery(dataset, [small_tile(dataset, asked, "query"), *(small_tile(dataset, index, mark_of(dataset, index, asked))
                                                         for index in near)],
            f"The query and its nearest images {words.split(',')[0]}", f"lab-{place}", 44, columns=NEIGHBORS + 1)
