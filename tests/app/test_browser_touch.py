"""Maps under fingers, in a real Chromium that has a touch screen.

The gestures are single events of the DevTools protocol. Its `Input.synthesizeScrollGesture` scrolls no page at all in a
headless Chromium, not even a page without scripts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.app.test_browser import settle
from udml_core.runs import Run

pytestmark = pytest.mark.browser
PHONE = {"viewport": {"width": 390, "height": 844}}
STEPS = 10
TOP = "document.querySelector('[data-testid=stMain]').scrollTop"
Point = tuple[float, float]


def drag(page: Page, *fingers: tuple[Point, Point]) -> None:
    """Put down fingers, move each on a line from its first to its last point, and lift them."""
    session = page.context.new_cdp_session(page)

    def send(kind: str, part: float) -> None:
        points: Sequence[dict[str, float]] = [] if kind == "touchEnd" else [
            {"x": x + part * (to_x - x), "y": y + part * (to_y - y), "id": number}
            for number, ((x, y), (to_x, to_y)) in enumerate(fingers)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    send("touchStart", 0.0)
    for step in range(1, STEPS + 1):
        send("touchMove", step / STEPS)
        page.wait_for_timeout(16)
    send("touchEnd", 1.0)


def middle(place: Locator) -> Point:
    """Return the middle of an element on the screen."""
    box = place.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def scrolled(page: Page) -> float:
    """Return how far the page is scrolled."""
    return float(page.evaluate(TOP))


def rest(page: Page) -> None:
    """Wait until the page, which rolls on after a finger left it, stands still."""
    before = -1.0
    while (now := scrolled(page)) != before:
        before = now
        page.wait_for_timeout(200)


@pytest.mark.parametrize("page", [PHONE], indirect=True, ids=["phone"])
@pytest.mark.parametrize("address", ["/", "/explore"])
def test_one_finger_scrolls_past_a_map_and_two_move_it(page: Page, finished: Run, address: str) -> None:
    page.context.new_cdp_session(page).send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    page.goto(f"{address}?run={finished.id}")
    expect(page.locator("[data-drawn]").first).to_be_attached()
    settle(page)
    surface = page.locator(".map, .overlay").first
    surface.scroll_into_view_if_needed()
    before = scrolled(page)
    x, y = middle(surface)
    drag(page, ((x, y + 60), (x, y - 120)))
    page.wait_for_function(f"before => {TOP} > before + 60", arg=before)
    expect(page.locator(".fingers")).to_have_text("Two fingers move and zoom the map")
    assert "camera" not in page.url, "one finger moves the page, not the map"

    rest(page)
    page.evaluate(f"{TOP} = 0")
    surface.scroll_into_view_if_needed()
    before = scrolled(page)
    x, y = middle(surface)
    drag(page, ((x - 20, y), (x - 80, y - 40)), ((x + 20, y), (x + 80, y - 40)))
    if address == "/explore":  # the address keeps the part of this map that is shown
        page.wait_for_url(re.compile("camera-explore-map="))
    assert scrolled(page) == before, "two fingers move the map, not the page"
