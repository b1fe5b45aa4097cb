"""Labeling with keys in a real Chromium, with the focus where the last click left it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.app.conftest import App
from tests.app.test_browser import settle
from udml_core.data.given import labels as annotations
from udml_core.data.given.log import log_path_of
from udml_core.runs import Run

pytestmark = pytest.mark.browser


@pytest.fixture
def unlabeled(app: App, finished: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A finished run with a map and without assigned labels."""
    monkeypatch.setenv("UDML_CACHE", app.environment["UDML_CACHE"])
    log_path_of(finished.dataset(), "labels").unlink(missing_ok=True)
    app.analyzed(finished, kind="pca", scope="all", frames=("final",))
    return finished


def expect_labels(page: Page, count: int) -> None:
    labels = page.get_by_test_id("stMarkdown").filter(has_text=re.compile(r"^[\d,]+ labels? · "))
    if not count:
        settle(page)
        expect(labels).to_have_count(0)
        return
    expect(labels.filter(has_text=re.compile(rf"^{count} label")).first).to_be_visible()
    settle(page)
    expect(labels).to_have_count(1)  # While the page runs again, Streamlit shows the earlier numbers as well.
    expect(labels).to_contain_text(re.compile(rf"^{count} label"))


def own_class(page: Page) -> Locator:
    """Show the suggested image's class in the data set, and return its button."""
    page.get_by_text("Show the true class").click()
    return page.locator(".st-key-labels-class-own button").first


def test_keys_label_suggested_and_selected_images_and_undo(page: Page, unlabeled: Run) -> None:
    page.goto(f"/labels?run={unlabeled.id}&section=next")
    expect_labels(page, 0)
    own_class(page).click()
    expect_labels(page, 1)
    chart = page.locator("div.scatter").first
    expect(chart).to_have_attribute("data-drawn", re.compile("."))
    chart.locator(".overlay").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 image selected", exact=True)).to_be_visible()
    settle(page)
    page.keyboard.press("1")
    expect_labels(page, 2)
    expect(page.get_by_text("Suggested image", exact=True)).to_be_visible()
    settle(page)
    page.keyboard.press("1")
    expect_labels(page, 3)
    suggested = page.get_by_role("group", name="Images to label next").get_by_role("button")
    suggested.nth(1).click()
    settle(page)  # the selected image appears above, and the list moves down
    suggested.nth(2).click()
    expect(page.get_by_text("2 images selected", exact=True)).to_be_visible()
    settle(page)
    page.keyboard.press("1")
    expect_labels(page, 5)
    assert len(annotations.assigned_labels(unlabeled.dataset())) == 5
    page.keyboard.press("u")
    expect_labels(page, 3)
    expect(page.get_by_text("2 images selected", exact=True)).to_be_visible()
    page.get_by_label("Class name").fill("1 u s")
    page.get_by_label("Class name").press("Enter")
    expect_labels(page, 5)
    assert sorted(annotations.assigned_labels(unlabeled.dataset()).values()).count("1 u s") == 2


def test_groups_become_names_and_folders(page: Page, unlabeled: Run, tmp_path: Path) -> None:
    page.goto(f"/labels?run={unlabeled.id}&section=groups&groups=10")
    groups = page.get_by_role("group", name="Groups without a name").locator(".tile")
    expect(groups).to_have_count(10)
    expect(groups.nth(1)).to_have_text(re.compile(r"\d+"))
    words = [groups.nth(row).text_content() or "" for row in (0, 1)]
    first, second = (int(said.rpartition(" · ")[2].split()[0]) for said in words)
    groups.nth(0).click()
    expect(page.get_by_text(f"· {first} images")).to_be_visible()
    page.get_by_label("Class name", exact=True).fill("egr")
    page.get_by_role("button", name="All groups").click()
    expect(groups).to_have_count(10)
    settle(page)
    groups.nth(0).click()
    expect(page.get_by_text(f"· {first} images")).to_be_visible()
    expect(page.get_by_label("Class name", exact=True)).to_have_value("")
    page.get_by_role("button", name="Merge with").click()
    expect(page.get_by_text(f"takes in {first} images")).to_be_visible()
    settle(page)
    groups.filter(has_text=words[1].split("\n")[0]).click()
    expect(page.get_by_text(f"· {first + second} images")).to_be_visible()
    settle(page)
    page.get_by_role("group", name="Images of the group, the border first").locator(".tile").first.click()
    expect(page.get_by_role("button", name=re.compile("Separate 1 image"))).to_be_enabled()
    settle(page)
    page.keyboard.press("x")
    expect(page.get_by_text(f"· {first + second - 1} images")).to_be_visible()
    settle(page)
    page.get_by_label("Class name", exact=True).fill("heron")
    page.get_by_label("Class name", exact=True).press("Enter")
    expect_labels(page, first + second - 1)
    dataset = unlabeled.dataset()
    assert len(annotations.assigned_labels(dataset)) == first + second - 1
    page.get_by_role("tab", name="Proposed names").click()
    expect(page.get_by_role("button", name=re.compile(r"All \d+ yes"))).to_be_visible()
    settle(page)
    page.keyboard.press("y")
    expect(page.get_by_text(re.compile(r"confirmed as heron")).first).to_be_visible()
    named = len(annotations.assigned_labels(dataset))
    assert named > first + second - 1
    page.get_by_role("tab", name="Folders").click()
    page.get_by_label("Folder to write to", exact=True).fill(str(tmp_path / "sorted"))
    page.get_by_role("button", name="Show plan").click()
    page.get_by_role("button", name=re.compile("Write .* images")).click()
    expect(page.get_by_text(re.compile("written to"))).to_be_visible()
    assert len(list((tmp_path / "sorted" / "heron").iterdir())) >= named


FOCUSED = """element => {
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  return element.contains(active);
}"""


def tab_to(page: Page, target: Locator) -> None:
    """Move the focus to an element by the Tab key alone."""
    expect(target).to_be_visible()
    for _ in range(200):
        if target.evaluate(FOCUSED):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"The Tab key does not reach {target}.")


def open_by_keys(page: Page, section: str) -> None:
    """Open a section of Label by Tab and the arrow keys, and go back to the tabs if a redraw takes the focus away."""
    tabs, tab = page.get_by_role("tablist"), page.get_by_role("tab", name=section)
    for _ in range(12):
        settle(page)
        if tab.get_attribute("aria-selected") == "true":
            return
        tab_to(page, tabs)
        page.keyboard.press("Enter" if tab.evaluate(FOCUSED) else "ArrowRight")
    raise AssertionError(f"The keys do not open {section}.")


def test_a_walk_from_groups_to_folders_takes_no_mouse(page: Page, unlabeled: Run, tmp_path: Path) -> None:
    dataset, target = unlabeled.dataset(), tmp_path / "sorted"

    def press(key: str, says: str) -> dict[str, str]:
        """Press a key, wait for its message, and return the stored labels."""
        page.keyboard.press(key)
        expect(page.get_by_role("status").filter(has_text=says)).to_have_count(1)
        settle(page)
        return annotations.assigned_labels(dataset)

    page.goto(f"/labels?run={unlabeled.id}&section=labels&groups=10")
    settle(page)
    open_by_keys(page, "Groups")
    groups = page.get_by_role("group", name="Groups without a name")
    tab_to(page, groups)
    page.keyboard.press("ArrowRight")
    size = int((groups.locator(".tile").nth(1).text_content() or "").rpartition(" · ")[2].split()[0])
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"· {size} images")).to_be_visible()
    settle(page)
    tab_to(page, page.get_by_label("Class name", exact=True))
    page.keyboard.type("heron")
    assert set(press("Enter", f"{size} images named heron").values()) == {"heron"}
    named = annotations.assigned_labels(dataset)
    assert len(named) == size
    open_by_keys(page, "Proposed names")
    tab_to(page, page.get_by_role("group", name="Images that look like heron"))
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name=re.compile(r"1 yes, \d+ no"))).to_be_enabled()
    settle(page)
    seen = press("y", "confirmed as heron, 1 image rejected")
    assert len(seen) > size
    wrong, = annotations.rejected_classes(dataset)
    assert wrong not in seen
    assert press("u", "Undone") == named
    assert press("y", "confirmed as heron, 1 image rejected") == seen, "the image is selected again"
    assert press("n", "images rejected") == seen
    assert press("u", "Undone") == seen
    confirm = page.get_by_role("button", name=re.compile(r"All \d+ yes"))  # the next images that look like it
    count = int(re.findall(r"\d+", confirm.text_content() or "")[0])
    page.keyboard.press("y")
    expect_labels(page, len(seen) + count)
    settle(page)
    further = annotations.assigned_labels(dataset)
    assert len(further) == len(seen) + count
    open_by_keys(page, "Folders")
    tab_to(page, page.get_by_label("Folder to write to", exact=True))
    page.keyboard.type(str(target))
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name=re.compile("Write .* images"))).to_be_visible()
    settle(page)
    page.keyboard.press("w")
    expect(page.get_by_text(re.compile("written to"))).to_be_visible()
    assert annotations.assigned_labels(dataset) == further
    assert {path.name for path in target.iterdir() if path.is_dir()} >= {"heron"}
    assert len(list((target / "heron").iterdir())) >= len(further)
