"""The record of kept epochs: what it holds follows from its runs, and the documents state it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from experiments.kept_epochs import (
    SIDES,
    agreement,
    agreement_words,
    choice,
    contents,
    gain,
    held_out_words,
    kept_words,
    key_of,
    summarize,
    table,
)
from experiments.second_opinion import SEED
from tests.project.documents import ROOT
from tests.running import spec
from udml_core.results.records import FOLDER, findings


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return dict(json.loads((FOLDER / "kept-epochs.json").read_text(encoding="utf-8")))


def test_the_sums_follow_from_the_runs(record: dict[str, Any]) -> None:
    found = contents(record["runs"])
    assert found == {name: record[name] for name in found}


def test_the_documents_state_how_often_the_kept_epoch_is_truly_better(record: dict[str, Any]) -> None:
    said = " ".join((ROOT / "docs" / "judging.md").read_text(encoding="utf-8").split())
    assert kept_words(record) in said
    finding = next(finding.text for finding in findings() if finding.name == "kept-epochs")
    assert kept_words(record) in " ".join(finding.split())
    assert held_out_words(record) in " ".join(finding.split())
    assert agreement_words(record) in " ".join(finding.split())
    assert agreement_words(record) in said


def test_the_choice_is_worth_it_on_the_images_that_are_searched(record: dict[str, Any]) -> None:
    of = record["summary"]["training images"]
    assert of["map@r"]["better"] > of["map@r"]["worse"]
    assert of["map@r"]["mean gain"] > 0
    kept, last = of["map@r"]["worst against the start"]
    assert kept > last


def test_a_gain_is_that_of_the_kept_epoch_over_the_last() -> None:
    epochs = [{"epoch": epoch, "second opinion": value, "second opinion error": 0.01,
               "test images": {"map@r": value * 100, "recall@1": 50.0}} for epoch, value in enumerate((0.1, 0.3, 0.2))]
    assert choice(epochs) == (1, 2)
    assert gain(epochs, "test images", "map@r") == 10
    assert gain(epochs, "test images", "recall@1") == 0
    summary = summarize([epochs], "test images")
    assert (summary["changed"], summary["start kept"], summary["map@r"]["better"], summary["recall@1"]["better"]) == (
        1, 0, 1, 0)
    assert summary["map@r"]["worst against the start"] == [20, 10]


def test_a_judge_over_epochs_is_right_by_sign_order_and_its_best_epoch() -> None:
    def of(judged: list[float], true: list[float]) -> dict[str, float]:
        return agreement([[{"second opinion": seen, "test images": {"map@r": value}}
                           for seen, value in zip(judged, true, strict=True)]], "test images")

    assert of([0, 1, 2, 3], [10, 11, 13, 20]) == {
        "runs": 1, "median correlation": 1, "epochs beyond 2 points": 2, "same sign": 2, "mean regret": 0,
        "largest regret": 0}
    assert of([0, 3, -1], [10, 5, 13]) == {
        "runs": 1, "median correlation": -1, "epochs beyond 2 points": 2, "same sign": 0, "mean regret": 8,
        "largest regret": 8}


def test_on_the_images_that_are_searched_the_judge_meets_its_goals_over_all_epochs(record: dict[str, Any]) -> None:
    of = record["agreement"]["training images"]
    assert of["same sign"] >= 0.95 * of["epochs beyond 2 points"]
    assert of["largest regret"] <= 3


def test_runs_of_several_seeds_stand_side_by_side(record: dict[str, Any]) -> None:
    keys = [key_of(spec(seed=seed)) for seed in range(3)]
    assert keys == ["digits, pixels: RPML", f"digits, pixels: RPML{SEED}1", f"digits, pixels: RPML{SEED}2"]
    side = next(iter(SIDES))
    assert table(dict.fromkeys(keys, record["runs"][keys[0]]), side)["digits, pixels"]["runs"] == 3
    assert not any(SEED in key for key in record["runs"]), "the published record has one seed of each method"
