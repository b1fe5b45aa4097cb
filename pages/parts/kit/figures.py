"""Charts, each with the table behind it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

DASHES = ("solid", "dash", "dot", "dashdot")
GRAY = "#8b9098"
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
CURVE_WORDS = {
    "loss": "Mean loss", "mean weight": "Mean weight of a triplet",
    "violating": "Share of triplets or pairs that violate", "sample map@r": "MAP@R on a sample of the test half",
    "sample recall@1": "Recall@1 on a sample of the test half", "validation map@r": "MAP@R on the validation images",
    "given recall@1": "Recall@1 among the given labels",
    "effective rank": "Effective rank", "training effective rank": "Effective rank of training images",
    "neighbor stability": "Neighbors kept since last epoch",
    "sample knn@200": "Weighted kNN accuracy on the sample",
    "positive similarity": "Mean cosine of an image's two views", "mean similarity": "Mean cosine of any two views",
    "latent positive similarity": "Mean cosine of two views, z", "latent mean similarity": "Mean cosine of any two, z",
    "log sigma": "Mean log σ", "mutual pairs": "Mutual pairs", "proxy spread": "Mean distance of two proxies",
}
HIDDEN = ("epoch", "seconds")
EVALUATION_ROWS = ("recall@1", "recall@2", "recall@4", "recall@8", "mprec@10", "map@r", "knn@200", "linear probe",
                   "nmi", "f", "purity", "trustworthiness", "continuity", "effective rank",
                   "neighbors kept from frozen", "dimension", "images")


def curve_names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The curves that rows hold, known ones first."""
    present = list(dict.fromkeys(name for row in rows for name in row if name not in HIDDEN))
    return sorted(present, key=lambda name: list(CURVE_WORDS).index(name) if name in CURVE_WORDS else len(CURVE_WORDS))


def draw(figure: go.Figure, key: str, alt: str, on_click: Callable[[], None] | None = None) -> None:
    """A chart as wide as its place, which can be saved as an SVG or PNG file; its points may be clicked."""
    kind = st.session_state.get("chart-format", "svg")
    st.plotly_chart(figure, key=key, width="stretch", alt=alt, on_select=on_click or "ignore", selection_mode="points",
                    config={"displaylogo": False, "modeBarButtons": [["toImage"]],
                            "toImageButtonOptions": {"format": kind, "filename": key}})


def line_style(place: int) -> dict[str, str]:
    """Colour and dash, which tell 16 lines apart."""
    return {"color": COLORS[place % 4], "dash": DASHES[(place + place // 4) % 4]}


def width_axis(figure: go.Figure, widths: Iterable[int]) -> None:
    """A logarithmic axis below a chart that marks the widths of embeddings."""
    marks = sorted(set(widths))
    figure.update_xaxes(type="log", tickvals=marks, ticktext=list(map(str, marks)))


def curve(name: str, runs: Mapping[str, Sequence[Mapping[str, Any]]], key: str, cursor: float | None = None,
          height: int = 230) -> None:
    """One curve over the epochs, a line a run, told apart by colour and dash; a line marks the cursor's epoch."""
    figure = go.Figure()
    last = []
    for position, (run, rows) in enumerate(runs.items()):
        points = [(row["epoch"], row[name]) for row in rows if row.get(name) is not None]
        if points:
            figure.add_scatter(x=[x for x, _ in points], y=[y for _, y in points], name=run, mode="lines+markers",
                               line=line_style(position))
            last.append(f"{run} {points[0][1]:.3g} to {points[-1][1]:.3g}")
    title = CURVE_WORDS.get(name, name.capitalize())
    figure.update_layout(title={"text": title, "font": {"size": 14}}, height=height, showlegend=len(runs) > 1,
                         margin={"l": 8, "r": 8, "t": 36, "b": 8}, legend={"orientation": "h", "y": -0.45},
                         hovermode="x unified")
    figure.update_yaxes(tickformat=".4~g")
    figure.update_xaxes(title="epoch", dtick=1 if max(map(len, runs.values()), default=0) <= 12 else None)
    if cursor is not None:
        figure.add_vline(x=cursor, line={"width": 2, "dash": "dot", "color": GRAY})
    draw(figure, key, f"{title} over the epochs: {'; '.join(last)}.")


def lines(x: Sequence[float], y: Sequence[float], title: str, x_title: str, key: str, cursor: float | None = None,
          logarithmic: bool = False) -> None:
    """One small line; a dotted one marks where a slider stands."""
    figure = go.Figure(go.Scatter(x=list(x), y=list(y), mode="lines+markers", line={"color": COLORS[0]}))
    figure.update_layout(title={"text": title.capitalize(), "font": {"size": 14}}, height=220, xaxis_title=x_title,
                         margin={"l": 8, "r": 8, "t": 36, "b": 8})
    figure.update_yaxes(**({"type": "log", "dtick": 1} if logarithmic else {"type": "linear"}))
    if cursor is not None:
        figure.add_vline(x=cursor, line={"width": 2, "dash": "dot", "color": GRAY})
    draw(figure, key, f"{title} over {x_title}: {y[0]:.4g} at {x[0]:g}, {y[-1]:.4g} at {x[-1]:g}.")


def histogram(edges: Sequence[float], counts: Sequence[int], title: str, key: str, cursor: float) -> None:
    """How many values lie between each edge and the next; a dotted line marks where a slider stands."""
    middles = [(low + high) / 2 for low, high in pairwise(edges)]
    figure = go.Figure(go.Bar(x=middles, y=list(counts), marker={"color": COLORS[0]}))
    figure.update_layout(title={"text": title, "font": {"size": 14}}, height=200, bargap=0.05,
                         margin={"l": 8, "r": 8, "t": 36, "b": 8})
    figure.update_xaxes(range=[edges[0], edges[-1]])
    figure.add_vline(x=cursor, line={"width": 2, "dash": "dot", "color": GRAY})
    most = max(range(len(counts)), key=counts.__getitem__)
    draw(figure, key, f"{title}: most, {counts[most]}, between {edges[most]:g} and {edges[most + 1]:g}; the slider is "
         f"at {cursor:g}.")


def ranked(values: Sequence[float], title: str, x_title: str, key: str) -> None:
    """Values from the first rank to the last, on a logarithmic scale."""
    figure = go.Figure(go.Bar(x=list(range(1, len(values) + 1)), y=list(values), marker={"color": COLORS[0]}))
    figure.update_layout(title={"text": title, "font": {"size": 14}}, height=200, xaxis_title=x_title, bargap=0.2,
                         margin={"l": 8, "r": 8, "t": 36, "b": 8})
    figure.update_yaxes(type="log", dtick=1, range=[-0.2, math.log10(max(values)) + 0.1])
    draw(figure, key, f"{title}: from {values[0]:g} for the first to {values[-1]:g} for number {len(values)}.")


def bars(names: Sequence[str], values: Sequence[float], title: str, key: str) -> None:
    """A bar chart with names that can be read."""
    figure = go.Figure(go.Bar(x=list(values), y=list(names), orientation="h", marker={"color": COLORS[0]}))
    figure.update_layout(title={"text": title, "font": {"size": 14}}, height=max(160, 24 * len(names) + 70),
                         margin={"l": 8, "r": 8, "t": 36, "b": 8})
    figure.update_yaxes(autorange="reversed")
    draw(figure, key, f"{title}: from {min(values)} to {max(values)}.")


def table_behind(label: str, frame: pd.DataFrame) -> None:
    """The numbers of a chart, folded away."""
    with st.expander(label, icon=":material/table:"):
        st.dataframe(frame, hide_index=True, width="stretch")


def evaluation_table(evaluations: Mapping[str, Mapping[str, Mapping[str, float | None]]]) -> pd.DataFrame:
    """Measures as rows; initial, frozen, PCA and final as columns, of each run if there are several."""
    columns = {}
    for run, evaluation in evaluations.items():
        for name, row in evaluation.items():
            title = {"pca": "PCA, same width", "latent": "Final, latent z"}.get(name, name.capitalize())
            columns[title if len(evaluations) == 1 else f"{run}: {title}"] = row
    present = [name for name in EVALUATION_ROWS if any(row.get(name) is not None for row in columns.values())]
    words = pd.Index([MEASURE_WORDS.get(name, name.capitalize()) for name in present], name="Measure")
    return pd.DataFrame({title: [row.get(name) for name in present] for title, row in columns.items()}, index=words)


MEASURE_WORDS = {"mprec@10": "mprec@10", "map@r": "MAP@R", "knn@200": "Weighted kNN, k = 200", "nmi": "NMI",
                 "f": "Pairwise F",
                 "neighbors kept from frozen": "10 nearest kept from frozen", "dimension": "Width",
                 "images": "Images searched"}
