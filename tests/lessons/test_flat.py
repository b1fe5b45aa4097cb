"""The lesson on flats against the library's linear neighborhoods and PLM's similarity."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from udml_core.numerics.graph import linear_neighborhoods_at
from udml_core.numerics.losses.piecewise import cross_similarity, decay, split
from udml_core.numerics.neighbors import nearest

pytestmark = pytest.mark.browser

SAME = 0.04  # a point nearer than this is the center itself


@pytest.mark.parametrize("state", [
    {}, {"k": 24, "threshold": 0.3}, {"k": 9, "threshold": 0.99, "a": [-0.9, 0.5], "b": [0.6, 0.9], "turn": 35},
    {"k": 1, "b": [-0.2, 1.2]}])
def test_the_flats_and_similarities_of_the_lesson_are_the_library_s(compute: Callable[..., Any],
                                                                   state: dict[str, Any]) -> None:
    shown = compute("flat", state)
    start: dict[str, Any] = {"k": 12, "threshold": 0.9, "b": [0.2, 0.629], "turn": 0} | state
    points = torch.tensor(shown["points"], dtype=torch.float64)
    centers = torch.tensor([shown["center"], shown["second"]], dtype=torch.float64)
    assert shown["center"] in shown["points"]
    assert shown["second"] == start["b"]
    distances = torch.cdist(centers, points, compute_mode="donot_use_mm_for_euclid_dist")
    candidates = distances.masked_fill(distances <= SAME, torch.inf).argsort(dim=1)[:, :start["k"]]
    hoods = linear_neighborhoods_at(centers, points, candidates, 1, start["threshold"])
    assert [tested["row"] for tested in shown["tested"]] == candidates[0].tolist()
    assert [tested["isMember"] for tested in shown["tested"]] == hoods.members[0].tolist()
    assert [tested["worst"] for tested in shown["tested"]] == pytest.approx(hoods.worst[0].tolist())
    bases = hoods.basis[:, :, 0].numpy()
    for direction, basis in zip((shown["fitted"], shown["other"]), bases, strict=True):
        assert abs(np.dot(direction, basis)) == pytest.approx(1)
    turn = np.radians(start["turn"])
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    turned = torch.tensor(rotation @ np.array(shown["fitted"]))[:, None]
    basis = torch.stack([turned, hoods.basis[1]])
    across, along = split(centers, centers, basis)
    alpha, beta = decay(across, along)
    for name, (point, center) in {"fromA": (1, 0), "fromB": (0, 1)}.items():
        assert [shown[name][part] for part in ("across", "along", "alpha", "beta")] == pytest.approx(
            [float(part[point, center]) for part in (across, along, alpha, beta)], abs=1e-7)
    similar = cross_similarity(centers[1:], basis[1:], centers[:1], basis[:1])
    assert shown["similarity"] == pytest.approx(float(similar), abs=1e-7)
    within = [part["similarity"] for part in shown["ring"]
              if -1.2 <= part["place"][0] <= 1.2 and 0.05 <= part["place"][1] <= 1.3]
    assert shown["diamond"] == pytest.approx(max(within))
    assert shown["distance"] == pytest.approx(float(torch.dist(*centers)))
    members = points[candidates[0][hoods.members[0]]] - centers[0]
    assert shown["members"] == len(members)
    assert shown["strangers"] == int((candidates[0][hoods.members[0]] >= len(points) // 2).sum())
    assert shown["explained"] == pytest.approx(float((members @ turned).square().sum() / members.square().sum()))


def similarities(points: torch.Tensor, center: torch.Tensor, places: torch.Tensor, k: int,
                 threshold: float) -> torch.Tensor:
    """Return PLM's similarity of places to a center, each with the flat of its own neighbors."""
    ends = torch.cat([center[None], places])
    distances = torch.cdist(ends, points, compute_mode="donot_use_mm_for_euclid_dist")
    candidates = distances.masked_fill(distances <= SAME, torch.inf).argsort(dim=1)[:, :k]
    basis = linear_neighborhoods_at(ends, points, candidates, 1, threshold).basis
    return cross_similarity(places, basis[1:], center[None], basis[:1])[:, 0]


def test_the_answer_s_place_is_the_most_similar_of_the_whole_circle(open_lesson: Callable[..., Any]) -> None:
    page = open_lesson("flat")
    page.locator(".question input").first.check()
    shown = page.evaluate("lesson.numbers")
    points, center = (torch.tensor(shown[name], dtype=torch.float64) for name in ("points", "center"))
    angles = torch.arange(0, 2 * torch.pi, torch.pi / 720, dtype=torch.float64)
    places = center + shown["distance"] * torch.stack([angles.cos(), angles.sin()], dim=1)
    scanned = similarities(points, center, places, 12, 0.9)
    best = places[scanned.argmax()]
    assert torch.dist(best, torch.tensor(shown["second"], dtype=torch.float64)) < 0.02  # there stands B
    assert shown["similarity"] == pytest.approx(float(scanned.max()), abs=0.005)
    assert shown["diamond"] == pytest.approx(shown["similarity"], abs=0.002)
    readout = dict(zip(page.locator(".readout dt").all_inner_texts(), page.locator(".readout dd").all_inner_texts(),
                       strict=True))
    assert readout["similarity"] == readout["similarity at ◇"]
    fitted, other = (np.array(shown[name]) for name in ("fitted", "other"))
    assert abs(fitted @ other) > np.cos(np.radians(5))  # both flats run along A's curve
    step = np.subtract(shown["second"], shown["center"])
    assert abs(step @ fitted) > 0.999 * np.linalg.norm(step)  # the circle meets the green line
    drawn = page.evaluate("""() => {
        const [diamond, b] = [".plane path.later:last-of-type", ".handle[aria-label^='B']"].map((query) => {
            const { left, right, top, bottom } = [...document.querySelectorAll(query)].at(-1).getBoundingClientRect();
            return [(left + right) / 2, (top + bottom) / 2];
        });
        return Math.hypot(diamond[0] - b[0], diamond[1] - b[1]);
    }""")
    assert drawn < 5


@pytest.mark.parametrize("state", [{}, {"k": 24, "threshold": 0.3}, {"a": [-0.9, 0.5]}])
def test_the_ring_has_the_library_s_similarities(compute: Callable[..., Any], state: dict[str, Any]) -> None:
    shown = compute("flat", state)
    points, center = (torch.tensor(shown[name], dtype=torch.float64) for name in ("points", "center"))
    places = torch.tensor([place["place"] for place in shown["ring"]], dtype=torch.float64)
    assert torch.cdist(places, center[None]).numpy() == pytest.approx(shown["distance"])
    wanted = similarities(points, center, places, state.get("k", 12), state.get("threshold", 0.9))
    assert [place["similarity"] for place in shown["ring"]] == pytest.approx(wanted.tolist(), abs=1e-6)


SPOTS = """() => [...document.querySelectorAll(".plane text.later:not(.best, .meeting)")].map((text) => {
    const plane = document.querySelector(".plane");
    const box = text.getBoundingClientRect();
    const at = (x, y) => new DOMPoint(x, y).matrixTransform(plane.getScreenCTM().inverse());
    const middle = at((box.left + box.right) / 2, (box.top + box.bottom) / 2);
    return [text.textContent, middle.x, middle.y, box.left, box.top, box.right, box.bottom];
})"""
PLACES = """() => {
    const { ring, center, best } = lesson.numbers;
    const [left, top] = [...document.querySelectorAll(".handle")].filter((handle) => /^A,/.test(handle.ariaLabel))
        .map((handle) => handle.transform.baseVal[0].matrix).map(({ e, f }) => [e, f])[0];
    return [...ring, best].map(({ place, similarity }) => [Math.atan2(-(place[1] - center[1]), place[0] - center[0]),
        similarity, left, top]);
}"""


@pytest.mark.parametrize("state", [{}, {"k": 24, "threshold": 0.3}, {"b": [0.5, 1.1]}])
def test_numbers_beside_the_ring_order_its_places(open_lesson: Callable[..., Any], state: dict[str, Any]) -> None:
    page = open_lesson("flat")
    page.locator(".question input").first.check()
    page.evaluate("state => lesson.show(state)", {"b": [0.2, 0.629], **state})
    shown = page.evaluate(SPOTS)
    assert len(shown) >= 4
    assert len({words for words, *_ in shown}) >= 3
    places = page.evaluate(PLACES)
    for words, x, y, *_ in shown:  # the number of the place in whose direction it stands
        angle = np.arctan2(y - places[0][3], x - places[0][2])
        away = [abs((angle - other + np.pi) % (2 * np.pi) - np.pi) for other, *_ in places]
        near = [similarity for (_, similarity, *_), part in zip(places, away, strict=True) if part < 0.03]
        assert min(abs(float(words) - similarity) for similarity in near) < 0.0051, (words, near)
    handles = page.evaluate("""() => [...document.querySelectorAll(".handle circle + circle")].map((handle) => {
        const { left, top, right, bottom } = handle.getBoundingClientRect();
        return [left, top, right, bottom];
    })""")
    boxes = [box for *_, left, top, right, bottom in shown for box in [(left, top, right, bottom)]]
    for at, (left, top, right, bottom) in enumerate(boxes):
        for other in (*boxes[:at], *handles):
            assert right <= other[0] + 3 or other[2] <= left + 3 or bottom <= other[1] + 5 or other[3] <= top + 5


def test_both_meetings_with_the_green_line_have_numbers(open_lesson: Callable[..., Any]) -> None:
    page = open_lesson("flat")
    page.locator(".question input").first.check()
    words, x, ring, best = page.evaluate("""() => {
        const text = document.querySelector(".plane text.meeting");
        const { ring, best } = lesson.numbers;
        return [text.textContent, text.getBBox().x, [ring[0], ring[60]], best.place];
    }""")
    other = max(ring, key=lambda place: np.hypot(*np.subtract(place["place"], best)))
    assert words == f"{other['similarity']:.2f}"
    drawn = page.evaluate("[...document.querySelectorAll('.plane text.best')][0].getBBox().x")
    assert (x > drawn) == (other["place"][0] > best[0])


@pytest.mark.parametrize("b", [[0.2, 0.629], [-0.04, 0.957]])
def test_rims_mark_the_points_to_which_the_flat_of_b_is_fitted(open_lesson: Callable[..., Any], b: list[float]) -> None:
    page = open_lesson("flat")
    page.locator(".question input").first.check()
    page.evaluate("b => lesson.show({ b })", b)
    shown = page.evaluate("lesson.numbers")
    points = torch.tensor(shown["points"], dtype=torch.float64)
    center = torch.tensor([b], dtype=torch.float64)
    distances = torch.cdist(center, points, compute_mode="donot_use_mm_for_euclid_dist")
    candidates = distances.masked_fill(distances <= SAME, torch.inf).argsort(dim=1)[:, :12]
    members = candidates[0][linear_neighborhoods_at(center, points, candidates, 1, 0.9).members[0]]
    drawn = page.evaluate("""() => [...document.querySelectorAll(".plane circle.later")].map((rim) => [
        rim.cx.baseVal.value, rim.cy.baseVal.value])""")
    places = page.evaluate("""rows => {
        const { width, height } = document.querySelector(".plane").viewBox.baseVal;
        const unit = Math.min(width / 2.5, height / 1.3);
        return rows.map((row) => lesson.numbers.points[row]).map(([x, y]) => [width / 2 + unit * x,
            height / 2 - unit * (y - 0.67)]);
    }""", members.tolist())
    assert sorted(drawn) == [pytest.approx(place, abs=0.01) for place in sorted(places)]
    assert len(drawn) > 2


def test_away_from_both_curves_the_flat_of_b_can_point_at_a(compute: Callable[..., Any]) -> None:
    """Why B is more similar straight above A than on the slope beside it."""
    center = compute("flat", {})["center"]
    shown = {}
    for degrees in (60, 80):
        way = np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
        shown[degrees] = compute("flat", {"b": (center + 0.34 * way).tolist()})
    assert shown[80]["similarity"] > shown[60]["similarity"] + 0.05
    assert shown[80]["fromB"]["across"] < 0.1 < 0.3 < shown[80]["fromA"]["across"]
    assert len(shown[80]["rim"]) < 0.5 * len(compute("flat", {"b": center})["rim"])


def test_the_cosine_is_that_of_unit_vectors_at_this_distance(compute: Callable[..., Any]) -> None:
    shown = compute("flat", {})
    angle = 2 * np.arcsin(shown["distance"] / 2)
    rows = np.array([[1, 0], [np.cos(angle), np.sin(angle)]], dtype=np.float32)
    assert shown["cosine"] == pytest.approx(1 - float(nearest(rows, 1)[0][0, 0]) / 2, abs=1e-6)


def test_the_text_describes_the_pictures(open_lesson: Callable[..., Any]) -> None:
    page = open_lesson("flat")
    start, tilted = page.evaluate("""states => states.map((state) =>
        window.lesson.lesson.compute({...window.lesson.start, ...state}, window.lesson.data))""", [
        {}, {"k": 24, "threshold": 0.3}])
    assert start["diamond"] > start["similarity"]
    assert start["strangers"] == 0 < tilted["strangers"]
    assert abs(np.dot(start["fitted"], tilted["fitted"])) < np.cos(np.radians(10))


@pytest.mark.parametrize(("width", "query"), [(1400, ""), (1400, "?present=1"), (390, ""), (1400, "?b=-1.2,0.05")])
def test_nothing_drawn_leaves_the_picture(open_lesson: Callable[..., Any], width: int, query: str) -> None:
    page = open_lesson("flat", query)
    page.set_viewport_size({"width": width, "height": 900})
    page.reload()
    page.wait_for_selector(".lesson[data-drawn]")
    page.evaluate("window.lesson.keep('before', 0)")
    assert page.evaluate("""() => {
        const [outline, picture] = [document.querySelector(".plane path.later"), document.querySelector(".plane")];
        const clip = outline.ownerSVGElement;
        const [box, edge] = [picture, document.querySelector(".stage")].map((part) => part.getBoundingClientRect());
        const { width, height } = picture.viewBox.baseVal;
        const drawn = [...picture.querySelectorAll("path, line, rect, ellipse")];
        return [clip !== picture, getComputedStyle(clip).overflow, clip.width.baseVal.value === width,
            clip.height.baseVal.value === height, drawn.every((part) => part.ownerSVGElement === clip),
            box.left >= edge.left && box.right <= edge.right && box.top >= edge.top && box.bottom <= edge.bottom];
    }""") == [True, "hidden", True, True, True, True]


@pytest.mark.parametrize("size", [(1400, 900), (390, 844), (1280, 720)])
@pytest.mark.parametrize("state", [{}, {"b": [0.2, 0.629]}])
def test_no_number_covers_a_point_or_its_rim(open_lesson: Callable[..., Any], size: tuple[int, int],
                                             state: dict[str, Any]) -> None:
    page = open_lesson("flat", "?present=1" if size[0] == 1280 else "")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.reload()
    page.wait_for_selector(".lesson[data-drawn]")
    page.evaluate("window.lesson.keep('before', 0)")
    page.wait_for_timeout(100)
    page.evaluate("state => window.lesson.show(state)", state)
    words, points, best = page.evaluate("""() => {
        const boxes = (parts) => [...document.querySelectorAll(parts)].map((part) => part.getBoundingClientRect())
            .map(({ left, top, right, bottom }) => [left, top, right, bottom]);
        const own = boxes(".plane text.later.best");
        const circles = boxes(".plane circle:not(.handle circle), .plane rect");
        return [boxes(".plane text.later"), circles,
            [own.length, document.querySelector(".plane text.best").textContent, lesson.numbers.diamond.toFixed(2)]];
    }""")
    assert best[0] == 1
    assert best[1] == best[2]
    for left, top, right, bottom in words:
        middle, high = (top + bottom) / 2, 0.3 * (bottom - top)  # of the digits, without the room around them
        for point in points:
            assert right <= point[0] or point[2] <= left or middle + high <= point[1] or point[3] <= middle - high


@pytest.mark.parametrize(("width", "query"), [(1400, ""), (390, ""), (1280, "?present=1")])
@pytest.mark.parametrize("k", [12, 24])
def test_signs_below_the_bars_do_not_touch(open_lesson: Callable[..., Any], width: int, query: str, k: int) -> None:
    page = open_lesson("flat", query)
    page.set_viewport_size({"width": width, "height": 800})
    page.reload()
    page.wait_for_selector(".lesson[data-drawn]")
    page.evaluate("window.lesson.keep('before', 0)")
    page.evaluate("k => window.lesson.show({ k })", k)
    signs = page.evaluate("""() => {
        const strip = document.querySelectorAll(".plane")[1];
        const drawn = [...strip.querySelectorAll("path")];
        const written = [...strip.querySelectorAll("text")].filter(({ textContent }) => /[✓✕]/.test(textContent));
        return (drawn.length ? drawn : written).map((sign) => sign.getBoundingClientRect())
            .map(({ left, right }) => [left, right]);
    }""")
    assert len(signs) == k
    assert all(one[1] + 1 < other[0] for one, other in pairwise(signs)), signs


def test_numbers_of_a_wrong_flat_keep_apart(open_lesson: Callable[..., Any]) -> None:
    """At k = 24 and T = 0.3, "across 0.27", 0.62 and 0.71 touched."""
    page = open_lesson("flat")
    page.click(".skip")
    for b in ([-0.04, 0.957], [0.2, 0.629], [0.5, 0.5], [0.7, 1.1]):
        page.evaluate("b => lesson.change({ k: 24, threshold: 0.3, b })", b)
        boxes = page.evaluate("""() => [...document.querySelectorAll(".stage [data-part=curves] text:not(.handle *)")]
            .filter((text) => text.textContent).map((text) => [text.textContent, text.getBBox()])
            .map(([words, { x, y, width, height }]) => [words, x, y, x + width, y + height])""")
        assert len(boxes) >= 5
        for at, (words, left, top, right, bottom) in enumerate(boxes):
            for other, x, y, end, low in boxes[at + 1:]:
                apart = max(x - right, left - end), max(y - bottom, top - low)
                assert max(apart) > 2, (b, words, other, apart)
