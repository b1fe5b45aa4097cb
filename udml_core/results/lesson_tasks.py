"""Tasks of the course: what a student tries with a real run after a lesson, and whether it is solved.

A task is checked from what the student's own runs have stored. No figure in an answer comes from this file, except
the bounds that the task's text states.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import sqrt
from statistics import mean, stdev
from typing import Any, Protocol

from udml_core.base.errors import counted

HALF = 0.45, 0.55
"""What counts as half."""
METRIC_POINTS, HARM_POINTS, LEAK_POINTS, LEAD_POINTS, MAP_POINTS, REFINED_POINTS, JOINED_POINTS = 3, 10, 3, 3, 1, 10, 2
"""Differences in points that the tasks ask for."""
RANK_KEPT = 0.6
"""Share of the start's effective rank below which an embedding has collapsed."""
FEWEST_CLUSTERS, COVERED = 20, 0.9
"""Clusters of two or more images, and the share of images in them, that the task on ε asks for."""
APART = 0.12
"""Mean similarity of different images that the task on τ asks for."""
AVERAGE = re.compile(r"average(:[^+]*)?")
"""A recipe of one average over neighbors."""
SEEDS = 3
STUDENT = {2: 4.30, 3: 2.78, 4: 2.45, 5: 2.31, 6: 2.23, 7: 2.18, 8: 2.14, 9: 2.12, 10: 2.10}
"""Standard errors of a difference that chance alone exceeds in one case of 20, by the runs of each setting."""


class Evidence(Protocol):
    """What one run of a student has stored, as far as tasks read it."""

    @property
    def id(self) -> str:
        """The id of the run."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The options and hyper-parameters of the run by name."""

    def epochs(self) -> Sequence[Mapping[str, Any]]:
        """Return the curves by epoch, epoch 0 first."""

    def measures(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the evaluation in percent, by embedding and measure."""

    def cluster_sizes(self) -> Sequence[int]:
        """Return the sizes of the pseudo-labels' clusters in the last epoch; none without clusters."""

    def analyses(self, kind: str) -> Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Return settings and findings of the student's finished analyses of a kind, newest first."""


@dataclass(frozen=True)
class Result:
    """What a student's runs say about a task.

    Attributes:
        is_solved: Whether the task is solved.
        words: One sentence with the runs' own numbers.
    """

    is_solved: bool
    words: str


Check = Callable[[Sequence[Evidence]], "Result | None"]
"""From runs of the task, newest first, to a result; None if they lack what it reads."""


@dataclass(frozen=True)
class Task:
    """What to try with a real run after a lesson.

    Attributes:
        text: What to do and what counts as solved, in at most 30 words.
        options: Options of the run that the task is about; a run with other values does not count.
        check: Whether runs solve it.
        fields: Hyper-parameters that the form begins with.
        more: Further commands of the command line after the training.
        vary: Options that the student may change.
        fixed: Hyper-parameters without which a run does not count.
    """

    text: str
    options: Mapping[str, str]
    check: Check
    fields: Mapping[str, Any] = field(default_factory=dict)
    more: tuple[str, ...] = ()
    vary: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def query(self) -> dict[str, str]:
        """The parameters of the address of Lab with these settings."""
        written = ",".join(f"{name}:{value if isinstance(value, str) else json.dumps(value)}"
                           for name, value in self.fields.items())
        return {**self.options, **({"fields": written} if written else {"preset": "default"})}

    @property
    def command(self) -> str:
        """The command of the command line that does the same; the student changes its values."""
        parts = [f"--{name.replace('_', '-')} {value}" for name, value in self.options.items()]
        parts += [f"--set {name}={value if isinstance(value, str) else json.dumps(value)}"
                  for name, value in self.fields.items()]
        return "\n".join((f"udml train {' '.join(parts)}", *self.more))

    def result(self, runs: Sequence[Evidence]) -> Result | None:
        """Return what a student's runs say, newest first; None without a run that the task is about."""
        needed = {**{name: value for name, value in self.options.items() if name not in self.vary}, **self.fixed}
        own = [run for run in runs if all(str(run.settings.get(name)) == str(needed[name]) for name in needed)]
        return self.check(own) if own else None


def points(value: float) -> str:
    """Return a measure in percent in words."""
    return f"{value:.1f}\N{NO-BREAK SPACE}%"


def percent(share: float) -> str:
    """Return a share in words."""
    return f"{100 * share:.0f}\N{NO-BREAK SPACE}%"


def _last(run: Evidence, name: str) -> float | None:
    """Return the last value of a curve."""
    rows = run.epochs()
    value = rows[-1].get(name) if rows else None
    return None if value is None else float(value)


def _measure(run: Evidence, name: str, embedding: str = "final") -> float | None:
    value = run.measures().get(embedding, {}).get(name)
    return None if value is None else float(value)


def _first_solved(results: Iterator[Result]) -> Result | None:
    """Return the newest result that solves the task, else the newest."""
    newest = None
    for result in results:
        if result.is_solved:
            return result
        newest = newest or result
    return newest


def half_of(curve: str, what: str, name: str, symbol: str, unit: str, falls: bool) -> Check:
    """Return the check that half of something happens in the last epoch.

    Args:
        curve: The curve that holds the share.
        what: What the share counts, with a verb.
        name: The field that decides it.
        symbol: Its symbol.
        unit: Its unit.
        falls: Whether the share falls when the field rises.
    """
    def of_run(run: Evidence) -> Result | None:
        share = _last(run, curve)
        if share is None:
            return None
        at = f"{percent(share)} {what} at {symbol} = {float(run.settings[name]):g}{unit}"
        if HALF[0] <= share <= HALF[1]:
            return Result(True, f"{at}: solved.")
        return Result(False, f"{at}: try a {'larger' if (share > HALF[1]) == falls else 'smaller'} {symbol}.")

    return lambda runs: _first_solved(result for run in runs if (result := of_run(run)) is not None)


def two_metrics(runs: Sequence[Evidence]) -> Result | None:
    """Check that one learned metric finds more of a class than raw pixels, and another less."""
    gains = [(final - frozen, int(run.settings["dimension"])) for run in runs
             if (final := _measure(run, "map@r")) is not None
             and (frozen := _measure(run, "map@r", "frozen")) is not None]
    if not gains:
        return None
    best, worst = max(gains), min(gains)
    if best[0] >= METRIC_POINTS and worst[0] <= -METRIC_POINTS:
        return Result(True, f"MAP@R is {best[0]:.1f} points above the pixels with {counted(best[1], 'number')}, and "
                            f"{-worst[0]:.1f} below with {counted(worst[1], 'number')}: solved.")
    missing = "better than the pixels" if best[0] < METRIC_POINTS else "worse than the pixels"
    gain, numbers = gains[0]
    return Result(False, f"With {counted(numbers, 'number')} MAP@R is {abs(gain):.1f} points "
                         f"{'above' if gain >= 0 else 'below'} the pixels. A metric {missing} by {METRIC_POINTS} "
                         "points is missing: try another dimension.")


def hard_triplets(runs: Sequence[Evidence]) -> Result | None:
    """Check that violating triplets alone cost MAP@R, in two runs that differ only in mining."""
    results = (_harm(*pair) for pair in _pairs_that_differ(runs, "mining"))
    if known := _first_solved(result for result in results if result is not None):
        return known
    mining, alpha = runs[0].settings.get("mining"), runs[0].settings.get("alpha")
    return Result(False, f"The newest run has {mining} triplets at α = {float(alpha or 0):g}°: a second run that "
                         "differs only in Mining is missing.")


def _harm(one: Evidence, other: Evidence) -> Result | None:
    """Return what mining costs, from a run with it and a run without it."""
    mined, plain = (one, other) if one.settings["mining"] == "violating" else (other, one)
    values = _measure(mined, "map@r"), _measure(plain, "map@r")
    if values[0] is None or values[1] is None:
        return None
    cost, alpha = values[1] - values[0], float(mined.settings["alpha"])
    at = (f"At α = {alpha:g}° violating triplets alone end at a MAP@R of {points(values[0])}, random triplets at "
          f"{points(values[1])}")
    if cost >= HARM_POINTS:
        return Result(True, f"{at}: solved.")
    return Result(False, f"{at}: make the violating triplets harder by another α.")


def look_alikes(runs: Sequence[Evidence]) -> Result | None:
    """Check that τ lets the push reach enough images, and yet reach look-alikes harder than others."""
    def of_run(run: Evidence) -> Result | None:
        similarity = _last(run, "mean similarity")
        if similarity is None:
            return None
        words = (f"At τ = {float(run.settings['temperature']):g} different images end at a mean similarity of "
                 f"{similarity:.2f}")
        return Result(True, f"{words}: solved.") if similarity <= APART else Result(
            False, f"{words}: try another τ. A small τ pushes few look-alikes, a large τ nearly all images equally.")

    return _first_solved(result for run in runs if (result := of_run(run)) is not None)


def clusters(runs: Sequence[Evidence]) -> Result | None:
    """Check that ε neither merges classes nor shatters them, as far as coverage and the number of clusters tell."""
    def of_run(run: Evidence) -> Result | None:
        sizes = run.cluster_sizes()
        if not sizes:
            return None
        several = [size for size in sizes if size > 1]
        coverage = sum(several) / sum(sizes)
        at = (f"At ε = {float(run.settings['epsilon']):g} {counted(len(several), 'cluster')} of two or more images "
              f"cover {percent(coverage)} of the images")
        if coverage < COVERED:
            return Result(False, f"{at}: ε shatters too much, try a smaller ε.")
        if len(several) < FEWEST_CLUSTERS:
            return Result(False, f"{at}: ε merges too much, try a larger ε.")
        return Result(True, f"{at}: solved.")

    return _first_solved(result for run in runs if (result := of_run(run)) is not None)


def collapse(runs: Sequence[Evidence]) -> Result | None:
    """Check that an embedding collapsed while its loss fell."""
    def of_run(run: Evidence) -> Result | None:
        rows = [row for row in run.epochs() if "loss" in row]
        ranks = [row["effective rank"] for row in run.epochs() if "effective rank" in row]
        if len(rows) < 2 or len(ranks) < 2:
            return None
        rate = f"At learning rate {float(run.settings['learning_rate']):g}"
        first, last, share = rows[0]["loss"], rows[-1]["loss"], ranks[-1] / ranks[0]
        at = (f"{rate} the loss goes from {first:.3g} to {last:.3g}, and the effective rank from {ranks[0]:.1f} to "
              f"{ranks[-1]:.1f}")
        if last >= first:
            return Result(False, f"{at}: the loss does not fall, try another learning rate.")
        if share >= RANK_KEPT:
            return Result(False, f"{at}: too few directions are lost, try another learning rate.")
        return Result(True, f"{at}: solved.")

    return _first_solved(result for run in runs if (result := of_run(run)) is not None)


def two_measures(runs: Sequence[Evidence]) -> Result | None:
    """Check that of two runs each leads the other by one measure."""
    known = [(_images(run), first, group) for run in runs
             if (first := _measure(run, "recall@1")) is not None and (group := _measure(run, "map@r")) is not None]
    best: tuple[float, float] | None = None
    for (images, first, group), (others, other_first, other_group) in combinations(known, 2):
        leads = max((first - other_first, other_group - group), (other_first - first, group - other_group), key=min)
        if images == others and (best is None or min(leads) > min(best)):
            best = leads
    if best is None:
        return Result(False, "One run is measured: a second run on the same images is missing.") if known else None
    words = f"One run leads in R@1 by {best[0]:.1f} points, and the other in MAP@R by {best[1]:.1f}"
    if min(best) >= LEAD_POINTS:
        return Result(True, f"{words}: solved.")
    if min(best) <= 0:
        return Result(False, f"Of {counted(len(known), 'run')}, the one that is ahead in R@1 is ahead in MAP@R as "
                             "well: try another method or width.")
    return Result(False, f"{words}: {LEAD_POINTS} points each are asked for.")


def real_gain(runs: Sequence[Evidence]) -> Result | None:
    """Check that a difference between the newest two settings is larger than chance explains."""
    groups: dict[str, list[tuple[Evidence, float]]] = defaultdict(list)
    for run in runs:
        value = _measure(run, "map@r")
        if value is not None:
            groups[_without(run, "seed")].append((run, value))
    several = [group for group in groups.values() if len({run.settings["seed"] for run, _ in group}) >= SEEDS]
    if not groups:
        return None
    if len(several) < 2:
        most = max(len({run.settings["seed"] for run, _ in group}) for group in groups.values())
        return Result(False, f"{counted(len(several), 'setting')} with {SEEDS} seeds, and at most "
                             f"{counted(most, 'seed')} of one setting: two settings with {SEEDS} seeds are needed.")
    return _gain(*several[:2])  # only the newest two: of many pairs, chance alone would make one look real


def _gain(one: Sequence[tuple[Evidence, float]], other: Sequence[tuple[Evidence, float]]) -> Result:
    """Return whether the means of two settings differ by more than chance explains."""
    first, second = ([value for _, value in {run.settings["seed"]: (run, value) for run, value in group}.values()]
                     for group in (one, other))
    error = sqrt(stdev(first) ** 2 / len(first) + stdev(second) ** 2 / len(second))
    gain, bound = abs(mean(first) - mean(second)), STUDENT[min(len(first), len(second), max(STUDENT))] * error
    words = (f"The means of {len(first)} and {len(second)} seeds differ by {gain:.1f} points of MAP@R, and chance "
             f"alone explains up to {bound:.1f}")
    return Result(True, f"{words}: solved.") if gain > bound else Result(
        False, f"{words}: try a larger change of one setting, or more seeds.")


def two_maps(runs: Sequence[Evidence]) -> Result | None:
    """Check that two t-SNE maps of one run differ in how many true neighbors they keep together."""
    def of_run(run: Evidence) -> Result | None:
        groups: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for settings, found in run.analyses("tsne"):
            others = {name: value for name, value in settings.items() if name != "perplexity"}
            groups[str(others)].append((float(found["continuity"]), float(settings["perplexity"])))
        maps = max(groups.values(), key=len, default=[])
        if not maps:
            return None
        best, worst = max(maps), min(maps)
        words = (f"Continuity is {points(100 * best[0])} at perplexity {best[1]:g} and {points(100 * worst[0])} at "
                 f"{worst[1]:g}")
        if len(maps) > 1 and 100 * (best[0] - worst[0]) >= MAP_POINTS:
            return Result(True, f"{words}: solved.")
        return Result(False, f"{words if len(maps) > 1 else words.partition(' and ')[0]}: try another perplexity.")

    return _first_solved(result for run in runs if (result := of_run(run)) is not None)


def two_refinements(runs: Sequence[Evidence]) -> Result | None:
    """Check that one average over neighbors helps a run and another, over more neighbors, harms it."""
    def of_run(run: Evidence) -> Result | None:
        gains = [(found["map@r"][1] - found["map@r"][0], str(settings["recipe"]))
                 for settings, found in run.analyses("refine")
                 if "map@r" in found and AVERAGE.fullmatch(str(settings["recipe"]))]
        if not gains:
            return None
        best, worst = max(gains), min(gains)
        words = f"{best[1]} changes MAP@R by {best[0]:+.1f} points"
        if len(gains) > 1:
            words += f", and {worst[1]} by {worst[0]:+.1f}"
        if best[0] >= REFINED_POINTS and worst[0] < 0:
            return Result(True, f"{words}: solved.")
        missing = f"gains {REFINED_POINTS} points" if best[0] < REFINED_POINTS else "loses"
        return Result(False, f"{words}: a recipe that {missing} is missing.")

    return _first_solved(result for run in runs if (result := of_run(run)) is not None)


def sure_judges(runs: Sequence[Evidence]) -> Result | None:
    """Check that judges that took no part are sure that a run finds whole groups better than the pixels."""
    def of_run(run: Evidence) -> Result | None:
        found = next((found for _, found in run.analyses("opinion")
                      if found["reference"] == "frozen" and "final" in found["verdicts"]), None)
        if found is None:
            return None
        verdict = found["verdicts"]["final"]["whole group"]
        bounds = [f"{100 * of['whole group']['low']:+.1f} to {100 * of['whole group']['high']:+.1f}"
                  for of in found["opinions"]["final"].values()]
        words = (f"At α = {float(run.settings['alpha']):g}° the judges' intervals are "
                 f"{' and '.join(bounds)} hundredths, so their verdict is “{verdict}”")
        return Result(True, f"{words}: solved.") if verdict == "better" else Result(
            False, f"{words}: try another α.")

    known = _first_solved(result for run in runs if (result := of_run(run)) is not None)
    return known or Result(False, "None of your runs has a second opinion yet: it follows a run by itself.")


def joined_encoders(runs: Sequence[Evidence]) -> Result | None:
    """Check that two encoders side by side beat both alone."""
    single = {str(run.settings["backbone"]): value for run in reversed(runs)
              if (value := _measure(run, "map@r")) is not None}  # the newest run of each is the last

    def of_run(run: Evidence) -> Result | None:
        name = str(run.settings["backbone"])
        parts = [part.partition("*")[0] for part in name.split("+")]
        if len(parts) < 2 or name not in single or run.settings.get("whitening") != "none":
            return None
        if missing := [part for part in parts if part not in single]:
            return Result(False, f"{name} ends at a MAP@R of {points(single[name])}: a run with {missing[0]} alone is "
                                 "missing.")
        best = max(parts, key=single.__getitem__)
        words = f"{name} ends at a MAP@R of {points(single[name])}, and {best} alone at {points(single[best])}"
        if single[name] - single[best] >= JOINED_POINTS:
            return Result(True, f"{words}: solved.")
        return Result(False, f"{words}: join encoders whose errors differ more.")

    known = _first_solved(result for run in runs if (result := of_run(run)) is not None)
    if known or not single:
        return known
    return Result(False, f"{counted(len(single), 'encoder')} alone measured: a run with two joined is missing.")


def _pairs_that_differ(runs: Sequence[Evidence], name: str) -> Iterator[tuple[Evidence, Evidence]]:
    """Yield pairs of runs that are equal in every setting but one."""
    keyed = [(run, run.settings.get(name), _without(run, name)) for run in runs]
    for (one, value, rest), (other, other_value, other_rest) in combinations(keyed, 2):
        if value != other_value and rest == other_rest:
            yield one, other


def _without(run: Evidence, name: str) -> str:
    """Return the settings of a run but one, as a key."""
    return json.dumps({key: value for key, value in run.settings.items() if key != name}, sort_keys=True, default=str)


def _images(run: Evidence) -> tuple[Any, ...]:
    """Return what decides the images of a run's test half."""
    return tuple(run.settings.get(name) for name in ("dataset", "fingerprint", "split", "seed"))


def leaking_labels(runs: Sequence[Evidence]) -> Result | None:
    """Check that labels that spread less far end at a higher MAP@R, in two runs that differ only in γ."""
    def of_pair(one: Evidence, other: Evidence) -> Result | None:
        near, far = sorted((one, other), key=lambda run: float(run.settings["gamma"]))
        values = _measure(near, "map@r"), _measure(far, "map@r")
        if values[0] is None or values[1] is None:
            return None
        words = (f"MAP@R is {points(values[0])} at γ = {float(near.settings['gamma']):g} and {points(values[1])} at "
                 f"γ = {float(far.settings['gamma']):g}")
        if values[0] - values[1] >= LEAK_POINTS:
            return Result(True, f"{words}: solved.")
        return Result(False, f"{words}: try another γ.")

    results = (of_pair(*pair) for pair in _pairs_that_differ(runs, "gamma"))
    return _first_solved(result for result in results if result is not None) or Result(
        False, f"The newest run has γ = {float(runs[0].settings['gamma']):g}: a second run that differs only in γ is "
               "missing.")


DIGITS = {"dataset": "digits", "backbone": "pixels", "split": "seen"}
RPML = {**DIGITS, "method": "rpml"}
TASKS: Mapping[str, Task] = {
    "metric": Task(
        f"Learn two metrics with NCA: one whose MAP@R is {METRIC_POINTS} points above the pixels, and one that is "
        f"{METRIC_POINTS} points below. Change only the dimension.",
        {**DIGITS, "method": "nca"}, two_metrics, {"dimension": 4}),
    "triplets": Task(
        "Find the angle α at which half of the triplets violate their bound in the last epoch. 45 to 55 % count as "
        "half.",
        RPML, half_of("violating", "of the triplets violated", "alpha", "α", "°", falls=True),
        {"dimension": 8, "alpha": 45.0}, fixed={"mining": "random"}),
    "hardness": Task(
        "Train two runs that differ only in Mining. Find an angle α at which violating triplets alone cost at least "
        f"{HARM_POINTS} points of MAP@R.",
        RPML, hard_triplets, {"dimension": 8, "alpha": 45.0, "mining": "violating"}),
    "epsilon": Task(
        f"Find an ε at which at least {FEWEST_CLUSTERS} clusters of two or more images cover {100 * COVERED:.0f} % of "
        "the images.",
        RPML, clusters, {"dimension": 8, "epsilon": 0.5, "epochs": 1}),
    "flat": Task(
        "Each flat tests 20 candidates. Find the threshold T at which half of them are admitted in the last epoch. "
        "45 to 55 % count as half.",
        {**DIGITS, "method": "plm"},
        half_of("admitted", "of the candidates were admitted", "threshold", "T", "", falls=True),
        {"dimension": 16, "candidates": 20, "threshold": 0.9, "epochs": 3}, fixed={"candidates": 20}),
    "spread": Task(
        f"Two labels a class spread. Train two runs that differ only in γ, so that the smaller γ ends {LEAK_POINTS} "
        "points higher in MAP@R.",
        {**DIGITS, "method": "ssdml", "labels_per_class": "2"}, leaking_labels,
        {"dimension": 8, "gamma": 0.99}),
    "instances": Task(
        "Every emoji is its own class. Find a temperature τ at which different emoji end at a mean similarity of at "
        f"most {APART:g}.",
        {"dataset": "emoji", "backbone": "squeezenet", "size": "64", "split": "seen", "method": "isif"}, look_alikes,
        {"dimension": 16, "epochs": 10, "temperature": 1.0}),
    "collapse": Task(
        "Let a free projection collapse: find a learning rate at which the loss falls, but the effective rank drops "
        f"below {100 * RANK_KEPT:.0f} % of its start.",
        {**DIGITS, "method": "isif"}, collapse, {"dimension": 16, "epochs": 5, "learning_rate": 0.01}),
    "measures": Task(
        f"Train two runs: one leads in R@1 by {LEAD_POINTS} points, the other in MAP@R by {LEAD_POINTS} points.",
        RPML, two_measures, {"dimension": 8, "alpha": 45.0}, vary=("method",)),
    "maps": Task(
        f"Train, then compute two t-SNE maps of the run that differ by {MAP_POINTS} point in continuity. Change only "
        "the perplexity.",
        RPML, two_maps, {"dimension": 8},
        ("udml analyse RUN --kind tsne --perplexity 30",)),
    "seeds": Task(
        f"Find a real gain: train two settings with {SEEDS} seeds each, whose mean MAP@R differs by more than chance "
        "explains.",
        RPML, real_gain, {"dimension": 8, "alpha": 45.0},
        ("# the same with --seed 1 and --seed 2, then with another value",)),
    "reranking": Task(
        f"Start the run, then refine it twice by an average over k neighbors: one k gains {REFINED_POINTS} points of "
        "MAP@R, another loses some.",
        {**DIGITS, "method": "frozen"}, two_refinements, {},
        ("udml refine RUN --recipe average:k=40",)),
    "better": Task(
        "Find an angle α at which the second opinion is sure that whole groups are better than with the pixels. Read "
        "no label.",
        RPML, sure_judges, {"dimension": 8, "alpha": 45.0}, ("udml opinion RUN",)),
    "encoders": Task(
        f"Join two encoders so that their MAP@R is {JOINED_POINTS} points above the better one alone. Train each alone "
        "as well.",
        {"dataset": "digits", "split": "seen", "method": "frozen", "backbone": "pixels+lenet",
                  "whitening": "none"},
        joined_encoders, {}, vary=("backbone", "whitening")),
}
"""The task of each lesson, by the lesson's id."""
