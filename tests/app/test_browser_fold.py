"""The main picture of each deep page lies above the fold of a laptop's screen, in a real Chromium."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.app.conftest import App
from tests.app.test_browser import settle
from udml_core.runs import Run

pytestmark = pytest.mark.browser

METHODS: dict[str, dict[str, Any]] = {
    "rpml": {"fields": {"dimension": 16, "epochs": 3}}, "pslr": {"fields": {"dimension": 8, "epochs": 2}},
    "ssdml": {"fields": {"dimension": 16, "epochs": 1}, "labels_per_class": 2},
    "nml": {"fields": {"dimension": 6, "epochs": 2}, "most_pairs": 3000}}
"""The requests of other tests, so that they train once in a session."""
PICTURES = {
    "triplets": ("rpml", "img[alt^='After training']", "α"),
    "neighborhoods": ("rpml", ".stage", "k:"),
    "clusters": ("rpml", ".stage", "ε"),
    "instances": ("pslr", ".st-key-instance-shares", "τ"),
    "affinity": ("ssdml", "img[alt^='After propagation']", "γ"),
    "pairs": ("nml", ".st-key-pairs-spread-after", "b:"),
    "labels": ("ssdml", ".stage", "Number of groups"),
    "refine": ("rpml", "[aria-label='The 24 nearest images, after refinement']", ""),
}
"""Page: the method of its run, its main picture, and a word in the label of its main control."""
FAST = ("neighborhoods", "affinity")
"""Pages that no other fast test opens in a browser."""


@pytest.fixture(scope="module")
def runs(app: App) -> dict[str, Run]:
    """A small finished run of each method, with a map of all images and RPML's graph."""
    made = {method: app.trained(method=method, **request) for method, request in METHODS.items()}
    for run in made.values():
        app.analyzed(run, kind="pca", scope="all", frames=("final",))
    return made


@pytest.mark.parametrize("page", [{"viewport": {"width": 1400, "height": 900}}], indirect=True, ids=["1400x900"])
@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow)
                                  for name in PICTURES])
def test_the_main_picture_and_its_control_are_above_the_fold(name: str, page: Page, runs: dict[str, Run]) -> None:
    method, picture, control = PICTURES[name]
    page.goto(f"/{name}?run={runs[method].id}")
    shown = page.locator(picture).first
    shown.wait_for()
    settle(page)
    box = shown.bounding_box()
    assert box is not None
    assert box["y"] < 500
    assert box["y"] + box["height"] <= 900
    assert box["height"] >= 150, "a picture too small to be the main picture"
    if control:
        slider = page.get_by_role("slider").first.bounding_box()
        assert slider is not None
        assert slider["y"] < 500
        assert control in (page.get_by_role("slider").first.get_attribute("aria-label") or "")


CONTRASTS = """() => {
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const over = (colors) => {
    for (const color of colors) { pen.fillStyle = color; pen.fillRect(0, 0, 1, 1); }
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (color) => color.map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const paper = getComputedStyle(document.querySelector(".stApp")).backgroundColor;
  return [...document.querySelectorAll(".stPlotlyChart :is(.xtick, .ytick, .g-xtitle) text")].map((text) => {
    const [ink, ground] = [over([paper, getComputedStyle(text).fill]), over([paper])].map(light);
    return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
  });
}"""


@pytest.mark.slow
@pytest.mark.parametrize("page", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True,
                         ids=["light", "dark"])
def test_the_labels_of_a_chart_have_enough_contrast(page: Page, app: App) -> None:
    page.goto("/results")
    page.locator(".stPlotlyChart .ytick text").first.wait_for()
    settle(page)
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 10
    assert min(contrasts) >= 4.5
