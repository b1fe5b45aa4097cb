"""The record of a curator's birds without labels: its table, and what the verdicts say beside the truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import unlabeled_birds
from experiments.unlabeled_birds import (
    REFINED,
    SEEDS,
    START,
    median_angle,
    said,
    shown,
    spread_words,
    table,
    verdict_words,
)
from tests.project.documents import ROOT
from tests.running import worked
from udml_core.exploration.race_measured import Measured
from udml_core.methods.rpml import RPML
from udml_core.results.records import FOLDER, findings

LOSS = 0.5
"""Points that a search may lose without making "better" false."""


def record() -> dict[str, Any]:
    of: dict[str, Any] = json.loads((FOLDER / "unlabeled-birds.json").read_text(encoding="utf-8"))
    return of


def test_the_documents_show_the_table_of_the_record() -> None:
    lines = table(record()["searches"])
    for text in ((ROOT / "docs" / "judging.md").read_text(encoding="utf-8"),
                 next(finding.text for finding in findings() if finding.name == "unlabeled-birds")):
        of = text.splitlines()
        assert of[of.index(lines[2]) - 2:][:len(lines) + 1] == [*lines, ""]


def test_the_text_states_the_figures_of_the_record() -> None:
    of = record()
    text = " ".join(next(finding.text for finding in findings() if finding.name == "unlabeled-birds").split())
    searches, angle = of["searches"], of["alphas"]["median angle"]
    start, (whitened, averaged) = searches[START][0], (searches[name][0] for name in REFINED)
    assert f"the median angle of the triplets, {angle:g}° on these images" in text
    assert of["weights"]["pixels"] / of["weights"]["squeezenet"] == pytest.approx(0.1, abs=0.005)
    assert (f"whitening gains {whitened['recall@1'] - start['recall@1']:.1f} points of R@1 and the averages "
            f"{averaged['recall@1'] - start['recall@1']:.1f}") in text
    assert {row["first results"][0] for row in (whitened, averaged)} == {"no clear difference"}
    first, second, third = searches[f"RPML, median angle of {angle:g}°, kept by judges"]
    assert (first["kept epoch"], third["kept epoch"]) == (0, 0)
    assert f"end at R@1 {first['recall@1']:.1f} and {third['recall@1']:.1f}" in text
    assert f"one keeps epoch {second['kept epoch']}, at {second['recall@1']:.1f}" in text
    assert {row["groups"][0] for row in (first, second, third)} == {"worse"}
    seconds = [row["seconds"] for rows in searches.values() for row in rows if "seconds" in row]
    assert f"took {min(seconds):.0f} to {max(seconds):.0f} seconds" in text


def test_the_table_of_the_page_has_the_means_of_the_seeds() -> None:
    of = record()
    (table_of_page,) = of["datasets"].values()
    assert table_of_page["rows"] == {name: shown(seeds) for name, seeds in of["searches"].items()}
    for name, seeds in of["searches"].items():
        row = table_of_page["rows"][name]
        assert row["map@r"][0] == pytest.approx(np.mean([values["map@r"] for values in seeds]), abs=0.006)
        assert len(seeds) == (SEEDS if name.startswith("RPML") else 1)
    assert of["weights"].keys() == {"squeezenet", "pixels"}
    assert set(of["searches"]) >= {START, *REFINED}


def test_no_verdict_of_the_record_is_against_the_truth() -> None:
    """The method that Train opened with, at the α that it offered, is called worse; refinements are not."""
    of = record()["searches"]
    start = of[START][0]
    for name, seeds in of.items():
        for values in seeds:
            for question, measure in (("first results", "recall@1"), ("groups", "map@r")):
                if question in values:
                    verdict, difference, low, high = values[question]
                    assert (verdict == "worse") <= (values[measure] < start[measure]), (name, question)
                    assert (verdict == "better") <= (values[measure] > start[measure] - LOSS), (name, question)
                    assert low < difference < high
                    assert {"better": low > 0, "worse": high < 0}.get(verdict, True)
    offered = f"RPML, median angle of {record()['alphas']['median angle']:g}°"
    assert {values[question][0] for values in of[offered] for question in ("first results", "groups")} == {"worse"}
    assert {of[name][0]["groups"][0] for name in REFINED} == {"better"}


def test_a_row_has_the_verdicts_of_all_seeds_and_the_span_of_their_intervals() -> None:
    assert verdict_words([]) == "–"
    seeds = [["worse", -0.06, -0.07, -0.05], ["worse", -0.04, -0.06, -0.02]]
    assert verdict_words(seeds) == "worse, −0.050 (−0.070 to −0.020)"
    assert verdict_words([*seeds, ["better", 0.1, 0.05, 0.2]]).startswith("worse and better, +0.000")
    assert (spread_words(60.04, 0.46, 3), spread_words(60.04, 0.0, 1)) == ("60.0 ± 0.5", "60.0")


def test_what_is_stored_is_what_pages_say() -> None:
    sure = Measured(verdict="worse", difference=-0.1, low=-0.14, high=-0.06)
    close = Measured(verdict="worse", difference=-0.1, low=-0.19, high=-0.01)
    doubted = sure.model_copy(update={"untold": ("worse",)})
    assert said((sure, close))["first results"] == ["worse", -0.1, *(round(end, 5) for end in (
        sure.wide.low, sure.wide.high))]
    assert said((sure, close))["groups"][0] == "no clear difference", "it is not certain among 50 comparisons"
    assert said((doubted, close))["first results"][0] == "no verdict"


def test_half_of_the_triplets_exceed_the_offered_angle(tmp_path: Path) -> None:
    run = worked(tmp_path, method="frozen", split="all")
    angle = median_angle(run)
    method, features = RPML(), np.asarray(run.embeddings("final"))
    sample = unlabeled_birds.draw_sample(features.__getitem__, np.arange(len(features)))
    result = unlabeled_birds.preview(sample, method.n_neighbors, method.epsilon, method.gamma)
    assert result.violations(angle) >= 0.5 > result.violations(angle + 1)
