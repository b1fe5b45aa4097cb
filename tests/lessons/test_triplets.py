"""The lesson on triplets against the library's losses and their gradients by autograd."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from playwright.sync_api import Page, expect
from torch import Tensor

from tests.lessons.test_print import printed
from tests.tiers import fast_first
from udml_core.numerics.losses.angular import angle, angular_argument, angular_loss, triplet_loss

pytestmark = pytest.mark.browser

NAMES = ("anchor", "positive", "negative")
START = {"anchor": [-0.9, -0.3], "positive": [0.6, -0.3], "negative": [0.1, 0.75]}
FAR = START | {"negative": [2.9, 1.9]}


def loss_of(state: dict[str, Any], triplet: list[Tensor]) -> Tensor:
    """Compute the library's loss of one triplet."""
    anchor, positive, negative = triplet
    if state["loss"] == "margin":
        return triplet_loss(anchor, positive, negative, state["margin"])
    return angular_loss(anchor, positive, negative, state["alpha"])


@pytest.mark.parametrize(("state", "is_violation"), fast_first([
    (START | {"loss": "margin", "margin": 1.0}, True), (START | {"loss": "angle", "alpha": 28}, True),
    (START | {"loss": "margin", "margin": 0.3, "negative": [-1.7, 0.9]}, True),
    (FAR | {"loss": "angle", "alpha": 20}, False), (FAR | {"loss": "margin", "margin": 2.9}, False),
    (START | {"loss": "angle", "alpha": 45, "anchor": [-2.5, 1.7]}, True)], 2))
def test_losses_gradients_and_step_are_the_library_s(compute: Callable[..., Any], state: dict[str, Any],
                                                             is_violation: bool) -> None:
    shown = compute("triplets", state)
    assert (shown["value"] > 0) == is_violation
    triplet = [torch.tensor([state[name]], dtype=torch.float64, requires_grad=True) for name in NAMES]
    loss = loss_of(state, triplet)
    loss.backward()
    gradients = [part.grad[0] for part in triplet if part.grad is not None]
    assert shown["value"] == pytest.approx(loss.item())
    assert torch.allclose(torch.tensor(shown["gradients"], dtype=torch.float64), torch.stack(gradients))
    moved = [(part - 0.03 * part.grad).detach() for part in triplet if part.grad is not None]
    assert shown["after"] == pytest.approx(loss_of(state, moved).item())
    assert torch.allclose(torch.tensor(shown["stepped"], dtype=torch.float64)[:, None], torch.stack(moved))
    if state["loss"] == "angle":
        anchor, positive, negative = (part.detach() for part in triplet)
        assert shown["angle"] == pytest.approx(angle(anchor, positive, negative).item())
        assert shown["argument"] == pytest.approx(angular_argument(anchor, positive, negative, state["alpha"]).item())


@pytest.mark.parametrize("loss", ["margin", "angle"])
def test_the_drawn_region_is_where_the_loss_is_positive(compute: Callable[..., Any], loss: str) -> None:
    state = START | {"loss": loss, "margin": 0.7, "alpha": 30}
    shown = compute("triplets", state)
    for share, is_positive in ((0.999, True), (1.001, False)):
        (across, up), radius = shown["center"], share * shown["radius"]
        negative = [across + 0.6 * radius, up + 0.8 * radius]
        assert (compute("triplets", state | {"negative": negative})["value"] > 0) == is_positive
    # When it fails: on the center the loss is large, but the negative has no gradient.
    worst = compute("triplets", state | {"negative": shown["center"]})
    assert worst["value"] > shown["value"]
    assert worst["gradients"][2] == pytest.approx([0, 0], abs=1e-12)


def test_only_the_margin_depends_on_the_scale(compute: Callable[..., Any]) -> None:
    satisfied = {"anchor": [-1, 0], "positive": [0.6, 0], "negative": [-0.2, 1.9], "margin": 1, "alpha": 35}
    small = {name: [part / 10 for part in satisfied[name]] for name in NAMES}  # type: ignore[attr-defined]
    for loss, changes in (("margin", True), ("angle", False)):
        assert compute("triplets", satisfied | {"loss": loss})["value"] == 0
        assert (compute("triplets", satisfied | small | {"loss": loss})["value"] > 0) == changes


def test_steps_end_at_the_bound_and_move_nothing_outside(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("triplets")
    page.click(".skip")
    button = page.locator(".stage button")
    losses = [page.evaluate("window.lesson.numbers.value")]
    while losses[-1] > 0:
        button.click()
        losses.append(page.evaluate("window.lesson.numbers.value"))
    assert losses == sorted(losses, reverse=True)
    assert 2 < len(losses) < 12
    places = page.evaluate("({ ...window.lesson.state })")
    assert button.is_enabled()
    expect(page.locator(".stage [role=status]")).to_contain_text("The bound is satisfied")
    button.click()
    assert page.evaluate("({ ...window.lesson.state })") == places
    expect(page.locator(".stage [role=status]")).to_contain_text("The step moved no point")


@pytest.mark.parametrize("choice", [0, 1])
def test_every_answer_shows_the_case_of_the_question(open_lesson: Callable[..., Page], choice: int) -> None:
    page = open_lesson("triplets")
    assert page.evaluate("window.lesson.numbers.value") > 0
    page.locator(".question input").nth(choice).check()
    for loss in ("margin", "angle"):
        page.evaluate("loss => window.lesson.change({ loss })", loss)
        assert page.evaluate("window.lesson.numbers.value") == 0


@pytest.mark.parametrize("moved", [{}, {"anchor": [-1, -1], "positive": [1, -1], "negative": [0, 1]},
                                   {"anchor": [1.2, 0.3], "positive": [-0.4, -0.8], "negative": [0.2, 1.7]},
                                   {"negative": [0.3, -1.6]}])
def test_the_drawn_arc_is_the_angle_of_the_readout(compute: Callable[..., Any], moved: dict[str, Any]) -> None:
    """It is half the angle at N of the gray triangle: 26.6° where the whole angle is 53.1°."""
    state = START | moved | {"loss": "angle", "alpha": 28}
    numbers = compute("triplets", state, "numbers => ({ angle: numbers.angle, arc: window.lesson.lesson.arc(numbers, "
                                         f"{json.dumps(state)}) }})")
    anchor, positive, negative = (torch.tensor(state[name], dtype=torch.float64) for name in NAMES)
    begin, end = (torch.tensor(numbers["arc"][at], dtype=torch.float64) - negative for at in (0, -1))
    drawn = torch.rad2deg(torch.arccos((begin @ end) / begin.norm() / end.norm())).item()
    assert drawn == pytest.approx(numbers["angle"], abs=0.01)
    middle = (anchor + positive) / 2 - negative
    assert (begin / begin.norm()).tolist() == pytest.approx((middle / middle.norm()).tolist())
    half = torch.rad2deg(torch.arctan((anchor - positive).norm() / 2 / middle.norm())).item()
    assert drawn == pytest.approx(half, abs=0.01)


@pytest.mark.parametrize("query", ["", "?present=1"])
def test_a_bar_of_length_1_gives_the_scale(open_lesson: Callable[..., Page], query: str) -> None:
    page = open_lesson("triplets", query)
    bar, anchor, positive = (page.locator(part) for part in (".plane .scale", ".handle >> nth=0", ".handle >> nth=1"))
    width = bar.evaluate("part => part.getBoundingClientRect().width")
    ends = [part.bounding_box() for part in (anchor, positive)]
    assert ends[0]
    assert ends[1]
    assert (ends[1]["x"] - ends[0]["x"]) / width == pytest.approx(1.5, abs=0.05)  # A and P at the start
    assert "length 1" in str(page.locator(".plane").text_content())
    if not query:
        page.click(".skip")
        assert "length 1" in printed(page, "Print summary")


def test_a_point_that_another_covers_keeps_a_ring_and_its_letter(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("triplets")
    page.click(".skip")
    covered = page.locator(".plane .covered")
    expect(covered).to_have_count(0)
    page.evaluate("window.lesson.change({ negative: window.lesson.state.anchor })")
    expect(covered).to_have_count(1)
    ring, handle = (page.locator(part).bounding_box() for part in (".plane .covered", ".handle >> nth=0"))
    assert ring
    assert handle
    for side, length in (("x", "width"), ("y", "height")):
        assert ring[side] + ring[length] / 2 == pytest.approx(handle[side] + handle[length] / 2, abs=1.5)
    expect(page.locator(".plane > g >> nth=0").locator("text", has_text="A").last).to_have_text("A")


def test_points_and_region_are_named_before_the_question(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("triplets", "?present=1")
    for words in ("P has the class of A, N has another.", "While N is in the shaded region, it is too near"):
        expect(page.locator(".step")).to_contain_text(words)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".panel .question")).to_contain_text(
        "P has the class of the anchor A, N has another. In the shaded region, N is too near")
