"""The record of the second opinion: how agreement, regret and false verdicts are counted, and what it must hold."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from experiments.advice import START, comparison_in
from experiments.second_opinion import (
    APP,
    APP_RULE,
    GROUPS,
    MOST_REGRET,
    QUESTIONS,
    RULES,
    SEED,
    best_judged,
    by_class_range,
    deepest,
    embeddings_by_column,
    finding_words,
    judged,
    lean,
    measured,
    name_of,
    preferred,
    quality,
    rule_words,
    ruled,
    seeds_of,
    spectral_exponent,
    total,
    tracks,
    voted,
    voted_in_app,
    withheld,
)
from tests.project.documents import ROOT
from udml_core.exploration.race_figures import BY_CLASSES, FEWER, MORE, said_word
from udml_core.results.records import FOLDER, findings


def comparison(after: float, difference: float, first: float = 0.0, error: float = 0.1) -> dict[str, Any]:
    """Return a comparison with a true MAP@R of 50 before, and a judge's differences."""
    return {"truth": {"map@r": [50.0, after]}, "opinions": {"judge": {"group 60": [difference, error],
                                                                     "first 1": [first, error]}}}


def place(*rows: dict[str, Any], **weights: float) -> dict[str, Any]:
    return {"comparisons": {str(number): row for number, row in enumerate(rows)}, "weights": weights or {"judge": 1.0},
            "group": 30}


def test_verdicts_are_counted_against_the_true_sign() -> None:
    rows = place(comparison(60, 0.5), comparison(58, 0.9), comparison(49.8, 0.3), comparison(45, 0.4),
                 comparison(53, -0.4), comparison(47, 0.1))
    result = judged(rows, "group 60", "map@r")
    assert (result["large"], result["decided"], result["right"]) == (5, 4, 2)
    assert (result["better"], result["worse"], result["false better"]) == (4, 1, 1)  # a loss of .2 is not false
    assert result["false"] == {"2": -0.2, "3": -5.0, "4": 3.0}
    assert result["regret"] == 2
    assert judged(place(comparison(60, -0.5), comparison(55, -0.3)), "group 60", "map@r")["regret"] == 10


def test_the_preferred_embedding_has_better_groups_and_no_worse_first_result() -> None:
    rows = place(*(of | {"opinions": {"judge": {APP["whole group"]: of["opinions"]["judge"]["group 60"],
                                                APP["first result"]: of["opinions"]["judge"]["first 1"]}}}
                   for of in (comparison(60, 0.5, first=-0.5), comparison(55, 0.3), comparison(58, 0.1))))
    for row, recall in zip(rows["comparisons"].values(), (40.0, 51.0, 52.0), strict=True):
        row["truth"]["recall@1"] = [50.0, recall]
    assert preferred(rows) == {"name": "1", "recall@1": 1.0, "map@r": 5.0}
    rows["comparisons"].pop("1")
    assert preferred(rows) == {"name": "frozen", "recall@1": 0.0, "map@r": 0.0}


def test_the_best_judged_is_the_mean_over_the_judges_by_their_weights() -> None:
    rows = place(comparison(60, 0.5), comparison(55, 0.3), judge=0.6, pixels=0.4)
    for row, said in zip(rows["comparisons"].values(), (0.0, 0.4), strict=True):
        row["opinions"]["pixels"] = {"group 60": [said, 0.1]}
    assert best_judged(rows, "group 60", np.array([True, True])) == 1  # .34 against .30
    assert best_judged(rows, "group 60", np.array([True, False])) == 0
    assert best_judged(rows, "group 60", np.array([False, False])) is None


def test_the_judges_vote_as_in_the_app() -> None:
    row = comparison(60, 0.5)
    row["opinions"]["pixels"] = {"group 60": [-0.5, 0.1], "first 1": [0.0, 0.1]}
    assert voted(place(row, judge=0.5, pixels=0.4), "group 60").tolist() == [0]
    assert voted(place(row, judge=0.5, pixels=0.1), "group 60").tolist() == [1]


def test_goals_decide_on_the_number_of_results_before_the_share_of_right_verdicts() -> None:
    right = place(comparison(60, 0.5), comparison(40, -0.5))
    false = place(comparison(60, 0.5), comparison(40, 0.4))
    unclear = place(comparison(60, 0.5), comparison(40, -0.1))
    assert quality([right], "group 60", "map@r") == (3, 1.0)
    assert quality([unclear], "group 60", "map@r") == (3, 0.5)
    assert quality([false], "group 60", "map@r") == (1, 0.5)


def test_the_exponent_of_a_power_law_is_found() -> None:
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(400, 30)))[0]
    assert spectral_exponent((basis - basis.mean(axis=0)) * np.arange(1, 31) ** -0.75) == pytest.approx(1.5, abs=0.05)


def test_rankings_are_as_deep_as_the_largest_class_and_group() -> None:
    assert deepest(np.repeat([0, 1], [300, 200]), 50) == 299
    assert deepest(np.repeat([0, 1], [60, 70]), 110) == 110
    assert deepest(np.repeat([0, 1], [30, 40]), 10) == 69
    assert max(int(count) for count in GROUPS if count != "typical") == 100


def test_each_encoder_of_a_data_set_is_a_track_of_its_own() -> None:
    names = [name_of(track) for track in tracks()]
    assert len(set(names)) == len(names)
    assert "birds100, squeezenet" in names
    assert "emoji, efficientnet-lite0" in names
    assert {track.trains for track in tracks()} == {"head"}


def test_the_record_holds_what_allows_the_app_to_state_verdicts() -> None:
    """The goals: 95 % right where MAP@R or R@1 differs by two points, and at most 5 % of all "better" false."""
    record = json.loads((FOLDER / "second-opinion.json").read_text(encoding="utf-8"))
    assert len({name.split(",")[0] for name in record["places"]}) >= 5
    for totals, least in (("totals", 0.6), ("totals in the app", 0.5)):
        for of in record[totals].values():
            assert of["right"] >= 0.95 * of["decided"] > least * of["large"]
            assert of["false better"] <= 0.05 * of["better"]


def test_the_record_counts_verdicts_by_the_rule_of_the_pages() -> None:
    """2.5 standard errors decide a single comparison, not one of 50, and nothing speaks against averages."""
    names = {"plain": (-0.5, 0.1), "close": (-0.25, 0.1), "average:k=5": (-0.5, 0.1), "whiten": (0.5, 0.1)}
    of = place(*({"opinions": {"judge": {measure: list(values) for measure in APP.values()}}, "truth": {}}
                 for values in names.values()))
    of["comparisons"] = dict(zip(names, of["comparisons"].values(), strict=True))
    for question, measure in APP.items():
        assert voted(of, measure).tolist() == [-1, -1, -1, 1]
        assert voted_in_app(of, question).tolist() == [-1, 0, 0, 1]


def test_verdicts_that_are_not_told_are_counted_with_the_false_ones() -> None:
    rows = [comparison(48, 0.0) | {"opinions": {"judge": {measure: [-0.5, 0.1] for measure in APP.values()}}},
            comparison(53.5, 0.0) | {"opinions": {"judge": {measure: [-0.5, 0.1] for measure in APP.values()}}},
            comparison(55, 0.0) | {"opinions": {"judge": {measure: [0.5, 0.1] for measure in APP.values()}}}]
    of = place(*rows)
    of["comparisons"] = dict(zip(("rerank", "average:k=5", "whiten"), rows, strict=True))
    assert withheld({"birds": of}, "whole group") == (2, 1, 3.5)


def test_seeds_agree_if_all_have_one_verdict_and_are_opposite_if_two_are() -> None:
    def judged_as(*values: float) -> dict[str, Any]:
        rows = [{"opinions": {"judge": {measure: [value, 0.1] for measure in APP.values()}}} for value in values]
        names = ["PLM", *(f"PLM{SEED}{seed}" for seed in range(1, len(values)))]
        return {"comparisons": dict(zip(names, rows, strict=True)), "weights": {"judge": 1.0}, "group": 30}

    places = {"same": judged_as(0.5, 0.6, 0.9), "some": judged_as(0.5, 0.0), "opposite": judged_as(0.5, 0.0, -0.5),
              "one": judged_as(0.5)}
    assert seeds_of(places) == (3, 2, 2, 2), "both questions are counted"


def test_the_text_states_the_figures_of_the_record() -> None:
    record = json.loads((FOLDER / "second-opinion.json").read_text(encoding="utf-8"))
    text = " ".join(next(finding.text for finding in findings() if finding.name == "second-opinion").split())
    for words in finding_words(record):
        assert words in text
    places, advice = record["places"], json.loads((FOLDER / "advice.json").read_text(encoding="utf-8"))["datasets"]
    assert {name for name, place in record["summary"].items() if place["preferred"]["name"] == "frozen"} == {
        "digits, pixels", "fashion-mini, efficientnet-lite0"}
    missed = {f"{name}, {question}": f"{of['right']} of {of['decided']}" for name, place in record["summary"].items()
              for question, of in place["in the app"].items() if of["right"] < 0.95 * of["decided"]}
    assert missed == {"cifar10, squeezenet, whole group": "10 of 11"}
    assert "CIFAR-10 with SqueezeNet for groups (10 of 11)" in text
    lost = {name.split(",")[0] for name, place in record["summary"].items()
            if place["in the app"]["whole group"]["regret"] > MOST_REGRET["map@r"]}
    assert lost == {"cifar10"}
    ten = total([judged(place, "first 10", "recall@1") for place in places.values()])
    assert ten["false better"] == 1
    assert all(total([judged(place, f"first {count}", "recall@1") for place in places.values()])["false better"] == 0
               for count in ("1", "2", "5"))
    assert {of["whole group"]["results"] for of in record["summary"].values()} == {"typical"}
    called = sum(comparison_in(row, " against the start").first.said == "better" for of in advice.values()
                 for name, row in of["rows"].items() if name != START)
    assert f"counts {called} more, of which none loses R@1" in text


def test_the_correlation_of_the_judges_is_that_of_their_weighted_mean_and_of_no_single_judge() -> None:
    rows = place(comparison(60, 0.5), comparison(55, 0.1), comparison(58, 0.4), judge=0.9, pixels=0.1)
    for row, said in zip(rows["comparisons"].values(), (0.5, 1.0, 0.8), strict=True):  # pixels order them in reverse
        row["opinions"]["pixels"] = {"group 60": [said, 0.1]}
    of = judged(rows, "group 60", "map@r")
    assert (of["correlation"], of["correlation together"]) == ({"judge": 1.0, "pixels": -1.0}, 1.0)
    rows["weights"] = {"judge": 0.1, "pixels": 0.9}
    assert judged(rows, "group 60", "map@r")["correlation together"] == -1.0
    record = json.loads((FOLDER / "second-opinion.json").read_text(encoding="utf-8"))
    for question, measure in APP.items():
        for name, row in record["datasets"][question.capitalize()]["rows"].items():
            known = judged(record["places"][name], measure, "recall@1" if question == "first result" else "map@r")
            assert row["correlation of the judges together"] == known["correlation together"]
            assert row["correlation of the best single judge"] == max(known["correlation"].values())
            assert "correlation of the judges" not in row


def test_the_record_says_how_many_embeddings_enter_each_column() -> None:
    record = json.loads((FOLDER / "second-opinion.json").read_text(encoding="utf-8"))
    stored = record["datasets"]["Embeddings in each column"]["rows"]
    assert stored == embeddings_by_column(record["places"])
    for name, row in stored.items():
        rows = record["places"][name]["comparisons"].values()
        assert row["all other columns"] == len(rows) == record["summary"][name]["comparisons"]
        assert row["count of images"] == sum("counts" in of for of in rows)
        for question in QUESTIONS:
            shown = record["datasets"][question.capitalize()]["rows"][name]
            for column in ("consistency", "silhouette on a UMAP map"):
                entered = row[f"correlation of {'consistency under views' if column == 'consistency' else column}"]
                assert (f"correlation of {column}" in shown) == (entered > 0)
                assert entered in (0, sum(column in of["own"] for of in rows))
            others = {column.removeprefix("correlation of ") for column in shown if column.startswith("correlation of ")
                      } - {"the judges together", "the best single judge", "consistency", "silhouette on a UMAP map"}
            assert len(others) == 6
            assert all(column in of["own"] for of in rows for column in others), "all embeddings enter these"
    assert sum(row["count of images"] for row in stored.values()) == 489


def test_texts_say_how_far_classes_count_otherwise_than_judges() -> None:
    places = json.loads((FOLDER / "second-opinion.json").read_text(encoding="utf-8"))["places"]
    assert by_class_range(places) == (FEWER, MORE)
    said = f"{FEWER} fewer to {MORE} more of 100 groups"
    assert said in BY_CLASSES
    assert said in " ".join((ROOT / "docs" / "judging.md").read_text(encoding="utf-8").split())


def test_the_curators_table_states_what_the_record_holds() -> None:
    place = json.loads((FOLDER / "second-opinion.json").read_text(encoding="utf-8"))["places"][
        "birds100, efficientnet-lite0"]
    rows = place["comparisons"]
    lines = (ROOT / "docs" / "judging.md").read_text(encoding="utf-8").splitlines()
    frozen = rows["whiten"]["truth"]
    assert f"| frozen features | {frozen['recall@1'][0]:.1f} | {frozen['map@r'][0]:.1f} | – | – |" in lines
    for name, title in (("whiten", "whitening"), ("RPML", "RPML, a head of ten epochs"),
                        ("whiten+average:k=20,times=2,alpha=3", "whitening, averages over 20 neighbors, twice")):
        truth, (first, groups) = rows[name]["truth"], (said_word(measured(place, name, question)) for question in APP)
        assert (f"| {title} | {truth['recall@1'][1]:.1f} | {truth['map@r'][1]:.1f} | {first} | {groups} |") in lines


def test_a_rule_of_counts_decides_nearly_as_much_as_the_mean_alone_and_the_documents_state_it() -> None:
    record = json.loads((FOLDER / "second-opinion.json").read_text(encoding="utf-8"))
    for of in record["rules"].values():
        own, mean = of[APP_RULE], of["mean alone"]
        assert all(own[name] >= 0.98 * mean[name] for name in ("decided", "right"))
        assert all(own[name] <= mean[name] for name in ("false better", "against the truth", "largest regret"))
    assert rule_words(record) in " ".join((ROOT / "docs" / "judging.md").read_text(encoding="utf-8").split())
    for question in record["rules"]:
        for rule, said in record["rules"][question].items():
            known = [of for place in record["places"].values() if (of := ruled(place, question, rule))]
            assert total(known) == said


def test_a_count_that_leans_against_the_mean_leaves_no_verdict() -> None:
    row = comparison(60, 0.5) | {"counts": {"judge": {"first result": [1.0, 0.5, 0.4, 0.6],
                                                      "whole group": [1.0, 0.3, 0.2, 0.4]}}}
    row["opinions"]["judge"]["group typical"] = row["opinions"]["judge"]["group 60"]
    of = place(row)
    assert lean(of, row, "whole group") == -1
    assert voted(of, "group typical").tolist() == [0]
    assert voted(of, "group 60").tolist() == [1], "other numbers of results were not counted"
    assert voted(place(comparison(60, 0.5) | {"opinions": row["opinions"]}), "group typical").tolist() == [1]
    verdicts = {rule: (ruled(of, "whole group", rule) or {})["better"] for rule in RULES}
    assert verdicts == {"mean alone": 1, "mean, unless the count contradicts": 0, "mean and count": 0, "count alone": 0,
                        "mean or count": 0}
