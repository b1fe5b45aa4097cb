"""What a sweep found: the combinations with their spread over seeds, and the best one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from udml_core.exploration.paper_tables import Cell, PaperTable, ties
from udml_core.runs import Run
from udml_core.runs.run_comparison import Spread, spread
from udml_core.runs.verdict import MAIN_MEASURE, standing
from udml_core.work.sweeps.criteria import score
from udml_core.work.sweeps.group import Member
from udml_core.work.sweeps.plan import chosen_values


@dataclass(frozen=True)
class Combination:
    """The runs of a sweep that are equal but for the seed.

    Attributes:
        dataset: Name of the data set.
        method: Name of the method.
        values: The values of the varied fields and options, by name.
        members: The runs.
        runs: The finished runs that have measured the criterion.
        score: The criterion over the seeds; None before a run has finished.
        test: MAP@R on the test half in percent over the seeds, which chooses nothing.
    """

    dataset: str
    method: str
    values: dict[str, Any]
    members: tuple[Member, ...]
    runs: tuple[Run, ...]
    score: Spread | None
    test: Spread | None

    @property
    def finished(self) -> list[Run]:
        """The finished runs, whether or not they have measured the criterion."""
        return [member.run for member in self.members if member.run is not None and member.state == "done"]

    @property
    def mean_score(self) -> float:
        """The mean of the criterion over the seeds; −∞ before a run has finished."""
        return self.score.mean if self.score else float("-inf")


def combinations(members: Sequence[Member], varied: Sequence[str], criterion: str) -> list[Combination]:
    """Group runs that are equal but for the seed, and measure each group.

    Args:
        members: The runs of a sweep.
        varied: The names of the varied fields and options.
        criterion: The measure that chooses.
    """
    groups: dict[str, list[Member]] = {}
    for member in members:
        groups.setdefault(json.dumps(member.request.model_dump(exclude={"seed"})), []).append(member)
    return [_measured(group, list(varied), criterion) for group in groups.values()]


def _measured(members: Sequence[Member], varied: list[str], criterion: str) -> Combination:
    request = members[0].request
    done = [member.run for member in members if member.run is not None and member.state == "done"]
    scores = {run: value for run in done if (value := score(run, criterion)) is not None}
    tests = [standing(run.evaluation(), MAIN_MEASURE).after for run in scores]
    values = dict(chosen_values(request, varied))
    return Combination(request.dataset, request.method, values, tuple(members), tuple(scores),
                       spread(list(scores.values())), spread(tests))


def best_combinations(tried: Sequence[Combination]) -> dict[str, Combination]:
    """Return the best combination on each data set by the mean of the criterion over the seeds.

    Only combinations with as many finished seeds as any other on their data set compete, so that a lucky first seed
    does not win. The measure on the test half has no influence; of equal means the first planned wins.

    Returns:
        The best by data set; a data set without a finished run is missing.
    """
    best: dict[str, Combination] = {}
    for name in dict.fromkeys(combination.dataset for combination in tried):
        measured = [combination for combination in tried
                    if combination.dataset == name and combination.score is not None]
        seeds = max((len(combination.runs) for combination in measured), default=0)
        rivals = [combination for combination in measured if len(combination.runs) == seeds]
        if rivals:
            best[name] = max(rivals, key=lambda combination: combination.mean_score)
    return best


def shared_first(tried: Sequence[Combination]) -> list[Combination]:
    """Return the best combinations, and all that are within one standard deviation of the best on their data set."""
    first = []
    for name, best in best_combinations(tried).items():
        rivals = {str(number): combination for number, combination in enumerate(tried)
                  if combination.dataset == name and len(combination.runs) == len(best.runs)}
        scores = {number: combination.score for number, combination in rivals.items()}
        cells = {number: Cell(score.mean, score.deviation or 0.0) for number, score in scores.items() if score}
        first += [rivals[number] for number in ties(cells)]
    return first


def paper_table(tried: Sequence[Combination], titles: Sequence[str], criterion: str) -> PaperTable:
    """Return a table of measured combinations for a paper: the criterion, and MAP@R on the test half.

    Args:
        tried: Combinations on one data set.
        titles: The name of each.
        criterion: The measure that chooses.
    """
    rows: dict[str, dict[str, Cell]] = {}
    for title, combination in zip(titles, tried, strict=True):
        by_seed = {criterion: {run.spec().seed: score(run, criterion) for run in combination.runs},
                   MAIN_MEASURE: {run.spec().seed: standing(run.evaluation(), MAIN_MEASURE).after
                                  for run in combination.runs}}
        known = {name: {seed: value for seed, value in values.items() if value is not None}
                 for name, values in by_seed.items()}
        rows[title] = {name: Cell.of_seeds(values) for name, values in known.items() if values}
    return PaperTable(f"Values tried on {tried[0].dataset}; the test half has no influence on the choice.",
                      {title: row for title, row in rows.items() if row})


def best_run(combination: Combination, criterion: str) -> Run:
    """Return the run of the median score over the seeds, which shows the combination without luck."""
    ordered = sorted(combination.runs, key=lambda run: score(run, criterion) or 0.0)
    return ordered[(len(ordered) - 1) // 2]
