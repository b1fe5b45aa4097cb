"""Blind judgments in a real Chromium: twenty queries by keys alone, with a reload in the middle and one undo."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.app.conftest import App
from tests.app.test_browser import complaints, download, in_both_windows, settle
from udml_core.runs import Run
from udml_core.runs.search import Retrieval
from udml_core.runs.search.differing import Side, compare
from udml_core.runs.search.judging import Judging

pytestmark = [pytest.mark.browser, pytest.mark.slow]
TWENTY = ("ArrowLeft", "ArrowRight", "ArrowDown", "b", "n") * 4
SAID = re.compile("Not decided yet|Decided: |cannot tell which|nothing is judged")
VALUES = {"ArrowLeft": "left", "ArrowRight": "right", "ArrowDown": None, "b": None, "n": None}


def open_judge(page: Page, run: Run) -> None:
    page.goto(f"/compare?part=Judge&a={run.id}:initial&b={run.id}:final&judge=Ana")
    expect(page.get_by_role("heading", name="Which image shows the same kind of thing as the query?")).to_be_visible()
    expect(pictures(page)).to_have_count(3)
    settle(page)


def counted(answers: int) -> int:
    """Return how many of the first answers count as judged; "not sure" does not."""
    return sum(key != "n" for key in TWENTY[:answers])


def pictures(page: Page) -> Locator:
    return page.locator(".st-key-judge-pictures img")


def press(page: Page, key: str, judged: int) -> None:
    """Press a key, and wait until so many queries are judged and the next is shown."""
    before = pictures(page).nth(1).get_attribute("src")
    page.keyboard.press(key)
    said = re.compile(rf"\b{judged} (of 20 )?judged,|nothing is judged|Decided: ")
    expect(page.get_by_text(said).first).to_be_visible()
    expect(pictures(page).nth(1)).not_to_have_attribute("src", str(before))
    settle(page)


def stored(app: App, run: Run) -> Judging:
    """Return Ana's session."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UDML_CACHE", app.environment["UDML_CACHE"])
        retrieval = Retrieval(run)
        return Judging(compare(Side(retrieval, "initial"), Side(retrieval, "final")), "Ana")


@pytest.mark.parametrize("page", [{"viewport": {"width": 1400, "height": 900}}], indirect=True, ids=["laptop"])
def test_twenty_queries_are_judged_by_keys_with_a_reload_and_an_undo(app: App, page: Page, finished: Run,
                                                                   tmp_path: Path) -> None:
    open_judge(page, finished)
    box, buttons = pictures(page).nth(0).bounding_box(), page.locator(".st-key-judge-buttons").bounding_box()
    assert box is not None
    assert buttons is not None
    assert box["width"] > 300
    assert buttons["y"] + buttons["height"] < 900, "nothing has to be scrolled"
    for number, key in enumerate(TWENTY[:10], 1):
        press(page, key, counted(number))
        verdict = page.locator(".st-key-judge-progress").get_by_text(SAID).first.bounding_box()
        assert verdict is not None
        assert verdict["y"] + verdict["height"] < 900, "what the judgments say is in sight after each"
    query = pictures(page).nth(1).get_attribute("src")
    page.reload()
    expect(pictures(page).nth(1)).to_have_attribute("src", str(query))
    settle(page)
    press(page, "ArrowRight", counted(11))
    press(page, "u", counted(10))
    assert pictures(page).nth(1).get_attribute("src") == query
    for number, key in enumerate(TWENTY[10:], 11):
        press(page, key, counted(number))
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop") == 0, "arrows do not scroll"
    session = stored(app, finished)
    names = session.comparison.dataset.names
    expected = []
    for position, key in enumerate(TWENTY):
        side = VALUES[key]
        expected.append(None if side is None else names[getattr(session.question_at(position), side)[0]])
    assert [judgment.better for judgment in session.judgments("Ana")] == expected
    page.get_by_role("button", name="Reveal names").click()
    said = re.compile(r"After 20 judgments: .*(finds the better image in|either may be better)|\d+ of 16 for [AB]")
    expect(page.get_by_text(said).first).to_be_visible()
    settle(page)
    rows = list(csv.DictReader(download(page, "Judgments (CSV)", tmp_path).read_text().splitlines()))
    assert len(rows) == 20
    assert [row["better"] not in "AB" for row in rows] == [better is None for better in expected]


@pytest.mark.parametrize("page", [{"viewport": {"width": 390, "height": 844}}], indirect=True, ids=["phone"])
def test_the_three_images_and_the_answers_fit_a_phone(page: Page, finished: Run) -> None:
    open_judge(page, finished)
    left, query, right = (pictures(page).nth(at).bounding_box() for at in range(3))
    answers = page.locator(".st-key-judge-buttons").bounding_box()
    assert left is not None
    assert query is not None
    assert right is not None
    assert answers is not None
    assert query["y"] + query["height"] <= left["y"] == right["y"]
    assert left["y"] + left["height"] <= answers["y"], "the answers cover no image"
    assert answers["y"] + answers["height"] <= 844
    assert left["width"] >= 150
    for name in ("Searches", "The same kind", "Judge: Ana"):
        text = page.locator(".st-key-judge-top button p", has_text=name).last.bounding_box()
        assert text is not None
        assert text["width"] >= 30, "a button has a name"
        assert text["height"] >= 10
        assert text["x"] + text["width"] <= 390


@in_both_windows
def test_rows_are_judged_by_arrow_keys_and_undone(app: App, page: Page, finished: Run) -> None:
    judge = f"Cy {page.viewport_size['width']}"  # type: ignore[index]
    page.goto(f"/compare?part=Judge&a={finished.id}:initial&b={finished.id}:final&judge={judge}&results=ten")
    query = page.locator(".judge-sets > div:nth-child(2) img")
    expect(query).to_be_visible()
    settle(page)
    assert complaints(page) == []
    lower = page.get_by_role("button", name=re.compile("^Right")).last.bounding_box()
    assert lower is not None
    assert lower["y"] + lower["height"] <= page.viewport_size["height"], "the answers are in reach"  # type: ignore[index]
    shown = [query.get_attribute("src")]
    for key in ("ArrowLeft", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
        expect(query).not_to_have_attribute("src", str(shown[-1]))
        settle(page)
        verdict = page.locator(".st-key-judge-progress").get_by_text(SAID).first.bounding_box()
        assert verdict is not None
        if page.viewport_size["width"] > 640:  # type: ignore[index]
            assert verdict["y"] + verdict["height"] < page.viewport_size["height"] - 40  # type: ignore[index]
        shown.append(query.get_attribute("src"))
    page.keyboard.press("u")
    expect(query).to_have_attribute("src", str(shown[2]))
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop") == 0, "arrows do not scroll"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UDML_CACHE", app.environment["UDML_CACHE"])
        sides = (Side(retrieval := Retrieval(finished), "initial"), Side(retrieval, "final"))
        judging = Judging(compare(*sides, results="ten"), judge)
    better = [judgment.better for judgment in judging.judgments(judge)]
    upper = judging.comparison.shown(judging.question_at(0).left)
    assert better == [upper, None]


@in_both_windows
def test_the_part_has_no_accessibility_fault(page: Page, finished: Run) -> None:
    open_judge(page, finished)
    assert complaints(page) == []
    if page.get_by_text("nothing is judged").count():
        press(page, "ArrowDown", 1)
    page.get_by_role("button", name="Reveal names").click()
    expect(page.get_by_role("button", name="Hide names and judge more")).to_be_visible()
    settle(page)
    assert complaints(page) == []


def test_a_key_held_down_never_answers_a_query_that_was_not_shown(app: App, page: Page, finished: Run) -> None:
    page.goto(f"/compare?part=Judge&a={finished.id}:initial&b={finished.id}:final&gallery=all&judge=Bo")
    expect(pictures(page)).to_have_count(3)
    settle(page)
    for _ in range(6):
        page.keyboard.press("ArrowLeft", delay=0)
    page.wait_for_timeout(3_000)
    settle(page)
    count = page.get_by_text(re.compile(r"\d+ (of \d+ )?judged,")).first.inner_text()
    assert int(re.findall(r"(\d+) (?:of \d+ )?judged", count)[0]) < 6
