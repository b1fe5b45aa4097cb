"""The lesson on measures against the library's measures and scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page
from sklearn.metrics import mutual_info_score, normalized_mutual_info_score

from experiments.lessons.measures import ROWS
from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.exploration.lesson_examples import digits_vectors
from udml_core.numerics.evaluation import kmeans_clusters, nmi, rankings, recall_at_k
from udml_core.numerics.refinement.ranking_measures import retrieval_measures

pytestmark = pytest.mark.browser

ALL = "n => n"
LABELS = catalog.load("digits").labels[list(ROWS)]
SHUFFLED = np.random.default_rng(4).permutation(10).tolist()


def first_ranking() -> Array:
    """Return the ten images by their distance to the query, numbered from 0."""
    order: Array = next(rankings(digits_vectors()[list(ROWS)], len(ROWS) - 1))[1][0] - 1
    return order


def first_clusters() -> Array:
    """Return the k-means clusters of the query and the ten images."""
    return kmeans_clusters(digits_vectors()[list(ROWS)], 3)


def recall_of_query(order: list[int], k: int) -> float:
    """Return Recall@k of the first point, whose neighbors come in an order.

    Every image is on an axis of its own, so that its nearest point is the query. Each hit then finds the query, and
    each miss is a class of its own.
    """
    points = np.zeros((11, 10))
    points[1 + np.array(order), np.arange(10)] = np.arange(1, 11)
    classes = np.where(LABELS[0] == LABELS, 0, np.arange(11))
    hits = int((classes == 0).sum()) - 1
    return 11 * recall_at_k(points, classes, (k,))[k] - hits


@pytest.mark.parametrize("order", [first_ranking().tolist(), list(range(10)), list(range(9, -1, -1)), SHUFFLED])
def test_the_measures_of_a_ranking_are_the_library_s(compute: Callable[..., Any], order: list[int]) -> None:
    expected = retrieval_measures(np.array([order]), LABELS[:1], LABELS[1:], inside=False)
    for k in (1, 3, 5):
        shown = compute("measures", {"order": order, "k": k})
        assert 100 * shown["recall1"] == pytest.approx(expected["recall@1"])
        assert 100 * shown["mapAtR"] == pytest.approx(expected["map@r"])
        assert shown["recallK"] == pytest.approx(recall_of_query(order, k))


@pytest.mark.parametrize("clusters", [first_clusters().tolist(), [0] * 11, list(range(11)), [0, 0, 1, 1, 2] * 2 + [3]])
def test_nmi_is_the_library_s(compute: Callable[..., Any], clusters: list[int]) -> None:
    shown = compute("measures", {"clusters": clusters})
    assert shown["nmi"] == pytest.approx(nmi(np.array(clusters), LABELS), abs=1e-9)
    assert shown["nmi"] == pytest.approx(normalized_mutual_info_score(LABELS, clusters), abs=1e-9)
    assert shown["information"] == pytest.approx(mutual_info_score(LABELS, clusters), abs=1e-9)
    assert shown["ofClasses"] == pytest.approx(mutual_info_score(LABELS, LABELS))


def test_the_lesson_begins_with_the_library_s_ranking_and_clusters(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("measures")
    assert page.evaluate("lesson.start.order") == first_ranking().tolist()
    assert page.evaluate("lesson.start.clusters") == first_clusters().tolist()


def test_what_the_text_says_of_its_cases(compute: Callable[..., Any]) -> None:
    hit_first, miss_first = [0, 4, 5, 6, 7, 8, 9, 1, 2, 3], [4, 0, 1, 2, 3, 5, 6, 7, 8, 9]
    one, other = (compute("measures", {"order": order}) for order in (hit_first, miss_first))
    assert one["recall1"] > other["recall1"]
    assert one["mapAtR"] < other["mapAtR"]
    assert compute("measures", {"clusters": list(range(11))})["nmi"] > 0.5
    assert compute("measures", {})["recall1"] == 0
    assert len(set(first_clusters()[LABELS[0] == LABELS])) == 1


def test_a_picture_moves_by_mouse_and_by_keyboard(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("measures")
    page.click(".skip")
    page.focus("[aria-label^='Rank 2:']")
    page.keyboard.press("ArrowLeft")
    order = page.evaluate("lesson.numbers.ranking")
    assert order[:2] == [0, 4]
    assert page.evaluate("document.activeElement.ariaLabel").startswith("Rank 1:")
    start, end = (page.locator(f"[aria-label^='Rank {rank}:']").bounding_box() for rank in (1, 6))
    assert start is not None
    assert end is not None
    page.mouse.move(start["x"] + 20, start["y"] + 20)
    page.mouse.down()
    page.mouse.move(end["x"] + 20, end["y"] + 20, steps=5)
    page.mouse.up()
    assert page.evaluate("lesson.numbers.ranking") == order[1:6] + order[:1] + order[6:]
    page.click("[aria-label^='The query']")
    assert page.evaluate("lesson.numbers.assignment")[0] != first_clusters()[0]


@pytest.mark.browser
def test_a_telephone_shows_the_ranking_in_two_rows(open_lesson: Callable[..., Any]) -> None:
    page = open_lesson("measures")
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    page.wait_for_selector(".lesson[data-drawn]")
    tops = page.evaluate("""() => [...document.querySelector(".stage .tiles").children].map(
        (tile) => Math.round(tile.getBoundingClientRect().top))""")
    assert [tops.count(top) for top in sorted(set(tops))] == [5, 5]
