"""What a recipe changes on a gallery: measures before and after, and queries that show it."""

from __future__ import annotations

from typing import Literal

import numpy as np

from udml_core.base.arrays import Integers
from udml_core.exploration.refining.refined_gallery import RefinedGallery
from udml_core.exploration.refining.unrefined import NEIGHBORS
from udml_core.numerics.refinement.ranking_measures import label_free_measures, retrieval_measures, share_of_common
from udml_core.numerics.refinement.recipe import Recipe

SHOWN = 12
"""First ranks in which a query's hits are counted."""
Seen = Literal["nothing", "training half", "gallery"]


def measure(refined: RefinedGallery, labels: Integers | None) -> dict[str, tuple[float, float]]:
    """Measure retrieval before and after.

    Args:
        refined: The refined gallery.
        labels: Class (n,) of each image, if it is known.

    Returns:
        Before and after by measure. `recall@1` and `map@r` in percent on the sample of queries, with labels;
        `reciprocity` in percent and `hubness`, except for a diffusion; `neighbor stability` in percent.
    """
    queries, measures = refined.before.queries, {}
    if labels is not None:
        depth = min(max(SHOWN, int(np.bincount(labels).max()) - 1), len(refined.before) - 1)
        after = refined.rank_sample(depth)
        before, values = (retrieval_measures(ranking, labels[queries], labels, True)
                          for ranking in (refined.before.ranking[:, :depth], after))
        measures = {name: (before[name], values[name]) for name in before}
    else:
        after = refined.rank_sample(NEIGHBORS)
    neighbors_before, neighbors = refined.before.neighbors, refined.neighbors()
    if neighbors is None:
        shared = share_of_common(after[:, : neighbors_before.shape[1]], neighbors_before[queries])
        return measures | {"neighbor stability": (100.0, 100 * float(shared.mean()))}
    free = label_free_measures(neighbors, neighbors_before)
    return measures | {name: (refined.before.label_free.get(name, 100.0), free[name]) for name in free}


def recall_change(refined: RefinedGallery, labels: Integers) -> tuple[float, float]:
    """Return by how many points Recall@1 changes on the sample, and the standard error of the change.

    The queries are paired, and the error is zero if the sample is the whole gallery.
    """
    before, after = count_hits(refined, labels, 1)
    change, share = 100.0 * (after - before), len(before) / len(refined.before)
    return float(change.mean()), float(change.std() * ((1 - share) / len(before)) ** 0.5)


def count_hits(refined: RefinedGallery, labels: Integers, k: int = SHOWN) -> tuple[Integers, Integers]:
    """Count each sampled query's hits (s,) among the first k ranks, before and after."""
    queries = refined.before.queries
    wanted = labels[queries][:, None]
    after = refined.rank_sample(k)
    return ((labels[refined.before.ranking[:, :k]] == wanted).sum(axis=1),
            ((labels[after] == wanted) & (after >= 0)).sum(axis=1))


def choose_queries(refined: RefinedGallery, labels: Integers | None, count: int) -> Integers:
    """Choose sampled queries that show what a recipe does, the clearest improvement first.

    Two thirds have gained the most hits among their first ranks, the others have lost the most. Without labels the
    queries whose first ranks change the most are chosen.

    Returns:
        Rows (at most count,) of the gallery.
    """
    queries = refined.before.queries
    if labels is None:
        after = refined.rank(queries, min(NEIGHBORS, len(refined.before) - 1))
        kept = share_of_common(after, refined.before.ranking[:, : after.shape[1]])
        return queries[np.argsort(kept, kind="stable")[:count]]
    before, after = count_hits(refined, labels)
    order = np.argsort(before - after, kind="stable")
    best = min(len(order), count - count // 3)
    return queries[np.concatenate([order[:best], order[best:][::-1][: count - best]])]


def seen_images(recipe: Recipe, has_training: bool) -> list[tuple[str, Seen]]:
    """Return each step's name and the images that it has seen when a recipe is fitted on a gallery.

    Args:
        recipe: The recipe.
        has_training: Whether whitening and reduction are fitted on the training half.
    """
    seen: dict[str, Seen] = {"nothing": "nothing", "fitted": "training half" if has_training else "gallery",
                             "gallery": "gallery"}
    return [(step.name, seen[step.sees]) for step in recipe.steps]
