"""Lesson 8: collapse. Runs with several step sizes, with an orthonormal and with a free projection."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.exploration.lesson_examples import digits_vectors
from udml_core.numerics.evaluation import recall_at_k
from udml_core.numerics.geometry import Euclidean, Manifold, Stiefel
from udml_core.numerics.losses.angular import SmoothAngular
from udml_core.numerics.projection.pca import pca_layout
from udml_core.numerics.sampling import cluster_triplets, generator

RATES = (1.0, 3.0, 10.0, 30.0, 100.0)
STEPS = (0, 1, 2, 3, 4, 6, 8, 10, 12, 16, 20)
DIMENSION = 8
ALPHA = 15.0
EACH = 40
"""Images of each class."""


def images() -> tuple[Array, Array]:
    """Return the rows of the digits in this lesson, and their classes."""
    classes = catalog.load("digits").labels
    random = np.random.default_rng(0)
    rows = np.sort(np.concatenate([random.choice(np.flatnonzero(classes == digit), EACH, replace=False)
                                   for digit in range(10)]))
    return rows, classes[rows]


def triplets_of(classes: Array) -> torch.Tensor:
    """Return the triplets (t, 3) of all runs."""
    return cluster_triplets(torch.from_numpy(classes), 10, len(classes) * 10, generator(0, 0))


def train(manifold: Manifold, objective: SmoothAngular, rate: float) -> list[Array]:
    """Take steps of gradient descent from the same orthonormal projection, and return L (64, l) at `STEPS`."""
    point = tuple(part.double() for part in Stiefel(64, DIMENSION).random(0))
    projections = []
    for step in range(max(STEPS) + 1):
        if step in STEPS:
            projections.append(point[0].numpy())
        gradient = manifold.gradient(point, objective(point).gradient())
        point = manifold.retract(point, tuple(-rate * part for part in gradient))
    return projections


def collapse() -> dict[str, Any]:
    """Return singular values as shares, recall@1 and maps, by projection, step size and step."""
    rows, classes = images()
    points = torch.from_numpy(digits_vectors()[rows].astype(np.float64))
    objective = SmoothAngular(points, triplets_of(classes), ALPHA)
    shares, recalls, losses, positions = [], [], [], []
    for manifold in (Stiefel(64, DIMENSION), Euclidean(64, DIMENSION)):
        for rate in RATES:
            layout = None
            for projection in train(manifold, objective, rate):
                embedding = points.numpy() @ projection
                values = np.linalg.svd(embedding - embedding.mean(axis=0), compute_uv=False)
                shares.append(values / values.sum())
                losses.append(objective((torch.from_numpy(projection),)).value)
                recalls.append(recall_at_k(embedding, classes, (1,))[1])
                # Unit spread: the free projection can grow without limit.
                layout = pca_layout(embedding / np.sqrt(embedding.var(axis=0).sum()), layout)
                positions.append(np.clip(np.round(128 + 42 * (layout - layout.mean(axis=0))), 0, 255))
    shape = (2, len(RATES), len(STEPS))
    return {"shares": np.reshape(shares, (*shape, DIMENSION)).astype(np.float32),
            "recalls": np.reshape(recalls, shape).astype(np.float32), "classes": classes.astype(np.uint8),
            "losses": np.reshape(losses, shape).astype(np.float32),
            "positions": np.reshape(positions, (*shape, len(rows), 2)).astype(np.uint8),
            "rates": list(RATES), "steps": list(STEPS), "alpha": ALPHA}
