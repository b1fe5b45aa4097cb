"""Groups of comparable runs, titles that begin with their differences, and the verdict on several runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pages.parts.compare.queries import best_two, count_words, difference_words
from pages.parts.compare.settings import full_titles, opposed_settings, setting_text, settings_by_words
from pages.parts.compare.verdict import unequal_words, verdict_words
from pages.parts.curves.run_curves import alone, baseline_words, curve_table, shown_rows
from pages.parts.draw.palette import points
from pages.parts.runs.leaderboard import leaderboard
from pages.parts.shell.run_groups import by_group, group_column, group_words
from pages.parts.shell.run_status import LEGIBLE, keep_differences, run_titles
from tests.exploration.test_comparison import atlas
from tests.running import spec
from udml_core.runs import Run, create_run
from udml_core.runs.notes import Notes
from udml_core.runs.verdict import Standing


def standings(*after: float | None, frozen: float | None = 50.0) -> list[Standing]:
    return [Standing(10.0, value, frozen, 45.0) for value in after]


@pytest.mark.parametrize(("measured", "words"), [
    ({"A": standings(66.2), "B": standings(57.44), "C": standings(36.0)},
     "**A finds most of the whole group**: 66.2 %, 8.8 points above B and 16.2 points above frozen features. "
     "Runs with other seeds would show the spread."),
    ({"B": standings(57.0, 59.0), "A": standings(66.0, 68.0)},
     "**A finds most of the whole group**: 67.0 %, 9.0 points above B and 17.0 points above frozen features. "
     "The difference is larger than its spread over seeds, ± 2.0 points."),
    ({"A": standings(58.0, 59.0), "B": standings(57.0, 59.0)},
     "The difference is within its spread over seeds, ± 1.6 points, so the order may be chance."),
    ({"A": standings(58.0, 59.0), "B": standings(57.0)}, "Runs with other seeds would show the spread."),
    ({"A": standings(40.04), "B": standings(39.96)},
     "**A and B are level** in the whole group found: 40.0 %, but 10.0 points below frozen features."),
    ({"A": standings(50.04), "B": standings(39.96)}, "10.0 points above B and level with frozen features."),
    ({"A": standings(40.0, frozen=None), "B_2": standings(39.0)}, "40.0 %, 1.0 points above B\\_2. "),
])
def test_the_verdict_names_the_best_run_and_weighs_the_difference(measured: dict[str, list[Standing]],
                                                                  words: str) -> None:
    assert words.replace(" %", "\N{NO-BREAK SPACE}%") in " ".join(verdict_words(measured))


@pytest.mark.parametrize(("after", "frozen", "words"), [
    (81.9, 96.1, "and 4.7 points above frozen features; its first result is right less often than with them, "
     "by 14.2 points."),
    (97.0, 96.1, "and 4.7 points above frozen features. "), (96.1, 96.1, "and 4.7 points above frozen features. ")])
def test_the_verdict_names_a_nearest_image_that_contradicts(after: float, frozen: float, words: str) -> None:
    measured = {"A": standings(57.4, frozen=52.7), "B": standings(36.3, frozen=52.7)}
    nearest = {"A": standings(after, frozen=frozen), "B": standings(99.0, frozen=1.0)}
    assert words in " ".join(verdict_words(measured, nearest))


@pytest.mark.parametrize(("supervision", "dimensions", "words"), [
    (["none", "none"], [4, 4], ""), ([], [], ""),
    (["pairs", "none", "pairs"], [16, 4, 16], "Different supervision (pairs, none) and dimensions (4, 16): this "
                                              "compares these runs, not their methods."),
    (["pairs", "none"], [4, 4], "Different supervision (pairs, none): this compares these runs, not their "
                                "methods."),
    (["few", "few"], [8, 4], "Different dimensions (4, 8): this compares these runs, not their methods.")])
def test_an_unequal_comparison_is_named(supervision: list[str], dimensions: list[int], words: str) -> None:
    assert unequal_words(supervision, dimensions) == words


@pytest.mark.parametrize(("interval", "words"), [
    ((4.14, 5.31), "10.0 points above B (95 % interval over queries: 4.1 to 5.3) and level with frozen features. Runs "
                   "with other seeds would show the spread."),
    ((-0.31, 5.3), "(95 % interval over queries: −0.3 to 5.3) and level with frozen features. The interval includes 0, "
                   "so the order may be chance. Runs with"),
    (None, "10.0 points above B and level with frozen features. Runs with other seeds")])
def test_the_verdict_states_the_interval_of_the_gap_over_queries(interval: tuple[float, float] | None,
                                                                 words: str) -> None:
    asked = []

    def of_gap(best: str, second: str) -> tuple[float, float] | None:
        asked.append((best, second))
        return interval

    measured = {"C": standings(1.0), "B": standings(40.0), "A": standings(50.0)}
    assert words in " ".join(verdict_words(measured, None, of_gap))
    assert asked == [("A", "B")]


@pytest.mark.parametrize(("counts", "words"), [
    ((47, 4), "By R@1, **A is ahead of B**: the nearest image is a hit with it alone for 47 queries, with the other "
              "alone for 4. Two equally good runs differ at least this much in fewer than 1 of 1,000 cases (sign "
              "test), so chance is an unlikely explanation."),
    ((1, 5), "By R@1, **B is ahead of A**: the nearest image is a hit with it alone for 5 queries, with the other "
             "alone for 1. Two equally good runs differ at least this much in 21.9 % of cases (sign test), so chance "
             "may explain it."),
    ((5, 4), "in 100.0 % of cases (sign test), so chance alone could explain it."),
    ((3, 3), "By R@1, **A and B are level**: the nearest image is a hit with each of them alone for 3 queries.")])
def test_the_queries_on_which_runs_differ_are_weighed_against_chance(counts: tuple[int, int], words: str) -> None:
    assert words in difference_words("A", "B", *counts)


def test_queries_with_a_hit_in_one_run_only_are_counted() -> None:
    two = [atlas([2, 4, 6, 8], [True, True, True, False]), atlas([2, 4, 6, 8], [False, False, True, True])]
    words = ("The nearest image is a hit (it has the query's class) for **2 of 4 queries only with A** and 1 only with "
             "B.")
    assert count_words(["A", "B"], two) == words
    assert count_words(["B", "A"], two[::-1]) == words, "in either order"
    three = [atlas(list(range(6)), hits) for hits in ([True, True, True, False, False, False],
                                                      [True, True, False, True, False, True],
                                                      [True, False, False, True, False, True])]
    assert count_words(["A", "B", "C"], three) == (
        "The nearest image is a hit (it has the query's class) for **1 of 6 queries only with A**, 0 only with B, 0 "
        "only with C, 1 with all runs and 1 with none.")


def test_settings_with_different_values_come_before_settings_of_one_method() -> None:
    settings = [{"Method": "rpml", "Largest half angle": 15.0, "Mining": "random", "Epochs": 5},
                {"Method": "ssdml", "Largest half angle": 40.0, "Orthogonal": True, "Epochs": 5}]
    assert opposed_settings(settings) == ["Method", "Largest half angle"]
    assert [setting_text(value, name) for value, name in (("ssdml", "Method"), (True, "Orthogonal"), (5e-6, "Rate"))
            ] == ["SSDML", "on", "5e-06"]


def test_a_field_that_means_something_else_in_another_method_is_a_setting_of_its_own(tmp_path: Path) -> None:
    runs = [create_run(spec(method=method), tmp_path) for method in ("rpml", "ssdml", "nml")]
    authority, walk, pairs = (settings_by_words(run) for run in runs)
    assert [row["Learns from"] for row in (authority, walk, pairs)] == ["no labels", "few labels", "pairs of images"]
    assert (authority["Authority factor"], walk["Walk probability"]) == (100.0, 0.99)
    assert "Authority factor" not in walk
    assert "Walk probability" not in authority
    titles = full_titles(runs)
    assert titles["Largest half angle"] == "Largest half angle · α in °", "both methods have this symbol"
    assert titles["Dimension"] == "Dimension", "the methods have different symbols"
    assert "Dimension" in pairs


def test_where_runs_differ_the_best_two_are_compared_first(tmp_path: Path) -> None:
    runs = [measured(create_run(spec(seed=seed), tmp_path), value) for seed, value in enumerate((20.0, 60.0, 40.0))]
    assert best_two(runs) == (1, 2)


@pytest.mark.parametrize(("beaten", "count", "words"), [
    (("frozen", "centered pca"), 3, "Gray lines: the backbone's frozen features (dotted) and centered PCA"),
    (("frozen",), 3, "PCA is not drawn, because these runs differ in dimension or distance."),
    (("frozen",), 1, "on the same images. Compare MAP@R first")])
def test_the_words_on_the_baselines_name_only_lines_that_are_drawn(beaten: tuple[str, ...], count: int,
                                                                   words: str) -> None:
    shown = baseline_words({name: {} for name in beaten}, count)
    assert words in shown
    assert ("dashed" in shown) == ("centered pca" in beaten)
    assert ("not drawn" in shown) == (words.startswith("PCA is not"))


@pytest.mark.parametrize(("curves", "expected"), [
    ({"A": ["loss", "violating"], "B": ["loss"]}, {"violating"}),
    ({"A": ["loss", "violating"], "B": ["loss"], "C": ["violating"]}, set()),
    ({"A": ["loss", "violating"]}, set()),
    ({"A": ["loss", "violating"], "frozen": []}, set())], ids=["two", "three", "one", "a closed form"])
def test_only_curves_that_two_runs_have_are_drawn_beside_each_other(curves: dict[str, list[str]],
                                                                    expected: set[str]) -> None:
    metrics = {run: [{"epoch": 1, **dict.fromkeys(names, 0.5), "missing": None}] if names else []
               for run, names in curves.items()}
    assert alone(metrics) == expected


def test_the_table_of_curves_has_the_titles_of_the_charts_and_shares_in_percent() -> None:
    rows = {"A": shown_rows([{"epoch": 1, "sample map@r": 0.51234, "loss": 0.123456, "accuracy": 0.25}]),
            "B": shown_rows([{"epoch": 1, "sample map@r": 0.6}])}
    table = curve_table(rows, whole=True)
    assert list(table.columns) == ["Run", "Epoch", "MAP@R on all test images, %", "Mean loss",
                                   "Views classified correctly, %"]
    assert table.iloc[0].tolist() == ["A", 1, 51.2, 0.1235, 25.0]
    assert table["MAP@R on all test images, %"].tolist() == [51.2, 60.0]
    assert "MAP@R on a sample of the test half, %" in curve_table(rows, whole=False)


def test_no_verdict_without_two_measured_runs() -> None:
    assert verdict_words({"A": standings(40.0), "B": standings(None)}) == ("", "")


def test_differences_have_a_real_minus_sign_and_a_unit() -> None:
    assert [points(value) for value in (-14.16, 4.7, 0.04, -0.04, None)] == [
        "−14.2 points", "+4.7 points", "0.0 points", "0.0 points", "–"]


@pytest.mark.parametrize(("titles", "shown"), [
    (["RPML on a long data set, 6,000 images, α 15°", "RPML on a long data set, 6,000 images, α 10°"],
     ["RPML on a long data set… α 15°", "RPML on a long data set… α 10°"]),
    (["triplets-of-the-clothes-first-15", "triplets-of-the-clothes-first-150"],
     ["triplets-of-the-clothes-fi… 15", "triplets-of-the-clothes-f… 150"]),
    (["x" * 40 + "1", "x" * 40 + "2"], ["x" * 27 + "… 1", "x" * 27 + "… 2"]),
    (["RPML, α 15°", "RPML, α 10°"], ["RPML, α 15°", "RPML, α 10°"]),
])
def test_long_titles_that_begin_alike_keep_their_order_and_difference(titles: list[str], shown: list[str]) -> None:
    named = keep_differences(dict(zip("ab", titles, strict=True)))
    assert list(named.values()) == shown
    assert len({title[:LEGIBLE] for title in named.values()}) == 2


def test_runs_whose_names_begin_alike_differ_in_every_list(tmp_path: Path) -> None:
    runs = [create_run(spec(seed=seed), tmp_path) for seed in (0, 1)]
    for number, run in enumerate(runs):
        run.write_notes(Notes.make(f"Clothes with many triplets and noise {number}"))
    for titles in (run_titles(runs).values(), leaderboard(runs)["Run"]):
        assert len({title[:LEGIBLE] for title in titles}) == 2


def measured(run: Run, value: float) -> Run:
    """Give a run an evaluation."""
    run.write_evaluation({name: {"map@r": value, "recall@1": value} for name in ("initial", "final", "frozen")})
    return run


def test_runs_of_different_groups_are_neither_ranked_together_nor_listed_in_turn(tmp_path: Path) -> None:
    requests: list[dict[str, Any]] = [{}, {"split": "zero-shot"}, {"backbone": "cnn"}, {"seed": 1}]
    runs = [measured(create_run(spec(**request), tmp_path), 10.0 * number)
            for number, request in enumerate(requests)]
    assert by_group(runs) == [[runs[0], runs[3]], [runs[1]], [runs[2]]]
    heading, groups = group_column(runs)
    assert (heading, groups) == ("Split · Backbone", ["seen · pixels", "zero-shot · pixels", "seen · cnn",
                                                      "seen · pixels"])
    assert group_column([runs[0], runs[3]]) == ("", ["", ""])
    assert group_words(runs[1]) == "Digits, split zero-shot, backbone pixels"
    rows = leaderboard(runs)
    assert rows[heading].tolist() == groups
    assert rows["Best"].tolist() == ["", "", "", "★"], "the other groups have one run each"
    assert "Split · Backbone" not in leaderboard([runs[0], runs[3]])
