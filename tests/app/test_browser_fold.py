"""The main picture of each deep page lies above the fold of a laptop's screen, in a real Chromium."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.app.conftest import App
from tests.app.test_browser import settle
from tests.running import trained
from udml_core.analyses import plan_analysis
from udml_core.runs import Run
from udml_core.workers import analyse

pytestmark = pytest.mark.browser

METHODS = {"rpml": {"dimension": 16, "epochs": 2}, "ssdml": {"dimension": 16, "epochs": 1},
           "nml": {"dimension": 6, "epochs": 1}, "pslr": {"dimension": 8, "epochs": 1}}
PICTURES = {
    "triplets": ("rpml", "img[alt^='As the loss saw it']", "α"),
    "neighborhoods": ("rpml", ".stage", "k:"),
    "clusters": ("rpml", ".stage", "ε"),
    "instances": ("pslr", ".st-key-instance-shares", "τ"),
    "affinity": ("ssdml", "img[alt^='After propagation']", "γ"),
    "pairs": ("nml", ".st-key-pairs-spread-after", "b:"),
    "labels": ("ssdml", ".stage", "γ"),
    "refine": ("rpml", "[aria-label='The 24 nearest images, after']", ""),
    "lesson_epsilon": ("rpml", "img[alt^='At ε 0.4']", ""),
}
"""Page: the method of its run, its main picture, and a word in the label of its main control."""


@pytest.fixture(scope="module")
def runs(app: App) -> dict[str, Run]:
    """A small finished run of each method, with a map of all images and RPML's graph."""
    made = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UDML_CACHE", app.environment["UDML_CACHE"])
        for method, fields in METHODS.items():
            made[method] = trained(app.runs, method=method, fields=fields, most_pairs=2000)
            analyse.keep(made[method], plan_analysis(kind="pca", scope="all", frames=("final",)), lambda *_: None)
    return made


@pytest.mark.parametrize("page", [{"viewport": {"width": 1400, "height": 900}}], indirect=True, ids=["1400x900"])
@pytest.mark.parametrize("name", PICTURES)
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
