"""The lesson on two weak encoders against the library and the record."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from experiments.lessons.better import weak_encoders
from experiments.lessons.encoders import encoders
from udml_core.base.paths import ASSETS
from udml_core.data import catalog
from udml_core.numerics.evaluation import recall_at_k
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.results.lessons import FOLDER

IMAGES = 600
RECORD = json.loads((ASSETS / "results" / "side-by-side.json").read_text(encoding="utf-8"))["datasets"]


def spaces() -> dict[str, Any]:
    """Return the vectors of the first images by encoder, in double precision."""
    columns, rows = (part[:IMAGES].astype(np.float64) for part in weak_encoders())
    pairs = rows[:, 1:] + rows[:, :-1]
    return {"columns": unit_rows(columns), "rows": unit_rows(rows), "pairs": unit_rows(pairs)}


def nearest_images(rows: Any) -> Any:
    """Return the most similar other image (n,) of each image."""
    cosines = rows @ rows.T
    np.fill_diagonal(cosines, -1)
    return cosines.argmax(axis=1)


def labels() -> Any:
    """Return the classes of the first images."""
    return np.asarray(catalog.load("digits").labels)[:IMAGES]


def test_the_stored_values_are_the_record_s() -> None:
    stored = json.loads((FOLDER / "encoders.json").read_text(encoding="utf-8"))
    assert stored == encoders()
    birds = RECORD["Birds, 100 species, 112 px"]["rows"]
    assert stored["record"][0]["both"] == [birds["Both, whitened together"][name] for name in ("recall@1", "map@r")]
    for row in stored["record"]:  # what the lesson claims of real encoders
        for measure in (0, 1):
            assert row["both"][measure] > max(row["first"][measure], row["second"][measure])


@pytest.mark.browser
def test_a_gain_within_its_bound_is_named(open_lesson: Callable[..., Any]) -> None:
    undecided = []
    for row in encoders()["record"]:
        better, joined = max(row["first"][0], row["second"][0]), row["both"][0]
        bound = 1.96 * np.sqrt((better * (100 - better) + joined * (100 - joined)) / row["images"])
        undecided += [row["name"]] if joined - better <= bound else []
    assert 0 < len(undecided) < 3
    text = open_lesson("encoders").locator(".formula, details").all_text_contents()
    assert f"gains on these do not count: {', '.join(undecided)}." in " ".join(" ".join(text).split())


@pytest.mark.browser
@pytest.mark.parametrize(("second", "weight"), [
    ("columns", 1), ("columns", 0.4), ("columns", 0), ("pairs", 1), ("pairs", 3)])
def test_recall_is_the_library_s(compute: Callable[..., Any], second: str, weight: float) -> None:
    shown = compute("encoders", {"second": second, "weight": weight})
    known = spaces()
    joined = unit_rows(np.hstack([known["rows"], weight * known[second]]))
    for share, space in zip(shown["recalls"], (known["rows"], known[second], joined), strict=True):
        assert share == pytest.approx(recall_at_k(space, labels(), (1,))[1], abs=2.5 / IMAGES)  # ties in float32


@pytest.mark.browser
def test_the_cells_count_every_image_once(compute: Callable[..., Any]) -> None:
    shown = compute("encoders", {"weight": 1})
    counts = np.array([[cell["count"] for cell in row] for row in shown["cells"]])
    both = np.array([[cell["both"] for cell in row] for row in shown["cells"]])
    assert counts.sum() == IMAGES
    assert counts[1].sum() / IMAGES == pytest.approx(shown["recalls"][0])
    assert counts[:, 1].sum() / IMAGES == pytest.approx(shown["recalls"][1])
    assert both.sum() / IMAGES == pytest.approx(shown["recalls"][2])


@pytest.mark.browser
@pytest.mark.parametrize(("second", "weight"), [("columns", 1), ("pairs", 1), ("pairs", 0.2)])
def test_a_wrong_neighbor_of_both_encoders_is_that_of_the_joined_vector(
        compute: Callable[..., Any], second: str, weight: float) -> None:
    shown, known, classes = compute("encoders", {"second": second, "weight": weight}), spaces(), labels()
    nearest = [nearest_images(space) for space in (
        known["rows"], known[second], unit_rows(np.hstack([known["rows"], weight * known[second]])))]
    deceived = (nearest[0] == nearest[1]) & (classes[nearest[0]] != classes)
    assert shown["deceived"] == deceived.sum()
    assert np.array_equal(nearest[2][deceived], nearest[0][deceived])  # as the text says of any weight
    assert shown["deceived"] <= shown["cells"][0][0]["count"] - shown["cells"][0][0]["both"]


@pytest.mark.browser
def test_the_joined_cosine_is_the_weighted_mean(compute: Callable[..., Any]) -> None:
    for weight in (0, 0.7, 2):
        one, two, both = compute("encoders", {"weight": weight, "query": 3})["cosines"]
        assert both == pytest.approx((one + weight**2 * two) / (1 + weight**2))


@pytest.mark.browser
def test_what_the_text_claims(compute: Callable[..., Any]) -> None:
    start, pairs = compute("encoders", {"weight": 1}), compute("encoders", {"second": "pairs", "weight": 1})
    alone, weak, joined = start["recalls"]
    assert alone == pytest.approx(0.8, abs=0.05)
    assert weak == pytest.approx(0.6, abs=0.05)
    assert joined > 0.9
    # C is far stronger than B, but misses what A misses: strength and overlap are separate.
    assert [round(100 * share) for share in (pairs["recalls"][1], weak)] == [79, 59]
    both_miss = [[shown["cells"][0][0][name] for name in ("count", "both")] for shown in (start, pairs)]
    assert both_miss == [[57, 44], [79, 2]]
    assert [start["deceived"], pairs["deceived"]] == [0, 42]
    assert round(IMAGES * (1 - alone)) == 113
    assert [round(100 * pairs["recalls"][at], 1) for at in (2, 0)] == [80.7, 81.2]
    for tenths in range(0, 31, 3):
        assert compute("encoders", {"second": "pairs", "weight": tenths / 10})["recalls"][2] <= alone
    of_b = {tenths: compute("encoders", {"weight": tenths / 10})["recalls"][2] for tenths in range(3, 31)}
    assert min(of_b.values()) > alone
    assert round(100 * max(of_b.values())) == 96
    assert round(100 * of_b[30]) == 90


@pytest.mark.browser
def test_another_query_comes_at_a_press(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("encoders")
    page.click(".skip")
    first = page.evaluate("lesson.numbers.row")
    page.get_by_role("button", name="Another query").press("Enter")
    assert page.evaluate("lesson.numbers.row") > first


def test_the_table_says_which_columns_are_r_at_1_and_which_map_at_r(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("encoders")
    groups = page.locator(".formula th[scope=colgroup]")
    assert groups.all_text_contents() == ["R@1", "MAP@R"]
    assert [group.get_attribute("colspan") for group in groups.all()] == ["3", "3"]


@pytest.mark.browser
def test_no_number_stands_on_an_edge(open_lesson: Callable[..., Page]) -> None:
    for width in (1400, 390):
        page = open_lesson("encoders")
        page.set_viewport_size({"width": width, "height": 900})
        page.get_by_role("button", name="Skip the question").click()
        page.evaluate("lesson.drawStage()")
        for second in ("columns", "pairs"):
            for weight in (0, 0.5, 1, 3):
                page.evaluate("state => lesson.change(state)", {"second": second, "weight": weight})
                crossed = page.evaluate("""() => {
                    const paths = [...document.querySelectorAll(".plane path")];
                    const boxes = paths.map((path) => path.getBoundingClientRect());
                    return [...document.querySelectorAll(".plane text.later")].filter((text) => {
                        const { left, right } = text.getBoundingClientRect();
                        return boxes.some((box) => [box.left, box.right].some((edge) => edge > left && edge < right));
                    }).map((text) => text.textContent);
                }""")
                assert not crossed, (width, second, weight)


@pytest.mark.browser
@pytest.mark.parametrize("language", ["en", "de", "es"])
def test_a_telephone_cuts_no_table(open_lesson: Callable[..., Page], language: str) -> None:
    page = open_lesson("encoders", f"?language={language}")
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    page.wait_for_selector(".lesson[data-drawn]")
    page.locator(".skip").click()
    right = page.evaluate("document.querySelector('.formula').getBoundingClientRect().right")
    for table in page.locator(".formula table").all():
        box = table.bounding_box()
        assert box
        assert box["x"] + box["width"] <= right


@pytest.mark.browser
def test_the_slides_that_explain_joining_join(open_lesson: Callable[..., Page]) -> None:
    """Without an answer they showed weight 0, with which the joined vector is A's."""
    page = open_lesson("encoders", "?present=1")
    for _ in range(3):
        page.evaluate("lesson.presentation.turn(1)")
        if page.evaluate("lesson.root.dataset.slide") in ("see", "formula"):
            assert page.evaluate("lesson.state.weight") == 1
            both, alone = page.evaluate("[lesson.numbers.recalls[2], lesson.numbers.recalls[0]]")
            assert both > alone + 0.1
    first, *_ = page.evaluate(r"lesson.lesson.touch.split(/(?<=[.!?])\s+/)")
    assert first.startswith("Set the weight of the second encoder to 0"), "also after the answer"
