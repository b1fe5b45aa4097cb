"""The record of the advice: images without classes, and how its regret is counted."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import advice
from experiments.advice import (
    LATER,
    MEASURES,
    START,
    TRIALS,
    Trial,
    advice_of,
    choose_images,
    comparison_in,
    frozen_run,
    hidden_images,
    measure,
    overview,
    ranking_of,
    regret_table,
    scored,
)
from tests.exploration.test_race import comparison
from tests.project.documents import ROOT
from tests.running import write_digits
from udml_core.data import catalog
from udml_core.data.encoders import DEFAULT_BACKBONE
from udml_core.exploration.race import Outcome, Race, Setup
from udml_core.exploration.race_measured import Measured
from udml_core.numerics.refinement.recipe import Recipe
from udml_core.results.records import FOLDER
from udml_core.runs.analyses import plan_analysis
from udml_core.runs.analyses.kinds.opinion import SecondOpinion
from udml_core.work.workers import analyse


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
        assert of == of | advice_of(of), "what the present rule advises"
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


def test_the_table_of_regrets_follows_from_the_rows_of_the_races() -> None:
    races = record()
    stored = json.loads((FOLDER / "advice.json").read_text(encoding="utf-8"))["overview"]
    assert stored == overview(races), "the page Results shows this table first"
    judging = (ROOT / "docs" / "judging.md").read_text(encoding="utf-8").splitlines()
    lines = regret_table(races)
    assert judging[judging.index(lines[0]):][:len(lines) + 1] == [*lines, ""]
    for (title, of), line, (name, row) in zip(races.items(), lines[2:], stored["rows"].items(), strict=True):
        assert name == f"{title}: {of['advised']}"
        word = {"recall@1": "R@1", "map@r": "MAP@R"}[of["measure"]]
        values = {search: values[of["measure"]] for search, values in of["rows"].items()}
        assert row["regret"] == pytest.approx(max(values.values()) - values[of["advised"]], abs=1e-6)
        assert row["regret"] == pytest.approx(row[f"{word} of the best"] - row[f"{word} of the advice"], abs=1e-6)
        assert row[f"{word} of the start"] == values[START]
        assert line.endswith(f"| {row['regret']:.2f} | {of['minutes']:.1f} |")
    assert "budget" not in {key for of in races.values() for key in of}, "the text says that it is not held"


def verdicts_of(measure: str, of_best: bool = False, titles: Collection[str] = ()) -> list[tuple[Measured, float]]:
    """Return what judges measured and the true difference of every candidate of the record.

    Args:
        measure: R@1 or MAP@R.
        of_best: Whether the best search so far is compared with, in place of the frozen features.
        titles: The races; all by default.
    """
    said = []
    for of in [of for title, of in record().items() if not titles or title in titles]:
        best = START
        for name, row in of["rows"].items():
            if name != START:
                rival = best if of_best else START
                compared = comparison_in(row, "" if of_best else " against the start").between(
                    *(Recipe.parse(of["searches"].get(each, ["", ""])[1]) for each in (rival, name)))
                told = compared.first if measure == "recall@1" else compared.groups
                said.append((told, row[measure] - of["rows"][rival][measure]))
                best = name if row["kept"] else best
    return said


def right(said: list[tuple[Measured, float]]) -> tuple[int, int]:
    """Return how many verdicts on differences above two points are right, and how many there are."""
    told = [(of.said == "better") == (gain > 0) for of, gain in said if abs(gain) > 2 and of.said != "cannot tell"]
    return sum(told), len(told)


def test_the_text_states_what_the_races_said_wrongly() -> None:
    words = " ".join((FOLDER / "findings.toml").read_text(encoding="utf-8").partition("[advice]")[2].split())
    first, groups = (verdicts_of(measure) for measure in MEASURES.values())
    lost = [[gain for of, gain in said if of.said == "better" and gain < 0] for said in (first, groups)]
    better = [sum(of.said == "better" for of, _ in said) for said in (first, groups)]
    assert f"of {better[0]} called better in first results none loses R@1" in words
    assert (len(lost[0]), len(lost[1])) == (0, 2)
    assert f"of {better[1]} called better in whole groups two lose up to {-min(lost[1]):.1f} points" in words
    at_start, so_far = ([verdicts_of(measure, of_best) for measure in MEASURES.values()] for of_best in (False, True))
    assert [right(said) for said in at_start] == [(57, 57), (186, 186)]
    assert "all 57 verdicts on first results and all 186 on whole groups are right" in words
    assert [right(said) for said in so_far] == [(11, 11), (82, 83)]
    assert "from the best search so far, all 11 and 82 of 83" in words
    silent = [[(gain, of.difference) for of, gain in said if of.is_undervalued] for said in so_far]
    false = [[gain for gain, difference in of if gain * difference < 0] for of in silent]
    assert f"judges called {len(silent[0])} searches worse" in words
    assert f"in first results and {len(silent[1])} in whole groups for a step that compares neighbors" in words
    assert (f"{len(false[0])} and {len(false[1])} of these are better, by up to {max(false[0]):.1f} points of R@1 and "
            f"{max(false[1]):.1f} of MAP@R") in words
    judging = " ".join((ROOT / "docs" / "judging.md").read_text(encoding="utf-8").split())
    assert (f"{len(silent[1])} in whole groups, and {len(false[1])} of these are better, by up to {max(false[1]):.1f} "
            "points of MAP@R") in judging
    replaced = [of["summary"]["regret of the largest gain"] - of["summary"]["regret"] for of in record().values()
                if of["advised"] != of["largest gain"]]
    assert len(replaced) == 9
    assert f"it wins up to {max(replaced):.1f} points of MAP@R" in words
    assert f"costs at most {-min(replaced):.1f}, on characters" in words
    missed = {title.removesuffix(", first results"): of["summary"]["regret"] for title, of in record().items()
              if of["summary"]["regret"] > (1 if of["measure"] == "recall@1" else 3)}
    assert missed == {"emoji": 2.63, "characters": 1.48, "other birds": 1.8, "objects": 1.75, "all birds": 2.13,
                      "all birds, whole groups": 8.14}
    assert "The largest, 8.1 points of MAP@R, is on all birds" in words
    assert ("2.6 points on emoji, 2.1 on all birds and 1.8 on other birds and on objects (CIFAR-10), where no gain is "
            "certain, and 1.5 on characters") in words
    reached = sum(of["summary"]["regret"] <= (1 if of["measure"] == "recall@1" else 3) for of in record().values())
    assert f"{reached} of {len(record())} races reach them" in words
    minutes = {name: [of["minutes"] for of in record().values() if of["measure"] == name]
               for name in ("recall@1", "map@r")}
    assert f"took {min(minutes['recall@1']):.1f} to {max(minutes['recall@1']):.1f} minutes beside other work" in words
    assert f"{min(minutes['map@r']):.1f} to {max(minutes['map@r']):.1f}. In six races" in words
    assert sum(bool(of["not judged"]) for of in record().values()) == 6


def test_the_text_states_what_the_rule_changes_where_it_was_found_and_later(monkeypatch: pytest.MonkeyPatch) -> None:
    words = " ".join((FOLDER / "findings.toml").read_text(encoding="utf-8").partition("[advice]")[2].split())
    earlier = [of for title, of in record().items() if not title.startswith(LATER)]
    later = {title: of for title, of in record().items() if title.startswith(LATER)}
    silent = {measure: [gain * of.difference > 0 for of, gain in verdicts_of(measure, of_best=True, titles=later)
                        if of.is_undervalued] for measure in MEASURES.values()}
    assert (len(silent["recall@1"]), silent["recall@1"].count(False), silent["map@r"]) == (11, 2, [False] * 5)
    assert "judges called five searches worse than the best so far for such a step, and all five are better" in words
    assert "in first results they called eleven worse, and two of these are better" in words
    now = np.mean([of["summary"]["regret"] for of in earlier])
    monkeypatch.setattr("udml_core.exploration.race_measured.untold", lambda *_: ())
    before = np.mean([advice_of(of)["summary"]["regret"] for of in earlier])
    assert f"the regret of the first fourteen races was {before:.2f} in place of {now:.2f}" in words
    assert all(advice_of(of)["advised"] == of["advised"] for of in later.values()), "the rule changes no advice there"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("name", "budget"), [("digits", 0.75), ("clothes", 2.0)])
def test_a_short_race_agrees_with_the_record(name: str, budget: float, tmp_path: Path) -> None:
    """As in the record, features of views and of judges are stored before a race for whole groups begins."""
    dataset, labels = hidden_images(name, tmp_path)
    start = frozen_run(dataset, tmp_path)
    ranking_of(Setup(backbone=DEFAULT_BACKBONE, recipe="views"), start, dataset, 1)
    opinion = plan_analysis(SecondOpinion, frames=("final",), recipes=("whiten",))
    analyse.keep(start, opinion, lambda _share, _step: None, dataset)
    raced = measure(dataset, labels, "groups", argparse.Namespace(budget=budget, runs=tmp_path))
    recorded = record()[f"{name}, whole groups"]
    assert raced["summary"]["start"] == pytest.approx(recorded["summary"]["start"], abs=0.1), "the same images"
    assert raced["summary"]["regret"] <= 3, "of MAP@R, against the best candidate of its time"
    gains = [of["summary"]["advice"] - of["summary"]["start"] for of in (raced, recorded)]
    assert gains[0] > gains[1] / 4, "a busy machine tries less, but whitening comes early"
    setups = [{tuple(search): of["rows"][name] for name, search in of["searches"].items()} for of in (raced, recorded)]
    both = setups[0].keys() & setups[1].keys()
    assert both, "views at least, which come first"
    for setup in both:
        for key in ("first results against the start", "groups against the start"):
            own, known = (of[setup][key] for of in setups)
            assert own[1:] == pytest.approx(known[1:], abs=0.002), (setup, key)
