"""NML's prototypes: largest responses, pictures, responses to single features."""

from __future__ import annotations

import numpy as np
import torch

from udml_core.base.arrays import Array
from udml_core.numerics.losses.kernels import KernelName, kernel_of


def strongest_rows(values: Array, rows: Array, count: int) -> Array:
    """Return the rows with the largest values, in descending order.

    Args:
        values: (n,) values.
        rows: (r,) rows to choose from.
        count: Maximum number of rows.
    """
    return rows[np.argsort(-values[rows], kind="stable")][:count]


def picture(row: Array, side: int, gray: bool) -> Array:
    """Convert a prototype in the space of raw pixels to an image at full brightness.

    Args:
        row: (D,) values, or (2D,) with the negative parts in the second half, which is ignored.
        side: Side length s of the image in pixels.
        gray: Whether the pixels have one channel instead of three.

    Returns:
        uint8 (s, s) or (s, s, 3).
    """
    channels = 1 if gray else 3
    values = row[:channels * side**2].reshape(channels, side, side).transpose(1, 2, 0)
    image = np.round(255 * values.clip(0) / max(float(values.max()), 1e-12)).astype(np.uint8)
    return image[:, :, 0] if gray else image


def response(kernel: KernelName, scale: float, features: int, level: float, ticks: Array) -> tuple[Array, Array]:
    """Compute a kernel's response to a single feature.

    The response is one term of k(l, x); for the Gaussian kernel it is one factor.

    Args:
        kernel: The kernel's name.
        scale: The kernel's scale.
        features: Number D of features.
        level: The prototype's value of the feature, in units of the mean feature 1/D.
        ticks: (t,) an image's values of the feature, in the same unit.

    Returns:
        Responses (t,) in the same unit, and for comparison the product l·x (t,), scaled to be equal at x = l.
    """
    unit = 1 if kernel == "rbf" else features
    points = torch.from_numpy(np.append(ticks, level) / features)[:, None]
    values = kernel_of(kernel, scale, features).values(points, points[-1:])[:, 0].numpy() * unit
    return values[:-1], values[-1] * ticks / max(level, 1e-12)
