"""The lesson on easy, semi-hard and hard triplets against the library's triplet loss and Recall@1."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect
from scipy import stats
from torch import Tensor

from experiments.lessons.hardness import CLASSES, hardness, unit_pixels
from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.numerics.evaluation import recall_at_k
from udml_core.numerics.losses.angular import triplet_loss

pytestmark = pytest.mark.browser

MARGIN = 0.1
Open = Callable[..., Page]
SELECT = """n => ({differences: Array.from(n.differences), before: n.before.recall, spread: n.before.spread,
    results: Object.fromEntries(Object.entries(n.results).map(
        ([name, { projection, recall, spread, used, steps, wrong }]) =>
            [name, { projection: Array.from(projection), recall, spread, used, steps, wrong }]))})"""


class Made(NamedTuple):
    """The lesson's data, and each triplet's difference of squared distances before training."""

    points: Tensor
    data: dict[str, Array]
    triplets: Tensor
    differences: Tensor


@pytest.fixture(scope="module")
def made() -> Made:
    data = hardness()
    points = torch.from_numpy(unit_pixels(data["rows"]))
    triplets = torch.from_numpy(data["triplets"]).long()
    first = points @ torch.from_numpy(data["projection"]).double()
    anchor, positive, negative = (first[part] for part in triplets.T)
    return Made(points, data, triplets, (anchor - negative).square().sum(1) - (anchor - positive).square().sum(1))


def has_wrong_label(made: Made, triplets: Tensor) -> Array:
    """Return whether a triplet (t, 3) has an image whose label is wrong."""
    return np.asarray((made.data["labels"] != made.data["classes"])[triplets].any(axis=1))


def train(made: Made, low: float, high: float, epochs: int, is_right: bool = False) -> tuple[Tensor, Tensor]:
    """Train on the first 600 triplets of a range with the library's loss, and return the projection and triplets."""
    chosen = made.triplets[(made.differences > low) & (made.differences <= high)]
    chosen = chosen[~torch.from_numpy(has_wrong_label(made, chosen))][:600] if is_right else chosen[:600]
    return train_on(made, chosen, epochs)


def train_on(made: Made, chosen: Tensor, epochs: int) -> tuple[Tensor, Tensor]:
    """Train on triplets in their order, and return the projection and triplets."""
    projection = torch.from_numpy(made.data["projection"]).double().requires_grad_()
    for batch in list(chosen.split(50)) * epochs:
        embedding = made.points @ projection
        anchor, positive, negative = (embedding[part] for part in batch.T)
        loss = triplet_loss(anchor, positive, negative, MARGIN) / len(batch)
        (gradient,) = torch.autograd.grad(loss, projection)
        projection = (projection - gradient).detach().requires_grad_()
    return projection.detach(), chosen


def test_after_an_epoch_most_hard_triplets_are_hard_no_more(compute: Callable[..., Any], made: Made) -> None:
    """Why the spread of the map "Hard" rises again."""
    chosen = made.triplets[made.differences <= 0][:600]
    projection, _ = train(made, -np.inf, 0, 1)
    anchor, positive, negative = (made.points[part] @ projection for part in chosen.T)
    is_hard = (anchor - negative).square().sum(1) <= (anchor - positive).square().sum(1)
    assert (len(chosen), int(is_hard.sum())) == (600, 261)
    spreads = [compute("hardness", {"epochs": epochs}, SELECT)["results"]["hard"]["spread"] for epochs in range(5)]
    assert spreads[1] < spreads[2] < spreads[3] < spreads[4] < spreads[0]


@pytest.mark.parametrize(("epochs", "own", "labels"), [
    (0, [-0.9, -0.3], "all"), (1, [-0.21, 0.03], "right"), (3, [-0.4, -0.9], "all")])
def test_training_in_the_browser_takes_the_library_s_steps(compute: Callable[..., Any], made: Made, epochs: int,
                                                           own: list[float], labels: str) -> None:
    shown = compute("hardness", {"epochs": epochs, "range": own, "labels": labels}, SELECT)
    assert shown["differences"] == pytest.approx(made.differences.tolist())
    ranges = {"easy": (MARGIN, np.inf), "semi": (0, MARGIN), "hard": (-np.inf, 0), "own": (min(own), max(own))}
    for name, (low, high) in ranges.items():
        projection, chosen = train(made, low, high, epochs, labels == "right")
        result = shown["results"][name]
        assert result["used"] == len(chosen)
        assert result["steps"] == epochs * len(chosen.split(50))
        assert result["projection"] == pytest.approx(projection.flatten().tolist(), abs=1e-9)
        embedding = (made.points @ projection).numpy()
        assert result["recall"] == pytest.approx(recall_at_k(embedding, made.data["classes"], (1,))[1])
        assert result["spread"] == pytest.approx(np.sqrt(embedding.var(axis=0).sum()))
        assert result["wrong"] == pytest.approx(has_wrong_label(made, chosen).mean() if len(chosen) else 0)


def test_the_sentences_of_the_lesson_are_true(compute: Callable[..., Any]) -> None:
    for epochs in (1, 2, 3, 4):
        shown = compute("hardness", {"epochs": epochs}, SELECT)
        results, before = shown["results"], shown["before"]
        assert results["easy"]["recall"] == before
        assert results["easy"]["spread"] == shown["spread"]
        assert results["semi"]["recall"] > before > results["hard"]["recall"]
        assert results["own"]["recall"] < before
        assert results["own"]["spread"] < 0.5 * shown["spread"]
        assert results["own"]["wrong"] == pytest.approx(0.957, abs=0.001)
        assert results["semi"]["wrong"] < 0.5
        right = compute("hardness", {"epochs": epochs, "labels": "right"}, SELECT)["results"]
        assert results["hard"]["recall"] < right["hard"]["recall"] < before
        equal = [(made["hard"]["used"], made["hard"]["steps"]) for made in (results, right)]
        assert equal == [(600, 12 * epochs)] * 2
        if epochs == 1:
            recalls = [right["hard"]["recall"], results["hard"]["recall"], before]
            assert [round(100 * recall) for recall in recalls] == [80, 69, 83]  # of the first seed
            assert (right["own"]["used"], right["own"]["steps"]) == (10, 1)  # the far left is not comparable


def test_hard_triplets_share_a_direction_that_shrinks_the_map(made: Made, open_lesson: Open) -> None:
    """One hard triplet pushes N away from A; the sum of many shrinks the map, and each loss at most to the margin."""
    hard = made.triplets[made.differences < 0]
    points = made.points @ torch.from_numpy(made.data["projection"]).double()
    ways = []
    for triplets in (hard[:1], hard[:600]):
        placed = points.clone().requires_grad_()
        triplet_loss(*(placed[part] for part in triplets.T), MARGIN).backward()
        assert placed.grad is not None
        anchor, _, negative = triplets[0]
        away = points[negative] - points[anchor]
        ways.append((float(-(placed.grad[negative] - placed.grad[anchor]) @ away), float((placed.grad * points).sum())))
    assert ways[0][0] > 0  # N moves away from A
    assert ways[1][1] > 0  # against the gradient, all points move together
    losses = [triplet_loss(*(factor * points[part] for part in hard[:600].T), MARGIN) / 600 for factor in (1, 0.5, 0)]
    assert losses[0] > losses[1] > losses[2]
    assert float(losses[2]) == pytest.approx(MARGIN)
    page = open_lesson("hardness")
    page.locator(".question input").first.check()
    expect(page.locator(".panel .because")).to_contain_text("but never below the margin")
    assert "falls fastest" not in page.content()


INTERVALS = """n => ({ against: n.against, results: Object.fromEntries(Object.entries(n.results).map(
    ([name, { recalls, draws, mean, reach }]) => [name, { recalls, draws, mean, reach }])) })"""


def test_each_seed_draws_triplets_and_their_order(compute: Callable[..., Any], made: Made) -> None:
    shown = compute("hardness", {"epochs": 1}, INTERVALS)["results"]
    for name, (low, high) in {"semi": (0, MARGIN), "hard": (-np.inf, 0)}.items():
        eligible = np.flatnonzero(((made.differences > low) & (made.differences <= high)).numpy())
        draws = shown[name]["draws"]
        assert len(draws) == len({tuple(draw) for draw in draws}) == 5
        for draw, recall in zip(draws, shown[name]["recalls"], strict=True):
            assert len(draw) == len(set(draw)) == 600
            assert set(draw) <= set(eligible)
            projection, _ = train_on(made, made.triplets[draw], 1)
            embedding = (made.points @ projection).numpy()
            assert recall == pytest.approx(recall_at_k(embedding, made.data["classes"], (1,))[1])


def test_means_have_student_s_interval_and_a_difference_welch_s(compute: Callable[..., Any]) -> None:
    for state in ({"epochs": 1}, {"epochs": 4, "labels": "right", "range": [-0.9, 0.1]}):
        shown = compute("hardness", state, INTERVALS)
        own, semi = (np.array(shown["results"][name]["recalls"]) for name in ("own", "semi"))
        for name, values in (("own", own), ("semi", semi)):
            known = stats.t.interval(0.95, 4, values.mean(), stats.sem(values))
            middle, reach = shown["results"][name]["mean"], shown["results"][name]["reach"]
            assert (middle - reach, middle + reach) == pytest.approx(known, rel=1e-3)
        welch = stats.ttest_ind(own, semi, equal_var=False)
        low, high = welch.confidence_interval(0.95)
        against = shown["against"]
        assert (against["difference"] - against["reach"], against["difference"] + against["reach"]) == pytest.approx(
            (low, high), abs=2e-4)
        assert against["isReal"] == (welch.pvalue < 0.05)
    assert not against["isReal"]  # hard and semi-hard triplets with right labels


def test_what_the_text_says_of_seeds_is_what_they_give(compute: Callable[..., Any], open_lesson: Open) -> None:
    def interval(name: str, **state: Any) -> str:
        result = compute("hardness", state, INTERVALS)["results"][name]
        return f"{100 * result['mean']:.1f} ± {100 * result['reach']:.1f} %"

    page = open_lesson("hardness")
    fails = str(page.evaluate("lesson.lesson.fails + lesson.lesson.notes.stuck")).replace("\N{NO-BREAK SPACE}", " ")
    assert len(re.split(r"(?<=[.!?])\s+", page.evaluate("lesson.lesson.fails"))) <= 4
    shown = [interval("hard", epochs=1), interval("hard", epochs=1, labels="right"),
             *(interval(name, epochs=4, labels="right", range=[-0.9, 0.1]) for name in ("own", "semi"))]
    assert re.findall(r"[\d.]+ ± [\d.]+ %", fails) == shown
    page = open_lesson("hardness")
    page.click(".skip")
    expect(page.locator(".readout")).to_contain_text("are the same before training")
    page.evaluate("lesson.change({ epochs: 4, labels: 'right', range: [-0.9, 0.1] })")
    expect(page.locator(".readout")).to_contain_text("do not differ clearly")
    page.evaluate("lesson.change({ epochs: 1, labels: 'all', range: [-0.9, -0.3] })")
    expect(page.locator(".readout")).to_contain_text("semi-hard better by 35.4 ± 3.2 points (steps: 5 and 12)")


def test_who_does_what_the_lesson_says_reads_the_numbers_of_its_words(open_lesson: Open) -> None:
    """An answer trains the first epoch: a step that trains an epoch would lead a reader past what the words promise."""
    page = open_lesson("hardness")
    words = page.evaluate("[lesson.lesson.touch, lesson.lesson.fails]")
    epochs = [re.match(r"(?:Set the epochs to|Begin at) (\d)(?: epoch)?: ", text) for text in words]
    promised = re.findall(r"[\d.]+ ± [\d.]+", words[1])
    assert len(promised) == 2
    page.get_by_text("It gets worse").first.click()
    for found in epochs:
        assert found
        page.get_by_role("slider", name="Epochs of training").fill(found[1])
        assert page.evaluate("lesson.state.epochs") == int(found[1])
    hard = page.locator(".trained").filter(has_text=re.compile("^Hard"))
    expect(hard).to_contain_text(promised[0])
    page.get_by_role("button", name="Only those with right labels").click()
    expect(hard).to_contain_text(promised[1])
    expect(page.get_by_role("button", name="Train one more epoch")).to_be_visible()


def test_no_interval_looks_more_certain_than_it_is(open_lesson: Open) -> None:
    page = open_lesson("hardness")
    page.click(".skip")
    page.evaluate("lesson.change({ epochs: 0 })")
    shown = [page.locator(".readout").inner_text(), *page.locator(".trained .numbers").all_inner_texts()]
    assert "83.3\N{NO-BREAK SPACE}%" in shown[0]
    assert not [words for words in shown if "±" in words or "→" in words]
    page.evaluate("lesson.change({ epochs: 1, labels: 'right' })")
    ten = "70.7\N{NO-BREAK SPACE}% (10 triplets)"  # each seed takes the same triplets in one step
    expect(page.locator(".readout")).to_contain_text(f"83.3 → {ten}")
    expect(page.locator(".trained .numbers").last).to_contain_text(ten)
    expect(page.locator(".trained .numbers").nth(2)).to_contain_text("79.6 ± 1.4")


def test_a_small_screen_presents_spread_and_steps(open_lesson: Open) -> None:
    page = open_lesson("hardness", "?present=1")
    page.set_viewport_size({"width": 1024, "height": 768})
    page.evaluate("lesson.change({ epochs: 1 })")
    page.evaluate("""() => {
        const { presentation } = lesson;
        presentation.answers = { before: 0 };
        presentation.slide = presentation.slides.findLastIndex(({ kind }) => kind === "see");
        presentation.show();
    }""")
    for words in page.locator(".trained .numbers").all_inner_texts():
        assert re.fullmatch(r"R@1 \d\d(\.\d)?(\s?±\s?\d(\.\d)?)?\s%\nspread ×\s\d\.\d\d\nsteps: \d+", words), words
    assert [words[-1] for words in page.locator(".trained > b").all_inner_texts()] == ["=", "▲", "▼", "▼"]


@pytest.mark.parametrize("language", ["en", "de", "es"])
def test_the_maps_of_a_slide_stand_in_line_and_their_numbers_have_words(open_lesson: Open, language: str) -> None:
    page = open_lesson("hardness", f"?present=1&language={language}")
    for width, height in ((1024, 768), (1280, 720), (1920, 1080)):
        page.set_viewport_size({"width": width, "height": height})
        for kind in ("do", "see", "fails"):
            page.evaluate("""kind => {
                const { presentation } = lesson;
                presentation.slide = presentation.slides.findLastIndex((slide) => slide.kind === kind);
                presentation.show();
            }""", kind)
            boxes = [canvas.bounding_box() for canvas in page.locator(".trained canvas:visible").all()]
            lefts = {round(box["x"]) for box in boxes if box}
            for left in lefts:  # the rows below one another
                assert len(lefts) * sum(round(box["x"]) == left for box in boxes if box) == len(boxes)
            tops = sorted(round(box["y"]) for box in boxes if box)
            assert len(set(tops)) == len(boxes) // len(lefts), (width, kind, tops)
            assert len({round(box["width"]) for box in boxes if box}) == 1, (width, kind)
            if kind == "do":  # the numbers of the axis of counts stand left of the high bars
                top = page.locator(".plane text", has_text="1").first.bounding_box()
                bars = [bar.bounding_box() for bar in page.locator(".plane rect").all()]
                highest = min(box["x"] for box in bars if box and box["height"] > 0.5 * max(
                    other["height"] for other in bars if other))
                assert top
                assert top["x"] + top["width"] <= highest, (width, top)
            for words in page.locator(".trained .numbers:visible").all_inner_texts():
                assert all(re.match(r"[^\W\d]{3}|R@1", line) for line in words.splitlines()), words


def test_the_slide_of_the_failure_shows_the_maps_and_numbers_of_its_words(open_lesson: Open) -> None:
    page = open_lesson("hardness", "?present=1")
    page.evaluate("lesson.presentation.turn(lesson.presentation.slides.findIndex(({ kind }) => kind === 'fails'))")
    assert [name.split("\N{NO-BREAK SPACE}")[0] for name in page.locator(".trained:visible > b").all_inner_texts()] == [
        "Easy", "Hard"]
    expect(page.locator(".readout dd").first).to_have_text("83.3 → 71.8 ± 3.1\N{NO-BREAK SPACE}%")
    page.get_by_role("button", name="Only those with right labels").click()
    expect(page.locator(".readout dd").first).to_have_text("83.3 → 79.6 ± 1.4\N{NO-BREAK SPACE}%")
    page.evaluate("lesson.presentation.turn(-1)")
    page.evaluate("lesson.presentation.turn(1)")
    expect(page.locator(".slide-now")).to_contain_text("Your range −0.9 … −0.3 → −2.0 … 0.0")


def test_a_class_reads_what_r1_means_beside_the_first_r1(open_lesson: Open) -> None:
    page = open_lesson("hardness", "?present=1")
    numbers = page.locator(".trained .numbers:visible")
    meaning = page.locator(".stage").get_by_text("R@1: the nearest image is the same digit")
    expect(numbers).to_have_count(0)  # they are the same of all maps
    expect(meaning).to_be_hidden()
    page.keyboard.press("1")
    expect(numbers).to_have_count(4)
    expect(meaning).to_be_visible()
    for slide in range(page.evaluate("lesson.presentation.slides.length")):
        page.evaluate("slide => Object.assign(lesson.presentation, { slide }).show()", slide)
        if slide < 3:
            expect(page.locator(".trained .numbers", has_text="spread").locator("visible=true")).to_have_count(0)
        elif page.locator(".trained:visible").count():
            expect(numbers.first).to_contain_text("spread")
    expect(page.locator(".stage").get_by_text("R@1: the nearest image")).to_be_hidden()


def test_the_axis_of_the_histogram_has_numbers(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("hardness")
    letters = page.locator(".plane text").all_text_contents()
    assert {"−0.9", "−0.3", "0.0", "1.2"} <= set(letters)
    assert {"500", "1,000 triplets"} <= set(letters)
    page.click(".skip")
    page.evaluate("lesson.change({ epochs: 1, labels: 'right' })")
    shown = page.locator(".stage").inner_text()
    assert "triplets: 10\nsteps: 1" in shown
    assert "triplets: 600\nsteps: 12" in shown


def test_maps_have_a_legend_and_rings_for_wrong_labels_and_handles_cover_no_bar(open_lesson: Open) -> None:
    page = open_lesson("hardness")
    page.get_by_role("button", name="Skip the question").click()
    words = " ".join(page.locator(".class-legend").inner_text().split())
    assert words == "Maps: true digit 0 1 2 3 4 6 ○ wrong label"
    lowest = """Math.max(...[...document.querySelectorAll('.plane rect')].map((bar) =>
        bar.getBoundingClientRect().bottom))"""
    highest = """Math.min(...[...document.querySelectorAll('.handle circle + circle')].map((handle) =>
        handle.getBoundingClientRect().top))"""
    assert page.evaluate(f"{highest} - {lowest}") >= -1
    rings = page.evaluate("""() => {
        const { arc } = CanvasRenderingContext2D.prototype;
        let count = 0;
        CanvasRenderingContext2D.prototype.arc = function (...rest) { count += 1; return arc.apply(this, rest); };
        lesson.drawStage();
        return count;
    }""")
    wrong = page.evaluate("""(({ labels, classes }) => labels.filter((label, at) => label !== classes[at]).length)(
        lesson.data.hardness)""")
    assert rings == 4 * wrong > 0
    page.evaluate("lesson.change({ epochs: 1 })")
    expect(page.locator(".readout")).to_contain_text("on training images")


def test_r1_on_new_images_is_the_library_s_and_stands_beside_that_on_training_images(
        open_lesson: Open, made: Made) -> None:
    page = open_lesson("hardness", "?epochs=1")
    digit_of = catalog.load("digits").labels
    rows = [row for digit in CLASSES for row in np.flatnonzero(digit_of == digit)
            if row not in set(made.data["rows"].tolist())]
    rows = [row for digit in CLASSES for row in [row for row in rows if digit_of[row] == digit][:50]]
    assert len(rows) == 300
    points, classes = torch.from_numpy(unit_pixels(np.array(rows))), digit_of[rows]
    for name, (low, high) in (("easy", (MARGIN, np.inf)), ("semi", (0, MARGIN)), ("hard", (-np.inf, 0))):
        projection, _ = train(made, low, high, 1)
        shown = page.evaluate("name => lesson.numbers.results[name].onNew.recalls[0]", name)
        expected = recall_at_k((points @ projection).numpy(), classes, (1,))[1]
        assert shown == pytest.approx(expected, abs=0.004), name  # equally near images
    page.click(".skip")
    for words in ("Your R@1 on training images", "Your R@1 on new images"):
        expect(page.locator(".readout")).to_contain_text(words)


def test_the_maps_of_the_failure_fill_their_frames(open_lesson: Open) -> None:
    page = open_lesson("hardness", "?present=1")
    page.set_viewport_size({"width": 1280, "height": 720})
    page.evaluate("""() => { const { presentation } = lesson;
        presentation.turn(presentation.slides.findIndex(({ kind }) => kind === "fails") - presentation.slide); }""")
    filled = page.evaluate("""() => {
        const [canvas] = [...document.querySelectorAll(".trained canvas")].filter(({ clientWidth }) => clientWidth);
        const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const drawn = [...Array(width * height).keys()].filter((at) => data[4 * at + 3]);
        const rows = drawn.map((at) => Math.floor(at / width));
        const columns = drawn.map((at) => at % width);
        const span = (values, side) => (values.reduce((one, other) => Math.max(one, other))
            - values.reduce((one, other) => Math.min(one, other))) / side;
        return [span(columns, width), span(rows, height)];
    }""")
    assert filled[0] > 0.8
    assert filled[1] > 0.6
