"""Linear neighborhoods of a PLM batch, B = 200, k = 10, D = 128, against a loop of singular value decompositions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from tests.benchmarks.measure import medians
from tests.numerics.graph.naive import naive_neighborhoods
from udml_core.numerics.graph import linear_neighborhoods

SEEDS, EACH, WIDTH, NEIGHBORS, DIMENSION, THRESHOLD = 20, 10, 128, 10, 3, 0.9

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]


def batch(noise: float) -> Tensor:
    """Draw unit rows (200, 128): 10 points near each of 20 flats of dimension 3, as 5 images in two views would be."""
    generator = torch.Generator().manual_seed(0)
    within = torch.randn(SEEDS, EACH, DIMENSION, generator=generator)
    frames = torch.randn(SEEDS, DIMENSION, WIDTH, generator=generator)
    points = within @ frames + noise * torch.randn(SEEDS, EACH, WIDTH, generator=generator)
    return normalize(points.reshape(-1, WIDTH))


@pytest.mark.parametrize("noise", [0.2, 10.0])
def test_a_batch_is_at_least_30_times_as_fast_as_a_loop(noise: float) -> None:
    """The assertion compares with a straightforward loop: float32 and NumPy's default full SVD.

    A loop with thin SVDs is printed for comparison. With much noise almost no candidate is admitted, so every
    decomposition is small. The loop's time depends on the number of threads; the batched time hardly does.
    """
    points = batch(noise)
    rows = points.numpy()
    batched = linear_neighborhoods(points, NEIGHBORS, DIMENSION, THRESHOLD)
    looped = naive_neighborhoods(rows.astype(np.float64), NEIGHBORS, DIMENSION, THRESHOLD)
    np.testing.assert_array_equal(batched.members.numpy(), [hood.members for hood in looped])
    times = medians(9, batched=lambda: linear_neighborhoods(points, NEIGHBORS, DIMENSION, THRESHOLD),
                    loop=lambda: naive_neighborhoods(rows, NEIGHBORS, DIMENSION, THRESHOLD, full=True),
                    thin=lambda: naive_neighborhoods(rows, NEIGHBORS, DIMENSION, THRESHOLD))
    ratio, thin = (times[name] / times["batched"] for name in ("loop", "thin"))
    print(f"\nB={len(points)}, k={NEIGHBORS}, D={WIDTH}, m={DIMENSION}, noise {noise}, {torch.get_num_threads()} "
          f"threads, {float(batched.members.sum(1).double().mean()):.1f} members: "
          f"batched {1000 * times['batched']:.1f} ms, "
          f"loop {1000 * times['loop']:.0f} ms ({ratio:.0f}×), thin loop {1000 * times['thin']:.0f} ms ({thin:.0f}×)")
    assert ratio >= 30
