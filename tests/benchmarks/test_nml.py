"""The cost of NML does not depend on the number of images, unlike KML's, and is far below autograd's."""

from __future__ import annotations

import pytest
import torch

from experiments.pair_costs import SHAPES, SIZES, by_autograd, costs, draw_data, speeds
from udml_core.numerics.losses.kernels import ChiSquared
from udml_core.numerics.losses.pair_hinge import PairHinge

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]


@pytest.mark.parametrize(("width", "dimension"), SHAPES)
def test_steps_are_three_times_as_fast_as_autograd(width: int, dimension: int) -> None:
    points, pairs, same = draw_data(300, width)
    rows = points[:dimension] * 0.3
    ours = PairHinge(ChiSquared(), 0.1, 0.02).gradient(points, rows, pairs, same)[1]
    torch.testing.assert_close(ours, by_autograd(points, rows, pairs, same), rtol=1e-3, atol=1e-4)
    speed = speeds(width, dimension)
    assert speed["ours"] >= 3 * speed["autograd"]


def test_the_cost_of_a_step_does_not_grow_with_the_number_of_images_unlike_kmls() -> None:
    few, many = costs(SIZES[0]), costs(SIZES[-1])
    assert many["nml_step"] < 1.5 * few["nml_step"]
    assert many["kml_step"] > 4 * few["kml_step"]
    assert many["kml_image"] > 10 * many["nml_image"]
