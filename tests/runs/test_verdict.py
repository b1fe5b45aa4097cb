"""The verdict on a run, and the best of comparable runs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from udml_core.runs.verdict import Standing, best_runs, place_words, side_of, standing, still_words, verdict


def evaluation(final: float, frozen: float = 33.2, pca: float | None = 33.0, recall: float = 60.0,
               frozen_recall: float = 60.0) -> dict[str, dict[str, float]]:
    """Return an evaluation with these values of MAP@R and of R@1."""
    rows = {"initial": {"map@r": 30.0, "recall@1": 55.0}, "final": {"map@r": final, "recall@1": recall},
            "frozen": {"map@r": frozen, "recall@1": frozen_recall}}
    return rows if pca is None else rows | {"centered pca": {"map@r": pca, "recall@1": 59.0}}


MOST = 210
"""Characters of a verdict at most, which fit into two lines beside the sidebar."""
LEVEL = "level with frozen features but above PCA, 60.0 % against 60.0 % and 59.0 %"
LEVEL_ALONE = "level with frozen features, 60.0 % against 60.0 %"


@pytest.mark.parametrize(("values", "rank", "sentence", "recall"), [
    ((31.2,), "below", "below frozen features: 31.2 % against 33.2 %", LEVEL),
    ((35.0,), "above", "above frozen features and PCA: 35.0 % against 33.2 % and 33.0 %", LEVEL),
    ((34.0, 33.2, 34.5), "between", "above frozen features but below PCA: 34.0 % against 33.2 % "
                                    "and 34.5 %", LEVEL),
    ((33.24, 33.16, 33.0), "between", "level with frozen features but above PCA: 33.2 % against "
                                      "33.2 % and 33.0 %", LEVEL),
    ((33.2, 33.2, 33.2), "between", "level with frozen features and PCA: 33.2 % "
                                    "against 33.2 % and 33.2 %", LEVEL),
    ((33.3, 33.2, None), "above", "above frozen features: 33.3 % against 33.2 %", LEVEL_ALONE),
    ((33.2, 33.2, None), "between", "level with frozen features: 33.2 % against 33.2 %", LEVEL_ALONE),
    ((31.2, 33.2, 33.0, 62.0, 60.5), "below", "below frozen features: 31.2 % against 33.2 %",
     "above both, 62.0 % against 60.5 % and 59.0 %"),
    ((35.0, 33.2, 33.0, 58.0, 60.5), "above", "above frozen features and PCA: 35.0 % against "
                                              "33.2 % and 33.0 %", "below both, 58.0 % against 60.5 % and 59.0 %"),
    ((35.0, 33.2, 33.0, 60.0, 60.5), "above", "above frozen features and PCA: 35.0 % against "
     "33.2 % and 33.0 %", "below frozen features but above PCA, 60.0 % against 60.5 % and 59.0 %"),
    ((35.0, 33.2, None, 58.0, 60.5), "above", "above frozen features: 35.0 % against 33.2 %",
     "below frozen features, 58.0 % against 60.5 %"),
])
def test_the_verdict_names_both_measures_and_the_baselines(values: tuple[float, ...], rank: str, sentence: str,
                                                           recall: str) -> None:
    judged = verdict("RPML", evaluation(*values))
    words = sentence.replace(": ", " in the whole group found: ", 1)
    sentence = f"RPML ended {words}; first result right: {recall}."
    assert (judged.rank, judged.sentence) == (rank, sentence.replace(" %", "\N{NO-BREAK SPACE}%"))
    assert len(sentence) < MOST


def test_without_r_1_the_verdict_names_map_alone() -> None:
    rows = {"final": {"map@r": 35.0}, "frozen": {"map@r": 33.2}}
    assert verdict("RPML", rows).sentence == (
        "RPML ended above frozen features in the whole group found: 35.0\N{NO-BREAK SPACE}% against "
        "33.2\N{NO-BREAK SPACE}%.")


def test_a_difference_counts_where_a_test_of_two_shares_rejects_that_they_are_equal() -> None:
    for images in (100, 359, 1_000, 20_000):
        for value in (36.0, 44.3, 77.8, 92.2):
            for other in (36.0, 39.3, 79.0, 96.1):
                error = np.sqrt((value * (100 - value) + other * (100 - other)) / images)
                is_certain = 2 * norm.sf(abs(value - other) / error) < 0.05
                assert side_of(value, [other], images) == (np.sign(value - other) if is_certain else 0)
    assert side_of(77.8, [79.0], None) == -1, "an unknown number of images leaves chance out"


def test_equal_searches_seldom_count_as_different() -> None:
    draws = np.random.default_rng(0).binomial(1_000, 0.79, size=(2_000, 2)) / 10
    sides = [side_of(value, [other], 1_000) for value, other in draws]
    assert 0.03 < np.mean(np.abs(sides)) < 0.065


def test_the_side_of_a_run_is_that_beside_its_best_baseline() -> None:
    assert side_of(50.0, [30.0, 40.0], 1_000) == 1
    assert side_of(50.0, [30.0, 49.0], 1_000) == 0, "above one, and level with the other"
    assert side_of(50.0, [60.0, 49.0], 1_000) == side_of(50.0, [30.0, 60.0], 1_000) == -1
    assert side_of(None, [60.0], 1_000) == 0
    assert Standing(None, 77.8, 79.0, 79.0).side(1_000) == 0
    assert Standing(None, 77.8, 79.0, None).side(100_000) == -1
    assert place_words(Standing(None, 77.8, 79.0, 70.0), "frozen features", 1_000) == (
        "level with frozen features but above PCA")


def test_the_better_baseline_is_the_one_to_beat() -> None:
    assert Standing(None, 35.0, 33.2, 34.5).over_best == 0.5
    assert Standing(None, 35.0, 36.0, 34.5).over_best == -1.0
    assert Standing(None, 35.0, None, 34.5).over_best == 0.5
    assert Standing(None, 35.0, None, None).over_best is None
    assert Standing(None, None, 1.0, 2.0).over_best is None


def test_frozen_features_are_the_line_to_beat() -> None:
    judged = verdict("Frozen", evaluation(33.2), is_frozen=True)
    assert (judged.rank, judged.sentence) == (
        "baseline", "Frozen features are the line to beat: the whole group found is 33.2\N{NO-BREAK SPACE}%.")


@pytest.mark.parametrize("stored", [None, {}, {"final": {"images": 3.0}, "frozen": {"images": 3.0}},
                                    {"final": {"map@r": None}, "frozen": {"map@r": None}}, {"final": {"map@r": 3.0}}])
def test_a_run_without_measures_is_not_judged(stored: dict[str, dict[str, float | None]] | None) -> None:
    judged = verdict("PCA", stored)
    assert judged.rank == "unknown"
    assert "None" not in judged.sentence


def test_the_differences_are_those_of_the_shown_values() -> None:
    of = standing({"initial": {"map@r": 1.0}, "final": {"map@r": 35.04}, "frozen": {"map@r": 34.96}})
    assert (of.before, of.after, of.frozen, of.pca) == (1.0, 35.04, 34.96, None)
    assert of.over_frozen == 0.0, "35.0 % and 35.0 % are shown"
    assert of.over_pca is None
    assert Standing(None, 31.2, 33.2, 30.0).over_frozen == -2.0
    assert Standing(None, 31.2, 33.2, 30.0).over_pca == 1.2


def test_the_best_run_of_each_group_wins_and_a_single_run_does_not() -> None:
    rows = [("a", "birds", 31.0), ("b", "birds", 35.0), ("c", "digits", 90.0), ("d", "birds", None),
            ("e", "digits", 90.0), ("f", "clothes", 50.0)]
    assert best_runs(rows) == {"b", "c", "e"}
    assert best_runs([]) == set()


@pytest.mark.parametrize(("after", "expected"), [
    ((44.74, 71.59), "No change by training: whole group found 44.7 → 44.7 %, first result right 71.6 → 71.6 %."),
    ((44.70, 72.10), "Hardly any change by training: whole group found 44.7 → 44.7 %, first result right "
                     "71.6 → 72.1 %."),
    ((44.74, 72.60), ""), ((43.70, 71.60), ""), ((57.0, 81.0), ""),
])
def test_a_training_without_a_change_is_named(after: tuple[float, float], expected: str) -> None:
    keys = ("map@r", "recall@1")
    measured = {"initial": dict(zip(keys, (44.74, 71.60), strict=True)), "final": dict(zip(keys, after, strict=True))}
    assert still_words(measured) == expected.replace(" %", "\N{NO-BREAK SPACE}%")
    assert still_words(None) == still_words({"final": measured["final"]}) == "", "nothing was measured before it"
