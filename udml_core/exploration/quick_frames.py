"""Quick PCA maps of several embeddings of the same images, in one orientation and size."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from udml_core.base.arrays import Array
from udml_core.exploration.quick_map import quick_map
from udml_core.numerics.projection.align import procrustes


def quick_frames(embeddings: Iterable[Array]) -> Array:
    """Lay out several embeddings of the same n images by PCA.

    Each layout is scaled to unit mean square radius, because embeddings before and after training differ in scale, and
    aligned with the layout before it, so that points travel as little as possible.

    Args:
        embeddings: One embedding (n, d) for each frame; widths may differ.

    Returns:
        (f, n, 2) float32.
    """
    frames: list[Array] = []
    for embedding in embeddings:
        layout = quick_map(embedding)
        layout = layout / max(float(np.sqrt((layout ** 2).sum(axis=1).mean())), 1e-12)
        frames.append(procrustes(layout, frames[-1])(layout).astype(np.float32) if frames else layout)
    return np.stack(frames)
