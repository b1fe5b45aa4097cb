"""The lesson on ε against the library's authority ascent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from udml_core.exploration.clusters import cluster_summary
from udml_core.exploration.lesson_examples import digits_ascent, smallest_ascent

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("images", ["points", "digits"])
def test_the_clusters_of_the_lesson_are_the_library_s(compute: Callable[..., Any], images: str) -> None:
    dataset, ascent = digits_ascent()
    labels = dataset.labels
    if images == "points":
        ascent, labels = smallest_ascent(), np.repeat(np.arange(3), 15)
    for epsilon in (0.305, 0.455, 0.655, 0.905):
        clusters = ascent.graph.clusters(epsilon)
        numbers = cluster_summary(clusters, labels)
        shown = compute("epsilon", {"images": images, "epsilon": epsilon}, """n => ({count: n.count, largest: n.largest,
            purity: n.purity, coverage: n.coverage, singletons: n.singletons, parents: Array.from(n.parents)})""")
        assert np.array_equal(shown["parents"], clusters.parents)
        assert (shown["count"], shown["largest"], shown["singletons"]) == (
            numbers.count, numbers.sizes.max(), numbers.singletons)
        assert (shown["purity"], shown["coverage"]) == pytest.approx((numbers.purity, numbers.coverage))


def test_what_the_text_says_of_its_cases() -> None:
    dataset, ascent = digits_ascent()
    merged = ascent.graph.clusters(0.3).labels
    largest = np.bincount(dataset.labels[merged == np.bincount(merged).argmax()], minlength=10)
    assert set(np.argsort(largest)[-2:]) == {1, 8}
    assert cluster_summary(ascent.graph.clusters(0.9)).coverage < 0.05
    counts = [cluster_summary(smallest_ascent().graph.clusters(epsilon)).count for epsilon in (0.3, 0.45, 0.9)]
    assert counts[:2] == [2, 3]
    assert counts[2] > 20
