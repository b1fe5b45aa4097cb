"""The lesson on instance discrimination against the library's softmax, loss and gradients."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from experiments.lessons.instances import instances
from experiments.make_lessons import encoded
from udml_core.exploration.instances import softmax
from udml_core.numerics.losses.instance_discrimination import adaptable_softmax
from udml_core.results.lessons import FOLDER

pytestmark = pytest.mark.browser


def stored(name: str) -> np.ndarray[Any, Any]:
    part = json.loads((FOLDER / "instances.json").read_text())[name]
    return np.frombuffer(base64.b64decode(part["base64"]), part["dtype"]).reshape(part["shape"])


@pytest.mark.parametrize(("image", "temperature", "eta"), [(24, 0.1, 1), (0, 0.05, 10), (71, 1, 100), (40, 0.2, 1)])
def test_the_shares_loss_and_pushes_of_the_lesson_are_the_library_s(compute: Callable[..., Any], image: int,
                                                                   temperature: float, eta: int) -> None:
    shown = compute("instances", {"image": image, "temperature": temperature, "eta": str(eta)})
    views, classes = stored("views").astype(float), stored("classes")
    rows = views - views.mean(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    count = len(classes)
    cosines = rows @ rows[image]
    others = np.setdiff1d(np.arange(2 * count), [image, image + count])
    same = np.tile(classes, 2)[others] == classes[image]
    expected = softmax(cosines[others], cosines[image + count], temperature, eta)
    assert shown["others"] == others.tolist()
    assert shown["isSame"] == same.tolist()
    assert shown["shares"] == pytest.approx(expected.shares, rel=1e-9)
    assert (shown["probability"], shown["competitors"]) == pytest.approx((expected.own, expected.competitors))
    assert shown["equalShare"] == pytest.approx(same.mean())
    assert shown["strongest"] == np.argsort(-expected.shares, kind="stable")[:10].tolist()

    def pushes(second_term: bool) -> tuple[float, np.ndarray[Any, Any]]:
        logits = torch.tensor(cosines / temperature)[None].requires_grad_()
        negative = torch.zeros_like(logits, dtype=torch.bool)
        negative[0, torch.from_numpy(others)] = True
        if second_term:
            loss = adaptable_softmax(logits, torch.tensor([image + count]), negative, eta)
        else:
            weights = torch.where(negative, torch.tensor(eta, dtype=torch.float64).log(), 0.0)
            weights[0, image] = -torch.inf
            loss = torch.nn.functional.cross_entropy(logits + weights, torch.tensor([image + count]))
        loss.backward()
        assert logits.grad is not None
        return loss.item(), logits.grad[0, torch.from_numpy(others)].numpy()

    assert shown["shares"] == pytest.approx(pushes(False)[1], abs=1e-12)
    assert shown["sameShare"] == pytest.approx(pushes(False)[1][same].sum() / pushes(False)[1].sum())
    loss, gradient = pushes(True)
    assert shown["loss"] == pytest.approx(loss)
    assert shown["pushes"] == pytest.approx(gradient, abs=1e-9)
    positive = gradient.clip(0)
    assert shown["sameShareOfLoss"] == pytest.approx(positive[same].sum() / positive.sum())


def test_the_stored_views_are_recomputed_exactly() -> None:
    assert json.loads((FOLDER / "instances.json").read_text()) == json.loads(json.dumps(encoded(instances())))


def test_a_competitor_becomes_the_chosen_image(open_lesson: Callable[..., Any]) -> None:
    page = open_lesson("instances")
    page.click(".skip")
    strongest = page.evaluate("window.lesson.numbers.others[window.lesson.numbers.strongest[0]] % 80")
    page.locator(".tiles").nth(1).locator("button").first.press("Enter")
    assert page.evaluate("window.lesson.numbers.chosen") == strongest
    assert page.evaluate("document.activeElement.matches('.tiles:nth-of-type(1) button, .tile')")


def test_the_text_describes_the_pictures(open_lesson: Callable[..., Any]) -> None:
    page = open_lesson("instances")
    start, warm, zero, one, cold = page.evaluate("""states => states.map((state) =>
        window.lesson.lesson.compute({...window.lesson.start, ...state}, window.lesson.data))""", [
        {}, {"temperature": 1}, {"image": 0}, {"image": 8}, {"temperature": 0.05}])
    assert start["sameShare"] > 0.8
    assert warm["competitors"] > 0.9 * len(warm["others"])
    assert max(zero["probability"], one["probability"]) < 0.05
    assert cold["competitors"] < 4 < start["competitors"] < warm["competitors"]


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1024, 768)])
def test_slides_that_explain_the_chart_show_it_alone(open_lesson: Callable[..., Any], width: int, height: int) -> None:
    page = open_lesson("instances", "?present=1")
    page.set_viewport_size({"width": width, "height": height})
    shares = {}
    for slide, kind in enumerate(page.evaluate("lesson.presentation.slides.map(({ kind }) => kind)")):
        page.evaluate("slide => Object.assign(lesson.presentation, { slide }).show()", slide)
        chart = page.locator(".stage .plane").first.bounding_box()
        assert chart
        shares[slide] = chart["width"] * chart["height"] / (width * height)
        assert page.locator(".stage .tile").first.is_visible() == (kind != "see")
        if kind == "see":
            assert shares[slide] > 2 * shares[1] > 0, shares
