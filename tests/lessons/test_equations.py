"""Every printed equation of the lessons: the printed values give the printed result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.tiers import fast_first
from udml_core.results.lessons import course

pytestmark = pytest.mark.browser

# The equations of the formula, as [printed value, value of its left side, decimals, text]; none has letters.
EQUATIONS = """() => {
    const SIGNS = { "+": "+", "−": "-", "·": "*", "/": "/", "(": "(", ")": ")", "[": "(", "]": ")" };
    const all = (node) => [...node.children].map(code).join("");
    const code = (node) => {
        const parts = [...node.children];
        switch (node.localName) {
            case "mn": return `(${Number(node.textContent.replaceAll(",", "").replace("−", "-"))})`;
            case "mo": return SIGNS[node.textContent] ?? "?";
            case "mrow": return `(${all(node)})`;
            case "msqrt": return `Math.sqrt(${all(node)})`;
            case "mfrac": return `(${code(parts[0])}/${code(parts[1])})`;
            case "msup": return `(${code(parts[0])}**${code(parts[1])})`;
            case "msub": return parts[1].textContent === "+" ? `Math.max(0,${code(parts[0])})` : "?";
            default: return "?";
        }
    };
    const found = [];
    const equations = [];  // a long equation is broken before its signs of equality
    for (const math of lesson.formula.querySelectorAll("math")) {
        const continues = math.firstElementChild?.getAttribute("form") === "infix";
        if (continues) equations.at(-1).push(math);
        else equations.push([math]);
    }
    for (const equation of equations) {
        const sides = [[]];
        for (const part of equation.flatMap((math) => [...math.children])) {
            if (part.localName === "mo" && part.textContent === "=") sides.push([]);
            else sides.at(-1).push(part);
        }
        for (let at = 1; at < sides.length; at += 1) {
            const [left, right] = [sides[at - 1], sides[at]].map(
                (side) => side.map(code).join("").replaceAll(")(", ")*("));
            if (!left || /[?]/.test(left + right) || sides[at].length !== 1) continue;
            const printed = sides[at][0].textContent;
            found.push([(0, eval)(right), (0, eval)(left), (printed.split(".")[1] ?? "").length,
                equation.map((math) => math.textContent).join("")]);
        }
    }
    return found;
}"""
WITH_EQUATIONS = {"triplets", "flat", "instances", "measures", "maps", "seeds", "encoders"}
SHARES = (0.13, 0.41, 0.77)
"""Places of the sliders, as shares of their range."""


def states(page: Page) -> Iterator[dict[str, Any]]:
    """Yield states of a lesson: the initial one, each choice, and each choice with the sliders at other places."""
    fields = page.evaluate("""() => lesson.lesson.controls.map(({ name, low, high, step, options }) => (
        { name, low, high, step, values: options?.map(({ value }) => value) }))""")
    choices = [{}, *({field["name"]: value} for field in fields if field["values"] for value in field["values"])]
    for choice in choices:
        yield choice
        for share in SHARES:
            yield choice | {field["name"]: field["low"] + field["step"] * round(
                share * (field["high"] - field["low"]) / field["step"]) for field in fields if not field["values"]}


@pytest.mark.parametrize("name", fast_first([pytest.param(lesson.id, id=lesson.id) for lesson in course()], 2))
def test_printed_values_give_the_printed_result(open_lesson: Callable[..., Page], name: str) -> None:
    page = open_lesson(name)
    if page.locator(".question input").count():
        page.locator(".question input").first.check()  # what answers the question waits for the answer
    count = 0
    for state in states(page):
        page.evaluate("state => lesson.change({ ...lesson.start, ...state })", state)
        for result, given, decimals, text in page.evaluate(EQUATIONS):
            assert abs(result - given) <= 0.5 * 10.0**-decimals + 1e-9, (state, text)
            count += 1
    assert (count > 0) == (name in WITH_EQUATIONS)
