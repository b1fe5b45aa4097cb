"""Why an image has its rank: the images that voted for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import sparse

from udml_core.base.arrays import Array, Floats, Integers
from udml_core.exploration.refining.live import CANDIDATES
from udml_core.exploration.refining.refined_gallery import RefinedGallery
from udml_core.numerics.refinement.recipe import Diffuse, Rerank


@dataclass(frozen=True)
class Votes:
    """Why an image has its rank: the images that voted for it.

    Attributes:
        rows: Rows (v,) of the voters, the largest vote first.
        values: Their votes (v,); together they are the score.
        common: Whether (v,) the voter is also among the query's own.
        score: The image's refined score.
    """

    rows: Integers
    values: Floats
    common: Array
    score: float


def voting_step(refined: RefinedGallery) -> Literal["rerank", "diffuse", "expand", "average", "none"]:
    """Return the step that decides the ranking, whose votes explain it."""
    ranking = refined.recipe.find("ranking")
    if ranking is not None:
        return "rerank" if isinstance(ranking, Rerank) else "diffuse"
    if refined.query_weights is not None:
        return "expand"
    return "none" if refined.stage.weights is None else "average"


def votes_for(refined: RefinedGallery, query: int, image: int) -> Votes:
    """Return which images voted for an image's rank, by the step that decides the ranking.

    - `rerank`: images in both encodings vote with min(V_q, V_g); the score is their sum, the overlap.
    - `diffuse`: neighbors pass on their own score, α·S·f.
    - `expand`: the query and its neighbors vote with their part of the cosine.
    - `average`: the image and its neighbors vote with their part of the cosine.
    - no such step: common neighbors vote with the smaller of their two cosines.
    """
    match voting_step(refined):
        case "rerank":
            encoding = refined.encoding[0]
            first, second = encoding[query].toarray()[0], encoding[image].toarray()[0]
            return _ordered(np.minimum(first, second), np.minimum(first, second) > 0)
        case "diffuse":
            return _walk_votes(refined, query, image)
        case "expand":
            weights = refined.query_weights
            assert weights is not None
            return _mean_votes(weights, refined.stage.rows, query, refined.stage.rows[image], image)
        case "average":
            assert refined.stage.weights is not None
            assert refined.stage.sources is not None
            return _mean_votes(refined.stage.weights, refined.stage.sources, image, refined.stage.rows[query], query)
        case "none":
            cosines = refined.stage.rows @ refined.stage.rows[[query, image]].T
            near = refined.stage.nearest(CANDIDATES // 2)[0]
            both = np.intersect1d(near[query], near[image])
            value = np.zeros(len(refined.before), np.float32)
            value[both] = cosines[both].min(axis=1)
            return _ordered(value, value > 0, float(cosines[image, 0]))


def _mean_votes(weights: sparse.csr_matrix, sources: Floats, averaged: int, other: Floats, other_row: int) -> Votes:
    """Split cos(Σ_j w_j x_j, y) into the votes w_j·x_j·y / |Σ_j w_j x_j|."""
    row = weights[averaged]
    members = row.indices
    length = np.linalg.norm(row.data @ sources[members])
    value = np.zeros(len(sources), np.float32)
    value[members] = row.data * (sources[members] @ other) / (length or 1.0)
    common = np.zeros(len(value), bool)
    common[weights[other_row].indices] = True
    return _ordered(value, common)


def _walk_votes(refined: RefinedGallery, query: int, image: int) -> Votes:
    step = refined.recipe.find("ranking")
    assert isinstance(step, Diffuse)
    ranked, scores = refined.diffuse(np.array([query]), len(refined.before) - 1, step)
    values = np.zeros(len(refined.before))
    values[ranked[0]] = scores[0]
    # f = y + αSf holds at the query too: the walk returns there with 1 − α.
    edges = refined.graph[query]
    values[query] = 1 + step.alpha * float(edges.data @ values[edges.indices])
    row = refined.graph[image]
    votes = np.zeros(len(values), np.float32)
    votes[row.indices] = step.alpha * row.data * values[row.indices]
    common = np.zeros(len(votes), bool)
    common[edges.indices] = True
    return _ordered(votes, common)


def _ordered(values: Floats, common: Array, score: float | None = None) -> Votes:
    """Sort the votes of all images, and leave out zeros."""
    rows = np.flatnonzero(values)
    rows = rows[np.argsort(-values[rows], kind="stable")]
    return Votes(rows, values[rows], common[rows], float(values.sum()) if score is None else score)
