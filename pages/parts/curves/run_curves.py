"""Curves of runs over their epochs, in percent, with frozen features and PCA as lines to beat."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from udml_core.base.errors import UserError
from udml_core.numerics.measures import curve_of
from udml_core.results.embedding_words import words_of
from udml_core.runs import Run
from udml_core.runs.baselines import JUDGED, Baselines, baselines_of, read_baselines
from udml_core.runs.selection import ERROR, FIRST_OPINION, OPINION, TRAINED_OPINION

from ..draw.figures import BREAK, curve_names, draw, interval_band, line_style, titled
from ..draw.palette import BEFORE, percent
from ..draw.tables import table_behind
from ..shell.cached import dataset_of
from ..shell.run_hash import RUN_HASH
from ..shell.run_status import run_titles

DASHES = {"frozen": "dot", "centered pca": "dash"}
"""How the line of a baseline is drawn."""
LABEL_WIDTH = 54
"""Pixels beside a chart for the labels of the baselines, which would cover the curves inside it."""
OPINIONS = (OPINION, FIRST_OPINION)
"""Curves of differences to the frozen features, which lie at 0."""
OPINION_WORDS = ("Second opinion: an encoder that took no part compares what each epoch finds with what the plain "
                 "search finds. Above 0 the images found are more similar to the query. No labels are used.")
SHOWN_FIRST = ("sample map@r", "sample recall@1", *OPINIONS, TRAINED_OPINION)
A_ROW = 3
FEWEST_POINTS = 3
NO_CURVES = ("this run was", "these runs were")
LOSS = "loss"
"""The curve whose scale depends on the method."""
JUDGE = "Compare MAP@R first: it judges the whole ranking, R@1 only the nearest image."


def show_curves(runs: Sequence[Run], key: str) -> None:
    """Show a small chart for each curve, with a line for each run and the baselines.

    A curve of fewer than three points is listed in the table only, and so are, of several runs, the losses of different
    methods and a curve that only one run has.
    """
    names, whole = run_titles(runs), judges_all(runs)
    metrics = {names[run.id]: shown_rows(run.metrics()[0]) for run in runs}
    rows = [row for of_run in metrics.values() for row in of_run]
    if not rows:
        st.info("The first epoch has not ended yet. The curves appear here when it ends.", icon=":material/schedule:")
        return
    drawn = [name for name in curve_names(rows) if any(
        sum(row.get(name) is not None for row in of_run) >= FEWEST_POINTS for of_run in metrics.values())]
    of_one = alone(metrics)
    of_methods = [name for name in drawn if name == LOSS and len({run.spec().method for run in runs}) > 1]
    drawn = [name for name in drawn if name not in {*of_methods, *of_one}]
    if not drawn:
        st.caption(f"No curves: {NO_CURVES[len(runs) > 1]} computed at once, or in fewer than {FEWEST_POINTS} epochs.")
        if max(map(len, metrics.values())) < 2:
            return
    drawn.sort(key=lambda name: SHOWN_FIRST.index(name) if name in SHOWN_FIRST else len(SHOWN_FIRST))
    beaten = common_baselines(runs)
    for start in range(0, len(drawn), A_ROW):
        for column, name in zip(st.columns(A_ROW), drawn[start : start + A_ROW], strict=False):
            with column:
                _chart(name, curve_title(name, whole), metrics, beaten, f"{key}-{name}")
    if any(name in drawn for name in OPINIONS):
        st.caption(f"{OPINION_WORDS} {sample_words(runs)}")
    if of_methods and LOSS not in of_one:
        st.caption("The mean loss is not drawn: losses of different methods have different scales. See the table.")
    if of_one:
        st.caption("Curves that only one of these runs has are in the table.")
    if drawn and beaten:
        st.caption(baseline_words(beaten, len(runs)))
    elif len(runs) > 1 and any(name in drawn for name in SHOWN_FIRST[:2]):
        st.caption("Frozen features and PCA are not drawn, because these runs differ in data set, split, backbone or "
                   "dimension. Choose one run to see its own.")
    table_behind("The curves as a table", curve_table(metrics, whole))


def sample_words(runs: Sequence[Run]) -> str:
    """Say on how many images the second opinion of each epoch is measured, and what its interval says."""
    counts = set[int]()
    with suppress(UserError):  # the data set of a run of an earlier version is missing
        counts = {len(run.sample_indices()) for run in runs}
    few, most = min(counts, default=0), max(counts, default=0)
    images = "" if not most else f" of {few:,} images" if few == most else f" of {few:,} to {most:,} images"
    banded = all(f"{OPINIONS[0]}{ERROR}" in row for run in runs for row in run.metrics()[0] if OPINIONS[0] in row)
    interval = ("the band is its 95 % interval, and a difference whose band holds 0 may be chance" if banded else
                "by an earlier version without an interval, so a small difference may be chance")
    return f"Measured on a sample{images}; {interval}. The verdict decides: it compares all images that are searched."


def alone(metrics: Mapping[str, Sequence[Mapping[str, Any]]]) -> set[str]:
    """Return the curves that only one of several runs has; a run without any curve does not count.

    Args:
        metrics: Rows of curves by the run's name.
    """
    curves = [{name for row in rows for name, value in row.items() if value is not None}
              for rows in metrics.values() if rows]
    return {name for name, count in Counter(chain(*curves)).items() if count == 1} if len(curves) > 1 else set()


def curve_table(metrics: Mapping[str, Sequence[Mapping[str, Any]]], whole: bool) -> pd.DataFrame:
    """Return the curves of all runs as one table with the titles of the charts.

    Args:
        metrics: Rows as `shown_rows` returns them, by the run's name.
        whole: Whether the sample is the whole test half.
    """
    table = pd.concat([pd.DataFrame(rows).assign(Run=name) for name, rows in metrics.items()])
    table = table[[name for name in table.columns if not name.endswith(ERROR)]]
    titles = {name: f"{curve_title(name, whole)}{', %' if curve_of(name).is_percent else ''}" for name in table.columns
              if name != "Run"}
    digits = {name: 1 if curve_of(name).is_percent else 4 for name in titles}
    return table[["Run", *titles]].round(digits).rename(columns=titles)


def judges_all(runs: Sequence[Run]) -> bool:
    """Return whether the images that the curves judge after every epoch are all test images of every run."""
    evaluations = [run.evaluation() for run in runs]
    return all(evaluation is not None and evaluation["final"].get("images") == min(JUDGED, len(run.sample_indices()))
               for run, evaluation in zip(runs, evaluations, strict=True))


def curve_title(name: str, whole: bool) -> str:
    """Return the title of a curve.

    Args:
        name: The curve's name in the metrics.
        whole: Whether its sample is the whole test half.
    """
    title = curve_of(name).name
    return title.replace(" on a sample of the test half", " on all test images") if whole else title


def baseline_words(beaten: Baselines, count: int) -> str:
    """Explain the gray lines, and why several runs may have no common PCA."""
    lines = "the backbone's frozen features (dotted)"
    if "centered pca" in beaten:
        return f"Gray lines: {lines} and centered PCA of the same dimension (dashed) on the same images. {JUDGE}"
    missing = " PCA is not drawn, because these runs differ in dimension or distance." if count > 1 else ""
    return f"Gray line: {lines} on the same images. {JUDGE}{missing}"


def shown_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of curves with shares in percent."""
    return [{name: 100 * value if value is not None and curve_of(name).is_percent else value
             for name, value in row.items()} for row in rows]


def common_baselines(runs: Sequence[Run]) -> Baselines:
    """Return the baselines that hold for all runs: the same images, backbone and measure; PCA also the same dimension.

    Returns:
        Measures from 0 to 1 by baseline; empty if the runs have none in common.
    """
    known = [_baselines(run, len(run.epoch_numbers()) > 1) for run in runs]
    first = known[0] if known else None
    if first is None:
        return {}
    specs = [run.spec() for run in runs]
    images = {(spec.fingerprint, spec.split, spec.encoder.key, min(JUDGED, len(run.sample_indices())))
              for spec, run in zip(specs, runs, strict=True)}
    if len(images) > 1:
        return {}
    return {name: row for name, row in first.items()
            if all(other is not None and _are_equal(row, other.get(name)) for other in known)}


def _are_equal(row: Mapping[str, float], other: Mapping[str, float] | None) -> bool:
    """Return whether the measures of a baseline are equal up to half of the shown decimal."""
    return other is not None and row.keys() == other.keys() and all(
        row[name] == other[name] or (None not in (row[name], other[name])
        and math.isclose(row[name], other[name], abs_tol=5e-4)) for name in row)


@st.cache_data(max_entries=256, show_spinner=False, hash_funcs=RUN_HASH)
def _computed(run: Run) -> Baselines | None:
    """Return the baselines of a run that has not stored them, computed once from its stored features."""
    try:
        return baselines_of(run, dataset_of(run))
    except UserError:  # the data set is missing or has changed
        return None


def _baselines(run: Run, has_trained: bool) -> Baselines | None:
    """Return a run's stored baselines, or compute them; None before the first epoch."""
    stored = read_baselines(run)
    return stored if stored is not None or not has_trained else _computed(run)


def _chart(name: str, title: str, metrics: Mapping[str, list[dict[str, Any]]], beaten: Baselines, key: str) -> None:
    """Draw one curve of all runs, with the baselines that have this measure."""
    figure = go.Figure()
    unit, last = " %" if curve_of(name).is_percent else "", []
    for number, (run, rows) in enumerate(metrics.items()):
        points = [(row["epoch"], row[name]) for row in rows if row.get(name) is not None]
        if points:
            interval_band(figure, rows, name, line_style(number)["color"])
            figure.add_scatter(x=[x for x, _ in points], y=[y for _, y in points], name=run,
                               mode="lines+markers" if len(points) >= FEWEST_POINTS else "markers",
                               line=line_style(number), hovertemplate="%{y:.1f} %" if unit else "%{y:.4g}")
            last.append(f"{run} {points[0][1]:.3g} to {points[-1][1]:.3g}{unit}")
    drawn = {"frozen": 0.0} if name in (*OPINIONS, TRAINED_OPINION) else {
        baseline: 100 * row[name] for baseline, row in beaten.items()
        if row.get(name) is not None and baseline in DASHES}
    for baseline, value in drawn.items():
        label, shown = words_of(baseline).short, "0" if name in (*OPINIONS, TRAINED_OPINION) else percent(value)
        figure.add_hline(value, line={"color": BEFORE, "dash": DASHES[baseline], "width": 2})
        figure.add_annotation(text=f"{label}{BREAK}{shown}", font={"size": 11}, showarrow=False, align="left",
                              x=1, xref="paper", xanchor="left", y=value,  # close lines keep their labels apart
                              yanchor="bottom" if value == max(drawn.values()) else "top")
        figure.add_scatter(x=[0], y=[value], mode="markers", marker={"opacity": 0}, showlegend=False,
                           hoverinfo="skip")  # keeps the line inside the chart's range
        last.append(f"{label} {shown}")
    titled(figure, title, 240 if len(metrics) == 1 else 240 + 22 * len(metrics), hovermode="x unified",
           showlegend=len(metrics) > 1, margin_r=LABEL_WIDTH if drawn else 8,
           legend={"yref": "container", "y": 0, "yanchor": "bottom", "x": 0, "font": {"size": 11}})
    figure.update_yaxes(title=curve_of(name).axis_title, tickformat=".4~g")
    figure.update_xaxes(title="epoch", dtick=1 if max(map(len, metrics.values())) <= 12 else None)
    draw(figure, key, f"{title} over the epochs: {'; '.join(last)}.")
