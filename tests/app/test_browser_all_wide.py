"""Every page in a wide light window: nothing overflows, and axe finds no serious violation."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.app.test_browser import expect_every_page_to_fit_and_pass_axe

pytestmark = pytest.mark.browser


@pytest.mark.usefixtures("finished")
@pytest.mark.parametrize("page", [{"color_scheme": "light", "viewport": {"width": 1400, "height": 900}}], indirect=True,
                         ids=["light-1400"])
def test_every_page_fits_its_window_and_passes_axe(page: Page) -> None:
    expect_every_page_to_fit_and_pass_axe(page)
