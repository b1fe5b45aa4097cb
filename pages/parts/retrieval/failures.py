"""Failures of the search, grouped by the confused classes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from pages.parts.base.address import choice_from_address, write_address
from pages.parts.components.gallery import gallery, tile_of
from pages.parts.kit.downloads import Download, share, table_file
from pages.parts.kit.tables import table_behind
from pages.parts.retrieval.confused_pairs import choose_pair
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.exploration.failures import Atlas, History, Pair, hit_since, last_hit
from udml_core.retrieval import Retrieval, Which

EMBEDDING_WORDS: dict[Which, str] = {"final": "after training", "initial": "before training"}
MOST_QUERIES = 300


def show_failures(retrieval: Retrieval) -> int | None:
    """Show the failures, and the queries of a pair of confused classes.

    Returns:
        The index of the image that was clicked just now.
    """
    atlases, history = _load(retrieval)
    _show_numbers(atlases)
    which: Which = st.segmented_control(
        "Misses", list(EMBEDDING_WORDS), default=choice_from_address("misses", EMBEDDING_WORDS, "final"), required=True,
        format_func=EMBEDDING_WORDS.__getitem__, key="failures-which") or "final"
    write_address("misses", which, "final")
    atlas = atlases[which]
    if not atlas.pairs:
        st.success("There are no misses: the nearest image of every test image has its class.",
                   icon=":material/celebration:")
        return None
    pair = choose_pair(retrieval.dataset, atlas, which)
    clicked = _show_queries(retrieval.dataset, atlas, pair, history)
    _show_classes(retrieval.dataset, atlases)
    share([Download("Misses (CSV)", "failures.csv", "text/csv",
                    lambda: _misses_file(retrieval.dataset, atlas, history))], "failures")
    return clicked


def _load(retrieval: Retrieval) -> tuple[dict[Which, Atlas], History]:
    """Return the failures before and after training, and the history.

    A progress bar appears the first time.
    """
    bar = st.empty()

    def report(share: float, phase: str) -> None:
        bar.progress(min(1.0, share), f"{phase.capitalize()} …")

    try:
        return {which: retrieval.atlas(which, report) for which in EMBEDDING_WORDS}, retrieval.history(report)
    finally:
        bar.empty()


def _show_numbers(atlases: dict[Which, Atlas]) -> None:
    before, after = atlases["initial"], atlases["final"]
    fixed = int((before.misses & ~after.misses).sum())
    broken = int((~before.misses & after.misses).sum())
    gain = f"{100 * (after.recall - before.recall):+.1f} points"
    with st.container(horizontal=True, gap="large"):
        st.metric("Recall@1", f"{100 * after.recall:.1f} %", gain, width="content",
                  help="Share of test images whose nearest other test image has their class, after training.")
        st.metric("Misses", f"{after.misses.sum():,}", f"of {len(after.queries):,}", width="content",
                  delta_color="off", delta_arrow="off", help="Number of test images that miss after training.")
        st.metric("Fixed", f"{fixed:,}", help="Misses before training that are hits after training.", width="content")
        st.metric("Broken", f"{broken:,}", help="Hits before training that are misses after training.",
                  width="content")


def _show_queries(dataset: Dataset, atlas: Atlas, pair: Pair, history: History) -> int | None:
    """Show the queries of a pair beside their nearest images, in the same order."""
    own, other = dataset.class_names[pair.own], dataset.class_names[pair.other]
    rows = atlas.members(pair.own, pair.other)
    shown = rows[:MOST_QUERIES]
    fates = describe_history(history, atlas.queries[shown])
    st.subheader(f"{own} mistaken for {other}")
    cut = f" Only the first {MOST_QUERIES} are drawn." if len(rows) > len(shown) else ""
    st.caption(f"Left: {len(rows):,} failed queries (★), with the epoch of their first lasting hit, or the epoch that "
               "lost their last hit. Right: the nearest test image (✕), same number. The epochs refer to the fixed "
               f"sample of {len(history.indices):,} test images. Click an image to search with it.{cut}")
    queries = [tile_of(dataset, int(atlas.queries[row]), "query", f"{number}. {fate}")
               for number, (row, fate) in enumerate(zip(shown, fates, strict=True), 1)]
    nearest = [tile_of(dataset, int(atlas.nearest[row]), "miss", f"nearest to {number}.")
               for number, row in enumerate(shown, 1)]
    left, right = st.columns(2, gap="large")
    with left:
        clicked_query = gallery(dataset, queries, f"{own} mistaken for {other}: queries", "failures-own", 128,
                                height=520)
    with right:
        clicked_nearest = gallery(dataset, nearest, f"{own} mistaken for {other}: nearest images", "failures-other",
                                  128, height=520)
    return clicked_query if clicked_query is not None else clicked_nearest


def describe_history(history: History, images: Array) -> list[str]:
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
    table_behind("Recall@1 of every class", pd.DataFrame({
        "Class": [dataset.class_names[label] for label in tested], "Test images": sizes[tested],
        "Before training, %": before[tested].round(1), "After training, %": after[tested].round(1)}
    ).sort_values("After training, %"))


def _misses_file(dataset: Dataset, atlas: Atlas, history: History) -> bytes:
    misses = np.flatnonzero(atlas.misses)
    return table_file(dataset, atlas.queries[misses], {
        "mistaken for": np.array(dataset.class_names)[atlas.nearest_classes[misses]],
        "nearest": atlas.nearest[misses],
        "became a hit": np.array(describe_history(history, atlas.queries[misses]))})
