"""Measure the advice: what "Find the best search" chooses on images whose classes it never sees.

    python -m experiments.advice --budget 5 --out assets/results/advice.json
    python -m experiments.advice --budget 5 --dataset birds --out assets/results/advice.json

For each data set of `TRIALS` the images are copied to one folder without class folders, in random order and under new
names; their classes are kept beside the folder. A race for the first results and a race for whole groups then start
from the frozen features of the default backbone, as `udml advise FOLDER` does. Afterwards the classes score the start
and every candidate that was judged, by R@1 and MAP@R with all images as queries and gallery. The regret is what the
advice loses against the best candidate that was judged, in the measure that it serves.

The same command resumes: races of the record stay, and runs, features and races in the folder `--runs` are used again.
Candidates that do not fit into the budget are listed as not judged.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from experiments.recording import provenance, record_parser, write_record
from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import UserError
from udml_core.base.files import replace_text
from udml_core.data import catalog
from udml_core.data.dataset import Dataset, FileImages
from udml_core.data.encoders import DEFAULT_BACKBONE
from udml_core.data.splits import make_split
from udml_core.exploration.race import Duel, Outcome, Race, Setup
from udml_core.exploration.race_measured import Comparison, Measured, Serves
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement import Refiner
from udml_core.numerics.refinement.ranking_measures import retrieval_measures
from udml_core.numerics.refinement.recipe import Views
from udml_core.runs import Run, RunRequest, create_run, find_run
from udml_core.runs.analyses import analysis_at, create_analysis, plan_analysis
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.search import Frames, view_embeddings
from udml_core.work.jobs import plan
from udml_core.work.jobs.raced import race_of
from udml_core.work.sweeps.group import key_of, runs_by_key
from udml_core.work.workers import analyse, train

MEASURES: dict[Serves, str] = {"first": "recall@1", "groups": "map@r"}
QUESTIONS = ("first results", "groups")
"""The names of both measures in the record."""
TITLES: dict[Serves, str] = {"first": "first results", "groups": "whole groups"}
MEASURE_WORDS = {"recall@1": "R@1", "map@r": "MAP@R"}
OVERVIEW = "Regret of the advice and minutes by race"
START = "Frozen features"
PROTOCOL = ("images without class folders, in random order; all images are queries and gallery; percent; the classes "
            "score the candidates only after the race; `kept` marks the steps on which later candidates build; "
            "largest gain: the largest gain against the start that is certain among 50 candidates, however many were "
            "judged; advised: the "
            "simplest candidate that beats the start for certain and that the judges, comparing the two directly, "
            "cannot tell from the largest gain; regret: points that the advice loses against the best candidate that "
            "was judged; minutes of the race on a machine that is also used for other work, without the features of "
            "the start")


@dataclass(frozen=True)
class Trial:
    """A data set whose classes are hidden.

    Attributes:
        source: Name of the data set.
        images: Number of images.
        half: Half of its classes; all if empty.
    """

    source: str
    images: int
    half: Literal["train", "test", ""] = ""


TRIALS = {"birds": Trial("birds100", 1500, "test"), "emoji": Trial("emoji", 1214), "digits": Trial("digits", 1797),
          "clothes": Trial("fashion-mini", 3000), "characters": Trial("omniglot-small", 2720),
          "other birds": Trial("birds100", 1500, "train"), "handwriting": Trial("mnist-t10k", 2000),
          "objects": Trial("cifar10", 2000), "all birds": Trial("birds100", 1500)}
LATER = ("objects", "all birds")
"""Trials that were raced after the rule was found that nothing is said against steps that compare neighbors."""


def main() -> None:
    parser = record_parser(__doc__)
    parser.add_argument("--budget", type=float, required=True, metavar="MINUTES", help="time of each race")
    parser.add_argument("--dataset", action="append", choices=TRIALS, help="measure only this data set; repeatable")
    parser.add_argument("--runs", type=Path, default=Path("runs/advice"), help="folder of the images and the runs")
    options = parser.parse_args()
    record = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {"datasets": {}}
    for name in options.dataset or TRIALS:
        dataset, labels = hidden_images(name, options.runs)
        for serves in get_args(Serves):
            title = f"{name}, {TITLES[serves]}"
            if title not in record["datasets"]:
                record["datasets"][title] = measure(dataset, labels, serves, options)
                print(title, json.dumps(record["datasets"][title]["summary"]), flush=True)
                write_record(options.out, record_of(record["datasets"]))
    write_record(options.out, record_of(record["datasets"]))


def record_of(datasets: dict[str, Any]) -> dict[str, Any]:
    """Return the record with the races in the order of the trials, and what the present rule advises after each."""
    order = [f"{name}, {title}" for name in TRIALS for title in TITLES.values()]
    races = {title: datasets[title] | advice_of(datasets[title]) for title in order if title in datasets}
    return provenance("advice") | {"protocol": PROTOCOL, "overview": overview(races), "datasets": races}


def overview(races: dict[str, Any]) -> dict[str, Any]:
    """Return the table of all races: what each advised, its regret and minutes, and both measures of three searches.

    The best is the best search that was judged, in the measure that the race serves.
    """
    rows = {}
    for title, of in races.items():
        three = {"start": START, "advice": of["advised"], "best": of["truly best"]}
        rows[f"{title}: {of['advised']}"] = {"regret": of["summary"]["regret"], "minutes": round(of["minutes"], 1)} | {
            f"{word} of the {name}": of["rows"][search][measure]
            for measure, word in MEASURE_WORDS.items() for name, search in three.items()}
    return {"title": OVERVIEW, "rows": rows}


def regret_table(races: dict[str, Any]) -> list[str]:
    """Return the lines of the same table in Markdown, as the documents show it."""
    lines = ["| images, what the race serves | advised | start | advice | best tried | regret | minutes |",
             "|---|---|---|---|---|---|---|"]
    for title, of in races.items():
        start, advice, best = (" / ".join(f"{of['rows'][search][measure]:.1f}" for measure in MEASURE_WORDS)
                               for search in (START, of["advised"], of["truly best"]))
        advised = f"{of['advised']}, `{of['recipe']}`" if of["recipe"] else of["advised"]
        lines.append(f"| {title} | {advised} | {start} | {advice} | {best}, {of['truly best']} | "
                     f"{of['summary']['regret']:.2f} | {of['minutes']:.1f} |")
    return lines


def hidden_images(name: str, folder: Path) -> tuple[Dataset, Integers]:
    """Copy the images of a trial to one folder without classes, once; return them with their classes (n,)."""
    trial, target = TRIALS[name], (folder / "images" / name).resolve()
    beside = target.with_suffix(".json")
    if not beside.exists():
        dataset = catalog.load(trial.source)
        chosen = choose_images(dataset, trial)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        names = [copy_image(dataset, index, target / f"{number:05}") for number, index in enumerate(chosen)]
        assert dataset.labels is not None, "a trial has classes"
        replace_text(beside, json.dumps(dict(zip(names, dataset.labels[chosen].tolist(), strict=True))))
    classes = json.loads(beside.read_text(encoding="utf-8"))
    hidden = catalog.load(str(target))
    if hidden.labels is not None:
        raise UserError(f"{target} must have no class folders. Remove the folder, and run the command again.")
    return hidden, np.array([classes[name] for name in hidden.names])


def choose_images(dataset: Dataset, trial: Trial) -> list[int]:
    """Return the images of a trial in random order: as many of each class, as far as it has them."""
    draw = random.Random(0)
    images = getattr(make_split(dataset, "zero-shot"), trial.half) if trial.half else np.arange(len(dataset))
    shuffled = draw.sample(images.tolist(), len(images))
    assert dataset.labels is not None, "a trial has classes"
    rank, seen = dict[int, int](), dict[int, int]()
    for index in shuffled:
        label = int(dataset.labels[index])
        rank[index] = seen[label] = seen.get(label, 0) + 1
    chosen = sorted(shuffled, key=rank.__getitem__)[: trial.images]
    return draw.sample(chosen, len(chosen))


def copy_image(dataset: Dataset, index: int, path: Path) -> str:
    """Write an image under a new name, without a change of its file if it has one; return the name."""
    images = dataset.images
    if isinstance(images, FileImages):
        source = images.root / images.files[index]
        path = path.with_suffix(source.suffix)
        shutil.copyfile(source, path)
    else:
        path = path.with_suffix(".png")
        images[index].save(path)
    return path.name


def measure(dataset: Dataset, labels: Integers, serves: Serves, options: argparse.Namespace) -> dict[str, Any]:
    """Run a race, and score its candidates by the hidden classes."""
    run = frozen_run(dataset, options.runs)
    spec = plan_analysis(Advice, budget=options.budget, serves=serves)
    analysis, began = analysis_at(run, spec), time.monotonic()
    if not analysis.has_spec():
        create_analysis(run, spec)
    if not analysis.is_done():
        analysis.clear_failure()
        status = analyse.work(analysis, train=train.work_aside)
        if status.state != "done":
            raise UserError(f"The race of {dataset.title} is {status.state}. {status.message}")
    status, race = analysis.stored_status(), race_of(analysis)
    assert status.started is not None
    assert status.finished is not None
    print(f"raced in {time.monotonic() - began:.0f} s, {len(race.outcomes)} candidates", flush=True)
    return scored(race, dataset, labels, options.runs) | {"minutes": (status.finished - status.started) / 60}


def frozen_run(dataset: Dataset, folder: Path) -> Run:
    """Return the finished run of the frozen features of all images."""
    spec = plan(RunRequest(dataset=dataset.name, method="frozen", backbone=DEFAULT_BACKBONE, split="all"), dataset)
    run = runs_by_key(folder).get(key_of(spec)) or create_run(spec, folder)
    status = train.work(run, analyse=False)
    if status.state != "done":
        raise UserError(f"The features of {dataset.title} are {status.state}. {status.message}")
    return run


def scored(race: Race, dataset: Dataset, labels: Integers, folder: Path) -> dict[str, Any]:
    """Return the measures of the start and of every judged candidate, and what the advice loses."""
    rows, names = {START: score(race.start, race.run, dataset, labels, folder)}, dict[Setup, str]()
    for outcome in race.outcomes:
        if outcome.state == "judged":  # a step that was tried after others, and then alone, has its name twice
            name = names[outcome.setup] = f"{outcome.name}{', alone' * (outcome.name in rows)}"
            rows[name] = score(outcome.setup, outcome.run, dataset, labels, folder) | judged(outcome)
    of = {"title": f"{len(labels):,} images, {len(np.unique(labels))} classes: {dataset.title}, "
                   f"{TITLES[race.serves]}",
          "measure": MEASURES[race.serves],
          "searches": {name: [setup.method, setup.recipe] for setup, name in names.items()},
          "compared with the largest gain": {names[duel.simpler]: _intervals(duel.comparison) for duel in race.duels},
          "not judged": {outcome.name: outcome.reason or f"expected {outcome.seconds:.0f} s"
                         for outcome in race.outcomes if outcome.state != "judged"}, "rows": rows}
    return of | advice_of(of)


def advice_of(of: dict[str, Any]) -> dict[str, Any]:
    """Return what the rule advises after a race of the record, and what this loses, from the stored differences."""
    rows, measure, names = of["rows"], of["measure"], dict[Setup, str]()
    serves: Serves = "first" if measure == "recall@1" else "groups"
    outcomes = []
    for name, (method, recipe) in of["searches"].items():
        setup = Setup(backbone=DEFAULT_BACKBONE, method=method, recipe=recipe)
        names[setup] = name
        outcomes.append(Outcome(name=name, setup=setup, against_start=comparison_in(rows[name], " against the start")))
    race = Race(serves=serves, budget=0, start=Setup(backbone=DEFAULT_BACKBONE), run="", outcomes=tuple(outcomes))
    setups = {name: setup for setup, name in names.items()}
    if race.largest is not None:
        race = race.model_copy(update={"duels": tuple(
            Duel(simpler=setups[name], largest=race.largest.setup, comparison=comparison_in(values))
            for name, values in of["compared with the largest gain"].items())})
    advised, largest = (START if found is None else names[found.setup] for found in (race.best, race.largest))
    best = max(rows, key=lambda name: rows[name][measure])
    summary = {"start": rows[START][measure], "advice": rows[advised][measure], "best": rows[best][measure],
               "regret": round(rows[best][measure] - rows[advised][measure], 2),
               "regret of the largest gain": round(rows[best][measure] - rows[largest][measure], 2),
               "regret of the start": round(rows[best][measure] - rows[START][measure], 2)}
    return {"advised": advised, "largest gain": largest, "truly best": best, "summary": summary,
            "recipe": "" if race.best is None else race.best.setup.recipe}


def comparison_in(row: dict[str, Any], words: str = "") -> Comparison:
    """Return the comparison that `_intervals` wrote."""
    first, groups = (Measured(verdict=verdict, difference=difference, low=low, high=high)
                     for verdict, difference, low, high in (row[f"{name}{words}"] for name in QUESTIONS))
    return Comparison(first=first, groups=groups, judges=())


def judged(outcome: Outcome) -> dict[str, Any]:
    """Return what the judges said of a candidate, in comparison with the best search before it and with the start."""
    stored: dict[str, Any] = {"kept": outcome.kept, "seconds": round(outcome.seconds, 1)}
    for of, words in ((outcome.against_best, ""), (outcome.against_start, " against the start")):
        assert of is not None, "the candidate was judged"
        stored |= {f"{name}{words}": interval for name, interval in _intervals(of).items()}
    return stored


def _intervals(of: Comparison) -> dict[str, list[Any]]:
    """Return the verdict, the difference and its interval in both measures."""
    return {name: [measured.verdict, *(round(value, 5) for value in (measured.difference, measured.low, measured.high))]
            for name, measured in zip(QUESTIONS, (of.first, of.groups), strict=True)}


def score(setup: Setup, run_id: str, dataset: Dataset, labels: Integers, folder: Path) -> dict[str, Any]:
    """Return R@1 and MAP@R of a search in percent."""
    depth = min(len(labels) - 1, int(np.unique(labels, return_counts=True)[1].max()) - 1)
    ranking = ranking_of(setup, find_run(run_id, folder), dataset, max(depth, 1))
    return {name: round(value, 2) for name, value in retrieval_measures(ranking, labels, labels, inside=True).items()}


def ranking_of(setup: Setup, run: Run, dataset: Dataset, depth: int) -> Array:
    """Return the rows (n, k) of the images nearest to every image, nearest first."""
    views = setup.parsed.find("views")
    rows = np.asarray(run.embeddings("final"))
    if isinstance(views, Views):
        rows = view_embeddings(Frames(run, lambda: dataset).embedder("final"), dataset, views)
    if not setup.recipe:
        return nearest(rows, depth)[1]
    return np.asarray(Refiner(setup.parsed.without("views")).fit(rows).neighbors(depth).indices)


if __name__ == "__main__":
    main()
