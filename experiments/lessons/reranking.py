"""Lesson 12: re-ranking by neighbors, on small galleries of digits."""

from __future__ import annotations

from typing import Any

import numpy as np

from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.exploration.lesson_examples import digits_vectors
from udml_core.numerics.refinement import Refiner
from udml_core.numerics.refinement.ranking_measures import retrieval_measures

PER_CLASS, GALLERIES, MOST_NEIGHBORS = 12, 10, 20
RECIPES = {"averaged": "average:k={}", "averaged_twice": "average:k={},times=2", "reranked": "rerank:k1={}"}


def gallery_rows(labels: Array, seed: int) -> Array:
    """Draw a gallery with the same number of digits of each class."""
    random = np.random.default_rng(seed)
    return np.concatenate([random.choice(np.flatnonzero(labels == digit), PER_CLASS, replace=False)
                           for digit in range(10)])


def measures(rows: Array, labels: Array, recipe: str) -> tuple[float, float]:
    """Return Recall@1 and MAP@R in percent of a gallery whose images are the queries."""
    ranking = Refiner(recipe).fit(rows).neighbors(len(rows) - 1)
    values = retrieval_measures(ranking.indices, labels, labels, inside=True)
    return values["recall@1"], values["map@r"]


def reranking() -> dict[str, Any]:
    """Return the mean Recall@1 and MAP@R of the galleries for each recipe and each k from 0 on."""
    vectors, labels = digits_vectors(), np.asarray(catalog.load("digits").labels)
    draws = [gallery_rows(labels, seed) for seed in range(GALLERIES)]

    def mean(recipe: str) -> Array:
        return np.mean([measures(vectors[rows], labels[rows], recipe) for rows in draws], axis=0)

    before = mean("average:k=0")
    return {name: np.stack([before, *(mean(recipe.format(k)) for k in range(1, MOST_NEIGHBORS + 1))]).astype(np.float32)
            for name, recipe in RECIPES.items()}
