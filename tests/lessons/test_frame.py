"""What all lessons share: the frame, the address, the presentation, and access for everyone."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from pages.parts.learn.lesson import OPENED
from pages.parts.shell.views import page_of
from tests.lessons.conftest import reload_later
from tests.project.test_language import ROOT, phrases_in
from tests.tiers import fast_first
from udml_core.results.lesson_texts import translated, translations
from udml_core.results.lessons import Lesson, course, course_guide, right_choices

LESSONS = [pytest.param(lesson, id=lesson.id) for lesson in course()]
Open = Callable[..., Page]


def described(page: Page) -> dict[str, Any]:
    """Return the texts and questions of the opened lesson."""
    return dict(page.evaluate("""() => {
        const { id, title, claim, before, after, open, notes, controls, hidden = [] } = window.lesson.lesson;
        const names = [...controls, ...hidden].map(({ name }) => name);
        const text = document.querySelector(".lesson").innerText;
        return { id, title, claim, questions: [before, after], open, notes, names, text };
    }"""))


@pytest.mark.browser
@pytest.mark.parametrize("lesson", fast_first(LESSONS, 2))
def test_a_lesson_works_from_disk_and_is_accessible(open_lesson: Open, lesson: Lesson) -> None:
    page = open_lesson(lesson.id)
    parts = described(page)
    assert (parts["id"], parts["title"], parts["claim"]) == (lesson.id, lesson.title, lesson.claim)
    assert parts["open"]["page"] in OPENED
    assert (ROOT / "pages" / f"{page_of(parts['open']['page'])}.py").is_file()
    for question, right in zip(parts["questions"], (right_choices(lesson)[name] for name in ("before", "after")),
                               strict=True):
        assert question["right"] == right
        assert 0 <= right < len(question["choices"])
    assert all(parts["notes"][name].strip() for name in ("ask", "wrong", "stuck"))
    assert not {"language", "lesson", "present", "run"} & set(parts["names"])
    assert not phrases_in(parts["text"] + str(parts["questions"]) + str(parts["notes"]))
    assert "NaN" not in parts["text"]
    assert "undefined" not in parts["text"]
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.get_by_role("button", name="Skip the question").click()  # a locked picture is faint
        problems = Axe().run(page).response["violations"]
        assert not problems, [(problem["id"], problem["nodes"][0]["html"]) for problem in problems]


@pytest.mark.browser
@pytest.mark.parametrize("lesson", fast_first(LESSONS, 2))
def test_a_lesson_fits_a_telephone(open_lesson: Open, lesson: Lesson) -> None:
    for language in ("en", *translations()):
        page = open_lesson(lesson.id, f"?language={language}")
        page.set_viewport_size({"width": 390, "height": 800})
        page.reload()
        page.wait_for_selector(".lesson[data-drawn]")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, language
        page.get_by_role("button", name=translated("Skip the question", language), exact=True).click()
        page.evaluate("window.lesson.update()")
        cut = page.evaluate("""() => [...document.querySelectorAll(".formula math")].filter((math) =>
            math.getBoundingClientRect().right > document.querySelector(".formula").getBoundingClientRect().right + 1)
            .map((math) => math.textContent)""")
        assert not cut, (language, cut)
        assert page.evaluate("document.documentElement.scrollHeight") <= 4500, language  # also with targets for fingers
        question, task, stage = page.evaluate("""() => [".question", ".do .first", ".stage"].map((name) =>
            document.querySelector(name).getBoundingClientRect())""")
        assert 0 <= task["top"] - question["bottom"] <= 20, language  # between the question and its picture stands
        assert 0 <= stage["top"] - task["bottom"] <= 20, language  # what to do with it, and nothing else
        assert 0 < task["height"] <= 110, (language, task)


@pytest.mark.browser
@pytest.mark.parametrize(("name", "parts"), [("hardness", ["bars", "maps"]), ("flat", ["curves"])])
def test_sentences_stand_at_the_part_that_they_explain(open_lesson: Open, name: str, parts: list[str]) -> None:
    page = open_lesson(name)
    captions = page.locator(".at-part")
    expect(captions.first).to_be_hidden()  # it could answer the question
    page.click(".skip")
    see = page.evaluate(r"lesson.lesson.see.split(/(?<=[.!?])\s+/).map((text) => text.replace(/<.*?>/g, ''))")
    placed = page.evaluate("lesson.lesson.captions")
    assert list(placed) == parts
    for part, caption in zip(parts, captions.all(), strict=True):
        expect(caption).to_have_text(" ".join(see[at] for at in placed[part]))
        assert page.evaluate("""([part, caption]) => caption
            === [...document.querySelectorAll(`.stage > [data-part=${part}]`)].at(-1).nextSibling""",
                             [part, caption.element_handle()])
    others = [at for at in range(len(see)) if not any(at in numbers for numbers in placed.values())]
    expect(page.locator(".see")).to_have_text(" ".join(see[at] for at in others))
    page.get_by_role("button", name="Present").click()
    expect(captions.first).to_be_hidden()
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(page.url.split("?")[0])
    page.wait_for_selector(".lesson[data-drawn]")
    expect(captions).to_have_count(0)  # the controls stand near the picture
    paragraphs = page.locator(".see > span")
    expect(paragraphs).to_have_text([" ".join(see[at] for at in numbers) for numbers in (*placed.values(), others)])


FINGER = 44
"""Pixels that a finger hits."""
SMALL = """least => [...document.querySelectorAll(`.lesson :is(button, summary, input[type=range], nav a, a.try),
        .question label, .lesson g.handle`)].filter((part) => part.getClientRects().length).map((part) => {
    const { width, height } = part.getBoundingClientRect();
    return [part.outerHTML.slice(0, 60), Math.round(width), Math.round(height)];
}).filter(([, width, height]) => Math.min(width, height) < least)"""


@pytest.mark.browser
@pytest.mark.parametrize("lesson", fast_first(LESSONS, 2))
def test_a_telephone_shows_a_picture_with_its_controls_and_targets_for_fingers(open_lesson: Open,
                                                                               lesson: Lesson) -> None:
    page = open_lesson(lesson.id)
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    page.wait_for_selector(".lesson[data-drawn]")
    page.click(".skip")
    page.evaluate("document.querySelector('.stage').scrollIntoView({ block: 'start' })")
    parts = page.evaluate("""() => [".claim", ".question", ".do .first", ".stage", ".panel > .controls", ".readout",
            ".do .others", ".see"].filter((name) => document.querySelector(`.touch ${name}`))
        .map((name) => document.querySelector(`.touch ${name}`).getBoundingClientRect())""")
    for one, other in pairwise(parts):  # in this order, and none covers another
        assert -1 <= other["top"] - one["bottom"] <= 20, parts
    far = page.evaluate("""() => {
        const [stage, controls] = [".stage", ".controls"].map((name) =>
            document.querySelector(`.touch ${name}`).getBoundingClientRect());
        return Math.max(controls.top - stage.top, stage.bottom - controls.bottom);
    }""")
    assert far <= (900 if lesson.id == "measures" else 770), "the controls are far from the picture"
    assert page.locator(".touch .controls").evaluate("part => getComputedStyle(part).position") == "static"
    lines = page.evaluate("""() => [...document.querySelectorAll(".readout :is(dt, dd)")].map((part) =>
        [part.textContent, part.getBoundingClientRect().height / parseFloat(getComputedStyle(part).fontSize)])""")
    assert all(height < 2 for _words, height in lines), lines  # a label and a value take a line each
    assert not page.evaluate(SMALL, FINGER)


@pytest.mark.browser
@pytest.mark.parametrize("name", ["metric", "hardness"])
def test_a_telephone_shows_question_and_picture_together(open_lesson: Open, name: str) -> None:
    page = open_lesson(name)
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    page.wait_for_selector(".lesson[data-drawn]")
    tops = "['.touch .question', '.stage', '.because', '.claim', '.controls'].map((name) => " \
        "document.querySelector(name).getBoundingClientRect())"
    question, stage, *_ = page.evaluate(tops)
    assert question["top"] <= 250
    assert stage["top"] <= 600  # on the same screen
    page.locator(".question input").first.check()
    page.wait_for_timeout(100)
    _, stage, because, claim, _ = page.evaluate(tops)
    assert 0 <= because["top"] < stage["top"] <= 300, (because, stage)  # the explanation, with the picture below it
    assert claim["bottom"] < because["top"]
    for target in (".touch .question", ".takeaway"):
        page.evaluate("target => document.querySelector(target).scrollIntoView()", target)
        page.wait_for_timeout(100)
        covered = page.evaluate("""() => {
            const box = document.querySelector(".controls").getBoundingClientRect();
            const parts = document.querySelectorAll(".touch .question, .readout, .see, .do span, .takeaway, .formula");
            return [...parts].filter((part) => part.getClientRects().length).map((part) => part.getBoundingClientRect())
                .filter((part) => part.top < box.bottom - 1 && box.top < part.bottom - 1).length;
        }""")
        assert not covered, target
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    links = page.evaluate("""() => [...document.querySelectorAll(".lesson a")].filter((link) => link.offsetParent)
        .map((link) => link.getBoundingClientRect().height)""")
    assert min(links) >= 24, links


def test_the_course_is_numbered_without_gaps() -> None:
    assert [lesson.number for lesson in course()] == list(range(1, len(course()) + 1))


@pytest.mark.browser
def test_the_controls_wait_for_a_prediction_that_the_browser_keeps(open_lesson: Open) -> None:
    page = open_lesson("epsilon")
    slider = page.get_by_role("slider")
    expect(page.locator(".controls[inert]")).to_have_count(1)
    expect(page.get_by_text("Answer first; then the picture moves.")).to_be_visible()
    page.get_by_label("More, smaller clusters").check()
    expect(page.locator(".because").first).to_contain_text(
        "✕ Not right. A higher ε does this: it removes links, and clusters fall apart. "
        "Right: “Fewer, larger clusters”. A lower ")
    expect(page.locator(".question label.right")).to_have_text("Fewer, larger clusters")
    page.get_by_label("Fewer, larger clusters").check()
    expect(page.locator(".because").first).to_contain_text("✓ Correct.")
    expect(page.get_by_role("button", name="Skip the question")).to_be_hidden()
    expect(page.get_by_text("Answer first; then the picture moves.")).to_be_hidden()
    expect(page.locator(".controls[inert]")).to_have_count(0)
    reload_later(page)
    expect(page.get_by_label("Fewer, larger clusters")).to_be_checked()
    expect(page.locator(".controls[inert]")).to_have_count(0)
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**epsilon=0.31")


@pytest.mark.browser
def test_the_address_holds_the_state_and_nonsense_in_it_is_ignored(open_lesson: Open) -> None:
    assert open_lesson("epsilon", "?epsilon=0.5").evaluate("window.lesson.state.epsilon") == 0.5
    assert open_lesson("epsilon", "?epsilon=7").evaluate("window.lesson.state.epsilon") == 0.95
    for nonsense in ("?epsilon=", "?epsilon=nan", "?epsilon=1e999", "?epsilon=<b>"):
        state = open_lesson("epsilon", nonsense).evaluate("window.lesson.state.epsilon")
        assert state in (0.65, 0.2), nonsense  # an empty number reads as 0, below the range
    page = open_lesson("epsilon", "?epsilon=0.5")
    page.get_by_role("button", name="Skip the question").click()
    page.get_by_role("button", name="Start again").click()
    page.wait_for_url(lambda url: "epsilon=" not in url)
    assert page.evaluate("window.lesson.state.epsilon") == 0.65


@pytest.mark.browser
def test_the_claim_waits_for_the_prediction(open_lesson: Open) -> None:
    """In eight lessons it answers the question."""
    page = open_lesson("epsilon")
    expect(page.locator(".claim")).to_contain_text("Predict first. Your answer opens the rest")
    page.get_by_role("button", name="Skip the question").click()
    expect(page.locator(".claim")).to_contain_text("A low threshold ε merges true classes")


@pytest.mark.browser
def test_what_is_true_of_comparisons_waits_for_all_decisions(open_lesson: Open) -> None:
    page = open_lesson("seeds")
    page.get_by_role("button", name="Skip the question").click()
    fails, wait = page.locator(".fails"), page.locator(".undecided")
    for comparison in ("1", "2", "3"):
        expect(fails).to_be_hidden()
        expect(wait).to_contain_text("It appears when you have decided all of them")
        page.get_by_role("group", name="Comparison").get_by_role("button", name=comparison, exact=True).click()
        page.get_by_role("group", name="Your decision").get_by_role("button").first.click()
    expect(fails).to_contain_text("although the settings are equal")
    expect(wait).to_be_hidden()
    reload_later(page)
    expect(page.locator(".fails")).to_be_visible()
    page = open_lesson("better")
    page.get_by_role("button", name="Skip the question").click()
    expect(page.locator(".fails")).to_be_hidden()
    page.locator(".undecided").get_by_role("button", name="Show").click()
    expect(page.locator(".fails")).to_contain_text("both embeddings have equal noise")
    for name in ("seeds", "better"):
        slides = open_lesson(name, "?present=1").evaluate("lesson.presentation.slides")
        first = next(slide["text"] for slide in slides if slide["kind"] == "fails")
        assert "Has everyone decided" in first


@pytest.mark.browser
def test_a_lesson_says_its_aim_and_what_follows_and_the_path_where_a_reader_stopped(open_lesson: Open) -> None:
    for lesson in course():
        aim = open_lesson(lesson.id).locator(".aim").inner_text()
        assert re.fullmatch(rf"{lesson.minutes} minutes\. Afterwards you can .{{20,90}}\.", aim), lesson.id
    page = open_lesson("epsilon")
    following = page.get_by_role("link", name="Next lesson: Cosine or flat?")
    page.get_by_label("Fewer, larger clusters").check()
    expect(following).to_be_hidden()
    stopped = "Continue with lesson 4, step {} of 3: ε merges and shatters"
    expect(open_lesson("index").get_by_role("link", name=stopped.format(2))).to_be_visible()
    page.get_by_role("slider").fill("0.5")
    expect(open_lesson("index").get_by_role("link", name=stopped.format(3))).to_be_visible()
    page.locator(".end .question input").first.check()
    following.click()
    page.wait_for_url("**/flat.html")


@pytest.mark.browser
@pytest.mark.parametrize(("begun", "finished", "last", "words"), [
    (["hardness", "encoders"], ["metric"], "encoders", "Continue with lesson 3, step 2 of 3: Easy, semi-hard, hard"),
    ([], ["metric", "triplets", "flat"], "triplets", "Continue: Easy, semi-hard, hard"),
    ([], ["metric", "flat"], "flat", "Continue: Labels spread"),
    ([], ["metric", "encoders"], "encoders", "Continue: Triplets and margin"),
    ([], [], "", "Begin: What is a metric?")])
def test_the_path_continues_with_the_first_lesson_that_is_begun(
        open_lesson: Open, begun: list[str], finished: list[str], last: str, words: str) -> None:
    page = open_lesson("index")
    right = {lesson.id: right_choices(lesson)["after"] for lesson in course()}
    kept = {name: {"before": 0} for name in begun} | {name: {"before": 0, "after": right[name]} for name in finished}
    page.evaluate("kept => localStorage.setItem('udml-course', JSON.stringify(kept))",
                  {"reader": "0" * 16, "lessons": kept, "last": last})
    reload_later(page)
    expect(page.locator(".status a")).to_have_text(words)


@pytest.mark.browser
def test_the_cards_of_the_course_give_no_answer_away(open_lesson: Open) -> None:
    page = open_lesson("index")
    cards = page.locator(".path li")
    for at, lesson in enumerate(course()):
        text = cards.nth(at).inner_text()
        own = next(entry for entry in course_guide()["lessons"] if entry["lesson"] == lesson.id)
        assert own["words"] in text
        assert lesson.claim not in page.content()
        assert not phrases_in(own["words"] + own["text"])


@pytest.mark.browser
def test_the_course_s_contents_show_the_progress(open_lesson: Open) -> None:
    page = open_lesson("epsilon")
    page.get_by_role("button", name="Skip the question").click()
    page.get_by_label("Nothing else: 99").check()
    expect(page.locator(".end .question label.right")).to_have_text("How many images are singletons")
    assert open_lesson("index").get_by_text(f"0 of {len(course())} finished").is_visible()  # a wrong answer
    page.get_by_label("How many images are singletons").check()
    page = open_lesson("index")
    expect(page.get_by_text(f"1 of {len(course())} finished")).to_be_visible()
    expect(page.get_by_role("link", name="ε merges and shatters ✓ finished")).to_have_attribute("href", "epsilon.html")
    page.get_by_role("button", name="Forget my progress").click()
    expect(page.get_by_text(f"0 of {len(course())} finished")).to_be_visible()
    assert not Axe().run(page).response["violations"]
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    expect(page.get_by_role("heading", name="90 minutes")).to_be_visible()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        problems = Axe().run(page).response["violations"]
        assert not problems, [(problem["id"], problem["nodes"][0]["html"]) for problem in problems]
    for language in translations():
        assert not Axe().run(open_lesson("index", f"?language={language}#glossary")).response["violations"]


@pytest.mark.browser
@pytest.mark.parametrize("lesson", fast_first(LESSONS, 2))
def test_a_lesson_with_all_its_parts_opened_is_accessible(open_lesson: Open, lesson: Lesson) -> None:
    page = open_lesson(lesson.id)
    page.locator(".question input").first.check()
    page.locator(".end .question input").first.check()
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    problems = Axe().run(page).response["violations"]
    assert not problems, [(problem["id"], problem["nodes"][0]["html"]) for problem in problems]


def test_a_picture_is_built_again_for_another_width(open_lesson: Callable[..., Page]) -> None:
    """In a window that became narrow, the numbers on an axis had 6 pixels."""
    page = open_lesson("seeds")
    page.click(".skip")
    page.set_viewport_size({"width": 390, "height": 844})
    least = """() => Math.min(...[...document.querySelectorAll(".stage svg text")]
        .map((text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a))"""
    page.wait_for_function(f"() => ({least})() >= 11")
    page.set_viewport_size({"width": 1400, "height": 900})
    page.wait_for_function("() => document.querySelector('.stage svg').viewBox.baseVal.width > 500")
