"""What a recipe changes: measures, the ranking of a query before and after, and the votes for an image."""

from __future__ import annotations

from typing import Literal

import numpy as np
import streamlit as st

from pages.parts.components.gallery import clicked_tile, gallery, mark_of, tile_of
from pages.parts.kit.pictures import picture
from pages.parts.refine.live import Live
from udml_core.arrays import Array
from udml_core.exploration import refining
from udml_core.exploration.refining import NEIGHBORS, SHOWN, Refined
from udml_core.refinement import STEPS

TILES, VOTERS = 24, 12
MEASURES = {
    "recall@1": ("Recall@1", "%", "Share of queries whose nearest image has their class."),
    "map@r": ("MAP@R", "%", "Mean average precision at R, the number of images of the query's class."),
    "reciprocity": ("Reciprocity", "%", f"Share of the {NEIGHBORS} nearest neighbors that are mutual."),
    "hubness": ("Hubness", "", "Skewness of how often images occur in neighbor lists; 0 without hubs."),
    "neighbor stability": ("Neighbors kept", "%", f"Share of the {NEIGHBORS} nearest neighbors that were neighbors "
                                                  "before the refinement."),
}
"""Title, unit and meaning of each measure."""
VOTE_WORDS = {
    "average": "Its mean has **{count}** members, itself included. Each votes with its part of the cosine between "
               "the mean and the query: together {score:.3f}.",
    "expand": "The expanded query has **{count}** members, itself included. Each votes with its part of the cosine "
              "between the mean and this image: together {score:.3f}.",
    "rerank": "The query and this image share **{count}** reciprocal neighbors. Each votes with the smaller of its two "
              "weights: an overlap of {score:.3f}, where 1 is the largest possible.",
    "diffuse": "**{count}** mutual neighbors of this image pass on their own score from the walk that starts at the "
               "query: together {score:.3g}.",
    "none": "No step lets images vote. The query and this image share **{count}** near neighbors; the number is the "
            "smaller cosine. Their own cosine is {score:.3f}.",
}
COMMON = {"average": " ∩: also in the query's own mean.", "diffuse": " ∩: also a mutual neighbor of the query."}
"""What the sign of a common voter means, by the step that decides the ranking."""


def show_measures(live: Live, refined: Refined) -> None:
    """Show the measures before and after, and a warning if Recall@1 falls."""
    if refined.recipe.find("views") and not live.has_views:
        st.info("The figures below leave out the views, because their features are not computed yet. Apply to all "
                "images computes them.", icon=":material/visibility_off:")
    measures = refining.measure(refined, live.labels)
    with st.container(horizontal=True, gap="small"):
        for name, (title, unit, meaning) in MEASURES.items():
            if name not in measures:
                continue
            before, after = measures[name]
            value = f"{after:.1f} {unit}".strip() if unit else f"{after:.2f}"
            if name == "neighbor stability":
                st.metric(title, value, help=meaning, width="content")
                continue
            change = round(after - before, 1 if unit else 2) + 0.0
            color: Literal["off", "inverse", "normal"] = "inverse" if name == "hubness" else "normal"
            gain = f"{change:+.1f} from {before:.1f}" if unit else f"{change:+.2f} from {before:.2f}"
            st.metric(title, value, gain, color if change else "off", help=meaning, width="content",
                      delta_arrow="auto" if change else "off")
    if live.labels is not None:
        fall, error = refining.recall_change(refined, live.labels)
        if fall < -error:  # a smaller fall may be an accident of the sample
            sample = f" (± {error:.1f}, because it is measured on a sample)" if error else ""
            st.warning(f"Recall@1 falls by {-fall:.1f} points{sample}: the nearest image is wrong more often, even "
                       "where the whole list improves. Fewer neighbors or repetitions, views, or re-ranking instead of "
                       "averaging often help.", icon=":material/trending_down:")


def show_protocol(live: Live, refined: Refined) -> None:
    """Show which images each step has seen, and where the live figures are approximate."""
    words = {"nothing": "no other image", "training half": "the training half",
             "gallery": "all unlabeled test images, the queries among them"}
    seen = refining.seen_images(refined.recipe, live.has_training)
    protocol = "transductive" if any(images == "gallery" for _, images in seen) else "inductive"
    steps = "; ".join(f"{STEPS[name].title.lower()}: {words[images]}" for name, images in seen)
    if refining.voting_step(refined) == "average":
        st.caption("**Queries from outside the gallery** are not averaged, so plain cosines rank them less well. The "
                   "page Retrieval adds query expansion with the same neighbors; in Python, switch on **Query "
                   "expansion** before you copy the recipe.")
    if steps:
        st.caption(f"**Protocol: {protocol}.** What each step has seen: {steps}. No step sees labels; they only "
                   "measure.")
    if not live.run.is_normalized("final"):
        st.caption("Before: nearest by Euclidean distance, as on the page Retrieval. After: nearest by cosine, because "
                   "every recipe begins with embeddings of unit length.")
    queries, stage = live.gallery.queries, live.gallery.start
    of = f"{len(live.images):,} evenly spaced of {live.total:,}" if live.total > len(live.images) else f"{live.total:,}"
    width = live.gallery.stored.shape[1]
    kept = (f", {stage.rows.shape[1]} components of {width} ({100 * live.gallery.kept:.0f} % of the squared length)"
            if stage.rows.shape[1] < width else "")
    st.caption(f"Live figures: {len(queries):,} evenly spaced queries against {of} test images{kept}; neighbors are "
               f"searched among each image's {stage.candidates.shape[1]} nearest. Apply to all images for exact "
               "figures.")
    st.caption(" ".join(f"**{title}**: {meaning}" for name, (title, _, meaning) in MEASURES.items()
                        if live.labels is not None or name not in ("recall@1", "map@r")))


def choose_query(live: Live, refined: Refined) -> int:
    """Show queries to choose from.

    Returns:
        The row of the current query.
    """
    query, labels = live.row_in_address("query", int(live.samples[0])), live.labels
    badges = [""] * len(live.samples)
    if labels is not None:
        before = (labels[live.gallery.before_for(live.samples)[:, :SHOWN]] == labels[live.samples][:, None]).sum(axis=1)
        ranked = refined.rank(live.samples, SHOWN)
        after = ((labels[ranked] == labels[live.samples][:, None]) & (ranked >= 0)).sum(axis=1)
        badges = [f"{one} → {two}" for one, two in zip(before, after, strict=True)]
    tiles = [tile_of(live.dataset, int(live.images[row]), badge=badge)
             for row, badge in zip(live.samples, badges, strict=True)]
    clicked = gallery(live.dataset, tiles, "Queries", "refine-queries", 56, int(live.images[query]), 190)
    note = (f"Badge: hits among the first {SHOWN} images, before → after. The first two thirds gained the most with "
            "the page's first recipe, the last third lost the most." if labels is not None else
            "The first images of these queries changed the most with the page's first recipe.")
    st.caption(f"Click an image to make it the query. {note}")
    if clicked is not None:
        live.write_row("query", live_row(live, clicked))
        st.query_params.pop("image", None)
        st.rerun(scope="fragment")
    return query


def live_row(live: Live, index: int) -> int:
    """Return the row of an image of the gallery."""
    return int(np.searchsorted(live.images, index))


def show_query(live: Live, refined: Refined, query: int) -> None:
    """Show the rankings of a query before and after, and the votes for an image."""
    before, after = live.gallery.ranking_before(query), refined.rank(np.array([query]), len(live.images) - 1)[0]
    after = after[after >= 0]
    rank_before, rank_after = positions(before, len(live.images)), positions(after, len(live.images))
    shown = after[:TILES]
    risen = shown[np.argmax(rank_before[shown] - rank_after[shown])]
    image = live.row_in_address("image", int(risen))
    index = int(live.images[query])
    with st.container(horizontal=True, vertical_alignment="center"):
        picture(live.dataset.images[index], 96, f"The query: {live.dataset.caption(index)}")
        st.markdown(f"**Query: {live.dataset.caption(index)}**")
    clicks = []
    arrows = [moved(int(one), int(two)) for one, two in zip(rank_before, rank_after, strict=True)]
    for column, word, order in zip(st.columns(2, gap="medium"), ("Before", "After"), (before, after), strict=True):
        with column:
            clicks.append(_show_ranking(live, query, image, word, order[:TILES], arrows))
    st.caption("Arrows: how many ranks the refinement moves an image up or down."
               + (" ✓ with a solid frame: same class as the query. ✕ with a dashed frame: another class."
                  if live.labels is not None else ""))
    clicks.append(show_votes(live, refined, query, image, (int(rank_before[image]), int(rank_after[image]))))
    clicked = clicked_tile(clicks)
    if clicked is not None and clicked != index:
        live.write_row("image", live_row(live, clicked))
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
        score = f" · {(labels[order] == labels[query]).sum()} of {len(order)} hits"
    st.markdown(f"**{word}**{score}")
    index = int(live.images[query])
    tiles = [tile_of(live.dataset, int(live.images[row]), mark_of(live.dataset, int(live.images[row]), index),
                     f"{rank}{arrows[row]}")
             for rank, row in enumerate(order.tolist(), 1)]
    return gallery(live.dataset, tiles, f"The {len(order)} nearest images, {word.lower()}", f"refine-{word.lower()}",
                   64, int(live.images[image]))


def show_votes(live: Live, refined: Refined, query: int, image: int, ranks: tuple[int, int]) -> int | None:
    """Show which images voted for an image's rank.

    Returns:
        The data set index of the image that was clicked just now.
    """
    index = int(live.images[image])
    before, after = ranks
    verb = "rise" if after < before else "fall" if after > before else "stay"
    way = f"from rank {before:,} to {after:,}" if after != before else f"at rank {after:,}"
    st.subheader(f"Why did this image {verb} {way}?")
    st.markdown(f"**{live.dataset.caption(index)}**, framed above.")
    votes, voting = refining.votes_for(refined, query, image), refining.voting_step(refined)
    st.markdown(VOTE_WORDS[voting].format(count=len(votes.rows), score=votes.score))
    if not len(votes.rows):
        return None
    sign = COMMON.get(voting, "")
    tiles = [tile_of(live.dataset, int(live.images[row]), mark_of(live.dataset, int(live.images[row]),
                                                                   int(live.images[query])),
                     f"{value:.3f}{' ∩' if common and sign else ''}")
             for row, value, common in zip(votes.rows[:VOTERS].tolist(), votes.values, votes.common, strict=False)]
    left = len(votes.rows) - len(tiles)
    clicked = gallery(live.dataset, tiles, "Images that voted", "refine-votes", 64)
    st.caption("The largest votes first." + (f" {left:,} smaller votes are not shown." if left else "") + sign
               + " Click any image above to explain its rank.")
    return clicked
