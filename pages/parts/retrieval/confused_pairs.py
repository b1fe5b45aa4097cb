"""Confused pairs of classes as a table, a list and, for few classes, a heat map."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.exploration.failures import Atlas, ConfusedPair
from udml_core.runs.search import Which

from ..draw.figures import draw, titled
from ..draw.palette import percent
from ..draw.tables import data_table
from ..shell.address import join_indices, write_address

MOST_CLASSES = 30
"""A heat map of more classes, or of a single pair, is not shown."""
MOST_NUMBERED = 16
"""A heat map of up to so many classes shows its numbers."""
MOST_OFFERED = 200
NAME_WIDTH = 150
"""Pixels of a class name in the table: 22 characters fit, and all columns are visible on a laptop's screen."""
LIGHT, DARK = ("#e3eef7", "#0072b2"), ("#17293a", "#56b4e9")


def choose_pair(names: tuple[str, ...], atlas: Atlas, which: Which) -> ConfusedPair:
    """Choose a confused pair, at first the most frequent; the address holds it."""
    wanted = st.query_params.get("pair", "")
    pair = next((pair for pair in atlas.pairs if _token(pair) == wanted), atlas.pairs[0])
    classes = np.union1d(atlas.classes, atlas.nearest_classes)
    _show_list(names, atlas, pair)
    if len(atlas.pairs) > 1 and len(classes) <= MOST_CLASSES:
        _show_heat_map(names, classes, atlas, _token(pair))
    _show_table(names, atlas, pair, which)
    return pair


def _show_table(names: tuple[str, ...], atlas: Atlas, pair: ConfusedPair, which: Which) -> None:
    sizes = np.bincount(atlas.classes, minlength=len(names))
    table = pd.DataFrame({"Class": [names[pair.own] for pair in atlas.pairs],
                          "Mistaken for": [names[pair.other] for pair in atlas.pairs],
                          "Queries": [pair.count for pair in atlas.pairs],
                          "Share": [percent(100 * pair.count / sizes[pair.own])
                                    for pair in atlas.pairs]})
    key = f"failures-{which}-{st.session_state.setdefault('failures-turn', 0)}"
    column = st.column_config.TextColumn
    widths: dict[str, Any] = {"Class": column(width=NAME_WIDTH), "Mistaken for": column(width=NAME_WIDTH),
                              "Queries": st.column_config.NumberColumn(width=66),
                              "Share": column(width=64, alignment="right", help="Share of the class's queries.")}
    data_table(table, hide_index=True, key=key, height=300, selection_mode="single-row", column_config=widths,
               on_select=lambda: _open_row(key, atlas.pairs),
               selection_default={"selection": {"rows": [atlas.pairs.index(pair)]}})


def _show_list(names: tuple[str, ...], atlas: Atlas, pair: ConfusedPair) -> None:
    """Show the pairs as a list, which also works with a keyboard."""
    offered = list(dict.fromkeys([*atlas.pairs[:MOST_OFFERED], pair]))
    words = {_token(pair): f"{names[pair.own]} mistaken for {names[pair.other]} · {pair.count:,}" for pair in offered}
    st.session_state["failures-pair"] = _token(pair)
    st.selectbox("Confused pair, most frequent first", list(words), format_func=words.__getitem__, key="failures-pair",
                 on_change=lambda: _open(st.session_state["failures-pair"]))


def _token(pair: ConfusedPair) -> str:
    """Return a pair as the address holds it."""
    return join_indices((pair.own, pair.other))


def _open(token: str) -> None:
    """Show a pair that was chosen outside the table.

    A new key makes the table select its row.
    """
    write_address("pair", token)
    st.session_state["failures-turn"] += 1


def _open_row(key: str, pairs: tuple[ConfusedPair, ...]) -> None:
    rows = st.session_state[key].selection.rows
    if rows:
        write_address("pair", _token(pairs[rows[0]]))


def _show_heat_map(names: tuple[str, ...], classes: Array, atlas: Atlas, current: str) -> None:
    """Show the number of misses by class and by the class of the nearest image.

    Each pair has its own chart key, so that no old selection of points remains.
    """
    counts = np.full((len(classes), len(classes)), np.nan)
    for pair in atlas.pairs:
        counts[np.searchsorted(classes, pair.own), np.searchsorted(classes, pair.other)] = pair.count
    words = [names[label] for label in classes]
    color_scale = DARK if st.context.theme.type == "dark" else LIGHT
    figure = go.Figure(go.Heatmap(z=counts, x=words, y=words, colorscale=color_scale, xgap=2, ygap=2, hoverinfo="skip",
                                  texttemplate="%{z}" if len(classes) <= MOST_NUMBERED else None, showscale=False))
    # Cells of a heat map cannot be clicked, so that invisible points lie on them.
    figure.add_scatter(x=[names[pair.other] for pair in atlas.pairs], y=[names[pair.own] for pair in atlas.pairs],
                       mode="markers", marker={"size": 22, "opacity": 0}, unselected={"marker": {"opacity": 0}},
                       showlegend=False,
                       customdata=[_token(pair) for pair in atlas.pairs], text=[pair.count for pair in atlas.pairs],
                       hovertemplate="%{y} mistaken for %{x}: %{text}<extra></extra>")
    titled(figure, "Confused classes, number of queries", 380)
    figure.update_xaxes(title="class of the nearest image", type="category", showgrid=False)
    figure.update_yaxes(title="class of the query", type="category", autorange="reversed", showgrid=False)
    most = atlas.pairs[0]
    key = f"failures-cells-{current}"
    draw(figure, key, f"Confused pairs of {len(classes)} classes. The most frequent: {names[most.own]} is mistaken "
         f"for {names[most.other]} {most.count} times.", lambda: _open_cell(key))


def _open_cell(key: str) -> None:
    points = st.session_state[key].selection.points
    if points:
        _open(str(points[0]["customdata"]))
