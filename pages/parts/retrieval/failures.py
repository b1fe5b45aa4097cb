"""Failures of the search, grouped by the confused classes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.base.errors import counted
from udml_core.data.dataset import Dataset
from udml_core.exploration.failures import Atlas, ConfusedPair, NeighborHistory, hit_since, last_hit
from udml_core.numerics.measures import MEASURES
from udml_core.runs.search import TRAINED, Retrieval, Which, frame_words

from ..draw.downloads import Download, share, table_file
from ..draw.gallery import gallery, image_size, tile_of
from ..draw.palette import change_style, color_legend, percent, points
from ..draw.tables import table_behind
from ..shell.address import choice_from_address, write_address
from ..shell.cached import progress_bar
from ..shell.run_status import escaped
from .confused_pairs import choose_pair

MOST_QUERIES = 300
RIGHT = MEASURES["recall@1"]
SIDE, CELL, HEIGHT = 120, 160, 400
"""Width of an image at first, the pixels that are sent, and the height above which a gallery scrolls."""


def show_failures(retrieval: Retrieval, on_pick: Callable[[int], None]) -> None:
    """Show the failures, and the queries of a pair of confused classes.

    Args:
        retrieval: The search of a run.
        on_pick: Called with an image that is clicked.
    """
    atlases, history = _load(retrieval)
    with st.container(horizontal=True, gap="large", vertical_alignment="top", key="failures-numbers"):
        _show_numbers(atlases, retrieval.is_changed)
        which = _choose_embedding(retrieval)
    atlas = atlases[which]
    if gone := len(retrieval.split.test) - len(atlas.queries):
        st.caption(f"Left out: {counted(gone, 'test image')} that you excluded since this run was evaluated.")
    if not atlas.pairs:
        st.success("There are no misses: the nearest image of every test image has its class.",
                   icon=":material/celebration:")
        return
    left, right = st.columns(2, gap="medium")
    with left:
        pair = choose_pair(retrieval.dataset, atlas, which)
    with right:
        _show_queries(retrieval.dataset, atlas, pair, history, on_pick)
    _show_classes(retrieval.dataset, atlases)
    share([Download("Misses (CSV)", "failures.csv", "text/csv",
                    lambda: _misses_file(retrieval.dataset, atlas, history))], "failures")


def _choose_embedding(retrieval: Retrieval) -> Which:
    """Choose the embedding whose misses are shown; there is no choice if training changed nothing."""
    if not retrieval.is_changed:
        return "final"
    which: Which = st.segmented_control(
        "Misses", TRAINED[::-1], default=choice_from_address("misses", TRAINED, "final"), required=True,
        format_func=frame_words, key="failures-which") or "final"
    write_address("misses", which, "final")
    return which


def _load(retrieval: Retrieval) -> tuple[dict[Which, Atlas], NeighborHistory]:
    """Return the failures before and after training, and the history.

    A progress bar appears the first time.
    """
    with progress_bar() as report:
        return {which: retrieval.atlas(which, report) for which in TRAINED[::-1]}, retrieval.history(report)


def _show_numbers(atlases: dict[Which, Atlas], is_changed: bool) -> None:
    before, after = atlases["initial"], atlases["final"]
    fixed, missed = int((before.misses & ~after.misses).sum()), int(before.misses.sum())
    broken = int((~before.misses & after.misses).sum())
    change = 100 * (after.recall - before.recall)
    st.metric(RIGHT.plain, percent(100 * after.recall), f"{points(change)} against the start of training" if is_changed
              else None, width="content", **change_style(change),
              help="Share of test images whose nearest other test image has the same class, a hit, after training. The "
                   "training half is not searched.")
    st.metric("Misses", f"{after.misses.sum():,}", f"of {len(after.queries):,} test images", width="content",
              delta_color="off", delta_arrow="off",
              help="Test images whose nearest other test image has another class, after training.")
    if not is_changed:
        return
    st.metric("Fixed", f"{fixed:,}", f"of {counted(missed, 'miss')} before", width="content", delta_color="off",
              delta_arrow="off", help="Misses before training that are hits after training.")
    st.metric("Broken", f"{broken:,}", f"of {counted(len(before.queries) - missed, 'hit')} before", width="content",
              delta_color="off", delta_arrow="off", help="Hits before training that are misses after training.")


def _show_queries(dataset: Dataset, atlas: Atlas, pair: ConfusedPair, history: NeighborHistory,
                  on_pick: Callable[[int], None]) -> None:
    """Show the queries of a pair beside their nearest images, in the same order."""
    own, other = dataset.class_names[pair.own], dataset.class_names[pair.other]
    rows = atlas.members(pair.own, pair.other)
    shown = rows[:MOST_QUERIES]
    fates = describe_history(history, atlas.queries[shown])
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.markdown(f"#### {escaped(own)} mistaken for {escaped(other)}", width="content")
        image_size("failures-size", SIDE)
    queries = [tile_of(dataset, int(atlas.queries[row]), "query", f"{number} · {fate}")
               for number, (row, fate) in enumerate(zip(shown, fates, strict=True), 1)]
    nearest = [tile_of(dataset, int(atlas.nearest[row]), "miss", f"{number} · nearest")
               for number, row in enumerate(shown, 1)]
    left, right = st.columns(2, gap="small")
    with left:
        gallery(dataset, queries, f"{own} mistaken for {other}: queries", "failures-own", SIDE, height=HEIGHT,
                cell=CELL, on_pick=on_pick)
    with right:
        gallery(dataset, nearest, f"{own} mistaken for {other}: nearest images", "failures-other", SIDE, height=HEIGHT,
                cell=CELL, on_pick=on_pick)
    color_legend("query", "miss")
    cut = f" Only the first {MOST_QUERIES} are drawn." if len(rows) > len(shown) else ""
    st.caption(f"Left: {counted(len(rows), 'miss')} (★). Right: the nearest test image of each (✕), with the same "
               "number. An epoch says since when a query is a hit, or when it became a miss, in a search of the fixed "
               f"sample of {len(history.indices):,} test images. Click an image to search with it.{cut}")


def describe_history(history: NeighborHistory, images: Array) -> list[str]:
    """Describe for each image in which epoch it became a hit in the fixed sample."""
    if history.hits is None:
        return ["no classes"] * len(images)
    since, last = hit_since(history.hits), last_hit(history.hits)
    return [_fate(history.epochs, since, last, history.row(int(image))) for image in images]


def _fate(epochs: tuple[int, ...], since: Array, last: Array, row: int | None) -> str:
    if row is None:
        return "not in the sample"
    if since[row] == 0:
        return "always a hit"
    if since[row] < len(epochs):
        return f"hit from epoch {epochs[since[row]]}"
    return "never a hit" if last[row] < 0 else f"lost in epoch {epochs[last[row] + 1]}"


def _show_classes(dataset: Dataset, atlases: dict[Which, Atlas]) -> None:
    count = len(dataset.class_names)
    before, after = (100 * atlases[which].recall_by_class(count) for which in ("initial", "final"))
    tested = np.flatnonzero(~np.isnan(after))
    sizes = np.bincount(atlases["final"].classes, minlength=count)
    table_behind(f"{RIGHT.plain} in every class", pd.DataFrame({
        "Class": [dataset.class_names[label] for label in tested], "Test images": sizes[tested],
        "Before training, %": before[tested].round(1), "After training, %": after[tested].round(1)}
    ).sort_values("After training, %"))


def _misses_file(dataset: Dataset, atlas: Atlas, history: NeighborHistory) -> bytes:
    misses = np.flatnonzero(atlas.misses)
    return table_file(dataset, atlas.queries[misses], {
        "mistaken for": np.array(dataset.class_names)[atlas.nearest_classes[misses]],
        "nearest": atlas.nearest[misses],
        "became a hit": np.array(describe_history(history, atlas.queries[misses]))})
