"""Linear neighborhoods of a PLM batch, B = 200, k = 10, D = 128, beside the loop of singular value decompositions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from tests.benchmarks.measure import medians
from tests.graph.naive import naive_neighborhoods
from udml_core.graph import linear_neighborhoods

SEEDS, EACH, WIDTH, NEIGHBORS, DIMENSION, THRESHOLD = 20, 10, 128, 10, 3, 0.9

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]


def batch(noise: float) -> Tensor:
    """20 seeds with 4 neighbors each, in two views: 10 points near each of 20 flats of dimension 3, unit rows."""
    generator = torch.Generator().manual_seed(0)
    within = torch.randn(SEEDS, EACH, DIMENSION, generator=generator)
    frames = torch.randn(SEEDS, DIMENSION, WIDTH, generator=generator)
    points = within @ frames + noise * torch.randn(SEEDS, EACH, WIDTH, generator=generator)
    return normalize(points.reshape(-1, WIDTH))


@pytest.mark.parametrize("noise", [0.2, 10.0])
def test_a_batch_together_is_far_quicker_than_point_by_point(noise: float) -> None:
    """Asserted beside the loop as one first writes it, in the points' float32 with `np.linalg.svd` as it comes; printed
    also beside a loop that spares the completion to (D, D). With much noise hardly a candidate is admitted, so every
    decomposition is small. The loop's time moves with the number of threads, ours hardly does."""
    points = batch(noise)
    rows = points.numpy()
    together = linear_neighborhoods(points, NEIGHBORS, DIMENSION, THRESHOLD)
    alone = naive_neighborhoods(rows.astype(np.float64), NEIGHBORS, DIMENSION, THRESHOLD)
    np.testing.assert_array_equal(together.members.numpy(), [one.members for one in alone])
    times = medians(9, together=lambda: linear_neighborhoods(points, NEIGHBORS, DIMENSION, THRESHOLD),
                    loop=lambda: naive_neighborhoods(rows, NEIGHBORS, DIMENSION, THRESHOLD, full=True),
                    thin=lambda: naive_neighborhoods(rows, NEIGHBORS, DIMENSION, THRESHOLD))
    ratio, thin = (times[name] / times["together"] for name in ("loop", "thin"))
    print(f"\nB={len(points)}, k={NEIGHBORS}, D={WIDTH}, m={DIMENSION}, noise {noise}, {torch.get_num_threads()} "
          f"threads, {float(together.members.sum(1).double().mean()):.1f} members: "
          f"together {1000 * times['together']:.1f} ms, "
          f"loop {1000 * times['loop']:.0f} ms ({ratio:.0f}×), thin loop {1000 * times['thin']:.0f} ms ({thin:.0f}×)")
    assert ratio >= 30
