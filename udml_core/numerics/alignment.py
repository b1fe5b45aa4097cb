"""Align small gray images that may show the same photograph, cropped or stretched, and measure how well they agree.

Image j is sought in image i under x ↦ s·x + t, with a scale and a shift for each axis, by Gauss-Newton steps from
coarse to fine (Lucas and Kanade). Brightness and contrast are fitted in every step, so they do not count. Gray values
resemble each other in any two photographs of a bird before the sky, so their differences from the mean of a few pixels
around are compared, which survive a strong compression. A difference in color lowers the agreement: a red and a blue
heart have the same shape.

References:
    B. D. Lucas and T. Kanade, "An Iterative Image Registration Technique with an Application to Stereo Vision", 1981.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Array, Floats

SIDE, COLOR_SIDE = 64, 16
"""Sides in pixels of the gray images, and of the images of color."""
SAME_COLOR, OTHER_COLOR = 4.0, 60.0
"""Root mean square difference in chroma, of 255, up to which colors are the same, and with which nothing agrees."""
LEVELS = ((16, 8, 0.4), (32, 5, 0.6), (64, 4, 1.0))
"""Sides from coarse to fine, the steps at each, and the least agreement with which the next level is tried."""
LEAST_OVERLAP = 0.6
"""Share of image j that must lie within image i."""
LARGEST_STEP = 0.1
"""Largest change of a scale or a shift in one step; the side of an image is 2."""
SMALLEST_SCALE, LARGEST_SCALE = 0.6, 1.65
RIDGE = 1e-3
"""Added to the normal equations, so that an image without detail does not move."""
BLOCK = 256
"""Pairs that are aligned at once, in 60 MB."""


@dataclass(frozen=True, eq=False)
class Thumbnails:
    """Small images, stretched to squares.

    Attributes:
        gray: Gray values (p, 64, 64) uint8.
        chroma: Both color differences (p, 2, 16, 16) uint8, as in JPEG.
    """

    gray: Array
    chroma: Array

    def __len__(self) -> int:
        return len(self.gray)

    def of(self, rows: Array) -> Thumbnails:
        """Return the thumbnails of some rows."""
        return Thumbnails(self.gray[rows], self.chroma[rows])


def agreements(left: Thumbnails, right: Thumbnails, finest: int = SIDE) -> Floats:
    """Return how well each image of one list agrees with the image of another, once they are aligned.

    Args:
        left: Thumbnails of p images.
        right: Thumbnails of the p images sought in them.
        finest: The finest side at which they are aligned; images of 28 pixels have no more detail at 64.

    Returns:
        Correlations (p,) float32 of the detail of both where they overlap, −1 … 1; about 1 for two copies of one
        photograph. 0 for images without detail, and where too little overlaps. Of pairs that differ at a coarse level
        it is that level's correlation. Other colors lower it.
    """
    values = np.zeros(len(left), np.float32)
    for start in range(0, len(left), BLOCK):
        part = np.arange(start, min(start + BLOCK, len(left)))
        values[part] = _aligned(left.of(part), right.of(part), finest)
    return values


def _aligned(left_images: Thumbnails, right_images: Thumbnails, finest: int) -> Floats:
    """Align pairs from coarse to fine, and give up pairs that do not agree at a coarser level."""
    left, right = left_images.gray.astype(np.float32), right_images.gray.astype(np.float32)
    values, hopeful = np.zeros(len(left), np.float32), np.arange(len(left))
    scale, shift = np.ones((len(left), 2), np.float32), np.zeros((len(left), 2), np.float32)
    for side, steps, least in LEVELS:
        coarse, sought = reduce_to(left[hopeful], side), reduce_to(right[hopeful], side)
        place = scale[hopeful], shift[hopeful]
        for _ in range(steps):
            _step(coarse, sought, *place)
        scale[hopeful], shift[hopeful] = place
        warped, inside = _warp(coarse, *place)
        reach = max(1, side // 20)
        agreement = _correlation(detail(warped, inside, reach), detail(sought, inside, reach), inside)
        values[hopeful] = np.where(inside.mean(axis=(1, 2)) >= LEAST_OVERLAP, agreement, 0.0)
        hopeful = hopeful[values[hopeful] >= least]
        if side >= finest or not len(hopeful):
            break
    return values * _color_share(left_images.chroma, right_images.chroma, scale, shift)


def _color_share(left: Array, right: Array, scale: Floats, shift: Floats) -> Floats:
    """Return the share (p,) of the agreement that the colors (p, 2, 16, 16) of aligned images leave."""
    squares = 0.0
    for channel in (0, 1):
        warped, inside = _warp(left[:, channel].astype(np.float32), scale, shift)
        squares = squares + ((warped - right[:, channel]) ** 2 * inside).sum(axis=(1, 2))
    difference = np.sqrt(squares / np.maximum(inside.sum(axis=(1, 2)), 1.0))
    return (1 - np.clip((difference - SAME_COLOR) / (OTHER_COLOR - SAME_COLOR), 0, 1)).astype(np.float32)


def reduce_to(images: Floats, side: int) -> Floats:
    """Return the means of equal squares of images (p, s, s), (p, side, side)."""
    factor = images.shape[1] // side
    return images.reshape(len(images), side, factor, side, factor).mean(axis=(2, 4))


def _positions(side: int) -> Floats:
    """Return the centers of pixels (side,), −1 … 1."""
    return ((np.arange(side, dtype=np.float32) + 0.5) * (2.0 / side) - 1.0).astype(np.float32)


def _warp(images: Floats, scale: Floats, shift: Floats) -> tuple[Floats, Floats]:
    """Return images (p, s, s) at s·x + t, and where that lies within them, 0 or 1.

    Both axes are interpolated separately, by two products with matrices of hat functions.
    """
    side = images.shape[1]
    at = _positions(side)
    matrices, inside = [], []
    for axis in (0, 1):
        places = (scale[:, axis, None] * at + shift[:, axis, None] + 1.0) * (side / 2) - 0.5
        inside.append((places > -0.75) & (places < side - 0.25))
        places = np.clip(places, 0, side - 1)
        matrices.append(np.maximum(0.0, 1.0 - np.abs(places[..., None] - np.arange(side, dtype=np.float32))))
    warped = matrices[0] @ images @ matrices[1].transpose(0, 2, 1)
    return warped, (inside[0][:, :, None] & inside[1][:, None, :]).astype(np.float32)


def _step(images: Floats, sought: Floats, scale: Floats, shift: Floats) -> None:
    """Change scales and shifts (p, 2) in place by one step towards the sought images."""
    side = images.shape[1]
    at = _positions(side)
    warped, inside = _warp(images, scale, shift)
    down, across = (np.gradient(warped, 2.0 / side, axis=axis) for axis in (1, 2))
    # Columns of the Jacobian: shift and scale of both axes, then contrast and brightness.
    columns = np.stack([down, down * at[:, None], across, across * at, warped, np.ones_like(warped)], axis=1)
    flat = columns.reshape(*columns.shape[:2], -1)
    weighted = flat * inside.reshape(len(inside), 1, -1)
    normal = weighted @ flat.transpose(0, 2, 1)
    size = np.trace(normal, axis1=1, axis2=2)[:, None, None] / 6
    normal += (RIDGE * size + 1e-6) * np.eye(6, dtype=np.float32)
    solved = np.linalg.solve(normal, weighted @ sought.reshape(len(sought), -1, 1))[:, :, 0]
    contrast = np.where(np.abs(solved[:, 4]) < 0.2, 0.2, solved[:, 4])
    change = np.clip(solved[:, :4] / contrast[:, None], -LARGEST_STEP, LARGEST_STEP)
    # d/dx of the warped image is in units of its own x, so a step inside the warp is multiplied by the scale.
    shift += scale * change[:, [0, 2]]
    scale *= 1.0 + change[:, [1, 3]]
    np.clip(scale, SMALLEST_SCALE, LARGEST_SCALE, out=scale)
    np.clip(shift, -0.5, 0.5, out=shift)


def detail(images: Floats, inside: Floats, reach: int) -> Floats:
    """Return images (p, s, s) minus their local means over 2·reach + 1 pixels inside a mask (p, s, s)."""
    weights = _box(inside, reach)
    return (images - _box(images * inside, reach) / np.maximum(weights, 1e-6)) * inside


def _box(images: Floats, reach: int) -> Floats:
    """Return the sums of (p, s, s) over squares of 2·reach + 1 pixels."""
    padded = np.pad(images, ((0, 0), (reach + 1, reach), (reach + 1, reach)))
    sums = padded.cumsum(axis=1, dtype=np.float64).cumsum(axis=2)
    width = 2 * reach + 1
    return (sums[:, width:, width:] - sums[:, :-width, width:] - sums[:, width:, :-width]
            + sums[:, :-width, :-width]).astype(np.float32)


def _correlation(left: Floats, right: Floats, inside: Floats) -> Floats:
    """Return the correlation (p,) of images inside a mask; 0 where one is flat."""
    count = np.maximum(inside.sum(axis=(1, 2)), 1.0)
    left, right = ((image - (image * inside).sum(axis=(1, 2), keepdims=True) / count[:, None, None]) * inside
                   for image in (left, right))
    product = (left * right).sum(axis=(1, 2))
    norms = np.sqrt((left * left).sum(axis=(1, 2)) * (right * right).sum(axis=(1, 2)))
    flat = norms < count * 0.25  # less than half a gray level in each
    return np.where(flat, 0.0, product / np.maximum(norms, 1e-6)).astype(np.float32)
