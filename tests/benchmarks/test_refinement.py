"""Refinement at n = 60,000, d = 512: time on two cores, and peak memory."""

from __future__ import annotations

import resource
from time import process_time

import numpy as np
import pytest

from tests.benchmarks.measure import seconds
from udml_core.arrays import Array
from udml_core.refinement import Refiner, search

COUNT, DIMENSION, CLASSES = 60_000, 512, 1000

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def gallery() -> Array:
    random = np.random.default_rng(0)
    centers = random.normal(size=(CLASSES, DIMENSION)).astype(np.float32)
    return centers[np.arange(COUNT) % CLASSES] + random.normal(size=(COUNT, DIMENSION)).astype(np.float32)


@pytest.mark.parametrize("recipe", ["whiten+average:k=20,times=2,alpha=3", "whiten+rerank:k1=20,k2=6",
                                    "whiten+average:k=5,alpha=3+rerank:k1=40,k2=6",
                                    "whiten+diffuse:k=20,shortlist=200"])
def test_60_000_images_are_refined_and_ranked_within_a_minute_and_4_gb(gallery: Array, recipe: str) -> None:
    """The assertion counts processor time, which other programs disturb less than the clock.

    At most 30 of these seconds run in a single thread. So 90 seconds of both processors take at most 60 by the clock of
    a quiet machine.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "EXACT_BELOW", 400)
        Refiner(recipe).fit(gallery[:500]).neighbors(10)  # compiles the kernels
    refiner = Refiner(recipe)
    before = process_time()
    fit = seconds(lambda: refiner.fit(gallery))
    rank = seconds(lambda: refiner.neighbors(20))  # as an evaluation does
    processors = process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"\nn={COUNT}, d={DIMENSION}, {recipe}: fit {fit:.1f} s, neighbors of all images {rank:.1f} s by the clock; "
          f"{processors:.1f} processor seconds; peak {peak:.2f} GB")
    assert processors < 90
    assert peak < 4
