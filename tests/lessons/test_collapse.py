"""The lesson on collapse against gradient descent by autograd, the library's effective rank and its Recall@1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect
from torch import Tensor

from experiments.lessons.collapse import ALPHA, RATES, STEPS, images, triplets_of
from tests.lessons.test_print import CATCH
from tests.tiers import fast_first
from udml_core.exploration.lesson_examples import digits_vectors
from udml_core.numerics.evaluation import effective_rank, recall_at_k
from udml_core.numerics.geometry import Stiefel
from udml_core.numerics.losses.angular import smooth_angular_loss

pytestmark = pytest.mark.browser

SELECT = """n => ({size: n.size, number: n.number, runs: n.runs.map(({ rank, recall, loss, positions }) =>
    ({ rank, recall, loss, positions: Array.from(positions) }))})"""


@pytest.fixture(scope="module")
def points() -> Tensor:
    return torch.from_numpy(digits_vectors()[images()[0]]).double()


def descend(points: Tensor, triplets: Tensor, rate: float, steps: int, is_orthonormal: bool) -> tuple[Tensor, float]:
    """Take steps by autograd; return the projection and its loss."""
    projection = Stiefel(64, 8).random(0)[0].double().requires_grad_()
    for _ in range(steps + 1):
        anchor, positive, negative = (points[part] for part in triplets.T)
        loss = smooth_angular_loss(anchor, positive, negative, projection, ALPHA)
        (gradient,) = torch.autograd.grad(loss, projection)
        last = projection.detach()
        if is_orthonormal:
            product = last.T @ gradient
            left, _, right = torch.linalg.svd(last - rate * (gradient - last @ (product + product.T) / 2),
                                              full_matrices=False)
            projection = (left @ right).requires_grad_()
        else:
            projection = (last - rate * gradient).requires_grad_()
    return last, loss.item()


@pytest.mark.parametrize(("rate", "step"), fast_first([(0, 4), (2, 10), (3, 7), (4, 5)]))
def test_the_curves_are_those_of_gradient_descent(compute: Callable[..., Any], points: Tensor, rate: int,
                                                    step: int) -> None:
    shown = compute("collapse", {"rate": rate, "step": step}, SELECT)
    classes = images()[1]
    assert (shown["size"], shown["number"]) == (RATES[rate], STEPS[step])
    for run, is_orthonormal in zip(shown["runs"], (True, False), strict=True):
        projection, loss = descend(points, triplets_of(classes), RATES[rate], STEPS[step], is_orthonormal)
        embedding = (points @ projection).numpy()
        assert run["rank"] == pytest.approx(effective_rank(embedding), rel=1e-4)
        assert run["recall"] == pytest.approx(recall_at_k(embedding, classes, (1,))[1], abs=1e-6)
        assert run["loss"] == pytest.approx(loss, rel=1e-4)
        # The map is the plane of largest variance, up to rotation and the rounding to bytes.
        layout = np.reshape(run["positions"], (-1, 2))
        drawn, variances = (np.linalg.eigvalsh(np.cov(part.T)) for part in (layout, embedding))
        assert drawn[-1] / drawn.sum() == pytest.approx(variances[-1] / variances[-2:].sum(), abs=5e-3)


def test_the_sentences_of_the_lesson_are_true(compute: Callable[..., Any]) -> None:
    def run(rate: int, step: int = 10) -> list[dict[str, float]]:
        return list(compute("collapse", {"rate": rate, "step": step}, SELECT)["runs"])

    start = run(0, 0)[0]
    orthonormal, free = run(3)
    assert free["loss"] < orthonormal["loss"] < start["loss"]
    assert free["rank"] < 0.6 * orthonormal["rank"]
    assert free["recall"] < orthonormal["recall"]
    assert 2.5 < free["rank"] < 3.5
    assert 5 < orthonormal["rank"] < 6
    assert [round(run(rate)[1]["rank"], 1) for rate in (2, 3)] == [3.0, 2.8]  # of sizes 10 and 30
    assert run(2)[1]["loss"] < start["loss"]
    last_orthonormal, last_free = run(4)
    assert (round(start["rank"], 1), round(last_orthonormal["rank"], 1)) == (7.6, 4.8)
    assert last_free["recall"] < start["recall"]
    assert last_free["rank"] == pytest.approx(1, abs=0.05)
    assert last_free["loss"] > 1000 > start["loss"]
    assert last_orthonormal["recall"] < orthonormal["recall"]
    for rate in range(5):
        end = run(rate)[0]
        assert end["rank"] < start["rank"]
        assert end["recall"] > start["recall"]


def test_the_drawn_bars_have_the_effective_rank_of_the_readout(open_lesson: Callable[..., Any]) -> None:
    page = open_lesson("collapse", "?step=20")
    ranks = page.evaluate("""() => [...document.querySelectorAll(".stage canvas + svg")].map((bars) => {
        const heights = [...bars.querySelectorAll("rect")].map((bar) => bar.height.baseVal.value);
        const total = heights.reduce((sum, height) => sum + height, 0);
        return Math.exp(-heights.reduce((sum, height) => sum + height / total * Math.log(height / total || 1), 0));
    })""")
    assert ranks == pytest.approx(page.evaluate("lesson.numbers.runs.map(({ rank }) => rank)"), abs=0.05)


@pytest.mark.parametrize(("kind", "shown"), [("fails", ["rank", "loss"]), ("check", ["rank", "loss"])])
def test_a_slide_draws_the_curves_of_its_words(open_lesson: Callable[..., Any], kind: str, shown: list[str]) -> None:
    page = open_lesson("collapse", "?present=1")
    page.set_viewport_size({"width": 1024, "height": 768})
    page.evaluate("lesson.keep('before', 1)")
    page.evaluate("""kind => { const { presentation } = lesson;
        presentation.turn(presentation.slides.findIndex((slide) => slide.kind === kind) - presentation.slide);
    }""", kind)
    page.wait_for_timeout(100)
    ends = page.evaluate("""() => [...document.querySelectorAll(".stage svg.chart")]
        .filter((chart) => chart.getClientRects().length && chart.querySelector("path")).map((chart) => {
            const rules = [...chart.querySelectorAll(".rule")].map((rule) => rule.y1.baseVal.value);
            const { width, height, x, y } = chart.getBoundingClientRect();
            return { part: chart.parentElement.dataset.part, low: Math.max(...rules), high: Math.min(...rules),
                isInside: x >= 0 && y >= 0 && x + width <= innerWidth && y + height <= innerHeight,
                ends: [...chart.querySelectorAll("path")]
                    .map((path) => path.getPointAtLength(path.getTotalLength()).y) };
        })""")
    assert [end["part"] for end in ends] == shown
    runs = page.evaluate("lesson.numbers.runs.map(({ rank, recall, loss }) => ({ rank, recall, loss }))")
    lowest, highest = {"rank": 0, "recall": 0, "loss": 0.5}, {"rank": 8, "recall": 1, "loss": 0.8}
    for end in ends:
        assert end["isInside"]
        span = highest[end["part"]] - lowest[end["part"]]
        drawn = [lowest[end["part"]] + (end["low"] - y) / (end["low"] - end["high"]) * span for y in end["ends"]]
        last = [min(run[end["part"]], highest[end["part"]]) for run in runs]  # a line ends where it leaves its chart
        assert drawn[:2] == pytest.approx(last, abs=0.01 * span)
        if end["part"] == "recall":  # the orthonormal projection at the next smaller step size, which ended better
            assert drawn[2] > drawn[0] + 0.02


def test_a_slide_writes_r1_beside_the_name_of_each_map_after_the_answer(
        open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("collapse", "?present=1")
    names = page.locator(".stage b[data-part=bars]")
    expect(names.locator("span").first).to_be_hidden()
    page.keyboard.press("1")
    shares = page.evaluate("lesson.numbers.runs.map(({ recall }) => (100 * recall).toFixed(0))")
    assert int(shares[1]) < int(shares[0])  # the right answer
    for name, share, words in zip(names.all(), shares, ("orthonormal", "free"), strict=True):
        expect(name).to_have_text(f"{words} R@1\N{NO-BREAK SPACE}{share}\N{NO-BREAK SPACE}%")
        expect(name.locator("span")).to_be_visible()
    for width, height in ((1024, 768), (1280, 720)):
        page.set_viewport_size({"width": width, "height": height})
        for slide in range(5):
            page.evaluate("slide => Object.assign(lesson.presentation, { slide }).show()", slide)
            boxes = page.evaluate("""() => [...document.querySelectorAll(".stage b[data-part=bars]")].map((name) => {
                const range = document.createRange();
                range.selectNodeContents(name);
                const { left, right, top } = range.getBoundingClientRect();
                return [left, right, top];
            })""")
            assert boxes[0][2] != boxes[1][2] or boxes[0][1] + 4 <= boxes[1][0], (width, slide, boxes)


def test_a_slide_shows_the_loss_up_to_its_step_and_pairs_of_numbers(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("collapse", "?present=1")
    for width, height in ((1280, 720), (1024, 768)):
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("Object.assign(lesson.presentation, { slide: 1 }).show()")
        chart = page.locator(".stage [data-part=loss] svg")
        expect(chart).to_contain_text("orthonormal")
        expect(chart).to_contain_text("free")
        ends = []
        for step in (0, 5, 10):
            page.evaluate("step => lesson.show({ step })", step)
            ends.append(chart.locator("path").first.evaluate("path => path.getBBox().width"))
        assert ends[0] == 0 < ends[1] < ends[2]
        boxes = [box for part in page.locator(".readout > div").all() if (box := part.bounding_box())]
        assert len(boxes) == 6
        for one, other in zip(boxes[::2], boxes[1::2], strict=True):
            beside = abs(one["y"] - other["y"]) < 1 and one["x"] < other["x"]
            below = abs(one["x"] - other["x"]) < 1 and one["y"] < other["y"]
            assert beside or below, (width, one, other)


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1400, 900)])
def test_the_sliders_stand_between_the_maps_and_the_charts(open_lesson: Callable[..., Page], width: int,
                                                           height: int) -> None:
    page = open_lesson("collapse")
    page.set_viewport_size({"width": width, "height": height})
    page.reload()
    page.wait_for_selector(".lesson[data-drawn]")
    page.locator(".question input").first.check()
    page.wait_for_timeout(100)
    maps, controls, charts = page.evaluate("""() => [".stage canvas", ".controls", ".stage [data-part=loss]"].map(
        (part) => document.querySelector(part).getBoundingClientRect()).map(({ top, bottom }) => [top, bottom])""")
    assert maps[1] < controls[0] < controls[1] < charts[1]
    assert charts[1] - maps[0] <= height - 24  # all stand on one screen
    page.locator(".stage input[type=range]").nth(1).press("ArrowLeft")
    assert page.evaluate("lesson.state.step") == 9
    page.evaluate("lesson.presentation.set(true)")
    expect(page.locator(".panel > .controls")).to_have_count(1)
    page.evaluate("lesson.presentation.set(false)")
    expect(page.locator(".stage .controls")).to_have_count(1)


def test_paper_has_three_equal_charts_with_one_legend(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("collapse")
    page.click(".skip")
    page.evaluate(CATCH)
    page.locator(".tools .print").first.click()
    page.set_content(page.evaluate("window.printed"))
    charts = page.locator(".picture :is([data-part=rank], [data-part=recall], [data-part=loss]) svg")
    assert len({chart.get_attribute("viewBox") for chart in charts.all()}) == 1
    assert charts.count() == 3
    assert [chart.locator("text", has_text="orthonormal").count() for chart in charts.all()] == [1, 0, 0]
    headings = page.locator("h2").all_inner_texts()
    assert headings == ["Takeaway", "Formula", "When it fails"]
