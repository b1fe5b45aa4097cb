"""The same query in all runs, and the queries for which only one of two runs has a hit."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, Integers, evenly_spaced
from udml_core.data.dataset import Dataset
from udml_core.exploration.comparison import only_first_hits, sign_test
from udml_core.exploration.failures import Atlas
from udml_core.exploration.gallery_content import Tile
from udml_core.runs import Run
from udml_core.runs.search import FINAL, Hit, Retrieval
from udml_core.runs.search.differing import Side
from udml_core.runs.verdict import standing

from ..draw.gallery import clicked_tile, gallery, tile_of
from ..draw.palette import color_legend, percent
from ..retrieval.rankings import MARKS
from ..shell.address import number_from_address, write_address
from ..shell.cached import load_retrieval, progress_bar
from ..shell.pools import among
from ..shell.run_status import escaped
from .colors import run_heading, swatch_of
from .judging import compare_contest
from .matched_maps import MOST_MAPS, maps_by_kind, matched_maps, show_coming_maps, show_matched_map
from .seed_means import MOST_RANKED
from .sides import Contest

SAME_QUERY = "Same query"
SHOWN_HITS = 10
STRIP = 16
MAP_HEIGHT = 280
FIRST_TWO = (0, 1)
NO_FRAMES: Mapping[str, str] = MappingProxyType({})
HITS_IN_ROW = 3
FEW_ROWS, MOST_ROWS = 3, 12
"""Rows of queries below other parts, and in a part of their own."""
SIGNIFICANT, LIKELY = 0.05, 0.5
DIFFERING = ("These queries have another first result in each search. Under Judge they come last, so that seeing them "
             "here sways no early judgment.")


def load_atlases(runs: Sequence[Run]) -> list[Atlas]:
    """Return the nearest image of every test image in each run's final embedding.

    A progress bar appears the first time.
    """
    with progress_bar() as report:
        return [load_retrieval(run).atlas("final", report) for run in runs]


def disputed_queries(atlases: Sequence[Atlas], count: int) -> Array:
    """Return the test images on which the runs disagree most, at most `count`.

    Queries with a hit in half of the runs come first; of these, queries with a hit only in the run that `count_words`
    names first. Equal ones keep their order.
    """
    hits = np.stack([~atlas.misses for atlas in atlases])
    is_alone = hits & (hits.sum(axis=0) == 1)
    most = is_alone[np.argmax(is_alone.sum(axis=1))]
    order = np.lexsort((~most, np.abs(hits.mean(axis=0) - 0.5)))
    chosen: Array = atlases[0].queries[order[:count]]
    return chosen


def show_same_query(runs: Sequence[Run], names: Sequence[str], frames: Mapping[str, str] = NO_FRAMES) -> None:
    """Show the nearest images of one query in every run, on matched maps too, and a strip of other queries.

    Of two runs, the queries for which only one of them has a hit follow.

    Args:
        runs: The compared runs.
        names: Their names.
        frames: The embeddings in view by their runs' ids; by default those after training.
    """
    opened = [load_retrieval(run) for run in runs]
    dataset, test = opened[0].dataset, opened[0].split.test
    has_hits = dataset.labels is not None and not frames
    atlases = load_atlases(runs) if has_hits else []
    differing = test[:0] if has_hits else differing_queries(runs, names, frames)
    strip = disputed_queries(atlases, STRIP) if atlases else (
        differing[:STRIP] if len(differing) else test[evenly_spaced(len(test), STRIP)])
    query = int(number_from_address("query", int(strip[0]), 0, len(dataset) - 1))
    counts = count_words(names, atlases) if atlases else DIFFERING if len(differing) else ""
    pool = among(len(test), opened[0].split, len(dataset))
    st.markdown(f"{counts} Neighbors are searched {pool}. Click an image, here or on a map, to make it the query.")
    clicks = [gallery(dataset, [tile_of(dataset, int(index), "query" if index == query else "")
                                for index in dict.fromkeys([query, *map(int, strip)])],
                      "Queries to choose from", "compare-strip", side=52, strip=True)]
    by_kind = maps_by_kind(runs) if len(runs) <= MOST_MAPS else {}
    maps = matched_maps(runs, max(by_kind.values(), key=len)) if by_kind else {}
    a_row, side = (2, 43) if len(runs) in (2, 4) else (3, 56)  # ten or five images a row on a laptop
    found = [retrieval.search_item(query, SHOWN_HITS, frames.get(retrieval.run.id, FINAL), "test")
             for retrieval in opened]
    only = only_here([[hit.index for hit in hits] for hits in found]) if dataset.labels is None else {}
    for start in range(0, len(runs), a_row):
        for column, number in zip(st.columns(a_row), range(start, len(runs)), strict=False):
            run, name, hits = runs[number], names[number], found[number]
            with column:
                known = [hit.correct for hit in hits if hit.correct is not None]
                alone = only.get(number, ())
                run_heading(runs, number, name, f" · {sum(known)} of {len(known)} hits" if known else
                            f" · {len(alone)} of {len(hits)} only here" if only else "")
                tiles = [replace(_tile(dataset, hit), mark="only") if hit.index in alone else _tile(dataset, hit)
                         for hit in hits]
                clicks.append(gallery(dataset, tiles, f"The {len(hits)} nearest test images in {name}",
                                      f"compare-hits-{run.id}", side))
                if run.id in maps:
                    if run.id in frames:
                        st.caption("Map of this search without its steps")
                    clicks.append(show_matched_map(maps[run.id], name, query, [hit.index for hit in hits], MAP_HEIGHT))
    if dataset.labels is not None:
        color_legend("query", "hit", "miss")
    elif any(only.values()):
        color_legend("query", "only")
    if maps:
        st.caption("Lines join the query with its nearest images. Each map is turned to match the first; distances on "
                   "a map carry no unit.")
    if len(runs) <= MOST_MAPS:
        show_coming_maps(runs, names, maps)
    else:
        st.caption(f"The part Maps shows the maps of up to {MOST_MAPS} runs.")
    _make_query(clicked_tile(clicks))
    if has_hits and len(runs) == len(FIRST_TWO):
        _show_won(runs, names, FIRST_TWO, FEW_ROWS)


def differing_queries(runs: Sequence[Run], names: Sequence[str], frames: Mapping[str, str] = NO_FRAMES) -> Integers:
    """Return the queries whose first result differs in two runs without labels, those first that Judge asks last.

    So the next judgments stay blind. There are none of more than two runs, or of too many images to search at once.
    """
    sides = [Side(load_retrieval(run), frames.get(run.id, FINAL)) for run in runs]
    if len(sides) != len(FIRST_TWO) or len(sides[0].retrieval.split.test) > MOST_RANKED:
        return np.empty(0, int)
    return compare_contest(Contest((sides[0], sides[1]), (names[0], names[1]), "test")).differing[::-1]


def only_here(found: Sequence[Sequence[int]]) -> dict[int, set[int]]:
    """Return which results of a query each of two searches finds alone, by its number; empty for more searches.

    Args:
        found: Indices of the results of each search.
    """
    if len(found) != len(FIRST_TWO):
        return {}
    return {number: {*own} - {*other} for number, (own, other) in enumerate((found, found[::-1]))}


def count_words(names: Sequence[str], atlases: Sequence[Atlas]) -> str:
    """Say for how many queries the nearest image is a hit in one run only, in Markdown, the run with most first."""
    hits = np.stack([~atlas.misses for atlas in atlases])
    alone = [int((hits[number] & (hits.sum(axis=0) == 1)).sum()) for number in range(len(names))]
    (most, best), *others = sorted(zip(alone, names, strict=True), key=lambda entry: -entry[0])
    rest = [f"{count:,} only with {escaped(name)}" for count, name in others]
    of_all = "" if len(names) == len(FIRST_TWO) else (
        f", {int(hits.all(axis=0).sum()):,} with all runs and {int((~hits.any(axis=0)).sum()):,} with none")
    joint = " and " if len(rest) == 1 else ", "
    return (f"The nearest image is a hit (it has the query's class) for **{most:,} of {hits.shape[1]:,} queries only "
            f"with {escaped(best)}**{joint}{', '.join(rest)}{of_all}.")


def _tile(dataset: Dataset, hit: Hit) -> Tile:
    """Return the tile of a search's result, marked as a hit or a miss."""
    return Tile(hit.index, dataset.caption(hit.index), MARKS[hit.correct], str(hit.rank))


def show_wins(runs: Sequence[Run], names: Sequence[str]) -> None:
    """Show the queries whose nearest image is a hit in one run and not in another, in both directions."""
    pair = _choose_pair(names, best_two(runs))
    if pair[0] == pair[1]:
        st.info("Choose two different runs.", icon=":material/lightbulb:")
        return
    _show_won(runs, names, pair, MOST_ROWS)


def _show_won(runs: Sequence[Run], names: Sequence[str], pair: tuple[int, int], rows: int) -> None:
    """Show queries whose nearest image is a hit in one of two runs only, each as a row with its nearest images.

    Args:
        runs: The compared runs.
        names: Their names.
        pair: Positions of the two runs.
        rows: Number of queries to show in each direction.
    """
    first, second = pair
    atlases = load_atlases([runs[first], runs[second]])
    won_by = [only_first_hits(own, other) for own, other in (atlases, atlases[::-1])]
    st.markdown(difference_words(names[first], names[second], len(won_by[0]), len(won_by[1])))
    clicks, count = [], len(atlases[0].queries)
    for column, won, (winner, loser) in zip(st.columns(2, gap="medium"), won_by, (pair, pair[::-1]), strict=True):
        with column:
            share = percent(100 * len(won) / max(1, count))
            run_heading(runs, winner, f"Hit only with {names[winner]}",
                        f": {len(won):,} of {count:,} queries ({share})")
            if len(won):
                clicks.append(_won_rows(runs, names, (winner, loser), won[:rows]))
            else:
                st.caption("None.")
            if len(won) > rows:
                st.caption(f"The first {rows} are shown.")
    st.caption("Only the nearest other test image counts; it is a hit if it has the query's class. Click an image to "
               "see its neighbors in all runs.")
    _make_query(clicked_tile(clicks), SAME_QUERY)


def won_tiles(opened: Sequence[Retrieval], queries: Array) -> list[Tile]:
    """Return the tiles of rows: each query, then its nearest test images in every run, marked as hits or misses."""
    dataset, tiles = opened[0].dataset, []
    for query in map(int, queries):
        tiles.append(tile_of(dataset, query, "query"))
        for retrieval in opened:
            tiles += [_tile(dataset, hit) for hit in retrieval.search_item(query, HITS_IN_ROW, gallery="test")]
    return tiles


def _won_rows(runs: Sequence[Run], names: Sequence[str], pair: tuple[int, int], queries: Array) -> int | None:
    """Show a row for each query: the query, and its nearest test images in both runs, with hits marked."""
    opened = [load_retrieval(runs[number]) for number in pair]
    heads = "".join(f'<span style="grid-column:span {HITS_IN_ROW};overflow:hidden;text-overflow:ellipsis">'
                    f"{swatch_of(runs, number)}{html.escape(names[number])}</span>" for number in pair)
    columns = 1 + HITS_IN_ROW * len(pair)
    st.html(f'<div style="display:grid;grid-template-columns:repeat({columns},minmax(0,1fr));gap:8px;'
            f'font-size:0.8rem;white-space:nowrap"><span>Query</span>{heads}</div>')
    return gallery(opened[0].dataset, won_tiles(opened, queries),
                   f"Queries with a hit in {names[pair[0]]} only, with the {HITS_IN_ROW} nearest images in it and in "
                   f"{names[pair[1]]}", f"compare-won-{runs[pair[0]].id}-{runs[pair[1]].id}", side=64,
                   columns=columns)


def difference_words(first: str, second: str, first_only: int, second_only: int) -> str:
    """Say for how many queries only one of two runs has a hit, and how likely chance alone splits them so unevenly.

    Args:
        first: Name of a run.
        second: Name of another run.
        first_only: Number of queries whose nearest image is a hit with the first run only.
        second_only: The same of the second run.

    Returns:
        Markdown.
    """
    if first_only < second_only:
        first, second, first_only, second_only = second, first, second_only, first_only
    first, second = escaped(first), escaped(second)
    if first_only == second_only:
        return (f"By R@1, **{first} and {second} are level**: the nearest image is a hit with each of them alone for "
                f"{first_only:,} queries.")
    p = sign_test(first_only, second_only)
    chance = "in fewer than 1 of 1,000 cases" if p < 0.001 else f"in {percent(100 * p)} of cases"
    words = ("is an unlikely explanation" if p < SIGNIFICANT else
             "may explain it" if p < LIKELY else "alone could explain it")
    return (f"By R@1, **{first} is ahead of {second}**: the nearest image is a hit with it alone for "
            f"{first_only:,} queries, with the other alone for {second_only:,}. Two equally good runs differ at least "
            f"this much {chance} (sign test), so chance {words}. The spread over seeds is not part of this test.")


def best_two(runs: Sequence[Run]) -> tuple[int, int]:
    """Return the positions of the two runs with the highest MAP@R after training."""
    after = [standing(run.evaluation()).after for run in runs]
    first, second, *_ = sorted(range(len(runs)), key=lambda number: -(after[number] or 0.0))
    return first, second


def _choose_pair(names: Sequence[str], begin: tuple[int, int]) -> tuple[int, int]:
    """Choose two of the runs, at first the given positions; two runs leave no choice."""
    if len(names) == 2:
        return FIRST_TWO
    positions = list(range(len(names)))
    left, right = st.columns(2)
    first = left.selectbox("Run A", positions, begin[0], format_func=lambda number: names[number], key="compare-a")
    second = right.selectbox("Run B", positions, begin[1], format_func=lambda number: names[number], key="compare-b")
    return first, second


def _make_query(index: int | None, part: str = "") -> None:
    """Keep a clicked image as the query in the address, and run the page again."""
    if index is None or st.query_params.get("query") == str(index):
        return
    write_address("query", str(index))
    if part:
        st.session_state["compare-next-part"] = part
    st.rerun()
