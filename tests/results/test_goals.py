"""The guide `results.md` names the goals of learning without labels, and states beside each what the records hold."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from tests.project.documents import ROOT
from tests.results.test_summary import MAP, R1, UNTRAINED, benchmark, over_frozen
from udml_core.results.records import FOLDER, findings

GUIDE = " ".join((ROOT / "docs" / "results.md").read_text(encoding="utf-8").split())
ENDS = {"birds100": "birds", "cifar10": "CIFAR-10", "fashion-mini": "clothes"}
"""Data sets of the benchmark that the goals name; emoji is measured in other records, with one seed."""
ROUNDED = 0.005
"""What the two digits of the record leave open."""
RANDOM_START = ("RPML", "sRPML")
"""Methods whose start is a random projection."""


@lru_cache
def record(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return read


def rows_of(name: str, title: str) -> dict[str, Any]:
    """Return the rows of the table of a record whose title begins or ends so."""
    return next(dict(table["rows"]) for full, table in record(name)["datasets"].items()
                if full.startswith(title) or full.endswith(title))


def both(row: dict[str, Any]) -> str:
    """Return R@1 and MAP@R of a row, with the spread where it has one."""
    return " / ".join(f"{value[0]:.1f} ± {value[1]:.1f}" if isinstance(value, list) else f"{value:.1f}"
                      for value in (row[R1], row[MAP]))


def gains(dataset: str) -> dict[str, dict[str, float]]:
    """Return what each training without labels gains over its own start, in the record of epochs."""
    found = {}
    for name, epochs in record("kept-epochs")["runs"].items():
        if name.startswith(f"{dataset}, efficientnet-lite0: "):
            start, end = (epochs[place]["test images"] for place in (0, -1))
            found[name.split(": ")[1]] = {measure: end[measure] - start[measure] for measure in (MAP, R1)}
    return found


def trained(dataset: str) -> list[str]:
    """List the rows of the benchmark that train without labels, in its order."""
    rows = record("benchmark")["datasets"][dataset]["rows"]
    return [name for name, row in rows.items()
            if row["is method"] and row["supervision"] == "none" and name not in UNTRAINED]


def below(dataset: str, measure: str) -> list[str]:
    """List the trainings without labels that end below the frozen features by more than their spread, worst first."""
    losses = {name: -over_frozen(dataset, name, measure) for name in trained(dataset)}
    found = [name for name, loss in losses.items() if loss > benchmark(dataset, name, measure)[1] + ROUNDED]
    return sorted(found, key=lambda name: -losses[name])


def listed(names: list[str]) -> str:
    """Join names by commas and "and"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def goal_rows() -> list[str]:
    """Return the rows of the table of goals."""
    inductive = rows_of("side-by-side", "Birds, 100 species, 112 px")["Both, not whitened, step whiten, six views"]
    choice = rows_of("refinement-birds100-both", "choice on the training classes")
    recipe = max(choice, key=lambda name: choice[name][R1] + choice[name][MAP])
    inside = rows_of("refinement-birds100-both", "gallery seen, with the queries in it")[recipe]
    outside = rows_of("refinement-birds100-both", "gallery seen, queries from outside")[recipe]
    distilled = record("birds100-last")["rows"]["Distilled refinement"]["summary"]["final"]
    met = {True: "met", False: "missed"}

    def is_met(row: dict[str, Any], recall: float, score: float) -> bool:
        first, second = (row[name][0] if isinstance(row[name], list) else row[name] for name in (R1, MAP))
        return bool(first >= recall and second >= score)

    return [
        f"| two encoders, views and whitening, no test image seen | 87 / 43 | {both(inductive)} | "
        f"{met[is_met(inductive, 87, 43)]} |",
        f"| the same with the unlabeled gallery | 87 / 64 | {both(inside)} | {met[is_met(inside, 87, 64)]} |",
        f"| the same, queries from outside the gallery | – | {both(outside)} | below 87 / 64 |",
        f"| distilled into EfficientNet-Lite0, one view | 83 / 38 | {both(distilled)} | "
        f"{met[is_met(distilled, 83, 38)]} |"]


def said_of(name: str) -> str:
    """Return the text of a finding in one line."""
    return " ".join(next(finding.text for finding in findings() if finding.name == name).split())


def test_the_table_of_goals_states_the_records() -> None:
    rows = goal_rows()
    assert "\n".join(rows) in (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert [row.split(" | ")[-1] for row in rows] == ["missed |", "met |", "below 87 / 64 |", "missed |"]
    twenty = record("birds100-last")["rows"]["Distilled refinement, 20 epochs"]["summary"]["final"]
    two = record("birds100-last")["rows"]["Distilled refinement"]["summary"]["final"]
    assert ("later goal of R@1 83 and MAP@R 38: two epochs reach {:.1f} and {:.1f}, twenty {:.1f} and {:.1f}".format(
        *(row[measure][0] for row in (two, twenty) for measure in (R1, MAP)))) in said_of("birds100-last")


def test_the_guide_says_which_trainings_gain_over_their_own_start() -> None:
    of = {dataset: gains(dataset) for dataset in ("birds100", "cifar10", "emoji", "fashion-mini")}
    gaining = {dataset: tuple(name for name, gain in rows.items() if gain[MAP] >= 2 and gain[R1] >= 0)
               for dataset, rows in of.items()}
    assert gaining == {"birds100": RANDOM_START, "cifar10": RANDOM_START, "emoji": RANDOM_START, "fashion-mini": ()}
    numbers = [" and ".join(f"{of[dataset][name][MAP]:.1f}" for name in RANDOM_START)
               for dataset in ("birds100", "cifar10", "emoji")]
    others = max(gain[MAP] for rows in of.values() for name, gain in rows.items() if name not in RANDOM_START)
    (count,) = {len(rows) - len(RANDOM_START) for rows in of.values()}
    for words in ("met to the letter by RPML and sRPML alone, whose start is a random projection (birds {} points, "
                  "CIFAR-10 {}, emoji {}; on clothes R@1 falls)".format(*numbers),
                  f"Of the other {count} trainings none gains more than {others:.1f} on any of the four"):
        assert words in GUIDE
    assert "met to the letter by RPML and sRPML alone, from a random projection" in said_of("kept-epochs")


def test_the_guide_names_the_trainings_that_end_below_the_frozen_features() -> None:
    for dataset, title in ENDS.items():
        assert f"on {title} {listed(below(dataset, MAP))}" in GUIDE
    emoji = record("second-opinion")["places"]["emoji, efficientnet-lite0"]["comparisons"]
    losses = {measure: [emoji[name]["truth"][measure][0] - emoji[name]["truth"][measure][1] for name in gains("emoji")]
              for measure in (MAP, R1)}
    assert min(losses[R1]) > 0, "all"
    assert (f"on emoji all {len(losses[MAP])} by {min(losses[MAP]):.1f} to {max(losses[MAP]):.1f} points") in GUIDE
    counts = {dataset: len(below(dataset, R1)) for dataset in ENDS}
    assert counts["cifar10"] == counts["fashion-mini"] == len(losses[R1]) == len(trained("birds100"))
    assert set(trained("birds100")) - set(below("birds100", R1)) == {"Distilled refinement"}
    assert (f"By R@1 all {counts['cifar10']} are below on CIFAR-10, clothes and emoji, and on birds all but distilled "
            "refinement") in GUIDE
    assert "by MAP@R {} of {} trainings without labels on birds, {} on CIFAR-10 and {} on clothes".format(
        len(below("birds100", MAP)), len(trained("birds100")), *(len(below(name, MAP)) for name in (
            "cifar10", "fashion-mini"))) in said_of("benchmark")
