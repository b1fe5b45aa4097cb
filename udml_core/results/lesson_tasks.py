"""Tasks of the course: what a student tries with a real run after a lesson, and whether it is solved.

A task is checked from what the student's own runs have stored. No figure in an answer comes from this file, except
the bounds that the task's text states.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import sqrt
from statistics import mean, stdev
from typing import Any, Protocol

from udml_core.results.lesson_texts import Said, said

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
OPEN = said("Open the task in Lab")
NO_RUN = said("No run that you started from this task has finished yet.")
SEEDS = 3
_VERDICTS = {"better": said("better"), "worse": said("worse"), "cannot tell": said("cannot tell")}
STUDENT = {2: 4.30, 3: 2.78, 4: 2.45, 5: 2.31, 6: 2.23, 7: 2.18, 8: 2.14, 9: 2.12, 10: 2.10}
"""Standard errors of a difference that chance alone exceeds in one case of 20, by the runs of each setting."""


class Evidence(Protocol):
    """What one run of a student has stored, as far as tasks read it."""

    @property
    def id(self) -> str:
        """The id of the run."""

    @property
    def created(self) -> float:
        """When the run was started, in seconds since 1970."""

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
        fact: What the runs' own numbers say.
        advice: What to try next.
    """

    is_solved: bool
    fact: Said
    advice: Said

    @property
    def words(self) -> str:
        """The sentence in English."""
        return self.in_language("en")

    def in_language(self, language: str) -> str:
        """Return fact and advice as one sentence in a language."""
        return f"{self.fact.words(language)}: {self.advice.words(language)}"


def solved(fact: Said) -> Result:
    """Return that a fact solves a task."""
    return Result(True, fact, said("solved."))


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
        terms: What words of the text mean, one line each, with the letters of the lesson's picture.
    """

    text: str
    options: Mapping[str, str]
    check: Check
    fields: Mapping[str, Any] = field(default_factory=dict)
    more: tuple[str, ...] = ()
    vary: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    terms: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """The text, and the meanings of its words."""
        return (self.text, *self.terms)

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

    def of_task(self, runs: Sequence[Evidence]) -> list[Evidence]:
        """Return the runs that the task is about, in their order."""
        needed = {**{name: value for name, value in self.options.items() if name not in self.vary}, **self.fixed}
        return [run for run in runs if all(str(run.settings.get(name)) == str(needed[name]) for name in needed)]

    def result(self, runs: Sequence[Evidence]) -> Result | None:
        """Return what a student's runs say, newest first; None without a run that the task is about."""
        own = self.of_task(runs)
        return self.check(own) if own else None

    def begin(self, runs: Sequence[Evidence]) -> Task:
        """Return the task with the hyper-parameters of the newest run that it is about, so that a student goes on."""
        newest = next(iter(self.of_task(runs)), None)
        settings = {} if newest is None else newest.settings
        known = {name: settings[name] for name in self.fields if name in settings}
        return replace(self, fields={**self.fields, **known})


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


def half_of(curve: str, name: str, symbol: str, unit: str, fact: str) -> Check:
    """Return the check that half of something happens in the last epoch; its share falls when a field rises.

    Args:
        curve: The curve that holds the share.
        name: The field that decides it.
        symbol: Its symbol.
        unit: Its unit.
        fact: What the share counts: a text with {share} and {at}, where {at} is a value of the field.
    """
    def check(runs: Sequence[Evidence]) -> Result | None:
        shares: dict[float, float] = {}  # the newest run of each value, newest first
        for run in runs:
            share = _last(run, curve)
            if share is not None:
                shares.setdefault(float(run.settings[name]), share)
        if not shares:
            return None
        def at(value: float) -> str:
            return f"{value:g}{unit}"

        half = next((value for value, share in shares.items() if HALF[0] <= share <= HALF[1]), None)
        shown = next(iter(shares)) if half is None else half
        words = said(fact, share=percent(shares[shown]), at=f"{symbol} = {at(shown)}")
        if half is not None:
            return solved(words)
        above = max((value for value, share in shares.items() if share > HALF[1]), default=None)
        below = min((value for value, share in shares.items() if share < HALF[0]), default=None)
        if above is not None and below is not None:
            return Result(False, words, said("your runs say that half lies between {low} and {high}.",
                                             low=at(above), high=at(below)))
        if below is not None:
            return Result(False, words, said("try a smaller {symbol} than {value}.", symbol=symbol, value=at(below)))
        return Result(False, words, said("try a larger {symbol} than {value}.", symbol=symbol, value=at(above or 0)))

    return check


def two_metrics(runs: Sequence[Evidence]) -> Result | None:
    """Check that one learned metric finds more of a class than raw pixels, and another less."""
    gains = [(final - frozen, int(run.settings["dimension"])) for run in runs
             if (final := _measure(run, "map@r")) is not None
             and (frozen := _measure(run, "map@r", "frozen")) is not None]
    if not gains:
        return None
    best, worst = max(gains), min(gains)
    if best[0] >= METRIC_POINTS and worst[0] <= -METRIC_POINTS:
        return solved(said("MAP@R is {gain} points above the pixels at dimension {best}, and {loss} below at dimension "
                           "{worst}", gain=f"{best[0]:.1f}", best=best[1], loss=f"{-worst[0]:.1f}", worst=worst[1]))
    gain, numbers = gains[0]
    values = {"gain": f"{abs(gain):.1f}", "numbers": str(numbers)}
    fact = (said("At dimension {numbers} MAP@R is {gain} points above the pixels", **values) if gain >= 0
            else said("At dimension {numbers} MAP@R is {gain} points below the pixels", **values))
    if best[0] < METRIC_POINTS:
        return Result(False, fact, said("a metric {points} points better than the pixels is missing, try another "
                                        "dimension.", points=METRIC_POINTS))
    return Result(False, fact, said("a metric {points} points worse than the pixels is missing, try another dimension.",
                                    points=METRIC_POINTS))


def hard_triplets(runs: Sequence[Evidence]) -> Result | None:
    """Check that violating triplets alone cost MAP@R, in two runs that differ only in mining."""
    results = (_harm(*pair) for pair in _pairs_that_differ(runs, "mining"))
    if known := _first_solved(result for result in results if result is not None):
        return known
    mining, alpha = runs[0].settings.get("mining"), runs[0].settings.get("alpha")
    fact = (said("The newest run has violating triplets at α = {alpha}", alpha=f"{float(alpha or 0):g}°")
            if mining == "violating" else said("The newest run has random triplets at α = {alpha}",
                                               alpha=f"{float(alpha or 0):g}°"))
    return Result(False, fact, said("a second run that differs only in Mining is missing."))


def _harm(one: Evidence, other: Evidence) -> Result | None:
    """Return what mining costs, from a run with it and a run without it."""
    mined, plain = (one, other) if one.settings["mining"] == "violating" else (other, one)
    values = _measure(mined, "map@r"), _measure(plain, "map@r")
    if values[0] is None or values[1] is None:
        return None
    cost, alpha = values[1] - values[0], float(mined.settings["alpha"])
    fact = said("At α = {alpha} violating triplets alone end at a MAP@R of {mined}, random triplets at {random}",
                alpha=f"{alpha:g}°", mined=points(values[0]), random=points(values[1]))
    return solved(fact) if cost >= HARM_POINTS else Result(False, fact, said(
        "make the violating triplets harder by another α."))


def look_alikes(runs: Sequence[Evidence]) -> Result | None:
    """Check that τ lets the push reach enough images, and yet reach look-alikes harder than others."""
    def of_run(run: Evidence) -> Result | None:
        similarity = _last(run, "mean similarity")
        if similarity is None:
            return None
        fact = said("At τ = {value} different images end at a mean similarity of {similarity}",
                    value=f"{float(run.settings['temperature']):g}", similarity=f"{similarity:.2f}")
        return solved(fact) if similarity <= APART else Result(False, fact, said(
            "try another τ. A small τ pushes few look-alikes, a large τ nearly all images equally."))

    return _first_solved(result for run in runs if (result := of_run(run)) is not None)


def clusters(runs: Sequence[Evidence]) -> Result | None:
    """Check that ε neither merges classes nor shatters them, as far as coverage and the number of clusters tell."""
    def of_run(run: Evidence) -> Result | None:
        sizes = run.cluster_sizes()
        if not sizes:
            return None
        several = [size for size in sizes if size > 1]
        coverage = sum(several) / sum(sizes)
        fact = said("At ε = {value} the clusters of two or more images cover {share} of the images; there are {count}",
                    value=f"{float(run.settings['epsilon']):g}", count=len(several), share=percent(coverage))
        if coverage < COVERED:
            return Result(False, fact, said("ε shatters too much, try a smaller ε."))
        if len(several) < FEWEST_CLUSTERS:
            return Result(False, fact, said("ε merges too much, try a larger ε."))
        return solved(fact)

    return _first_solved(result for run in runs if (result := of_run(run)) is not None)


def collapse(runs: Sequence[Evidence]) -> Result | None:
    """Check that an embedding collapsed while its loss fell."""
    def of_run(run: Evidence) -> Result | None:
        rows = [row for row in run.epochs() if "loss" in row]
        ranks = [row["effective rank"] for row in run.epochs() if "effective rank" in row]
        if len(rows) < 2 or len(ranks) < 2:
            return None
        first, last, share = rows[0]["loss"], rows[-1]["loss"], ranks[-1] / ranks[0]
        fact = said("At learning rate {rate} the loss goes from {first} to {last}, and the effective rank from {start} "
                    "to {end}", rate=f"{float(run.settings['learning_rate']):g}", first=f"{first:.3g}",
                    last=f"{last:.3g}", start=f"{ranks[0]:.1f}", end=f"{ranks[-1]:.1f}")
        if last >= first:
            return Result(False, fact, said("the loss does not fall, try another learning rate."))
        if share >= RANK_KEPT:
            return Result(False, fact, said("too few directions are lost, try a larger learning rate."))
        return solved(fact)

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
        return Result(False, said("Only one run is measured"), said(
            "a second run on the same images is missing.")) if known else None
    if min(best) <= 0:
        return Result(False, said("The run that is ahead in R@1 is ahead in MAP@R as well"), said(
            "try another method or width."))
    fact = said("One run leads in R@1 by {first} points, and the other in MAP@R by {group}", first=f"{best[0]:.1f}",
                group=f"{best[1]:.1f}")
    return solved(fact) if min(best) >= LEAD_POINTS else Result(False, fact, said(
        "each must lead by {points} points.", points=LEAD_POINTS))


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
        return Result(False, said("Settings with {seeds} seeds: {count}; most seeds of one setting: {most}",
                                  seeds=SEEDS, count=len(several), most=most),
                      said("two settings with {seeds} seeds are needed.", seeds=SEEDS))
    return _gain(*several[:2])  # only the newest two: of many pairs, chance alone would make one look real


def _gain(one: Sequence[tuple[Evidence, float]], other: Sequence[tuple[Evidence, float]]) -> Result:
    """Return whether the means of two settings differ by more than chance explains."""
    first, second = ([value for _, value in {run.settings["seed"]: (run, value) for run, value in group}.values()]
                     for group in (one, other))
    error = sqrt(stdev(first) ** 2 / len(first) + stdev(second) ** 2 / len(second))
    gain, bound = abs(mean(first) - mean(second)), STUDENT[min(len(first), len(second), max(STUDENT))] * error
    fact = said("The means of {first} and {second} seeds differ by {gain} points of MAP@R, and chance alone explains "
                "up to {bound}", first=len(first), second=len(second), gain=f"{gain:.1f}", bound=f"{bound:.1f}")
    return solved(fact) if gain > bound else Result(False, fact, said(
        "try a larger change of one setting, or more seeds."))


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
        values = {"best": points(100 * best[0]), "at": f"{best[1]:g}"}
        if len(maps) == 1:
            return Result(False, said("Continuity is {best} at perplexity {at}", **values), said(
                "try another perplexity."))
        fact = said("Continuity is {best} at perplexity {at} and {worst} at {other}", **values,
                    worst=points(100 * worst[0]), other=f"{worst[1]:g}")
        return solved(fact) if 100 * (best[0] - worst[0]) >= MAP_POINTS else Result(False, fact, said(
            "try another perplexity."))

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
        values = {"best": best[1], "gain": f"{best[0]:+.1f}"}
        fact = (said("{best} changes MAP@R by {gain} points, and {worst} by {loss}", **values, worst=worst[1],
                     loss=f"{worst[0]:+.1f}") if len(gains) > 1
                else said("{best} changes MAP@R by {gain} points", **values))
        if best[0] >= REFINED_POINTS and worst[0] < 0:
            return solved(fact)
        return Result(False, fact, said("a recipe that gains {points} points is missing.", points=REFINED_POINTS)
                      if best[0] < REFINED_POINTS else said("a recipe that loses is missing."))

    return _first_solved(result for run in runs if (result := of_run(run)) is not None)


def sure_judges(runs: Sequence[Evidence]) -> Result | None:
    """Check that judges that took no part are sure that a run finds whole groups better than the pixels."""
    def of_run(run: Evidence) -> Result | None:
        found = next((found for _, found in run.analyses("opinion")
                      if found["reference"] == "frozen" and "final" in found["verdicts"]), None)
        if found is None:
            return None
        verdict = found["verdicts"]["final"]["whole group"]
        bounds = [f"[{100 * of['whole group']['low']:+.1f}; {100 * of['whole group']['high']:+.1f}]".replace("-", "−")
                  for of in found["opinions"]["final"].values()]
        fact = said("At α = {alpha} the judges' intervals in hundredths are {intervals}, so their verdict is "
                    "“{verdict}”", alpha=f"{float(run.settings['alpha']):g}°", intervals=", ".join(bounds),
                    verdict=_VERDICTS[verdict])
        return solved(fact) if verdict == "better" else Result(False, fact, said("try another α."))

    known = _first_solved(result for run in runs if (result := of_run(run)) is not None)
    return known or Result(False, said("None of your runs has a second opinion yet"), said(
        "it follows a run by itself."))


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
            return Result(False, said("{name} ends at a MAP@R of {value}", name=name, value=points(single[name])),
                          said("a run with {encoder} alone is missing.", encoder=missing[0]))
        best = max(parts, key=single.__getitem__)
        fact = said("{name} ends at a MAP@R of {value}, and {encoder} alone at {other}", name=name,
                    value=points(single[name]), encoder=best, other=points(single[best]))
        return solved(fact) if single[name] - single[best] >= JOINED_POINTS else Result(False, fact, said(
            "join encoders whose errors differ more."))

    known = _first_solved(result for run in runs if (result := of_run(run)) is not None)
    if known or not single:
        return known
    return Result(False, said("Encoders measured alone: {names}", names=", ".join(single)), said(
        "a run with two joined is missing."))


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
        fact = said("MAP@R is {near} at γ = {gamma} and {far} at γ = {other}", near=points(values[0]),
                    gamma=f"{float(near.settings['gamma']):g}", far=points(values[1]),
                    other=f"{float(far.settings['gamma']):g}")
        return solved(fact) if values[0] - values[1] >= LEAK_POINTS else Result(False, fact, said("try another γ."))

    results = (of_pair(*pair) for pair in _pairs_that_differ(runs, "gamma"))
    return _first_solved(result for result in results if result is not None) or Result(
        False, said("The newest run has γ = {gamma}", gamma=f"{float(runs[0].settings['gamma']):g}"),
        said("a second run that differs only in γ is missing."))


DIGITS = {"dataset": "digits", "backbone": "pixels", "split": "seen"}
RPML = {**DIGITS, "method": "rpml"}
TASKS: Mapping[str, Task] = {
    "metric": Task(
        f"Learn two metrics with NCA: one whose MAP@R is {METRIC_POINTS} points above the pixels, and one that is "
        f"{METRIC_POINTS} points below. Change only the dimension.",
        {**DIGITS, "method": "nca"}, two_metrics, {"dimension": 4}, terms=(
            said("MAP@R: how much of an image’s class comes first among the most similar images; 100 % if all of it "
                 "does. Lesson 9 computes it.").text,
            said("NCA: a method that learns such a metric from the labels of images. Its dimension is how many numbers "
                 "then stand for an image.").text,
            said("The value of the pixels stands beside that of your run, as raw pixels, when the run has "
                 "ended.").text)),
    "triplets": Task(
        "Find the angle α at which half of the triplets violate their bound in the last epoch. 45 to 55 % count as "
        "half. Change only α.",
        RPML, half_of("violating", "alpha", "α", "°",
                      said("{share} of the triplets violate their bound in the last epoch at {at}").text),
        {"dimension": 8, "alpha": 45.0, "mining": "random"}, fixed={"mining": "random"}, terms=(
            said("Triplet: an anchor A, a positive P of the same cluster and a negative N of another "
                 "cluster. RPML, the method of this task, has no labels: it lets clusters stand in for classes.").text,
            said("α: the largest half angle at N that the bound allows, between the side to A and the line to M, the "
                 "middle of A and P, in the symmetric triangle.").text,
            said("Violated: the half angle at N is larger than α. N is then inside the circle around M.").text,
            said("The histogram of angles in Lab counts triplets before training; the task asks about the last epoch. "
                 "Training pushes N away, so the angles at N shrink, and only at a smaller α does half of them still "
                 "violate the bound.").text)),
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
        half_of("admitted", "threshold", "T", "",
                said("{share} of the candidates are admitted in the last epoch at {at}").text),
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
        RPML, two_measures, {"dimension": 8, "alpha": 45.0}, vary=("method",), terms=(
            said("R@1 asks for one good neighbor, MAP@R for all images of a class. Training on clusters draws whole "
                 "groups together, and can lose nearest images.").text,
            said("The method Frozen features trains nothing. Compare it with RPML, also at other α.").text)),
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
        "Find a bound α (lesson 2) at which the second opinion is sure that whole groups are better than with the "
        "pixels. Only then look at the labels.",
        RPML, sure_judges, {"dimension": 8, "alpha": 45.0}, ("udml opinion RUN",), terms=(
            said("Whole groups: not the first result alone, as in the lesson, but as many results as there are images "
                 "near a typical image.").text,
            said("The verdict: it follows the run by itself and stands on the page Runs, under “Judged without "
                 "labels”.").text,
            said("Sure: the interval of the difference lies above 0. Judges are encoders that took no part in the "
                 "run.").text)),
    "encoders": Task(
        f"Join two encoders so that their MAP@R is {JOINED_POINTS} points above the better one alone. Train each alone "
        "as well.",
        {"dataset": "digits", "split": "seen", "method": "frozen", "backbone": "pixels+lenet",
                  "whitening": "none"},
        joined_encoders, {}, vary=("backbone", "whitening"), terms=(
            said("Lab opens with the pixels and LeNet. If they gain too little together, put an encoder that learned "
                 "from photographs, such as SqueezeNet, in place of one.").text,)),
}
"""The task of each lesson, by the lesson's id."""
