"""Blind judgments of the first ten results as rows: what is shown, coverage by simulated people, and files."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from tests.tiers import fast_first
from udml_core.base.errors import UserError
from udml_core.data.dataset import ArrayImages, Dataset
from udml_core.data.given.log import log_path_of
from udml_core.runs.search import differing
from udml_core.runs.search import judgment_files as files
from udml_core.runs.search.differing import Comparison, Results, comparison_key, draw_queries
from udml_core.runs.search.judging import Choice, Judging
from udml_core.runs.search.judging_words import differing_words, result_words

TOTAL, MOST, IMAGES = 60, 40, 14
"""Numbers of differing queries, of judgments in a session, and of images that either embedding finds for a query."""
MOST_MISSED = 9
"""Five of 100 intervals may miss; at most 9 do in 97 of 100 such tests."""


@pytest.fixture(autouse=True)
def without_pointer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the file by which a moved folder finds its log: writing it takes ten times as long as an answer."""
    monkeypatch.setattr("udml_core.data.given.log._write_pointer", lambda *_: None)


def rows_of(session: str, results: Results = "ten", swapped: bool = False) -> Comparison:
    """Return a comparison in which A finds images 0 to 9 of a query's fourteen, and B images 4 to 13, reversed."""
    names = tuple(f"{number:03}.png" for number in range(TOTAL * (IMAGES + 1)))
    pixels = np.broadcast_to(np.zeros((), np.uint8), (len(names), 2, 2))
    dataset = Dataset("set", "Set", ArrayImages(pixels), None, (), session, 2, True, names)
    key = (f"run-{session}:final", f"run-{session}:frozen")
    order = draw_queries(dataset, np.arange(TOTAL), comparison_key(key, "test", results))
    of_query = TOTAL + IMAGES * order[:, None] + np.arange(IMAGES)
    candidates = np.stack([of_query[:, :10], of_query[:, :3:-1]], axis=1)
    if results == "first":
        candidates = candidates[:, :, 0]
    return Comparison(dataset, key[::-1] if swapped else key, "test", len(names), TOTAL, order,
                      candidates[:, ::-1] if swapped else candidates, results)


def group_of(session: str, swapped: bool = False) -> Comparison:
    """Return a comparison of groups in which A finds images 0 to 23 of a query's 36, and B images 12 to 35."""
    names = tuple(f"{number:04}.png" for number in range(TOTAL * 37))
    pixels = np.broadcast_to(np.zeros((), np.uint8), (len(names), 2, 2))
    dataset = Dataset("set", "Set", ArrayImages(pixels), None, (), session, 2, True, names)
    key = (f"run-{session}:final", f"run-{session}:frozen")
    of_query = TOTAL + 36 * np.arange(TOTAL)[:, None] + np.arange(36)
    candidates = np.stack([of_query[:, :24], of_query[:, 12:]], axis=1)
    return Comparison(dataset, key[::-1] if swapped else key, "test", len(names), TOTAL, np.arange(TOTAL),
                      candidates[:, ::-1] if swapped else candidates, "group")


def test_of_a_group_a_few_images_are_drawn_uniformly_among_those_that_differ() -> None:
    comparison, swapped = group_of("group"), group_of("group", swapped=True)
    drawn = [comparison.options(position) for position in range(TOTAL)]
    assert [swapped.options(position)[::-1] for position in range(TOTAL)] == drawn, "whatever the order of A and B"
    places = np.array(drawn) - TOTAL - 36 * np.arange(TOTAL)[:, None, None]
    assert places.shape == (TOTAL, 2, differing.DRAWN)
    assert places[:, 0].max() < 12, "what only A finds"
    assert places[:, 1].min() >= 24, "what only B finds"
    counts = np.bincount(places[:, 0].ravel(), minlength=12)
    assert counts.min() >= 8, "each is drawn about 20 times, not the nearest alone"
    assert counts.max() <= 34
    assert (comparison.shared(0), comparison.mean_changed) == (12, 12.0)
    assert differing_words(comparison) == (
        "60 of 60 queries, drawn from 2,220 images, find other groups of results (100 %), on average in 12.0 of 24 "
        "images")


def test_drawn_images_stand_for_all_that_differ() -> None:
    """The share of the query's kind among drawn images is on average that among all images."""
    comparison = group_of("stands for all")
    kind = np.random.default_rng(0).random(TOTAL * 37) < np.where((np.arange(TOTAL * 37) - TOTAL) % 36 >= 24, 0.7, 0.3)
    full, few = (kind[np.array([of(position) for position in range(TOTAL)])].mean(axis=(0, 2))
                 for of in (comparison._only, comparison.options))
    assert few == pytest.approx(full, abs=0.08)
    assert few[1] - few[0] > 0.3


def is_of_second(row: tuple[int, ...]) -> bool:
    """Return whether a row is the part that only B finds."""
    return (row[0] - TOTAL) % IMAGES >= 10


def answer(judging: Judging, values: np.ndarray) -> None:
    """Answer the session's question as a simulated user would, whose value of each query is known."""
    question = judging.question()
    assert question is not None
    value = values[question.query]
    choice: Choice = "equal" if value == 0.5 else "left" if is_of_second(question.left) == (value == 1) else "right"
    assert judging.answer(question, choice)


def values_of(seed: int, share: float, error: float) -> np.ndarray:
    """Return a user's value of each query; small numbers favor B, so that any order but a random one is unfair."""
    rng = np.random.default_rng(seed)
    is_better = (np.arange(TOTAL) < share * TOTAL) ^ (rng.random(TOTAL) < error)
    return np.where(rng.random(TOTAL) < 0.2, 0.5, is_better)


def test_a_question_shows_what_only_one_of_the_embeddings_finds_in_order_of_rank() -> None:
    comparison = rows_of("shown")
    first, second = comparison.options(0)
    base = TOTAL + IMAGES * int(comparison.differing[0])
    assert first == tuple(range(base, base + 4))
    assert second == tuple(range(base + 13, base + 9, -1))
    assert comparison.shared(0) == 6
    question = Judging(comparison).question()
    assert question is not None
    assert {question.left, question.right} == {first, second}


@pytest.mark.parametrize(("share", "error", "sessions"), fast_first([
    (0.8, 0.1, 12), (0.8, 0.1, 100), (0.5, 0.3, 100), (0.2, 0.0, 100), (1.0, 0.2, 100)]))
def test_the_interval_of_a_session_holds_the_share_at_every_stop(share: float, error: float, sessions: int) -> None:
    missed = 0
    for session in range(sessions):
        judging, values = Judging(rows_of(f"{share}-{error}-{sessions}-{session}")), values_of(session, share, error)
        for _ in range(MOST):
            answer(judging, values)
        at_last = judging.share("me")  # intervals only shrink, so it is within the intervals of all stops before
        missed += not at_last.low - 1e-3 <= values.mean() <= at_last.high + 1e-3
    assert missed <= MOST_MISSED * sessions / 100


def test_rows_are_stored_apart_from_first_results_and_resumed_and_undone() -> None:
    values, rows, firsts = values_of(1, 0.7, 0.0), rows_of("apart"), rows_of("apart", "first")
    assert rows.key != firsts.key
    assert rows.differing.tolist() != firsts.differing.tolist(), "each has a random order of its own"
    judging = Judging(rows)
    for _ in range(6):
        answer(judging, values)
    assert Judging(firsts).count("me") == 0
    first_question = Judging(firsts).question()
    assert first_question is not None
    Judging(firsts).answer(first_question, "left")
    resumed = Judging(rows)
    assert resumed.values("me") == judging.values("me") == values[rows.differing[:6]].tolist()
    assert resumed.undo() == resumed.question_at(5)
    assert (Judging(rows).count("me"), Judging(firsts).count("me")) == (5, 1)
    mirrored = Judging(rows_of("apart", swapped=True)).values("me")
    assert mirrored == [1 - value for value in resumed.values("me")]


def test_a_judgment_counts_while_its_rows_hold_the_same_images_in_any_order() -> None:
    comparison, values = rows_of("order"), values_of(2, 0.7, 0.0)
    judging = Judging(comparison)
    for _ in range(4):
        answer(judging, values)
    others = comparison.candidates[:, :, ::-1].copy()
    reordered = Comparison(comparison.dataset, comparison.names, "test", comparison.images, TOTAL, comparison.differing,
                           others, "ten")
    assert Judging(reordered).values("me") == judging.values("me")
    others[2, 1, 0] = 0  # another image among B's first ten
    assert Judging(reordered).values("me") == judging.values("me")[:2]


def test_files_hold_rows_and_are_not_read_as_first_results() -> None:
    judging, values = Judging(rows_of("files"), "Ana"), values_of(3, 0.6, 0.0)
    for _ in range(8):
        answer(judging, values)
    written = files.write_judgments(judging)
    _, *rows = csv.reader(io.StringIO(files.write_table(judging).decode()))
    names = judging.comparison.dataset.names
    assert json.loads(rows[0][3]) == sorted(names[image] for image in judging.comparison.options(0)[0])
    assert [row[-1] for row in rows] == [{0: "A", 1: "B", 0.5: "equal"}[value] for value in judging.values("Ana")]
    log_path_of(judging.comparison.dataset, "judgments").unlink()
    here = Judging(judging.comparison, "Ben")
    assert files.read_judgments(written, "ana.json", here).added == 8
    assert here.values("Ana") == judging.values("Ana")
    with pytest.raises(UserError, match=r"judges the first ten results\. Here first results are judged"):
        files.read_judgments(written, "ana.json", Judging(rows_of("files", "first")))


def test_the_words_say_what_was_judged() -> None:
    judging = Judging(rows_of("words"))
    answer(judging, np.ones(TOTAL))
    assert differing_words(judging.comparison) == (
        "60 of 60 queries, drawn from 900 images, differ in their first ten results (100 %), "
        f"on average in {np.mean([len(judging.comparison.options(at)[0]) for at in range(TOTAL)]):.1f} of 10 images")
    words = result_words(judging.share("me"), judging.comparison)
    assert "the share of B is 1 to 100 % of the differing queries" in words
