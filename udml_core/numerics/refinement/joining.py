"""The affine map that makes the features of several encoders comparable."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from udml_core.base.arrays import Array, Floats
from udml_core.numerics.refinement.linear import LinearMap, whitening
from udml_core.numerics.refinement.recipe import Whitening


def joining(parts: Sequence[Array], weights: Sequence[float], whitened: Whitening) -> LinearMap:
    """Fit the map x ↦ (x − offset)·weight of unit features side by side.

    `none` multiplies each part by its weight. `together` then whitens the joint vector as the method `whiten` does:
    it subtracts the mean, and directions in which mutual nearest neighbors differ shrink. `each` whitens every part in
    this way, scales it to a mean squared length of 1 and multiplies it by its weight.

    Args:
        parts: Unit features (n, d_i) of the training images by each encoder.
        weights: The weight of each part.
        whitened: What is whitened.

    Returns:
        The map, with weight (d, d) and offset (d,) for the d = Σ d_i joint features.
    """
    rows = [np.asarray(part, np.float32) for part in parts]
    offset = np.concatenate([part.mean(axis=0) for part in rows])
    if whitened == "each":
        blocks = [whitening(part).weight for part in rows]
        return LinearMap(_diagonal([block * (weight / _length((part - part.mean(axis=0)) @ block))
                                    for part, block, weight in zip(rows, blocks, weights, strict=True)]), offset)
    shares = np.asarray(weights, np.float32) / np.linalg.norm(weights)  # the weighted rows then have unit length
    factors = np.repeat(shares, [part.shape[1] for part in rows]).astype(np.float32)
    if whitened == "none":
        return LinearMap(np.diag(factors), np.zeros_like(offset))
    return LinearMap(factors[:, None] * whitening(np.concatenate(rows, axis=1) * factors).weight, offset)


def _diagonal(blocks: Sequence[Floats]) -> Floats:
    """Return square blocks along the diagonal of a matrix (d, d)."""
    whole, start = np.zeros((sum(map(len, blocks)),) * 2, np.float32), 0
    for block in blocks:
        stop = start + len(block)
        whole[start:stop, start:stop] = block
        start = stop
    return whole


def _length(rows: Array) -> float:
    """Return the square root of the mean squared length of rows (n, d); 1 if all are zero."""
    return float(np.sqrt((np.asarray(rows, np.float64)**2).sum(axis=1).mean())) or 1.0
