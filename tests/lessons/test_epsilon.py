"""The lesson on ε against the library's authority ascent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from udml_core.exploration.clusters import summary
from udml_core.exploration.lessons import digits_ascent

pytestmark = pytest.mark.browser


def test_the_clusters_of_the_lesson_are_the_library_s(compute: Callable[..., Any]) -> None:
    dataset, ascent = digits_ascent()
    for epsilon in (0.305, 0.455, 0.655, 0.905):
        clusters = ascent.graph.clusters(epsilon)
        numbers = summary(clusters, dataset.labels)
        shown = compute("epsilon", {"epsilon": epsilon}, """n => ({count: n.count, largest: n.largest, purity: n.purity,
            singletons: n.singletons, parents: Array.from(n.parents)})""")
        assert np.array_equal(shown["parents"], clusters.parents)
        assert (shown["count"], shown["largest"], shown["singletons"]) == (
            numbers.count, numbers.sizes.max(), numbers.singletons)
        assert shown["purity"] == pytest.approx(numbers.purity)
