"""Refinement at n = 60,000, d = 512, and at n = 2,933, d = 1280: time on two cores, and peak memory."""

from __future__ import annotations

import resource
from time import process_time

import numpy as np
import pytest

from tests.benchmarks.measure import seconds
from udml_core.base.arrays import Array
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement import Refiner
from udml_core.numerics.refinement import unit_neighbors as search

COUNT, DIMENSION, CLASSES = 60_000, 512, 1000
RECIPES = ("whiten+average:k=20,times=2,alpha=3", "whiten+rerank:k1=20,k2=6",
           "whiten+average:k=5,alpha=3+rerank:k1=40,k2=6", "whiten+diffuse:k=20,shortlist=200")

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]


def mixture(count: int, dimension: int, classes: int) -> Array:
    random = np.random.default_rng(0)
    centers = random.normal(size=(classes, dimension)).astype(np.float32)
    return centers[np.arange(count) % classes] + random.normal(size=(count, dimension)).astype(np.float32)


@pytest.fixture(scope="module")
def gallery() -> Array:
    return mixture(COUNT, DIMENSION, CLASSES)


@pytest.mark.parametrize("recipe", RECIPES)
def test_60_000_images_are_refined_and_ranked_within_a_minute_and_4_gb(gallery: Array, recipe: str) -> None:
    """The assertion counts processor time, which other programs disturb less than the clock.

    At most 30 of these seconds run in a single thread. So 90 seconds of both processors take at most 60 by the clock of
    a quiet machine.
    """
    compile_kernels(recipe, gallery)
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


@pytest.mark.parametrize("recipe", RECIPES)
def test_2933_images_are_refined_and_ranked_within_three_seconds(recipe: str) -> None:
    """As many images and features as the test half of birds100 has."""
    gallery = mixture(2933, 1280, 50)
    compile_kernels(recipe, gallery)
    refiner = Refiner(recipe)
    before = process_time()
    took = seconds(lambda: refiner.fit(gallery).neighbors(20))
    processors = process_time() - before
    print(f"\nn=2933, d=1280, {recipe}: {took:.2f} s by the clock, {processors:.2f} processor seconds")
    assert processors < 3  # even if a single core does all


def test_50_000_narrow_images_take_little_more_than_three_exact_searches() -> None:
    """The products of all rows bound them: lists that keep 99.9 % of the neighbors took twice as long."""
    gallery = mixture(50_000, 64, 1000)
    Refiner().fit(gallery[:500])
    before = process_time()
    Refiner().fit(gallery)
    whole = process_time() - before
    before = process_time()
    nearest(gallery, 10)
    search_alone = process_time() - before
    print(f"\nn=50000, d=64, {Refiner().recipe}: {whole:.1f} processor seconds, {search_alone:.1f} of a search")
    assert whole < 4 * search_alone


def compile_kernels(recipe: str, gallery: Array) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "EXACT_BELOW", 400)
        Refiner(recipe).fit(gallery[:500]).neighbors(10)
