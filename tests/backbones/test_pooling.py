"""R-MAC beside a loop over regions written down by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from udml_core.arrays import Array
from udml_core.backbones.pooling import pool, rmac, rmac_scales

# (top, left, side) of every region at the three levels, by G. Tolias et al., figure 2: one, two by two, three by three.
GRID: dict[int, dict[int, tuple[int, list[int]]]] = {
    7: {1: (7, [0]), 2: (4, [0, 3]), 3: (3, [0, 2, 4])},
    8: {1: (8, [0]), 2: (5, [0, 3]), 3: (4, [0, 2, 4])},
    11: {1: (11, [0]), 2: (7, [0, 4]), 3: (5, [0, 3, 6])},
    1: {1: (1, [0]), 2: (1, [0]), 3: (1, [0])},
}


def unit(row: Array) -> Array:
    return row / max(float(np.linalg.norm(row)), 1e-12)


def literal(maps: Array) -> Array:
    """One image's maps (d, s, s)."""
    total = unit(maps.max((1, 2)))  # the whole map, MAC
    for side, starts in GRID[maps.shape[1]].values():
        for top in starts:
            for left in starts:
                total = total + unit(maps[:, top: top + side, left: left + side].max((1, 2)))
    return unit(total)


@pytest.mark.parametrize("side", GRID)
def test_rmac_is_the_sum_of_regional_maxima(side: int) -> None:
    maps = np.random.default_rng(side).gamma(1.0, size=(4, 6, side, side))
    np.testing.assert_allclose(rmac(torch.from_numpy(maps)).numpy(), [literal(one) for one in maps], rtol=1e-12)


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (5, 9), (9, 5), (1, 6)])
def test_rmac_covers_maps_of_any_shape_and_gives_unit_vectors(shape: tuple[int, int]) -> None:
    maps = torch.rand(3, 5, *shape, dtype=torch.float64)
    found = rmac(maps)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(rmac(maps.transpose(2, 3)), found)  # rows and columns are treated alike
    torch.testing.assert_close(rmac(4 * maps), found)


def test_both_poolings_call_the_network_as_they_say() -> None:
    images = torch.rand(2, 3, 96, 96)
    torch.testing.assert_close(pool(nn.Identity(), images, "mean"), images.mean((2, 3)))
    sides: list[int] = []
    found = pool(_Watched(lambda maps: sides.append(maps.shape[-1])), images, "rmac")
    assert sides == list(rmac_scales(96)) == [96, 68, 48]
    torch.testing.assert_close(found.norm(dim=1), torch.ones(2))


def test_the_papers_scales() -> None:
    assert rmac_scales(512) == (512, 362, 256)


class _Watched(nn.Module):
    def __init__(self, tell: Callable[[torch.Tensor], None]) -> None:
        super().__init__()
        self.tell = tell

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.tell(images)
        return images
