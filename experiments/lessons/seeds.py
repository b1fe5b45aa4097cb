"""Lesson 11: Recall@1 of runs that differ in their seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from udml_core.data import catalog
from udml_core.data.splits import make_split
from udml_core.exploration.lesson_examples import digits_vectors
from udml_core.methods.rpml import RPML
from udml_core.numerics.evaluation import recall_at_k
from udml_core.sklearn import MetricLearner

SEEDS_A, SEEDS_B = range(0, 20, 2), range(1, 20, 2)
FIRST = RPML(dimension=8, epochs=3)
OTHERS = {"width": FIRST.model_copy(update={"dimension": 10}), "angle": FIRST.model_copy(update={"alpha": 55.0}),
          "nothing": FIRST}
"""The settings of B by comparison: a wider embedding, a larger angle, and the settings of A again."""


def recall(method: RPML, seed: int) -> float:
    """Train on the digits 0 to 4 and return Recall@1 in percent on the digits 5 to 9."""
    dataset, vectors = catalog.load("digits"), digits_vectors()
    split = make_split(dataset, "zero-shot")
    learner = MetricLearner(method, seed).fit(vectors[split.train])
    return 100 * recall_at_k(learner.transform(vectors[split.test]), dataset.labels[split.test], (1,))[1]


def seeds() -> dict[str, Any]:
    """Return Recall@1 of ten runs of A, and of ten runs of B in each comparison."""
    runs = {name: np.array([recall(method, seed) for seed in SEEDS_B], np.float32) for name, method in OTHERS.items()}
    return {"a": np.array([recall(FIRST, seed) for seed in SEEDS_A], np.float32), "b": runs}
