"""The failure atlas: queries whose nearest image is of another class, by what they were taken for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from pages.parts.base.address import choice_from_address, join_indices, write_address
from pages.parts.components.gallery import gallery, tile_of
from pages.parts.kit.downloads import Download, share, table_file
from pages.parts.kit.figures import draw, table_behind
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.exploration.failures import Atlas, History, Pair, last_right, right_since
from udml_core.retrieval import Retrieval, Which

MOMENTS: dict[Which, str] = {"final": "after training", "initial": "before training"}
MOST_CLASSES = 30
OFFERED = 200
WRITTEN = 16
"""Up to so many classes the map has its numbers written in."""
LIGHT, DARK = ("#e3eef7", "#0072b2"), ("#17293a", "#56b4e9")
MOST_QUERIES = 300


def failures(opened: Retrieval) -> int | None:
    """Both atlases, the pair that is looked at, and its queries; the image that was just picked."""
    atlases, history = _looked_through(opened)
    _numbers(atlases)
    which: Which = st.segmented_control(
        "Queries that miss", list(MOMENTS), default=choice_from_address("misses", MOMENTS, "final"), required=True,
        format_func=MOMENTS.__getitem__, key="failures-which") or "final"
    write_address("misses", which, "final")
    atlas = atlases[which]
    if not atlas.pairs:
        st.success("Every test image's nearest other one is of its own class.", icon=":material/celebration:")
        return None
    pair = _wanted(atlas)
    _pairs(opened.dataset, atlas, pair, which)
    picked = _queries(opened.dataset, atlas, pair, history)
    _by_class(opened.dataset, atlases)
    misses = np.flatnonzero(atlas.misses)
    share([Download("Queries that miss", "failures.csv", "text/csv", lambda: table_file(
        opened.dataset, atlas.queries[misses], {
            "taken for": np.array(opened.dataset.class_names)[atlas.taken_for[misses]],
            "nearest": atlas.nearest[misses],
            "became right": np.array(became(history, atlas.queries[misses]))}))], "failures")
    return picked


def _looked_through(opened: Retrieval) -> tuple[dict[Which, Atlas], History]:
    """Both atlases and the history; the first time a bar shows how far they are."""
    bar = st.empty()

    def report(share: float, what: str) -> None:
        bar.progress(min(1.0, share), f"{what.capitalize()} …")

    try:
        return {which: opened.atlas(which, report) for which in MOMENTS}, opened.history(report)
    finally:
        bar.empty()


def _numbers(atlases: dict[Which, Atlas]) -> None:
    before, after = atlases["initial"], atlases["final"]
    mended = int((before.misses & ~after.misses).sum())
    broken = int((~before.misses & after.misses).sum())
    gain = f"{100 * (after.recall - before.recall):+.1f} points"
    with st.container(horizontal=True, gap="large"):
        st.metric("Recall@1", f"{100 * after.recall:.1f} %", gain, width="content",
                  help="Test images whose nearest other test image is of their class, after training.")
        st.metric("Misses", f"{after.misses.sum():,}", f"of {len(after.queries):,}", width="content",
                  delta_color="off", delta_arrow="off", help="Of all test images, after training.")
        st.metric("Mended", f"{mended:,}", help="Misses before training that are hits after it.", width="content")
        st.metric("Broken", f"{broken:,}", help="Hits before training that are misses after it.", width="content")


def _wanted(atlas: Atlas) -> Pair:
    """The pair in the address, else the most frequent one."""
    named = st.query_params.get("pair", "")
    return next((one for one in atlas.pairs if _token(one) == named), atlas.pairs[0])


def _pairs(dataset: Dataset, atlas: Atlas, pair: Pair, which: Which) -> None:
    """The confused pairs as a sorted list, and as a map of the classes where they are few."""
    names = dataset.class_names
    sizes = np.bincount(atlas.classes, minlength=len(names))
    table = pd.DataFrame({"Class": [names[one.own] for one in atlas.pairs],
                          "Taken for": [names[one.other] for one in atlas.pairs],
                          "Queries": [one.count for one in atlas.pairs],
                          "Of the class": [f"{100 * one.count / sizes[one.own]:.1f} %" for one in atlas.pairs]})
    classes = np.union1d(atlas.classes, atlas.taken_for)
    few = len(classes) <= MOST_CLASSES
    left, right = st.columns([3, 2]) if few else (st.container(), st.container())
    if few:
        with left:
            _heat_map(names, classes, atlas, _token(pair))
    key = f"failures-{which}-{st.session_state.setdefault('failures-turn', 0)}"
    with right:
        _pair_box(names, atlas, pair)
        st.dataframe(table, hide_index=True, key=key, height=360, selection_mode="single-row",
                     on_select=lambda: _row_chosen(key, atlas.pairs),
                     selection_default={"selection": {"rows": [atlas.pairs.index(pair)]}})


def _pair_box(names: tuple[str, ...], atlas: Atlas, pair: Pair) -> None:
    """The opened pair, and others to open, also by keyboard."""
    offered = list(dict.fromkeys([*atlas.pairs[:OFFERED], pair]))
    words = {_token(one): f"{names[one.own]} taken for {names[one.other]} · {one.count:,}" for one in offered}
    st.session_state["failures-pair"] = _token(pair)
    st.selectbox("Confused pair, most frequent first", list(words), format_func=words.__getitem__, key="failures-pair",
                 on_change=lambda: _open(st.session_state["failures-pair"]))


def _token(pair: Pair) -> str:
    """A pair as the address has it."""
    return join_indices((pair.own, pair.other))


def _open(token: str) -> None:
    """Open a pair that was chosen outside the table, which is drawn anew with its row selected."""
    write_address("pair", token)
    st.session_state["failures-turn"] += 1


def _row_chosen(key: str, pairs: tuple[Pair, ...]) -> None:
    rows = st.session_state[key].selection.rows
    if rows:
        write_address("pair", _token(pairs[rows[0]]))


def _heat_map(names: tuple[str, ...], classes: Array, atlas: Atlas, opened: str) -> None:
    """Counts by class and what it was taken for; a new chart for each opened pair, so that it selects nothing itself.
    """
    counts = np.full((len(classes), len(classes)), np.nan)
    for pair in atlas.pairs:
        counts[np.searchsorted(classes, pair.own), np.searchsorted(classes, pair.other)] = pair.count
    words = [names[one] for one in classes]
    few_to_many = DARK if st.context.theme.type == "dark" else LIGHT
    figure = go.Figure(go.Heatmap(z=counts, x=words, y=words, colorscale=few_to_many, xgap=2, ygap=2, hoverinfo="skip",
                                  texttemplate="%{z}" if len(classes) <= WRITTEN else None, showscale=False))
    figure.add_scatter(x=[names[pair.other] for pair in atlas.pairs], y=[names[pair.own] for pair in atlas.pairs],
                       mode="markers", marker={"size": 22, "opacity": 0}, unselected={"marker": {"opacity": 0}},
                       showlegend=False,
                       customdata=[_token(pair) for pair in atlas.pairs], text=[pair.count for pair in atlas.pairs],
                       hovertemplate="%{y} taken for %{x}: %{text}<extra></extra>")
    figure.update_layout(title={"text": "A row's class, taken for a column's", "font": {"size": 14}}, height=450,
                         margin={"l": 8, "r": 8, "t": 36, "b": 8})
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    most = atlas.pairs[0]
    key = f"failures-cells-{opened}"
    draw(figure, key, f"Confused pairs of {len(classes)} classes. Most often {names[most.own]} is taken "
         f"for {names[most.other]}, {most.count} times.", lambda: _cell_chosen(key))


def _cell_chosen(key: str) -> None:
    points = st.session_state[key].selection.points
    if points:
        _open(str(points[0]["customdata"]))


def _queries(dataset: Dataset, atlas: Atlas, pair: Pair, history: History) -> int | None:
    """The queries of a pair beside what each was taken for, in the same order."""
    own, other = dataset.class_names[pair.own], dataset.class_names[pair.other]
    rows = atlas.members(pair.own, pair.other)
    shown = rows[:MOST_QUERIES]
    words = became(history, atlas.queries[shown])
    st.subheader(f"{own} taken for {other}")
    cut = f" The first {MOST_QUERIES} are drawn." if len(rows) > len(shown) else ""
    st.caption(f"{len(rows):,} queries (★), each with the epoch from which on its nearest in the fixed sample of "
               f"{len(history.indices):,} test images shares its class, or in which that was lost; and, under the same "
               f"number (✕), what is nearest to it among all test images. Click any to ask with it.{cut}")
    queries = [tile_of(dataset, int(image), "query", f"{place}. {word}")
               for place, (image, word) in enumerate(zip(atlas.queries[shown], words, strict=True), 1)]
    nearest = [tile_of(dataset, int(image), "miss", f"nearest to {place}.")
               for place, image in enumerate(atlas.nearest[shown], 1)]
    left, right = st.columns(2, gap="large")
    with left:
        first = gallery(dataset, queries, f"{own} taken for {other}: the queries", "failures-own", 128, height=520)
    with right:
        second = gallery(dataset, nearest, f"{own} taken for {other}: the nearest", "failures-other", 128, height=520)
    return first if first is not None else second


def became(history: History, images: Array) -> list[str]:
    """For each image, from which epoch on its nearest in the sample shares its class."""
    if history.right is None:
        return ["no classes"] * len(images)
    since, last = right_since(history.right), last_right(history.right)
    return [_fate(history.epochs, since, last, history.row(int(image))) for image in images]


def _fate(epochs: tuple[int, ...], since: Array, last: Array, row: int | None) -> str:
    if row is None:
        return "not in the sample"
    if since[row] == 0:
        return "always right"
    if since[row] < len(epochs):
        return f"right from epoch {epochs[since[row]]}"
    return "never right" if last[row] < 0 else f"lost in epoch {epochs[last[row] + 1]}"


def _by_class(dataset: Dataset, atlases: dict[Which, Atlas]) -> None:
    count = len(dataset.class_names)
    before, after = (100 * atlases[which].recall_by_class(count) for which in ("initial", "final"))
    tested = np.flatnonzero(~np.isnan(after))
    sizes = np.bincount(atlases["final"].classes, minlength=count)
    table_behind("Recall@1 of every class", pd.DataFrame({
        "Class": [dataset.class_names[one] for one in tested], "Test images": sizes[tested],
        "Before training, %": before[tested].round(1), "After training, %": after[tested].round(1)}
    ).sort_values("After training, %"))
