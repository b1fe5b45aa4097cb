"""Every page in a narrow dark window: nothing overflows, and axe finds no serious violation."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.app.test_browser import expect_every_page_to_fit_and_pass_axe

pytestmark = pytest.mark.browser


@pytest.mark.usefixtures("finished")
@pytest.mark.parametrize("page", [{"color_scheme": "dark", "viewport": {"width": 390, "height": 900}}], indirect=True,
                         ids=["dark-390"])
def test_every_page_fits_its_window_and_passes_axe(page: Page) -> None:
    expect_every_page_to_fit_and_pass_axe(page)
