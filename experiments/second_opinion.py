"""Test the second opinion: how well an encoder that took no part predicts measures from labels that it never sees.

    python -m experiments.second_opinion --budget 60 --out assets/results/second-opinion.json
    python -m experiments.second_opinion --budget 10 --dataset digits --out assets/results/second-opinion.json

Each data set of `tracks` has one encoder and several judges. Every row of the benchmark is trained as a linear head,
and every recipe of `RECIPES` refines the frozen features; each is compared with the frozen features on the test half,
by Recall@1 and MAP@R from labels, and by each judge without labels. The record keeps every comparison, for several
numbers of results that a judge looks at, and lists every verdict that is false.

The judges vote as in the app. The numbers of results with which the verdicts of a data set are counted are chosen on
the other data sets only, by agreement, then by correlation. Beside them stand measures of the embedding alone:
reciprocity, hubness, effective rank, the share of neighbors that stay, the exponent of the spectrum (α-ReQ: K. K.
Agrawal et al., "α-ReQ: Assessing representation quality in self-supervised learning by measuring eigenspectrum decay",
NeurIPS 2022; better where it is nearer to 1), and the silhouette of clusters of k-means (used without labels in
arXiv 2406.02465).

Rows run in the order of their expected time, and the same command resumes: finished runs of an equal spec in the
folder `--runs` are reused, and comparisons of the record stay. A row that does not fit into the remaining time is not
started. At the end the command lists what was not measured.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from experiments.benchmark_rows import TRACKS, Compared, Track, benchmark_rows
from experiments.campaign import first_images
from experiments.recording import provenance, record_parser, write_record
from experiments.zero_shot import find_or_create_run, finish_run, plan_row
from udml_core.base.arrays import Array, Integers
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import features_of
from udml_core.data.splits import make_split
from udml_core.numerics.evaluation import effective_rank
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement import Refiner
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.numerics.refinement.ranking_measures import label_free_measures, retrieval_measures
from udml_core.numerics.second_opinion import Interval, Judge, paired_difference

FIRST, GROUPS = (1, 2, 5, 10, 20), (30, 60, 100, 200)
"""The numbers of results among which a summary chooses."""
RECIPES = ("whiten", "average:k=5", "average:k=10,times=2", "average:k=20,times=2,alpha=3", "whiten+average:k=5",
           "whiten+average:k=10,times=2", "whiten+average:k=20,times=2,alpha=3", "whiten+average:k=40,times=3,alpha=3",
           "rerank", "whiten+rerank", "whiten+diffuse", "reduce:dimension=16", "reduce:dimension=4")
NOISE = (0.3, 0.6, 1.0, 1.5)
"""Standard deviations of noise added to unit features, as shares of their length: embeddings that are worse."""
SEEDS = 3
"""Seeds of every trained row; further seeds are measured after the first of all rows."""
HEADS = 10
"""Passes over the training images of every head."""
JUDGES = {"pixels": ("efficientnet-lite0", "squeezenet"), "efficientnet-lite0": ("squeezenet", "pixels"),
          "squeezenet": ("efficientnet-lite0", "pixels")}
"""The judges of an encoder's embeddings."""
LARGE = 2.0
"""Smallest difference, in points of MAP@R, whose sign must agree."""


def main() -> None:
    parser = record_parser(__doc__)
    parser.add_argument("--budget", type=float, required=True, metavar="MINUTES", help="time for all rows")
    parser.add_argument("--dataset", action="append", help="measure only this data set; repeatable")
    parser.add_argument("--runs", type=Path, default=Path("runs/second-opinion"), help="folder that keeps the runs")
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.budget
    record = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {"places": {}}
    for track in tracks():
        if options.dataset and track.dataset not in options.dataset:
            continue
        own = record["places"].setdefault(name_of(track), {"comparisons": {}})["comparisons"]
        for row, measure in comparisons(track, options.runs):
            if row.name in own:
                continue
            if time.monotonic() + row.seconds > until:
                print(f"not measured: {name_of(track)}, {row.name}: needs about {row.seconds:.0f} seconds", flush=True)
                continue
            own[row.name] = measure()
            print(name_of(track), row.name, own[row.name]["truth"], flush=True)
            write_record(options.out, provenance("second_opinion") | {"places": record["places"]})
    summary = {name: summarize(name, record["places"]) for name in record["places"]}
    write_record(options.out, provenance("second_opinion") | {"places": record["places"], "summary": summary})
    print(json.dumps(summary, indent=1))


def tracks() -> Iterator[Track]:
    """Yield the data sets of the benchmark with heads on each encoder, emoji, and handwritten characters."""
    emoji = Track("emoji", "@size=96", "efficientnet-lite0", 96, 607, 100, HEADS, 64, "")
    omniglot = Track("omniglot-small", "@size=96", "efficientnet-lite0", 96, 1360, 340, HEADS, 64, "")
    for track in (*TRACKS, emoji, omniglot):
        yield replace(track, epochs=HEADS, trains="head")
    for track in TRACKS:
        if track.backbone != "pixels":
            yield replace(track, epochs=HEADS, trains="head", backbone="squeezenet",
                          options=f"{track.options} @backbone=squeezenet")


def name_of(track: Track) -> str:
    return f"{track.dataset}, {track.backbone}"


@dataclass(frozen=True)
class Half:
    """The test half of a data set: what every comparison needs.

    Attributes:
        dataset: The whole data set.
        test: Indices of its images.
        labels: Their classes; only the truth reads these.
        frozen: Their frozen features at unit length, as the app compares them.
        training: Frozen features of the training half.
        before: Ranking (n, k) of the frozen features.
        judges: The judges by name.
    """

    dataset: Dataset
    test: Integers
    labels: Integers
    frozen: Array
    training: Array
    before: Integers
    judges: dict[str, Judge]

    @classmethod
    def of(cls, track: Track) -> Half:
        """Read a data set, its features and its judges."""
        dataset = catalog.load(track.dataset)
        split, labels = make_split(dataset, "zero-shot"), np.asarray(dataset.labels)

        def features(backbone: str, size: int) -> Array:
            return np.asarray(features_of(dataset, Encoder(choose_spec(backbone, dataset.native_size, dataset.gray,
                                                                       size=size))))

        own = features(track.backbone, track.size)
        judges = {judge: Judge.of(features(judge, min(32, track.size) if judge == "pixels" else max(96, track.size))
                                  [split.test]) for judge in JUDGES[track.backbone]}
        frozen, test_labels = unit_rows(own[split.test]), labels[split.test]
        return cls(dataset, split.test, test_labels, frozen, unit_rows(own[split.train]),
                   nearest(frozen, deepest(test_labels))[1], judges)

    def compare(self, ranking: Integers, rank: float) -> dict[str, Any]:
        """Compare a ranking with that of the frozen features.

        Args:
            ranking: Rows (n, k), nearest first.
            rank: Effective rank of the embedding.
        """
        queries = np.arange(len(self.test))
        before, after = (retrieval_measures(rows, self.labels, self.labels, inside=True)
                         for rows in (self.before, ranking))
        truth = {name: [round(before[name], 2), round(after[name], 2)] for name in before}
        opinions = {
            name: {**{f"first {count}": opinion(paired_difference(judge.whitened, queries, self.before[:, :count],
                                                                  ranking[:, :count])) for count in FIRST},
                   **{f"group {count}": opinion(paired_difference(judge.refined, queries, self.before[:, :count],
                                                                  ranking[:, :count])) for count in GROUPS}}
            for name, judge in self.judges.items()}
        own = label_free_measures(ranking, self.before)
        own |= {"hubness": -own["hubness"], "effective rank": rank}
        return {"truth": truth, "opinions": opinions, "own": {name: round(value, 3) for name, value in own.items()}}


def deepest(labels: Integers) -> int:
    """Return how many results MAP@R and the largest group need."""
    return min(len(labels) - 1, max(*GROUPS, int(np.unique(labels, return_counts=True)[1].max()) - 1))


def opinion(interval: Interval) -> list[float]:
    """Return difference and standard error as the record stores them."""
    return [round(interval.difference, 6), round(interval.error, 6)]


def comparisons(track: Track, runs: Path) -> Iterator[tuple[Compared, Callable[[], dict[str, Any]]]]:
    """Yield each row of a data set with the function that measures it, cheap rows first."""
    methods = [replace(row, seeds=1) for row in benchmark_rows(track) if row.is_method and row.method != "frozen"]
    if not methods:
        return
    with first_images(methods[0], runs):
        half = Half.of(track)
        for recipe in RECIPES:
            yield replace(methods[0], name=recipe, seconds=2.0), lambda recipe=recipe: refined(half, recipe)
        for share in NOISE:
            yield replace(methods[0], name=f"noise {share}", seconds=2.0), lambda share=share: noisy(half, share)
        for row in sorted(methods, key=lambda row: row.seconds):
            yield row, lambda row=row: trained(half, row, runs)


def refined(half: Half, recipe: str) -> dict[str, Any]:
    """Compare refined features."""
    refiner = Refiner(recipe).fit(half.frozen, training=half.training)
    return half.compare(refiner.neighbors(half.before.shape[1]).indices, effective_rank(refiner.embedding_))


def noisy(half: Half, share: float) -> dict[str, Any]:
    """Compare features with noise."""
    lengths = np.linalg.norm(half.frozen, axis=1, keepdims=True)
    noise = np.random.default_rng(0).standard_normal(half.frozen.shape) / np.sqrt(half.frozen.shape[1])
    return embedded(half, half.frozen + share * lengths * noise)


def trained(half: Half, row: Compared, runs: Path) -> dict[str, Any]:
    """Train a method and compare its embedding."""
    run = find_or_create_run(plan_row(half.dataset, row.row, 0, device="cpu"), runs)
    finish_run(run, row.name)
    return embedded(half, run.embeddings("final")[half.test])


def embedded(half: Half, embedding: Array) -> dict[str, Any]:
    """Compare an embedding, ranked by its own Euclidean distance."""
    return half.compare(nearest(embedding, half.before.shape[1])[1], effective_rank(embedding))


def summarize(name: str, every: dict[str, Any]) -> dict[str, Any]:
    """Return what each judge of a data set predicts, with the numbers of results chosen on the other data sets."""
    others = {other: place for other, place in every.items() if other.split(",")[0] != name.split(",")[0]}
    first = max(FIRST, key=lambda count: mean_correlation(others, f"first {count}", "recall@1"))
    group = max(GROUPS, key=lambda count: mean_correlation(others, f"group {count}", "map@r"))
    rows = list(every[name]["comparisons"].values())
    own = {measure: {truth: round(correlation([row["own"][measure] for row in rows], differences(rows, truth)), 2)
                     for truth in ("recall@1", "map@r")} for measure in rows[0]["own"]} if rows else {}
    return {"comparisons": len(rows), "first": first, "group": group, "own measures": own,
            "judges": {judge: {"first results": judged(rows, judge, f"first {first}", "recall@1"),
                               "groups": judged(rows, judge, f"group {group}", "map@r")}
                       for judge in (rows[0]["opinions"] if rows else {})}}


def mean_correlation(every: dict[str, Any], measure: str, truth: str) -> float:
    """Return the mean correlation over data sets and judges."""
    values = [correlation([row["opinions"][judge][measure][0] for row in rows], differences(rows, truth))
              for place in every.values() if len(rows := list(place["comparisons"].values())) > 2
              for judge in rows[0]["opinions"]]
    return float(np.mean(values)) if values else 0.0


def judged(rows: list[dict[str, Any]], judge: str, measure: str, truth: str) -> dict[str, Any]:
    """Return how well a judge's measure predicts the truth.

    Correlation is Spearman's. Regret is what the embedding that the judge prefers loses against the truly best, in
    points. Agreement is the share of equal signs among differences of more than 2 points. A false "better" is said of
    an embedding that is truly worse.
    """
    opinions = np.array([row["opinions"][judge][measure] for row in rows])
    true = differences(rows, truth)
    says_better, says_worse = (opinions[:, 0] > 1.96 * opinions[:, 1]), (opinions[:, 0] < -1.96 * opinions[:, 1])
    large = np.abs(true) > LARGE
    best = np.append(true, 0.0)  # the frozen features may be chosen too
    return {"correlation": round(correlation(opinions[:, 0], true), 2),
            "regret": round(float(best.max() - best[np.append(opinions[:, 0], 0.0).argmax()]), 2),
            "large": int(large.sum()), "agreement": int((np.sign(opinions[:, 0]) == np.sign(true))[large].sum()),
            "better": int(says_better.sum()), "false better": int((says_better & (true < 0)).sum()),
            "worse": int(says_worse.sum()), "false worse": int((says_worse & (true > 0)).sum())}


def differences(rows: list[dict[str, Any]], truth: str) -> Array:
    return np.array([row["truth"][truth][1] - row["truth"][truth][0] for row in rows])


def correlation(first: Any, second: Any) -> float:
    """Return Spearman's rank correlation; 0 where a side is constant."""
    value = float(spearmanr(first, second).statistic)
    return value if np.isfinite(value) else 0.0


if __name__ == "__main__":
    main()
