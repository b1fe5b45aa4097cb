"""The lesson on spreading labels against the library's propagation."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from udml_core.exploration.label_spread import walk_ends
from udml_core.numerics.graph.propagation import propagate
from udml_core.numerics.neighbors import nearest

pytestmark = pytest.mark.browser
ALL = 60


@pytest.mark.parametrize(("labels", "gamma", "step"), [
    ([3, 25, 50], 0.95, 3), ([3, 25, 50], 0.99, ALL), ([11, 33, 50, 20, 41], 0.5, ALL), ([30], 0.8, 12)])
def test_the_affinities_of_the_lesson_are_the_library_s(compute: Callable[..., Any], labels: list[int], gamma: float,
                                                       step: int) -> None:
    shown = compute("spread", {"labels": labels, "gamma": gamma, "step": step})
    classes, neighbors = np.array(shown["classes"]), np.array(shown["neighbors"])
    assert np.array_equal(neighbors, nearest(np.array(shown["points"], dtype=np.float32), neighbors.shape[1])[1])
    codes = np.full(len(classes), -1)
    codes[labels] = classes[labels]
    spread = propagate(neighbors, codes, gamma)
    reach = np.array(shown["reach"])
    assert reach[:, spread.classes] == pytest.approx(spread.reach, abs=1e-12)
    assert np.delete(reach, spread.classes, axis=1).sum() == 0
    walk = np.zeros((len(classes), len(classes)))
    np.put_along_axis(walk, neighbors, 1 / neighbors.shape[1], axis=1)
    start = (1 - gamma) * (codes[:, None] == np.arange(3))
    expected = reach if step == ALL else sum(
        np.linalg.matrix_power(gamma * walk, done) @ start for done in range(step + 1))
    assert np.array(shown["affinity"]) == pytest.approx(expected, abs=1e-12)
    best = np.array(shown["best"])
    if step == ALL:
        ends = walk_ends(neighbors, codes, 3, gamma)
        assert np.array_equal(best, ends.best)
        assert shown["certainty"] == pytest.approx(np.nan_to_num(ends.certainty), abs=1e-4)
    assert shown["reached"] == int((expected.sum(axis=1) > 0).sum())
    assert shown["wrong"] == np.flatnonzero((best >= 0) & (best != classes)).tolist()
    rows, columns = np.nonzero((walk > 0) & (classes[:, None] != classes))
    flows = {(int(column), int(row)): gamma * walk[row, column] * expected[column, classes[column]]
             for row, column in zip(rows, columns, strict=True)}
    assert {(leak["from"], leak["to"]): leak["flow"] for leak in shown["leaks"]} == pytest.approx(flows)


def test_a_point_takes_a_label_by_mouse_and_by_keyboard(open_lesson: Callable[..., Any]) -> None:
    page = open_lesson("spread")
    page.click(".skip")
    points = page.locator(".plane [role=button]")
    points.nth(10).click()
    assert points.nth(10).get_attribute("aria-pressed") == "true"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.evaluate("window.lesson.state.labels.length") == 5
    page.keyboard.press("Enter")
    assert page.evaluate("window.lesson.state.labels") == [3, 25, 50, 10]


def test_play_takes_steps_until_it_is_paused(open_lesson: Callable[..., Any]) -> None:
    page = open_lesson("spread")
    page.click(".skip")
    page.get_by_role("button", name="Play").click()
    expect(page.locator("output").first).to_have_text(re.compile(r"^([5-9]|\d\d)$"))
    page.get_by_role("button", name="Pause").click()
    step = page.evaluate("window.lesson.state.step")
    page.wait_for_timeout(400)
    assert page.evaluate("window.lesson.state.step") == step


def test_the_text_describes_the_pictures(open_lesson: Callable[..., Any]) -> None:
    page = open_lesson("spread")
    start, settled, far, without = page.evaluate("""states => states.map((state) =>
        window.lesson.lesson.compute({...window.lesson.start, ...state}, window.lesson.data))""", [
        {}, {"step": ALL}, {"step": ALL, "gamma": 0.99}, {"step": ALL, "labels": [3, 25]}])
    assert [start["best"][row] for row in start["wrong"]] == [2, 2]
    assert {start["classes"][row] for row in start["wrong"]} == {1}
    assert {settled["classes"][row] for row in settled["wrong"]} == {1}
    assert 2 < len(settled["wrong"]) < len(far["wrong"])
    triangles = {step: page.evaluate("step => lesson.lesson.compute({...lesson.start, step}).wrong.length",
                                     step) for step in (3, 5, 10, 50)}
    assert triangles == {3: 2, 5: 6, 10: 6, 50: 6}  # "after five steps six squares have it, and they keep it"
    assert 2 not in without["best"]
    assert 2 in without["classes"]
    assert without["wrong"]


def test_removing_all_mistakes_takes_thought_and_is_acknowledged(open_lesson: Callable[..., Any]) -> None:
    """A single click removed all mistakes of the start, and nothing said so."""
    page = open_lesson("spread")
    page.click(".skip")
    status = page.locator(".stage [role=status]")
    single = """all => lesson.start.labels.flatMap((_label, at) => [...Array(60).keys()].flatMap((row) =>
        [[...lesson.start.labels, row], lesson.start.labels.with(at, row)])).map((labels) =>
            lesson.lesson.compute({ ...lesson.start, step: all, labels }, {}).wrong.length)"""
    assert min(page.evaluate(single, ALL)) > 0  # with one label more, or one in another place
    page.evaluate("all => lesson.change({ step: all })", ALL)
    expect(status).to_have_text("")
    page.evaluate("lesson.change({ labels: [0, 33, 59] })")
    assert page.evaluate("lesson.numbers.best.every((best, row) => best === lesson.numbers.classes[row])")
    expect(status).to_contain_text("No mistakes after all steps, with 3 labels. Fewer cannot do it")
    expect(page.locator(".readout")).to_contain_text("0 ✓")
    page.evaluate("""() => lesson.change({ labels: [...Array(60).keys()].map((row) => [0, 33, 59, row]).find((labels) =>
        new Set(labels).size === 4 && !lesson.lesson.compute({ ...lesson.state, labels }, {}).wrong.length) })""")
    expect(status).to_contain_text("with 4 labels. Can you do it with 3?")
    page.evaluate("lesson.change({ step: 10, labels: [3, 25, 50, 40] })")
    expect(status).to_contain_text("No mistakes after 10 steps. Do further steps make some?")
    page.evaluate("all => lesson.change({ step: all })", ALL)
    expect(status).to_have_text("")
    assert page.evaluate("lesson.numbers.wrong.length") > 0  # they do
