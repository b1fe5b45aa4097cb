"""Each slide of a presentation begins in the state that its words describe."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.tiers import fast_first
from udml_core.results.lessons import Lesson, course

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
LESSONS = [pytest.param(lesson, id=lesson.id) for lesson in course()]
FAILURES = {
    "metric": "state.data === 'ring' && numbers.recall < c({ data: 'ring' }).recall",
    "triplets": "numbers.value > 0 && String(numbers.stepped[2]) === String(state.negative)",
    "hardness": "state.epochs === 1 && state.labels === 'all' && Math.abs(numbers.results.hard.mean - 0.718) < 0.0005",
    "epsilon": "state.images === 'digits' && state.epsilon === 0.9 && numbers.purity > 0.95 && numbers.coverage < 0.1",
    "flat": "state.k === 24 && state.threshold === 0.3 && numbers.strangers > 0",
    "spread": "state.gamma === 0.99 && state.step === 60 && numbers.wrong.length > c({ step: 60 }).wrong.length",
    "instances": "state.temperature === 0.1 && numbers.probability < 0.02",
    "collapse": "numbers.size === 100 && numbers.runs[0].rank.toFixed(1) === '4.8'",
    "measures": "numbers.recall1 === 1 && numbers.mapAtR === 0.25",
    "maps": "state.points === 'noise' && numbers.value === 2 && numbers.groups.count === 73",
    "seeds": "state.comparison === 'nothing' && state.n === 5 && numbers.gain / numbers.error > numbers.limit",
    "reranking": "state.k === 10 && state.times === '2'",
    "better": "state.comparison === 'noise' && numbers.opinion.verdict === 'worse' && state.asked === 125"
              " && c({ comparison: 'noise', asked: 140 }).opinion.verdict === 'cannot tell'",
    "encoders": "state.second === 'pairs' && numbers.recalls[2] <= numbers.recalls[0]",
}
"""What the slide "When it fails" shows, by lesson, where `c` computes another state."""
TURN = """kind => {
    const { presentation } = lesson;
    presentation.turn(presentation.slides.findLastIndex((slide) => slide.kind === kind) - presentation.slide);
}"""
STATE = "({ ...lesson.state })"


@pytest.mark.parametrize("lesson", fast_first(LESSONS, 2))
def test_a_presentation_begins_unspoiled_and_shows_each_failure(open_lesson: Open, lesson: Lesson) -> None:
    page = open_lesson(lesson.id)
    start = page.evaluate("({ ...lesson.start })")
    page.locator(".question input").first.check()  # at home the picture shows the case of the answer
    page.evaluate("lesson.change(lesson.lesson.before.shows ?? lesson.lesson.summary)")
    page.get_by_role("button", name="Present").click()
    for kind in (*(["meet"] if page.evaluate("Boolean(lesson.lesson.meet)") else []), "predict"):
        page.evaluate(TURN, kind)
        assert page.evaluate(STATE) == start, kind
    page.evaluate(TURN, "fails")
    assert page.evaluate(f"""(({{ numbers, state, start, data, lesson: own }}) => {{
        const c = (changed) => own.compute({{ ...start, ...changed }}, data);
        return {FAILURES[lesson.id]};
    }})(lesson)"""), page.evaluate(STATE)


def test_a_change_stays_on_its_slide_and_the_reader_s_own_state_comes_back(open_lesson: Open) -> None:
    page = open_lesson("epsilon", "?epsilon=0.62")
    page.get_by_role("button", name="Skip the question").click()
    page.get_by_role("button", name="Present").click()
    assert page.evaluate("lesson.state.epsilon") == 0.65
    page.evaluate(TURN, "do")
    page.keyboard.press("ArrowUp")
    page.set_viewport_size({"width": 1280, "height": 720})
    page.evaluate("new Promise(requestAnimationFrame)")
    assert page.evaluate("lesson.state.epsilon") == 0.66
    page.keyboard.press("ArrowRight")
    assert page.evaluate("lesson.state.epsilon") == 0.65
    page.evaluate(TURN, "fails")
    page.wait_for_timeout(400)  # longer than the address waits
    assert "epsilon=0.62" in page.url
    assert "images" not in page.url
    page.keyboard.press("Escape")
    assert page.evaluate("lesson.state.epsilon") == 0.62
    expect(page.get_by_role("slider")).to_have_value("0.62")


def test_an_answer_of_the_class_shows_its_case_again_and_decisions_last_for_the_presentation(open_lesson: Open) -> None:
    page = open_lesson("maps", "?present=1")
    page.locator(".question:visible input").first.check()
    assert page.evaluate("lesson.state.size") == 0
    page.evaluate(TURN, "do")
    assert page.evaluate("lesson.state.size") == 2
    page.evaluate(TURN, "predict")
    assert page.evaluate("lesson.state.size") == 0
    page = open_lesson("better", "?present=1")
    page.evaluate(TURN, "do")
    page.get_by_role("button", name="The left result is more similar").click()
    page.evaluate(TURN, "see")
    assert page.evaluate("lesson.state['judged-joined'].length") == 1
    page.keyboard.press("Escape")
    assert page.evaluate("lesson.state['judged-joined'].length") == 0
    page = open_lesson("seeds", "?present=1")
    page.evaluate(TURN, "fails")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Skip the question").click()
    expect(page.locator(".fails")).to_be_hidden()  # the reader has decided nothing


BELOW = """() => document.querySelector(".slide-now").getBoundingClientRect().top
  >= document.querySelector(".lesson .touch").getBoundingClientRect().bottom"""
"""Whether what a slide says of its change stands below picture and words."""


def test_a_slide_says_what_changed_in_its_picture_without_a_hand(open_lesson: Open) -> None:
    page = open_lesson("hardness", "?present=1")
    now = page.locator(".slide-now")
    expect(now).to_be_hidden()
    page.keyboard.press("1")
    expect(now).to_have_text("Now shown: Epochs of training 0 → 1")
    page.keyboard.press("ArrowRight")
    expect(now).to_have_text("Now shown: Epochs of training 1 → 0")
    page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    expect(now).to_have_text("Now shown: Epochs of training 1 → 0")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(now).to_be_hidden()  # the same picture
    page = open_lesson("triplets", "?present=1")
    page.evaluate(TURN, "fails")
    expect(page.locator(".slide-now")).to_contain_text("Now shown: loss ")
    page = open_lesson("maps", "?present=1")
    page.keyboard.press("1")
    now = page.locator(".slide-now")
    for width, height in ((1400, 900), (1024, 768)):
        page.set_viewport_size({"width": width, "height": height})
        expect(now).to_have_text("Now shown: perplexity 30 → 2")
        page.wait_for_function(BELOW)  # it covers neither picture nor words


def test_a_question_without_an_answer_is_not_answered_by_the_next_slides(open_lesson: Open) -> None:
    for name in ("hardness", "epsilon", "maps"):
        page = open_lesson(name, "?present=1")
        start = page.evaluate(STATE)
        count = page.evaluate("lesson.presentation.slides.findIndex(({ kind }) => kind === 'fails')")
        for at in range(count):
            page.evaluate("at => lesson.presentation.turn(at - lesson.presentation.slide)", at)
            assert page.evaluate(STATE) == start, (name, at)
        page.keyboard.press("Home")
        page.keyboard.press("1")
        page.evaluate("at => lesson.presentation.turn(at - lesson.presentation.slide)", count - 1)
        assert page.evaluate(STATE) != start, name


def test_numbers_that_grow_stay_on_the_slide_and_two_maps_stand_below_the_bars(open_lesson: Open) -> None:
    page = open_lesson("hardness", "?present=1")
    page.evaluate(TURN, "do")
    expect(page.locator(".stage canvas:visible")).to_have_count(2)
    page.keyboard.press("+")
    expect(page.locator(".readout")).to_contain_text("52.5 ± 3.2")
    assert page.evaluate("""() => {
        const { bottom } = document.querySelector(".readout").getBoundingClientRect();
        return bottom <= document.querySelector(".hint").getBoundingClientRect().top + 6;
    }""")


def test_a_notice_names_a_figure_of_its_own_slide(open_lesson: Open) -> None:
    """The live t-SNE shows no perplexity of the stored maps, and the next slide tells nothing of its changes."""
    page = open_lesson("maps", "?present=1")
    page.locator(".question:visible input").first.check()
    for kind in ("fails", "more", "check"):
        page.evaluate(TURN, kind)
        now = page.locator(".slide-now")
        if kind == "more":
            expect(now).to_be_hidden()
            page.evaluate("lesson.change({ perplexity: 30 })")
            page.evaluate("lesson.presentation.announce({ ...lesson.state, perplexity: 20 })")
            expect(now).to_have_text("Now shown: Perplexity 20 → 30")
        else:
            assert page.evaluate("lesson.state.size") == 0
            expect(now).to_be_hidden()


CONCLUSIONS = {"maps": "So the 16 are chance, and perplexity 2 made the 73.",
               "hardness": "So most of the harm came from the labels."}


@pytest.mark.parametrize("name", CONCLUSIONS)
def test_a_failure_is_presented_with_its_conclusion(open_lesson: Open, name: str) -> None:
    page = open_lesson(name, "?present=1")
    page.evaluate(TURN, "fails")
    expect(page.locator(".step")).to_contain_text(CONCLUSIONS[name])


def test_the_class_learns_what_a_tight_group_is_before_groups_are_counted(open_lesson: Open) -> None:
    page = open_lesson("maps", "?present=1")
    texts = page.evaluate("lesson.presentation.slides.map(({ text }) => text)")
    meaning, count = (next(at for at, text in enumerate(texts) if words in text) for words in (
        "dark or ringed points form tight groups", "73 tight groups"))
    assert meaning < count


def test_no_line_of_a_slide_ends_inside_of_the_name_t_sne(open_lesson: Open) -> None:
    page = open_lesson("maps", "?present=1")
    for width in range(1000, 1400, 40):
        page.set_viewport_size({"width": width, "height": 720})
        assert page.evaluate("""() => {
            const walker = document.createTreeWalker(
                document.querySelector(".question:not(.away)"), NodeFilter.SHOW_TEXT);
            while (walker.nextNode()) {
                const { data } = walker.currentNode;
                const start = data.search(/t-.?SNE/u);
                if (start < 0) continue;
                const range = document.createRange();
                range.setStart(walker.currentNode, start);
                range.setEnd(walker.currentNode, data.indexOf("SNE", start) + 3);
                return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
            }
            return 0;
        }""") == 1, width


LATER_SLIDES_NEED = {"epsilon": "High purity alone is not a success", "collapse": "its loss rises without limit",
                     "better": "you choose the verdict"}
"""What the slide on failure must say, because the question or the takeaway after it rests on it."""


@pytest.mark.parametrize("name", LATER_SLIDES_NEED)
def test_the_slide_on_failure_says_what_later_slides_need(open_lesson: Open, name: str) -> None:
    slides = open_lesson(name, "?present=1").evaluate("lesson.presentation.slides")
    assert LATER_SLIDES_NEED[name] in next(slide["text"] for slide in reversed(slides) if slide["kind"] == "fails")


def test_the_slide_on_divergence_draws_the_loss_and_unanswered_slides_trained_maps(open_lesson: Open) -> None:
    page = open_lesson("collapse", "?present=1")
    turn = """kind => Object.assign(lesson.presentation, {
        slide: lesson.presentation.slides.findIndex((slide) => slide.kind === kind) }).show()"""
    page.evaluate(turn, "see")
    assert page.evaluate("lesson.numbers.number") == 20, "the start has two equal maps"
    page.evaluate(turn, "fails")
    expect(page.locator(".stage [data-part=loss] svg")).to_be_visible()


def test_no_slide_reads_a_number_of_clusters_that_it_does_not_show(open_lesson: Open) -> None:
    page = open_lesson("measures", "?present=1")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".readout")).to_contain_text("MAP@R")
    expect(page.locator(".readout")).not_to_contain_text("NMI")
    page.keyboard.press("Escape")
    page.click(".skip")
    expect(page.locator(".readout")).to_contain_text("NMI")
