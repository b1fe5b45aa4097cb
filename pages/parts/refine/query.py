"""The ranking of a query before and after a recipe, and the votes for an image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, rows_of
from udml_core.base.errors import counted
from udml_core.exploration import refining
from udml_core.exploration.focus import stand_in
from udml_core.exploration.refining import SHOWN, RefinedGallery
from udml_core.runs.search import FROZEN

from ..draw.gallery import clicked_tile, gallery, mark_of, tile_of
from ..draw.palette import HITS, QUERY, color_legend
from ..draw.pictures import picture
from ..draw.sections import open_section
from ..shell.focus import current_elsewhere
from ..shell.interesting import default_image, image_in_address, typical_row
from ..shell.run_status import escaped, method_title
from .live import Live, rank_after

FIRST = "refine-first-query"
"""The run in the session state, and the image that it opened with."""
TILES, VOTERS = 24, 12
VOTE_WORDS = {
    "average": "The refinement replaced this image by the mean of **{count}** images, itself included. Each adds "
               "its part of the similarity (cosine) of this mean and the query: {score:.3f} in total.",
    "expand": "The refinement replaced the query by the mean of **{count}** images, itself included. Each adds "
              "its part of the similarity (cosine) of this mean and this image: {score:.3f} in total.",
    "rerank": "**{count}** images and the query find each other, and so do they and this image. Each adds the smaller "
              "of its two weights: an overlap of {score:.3f}, where 1 is the largest possible.",
    "diffuse": "**{count}** images that this image finds, and that find it, pass on their own score from the walk that "
               "starts at the query: {score:.3g} in total.",
    "none": "This rank rests on how similar the query and this image are, and on no other image. Both share "
            "**{count}** neighbors.",
}
ALONE = ("Their similarity (cosine) is {score:.3f}; 1 is the largest. The number below each shared neighbor is the "
         "smaller of its similarities with both.")
"""The figure behind the words for a rank that no other image decides."""
COMMON = {"average": " ∩: also in the query's own mean.", "diffuse": " ∩: it and the query find each other, too."}
"""What the sign of a common voter means, by the step that decides the ranking."""


def current_query(live: Live, refined: RefinedGallery) -> int:
    """Return the row of the query in the address, else of the image that the page shows first.

    An image outside the gallery is represented by the nearest image of the gallery; the page says so.
    """
    index = image_in_address(live.dataset, "query")
    if index < 0:
        index = _first_image(live, refined)
    shown = stand_in(live.run.embeddings("final"), index, live.images)
    if shown != index:
        st.caption(f"The current image, {escaped(live.dataset.caption(index))}, is not in the test half, which this "
                   "page searches. The query is the nearest image that is.")
    return live_row(live, shown)


def _first_image(live: Live, refined: RefinedGallery) -> int:
    """Return the image that pages show first; if none has shown one yet, an image typical of what the recipe does.

    Its hits change as the recipe's do on average, and it stays when the recipe changes.
    """
    run_id, image = st.session_state.get(FIRST, ("", 0))
    if run_id == live.run.id:
        return int(image)
    if current_elsewhere() is not None or live.labels is None or not refined.recipe.steps:
        return default_image(live.run)
    before, after = refining.count_hits(refined, live.labels)
    row = typical_row(np.stack([before, after], axis=1).tolist(), float(before.mean()), float(after.mean()))
    image = int(live.images[refined.before.queries[row]])
    st.session_state[FIRST] = (live.run.id, image)
    return image


def choose_query(live: Live, refined: RefinedGallery, query: int) -> None:
    """Show queries to choose from, in one line."""
    labels = live.labels
    badges = [""] * len(live.samples)
    if labels is not None:
        unrefined = live.gallery.before.rank(live.samples)[:, :SHOWN]
        ranked = rank_after(live, refined, live.samples, SHOWN)
        before = (labels[unrefined] == labels[live.samples][:, None]).sum(axis=1)
        after = ((labels[ranked] == labels[live.samples][:, None]) & (ranked >= 0)).sum(axis=1)
        badges = [f"{one} → {two}" if refined.recipe.steps else f"{one}"
                  for one, two in zip(before, after, strict=True)]
    tiles = [tile_of(live.dataset, int(live.images[row]), badge=badge)
             for row, badge in zip(live.samples, badges, strict=True)]
    note = (f"Badge: hits among the first {SHOWN} results, before → after. With whitening and averages over 20 "
            "neighbors the first two thirds of these queries gain the most, and the last third loses the most."
            if labels is not None else
            "The results of these queries change the most with whitening and averages over 20 neighbors.")
    st.caption("Click an image to make it the query.", help=note)
    clicked = gallery(live.dataset, tiles, "Queries", "refine-queries", 56, int(live.images[query]), 100)
    if clicked is not None:
        live.write_row("query", live_row(live, clicked))
        st.query_params.pop("image", None)
        st.rerun(scope="fragment")


def live_row(live: Live, index: int) -> int:
    """Return the row of an image of the gallery."""
    return int(rows_of(live.images, index))


@dataclass(frozen=True)
class Ranks:
    """The gallery in the order of a query, before and after a recipe.

    Attributes:
        before: Rows by rank before.
        after: Rows by rank after.
        of_before: Rank of each row before, from 1.
        of_after: Rank of each row after.
        image: Row of the image whose rank is explained: the image in the address, else the image that rises most.
    """

    before: Array
    after: Array
    of_before: Array
    of_after: Array
    image: int


def _rank(live: Live, refined: RefinedGallery, query: int) -> Ranks:
    queries = np.array([query])
    before, after = live.gallery.before.rank(queries)[0], rank_after(
        live, refined, queries, len(live.images) - 1)[0]
    after = after[after >= 0]
    of_before, of_after = positions(before, len(live.images)), positions(after, len(live.images))
    shown = after[:TILES]
    risen = shown[np.argmax(of_before[shown] - of_after[shown])]
    return Ranks(before, after, of_before, of_after, live.row_in_address("image", int(risen)))


def show_query(live: Live, refined: RefinedGallery, query: int) -> None:
    """Show the rankings of a query before and after."""
    ranks, index = _rank(live, refined, query), int(live.images[query])
    st.html(f"<style>.st-key-refine-query img {{ outline: 3px solid {QUERY}; outline-offset: 1px; }}</style>")
    with st.container(horizontal=True, vertical_alignment="center", key="refine-query"):
        picture(live.dataset.images[index], 56, f"The query: {live.dataset.caption(index)}")
        st.markdown(f"**Query: {escaped(live.dataset.caption(index))}**", width="content", help=(
            "Arrows: how many ranks the refinement moves an image up or down. Click an image to see why."
            if refined.recipe.steps else None))
        if live.labels is not None:
            color_legend(*HITS)
    clicks = []
    explained = ranks.image if "image" in st.query_params else -1  # a frame shows a choice of the user, not of the page
    arrows = [moved(int(one), int(two)) for one, two in zip(ranks.of_before, ranks.of_after, strict=True)]
    alone = "" if live.run.spec().method == FROZEN else f": {method_title(live.run)} alone"
    both = [(f"Before refinement{alone}", ranks.before), ("After refinement", ranks.after)]
    sides = both if refined.recipe.steps else [("Search without refinement", ranks.before)]  # both would be equal
    for column, (word, order) in zip(st.columns(len(sides), gap="medium"), sides, strict=True):
        with column:
            clicks.append(_show_ranking(live, query, explained, word, order[:TILES], arrows))
    if scope := live_words(live):
        st.caption(scope)
    _explain_clicked(live, query, clicked_tile(clicks))


def live_words(live: Live) -> str:
    """Return why the live order can differ from the order of the page Search; empty where both are equal."""
    kept, width = live.gallery.start.rows.shape[1], live.gallery.before.embedding.shape[1]
    parts = [f"{kept} of {width:,} components of the embedding"] if kept < width else []
    if live.total > len(live.images):
        parts.append(f"{len(live.images):,} of {live.total:,} images")
    return (f"A live order, from {' and '.join(parts)}. Search shows the exact order, which can differ."
            if parts else "")


def explain_rank(live: Live, refined: RefinedGallery, query: int) -> None:
    """Show why the current image has its rank."""
    ranks = _rank(live, refined, query)
    image = ranks.image
    _explain_clicked(live, query, show_votes(live, refined, query, image, (int(ranks.of_before[image]),
                                                                           int(ranks.of_after[image]))))


def _explain_clicked(live: Live, query: int, clicked: int | None) -> None:
    if clicked is not None and clicked != live.images[query]:
        live.write_row("image", live_row(live, clicked))
        open_section("refine-section", "Why this rank?")
        st.rerun(scope="fragment")


def positions(order: Array, count: int) -> Array:
    """Return the rank (n,) of each row from 1; n where a row is not ranked."""
    ranks = np.full(count, count)
    ranks[order] = np.arange(1, len(order) + 1)
    return ranks


def moved(before: int, after: int) -> str:
    """Return an arrow and the number of ranks that an image rose or fell."""
    return f" ↑{before - after:,}" if before > after else f" ↓{after - before:,}" if before < after else ""


def _show_ranking(live: Live, query: int, image: int, word: str, order: Array, arrows: list[str]) -> int | None:
    labels, score = live.labels, ""
    if labels is not None:
        hits = (labels[order] == labels[query]).sum()
        score = f" · {hits} of {len(order)} hits among {len(live.images):,} test images"
    st.markdown(f"**{word}**{score}")
    index = int(live.images[query])
    tiles = [tile_of(live.dataset, int(live.images[row]), mark_of(live.dataset, int(live.images[row]), index),
                     f"{rank}{arrows[row]}")
             for rank, row in enumerate(order.tolist(), 1)]
    return gallery(live.dataset, tiles, f"The {len(order)} nearest images, {word.lower()}",
                   f"refine-{word.split()[0].lower()}", 64, None if image < 0 else int(live.images[image]), 330)


def show_votes(live: Live, refined: RefinedGallery, query: int, image: int, ranks: tuple[int, int]) -> int | None:
    """Show which images voted for an image's rank.

    Returns:
        The data set index of the image that was clicked just now.
    """
    index = int(live.images[image])
    before, after = ranks
    verb = "rise" if after < before else "fall" if after > before else "stay"
    way = f"from rank {before:,} to {after:,}" if after != before else f"at rank {after:,}"
    st.subheader(f"Why did this image {verb} {way}?")
    st.markdown(f"**{escaped(live.dataset.caption(index))}**, framed above.")
    votes, voting = refining.votes_for(refined, query, image), refining.voting_step(refined)
    st.markdown(VOTE_WORDS[voting].format(count=len(votes.rows), score=votes.score),
                help=ALONE.format(score=votes.score) if voting == "none" else None)
    if not len(votes.rows):
        return None
    sign = COMMON.get(voting, "")
    tiles = [tile_of(live.dataset, int(live.images[row]), mark_of(live.dataset, int(live.images[row]),
                                                                   int(live.images[query])),
                     f"{value:.3f}{' ∩' if common and sign else ''}")
             for row, value, common in zip(votes.rows[:VOTERS].tolist(), votes.values, votes.common, strict=False)]
    left = len(votes.rows) - len(tiles)
    clicked = gallery(live.dataset, tiles, "Images that decided", "refine-votes", 64)
    largest, smaller = ("largest shares", "smaller share") if voting != "none" else (
        "nearest shared neighbors", "farther shared neighbor")
    rest = f" {counted(left, smaller)} {'is' if left == 1 else 'are'} not shown." if left else ""
    st.caption(f"The {largest} first.{rest}" + sign
               + " Click any image above to explain its rank.")
    return clicked
