"""A slider step of the page Refine: at 6,000 images and 1,280 dimensions, in under 250 ms on two cores."""

from __future__ import annotations

from statistics import median
from time import perf_counter, process_time

import numpy as np
import pytest

from udml_core.base.arrays import Array
from udml_core.exploration.refining import MOST_TRAINING, LiveGallery, measure
from udml_core.numerics.refinement import Recipe

COUNT, DIMENSION, CLASSES = 6000, 1280, 100
LIMIT = 0.25
SLIDERS = {
    "average k": "whiten+average:k={},times=2", "average alpha": "whiten+average:k=20,times=2,alpha=0.0{}",
    "whiten k": "whiten:k={}+average:k=20", "whiten shrinkage": "whiten:shrinkage=1.0{}+average:k=20",
    "reduce l": "whiten+average:k=20+reduce:dimension={}", "expand k": "whiten+expand:k={}",
    "rerank k1": "whiten+rerank:k1={}", "rerank weight": "whiten+rerank:weight=0.3{}",
    "diffuse k": "whiten+diffuse:k={}", "diffuse alpha": "whiten+diffuse:alpha=0.9{}"}
"""A recipe for each slider; the slider's values take the place of the braces."""

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def mixture() -> tuple[LiveGallery, Array]:
    generator = np.random.default_rng(0)
    labels = np.arange(COUNT) % CLASSES
    points = generator.normal(size=(CLASSES, DIMENSION))[labels] + 2.5 * generator.normal(size=(COUNT, DIMENSION))
    training = generator.normal(size=(MOST_TRAINING, DIMENSION))
    gallery = LiveGallery(points.astype(np.float32), training.astype(np.float32))
    return gallery, labels


@pytest.mark.parametrize("slider", SLIDERS)
def test_a_slider_step_takes_less_than_a_quarter_of_a_second(slider: str, mixture: tuple[LiveGallery, Array]) -> None:
    gallery, labels = mixture
    walls, computing = [], []
    query = np.array([17])

    def move(value: int) -> None:
        refined = gallery.refine(Recipe.parse(SLIDERS[slider].format(value)))
        measure(refined, labels)
        refined.rank(query, COUNT - 1)

    move(21)  # compiles the loops, and computes the steps before the slider's
    for value in range(22, 29):
        start, used = perf_counter(), process_time()
        move(value)
        walls.append(perf_counter() - start)
        computing.append(process_time() - used)
    print(f"\n{slider:>17}: {1000 * median(walls):.0f} ms, best {1000 * min(walls):.0f} ms, "
          f"processor time {1000 * median(computing):.0f} ms")
    # On a busy machine the wall time includes waiting. The processor time of all threads does not, and bounds the wall
    # time on free cores from above.
    assert min(*walls, *computing) < LIMIT
