"""NML's learnt rows: which images they answer to, what they look like, and how a kernel answers to one feature."""

from __future__ import annotations

import numpy as np
import torch

from udml_core.arrays import Array
from udml_core.losses.kernels import KernelName, kernel_of


def strongest(values: Array, rows: Array, count: int) -> Array:
    """Of some rows (r,), at most `count` with the largest values (n,), the largest first."""
    return rows[np.argsort(-values[rows], kind="stable")][:count]


def picture(row: Array, side: int, gray: bool) -> Array:
    """A row in the space of raw pixels as an image, uint8 (s, s) or (s, s, 3), as bright as can be.

    Args:
        row: (D,) or, of features and their negative parts, (2D,), of which the second half is left out.
    """
    channels = 1 if gray else 3
    values = row[:channels * side**2].reshape(channels, side, side).transpose(1, 2, 0)
    found = np.round(255 * values.clip(0) / max(float(values.max()), 1e-12)).astype(np.uint8)
    return found[:, :, 0] if gray else found


def response(kernel: KernelName, scale: float, features: int, level: float, ticks: Array) -> tuple[Array, Array]:
    """How a kernel answers to a single feature: its part of k(l, x), at the entry `level` of l and entries (t,) of x;
    a summand, and of the Gaussian a factor. Beside it a product's part l·x, scaled to meet it at x = l.

    Args:
        features: D. level, ticks: in units of the mean feature 1/D, and so are the summands.
    """
    unit = 1 if kernel == "rbf" else features
    points = torch.from_numpy(np.append(ticks, level) / features)[:, None]
    values = kernel_of(kernel, scale, features).values(points, points[-1:])[:, 0].numpy() * unit
    return values[:-1], values[-1] * ticks / max(level, 1e-12)
