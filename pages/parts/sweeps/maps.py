"""The maps of a sweep's runs side by side, which grow together while the runs train."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from udml_core.runs import Run
from udml_core.runs.tasks import LIVE_STATES
from udml_core.runs.verdict import standing
from udml_core.work.sweeps import Combination

from ..maps.scatter import draw_map
from ..shell.run_status import escaped_message, state_line
from ..shell.setting_words import setting_words
from ..train.live import STEP, next_epoch, plays
from ..train.start_map import framed
from ..train.watched import color_of, live_map, moments_of, rows_of_moments, watch_images
from .words import combination_words

A_ROW = 3
MOST = 6
"""Maps at once; a browser draws few pictures on the graphics processor."""
HEIGHT = 250


def show_maps(combinations: Sequence[Combination]) -> None:
    """Show the map of the first run of each combination, with its measure below."""
    shown = [combination for combination in combinations if combination.members[0].run is not None][:MOST]
    if not shown:
        return
    runs = [run for combination in shown if (run := combination.members[0].run) is not None]
    is_live = any(run.status().state in LIVE_STATES or plays(run) for run in runs)
    st.fragment(_draw_maps, run_every=STEP if is_live else None)(shown, is_live)
    if len(shown) < len(combinations):
        st.caption(f"Maps of the first {len(shown)} of {len(combinations)} combinations.")


def _draw_maps(shown: Sequence[Combination], was_live: bool) -> None:
    """Draw the maps in rows; a fragment that need not run again ends with the page."""
    for start in range(0, len(shown), A_ROW):
        for column, combination in zip(st.columns(A_ROW), shown[start:start + A_ROW], strict=False):
            run = combination.members[0].run
            if run is not None:
                with column, st.container(key=f"sweep-of-{run.id}"):
                    _draw_run(run, combination)
    runs = [combination.members[0].run for combination in shown]
    if was_live and not any(run is not None and (run.status().state in LIVE_STATES or plays(run)) for run in runs):
        st.rerun(scope="app")


def _draw_run(run: Run, combination: Combination) -> None:
    """Draw the map of one run after its next epoch."""
    words = ", ".join(setting_words(name, value, combination.method) for name, value in combination.values.items())
    st.markdown(f"**{words or combination_words(combination)}**")
    epochs, status = moments_of(run), run.status()
    if not epochs:
        if status.state in LIVE_STATES:
            plays(run, begin=True)
        with st.container(border=True, height=HEIGHT):
            st.caption(escaped_message(state_line(run, status)))
        return
    watched = watch_images(run, compares=True)
    epoch = next_epoch(run, epochs)
    positions = live_map(run.id, "sweep").frame(epoch, epochs, watched.sample)
    draw_map(watched.dataset, framed(f"live {run.id}", watched.images, positions), color_of(watched, epoch),
             f"{words}, epoch {epoch:g}, {len(watched.images):,} images", f"sweep-map-{run.id}", height=HEIGHT,
             tiles="all", plain=True, fills=True)
    st.caption(measure_line(run, epoch, epoch == epochs[-1] and status.state not in LIVE_STATES))


def measure_line(run: Run, epoch: float, is_last: bool) -> str:
    """Return the epoch and MAP@R after it; beside PCA of the same width when the run has ended.

    Args:
        run: The run.
        epoch: The epoch that is shown.
        is_last: Whether it is the last epoch of a run that has ended.
    """
    after = standing(run.evaluation()) if is_last else None
    if after is not None and after.after is not None:
        beside = "" if after.over_pca is None else (
            f", {abs(after.over_pca):.1f} points {'above' if after.over_pca >= 0 else 'below'} PCA of the same width")
        return f"Whole group found **{after.after:.1f} %**{beside}"
    value = next((row.get("sample map@r") for row in rows_of_moments(run) if row["epoch"] == epoch), None)
    return f"Epoch {epoch:g}" + ("" if value is None else f" · whole group found **{100 * value:.1f} %**")
