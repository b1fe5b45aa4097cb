"""The lesson on maps against the library's measures of maps."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist, squareform

from experiments.lessons.maps import (
    NEIGHBORS,
    PERPLEXITIES,
    UMAP_NEIGHBORS,
    digits_pixels,
    quality,
    random_pixels,
    vectors,
)
from udml_core.exploration.map_values import neighbors_kept
from udml_core.numerics.evaluation import trustworthiness
from udml_core.numerics.neighbors import nearest
from udml_core.results.lessons import FOLDER

pytestmark = pytest.mark.browser

SETTINGS = [("tsne", size) for size in PERPLEXITIES] + [("umap", size) for size in UMAP_NEIGHBORS]
PIXELS = {"digits": digits_pixels, "noise": random_pixels}


STORED = json.loads((FOLDER / "maps.json").read_text(encoding="utf-8"))


def stored_array(content: dict[str, Any]) -> Any:
    """Return an array of the data file."""
    return np.frombuffer(base64.b64decode(content["base64"]), content["dtype"]).reshape(content["shape"])


def stored_positions(points: str, key: str) -> Any:
    """Return a stored map's positions (600, 2)."""
    return stored_array(STORED[points]["maps"][key]["positions"])


@pytest.mark.parametrize("points", PIXELS)
def test_the_stored_measures_and_pixels_are_the_library_s(points: str) -> None:
    pixels = PIXELS[points]()
    assert np.array_equal(stored_array(STORED[points]["pixels"]), pixels)
    for method, size in SETTINGS:
        expected = quality(vectors(pixels), stored_positions(points, f"{method}{size}"))
        stored = STORED[points]["maps"][f"{method}{size}"]
        assert {name: stored[name] for name in expected} == pytest.approx(expected, abs=2e-4)
        assert expected["kept"] < 1 / 3 if points == "noise" else expected["kept"] > 1 / 2


@pytest.mark.parametrize("points", PIXELS)
@pytest.mark.parametrize("size", [0, 3])
def test_the_numbers_of_an_image_are_the_library_s(open_lesson: Callable[..., Page], points: str, size: int) -> None:
    page = open_lesson("maps")
    space = vectors(PIXELS[points]())
    one_rank = 2 / (NEIGHBORS * (2 * len(space) - 3 * NEIGHBORS - 1))
    for method, sizes in (("tsne", PERPLEXITIES), ("umap", UMAP_NEIGHBORS)):
        positions = stored_positions(points, f"{method}{sizes[size]}")
        true, on_map = nearest(space, NEIGHBORS)[1], nearest(positions, NEIGHBORS)[1]
        kept, trust = neighbors_kept(true, on_map), trustworthiness(space, positions, NEIGHBORS)
        shown = page.evaluate("""([points, method, size]) => Array.from({ length: 12 }, (_empty, at) =>
            lesson.lesson.compute({ points, method, size, image: 50 * at }, lesson.data))""", [points, method, size])
        for numbers in shown:
            row = numbers["row"]
            assert set(numbers["neighbors"]) == set(true[row].tolist())
            assert set(numbers["onMap"]) == set(on_map[row].tolist())
            assert numbers["keptHere"] / NEIGHBORS == pytest.approx(kept[row])
            # In float32, distances that are equal in truth differ by 1e-9: each side may rank one such pair its way.
            assert numbers["trustHere"] == pytest.approx(trust[row], abs=1.1 * one_rank)


def test_every_image_is_chosen_without_a_mouse(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("maps", "?points=digits")
    page.click(".skip")
    page.get_by_role("button", name="Image that lost the most neighbors").press("Enter")
    row, kept = page.evaluate("[lesson.numbers.row, lesson.numbers.keptHere]")
    positions = stored_positions("digits", "tsne30")
    shares = neighbors_kept(nearest(vectors(digits_pixels()), NEIGHBORS)[1], nearest(positions, NEIGHBORS)[1])
    assert kept == round(NEIGHBORS * shares.min()) == round(NEIGHBORS * shares[row])
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("lesson.numbers.row") == row + 1


@pytest.mark.parametrize("choice", [0, 1])
def test_the_maps_wait_for_the_prediction_and_then_show_its_case(open_lesson: Callable[..., Page], choice: int) -> None:
    page = open_lesson("maps")
    assert page.evaluate("[lesson.state.points, lesson.numbers.value]") == ["noise", 30]
    expect(page.get_by_role("button", name="perplexity 2: 73 tight groups", exact=True)).to_be_hidden()
    page.locator(".question input").nth(choice).check()
    assert page.evaluate("[lesson.state.points, lesson.numbers.value]") == ["noise", 2]
    expect(page.get_by_role("button", name="perplexity 2: 73 tight groups", exact=True)).to_be_visible()
    expect(page.get_by_text("Terms of this lesson")).to_contain_text(
        "continuity, perplexity, t-SNE, trustworthiness, UMAP")


def test_the_chance_beside_the_numbers_is_a_random_map_s(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("maps")
    chance = page.evaluate("lesson.lesson.chanceOf(600)")
    space = vectors(PIXELS["noise"]())
    places = np.random.default_rng(0).normal(size=(600, 2)).astype(np.float32)
    kept = neighbors_kept(nearest(space, NEIGHBORS)[1], nearest(places, NEIGHBORS)[1]).mean()
    assert chance["kept"] == pytest.approx(10 / 599)
    assert chance["kept"] == pytest.approx(kept, abs=0.005)
    assert chance["trusted"] == pytest.approx(trustworthiness(space, places, NEIGHBORS).mean(), abs=0.01)
    page.click(".skip")
    expect(page.locator(".readout")).to_contain_text("kept, all (chance 1.7\N{NO-BREAK SPACE}%")
    expect(page.locator(".readout")).to_contain_text("trustworthiness, all (chance 50\N{NO-BREAK SPACE}%")


def test_tight_groups_are_scipy_s_components(compute: Callable[..., Any]) -> None:
    counts = {}
    for method, sizes in (("tsne", PERPLEXITIES), ("umap", UMAP_NEIGHBORS)):
        for at, size in enumerate(sizes):
            positions = stored_positions("noise", f"{method}{size}").astype(np.float64)
            gap = np.sqrt(2 * np.pi / len(positions) * positions.var(axis=0).sum())
            _, names = connected_components(squareform(pdist(positions)) < 0.35 * gap)
            counts[method, size] = int((np.bincount(names) >= 3).sum())
            shown = compute("maps", {"points": "noise", "method": method, "size": at}, "n => n.groups.count")
            assert shown == counts[method, size]
    assert [counts["tsne", size] for size in PERPLEXITIES] == [73, 24, 4, 16]  # what "When it fails" says
    shares = {points: [compute("maps", {"points": points, "method": method, "size": at}, "n => n.kept")
                       for method in ("tsne", "umap") for at in range(4)] for points in PIXELS}
    assert max(shares["noise"]) < 0.25
    assert min(shares["digits"]) > 0.5
    assert compute("maps", {"points": "digits"}, "n => n.groups") is None


PIXELS_OF = """color => {
    const canvas = document.querySelector("canvas.cloud");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const probe = document.createElement("canvas").getContext("2d");
    probe.fillStyle = color;
    probe.fillRect(0, 0, 1, 1);
    const wanted = probe.getImageData(0, 0, 1, 1).data;
    let count = 0;
    for (let at = 0; at < data.length; at += 4) count += [0, 1, 2].every((part) => data[at + part] === wanted[part]);
    return count / (canvas.width / canvas.clientWidth) ** 2;
}"""


@pytest.mark.parametrize("query", ["", "?present=1"])
def test_no_point_hides_the_chosen_image(open_lesson: Callable[..., Page], query: str) -> None:
    page = open_lesson("maps", query)
    if query:
        page.keyboard.press("ArrowRight")
    else:
        page.click(".skip")
    page.evaluate("lesson.change({ points: 'digits', size: 0 })")
    page.evaluate("""() => { // an image with a true neighbor at nearly its place
        const gap = (image) => {
            const { positions, neighbors } = lesson.lesson.compute({ ...lesson.state, image }, lesson.data);
            return Math.min(...neighbors.map((row) => Math.hypot(positions[2 * row] - positions[2 * image],
                positions[2 * row + 1] - positions[2 * image + 1])));
        };
        const images = Array.from({ length: 60 }, (_empty, row) => row).sort((one, other) => gap(one) - gap(other));
        lesson.change({ image: images[0] });
    }""")
    whole = np.pi * 8**2
    assert page.evaluate(PIXELS_OF, "#e69f00") > 0.4 * whole


def test_the_points_and_their_map_have_a_frame_each(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("maps")
    page.click(".skip")
    for canvas in page.locator(".second canvas").all():
        assert canvas.evaluate("part => getComputedStyle(part).borderTopWidth") == "1px"
    expect(page.locator(".second .do")).to_contain_text("can bend groups into rings")


def test_digits_on_the_map_have_a_legend_of_their_colors(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("maps")
    page.get_by_role("button", name="Skip the question").click()
    legend = page.locator(".class-legend")
    expect(legend).to_be_hidden()
    page.get_by_role("button", name="600 digits").click()
    expect(legend).to_have_text("Colors: digit 0 1 2 3 4 5 6 7 8 9")
    colors = legend.locator("b").evaluate_all("names => names.map((name) => getComputedStyle(name).color)")
    assert len(set(colors)) == 10


def test_small_maps_name_their_counts_of_groups(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("maps")
    page.locator(".question input").first.check()
    counts = page.evaluate("""() => [0, 1, 2, 3].map((size) => lesson.lesson.compute(
        { ...lesson.state, size }, lesson.data).groups.count)""")
    captions = page.locator("[data-part=small] button span")
    expect(captions).to_have_text([f"{size}: {count}" for size, count in zip(PERPLEXITIES, counts, strict=True)])
    expect(page.locator("[data-part=small] > b")).to_have_text("perplexity: tight groups")
    page.get_by_role("button", name="600 digits").click()
    expect(captions).to_have_text([str(size) for size in PERPLEXITIES])  # digits have no tight groups


def test_the_slide_of_the_question_shows_groups_and_no_chosen_image(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("maps", "?present=1")
    text = "getComputedStyle(document.querySelector('.stage')).color"
    for answers in (0, 1):
        if answers:
            page.keyboard.press("1")
        assert (page.evaluate(PIXELS_OF, page.evaluate(text)) > 0) == bool(answers)  # rings only after the answer
        expect(page.locator(".stage b").first).to_have_text(f"t-SNE · perplexity {2 if answers else 30}")
        assert [page.evaluate(PIXELS_OF, color) for color in ("#e69f00", "#0072b2", "#d55e00")] == [0, 0, 0]
    page.keyboard.press("ArrowRight")
    for color in ("#e69f00", "#0072b2", "#d55e00"):
        assert page.evaluate(PIXELS_OF, color) > 20, color


def test_scattered_points_form_as_many_tight_groups_as_the_lesson_says(open_lesson: Callable[..., Page]) -> None:
    """Why perplexity 100 shows more groups than 30: as many as chance, and 30 shows fewer."""
    random = np.random.default_rng(0)
    counts = []
    for _ in range(200):
        radius, angle = np.sqrt(random.random(600)), 2 * np.pi * random.random(600)
        points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        reach = 0.35 * np.sqrt(2 * np.pi / 600 * ((points - points.mean(0)) ** 2).sum() / 600)
        pairs = cKDTree(points).query_pairs(reach, output_type="ndarray")
        graph = coo_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(600, 600))
        counts.append(int((np.bincount(connected_components(graph, directed=False)[1]) >= 3).sum()))
    low, high = np.quantile(counts, [0.025, 0.975])
    shown = open_lesson("maps")
    fails = shown.evaluate("lesson.lesson.fails")
    said = re.search(r"form about (\d+) such groups, mostly (\d+) to (\d+)", fails)
    assert said
    assert float(np.mean(counts)) == pytest.approx(int(said[1]), abs=0.6)
    assert (low, high) == (pytest.approx(int(said[2]), abs=1), pytest.approx(int(said[3]), abs=1))
    found = shown.evaluate("""() => [0, 1, 2, 3].map((size) => lesson.lesson.compute(
        { points: "noise", method: "tsne", size, image: 0 }, lesson.data).groups.count)""")
    assert found[0] > high
    assert low <= found[3] <= high
    assert found[2] < low
    expect(shown.locator(".readout")).to_contain_text(f"by chance {said[1]}")


def test_no_picture_stands_alone_in_a_second_row(open_lesson: Callable[..., Page]) -> None:
    rows = """() => [...document.querySelectorAll("[data-part=pictures] .tile")].reduce((counts, { offsetTop }) =>
        counts.set(offsetTop, (counts.get(offsetTop) ?? 0) + 1), new Map()).values().toArray()"""
    page = open_lesson("maps")
    page.get_by_role("button", name="Skip the question").click()
    seen = set()
    for width, height in ((390, 844), (820, 900), (1280, 720), (1400, 900)):
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("lesson.drawStage()")
        counts = page.evaluate(rows)
        assert sum(counts) == 11
        assert max(counts) - min(counts) <= 1, (width, counts)
        seen.add(len(counts))
    assert len(seen) > 1, "no width needed a second row"


def test_kept_neighbors_under_the_star_are_counted_beside_it(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("maps")
    page.evaluate("""() => {
        const { fillText } = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.fillText = function (words, ...rest) {
            (window.written ??= []).push([words, this.measureText(words).width, this.textAlign, ...rest]);
            return fillText.call(this, words, ...rest);
        };
    }""")
    page.get_by_role("button", name="Skip the question").click()
    for size in range(4):
        page.evaluate("size => { window.written = []; lesson.change({ size }); }", size)
        notes = [note for note in page.evaluate("window.written") if "under" in note[0]]
        kept, below = page.evaluate("""() => {
            const { positions, neighbors, isKept, row } = lesson.numbers;
            const reach = Math.max(...positions) - Math.min(...positions);
            const away = (other, axis) => positions[2 * other + axis] - positions[2 * row + axis];
            const near = neighbors.filter((other, at) => isKept[at]
                && Math.hypot(away(other, 0), away(other, 1)) < 0.03 * reach);
            return [lesson.numbers.keptHere, near.length];
        }""")
        assert below <= kept
        assert [note[0] for note in notes] == ([f"✓ {below} under ★"] if below else []), size
        for _words, wide, align, x, _y in notes:
            left = x - {"left": 0, "center": wide / 2, "right": wide}[align]
            assert left >= 0, size
            assert left + wide <= page.evaluate("document.querySelector('.stage canvas.cloud').clientWidth"), size


def test_the_live_map_has_one_letter_for_each_group_and_cuts_none(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("maps")
    page.get_by_role("button", name="Skip the question").click()
    page.evaluate("""() => {
        const { fillText, arc } = CanvasRenderingContext2D.prototype;
        const { stage } = lesson;
        const keep = (canvas, name, value) => { if (!stage.contains(canvas)) (canvas[name] ??= []).push(value); };
        CanvasRenderingContext2D.prototype.fillText = function (words, x, y) {
            keep(this.canvas, "letters", [words, x, y, parseFloat(this.font.match(/[\\d.]+px/)[0]) / 2]);
            return fillText.call(this, words, x, y);
        };
        CanvasRenderingContext2D.prototype.arc = function (x, y, radius, ...rest) {
            keep(this.canvas, "points", ["", x, y, radius]);
            return arc.call(this, x, y, radius, ...rest);
        };
        for (const canvas of document.querySelectorAll(".second canvas")) canvas.letters = canvas.points = null;
        lesson.change({ perplexity: 21 });
    }""")
    expect(page.locator(".second p")).to_contain_text("Step 500", timeout=30_000)
    drawn = page.evaluate("""() => [...document.querySelectorAll(".second canvas")].map(({ letters, points, clientWidth,
        clientHeight }) => [letters, points, clientWidth, clientHeight])""")
    assert len(drawn) == 3
    for letters, points, wide, high in drawn:
        assert "".join(letter[0] for letter in letters[-3:]) == "ABC"
        assert len(letters) % 3 == 0
        assert len(points) >= 30  # group A has disks
        for _words, x, y, half in (*letters, *points):
            assert half - 0.5 <= x <= wide - half + 0.5
            assert half - 0.5 <= y <= high - half + 0.5


def test_the_first_image_has_kept_neighbors_beside_it_and_a_note_covers_none(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("maps")
    page.evaluate("""() => {
        const { fillText } = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.fillText = function (words, x, y) {
            if (words.includes("under")) window.note = [x, y, this.measureText(words).width / 2];
            return fillText.call(this, words, x, y);
        };
    }""")
    page.get_by_role("button", name="Skip the question").click()
    for size in (0, 2):
        page.evaluate("size => { window.note = null; lesson.change({ size }); }", size)
        seen = page.evaluate("""() => {
            const { positions, neighbors, isKept, row } = lesson.numbers;
            const canvas = document.querySelector("canvas.cloud");
            const axis = (at) => Array.from(positions).filter((_value, index) => index % 2 === at);
            const [xs, ys] = [axis(0), axis(1)];
            const [wide, high] = [xs, ys].map((values) => Math.max(...values) - Math.min(...values));
            const around = 28;
            const unit = Math.min((canvas.clientWidth - around) / wide, (canvas.clientHeight - around) / high);
            const place = (other) => [canvas.clientWidth / 2 + unit * (xs[other] - Math.min(...xs) - wide / 2),
                canvas.clientHeight / 2 - unit * (ys[other] - Math.min(...ys) - high / 2)];
            const away = (other) => Math.hypot(...place(other).map((part, at) => part - place(row)[at]));
            const covered = neighbors.filter((other) => window.note && Math.abs(place(other)[0] - window.note[0])
                < window.note[2] && Math.abs(place(other)[1] - window.note[1]) < 7);
            return [neighbors.filter((other, at) => isKept[at] && away(other) > 9).length, covered.length];
        }""")
        assert seen[0] >= 2, size
        assert seen[1] == 0, size


def test_a_slide_keeps_the_numbers_of_small_maps_within_their_buttons(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("maps", "?present=1")
    for width, height in ((1024, 768), (1280, 720)):
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("Object.assign(lesson.presentation, { slide: 1 }).show()")
        over = page.evaluate("""() => [...document.querySelectorAll("[data-part=small] button")].map((button) => {
            const range = document.createRange();
            range.selectNodeContents(button.querySelector("span"));
            return range.getBoundingClientRect().right - button.getBoundingClientRect().right;
        })""")
        assert len(over) == 4
        assert max(over) <= 0, (width, over)
