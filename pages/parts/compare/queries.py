"""The same query in all runs, and the queries on which two runs differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from pages.parts.base.address import number_from_address, write_address
from pages.parts.base.cached import load_retrieval
from pages.parts.base.pools import among
from pages.parts.base.run_status import escaped
from pages.parts.components.gallery import Tile, clicked_tile, gallery, tile_of
from pages.parts.kit.palette import color_legend, percent
from pages.parts.retrieval.rankings import MARKS
from udml_core.arrays import Array
from udml_core.exploration.comparison import only_first_hits, sign_test
from udml_core.exploration.failures import Atlas
from udml_core.retrieval import Retrieval
from udml_core.runs import Run

SHOWN_HITS = 10
STRIP = 11
A_ROW = 3
MOST_WON = 60
SIGNIFICANT, LIKELY = 0.05, 0.5


def load_atlases(runs: Sequence[Run]) -> list[Atlas]:
    """Return the nearest image of every test image in each run's final embedding.

    A progress bar appears the first time.
    """
    bar = st.empty()

    def report(share: float, phase: str) -> None:
        bar.progress(min(1.0, share), f"{phase.capitalize()} …")

    try:
        return [load_retrieval(run).atlas("final", report) for run in runs]
    finally:
        bar.empty()


def disputed_queries(atlases: Sequence[Atlas], count: int) -> Array:
    """Return the test images on which the runs disagree most, at most `count`.

    Queries that half of the runs answer come first; equal ones keep their order.
    """
    share = np.mean([~atlas.misses for atlas in atlases], axis=0)
    chosen: Array = atlases[0].queries[np.argsort(np.abs(share - 0.5), kind="stable")[:count]]
    return chosen


def show_same_query(runs: Sequence[Run], names: Sequence[str]) -> None:
    """Show the nearest images of one query in every run, and a strip of other queries."""
    opened = [load_retrieval(run) for run in runs]
    dataset, test = opened[0].dataset, opened[0].split.test
    strip = disputed_queries(load_atlases(runs), STRIP) if dataset.labels is not None else test[:STRIP]
    query = int(number_from_address("query", int(strip[0]), 0, len(dataset) - 1))
    disagree = "The first row shows test images on which these runs disagree. " if dataset.labels is not None else ""
    st.caption(f"{disagree}Click any image to search with it.")
    clicks = [gallery(dataset, [tile_of(dataset, int(index), "query" if index == query else "")
                                for index in dict.fromkeys([query, *map(int, strip)])],
                      "Queries to choose from", "compare-strip", side=64)]
    for start in range(0, len(runs), A_ROW):
        row = list(zip(runs, names, opened, strict=True))[start : start + A_ROW]
        for column, (run, name, retrieval) in zip(st.columns(min(A_ROW, len(runs))), row, strict=False):
            with column:
                clicks.append(_ranking(retrieval, query, name, f"compare-hits-{run.id}"))
    if dataset.labels is not None:
        color_legend("query", "hit", "miss")
    _make_query(clicked_tile(clicks))


def _ranking(retrieval: Retrieval, query: int, name: str, key: str) -> int | None:
    """Show one run's nearest images of a query."""
    hits = retrieval.search_item(query, SHOWN_HITS)
    pool = among(int(retrieval.searched("final").sum()), retrieval.split, len(retrieval.dataset))
    known = [hit.correct for hit in hits if hit.correct is not None]
    st.markdown(f"**{escaped(name)}**" + (f" · {sum(known)} of {len(known)} hits {pool}" if known else ""))
    tiles = [Tile(hit.index, retrieval.dataset.caption(hit.index), MARKS[hit.correct], f"{hit.rank}.") for hit in hits]
    return gallery(retrieval.dataset, tiles, f"The {len(hits)} nearest images in {name}", key, side=64)


def show_wins(runs: Sequence[Run], names: Sequence[str]) -> None:
    """Show the queries that one run answers at rank 1 and another does not, in both directions, and a verdict."""
    dataset = load_retrieval(runs[0]).dataset
    if dataset.labels is None:
        st.info("Hits need class labels, and this data set has none. Compare the same query instead.",
                icon=":material/lightbulb:")
        return
    first, second = _choose_pair(names)
    if first == second:
        st.info("Choose two different runs.", icon=":material/lightbulb:")
        return
    atlases = load_atlases([runs[first], runs[second]])
    won_by = [only_first_hits(own, other) for own, other in (atlases, atlases[::-1])]
    st.markdown(difference_words(names[first], names[second], len(won_by[0]), len(won_by[1])))
    clicks, count = [], len(atlases[0].queries)
    for column, won, (one, two) in zip(st.columns(2, gap="medium"), won_by, ((first, second), (second, first)),
                                       strict=True):
        with column:
            share = percent(100 * len(won) / max(1, count))
            st.markdown(f"**Right only with {escaped(names[one])}**: {len(won):,} of {count:,} queries ({share})")
            if not len(won):
                st.caption("None.")
                continue
            tiles = [tile_of(dataset, int(index), "query") for index in won[:MOST_WON]]
            clicks.append(gallery(dataset, tiles, f"Queries that only {names[one]} answers, not {names[two]}",
                                  f"compare-won-{runs[one].id}-{runs[two].id}", side=64, height=300))
            if len(won) > MOST_WON:
                st.caption(f"The first {MOST_WON} are shown.")
    st.caption("A run is right about a query if the nearest other test image has the query's class. Click an image to "
               "see its neighbors in all runs.")
    _make_query(clicked_tile(clicks), "Same query")


def difference_words(first: str, second: str, first_only: int, second_only: int) -> str:
    """Say which of two runs is right about more queries, and how likely chance alone splits them so unevenly.

    Args:
        first: Name of a run.
        second: Name of another run.
        first_only: Number of queries about which only the first run is right.
        second_only: Number of queries about which only the second run is right.

    Returns:
        Two sentences in Markdown.
    """
    if first_only < second_only:
        first, second, first_only, second_only = second, first, second_only, first_only
    first, second = escaped(first), escaped(second)
    if first_only == second_only:
        return f"**{first} and {second} are level**: each alone is right about {first_only:,} queries."
    p = sign_test(first_only, second_only)
    chance = "in fewer than 1 of 1,000 cases" if p < 0.001 else f"in {percent(100 * p)} of cases"
    words = "is an unlikely explanation" if p < SIGNIFICANT else "may explain it" if p < LIKELY else "explains it"
    return (f"**{first} is right about {first_only:,} queries that {second} gets wrong**, {second} about "
            f"{second_only:,} that {first} gets wrong. Two equally good runs differ at least this much {chance} "
            f"(sign test), so chance {words}. The spread over seeds is not part of this test.")


def _choose_pair(names: Sequence[str]) -> tuple[int, int]:
    """Choose two of the runs, at first the first two."""
    if len(names) == 2:
        return 0, 1
    positions = list(range(len(names)))
    left, right = st.columns(2)
    first = left.selectbox("Run A", positions, 0, format_func=lambda number: names[number], key="compare-a")
    second = right.selectbox("Run B", positions, 1, format_func=lambda number: names[number], key="compare-b")
    return first, second


def _make_query(index: int | None, part: str = "") -> None:
    """Keep a clicked image as the query in the address, and run the page again."""
    if index is None or st.query_params.get("query") == str(index):
        return
    write_address("query", str(index))
    if part:
        st.session_state["compare-next-part"] = part
    st.rerun()
