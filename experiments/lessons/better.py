"""Lesson 13: judging without labels, on digits whose columns and rows are summed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from udml_core.base.arrays import Array, Integers
from udml_core.base.paths import ASSETS
from udml_core.data import catalog
from udml_core.exploration.lesson_examples import digits_vectors
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.numerics.second_opinion import Judge, cosine_difference

PAIRS = 200
NOISE = {"noise": (0.0, 0.03), "nothing": (0.02, 0.02)}
"""Standard deviations of what is added to both embeddings of a comparison."""


def weak_encoders() -> tuple[Array, Array]:
    """Return unit sums of the columns and of the rows of each digit, (1797, 8) each."""
    pixels = digits_vectors().reshape(-1, 8, 8)
    return unit_rows(pixels.sum(axis=1)), unit_rows(pixels.sum(axis=2))


def embeddings() -> dict[str, tuple[Array, Array]]:
    """Return the embedding before and after, by comparison."""
    columns, rows = weak_encoders()
    random = np.random.default_rng(3)

    def shaken(scale: float) -> Array:
        return unit_rows((columns + random.normal(0, scale, columns.shape)).astype(np.float32))

    return {"joined": (columns, unit_rows(np.hstack([columns, rows])))} | {
        name: (shaken(before), shaken(after)) for name, (before, after) in NOISE.items()}


def compared(before: Integers, after: Integers, judge: Judge) -> dict[str, Any]:
    """Return pairs of first results (n,) that differ, what the judge says of each, and the truth from labels."""
    labels = np.asarray(catalog.load("digits").labels)
    everyone = np.arange(len(before))
    cosines = [np.einsum("nd,nd->n", judge.whitened, judge.whitened[found]).astype(np.float64)
               for found in (before, after)]
    opinion = cosine_difference(len(before), everyone, *(
        (found[:, None], seen[:, None]) for found, seen in zip((before, after), cosines, strict=True)))
    differing = np.flatnonzero(before != after)
    rows = np.random.default_rng(0).permutation(differing)[:PAIRS]
    shown = {"query": rows, "before": before[rows], "after": after[rows]}
    return {name: numbers.astype(np.int16) for name, numbers in shown.items()} | {
            "preferred": (cosines[1] > cosines[0])[rows].astype(np.uint8), "differing": len(differing),
            "difference": float(opinion.difference), "error": float(opinion.error),
            "recall": [float(100 * (labels[found] == labels).mean()) for found in (before, after)]}


def recorded() -> dict[str, int]:
    """Return how often the app's verdicts on first results were right, from the record of the second opinion."""
    record = json.loads((ASSETS / "results" / "second-opinion.json").read_text(encoding="utf-8"))
    return {key: record["totals in the app"]["first result"][key] for key in ("large", "decided", "right")}


def better() -> dict[str, Any]:
    """Return every comparison, and the record."""
    judge = Judge.of(digits_vectors())
    return {name: compared(*(nearest(space, 1)[1][:, 0] for space in spaces), judge)
            for name, spaces in embeddings().items()} | {"record": recorded()}
