"""What the benchmark says of methods for images without labels."""

from __future__ import annotations

import json

import pytest

from udml_core.methods import METHODS
from udml_core.results.label_free import (
    SUPPORTED,
    UNHARMED,
    changes_of,
    more_words,
    record_words,
    supported_methods,
)
from udml_core.results.records import FOLDER


def test_the_method_that_train_opens_with_is_the_only_one_that_the_benchmark_supports() -> None:
    assert supported_methods() == [SUPPORTED]
    assert next(method for method in METHODS if method.card.name == SUPPORTED).card.supervision == "none"


def test_changes_are_those_of_the_stored_evaluations() -> None:
    record = json.loads((FOLDER / "benchmark.json").read_text(encoding="utf-8"))["datasets"]
    differences = []
    for dataset in record.values():
        rows = {row["method"]: row for row in dataset["rows"].values() if row["is method"]}
        runs = [run["evaluation"]["final"]["recall@1"] for run in rows["rpml"]["runs"]]
        frozen = [run["evaluation"]["final"]["recall@1"] for run in rows["frozen"]["runs"]]
        differences.append(sum(runs) / len(runs) - sum(frozen) / len(frozen))
    change = changes_of("rpml")["recall@1"]
    assert (change.low, change.high) == pytest.approx((min(differences), max(differences)), abs=0.02)
    assert change.datasets == len(record) == 4
    assert change.low < -UNHARMED


def test_the_record_is_a_sentence_and_frozen_features_are_not_compared_with_themselves() -> None:
    assert record_words("rpml") == (
        "It found 0.1 to 2.0 fewer right first images in 100 searches than the plain search, on 4 data sets with known "
        "classes; the score of whole groups (0 to 100) changed by −0.8 to +0.7.")
    assert "PCA found 0.3 to 2.5 fewer right" in record_words("pca", "PCA")
    assert [more_words(*ends) for ends in ((-0.2, 1.9), (0.5, 1.0), (-2.0, -0.1), (0.0, 0.4))] == [
        "0.2 fewer to 1.9 more", "0.5 to 1.0 more", "0.1 to 2.0 fewer", "0.0 to 0.4 more"]
    assert record_words("frozen") == record_words("unknown") == ""
