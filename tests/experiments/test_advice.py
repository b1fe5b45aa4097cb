"""The record of the advice: images without classes, and how its regret is counted."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import advice
from experiments.advice import TRIALS, Trial, choose_images, hidden_images, measure, scored
from tests.exploration.test_race import comparison
from tests.project.documents import ROOT
from tests.running import write_digits
from udml_core.data import catalog
from udml_core.data.encoders import DEFAULT_BACKBONE
from udml_core.exploration.race import Outcome, Race, Setup
from udml_core.exploration.race_measured import Comparison, Measured
from udml_core.exploration.race_running import METHODS, list_ideas
from udml_core.results.records import FOLDER


def test_a_trial_has_as_many_images_of_each_class_in_random_order() -> None:
    dataset = catalog.load("digits")
    assert dataset.labels is not None
    chosen = choose_images(dataset, Trial("digits", 200))
    assert set(Counter(dataset.labels[chosen].tolist()).values()) == {20}
    assert (np.diff(dataset.labels[chosen]) == 0).mean() < 0.3
    half = choose_images(dataset, Trial("digits", 100, "test"))
    assert set(dataset.labels[half].tolist()) == {5, 6, 7, 8, 9}, "the classes of the test half"


def test_the_folder_of_a_trial_does_not_tell_its_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = catalog.load(str(write_digits(tmp_path / "digits", 60)))
    monkeypatch.setitem(TRIALS, "small", Trial(str(tmp_path / "digits"), 40))
    hidden, labels = hidden_images("small", tmp_path / "runs")
    assert hidden.labels is None
    assert len(hidden) == len(labels) == 40
    assert hidden.names[:2] == ("00000.png", "00001.png")
    own = {source.images[index].tobytes(): source.labels[index] for index in range(60)}  # type: ignore[index]
    assert [own[hidden.images[index].tobytes()] for index in range(40)] == labels.tolist()
    (tmp_path / "runs" / "images" / "small" / "00000.png").touch()
    assert (hidden_images("small", tmp_path / "runs")[1] == labels).all(), "the images are copied once"


@pytest.mark.parametrize(("serves", "advised", "regret", "of_start"), [
    ("first", "Whitening", 1.0, 3.0), ("groups", "Re-ranking", 0.0, 15.0)])
def test_the_regret_is_what_the_advice_loses_in_the_measure_that_it_serves(
        serves: Any, advised: str, regret: float, of_start: float, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = {"": (80.0, 30.0), "whiten": (82.0, 35.0), "rerank": (83.0, 45.0)}
    monkeypatch.setattr(advice, "score", lambda setup, *_: dict(zip(("recall@1", "map@r"), truth[setup.recipe],
                                                                    strict=True)))
    rows = [Outcome(name=name, setup=Setup(backbone="net", recipe=recipe), kept=recipe == "whiten", run="run",
                    against_best=comparison("better"), against_start=comparison("better", "better", size))
            for name, recipe, size in (("Whitening", "whiten", 0.02), ("Re-ranking", "rerank", 0.03))]
    late = Outcome(name="PLM", setup=Setup(backbone="net", method="plm"), state="not tried", seconds=99)
    race = Race(serves=serves, budget=5, start=Setup(backbone="net"), run="run", outcomes=(*rows, late))
    of = scored(race, catalog.load("digits"), np.arange(10) % 2, Path())
    assert (of["advised"], of["truly best"]) == (advised, "Re-ranking")
    assert (of["summary"]["regret"], of["summary"]["regret of the start"]) == (regret, of_start)
    assert of["not judged"] == {"PLM": "expected 99 s"}
    assert of["rows"]["Whitening"]["kept"]


def record() -> dict[str, Any]:
    """Return the races of the record by title."""
    races: dict[str, Any] = json.loads((FOLDER / "advice.json").read_text(encoding="utf-8"))["datasets"]
    return races


def test_the_advice_of_the_record_never_loses_much_against_the_start() -> None:
    assert len(record()) == 2 * len(TRIALS)
    for of in record().values():
        assert of["summary"]["advice"] > of["summary"]["start"] - 1
        assert (of["largest gain"], of["advised"]) == advised_by(of)
        assert of["rows"][of["advised"]][of["measure"]] == of["summary"]["advice"]


def test_the_texts_state_the_figures_of_the_record() -> None:
    summaries = {title: of["summary"] for title, of in record().items()}
    means = [f"{np.mean([of[name] for of in summaries.values()]):.2f}"
             for name in ("regret", "regret of the largest gain", "regret of the start")]
    said = (FOLDER / "findings.toml").read_text(encoding="utf-8").partition("[advice]")[2].partition("\n[")[0]
    words = " ".join(said.split())
    for title, of in summaries.items():
        assert f"{title.partition(',')[0]} {of['start']:.1f} → {of['advice']:.1f}" in words
    assert f"The regret is {means[0]} points on average, that of the largest gain {means[1]}" in words
    assert f"that of the frozen features {means[2]}" in words
    judging = " ".join((ROOT / "docs" / "judging.md").read_text(encoding="utf-8").split())
    assert f"the advice loses {means[0]} points on average" in judging
    assert f"the largest gain {means[1]}" in judging
    changes = " ".join((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split())
    assert f"its regret is {means[0]} points on average, against {means[1]} of the largest gain" in changes


def measured(values: list[Any]) -> Measured:
    """Return a stored verdict with its figures."""
    return Measured.model_validate(dict(zip(("verdict", "difference", "low", "high"), values, strict=True)))


def verdicts_of(key: str, measure: str) -> list[tuple[str, float]]:
    """Return the verdict and the true difference of every candidate of the record."""
    said = []
    for of in record().values():
        rows = {name: row for name, row in of["rows"].items() if name != "Frozen features"}
        said += [(measured(row[key]).said, row[measure] - of["rows"]["Frozen features"][measure])
                 for row in rows.values()]
    return said


def test_the_text_states_what_the_races_said_wrongly() -> None:
    words = " ".join((FOLDER / "findings.toml").read_text(encoding="utf-8").partition("[advice]")[2].split())
    first, groups = (verdicts_of(f"{name} against the start", measure)
                     for name, measure in (("first results", "recall@1"), ("groups", "map@r")))
    lost = [[gain for verdict, gain in said if verdict == "better" and gain < 0] for said in (first, groups)]
    better = [sum(verdict == "better" for verdict, _ in said) for said in (first, groups)]
    assert f"of {better[0]} called better in first results none loses R@1" in words
    assert (len(lost[0]), len(lost[1])) == (0, 2)
    assert f"of {better[1]} called better in whole groups two lose up to {-min(lost[1]):.1f} points" in words
    decided = [[(verdict == "better") == (gain > 0) for verdict, gain in said
                if abs(gain) > 2 and verdict != "cannot tell"] for said in (first, groups)]
    share = f"{100 * np.mean(decided[0]):.0f} %"
    assert f"{sum(decided[0])} of {len(decided[0])} verdicts on first results are right ({share}" in words
    assert all(decided[1])
    assert f"all {len(decided[1])} on whole groups" in words
    false = max(gain for verdict, gain in first if verdict == "worse")
    assert f"gain up to {false:.1f} points of R@1 where it is said" in words
    reached = sum(of["summary"]["regret"] <= (1 if of["measure"] == "recall@1" else 3) for of in record().values())
    assert f"{reached} of {len(record())} races reach them" in words
    minutes = {name: [of["minutes"] for of in record().values() if of["measure"] == name]
               for name in ("recall@1", "map@r")}
    assert f"took {min(minutes['recall@1']):.1f} to {max(minutes['recall@1']):.1f} minutes beside other work" in words
    assert f"{min(minutes['map@r']):.1f} to {max(minutes['map@r']):.1f}. In three races" in words
    assert sum(bool(of["not judged"]) for of in record().values()) == 3


def advised_by(of: dict[str, Any]) -> tuple[str, str]:
    """Return the largest gain, and what the rule advises, from the stored opinions."""
    serves = "first results" if of["measure"] == "recall@1" else "groups"

    outcomes = [Outcome(name=name, setup=Setup(backbone="net", recipe=""), against_start=Comparison(
        first=measured(row["first results against the start"]), groups=measured(row["groups against the start"]),
        judges=())) for name, row in of["rows"].items() if name != "Frozen features"]
    race = Race(serves="first" if of["measure"] == "recall@1" else "groups", budget=5, start=Setup(backbone="net"),
                run="run", outcomes=tuple(outcomes))
    if race.largest is None:
        return "Frozen features", "Frozen features"
    level = [name for name, compared in of["compared with the largest gain"].items()
             if measured(compared[serves]).alone != "better"]
    return race.largest.name, level[0] if level else race.largest.name


def setups_of(rows: dict[str, Any]) -> dict[str, Setup]:
    """Return the search of each candidate of a race: a change of the best so far, which kept candidates replace."""
    start = Setup(backbone=DEFAULT_BACKBONE)
    changes = {idea.name: idea.change for idea in list_ideas([], {name: name for name in METHODS}, has_images=True)}
    setups, best = dict[str, Setup](), start
    for name, row in rows.items():
        if name in changes and (setup := changes[name](best)) is not None:
            setups[name] = setup
            best = setup if row["kept"] else best
    return setups


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("name", "same"), [("digits", 1), ("clothes", 0)])
def test_a_race_of_less_than_a_minute_agrees_with_the_record(name: str, same: int, tmp_path: Path) -> None:
    dataset, labels = hidden_images(name, tmp_path)
    raced = measure(dataset, labels, "groups", argparse.Namespace(budget=0.75, runs=tmp_path))
    recorded = record()[f"{name}, whole groups"]
    assert raced["summary"]["start"] == pytest.approx(recorded["summary"]["start"], abs=0.1), "the same images"
    assert raced["summary"]["regret"] <= 3, "of MAP@R, against the best candidate of its time"
    gains = [of["summary"]["advice"] - of["summary"]["start"] for of in (raced, recorded)]
    assert gains[0] > gains[1] / 4, "a busy machine tries less, but whitening comes early"
    setups = [{setup: of["rows"][found] for found, setup in setups_of(of["rows"]).items()} for of in (raced, recorded)]
    both = setups[0].keys() & setups[1].keys()
    assert len(both) >= same, "whitening at least: a slow machine has no time for the views of the record"
    for setup in both:
        for key in ("first results against the start", "groups against the start"):
            own, known = (of[setup][key] for of in setups)
            assert own[1:] == pytest.approx(known[1:], abs=0.002), (setup, key)
