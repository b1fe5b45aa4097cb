"""How many directions an embedding uses, epoch by epoch: collapse as it happens."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from pages.parts.base.epochs import epoch_at, pick_epoch_cursor
from pages.parts.base.run_status import hyperparameters
from pages.parts.base.user_errors import show_user_errors
from pages.parts.kit.figures import GRAY, curve, draw, line_style, table_behind
from udml_core.exploration.affinity import Spectrum, spectrum
from udml_core.runs import Run, find_run, runs_folder
from udml_core.tasks import LIVE_STATES

CURVES = ("effective rank", "sample recall@1")


@st.cache_data(max_entries=256, show_spinner=False)
def _spectrum(folder: str, epoch: int) -> Spectrum:
    return spectrum(find_run(folder, runs_folder()).epoch_sample(epoch))


def short_names(runs: list[Run]) -> list[str]:
    """Methods with the fields that not all runs share, where space is scarce."""
    fields = [hyperparameters(run) for run in runs]
    names = []
    for run, mine in zip(runs, fields, strict=True):
        own = [f"{name} {value}" for name, value in mine.items() if any(other.get(name) != value for other in fields)]
        names.append(" ".join([run.spec().method, ", ".join(own) or run.id[-6:]]))
    return names


def explore_spectrum(run_ids: tuple[str, ...]) -> None:
    """The effective rank of one or two runs over the epochs, and the singular values at one of them; drawn again by
    itself while one of them goes on."""
    live = _live(run_ids)
    st.fragment(_spectra, run_every="2s" if any(live) else None)(run_ids, live)


def _live(run_ids: tuple[str, ...]) -> list[bool]:
    """Which of some runs go on."""
    return [find_run(run_id, runs_folder()).status().state in LIVE_STATES for run_id in run_ids]


@show_user_errors()
def _spectra(run_ids: tuple[str, ...], live: list[bool]) -> None:
    """The page begins anew when one of the runs ends."""
    if _live(run_ids) != live:
        st.rerun(scope="app")
    runs = [run for run in (find_run(run_id, runs_folder()) for run_id in run_ids) if run.epoch_numbers()]
    if not runs:
        st.caption("This run kept no epoch.")
        return
    names = short_names(runs)
    moment = pick_epoch_cursor(runs, "spectrum")
    found = {name: _spectrum(str(run.folder), epoch_at(run, moment)) for run, name in zip(runs, names, strict=True)}
    start = _spectrum(str(runs[0].folder), runs[0].epoch_numbers()[0])
    rows = {name: run.metrics()[0] for name, run in zip(names, runs, strict=True)}
    left, right = st.columns(2)
    with left:
        for name in CURVES:
            if any(row.get(name) is not None for one in rows.values() for row in one):
                curve(name, rows, f"spectrum-{name}", moment)
    with right:
        singular_values(start, found)
    st.markdown("  \n".join(f"**{name}**: effective rank {one.rank:.1f} of {len(one.values)}, its largest singular "
                            f"value holds {100 * one.values[0]:.0f} % of the sum." for name, one in found.items()))
    table_behind("The singular values as a table", pd.DataFrame(
        {"Rank": np.arange(1, 1 + max(len(one.values) for one in found.values()))}
        | {f"{name}, %": pd.Series((100 * one.values).round(3)) for name, one in found.items()}))


def singular_values(start: Spectrum, found: Mapping[str, Spectrum]) -> None:
    """The values of each run, largest first, over those that the first run began with."""
    figure = go.Figure(go.Scatter(x=np.arange(1, len(start.values) + 1), y=100 * start.values, name="before training",
                                  line={"color": GRAY, "width": 1}))
    for place, (name, one) in enumerate(found.items()):
        figure.add_scatter(x=np.arange(1, len(one.values) + 1), y=100 * one.values, name=name,
                           line={**line_style(place), "width": 3})
    figure.update_layout(title={"text": "Singular values, % of their sum", "font": {"size": 14}}, height=430,
                         xaxis_title="rank", margin={"l": 8, "r": 8, "t": 36, "b": 8},
                         legend={"orientation": "h", "y": -0.2})
    figure.update_yaxes(type="log", tickformat=".2~g")
    draw(figure, "spectrum-values", "Singular values of the centred sample: " + "; ".join(
        f"{name}, effective rank {one.rank:.1f}" for name, one in {"before training": start, **found}.items()) + ".")
