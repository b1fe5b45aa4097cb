"""Repeat the trial of a curator with birds without labels, with today's verdicts beside the truth.

    UDML_DATA=shared/data python -m experiments.unlabeled_birds --out assets/results/unlabeled-birds.json

1,500 photographs of the 50 test species of `birds100` lie in one folder without classes, as in `experiments.advice`.
Their features at 112 pixels are searched as they are, whitened, refined, and after training RPML on them: at its
default α, and at the α that the page Train offered at a click at the time of the first trial, the median angle of the
triplets. The judges compare each with the frozen features, as on every page, and never see a class; afterwards the
classes score the searches.

A run of RPML ends with its last epoch here, as at that time. Today a run without labels keeps the last epoch that a
judge does not find surely worse than the best, the start included; `kept by judges` are the same runs by this rule.

The same command resumes: finished runs and opinions in the folder `--runs` are used again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments.advice import hidden_images, score
from experiments.recording import mean_and_deviation, provenance, record_parser, write_record
from experiments.zero_shot import find_or_create_run, finish_run
from udml_core.base.arrays import Integers
from udml_core.base.errors import listed
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import DEFAULT_BACKBONE
from udml_core.exploration.preview import draw_sample, preview
from udml_core.exploration.race import Setup
from udml_core.exploration.race_figures import said_word
from udml_core.exploration.race_measured import Measured
from udml_core.methods.rpml import RPML
from udml_core.runs import Run, RunRequest
from udml_core.runs.analyses import AnalysisSpec
from udml_core.runs.analyses.kinds.opinion import Opinions, SecondOpinion
from udml_core.runs.opinions import OF_REFINEMENTS, OF_RUN
from udml_core.work.jobs import plan
from udml_core.work.workers import analyse

IMAGES = "birds"
"""The trial of `experiments.advice` whose images are searched."""
SIZE, SEEDS = 112, 3
START = "frozen features"
REFINED = {"whitening": "whiten", "whitening, averages over 20 neighbors, twice": "whiten+average:k=20,times=2,alpha=3"}
KEPT = {"last": "", "judges": ", kept by judges"}
"""The rules by which a run keeps an epoch, with the words that name them."""
QUESTIONS = ("first results", "groups")
"""The names of both measures in the record."""
PROTOCOL = (f"1,500 images of 50 species in one folder, without classes; EfficientNet-Lite0, {SIZE} pixels; all images "
            "are queries and gallery; percent; judges: SqueezeNet and raw pixels; verdicts and intervals hold among "
            "50 comparisons, as on every page; differences of mean cosines to the frozen features; the classes "
            "score the searches only afterwards")


def main() -> None:
    parser = record_parser(__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs/unlabeled-birds"),
                        help="folder of the images and the runs")
    options = parser.parse_args()
    dataset, labels = hidden_images(IMAGES, options.runs)
    frozen = finished(dataset, options.runs, method="frozen")
    rows = {START: [truth(frozen, dataset, labels)]}
    of_refined = opinions_on(frozen, OF_REFINEMENTS, dataset)
    for name, recipe in REFINED.items():
        rows[name] = [truth(frozen, dataset, labels, recipe) | said(of_refined.measured(recipe))]
    alphas = {"default α": RPML().alpha, "median angle": median_angle(frozen)}
    for kept, words in KEPT.items():
        for title, alpha in alphas.items():
            name = f"RPML, {title} of {alpha:g}°{words}"
            rows[name] = [trained(dataset, labels, options.runs, alpha, seed, kept) for seed in range(SEEDS)]
            print(name, rows[name], flush=True)
    write_record(options.out, provenance("unlabeled_birds") | {
        "protocol": PROTOCOL, "weights": {name: round(weight, 3) for name, weight in of_refined.weights.items()},
        "group": of_refined.group, "alphas": alphas, "searches": rows,
        "datasets": {"1,500 birds without labels": {"rows": {name: shown(of) for name, of in rows.items()}}}})


def finished(dataset: Dataset, folder: Path, **options: Any) -> Run:
    """Return the finished run of all images with some options, which may be one of an earlier call."""
    request = RunRequest(dataset=dataset.name, backbone=DEFAULT_BACKBONE, size=SIZE, split="all", **options)
    run = find_or_create_run(plan(request, dataset), folder)
    if run.stored_status().state != "done":
        finish_run(run, request.method)
    return run


def opinions_on(run: Run, request: AnalysisSpec, dataset: Dataset) -> Opinions:
    """Return a second opinion on a run, which may be one of an earlier call."""
    return analyse.keep(run, request, lambda _share, _step: None, dataset).result_of(SecondOpinion)


def trained(dataset: Dataset, labels: Integers, folder: Path, alpha: float, seed: int, kept: str) -> dict[str, Any]:
    """Train RPML; return the measures from classes, the verdicts, the kept epoch and the seconds of work."""
    run = finished(dataset, folder, method="rpml", fields={"alpha": alpha}, seed=seed, select=kept)
    opinions = opinions_on(run, OF_RUN, dataset)
    status = run.stored_status()
    assert status.started is not None
    assert status.finished is not None
    return truth(run, dataset, labels) | said(opinions.measured("final")) | {
        "seed": seed, "kept epoch": run.kept_epoch(), "seconds": round(status.finished - status.started, 1)}


def median_angle(run: Run) -> float:
    """Return the median angle of sample triplets in whole degrees, rounded down: the α that Train offered."""
    method, features = RPML(), np.asarray(run.embeddings("final"))
    sample = draw_sample(features.__getitem__, np.arange(len(features)))
    shape = preview(sample, method.n_neighbors, method.epsilon, method.gamma).shape
    assert shape is not None, "there are triplets"
    return max(1.0, float(np.median(shape.angle)) // 1)


def truth(run: Run, dataset: Dataset, labels: Integers, recipe: str = "") -> dict[str, float]:
    """Return R@1 and MAP@R of a run's embedding, refined by a recipe, in percent."""
    return score(Setup(backbone=DEFAULT_BACKBONE, recipe=recipe), run.id, dataset, labels, run.root)


def said(measured: tuple[Measured, Measured]) -> dict[str, list[Any]]:
    """Return by question what pages say: the verdict, the difference, and its interval among 50 comparisons."""
    return {question: [said_word(of), *(round(value, 5) for value in (of.difference, of.wide.low, of.wide.high))]
            for question, of in zip(QUESTIONS, measured, strict=True)}


def shown(of: list[dict[str, Any]]) -> dict[str, list[float]]:
    """Return the row of a search in the table: means and standard deviations over its seeds.

    Args:
        of: What `trained` or `truth` returned, by seed.
    """
    row = {measure: mean_and_deviation([values[measure] for values in of]) for measure in ("recall@1", "map@r")}
    differences = {f"difference in {question}": [values[question][1] for values in of]
                   for question in QUESTIONS if question in of[0]}
    return row | {name: [round(float(part), 4) for part in (np.mean(values), np.std(values, ddof=len(values) > 1))]
                  for name, values in differences.items()}


def table(searches: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Return the lines of the table in Markdown, as the documents show it; intervals span the intervals of the seeds.

    Args:
        searches: What `trained` or `truth` returned, by the name of the search and by seed.
    """
    lines = ["| search | R@1 | MAP@R | first result | whole group |", "|---|---|---|---|---|"]
    for name, of in searches.items():
        measures = [spread_words(*mean_and_deviation([values[measure] for values in of]), len(of))
                    for measure in ("recall@1", "map@r")]
        verdicts = [verdict_words([values[question] for values in of if question in values]) for question in QUESTIONS]
        lines.append(f"| {' | '.join([name, *measures, *verdicts])} |")
    return lines


def spread_words(mean: float, deviation: float, seeds: int) -> str:
    return f"{mean:.1f}{f' ± {deviation:.1f}' if seeds > 1 else ''}"


def verdict_words(of: list[list[Any]]) -> str:
    """Return the verdicts of all seeds, the mean difference and the span of the intervals; a dash without any."""
    if not of:
        return "–"
    verdicts, differences, lows, highs = zip(*of, strict=True)
    said_of_seeds = listed(list(dict.fromkeys(verdicts)))
    return (f"{said_of_seeds}, {np.mean(differences):+.3f} ({min(lows):+.3f} to {max(highs):+.3f})".replace("-", "−"))


if __name__ == "__main__":
    main()
