"""The lesson on metrics against scikit-learn's Mahalanobis distance and the library's Recall@1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page
from sklearn.neighbors import NearestNeighbors

from udml_core.numerics.evaluation import recall_at_k

pytestmark = pytest.mark.browser


def half_axis(degrees: float, length: float) -> list[float]:
    """Return a half axis of the ellipse as a vector."""
    return [length * np.cos(np.radians(degrees)), length * np.sin(np.radians(degrees))]


@pytest.mark.parametrize("state", [
    {}, {"axis": half_axis(25, 1.6), "other": 0.4, "query": 3}, {"axis": half_axis(120, 2), "other": 0.3, "query": 40},
    {"data": "ring", "axis": half_axis(-50, 0.7), "other": 1.1, "query": 11}])
def test_distances_neighbors_and_recall_are_scikit_learn_s(compute: Callable[..., Any], state: dict[str, Any]) -> None:
    shown = compute("metric", state)
    points, classes, matrix = (np.array(shown[name]) for name in ("points", "classes", "matrix"))
    values, directions = np.linalg.eigh(matrix)
    first, second = state.get("axis", [0.8, 0]), state.get("other", 0.8)
    assert sorted(values) == pytest.approx(sorted([1 / np.hypot(*first) ** 2, 1 / second**2]))
    assert np.array(first) @ matrix @ np.array(first) == pytest.approx(1)
    distances, neighbors = NearestNeighbors(metric="mahalanobis", metric_params={"VI": matrix}).fit(points).kneighbors(
        n_neighbors=len(points) - 1)
    assert shown["ranked"] == neighbors[shown["at"]].tolist()
    assert shown["distances"] == pytest.approx(distances[shown["at"]])
    assert shown["nearest"] == neighbors[:, 0].tolist()
    mapped = points @ directions * np.sqrt(values)  # the Euclidean distance there is the distance of the lesson
    assert shown["recall"] == pytest.approx(recall_at_k(mapped, classes, (1,))[1])


def test_the_sentences_of_the_lesson_are_true(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("metric")

    def recall(data: str, degrees: float, length: float, other: float) -> float:
        state = {"data": data, "axis": half_axis(degrees, length), "other": other, "query": 1}
        return float(page.evaluate("state => window.lesson.lesson.compute(state).recall", state))

    circle = recall("bands", 0, 0.8, 0.8)
    along = recall("bands", 28, 1.6, 0.4)
    assert recall("bands", 118, 1.6, 0.4) < circle < along == 1
    assert recall("bands", 28, 1.6, 0.8) == recall("bands", 28, 0.8, 0.4)
    rings = [recall("ring", degrees, 2, other) for degrees in range(0, 180, 15) for other in (2, 1.6, 1.2, 0.8, 0.4)]
    assert max(rings) < 0.6
    page.evaluate("window.lesson.change({data: 'bands', axis: [1.6, 0.8], other: 0.4})")
    assert page.evaluate("window.lesson.numbers.recall") == 1


def test_the_ends_follow_the_pointer_and_the_keys(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("metric")
    page.click(".skip")
    first, second = page.query_selector_all(".handle")
    second.focus()
    page.keyboard.press("Shift+ArrowDown")
    assert page.evaluate("window.lesson.state.other") < 0.8
    box = first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 60, box["y"] + box["height"] / 2 - 30)
    page.mouse.up()
    axis = page.evaluate("window.lesson.state.axis")
    assert axis[0] > 1.1
    assert axis[1] > 0.1
    page.locator(".stage circle[style*=pointer]").first.click()
    assert page.evaluate("window.lesson.state.query") != 17


def test_the_sign_of_the_query_leaves_its_class_to_see(open_lesson: Callable[..., Any]) -> None:
    page = open_lesson("metric", "?query=17")
    page.click(".skip")
    star, form = page.evaluate("""() => {
        const star = [...document.querySelectorAll(".plane text")].find((text) => text.textContent === "★");
        return [star, star.previousElementSibling].map((part) => part.getBoundingClientRect().width);
    }""")
    assert form > star


def test_the_failure_stands_beside_the_circle_and_its_ellipse_stays_in_the_frame(
        open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("metric", "?present=1")
    page.set_viewport_size({"width": 1280, "height": 720})
    page.evaluate("""() => { const { presentation } = lesson;
        presentation.turn(presentation.slides.findIndex(({ kind }) => kind === "fails") - presentation.slide); }""")
    shown = page.evaluate("lesson.numbers")
    circle = recall_at_k(np.array(shown["points"]), np.array(shown["classes"]), (1,))[1]
    assert shown["recall"] < circle
    assert f"(circle: {100 * circle:.1f}\N{NO-BREAK SPACE}%)" in page.locator(".readout").inner_text()
    assert [shown["classes"][row] for row in shown["ranked"][:3]] == [shown["classes"][shown["at"]]] * 3  # it helps
    frame, *drawn = page.evaluate("""() => [...document.querySelectorAll(".plane, .plane path, .plane text")].map(
        (part) => [part.getBoundingClientRect(), part.matches("text") ? part.getBoundingClientRect().height / 6 : 0])
        .map(([{ left, top, right, bottom }, line]) => [left, top + line, right, bottom - line])""")
    for box in drawn:  # of a letter without the room of its line
        assert frame[0] <= box[0] < box[2] <= frame[2], box
        assert frame[1] <= box[1] < box[3] <= frame[3], box
