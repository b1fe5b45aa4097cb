"""The live t-SNE of the lesson on maps against scikit-learn."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect
from scipy.spatial.distance import squareform
from sklearn.manifold import TSNE
from sklearn.manifold._t_sne import _joint_probabilities

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
RUN = """([spread, gap, perplexity, steps]) => {
    const { groups } = lesson.lesson;
    const points = groups.points({ spread, gap });
    const live = groups.live(points, perplexity, 1);
    for (let step = 0; step < steps; step += 1) live.step();
    const { loss, gradient } = live.objective();
    return { points, positions: live.positions, affinities: live.affinities, loss, gradient,
        real: groups.ratios(points), drawn: groups.ratios(live.positions) };
}"""


def run(open_lesson: Open, *values: float) -> dict[str, Any]:
    """Run the t-SNE in the browser: width of A, gap, perplexity, steps."""
    return dict(open_lesson("maps").evaluate(RUN, list(values)))


def test_affinities_are_scikit_learn_s(open_lesson: Open) -> None:
    shown = run(open_lesson, 3, 2, 15, 0)
    points = np.array(shown["points"])
    squared = ((points[:, None] - points) ** 2).sum(axis=2).astype(np.float32)
    expected = squareform(_joint_probabilities(squared, 15, 0))
    assert np.array(shown["affinities"]) == pytest.approx(expected, abs=2e-6)


def test_the_gradient_is_the_slope_of_the_loss(open_lesson: Open) -> None:
    shown = open_lesson("maps").evaluate("""() => {
        const { groups } = lesson.lesson;
        const live = groups.live(groups.points({ spread: 2, gap: 2 }), 20, 1);
        for (let step = 0; step < 120; step += 1) live.step();
        const { gradient } = live.objective();
        const slope = (row, axis) => {
            const loss = (by) => {
                live.positions[row][axis] += by;
                const value = live.objective().loss;
                live.positions[row][axis] -= by;
                return value;
            };
            return (loss(1e-4) - loss(-1e-4)) / 2e-4;
        };
        return [0, 40, 89].flatMap((row) => [0, 1].map((axis) => [gradient[row][axis], slope(row, axis)]));
    }""")
    for gradient, slope in shown:
        assert gradient == pytest.approx(slope, abs=1e-6)


def test_the_map_is_as_good_as_scikit_learn_s(open_lesson: Open) -> None:
    shown = run(open_lesson, 5, 5, 20, 500)
    known = TSNE(perplexity=20, method="exact", random_state=0, init="random").fit(np.array(shown["points"]))
    assert shown["loss"] < 1.15 * known.kl_divergence_ + 0.02


def test_sizes_and_gaps_do_not_survive(open_lesson: Open) -> None:
    """What the words beside the figure say."""
    shown = run(open_lesson, 3, 3, 20, 500)
    assert shown["real"] == pytest.approx({"width": 3, "gap": 3}, abs=0.35)
    assert shown["drawn"] == pytest.approx({"width": 1, "gap": 1}, abs=0.4)
    for perplexity, least, most in ((20, 3, 4), (5, 0.9, 1.3), (50, 0.9, 1.3)):
        shown = run(open_lesson, 5, 1, perplexity, 500)
        assert shown["real"]["gap"] == pytest.approx(1, abs=0.1)
        assert least < shown["drawn"]["gap"] < most


def test_a_new_start_draws_another_map(open_lesson: Open) -> None:
    page = open_lesson("maps")
    page.click(".skip")
    words = page.locator(".more [role=status]")
    expect(words).to_contain_text("Step 500 of 500")
    ratios = page.locator(".second .ratios").nth(1)
    first = ratios.inner_text()
    page.get_by_role("button", name="New start").click()
    expect(words).not_to_contain_text("Step 500 of 500")
    expect(words).to_contain_text("Step 500 of 500")
    (width, gap), (other_width, other_gap) = (re.findall(r"[\d.]+", text) for text in (first, ratios.inner_text()))
    assert float(width) == pytest.approx(float(other_width), abs=0.1)  # the sizes stay
    assert gap != other_gap


def test_the_figure_runs_and_its_state_is_in_the_link(open_lesson: Open) -> None:
    page = open_lesson("maps", "?spread=2&perplexity=30")
    page.click(".skip")
    assert page.evaluate("[lesson.state.spread, lesson.state.perplexity]") == [2, 30]
    expect(page.locator(".more [role=status]")).to_contain_text("Step 500 of 500")
    page.get_by_role("slider", name="Width of A").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**spread=2.2**")
    expect(page.locator(".more [role=status]")).to_contain_text("Step 500 of 500")


def test_two_maps_of_the_same_points_differ_by_their_perplexity_alone(open_lesson: Open) -> None:
    page = open_lesson("maps", "?perplexity=20&other=20")
    page.click(".skip")
    words = page.locator(".more [role=status]")
    expect(words).to_contain_text("Step 500 of 500")
    points, first, second = page.locator(".second .ratios").all_inner_texts()
    assert first == second != points
    drawn = """() => [...document.querySelectorAll(".second canvas")].slice(1).map((canvas) => canvas.toDataURL())"""
    one, other = page.evaluate(drawn)
    assert one == other
    page.evaluate("lesson.change({ other: 5 })")
    expect(words).not_to_contain_text("Step 500 of 500")
    expect(words).to_contain_text("Step 500 of 500")
    expect(page.locator(".second figcaption").nth(2)).to_have_text("t-SNE, perplexity 5")
    assert page.locator(".second .ratios").all_inner_texts()[:2] == [points, first]
    assert page.locator(".second .ratios").nth(2).inner_text() != first
    again, changed = page.evaluate(drawn)
    assert again == one != changed
    tops = [canvas.bounding_box() for canvas in page.locator(".second canvas").all()]
    assert tops[1]
    assert tops[2]
    assert tops[1]["y"] == tops[2]["y"]


def test_the_ratios_below_a_picture_are_its_own(open_lesson: Open) -> None:
    page = open_lesson("maps")
    page.click(".skip")
    expect(page.locator(".more [role=status]")).to_contain_text("Step 500 of 500")
    expected = page.evaluate("""() => {
        const { groups } = lesson.lesson;
        const points = groups.points(lesson.state);
        return [points, ...[lesson.state.perplexity, lesson.state.other].map((perplexity) => {
            const live = groups.live(points, perplexity, 1);
            for (let step = 0; step < 500; step += 1) live.step();
            return live.positions;
        })].map(groups.ratios).map(({ width, gap }) => [width.toFixed(1), gap.toFixed(1)]);
    }""")
    assert [re.findall(r"[\d.]+", text) for text in page.locator(".second .ratios").all_inner_texts()] == expected
    assert len({tuple(ratios) for ratios in expected}) == 3
    for figure in page.locator(".second figure").all():
        picture, ratios = figure.locator("canvas").bounding_box(), figure.locator(".ratios").bounding_box()
        assert picture
        assert ratios
        assert 0 <= ratios["y"] - picture["y"] - picture["height"] < 10


def test_a_class_reads_what_sizes_and_gaps_follow(open_lesson: Open) -> None:
    page = open_lesson("maps", "?present=1")
    page.evaluate("lesson.presentation.turn(lesson.presentation.slides.findIndex(({ kind }) => kind === 'more'))")
    expect(page.locator(".step")).to_contain_text("Sizes and gaps of a map follow the perplexity")
    expect(page.locator(".second .ratios").last).to_be_visible()
    expect(page.locator(".second .do")).to_be_hidden()
