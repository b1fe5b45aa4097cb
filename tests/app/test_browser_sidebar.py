"""The sidebar in a real Chromium: a name of any length and the line about a race move none of its links."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.app.conftest import App
from tests.app.test_browser import NARROW, WIDE, settle
from udml_core.runs import Run
from udml_core.runs.analyses import Analysis, create_analysis, plan_analysis
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.notes import Notes
from udml_core.runs.tasks import Status

pytestmark = [pytest.mark.browser, pytest.mark.slow]
LINKS, LINE = "[data-testid=stSidebarNavItems]", ".st-key-race-line"
LONG = "A folder of photographs from the holidays by the sea, second try"


@pytest.fixture
def named(finished: Run) -> Iterator[Run]:
    """A copy of a finished run with a long name."""
    run = Run(shutil.copytree(finished.folder, finished.folder.with_name("20250103-000000-rpml-0000ad")))
    run.write_notes(Notes.make(name=LONG))
    yield run
    shutil.rmtree(run.folder)


@pytest.fixture
def race(app: App) -> Iterator[Analysis]:
    """A race that runs until its folder is removed."""
    analysis = create_analysis(app.trained(method="frozen", split="all"), plan_analysis(Advice, budget=2.0))
    analysis.write_status(Status(state="running", started=time.time(), share=0.4,
                                 phase="trying Whitening · 0:40 of 2:00 min, 1:20 of its time left"))
    with analysis.lock().acquire():
        yield analysis
    shutil.rmtree(analysis.folder)


def top_of_links(page: Page) -> float:
    """Return where the links to the pages begin."""
    return float(page.locator(LINKS).evaluate("list => list.getBoundingClientRect().y"))


@pytest.mark.parametrize("page", [{"viewport": WIDE}, {"viewport": {"width": 1024, "height": 768}}], indirect=True,
                         ids=["240", "216"])
def test_the_box_shows_a_whole_name_and_no_name_moves_the_links(page: Page, finished: Run, named: Run) -> None:
    tops = []
    for run in (finished, named):
        page.goto(f"/runs?run={run.id}")
        expect(page.locator(".run-name")).to_have_text(run.notes().name or re.compile("RPML"))
        settle(page)
        page.wait_for_timeout(1000)  # until the sidebar is drawn completely
        tops.append(top_of_links(page))
    assert tops[0] == tops[1]
    name = page.locator(".run-name")
    assert name.evaluate("text => text.scrollHeight <= text.clientHeight"), "nothing is cut"
    page.locator(".st-key-app-run-box input").click()
    expect(name).to_be_hidden()
    option = page.get_by_role("option", name=LONG)
    expect(option).to_be_visible()
    assert option.evaluate("row => [...row.querySelectorAll('*')].every(part => part.scrollWidth <= part.clientWidth)")


def test_the_line_of_a_race_stands_at_the_end_of_the_sidebar_and_moves_nothing(page: Page, race: Analysis) -> None:
    race.write_status(race.stored_status().model_copy(update={"state": "stopped"}))
    page.set_viewport_size(WIDE)
    page.goto("/runs")
    settle(page)
    page.wait_for_timeout(1000)  # until the sidebar is drawn completely
    before = top_of_links(page)
    assert not page.locator(LINE).count()
    race.write_status(race.stored_status().model_copy(update={"state": "running"}))
    time.sleep(5.1)  # pages look for races so often
    page.reload()
    expect(page.locator(LINE)).to_contain_text("40 %, 1:20 of its time left")
    settle(page)
    page.wait_for_timeout(1000)
    assert top_of_links(page) == before
    box, links = (page.locator(place).bounding_box() for place in (LINE, LINKS))
    assert box is not None
    assert links is not None
    assert links["y"] + links["height"] <= box["y"], "it covers no link"
    page.locator(LINE).get_by_role("link").click()
    page.wait_for_url("**/data?*view=advice*")
    expect(page.locator(LINE)).to_have_count(0)


@pytest.mark.parametrize("page", [{"viewport": NARROW}], indirect=True, ids=["390"])
def test_on_a_phone_a_dot_says_that_a_race_runs(page: Page, race: Analysis) -> None:
    time.sleep(5.1)  # pages look for races so often
    page.goto("/runs")
    expect(page.locator(LINE).get_by_role("link")).to_be_attached()
    dot = "button => getComputedStyle(button, '::after').content"
    assert page.get_by_test_id("stExpandSidebarButton").evaluate(dot) != "none"
    page.get_by_test_id("stExpandSidebarButton").click()
    expect(page.locator(LINE).get_by_role("link")).to_be_in_viewport()
