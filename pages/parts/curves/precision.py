"""Precision of the nearest neighbors: mprec@K of runs by K and by width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.exploration import precision as views
from udml_core.results.embedding_words import words_of
from udml_core.runs import Run, Spec

from ..draw.figures import GRAY, draw, line_style, titled, width_axis
from ..draw.tables import table_behind
from ..shell.run_status import run_titles, title_of

MOST_LINES = 16
"""Most lines of a chart, which color and dash distinguish."""


def precision_of(runs: Sequence[Run]) -> None:
    """Chart mprec@K by K and, if widths differ, mprec@10 by width.

    Args:
        runs: The runs; only runs that search the same test images as the first are drawn.
    """
    evaluated = [(run, run.spec(), rows) for run in runs if (rows := run.evaluation()) and "mprec@10" in rows["final"]]
    if not evaluated:
        return
    st.subheader("How pure are the nearest neighbors?")
    first = evaluated[0][1]
    comparable = [(run, spec, rows) for run, spec, rows in evaluated
                  if (spec.fingerprint, spec.split) == (first.fingerprint, first.split)][:MOST_LINES]
    if len(comparable) < len(evaluated):
        st.caption(f"The charts show {len(comparable)} of the {len(evaluated)} chosen runs: at most {MOST_LINES} "
                   "runs that search the same test images as the first.")
    titles = [_title(spec) for _, spec, _ in comparable]
    finals = [rows["final"] for *_, rows in comparable]
    references = _references([(spec, rows) for _, spec, rows in comparable])
    if not all(len(views.precision_over_depth(row)) for row in finals):
        st.info("Some of these runs were evaluated before mprec@K was kept for every K. Evaluate them again: "
                "`python -m udml_core evaluate RUN --again`.", icon=":material/lightbulb:")
    left, right = st.columns(2)
    with left:
        _by_depth(list(run_titles([run for run, *_ in comparable]).values()), finals, references)
    if len({row["dimension"] for row in finals}) > 1:
        with right:
            _by_width(views.precision_over_width(titles, finals), references)
    st.caption("mprec@K is the share of an image's K nearest test images that have its class, averaged over the images "
               "of a class, then over the classes. A flat curve means that far neighbors still share the class; in "
               "a falling curve only the nearest neighbors do.")


def _title(spec: Spec) -> str:
    """Return a run's title without width and seed."""
    fields = {name: value for name, value in spec.fields.items() if name != "dimension"}
    return title_of(spec.model_copy(update={"fields": fields, "seed": 0}), with_dataset=False)


def _references(evaluated: Sequence[tuple[Spec, Mapping[str, Any]]]) -> dict[str, Mapping[str, Any]]:
    """Return the baselines without training.

    Returns:
        Frozen features if the runs share an encoder, and PCA if they also share a width and a distance; runs of
        versions before 0.3 evaluated it without centering.
    """
    first = evaluated[0][1]
    if len({spec.encoder.key for spec, _ in evaluated}) > 1:
        return {}
    pca = [name for name in ("centered pca", "pca")
           if name in first and all(_mprec(rows, name) == _mprec(first, name) for _, rows in evaluated)]
    return {words_of(name).title: first[name] for name in ("frozen", *pca)}


def _mprec(rows: Mapping[str, Any], name: str) -> tuple[float | None, float | None]:
    """Return the dimension of an embedding and its mprec@10, which differs by distance."""
    row = rows.get(name, {})
    return row.get("dimension"), row.get("mprec@10")


def _by_depth(names: Sequence[str], rows: Sequence[views.Row], references: Mapping[str, views.Row]) -> None:
    curves = {name: curve for name, row in [*zip(names, rows, strict=True), *references.items()]
              if len(curve := views.precision_over_depth(row))}
    if not curves:
        return
    figure = go.Figure()
    for name, curve in curves.items():
        figure.add_scatter(x=list(range(1, len(curve) + 1)), y=curve, name=name, mode="lines",
                           line=_line(name, names, references))
    _show(figure, "mprec@K by K", "K, nearest images", "runs-precision-depth", len(curves),
          "; ".join(f"{name} {curve[0]:.1f} to {curve[-1]:.1f}" for name, curve in curves.items()))
    table_behind("mprec@K as a table", pd.DataFrame({"K": range(1, 1 + max(map(len, curves.values())))}).join(
        pd.DataFrame({name: pd.Series(curve.round(1)) for name, curve in curves.items()})))


def _by_width(curves: Mapping[str, tuple[Array, Array]], references: Mapping[str, views.Row]) -> None:
    figure = go.Figure()
    for name, (widths, values) in curves.items():
        figure.add_scatter(x=widths, y=values, name=name, mode="lines+markers", line=_line(name, list(curves), {}))
    for name, row in references.items():
        figure.add_hline(row["mprec@10"], line={"dash": "dot", "color": GRAY}, annotation_text=name,
                         annotation_position="bottom right")
    width_axis(figure, (int(width) for widths, _ in curves.values() for width in widths))
    _show(figure, "mprec@10 by dimension d", "dimension d", "runs-precision-width", len(curves), "; ".join(
        f"{name} {values[0]:.1f} at {widths[0]} to {values[-1]:.1f} at {widths[-1]}"
        for name, (widths, values) in curves.items()))
    table_behind("mprec@10 by dimension as a table", pd.DataFrame(
        [(name, width, round(value, 1)) for name, curve in curves.items() for width, value in zip(*curve, strict=True)],
        columns=["Run", "d", "mprec@10"]))


def _line(name: str, names: Sequence[str], references: Mapping[str, views.Row]) -> dict[str, Any]:
    """Return color and dash of a line; baselines without training are gray."""
    if name in references:
        return {"color": GRAY, "dash": ("dot", "dash")[list(references).index(name)], "width": 2}
    return line_style(names.index(name))


def _show(figure: go.Figure, title: str, x_title: str, key: str, lines: int, summary: str) -> None:
    titled(figure, title, 300 + 20 * lines, showlegend=True, hovermode="x unified", xaxis_title=x_title,
           legend={"yref": "container", "y": 0, "yanchor": "bottom", "x": 0})
    figure.update_yaxes(title=f"{title.split()[0]}, %", tickformat=".4~g")
    draw(figure, key, f"{title}: {summary}.")
