"""The lesson on ε against the library's authority ascent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from udml_core.exploration.clusters import cluster_summary
from udml_core.exploration.lesson_examples import digits_ascent, smallest_ascent
from udml_core.results.lessons import course_texts

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


def test_a_higher_threshold_never_leaves_fewer_clusters_and_may_lower_purity(compute: Callable[..., Any]) -> None:
    """As the takeaway and the teacher's notes say: one square then follows another link, into the green cluster."""
    numbers = "n => ({ count: n.count, purity: n.purity, colors: Array.from(n.modes, (mode) => n.colors.get(mode)) })"
    steps = [compute("epsilon", {"images": "points", "epsilon": step / 100}, numbers) for step in range(20, 96)]
    counts = [step["count"] for step in steps]
    assert counts == sorted(counts)
    before, after = steps[75 - 20], steps[80 - 20]
    assert after["purity"] < before["purity"]
    circles, squares = range(15), range(15, 30)
    green = before["colors"][circles[0]]
    joined = [image for image in squares if after["colors"][image] == green != before["colors"][image]]
    assert len(joined) == 1


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


PAINTED = """() => {
    const { prototype } = CanvasRenderingContext2D;
    for (const name of ["ellipse", "fillText", "rect", "arc", "closePath"]) {
        const method = prototype[name];
        prototype[name] = function (...parts) {
            if (this.canvas.classList.contains("cloud")) (window.painted ??= []).push([name, ...parts]);
            return method.apply(this, parts);
        };
    }
}"""
REPAINT = """state => {
    lesson.show(state);
    window.painted = [];
    lesson.drawStage();
    return window.painted;
}"""


@pytest.mark.parametrize("images", ["points", "digits"])
def test_the_rings_on_the_picture_are_what_purity_lacks(open_lesson: Callable[..., Page], images: str) -> None:
    page = open_lesson("epsilon")
    page.click(".skip")
    page.evaluate(PAINTED)
    classes = digits_ascent()[0].labels if images == "digits" else np.repeat(np.arange(3), 15)
    for epsilon in (0.2, 0.3, 0.5, 0.62, 0.9):
        painted = page.evaluate(REPAINT, {"images": images, "epsilon": epsilon})
        rings = sum(name == "ellipse" for name, *_ in painted) / (2 if images == "digits" else 1)  # filled, then drawn
        clusters = (digits_ascent()[1] if images == "digits" else smallest_ascent()).graph.clusters(epsilon).labels
        mistakes = sum(len(of) - np.bincount(of).max() for of in (classes[clusters == row] for row in set(clusters)))
        assert rings == mistakes, epsilon
        purity = f"{100 * (1 - rings / len(classes)):.1f}\N{NO-BREAK SPACE}%"
        assert page.locator(".readout dd").last.inner_text() == purity
        legend = page.locator(".class-legend").inner_text()
        assert f"{len(classes) - mistakes:,} of {len(classes):,} in the main class: purity {purity}" in legend


def test_the_form_of_a_mark_is_its_true_class(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("epsilon")
    page.click(".skip")
    page.evaluate(PAINTED)
    for epsilon in (0.3, 0.7):  # whatever the clusters are
        painted = [name for name, *_ in page.evaluate(REPAINT, {"images": "points", "epsilon": epsilon})]
        assert [painted.count(name) for name in ("arc", "rect", "closePath")] == [15, 15, 15]
    marks = [parts[0] for name, *parts in page.evaluate(REPAINT, {"images": "digits", "epsilon": 0.9})
             if name == "fillText"]
    ringed = round((1 - page.evaluate("lesson.numbers.purity")) * len(digits_ascent()[0].labels))
    assert len(marks) == len(digits_ascent()[0].labels) + ringed  # a ringed digit is drawn again, above all others
    shares = np.bincount(np.array(marks, dtype=int)) - np.bincount(digits_ascent()[0].labels)
    assert (shares >= 0).all()
    assert shares.sum() == ringed


@pytest.mark.parametrize("images", ["points", "digits"])
def test_a_surviving_cluster_keeps_its_color_and_each_state_its_picture(
        compute: Callable[..., Any], open_lesson: Callable[..., Page], images: str) -> None:
    """A cluster survives a step of ε if both clusters share more than half of all their images."""
    select = "n => ({ modes: Array.from(n.modes), colors: [...n.colors] })"
    former, kept = None, 0
    for hundredths in range(20, 96):
        shown = compute("epsilon", {"images": images, "epsilon": hundredths / 100}, select)
        colors, modes = dict(shown["colors"]), np.array(shown["modes"])
        for mode in colors if former else ():
            before, now = np.isin(former[0], list(former[1])), modes == mode
            for old in set(former[0][now & before]):
                was = former[0] == old
                if 2 * (was & now).sum() > (was | now).sum():
                    assert colors[mode] == former[1][old], (hundredths, mode)
                    kept += 1
        if hundredths < 60 and images == "points":
            assert len(set(colors.values())) == len(colors), "a color for each cluster"
        former = modes, colors
    assert kept > 100
    page = open_lesson("epsilon", f"?images={images}&epsilon=0.5")
    page.click(".skip")
    picture = "[...document.querySelectorAll('.cloud')].find(({ clientWidth }) => clientWidth).toDataURL()"
    first = page.evaluate(picture)
    for epsilon in (0.9, 0.23, 0.5):
        page.evaluate("epsilon => lesson.change({ epsilon })", epsilon)
        assert (page.evaluate(picture) == first) == (epsilon == 0.5)


def test_the_question_on_purity_has_all_labels() -> None:
    """With few labels, most labeled images are the only ones of their cluster, and count as pure by themselves."""
    random = np.random.default_rng(0)
    clusters = np.repeat(np.arange(2000), 5)  # no singletons
    classes = random.integers(10, size=10_000)

    def purity(labeled: np.ndarray) -> float:
        pairs = np.bincount(10 * clusters[labeled] + classes[labeled], minlength=20_000).reshape(-1, 10)
        return float(pairs.max(axis=1).sum() / len(labeled))

    assert purity(random.choice(10_000, 200, replace=False)) > 0.95
    assert purity(np.arange(10_000)) < 0.4
    (question,) = (text for text in course_texts()["epsilon"] if "purity of 99" in text)
    assert "labels every one of 10,000" in question
