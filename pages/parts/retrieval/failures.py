"""Failures of the search, grouped by the confused classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Failures:
    """The failures among test images, or without classes among the images that the user named.

    Attributes:
        dataset: The data set.
        atlases: The nearest image of each query, before and after training.
        names: Names of the classes.
        kind: What the images are: "test" or "labeled".
        history: The nearest images by epoch; None among labeled images.
    """

    dataset: Dataset
    atlases: dict[Which, Atlas]
    names: tuple[str, ...]
    kind: str
    history: NeighborHistory | None


def show_failures(retrieval: Retrieval, on_pick: Callable[[int], None]) -> None:
    """Show the failures, and the queries of a pair of confused classes.

    Args:
        retrieval: The search of a run.
        on_pick: Called with an image that is clicked.
    """
    failures = _load(retrieval)
    with st.container(horizontal=True, gap="large", vertical_alignment="top", key="failures-numbers"):
        _show_numbers(failures, retrieval.is_changed)
        which = _choose_embedding(retrieval)
    atlas = failures.atlases[which]
    _say_images(retrieval, atlas)
    if not atlas.pairs:
        st.success(f"There are no misses: the nearest image of every {failures.kind} image has its class.",
                   icon=":material/celebration:")
        return
    left, right = st.columns(2, gap="medium")
    with left:
        pair = choose_pair(failures.names, atlas, which)
    with right:
        _show_queries(failures, atlas, pair, on_pick)
    _show_classes(failures)
    share([Download("Misses (CSV)", "failures.csv", "text/csv", lambda: _misses_file(failures, atlas))], "failures")


def _say_images(retrieval: Retrieval, atlas: Atlas) -> None:
    """Say which images are searched, and which are left out."""
    if retrieval.dataset.labels is None and (labeled := retrieval.labeled()) is not None:
        single = int((~labeled.queries).sum())
        alone = f" {counted(single, 'image')} without another image of the class " \
            f"{'is' if single == 1 else 'are'} no query." if single else ""
        caution = " The run trained on assigned labels, so there are too few misses." \
            if retrieval.spec.labels == "given" else ""
        st.caption(f"Failures among the {len(labeled.images):,} images that you named: each is a query, and the others "
                   f"are searched.{alone}{caution}")
    elif gone := len(retrieval.split.test) - len(atlas.queries):
        st.caption(f"Left out: {counted(gone, 'test image')} that you excluded since this run was evaluated.")


def _choose_embedding(retrieval: Retrieval) -> Which:
    """Choose the embedding whose misses are shown; there is no choice if training changed nothing."""
    if not retrieval.is_changed:
        return "final"
    which: Which = st.segmented_control(
        "Misses", TRAINED[::-1], default=choice_from_address("misses", TRAINED, "final"), required=True,
        format_func=frame_words, key="failures-which") or "final"
    write_address("misses", which, "final")
    return which


def _load(retrieval: Retrieval) -> Failures:
    """Return the failures before and after training.

    A progress bar appears the first time.
    """
    dataset = retrieval.dataset
    labeled = retrieval.labeled() if dataset.labels is None else None
    with progress_bar() as report:
        if labeled is not None:
            return Failures(dataset, {which: retrieval.labeled_atlas(labeled, which, report)
                                      for which in TRAINED[::-1]}, labeled.names, "labeled", None)
        return Failures(dataset, {which: retrieval.atlas(which, report) for which in TRAINED[::-1]},
                        dataset.class_names, "test", retrieval.history(report))


def _show_numbers(failures: Failures, is_changed: bool) -> None:
    before, after, kind = failures.atlases["initial"], failures.atlases["final"], failures.kind
    fixed, missed = int((before.misses & ~after.misses).sum()), int(before.misses.sum())
    broken = int((~before.misses & after.misses).sum())
    change = 100 * (after.recall - before.recall)
    st.metric(RIGHT.plain, percent(100 * after.recall), f"{points(change)} against the start of training" if is_changed
              else None, width="content", **change_style(change),
              help=f"Share of {kind} images whose nearest other {kind} image has the same class, a hit, after training."
                   + " The training half is not searched." * (kind == "test"))
    st.metric("Misses", f"{after.misses.sum():,}", f"of {counted(len(after.queries), f'{kind} image')}",
              width="content", delta_color="off", delta_arrow="off",
              help=f"The number of {kind} images whose nearest other {kind} image has another class, after training.")
    if not is_changed:
        return
    st.metric("Fixed", f"{fixed:,}", f"of {counted(missed, 'miss')} before", width="content", delta_color="off",
              delta_arrow="off", help="Misses before training that are hits after training.")
    st.metric("Broken", f"{broken:,}", f"of {counted(len(before.queries) - missed, 'hit')} before", width="content",
              delta_color="off", delta_arrow="off", help="Hits before training that are misses after training.")


def _show_queries(failures: Failures, atlas: Atlas, pair: ConfusedPair, on_pick: Callable[[int], None]) -> None:
    """Show the queries of a pair beside their nearest images, in the same order."""
    dataset, history = failures.dataset, failures.history
    own, other = failures.names[pair.own], failures.names[pair.other]
    rows = atlas.members(pair.own, pair.other)
    shown = rows[:MOST_QUERIES]
    fates = ["query"] * len(shown) if history is None else describe_history(history, atlas.queries[shown])
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
    epochs = "" if history is None else (
        " An epoch says since when a query is a hit, or when it became a miss, in a search of the fixed sample of "
        f"{len(history.indices):,} test images.")
    st.caption(f"Left: {counted(len(rows), 'miss')} (★). Right: the nearest {failures.kind} image of each (✕), with "
               f"the same number.{epochs} Click an image to search with it.{cut}")


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


def _show_classes(failures: Failures) -> None:
    atlases, count = failures.atlases, len(failures.names)
    before, after = (100 * atlases[which].recall_by_class(count) for which in ("initial", "final"))
    tested = np.flatnonzero(~np.isnan(after))
    sizes = np.bincount(atlases["final"].classes, minlength=count)
    table_behind(f"{RIGHT.plain} in every class", pd.DataFrame({
        "Class": [failures.names[label] for label in tested], f"{failures.kind.capitalize()} images": sizes[tested],
        "Before training, %": before[tested].round(1), "After training, %": after[tested].round(1)}
    ).sort_values("After training, %"))


def _misses_file(failures: Failures, atlas: Atlas) -> bytes:
    misses = np.flatnonzero(atlas.misses)
    names, history = np.array(failures.names, object), failures.history
    own = {"given": names[atlas.classes[misses]]} if history is None else {}
    by_epoch = {} if history is None else {"became a hit": np.array(describe_history(history, atlas.queries[misses]))}
    return table_file(failures.dataset, atlas.queries[misses], own | {
        "mistaken for": names[atlas.nearest_classes[misses]], "nearest": atlas.nearest[misses]} | by_epoch)
