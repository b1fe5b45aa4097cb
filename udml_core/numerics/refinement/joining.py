"""The affine map that makes the features of several encoders comparable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from udml_core.base.arrays import Array, Floats
from udml_core.numerics.refinement.linear import LinearMap, whitening

Whitened = Literal["together", "each", "none"]


def joining(parts: Sequence[Array], weights: Sequence[float], whitened: Whitened) -> LinearMap:
    """Fit the map x ↦ (x − offset)·weight of unit features side by side.

    `together` centers the parts, scales each to a mean squared length of 1, multiplies it by its weight, and whitens
    the joint vector. `each` whitens every part before it is scaled. `none` only multiplies by the weights. The
    whitening is that of the method `whiten`: directions in which mutual nearest neighbors differ shrink.

    Args:
        parts: Unit features (n, d_i) of the training images by each encoder.
        weights: The weight of each part.
        whitened: What is whitened.

    Returns:
        The map, with weight (d, d) and offset (d,) for the d = Σ d_i joint features.
    """
    rows = [np.asarray(part, np.float32) for part in parts]
    if whitened == "none":
        factors = np.concatenate([np.full(part.shape[1], weight, np.float32)
                                  for part, weight in zip(rows, weights, strict=True)])
        return LinearMap(np.diag(factors), np.zeros(len(factors), np.float32))
    offset = np.concatenate([part.mean(axis=0) for part in rows])
    blocks = [whitening(part).weight if whitened == "each" else np.eye(part.shape[1], dtype=np.float32)
              for part in rows]
    blocks = [block * (weight / _length((part - part.mean(axis=0)) @ block))
              for part, block, weight in zip(rows, blocks, weights, strict=True)]
    joint = _diagonal(blocks)
    if whitened == "together":
        joint = joint @ whitening((np.concatenate(rows, axis=1) - offset) @ joint).weight
    return LinearMap(joint, offset)


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
