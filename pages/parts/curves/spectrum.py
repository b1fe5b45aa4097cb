"""The effective rank and the singular values of an embedding, epoch by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from udml_core.exploration.affinity import Spectrum, spectrum
from udml_core.results.embedding_words import words_of
from udml_core.runs import Run
from udml_core.runs.tasks import LIVE_STATES

from ..draw.figures import GRAY, curve, draw, line_style, titled
from ..draw.slider import pick_epoch_cursor
from ..draw.tables import table_behind
from ..shell.epochs import epoch_at
from ..shell.run_hash import RUN_HASH
from ..shell.run_status import escaped, run_titles
from ..shell.user_errors import show_user_errors
from .run_curves import curve_title, judges_all

MOST_TICKS = 16
"""Up to this number of ranks, each has a tick."""
CURVES = ("effective rank", "sample recall@1")


@st.cache_data(max_entries=256, show_spinner=False, hash_funcs=RUN_HASH)
def _spectrum(run: Run, epoch: int) -> Spectrum:
    return spectrum(run.epoch_sample(epoch))


def explore_spectrum(runs: Sequence[Run]) -> None:
    """Show the effective rank over the epochs, and the singular values at one epoch.

    The charts follow runs that are in progress.

    Args:
        runs: One or two runs.
    """
    live = _live(runs)
    st.fragment(_spectra, run_every="2s" if any(live) else None)(runs, live)


def _live(runs: Sequence[Run]) -> list[bool]:
    return [run.status().state in LIVE_STATES for run in runs]


@show_user_errors()
def _spectra(runs: Sequence[Run], live: list[bool]) -> None:
    if _live(runs) != live:
        st.rerun(scope="app")  # A run ended, so the page can show what needs a finished run.
    runs = [run for run in runs if run.epoch_numbers()]
    if not runs:
        st.caption("The run has no finished epoch.")
        return
    names = list(run_titles(runs).values())
    position = pick_epoch_cursor(runs, "spectrum")
    spectra = {name: _spectrum(run, epoch_at(run, position)) for run, name in zip(runs, names, strict=True)}
    start = _spectrum(runs[0], runs[0].epoch_numbers()[0])
    rows = {name: run.metrics()[0] for name, run in zip(names, runs, strict=True)}
    left, right = st.columns(2)
    with left:
        for name in CURVES:
            if any(row.get(name) is not None for of_run in rows.values() for row in of_run):
                curve(name, rows, f"spectrum-{name}", position, title=curve_title(name, judges_all(runs)))
    with right:
        _singular_values(start, spectra)
    st.markdown("  \n".join(
        f"**{escaped(name)}**: effective rank {shown.rank:.1f} of {len(shown.values)}; the largest singular value is "
        f"{100 * shown.values[0]:.1f} % of their sum." for name, shown in spectra.items()))
    table_behind("Singular values as a table", pd.DataFrame(
        {"Rank": np.arange(1, 1 + max(len(shown.values) for shown in spectra.values()))}
        | {f"{name}, %": pd.Series((100 * shown.values).round(1)) for name, shown in spectra.items()}))


def _singular_values(start: Spectrum, spectra: Mapping[str, Spectrum]) -> None:
    """Show each run's singular values, largest first.

    The first run's singular values before training are drawn in gray.
    """
    untrained = words_of("initial").sentence
    figure = go.Figure(go.Scatter(x=np.arange(1, len(start.values) + 1), y=100 * start.values, name=untrained,
                                  line={"color": GRAY, "width": 1}))
    for number, (name, shown) in enumerate(spectra.items()):
        figure.add_scatter(x=np.arange(1, len(shown.values) + 1), y=100 * shown.values, name=name,
                           line={**line_style(number), "width": 3})
    titled(figure, "Singular values", 430, xaxis_title="rank", legend={"orientation": "h", "y": -0.2})
    figure.update_yaxes(title="% of the sum, log scale", type="log", tickformat=".2~g")
    if len(start.values) <= MOST_TICKS:
        figure.update_xaxes(dtick=1)
    draw(figure, "spectrum-values", "Singular values of the centered sample: " + "; ".join(
        f"{name}, effective rank {shown.rank:.1f}" for name, shown in {untrained: start, **spectra}.items())
        + ".")
