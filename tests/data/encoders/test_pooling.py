"""R-MAC compared with a loop over hand-written regions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from udml_core.base.arrays import Array
from udml_core.data.encoders.pooling import pool, rmac, rmac_scales

# Side and starts of the regions at each level, by side of the map (G. Tolias et al., figure 2: 1, 2×2 and 3×3 regions).
GRID: dict[int, dict[int, tuple[int, list[int]]]] = {
    7: {1: (7, [0]), 2: (4, [0, 3]), 3: (3, [0, 2, 4])},
    8: {1: (8, [0]), 2: (5, [0, 3]), 3: (4, [0, 2, 4])},
    11: {1: (11, [0]), 2: (7, [0, 4]), 3: (5, [0, 3, 6])},
    1: {1: (1, [0]), 2: (1, [0]), 3: (1, [0])},
}


def unit(row: Array) -> Array:
    return row / max(float(np.linalg.norm(row)), 1e-12)


def loop_over_regions(maps: Array) -> Array:
    """Compute R-MAC of the maps (d, s, s) of an image."""
    total = unit(maps.max((1, 2)))  # MAC: the maximum over the whole map
    for side, starts in GRID[maps.shape[1]].values():
        for top in starts:
            for left in starts:
                total = total + unit(maps[:, top : top + side, left : left + side].max((1, 2)))
    return unit(total)


@pytest.mark.parametrize("side", GRID)
def test_rmac_sums_the_regional_maxima(side: int) -> None:
    maps = np.random.default_rng(side).gamma(1.0, size=(4, 6, side, side))
    expected = [loop_over_regions(image_maps) for image_maps in maps]
    np.testing.assert_allclose(rmac(torch.from_numpy(maps)).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (5, 9), (9, 5), (1, 6)])
def test_rmac_gives_unit_vectors_for_maps_of_any_shape(shape: tuple[int, int]) -> None:
    maps = torch.rand(3, 5, *shape, dtype=torch.float64)
    features = rmac(maps)
    torch.testing.assert_close(features.norm(dim=1), torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(rmac(maps.transpose(2, 3)), features)  # rows and columns are symmetric
    torch.testing.assert_close(rmac(4 * maps), features)


def test_mean_pooling_reads_one_scale_and_rmac_three() -> None:
    images = torch.rand(2, 3, 96, 96)
    torch.testing.assert_close(pool(nn.Identity(), images, "mean"), images.mean((2, 3)))
    sides: list[int] = []
    features = pool(_Observed(lambda maps: sides.append(maps.shape[-1])), images, "rmac")
    assert sides == list(rmac_scales(96)) == [96, 68, 48]
    torch.testing.assert_close(features.norm(dim=1), torch.ones(2))


def test_rmac_scales_match_the_papers() -> None:
    assert rmac_scales(512) == (512, 362, 256)


class _Observed(nn.Module):
    def __init__(self, observe: Callable[[torch.Tensor], None]) -> None:
        super().__init__()
        self.observe = observe

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.observe(images)
        return images
