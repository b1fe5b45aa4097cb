"""The course in a real Chromium against a real server."""

from __future__ import annotations

import re
import zipfile

import pytest
from playwright.sync_api import Page, expect

from tests.app.conftest import App
from tests.app.test_browser import press_to_download, settle
from tests.running import worked
from udml_core.results.lesson_tasks import TASKS
from udml_core.results.lesson_texts import translated
from udml_core.results.lessons import read_answers
from udml_core.runs.task_evidence import note_task

pytestmark = pytest.mark.browser


def count_answers(page: Page) -> None:
    """Tick that the next answers are counted."""
    page.goto("/learn")
    page.get_by_label("Count my next answers").check()


def test_a_reader_walks_from_the_path_through_a_lesson_to_the_page_on_clusters(page: Page, app: App) -> None:
    count_answers(page)
    page.get_by_role("link", name=re.compile("ε merges and shatters")).last.click()
    page.wait_for_url("**/learn?lesson=epsilon")
    page.go_back()
    page.wait_for_url(re.compile(r"/learn$"))
    expect(page.get_by_role("heading", name="Learn", exact=True)).to_be_visible()
    page.go_forward()
    page.wait_for_url("**/learn?lesson=epsilon")
    expect(page.get_by_text("The task appears after your prediction.")).to_be_visible()
    expect(page.get_by_role("link", name="Open the task in Lab")).to_have_count(0)
    page.get_by_label("Fewer, larger clusters").check()
    expect(page.locator(".because.right")).to_be_visible()
    expect(page.get_by_role("link", name="Open the task in Lab")).to_be_visible()
    page.get_by_role("slider").focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.wait_for_url("**epsilon=0.35")
    settle(page)
    for _ in range(400):  # on a busy machine the answer is stored later than the page stands still
        if ("epsilon", "before") in read_answers(app.runs):
            break
        page.wait_for_timeout(50)
    assert read_answers(app.runs)["epsilon", "before"] == {0: 1}
    page.reload()
    expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", "0.35")
    task = TASKS["epsilon"]
    run = worked(app.runs, **{**task.options, "fields": {**task.fields, "epsilon": 0.7}})
    page.goto("/learn")
    expect(page.get_by_role("link", name=re.compile("ε merges and shatters")).last).not_to_contain_text("✓ task")
    note_task(run, "epsilon", page.evaluate("JSON.parse(localStorage.getItem('udml-course')).reader"))
    page.goto("/learn")
    expect(page.get_by_role("link", name=re.compile("ε merges and shatters")).last).to_contain_text("✓ task")
    page.goto("/learn?lesson=epsilon&epsilon=0.35")
    expect(page.get_by_text("At ε = 0.7 ")).to_contain_text("solved")
    page.get_by_role("link", name="Open the task in Lab").click()
    page.wait_for_url(re.compile("/lab.*method=rpml.*epsilon%3A0.7.*task=epsilon"))
    settle(page)
    address = page.url
    page.goto("/learn")
    settle(page)
    page.goto(address)  # a new session asks the browser for its reader
    expect(page.get_by_text("At ε = 0.7 ")).to_contain_text("solved")
    settle(page)
    page.goto("/learn?lesson=epsilon&epsilon=0.35")
    settle(page)
    page.get_by_role("link", name="Deutsch").click()
    page.wait_for_url("**/learn?lesson=epsilon&epsilon=0.35&language=de")
    title = translated("ε merges and shatters", "de")
    expect(page.get_by_role("heading", name=title)).to_be_visible()
    expect(page.locator(".readout")).to_contain_text("100,0 %")
    page.get_by_role("link", name=translated("All lessons", "de")).click()
    page.wait_for_url(re.compile(r"/learn\?language=de$"))
    settle(page)
    page.goto("/learn?lesson=epsilon&epsilon=0.35&language=xx")  # the browser keeps the language
    expect(page.get_by_role("heading", name=title)).to_be_visible()
    settle(page)
    expect(page).to_have_url(re.compile("epsilon=0.35&language=xx$"))  # so that Back leaves the lesson
    page.get_by_role("link", name="English").click()
    page.wait_for_url(re.compile("language=en"))
    settle(page)
    page.get_by_role("button", name="Try it on your data").click()
    page.wait_for_url(re.compile(r"tool=clusters.*epsilon=0\.35"))
    settle(page)


def test_only_the_answers_of_a_reader_who_agrees_are_in_of_the_class_summary(page: Page, app: App) -> None:
    def counted(question: str) -> int:
        return sum(read_answers(app.runs).get(("flat", question), {}).values())

    def wait_for(question: str, count: int) -> None:
        for _ in range(400):
            if counted(question) == count:
                return
            page.wait_for_timeout(50)
        raise AssertionError(f"{counted(question)} answers, not {count}")

    before = counted("before")
    page.goto("/learn")
    expect(page.get_by_label("Count my next answers")).not_to_be_checked()
    page.goto("/learn?lesson=flat")
    page.locator(".question input").first.check()
    settle(page)
    assert counted("before") == before
    count_answers(page)
    page.goto("/learn?lesson=flat")
    page.locator(".question input").nth(1).check()
    wait_for("before", before + 1)
    page.goto("/learn")
    page.get_by_label("Count my next answers").uncheck()
    wait_for("before", before)
    page.goto("/learn?lesson=flat")
    page.locator(".end .question input").first.check()
    settle(page)
    assert counted("after") == 0
    page.goto("/learn")
    expect(page.get_by_label("Count my next answers")).not_to_be_checked()


def test_the_task_waits_for_a_prediction_that_is_not_counted_too(page: Page, app: App) -> None:
    waits = page.get_by_text("The task appears after your prediction.")
    text = page.get_by_text(translated(TASKS["spread"].text, "en"))
    page.goto("/learn?lesson=spread")
    expect(waits).to_be_visible()
    page.get_by_role("button", name="Skip the question").click()
    expect(text).to_be_visible()
    page.goto("/learn?lesson=metric")  # another session, in which the browser says what it keeps
    expect(waits).to_be_visible()
    page.goto("/learn?lesson=spread")
    expect(text).to_be_visible()
    expect(waits).to_have_count(0)
    settle(page)
    page.get_by_role("link", name="All lessons").click()
    page.get_by_role("button", name="Forget my progress").click()
    page.get_by_role("link", name="Labels spread").first.click()
    expect(waits).to_be_visible()
    expect(text).to_have_count(0)


def test_the_downloaded_course_leads_to_no_address_that_only_this_computer_reaches(page: Page, app: App) -> None:
    page.goto("/learn")
    page.get_by_text("For teachers").click()
    course = press_to_download(page.get_by_role("button", name="Download the course"))
    with zipfile.ZipFile(course.path()) as archive:
        lesson = archive.read("lessons/epsilon.html").decode()
    assert '"app": ""' in lesson
    assert page.evaluate("location.host") not in lesson


@pytest.mark.slow
def test_an_old_link_to_the_lesson_on_epsilon_opens_it_with_its_value(page: Page, app: App) -> None:
    page.goto("/lesson_epsilon?epsilon=0.5")
    page.wait_for_url("**/learn?lesson=epsilon&images=digits&epsilon=0.5")
    expect(page.locator(".readout")).to_contain_text("44")
    page.get_by_role("link", name="All lessons").click()
    page.wait_for_url(re.compile(r"/learn$"))
    settle(page)


def test_a_presentation_hides_the_sidebar_and_the_next_lesson_is_presented_too(page: Page, app: App) -> None:
    page.goto("/learn?lesson=epsilon&present=1")
    expect(page.locator(".lesson.present[data-drawn]")).to_be_visible()
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    expect(page.locator(".slide-title")).to_be_in_viewport()
    assert page.evaluate("""() => {
        const title = document.elementFromPoint(innerWidth / 2, 20);
        const inner = title.shadowRoot?.elementFromPoint(innerWidth / 2, 20) ?? title;
        return Boolean(inner.closest(".lesson.present"));
    }""")  # nothing of the app covers it
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Present").click()  # the server does not know it from the address
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("next slide")
    page.keyboard.press("Escape")
    page.keyboard.press("9")  # there is no such choice
    expect(page.locator(".because:visible")).to_have_count(0)
    page.keyboard.press("2")
    expect(page.locator(".question:visible input").nth(1)).to_be_checked()
    expect(page.locator(".because:visible")).to_have_count(1)
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.wait_for_url("**/learn?lesson=flat&present=1")
    expect(page.locator(".st-key-lesson-flat .lesson.present[data-drawn]")).to_be_visible()
    expect(page.locator(".st-key-lesson-epsilon")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("stSidebar")).to_be_visible()


@pytest.mark.slow
def test_a_wrong_address_shows_its_own_page_and_stays_in_the_history(page: Page) -> None:
    page.goto("/nonsense<b>?x=1")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_text("/nonsense<b>")).to_be_visible()
    settle(page)
    page.get_by_test_id("stMain").get_by_role("link", name=re.compile("^Learn")).click()
    page.wait_for_url(re.compile("/learn$"))
    expect(page.get_by_role("heading", name="Learn", exact=True)).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    settle(page)
