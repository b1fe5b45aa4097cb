"""The exported course as a student opens it: from disk, without the app."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from udml_core.results.lessons import course, course_archive

pytestmark = pytest.mark.browser

LOCAL = ("localhost", "127.0.0.1")


@pytest.mark.parametrize("app", ["http://localhost:8775", "http://127.0.0.1:8501"])
def test_no_link_leads_to_the_computer_of_the_teacher(context: BrowserContext, tmp_path: Path, app: str) -> None:
    with zipfile.ZipFile(io.BytesIO(course_archive(app))) as archive:
        archive.extractall(tmp_path)
    page = context.new_page()
    for lesson in [None, *course()]:
        file = tmp_path / "lessons" / ("index.html" if lesson is None else f"{lesson.id}.html")
        page.goto(file.as_uri())
        page.wait_for_selector(".lesson[data-drawn], .path a")
        if lesson is not None:
            page.click(".skip")
            expect(page.locator("body")).to_contain_text(
                f"In UDML Explorer: open Learn, choose lesson {lesson.number}, and press “Open the task in Lab”.")
            expect(page.locator("body")).to_contain_text("the link with your answers that you copy in the app says "
                                                         "which tasks you solved.")
        links = page.evaluate("[...document.querySelectorAll('a[href]')].map(({ href }) => href)")
        assert links
        assert not [link for link in links if any(host in link for host in LOCAL)], file.name
        assert not any(host in page.locator("body").inner_text() for host in LOCAL), file.name
        assert all(Path(link.removeprefix("file://").split("#")[0].split("?")[0]).exists() for link in links)
