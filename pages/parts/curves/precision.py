"""How pure the nearest images are: mprec@K of several runs over K, and over the width of their embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from pages.parts.base.run_status import title_of
from pages.parts.kit.figures import GRAY, draw, line_style, table_behind, width_axis
from udml_core.arrays import Array
from udml_core.exploration import precision as views
from udml_core.runs import Run, Spec

MOST_LINES = 16
"""As many as colour and dash tell apart."""


def precision_of(runs: Sequence[Run]) -> None:
    """One chart over K and, where widths differ, one over d, of the runs that search the same images."""
    judged = [(run, run.spec(), found) for run in runs if (found := run.evaluation()) and "mprec@10" in found["final"]]
    if not judged:
        return
    st.subheader("How pure the nearest are")
    searched = judged[0][1].fingerprint, judged[0][1].split
    alike = [one for one in judged if (one[1].fingerprint, one[1].split) == searched][:MOST_LINES]
    if len(alike) < len(judged):
        st.caption(f"Of the {len(judged)} ticked runs the {len(alike)} are drawn that search the same test images as "
                   f"the first, {MOST_LINES} at most.")
    kinds = [_kind(spec) for _, spec, _ in alike]
    rows = [found["final"] for *_, found in alike]
    references = _references([(spec, found) for _, spec, found in alike])
    if not all(len(views.over_depth(row)) for row in rows):
        st.info("Some of these runs were evaluated before mprec@K was kept for every K. Evaluate them anew: "
                "`python -m udml_core evaluate RUN --again`.", icon=":material/lightbulb:")
    left, right = st.columns(2)
    with left:
        _over_depth([f"{kind} d={row['dimension']:g} · {run.id[-6:]}"
                     for kind, row, (run, *_) in zip(kinds, rows, alike, strict=True)], rows, references)
    if len({row["dimension"] for row in rows}) > 1:
        with right:
            _over_width(views.over_width(kinds, rows), references)
    st.caption("mprec@K: of the K test images nearest to one, the share that are of its class; averaged over the "
               "images of a class, then over the classes. A line that stays level keeps a class together far beyond "
               "the nearest; one that falls has only the nearest right.")


def _kind(spec: Spec) -> str:
    """What a run is, but for width and seed."""
    fields = {name: value for name, value in spec.fields.items() if name != "dimension"}
    return title_of(spec.model_copy(update={"fields": fields, "seed": 0}), with_dataset=False)


def _references(judged: Sequence[tuple[Spec, Mapping[str, Any]]]) -> dict[str, Mapping[str, Any]]:
    """What needs no training: the frozen features, where all runs share them, and PCA, where they share the width."""
    found = judged[0][1]
    if len({spec.encoder.key for spec, _ in judged}) > 1:
        return {}
    one_width = len({each["final"]["dimension"] for _, each in judged}) == 1
    return {"Frozen features": found["frozen"]} | ({"PCA, same width": found["pca"]} if one_width else {})


def _over_depth(names: Sequence[str], rows: Sequence[views.Row], references: Mapping[str, views.Row]) -> None:
    curves = {name: curve for name, row in [*zip(names, rows, strict=True), *references.items()]
              if len(curve := views.over_depth(row))}
    if not curves:
        return
    figure = go.Figure()
    for name, curve in curves.items():
        figure.add_scatter(x=list(range(1, len(curve) + 1)), y=curve, name=name, mode="lines",
                           line=_line(name, names, references))
    _show(figure, "mprec@K, in percent, over K", "K", "runs-precision-depth", len(curves),
          "; ".join(f"{name} {curve[0]:.1f} to {curve[-1]:.1f}" for name, curve in curves.items()))
    table_behind("mprec@K as a table", pd.DataFrame({"K": range(1, 1 + max(map(len, curves.values())))}).join(
        pd.DataFrame({name: pd.Series(curve.round(2)) for name, curve in curves.items()})))


def _over_width(found: Mapping[str, tuple[Array, Array]], references: Mapping[str, views.Row]) -> None:
    figure = go.Figure()
    for name, (widths, values) in found.items():
        figure.add_scatter(x=widths, y=values, name=name, mode="lines+markers", line=_line(name, list(found), {}))
    for name, row in references.items():
        figure.add_hline(row["mprec@10"], line={"dash": "dot", "color": GRAY}, annotation_text=name,
                         annotation_position="bottom right")
    width_axis(figure, (int(width) for widths, _ in found.values() for width in widths))
    _show(figure, "mprec@10, in percent, over the width d", "d", "runs-precision-width", len(found), "; ".join(
        f"{name} {values[0]:.1f} at {widths[0]} to {values[-1]:.1f} at {widths[-1]}"
        for name, (widths, values) in found.items()))
    table_behind("mprec@10 by width as a table", pd.DataFrame(
        [(name, width, round(value, 2)) for name, curve in found.items() for width, value in zip(*curve, strict=True)],
        columns=["Run", "d", "mprec@10"]))


def _line(name: str, names: Sequence[str], references: Mapping[str, views.Row]) -> dict[str, Any]:
    """Colour and dash; gray for what needs no training."""
    if name in references:
        return {"color": GRAY, "dash": ("dot", "dash")[list(references).index(name)], "width": 2}
    return line_style(names.index(name))


def _show(figure: go.Figure, title: str, x_title: str, key: str, lines: int, said: str) -> None:
    figure.update_layout(title={"text": title, "font": {"size": 14}}, height=300 + 20 * lines, showlegend=True,
                         margin={"l": 8, "r": 8, "t": 36, "b": 8}, hovermode="x unified",
                         legend={"yref": "container", "y": 0, "yanchor": "bottom", "x": 0}, xaxis_title=x_title)
    figure.update_yaxes(tickformat=".4~g")
    draw(figure, key, f"{title}: {said}.")
