"""The current image seen from one record: its stand-in, and the labels that reach it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Array
from udml_core.exploration.label_spread import solve, walk_system
from udml_core.numerics.neighbors import nearest


def stand_in(embedding: Array, index: int, among: Array) -> int:
    """Return an image itself if it is among some images, else the nearest of them.

    Args:
        embedding: Embeddings (n, l) of all images.
        index: The image.
        among: Indices (m,) of the images to choose from, at least one.
    """
    if (among == index).any():
        return index
    return int(among[nearest(np.asarray(embedding[among]), 1, np.asarray(embedding[index])[None])[1][0, 0]])


@dataclass(frozen=True)
class LabelSources:
    """The labels at which random walks from one image end.

    Attributes:
        rows: Labeled rows (m,), most probable first; rows that no walk reaches are left out.
        shares: Their shares (m,) of the walks that end at any label.
        codes: Their class codes (m,).
        total: Probability that a walk ends at any label.
    """

    rows: Array
    shares: Array
    codes: Array
    total: float

    @property
    def best(self) -> int:
        """The class code at which most walks end; −1 if no walk reaches a label."""
        return int(np.bincount(self.codes, self.shares).argmax()) if len(self.rows) else -1

    @property
    def certainty(self) -> float:
        """The share of the best class; 0 if no walk reaches a label."""
        return float(self.shares[self.codes == self.best].sum())


def label_sources(neighbors: Array, codes: Array, row: int, gamma: float) -> LabelSources:
    """Find the labels at which random walks from one image end.

    One transposed system gives the expected visits of all images, so the number of classes does not matter.

    Args:
        neighbors: Neighbors (n, k) as rows.
        codes: Class codes (n,), −1 for unlabeled.
        row: The image.
        gamma: Probability γ that a walk continues.
    """
    system = walk_system(neighbors, np.zeros(len(codes), dtype=bool), gamma)
    ends = (1 - gamma) * solve(system.T, (np.arange(len(codes)) == row).astype(float)).clip(0)
    labeled = np.flatnonzero((codes >= 0) & (ends > 1e-6 / len(codes)))
    labeled = labeled[np.argsort(-ends[labeled], kind="stable")]
    total = float(ends[labeled].sum())
    return LabelSources(labeled, ends[labeled] / max(total, 1e-300), codes[labeled], total)
