"""The lesson on re-ranking against the library's refinement and measures."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from experiments.lessons import reranking
from udml_core.data import catalog
from udml_core.exploration.lesson_examples import digits_vectors
from udml_core.numerics.refinement import Refiner
from udml_core.numerics.refinement.ranking_measures import retrieval_measures
from udml_core.results.lessons import FOLDER

pytestmark = pytest.mark.browser


Matrix = np.ndarray[Any, Any]


def ranked(queries: Matrix, rows: Matrix) -> Matrix:
    """Rank rows by cosine. Averaging makes rows equal up to rounding, which must not decide."""
    return np.argsort(-np.round(queries @ rows.T, 5), axis=1, kind="stable")


def measured(rows: Matrix, classes: Matrix) -> list[float]:
    order = ranked(rows, rows)
    indices = order[order != np.arange(len(rows))[:, None]].reshape(len(rows), -1)
    values = retrieval_measures(indices, classes, classes, inside=True)
    return [values["recall@1"] / 100, values["map@r"] / 100]


@pytest.mark.parametrize(("k", "times", "query"), [
    (0, 1, [-0.2, 0.2]), (5, 1, [-0.2, 0.2]), (10, 2, [-0.15, 0.1]), (20, 1, [0.3, -0.4])])
def test_the_averages_and_rankings_of_the_lesson_are_the_library_s(compute: Callable[..., Any], k: int, times: int,
                                                                  query: list[float]) -> None:
    shown = compute("reranking", {"k": k, "times": str(times), "query": query})
    before, classes = np.array(shown["before"]), np.array(shown["classes"])
    assert np.linalg.norm(before, axis=1) == pytest.approx(1)
    plain = Refiner("average:k=0").fit(before)
    refiner = Refiner(f"average:k={k},times={times}+expand:k={k}").fit(before)
    assert np.array(shown["after"]) == pytest.approx(refiner.embedding_, abs=1e-5)
    star = np.array([[*query, np.sqrt(1 - np.dot(query, query))]])
    assert shown["expanded"] == pytest.approx(refiner.transform(star)[0], abs=1e-5)
    assert shown["listed"] == plain.search(star, 5).indices[0].tolist()
    assert shown["relisted"] == ranked(refiner.transform(star), refiner.embedding_)[0, :5].tolist()
    assert (shown["hitsBefore"], shown["hitsAfter"]) == (
        int((classes[shown["listed"]] == 0).sum()), int((classes[shown["relisted"]] == 0).sum()))
    averaged = Refiner(f"average:k={k},times={times}").fit(before)
    for name, fitted in (("measuresBefore", plain), ("measures", averaged)):
        assert list(shown[name].values()) == pytest.approx(measured(fitted.embedding_, classes), abs=1e-6)


def test_the_stored_measures_are_the_means_over_the_galleries() -> None:
    content = json.loads((FOLDER / "reranking.json").read_text())
    vectors, labels = digits_vectors(), np.asarray(catalog.load("digits").labels)
    draws = [reranking.gallery_rows(labels, seed) for seed in range(reranking.GALLERIES)]
    for name, recipe, k in (("averaged", "average:k=5", 5), ("averaged_twice", "average:k=0", 0),
                            ("reranked", "rerank:k1=7", 7)):
        stored = np.frombuffer(base64.b64decode(content[name]["base64"]), np.float32).reshape(-1, 2)
        assert len(stored) == reranking.MOST_NEIGHBORS + 1
        mean = np.mean([reranking.measures(vectors[rows], labels[rows], recipe) for rows in draws], axis=0)
        assert stored[k] == pytest.approx(mean, abs=1e-3)


def test_the_text_describes_the_pictures(open_lesson: Callable[..., Any]) -> None:
    page = open_lesson("reranking")
    start, swallowed, wide, between = page.evaluate("""states => states.map((state) =>
        window.lesson.lesson.compute({...window.lesson.start, ...state}, window.lesson.data))""", [
        {}, {"k": 10, "times": "2"}, {"k": 20}, {"query": [-0.1, 0.2]}])
    assert (start["hitsBefore"], start["hitsAfter"]) == (3, 5)
    assert start["measures"]["map"] > start["measuresBefore"]["map"] > wide["measures"]["map"]
    assert (between["hitsBefore"], between["hitsAfter"]) == (2, 0)
    before, after = np.array(swallowed["before"]), np.array(swallowed["after"])
    triangles = np.array(swallowed["classes"]) == 2
    nearest = np.argmax(after[triangles] @ after[~triangles].T, axis=1)
    assert (np.linalg.norm(after[triangles] - after[~triangles][nearest], axis=1)
            < 0.2 * np.linalg.norm(before[triangles] - before[~triangles][nearest], axis=1)).all()


def test_the_text_names_both_measures_of_the_digits_with_their_intervals() -> None:
    vectors, labels = digits_vectors(), np.asarray(catalog.load("digits").labels)
    draws = [reranking.gallery_rows(labels, seed) for seed in range(reranking.GALLERIES)]
    before, after = (np.array([reranking.measures(vectors[rows], labels[rows], f"average:k={k}") for rows in draws])
                     for k in (0, 5))
    changes = after - before  # of the same gallery
    reach = stats.t.ppf(0.975, len(draws) - 1) * changes.std(axis=0, ddof=1) / np.sqrt(len(draws))
    (recall, precision), (recall_at_5, precision_at_5) = before.mean(axis=0), after.mean(axis=0)
    loss, gain = (f"{abs(change):.1f} ± {bound:.1f}" for change, bound in zip(changes.mean(axis=0), reach, strict=True))
    assert (f"MAP@R rises from {precision:.0f} % to {precision_at_5:.0f} %, by {gain} points, and R@1 falls from "
            f"{recall:.0f} % to {recall_at_5:.0f} %, by {loss}. Here ±" in (FOLDER / "reranking.js").read_text("utf-8"))


def test_the_chart_s_names_have_the_strokes_of_their_lines(open_lesson: Callable[..., Any]) -> None:
    page = open_lesson("reranking")
    page.locator(".question input").first.check()
    drawn, named = page.evaluate("""() => ["path", "line:not(.rule):not(.cursor)"].map((part) =>
        [...document.querySelectorAll(`svg.chart ${part}`)].map((line) =>
            `${line.getAttribute("stroke")} ${line.hasAttribute("stroke-dasharray")}`).sort())""")
    assert len(set(drawn)) == 4
    assert named == drawn
