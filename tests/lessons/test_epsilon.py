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


@pytest.mark.parametrize("epsilon", [0.305, 0.555, 0.805])
def test_each_image_follows_the_link_that_the_formula_names(compute: Callable[..., Any], epsilon: float) -> None:
    """The steepest of the links with ψ > ε to an image with larger ω, where ω is the share of the sum of W."""
    graph = smallest_ascent().graph
    count = len(graph.authority)
    similarity = np.zeros((count, count))
    similarity[graph.rows, graph.columns] = similarity[graph.columns, graph.rows] = graph.affinity
    authority = similarity.sum(axis=1) / similarity.sum()
    assert authority == pytest.approx(graph.authority)
    gain = authority[None, :] - authority[:, None]
    relevancy = similarity * np.exp(-100 * gain**2)
    slope = np.where((relevancy > epsilon) & (gain > 0), similarity * gain, 0)
    wanted = np.where(slope.any(axis=1), slope.argmax(axis=1), np.arange(count))
    shown = compute("epsilon", {"images": "points", "epsilon": epsilon}, """n => ({ parents: Array.from(n.parents),
        modes: Array.from(n.modes), count: n.count })""")
    assert shown["parents"] == wanted.tolist()
    assert shown["count"] == int((~slope.any(axis=1)).sum())
    assert (relevancy[np.unique(shown["modes"])] > epsilon).any()  # links reach modes, but none leads on to a larger ω
