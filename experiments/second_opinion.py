"""Test the second opinion: how well an encoder that took no part predicts measures from labels that it never sees.

    python -m experiments.second_opinion --budget 60 --out assets/results/second-opinion.json
    python -m experiments.second_opinion --budget 10 --dataset digits --out assets/results/second-opinion.json

Each data set of `tracks` has one encoder and several judges. Every row of the benchmark is trained as a linear head,
and every recipe of `RECIPES` refines the frozen features; each is compared with the frozen features on the test half,
by Recall@1 and MAP@R from labels, and by each judge without labels. The record keeps every comparison, for several
numbers of results that a judge looks at, and lists every verdict that is false.

Verdicts are counted twice. "In the app" is the rule of every page: certain among a family of 50 comparisons, and borne
out by the count of queries. Beside it stand verdicts of single comparisons, at 95 %. The numbers of results
with which these are counted on a data set are chosen on the other data sets only, by the goals that they meet there,
then by the share of right verdicts. Nothing else is chosen so: the app's own numbers of results (1 and a typical
group), the view for the weights, three quarters of the weight and how a typical group is counted were fixed after
looking at all data sets.

Beside the verdicts stand measures of the embedding alone: reciprocity, hubness, effective rank, the share of neighbors
that stay, the exponent of the spectrum (α-ReQ: K. K. Agrawal et al., "α-ReQ: Assessing representation quality in
self-supervised learning by measuring eigenspectrum decay", NeurIPS 2022; better where it is nearer to 1), the
silhouette of clusters of k-means, in the embedding and on a UMAP map of it (used without labels in arXiv 2406.02465),
and consistency: the share of an image's neighbors that another view of it has as well.

Rows run in the order of their expected time, and the same command resumes: finished runs of an equal spec in the
folder `--runs` are reused, and comparisons of the record stay. A row that does not fit into the remaining time is not
started. At the end the command lists what was not measured.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.metrics import silhouette_score

from experiments.benchmark_rows import TRACKS, Compared, Track, benchmark_rows
from experiments.campaign import first_images
from experiments.recording import provenance, record_parser, write_record
from experiments.zero_shot import find_or_create_run, finish_run, plan_row
from udml_core.base.arrays import Array, Integers, evenly_spaced
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import features_of
from udml_core.data.judging import OTHER_VIEW
from udml_core.data.refinement_views import view_features_of_some
from udml_core.data.splits import make_split
from udml_core.exploration.jury import combined, counted
from udml_core.exploration.race_measured import Count, Measured, untold
from udml_core.methods.embedder import Embedder
from udml_core.numerics.changed_groups import changed_both
from udml_core.numerics.changed_results import Changed
from udml_core.numerics.evaluation import effective_rank, kmeans_clusters
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.projection.umap import umap_layouts
from udml_core.numerics.refinement import Refiner
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.numerics.refinement.ranking_measures import label_free_measures, retrieval_measures
from udml_core.numerics.refinement.recipe import Recipe
from udml_core.numerics.second_opinion import FIRST as FIRST_RESULTS
from udml_core.numerics.second_opinion import (
    VIEWED,
    Interval,
    Judge,
    Opinion,
    cosine_difference,
    result_cosines,
    steadiness,
    vote,
)
from udml_core.runs.analyses.kinds.opinion import Opinions, recipe_of

FIRST, GROUPS = ("1", "2", "5", "10"), ("30", "60", "100", "typical")
"""The numbers of results among which a summary chooses; `typical` is the size that the judges see, the smallest."""
RECIPES = ("whiten", "average:k=5", "average:k=10,times=2", "average:k=20,times=2,alpha=3", "whiten+average:k=5",
           "whiten+average:k=10,times=2", "whiten+average:k=20,times=2,alpha=3", "whiten+average:k=40,times=3,alpha=3",
           "rerank", "whiten+rerank", "whiten+diffuse", "reduce:dimension=16", "reduce:dimension=4")
SEED = ", seed "
"""What the names of further runs of a method have before the seed."""
NOISE = (0.3, 0.6, 1.0, 1.5)
"""Standard deviations of noise added to unit features, as shares of their length: embeddings that are worse."""
HEADS = 10
"""Passes over the training images of every head."""
JUDGES = {"pixels": ("efficientnet-lite0", "squeezenet"), "efficientnet-lite0": ("squeezenet", "pixels"),
          "squeezenet": ("efficientnet-lite0", "pixels")}
"""The judges of an encoder's embeddings."""
MOST_REGRET = {"recall@1": 1.0, "map@r": 3.0}
"""Goals: what the best-judged embedding may lose against the truly best, in points."""
OWN_WORDS = {"reciprocity": "reciprocity correlates", "hubness": "hubness", "effective rank": "effective rank",
             "alpha-ReQ": "the exponent of the spectrum", "silhouette of k-means": "the silhouette of k-means",
             "silhouette on a UMAP map": "the silhouette on a UMAP map", "consistency": "consistency under views",
             "neighbor stability": "neighbors kept"}
"""What the text of the record calls measures of the embedding alone, in its order."""
CORRELATED = 10
"""Fewest embeddings of a data set over which a correlation is said."""
CLUSTERED = 1000
"""Images that k-means clusters."""
NEARLY_ALL = 0.95
"""Share of changed groups from which nearly all are changed."""
BY_CLASS = "groups by class"
"""The name of what classes say of groups, beside the judges' counts."""
QUESTIONS = {"first result": "recall@1", "whole group": "map@r"}
"""The measure from labels that each question follows."""
APP = {"first result": f"first {FIRST_RESULTS}", "whole group": "group typical"}
"""The measures of a judge that the app uses."""
RULES: dict[str, Callable[[int, int], int]] = {
    "mean alone": lambda mean, _count: mean,
    "mean, unless the count contradicts": lambda mean, count: mean if mean * count >= 0 else 0,
    "mean and count": lambda mean, count: mean if mean == count else 0,
    "count alone": lambda _mean, count: count,
    "mean or count": lambda mean, count: mean or count if mean * count >= 0 else 0}
"""What a verdict may be made of: the sign of a sure mean difference of cosines, and whether surely more queries are
better than worse. The app states the third rule's verdicts, and a race goes by the second."""
APP_RULE = "mean and count"
SIGNS = {"better": 1, "worse": -1, "cannot tell": 0}
LARGE, TINY = 2.0, 0.5
"""Smallest difference in points whose sign must agree, and the largest loss with which "better" is not false."""


def main() -> None:
    parser = record_parser(__doc__)
    parser.add_argument("--budget", type=float, required=True, metavar="MINUTES", help="time for all rows")
    parser.add_argument("--dataset", action="append", help="measure only this data set; repeatable")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each method (default 1)")
    parser.add_argument("--runs", type=Path, default=Path("runs/second-opinion"), help="folder that keeps the runs")
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.budget
    record = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {"places": {}}
    stored = count_of(record["places"])
    for track in tracks():
        if options.dataset is None or track.dataset in options.dataset:
            measure(track, record["places"], options, until)
    places = {name: place for name, place in record["places"].items() if place["comparisons"]}
    summary = {name: summarize(name, places) for name in places}
    totals = {question: total([place[question] for place in summary.values()]) for question in QUESTIONS}
    in_app = {question: total([judged_in_app(place, question) for place in places.values()]) for question in QUESTIONS}
    rules = {question: {rule: total([of for place in places.values() if (of := ruled(place, question, rule))])
                        for rule in RULES} for question in QUESTIONS}
    said = provenance("second_opinion")
    if count_of(record["places"]) == stored:  # what was measured before keeps its provenance
        said |= {name: record[name] for name in said if name in record}
    write_record(options.out, said | {
        "datasets": {question.capitalize(): {"rows": table(summary, question)} for question in QUESTIONS} | {
            "Verdicts of the app against the truth": {"rows": false_verdicts(places)},
            "Embeddings in each column": {"rows": embeddings_by_column(places)}},
        "totals": totals, "totals in the app": in_app, "rules": rules, "summary": summary, "places": places})
    print(json.dumps({"summary": summary, "totals": totals, "totals in the app": in_app}, indent=1))


def count_of(places: dict[str, Any]) -> int:
    """Return the number of measured comparisons."""
    return sum(len(place["comparisons"]) for place in places.values())


def measure(track: Track, places: dict[str, Any], options: argparse.Namespace, until: float) -> None:
    """Measure the rows of a data set that the record lacks and that fit into the time."""
    place = places.setdefault(name_of(track), {"comparisons": {}})
    for row, compute in comparisons(track, options.runs, place, options.seeds):
        stored = place["comparisons"].get(row.name, {"own": {}})
        if "consistency" in stored["own"] and (BY_CLASS in stored or row.name not in RECIPES):
            continue
        if time.monotonic() + row.seconds > until:
            print(f"not measured: {name_of(track)}, {row.name}: needs about {row.seconds:.0f} seconds", flush=True)
            continue
        computed = compute()
        own = computed["own"] | stored["own"]
        place["comparisons"][row.name] = computed | stored | {"own": own}  # what an earlier version measured stays
        print(name_of(track), row.name, place["comparisons"][row.name]["truth"], flush=True)
        write_record(options.out, provenance("second_opinion") | {"places": places})


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
        views: Rows (v,) of some of them, and the frozen features (v, d) of another view of each, as they are.
        training: Frozen features of the training half.
        before: Ranking (n, k) of the frozen features.
        judges: The judges by name.
        group: Number of images of a typical group, as the judges see it.
    """

    dataset: Dataset
    test: Integers
    labels: Integers
    frozen: Array
    views: tuple[Integers, Array]
    training: Array
    before: Integers
    judges: dict[str, Judge]
    group: int

    @classmethod
    def of(cls, track: Track) -> Half:
        """Read a data set, its features and its judges."""
        dataset = catalog.load(track.dataset)
        split, labels = make_split(dataset, "zero-shot"), np.asarray(dataset.labels)

        def encoder(backbone: str, size: int) -> Encoder:
            return Encoder(choose_spec(backbone, dataset.native_size, dataset.gray, size=size))

        seen = evenly_spaced(len(split.test), VIEWED)
        judges = {}
        for judge in JUDGES[track.backbone]:
            of_judge = encoder(judge, min(32, track.size) if judge == "pixels" else max(96, track.size))
            views = view_features_of_some(dataset, of_judge, OTHER_VIEW, split.test[seen])
            judges[judge] = Judge.of(np.asarray(features_of(dataset, of_judge))[split.test], (seen, views))
        searched = encoder(track.backbone, track.size)
        own = unit_rows(features_of(dataset, searched))
        frozen, group = own[split.test], min(judge.group for judge in judges.values())
        shown = view_features_of_some(dataset, searched, OTHER_VIEW, split.test[seen])
        depth = deepest(labels[split.test], group)
        return cls(dataset, split.test, labels[split.test], frozen, (seen, shown), own[split.train],
                   nearest(frozen, depth)[1], judges, group)

    def compare(self, ranking: Integers, embedding: Array, views: Array) -> dict[str, Any]:
        """Compare an embedding with the frozen features.

        Args:
            ranking: Its ranking (n, k), nearest first.
            embedding: The embedding (n, d).
            views: Embeddings (v, d) of the other views of some images.
        """
        queries = np.arange(len(self.test))
        before, after = (retrieval_measures(rows, self.labels, self.labels, inside=True)
                         for rows in (self.before, ranking))
        truth = {name: [round(before[name], 2), round(after[name], 2)] for name in before}

        own = {name: self.seen_by(judge, ranking) for name, judge in self.judges.items()}

        def opinion(name: str, question: str, count: str) -> list[float]:
            depth = self.group if count == "typical" else int(count)
            interval = cosine_difference(len(queries), queries, *(
                (rows[:, :depth], seen[name][question][:, :depth])
                for rows, seen in ((self.before, self.seen_before), (ranking, own))))
            return [round(interval.difference, 6), round(interval.error, 6)]

        opinions = {name: {f"{question} {count}": opinion(name, question, count)
                           for question, counts in (("first", FIRST), ("group", GROUPS)) for count in counts}
                    for name in self.judges}
        counts = {name: self.counts_of(judge, ranking) for name, judge in self.judges.items()}
        return {"truth": truth, "opinions": opinions, "counts": counts,
                "own": self.own_measures(ranking, embedding, views), BY_CLASS: self.by_class(ranking)}

    def by_class(self, ranking: Integers) -> list[float]:
        """Return the shares of queries whose group of results holds more, and fewer, images of the query's class."""
        before, after = ((self.labels[rows[:, :self.group]] == self.labels[:, None]).sum(axis=1)
                         for rows in (self.before, ranking))
        return [round(float(share), 5) for share in ((after > before).mean(), (after < before).mean())]

    def counts_of(self, judge: Judge, ranking: Integers) -> dict[str, list[float]]:
        """Return by question the share of queries that differ, and of these the share that is better."""
        queries = np.arange(len(ranking))
        counts = changed_both(judge, queries, self.before[:, :self.group], ranking[:, :self.group])
        return {question: [round(value, 5) for value in (count.share, count.better, count.low, count.high)]
                for question, count in zip(QUESTIONS, counts, strict=True)}

    @cached_property
    def seen_before(self) -> dict[str, dict[str, Array]]:
        """The cosines of the frozen features' results, as each judge sees them."""
        return {name: self.seen_by(judge, self.before) for name, judge in self.judges.items()}

    def seen_by(self, judge: Judge, ranking: Integers) -> dict[str, Array]:
        """Return a judge's cosines of a ranking's results for both questions."""
        queries, deep = np.arange(len(ranking)), max(self.group, *(int(count) for count in GROUPS[:-1]))
        return {"first": result_cosines(judge.whitened, queries, ranking[:, :int(FIRST[-1])]),
                "group": result_cosines(judge.refined, queries, ranking[:, :deep])}

    def own_measures(self, ranking: Integers, embedding: Array, views: Array) -> dict[str, float]:
        """Return measures that need neither labels nor a judge; higher is better for all."""
        values = label_free_measures(ranking, self.before)
        sample = unit_rows(embedding[evenly_spaced(len(embedding), CLUSTERED)])
        count = max(2, round(len(embedding) / self.group))
        clustered = {"silhouette of k-means": sample,
                     "silhouette on a UMAP map": umap_layouts([sample], min_dist=0.0)[0]}
        values |= {"hubness": -values["hubness"], "effective rank": effective_rank(embedding),
                   "alpha-ReQ": -abs(spectral_exponent(embedding) - 1),
                   "consistency": steadiness(embedding, self.views[0], views)} | {
            name: float(silhouette_score(points, kmeans_clusters(points, count))) for name, points in clustered.items()}
        return {name: round(value, 3) for name, value in values.items()}


def deepest(labels: Integers, group: int) -> int:
    """Return how many results MAP@R and the largest group need."""
    largest = int(np.unique(labels, return_counts=True)[1].max()) - 1
    return min(len(labels) - 1, max(group, largest, *(int(count) for count in GROUPS if count != "typical")))


def spectral_exponent(embedding: Array) -> float:
    """Return the exponent of the power law that the eigenvalues of the covariance follow, fitted by least squares."""
    centered = embedding - embedding.mean(axis=0)
    products = centered @ centered.T if len(centered) < centered.shape[1] else centered.T @ centered
    values = np.linalg.eigvalsh(products)[::-1]
    values = values[values > 1e-8 * values[0]]
    ranks = np.log(np.arange(1, len(values) + 1))
    return float(-np.polyfit(ranks, np.log(values), 1)[0]) if len(values) > 1 else 0.0


def comparisons(track: Track, runs: Path, place: dict[str, Any], seeds: int
                ) -> Iterator[tuple[Compared, Callable[[], dict[str, Any]]]]:
    """Yield each row of a data set with the function that measures it, cheap rows first.

    Args:
        track: The data set.
        runs: Folder that keeps the runs.
        place: The data set's part of the record, which receives the weights of the judges and the size of a group.
        seeds: Number of runs of each method.
    """
    methods = [replace(row, seeds=1) for row in benchmark_rows(track) if row.is_method and row.method != "frozen"]
    if not methods:
        return

    @cache
    def half() -> Half:
        read = Half.of(track)
        place["weights"] = {name: round(judge.weight, 3) for name, judge in read.judges.items()}
        place["group"] = read.group
        return read

    with first_images(methods[0], runs):
        for recipe in RECIPES:
            yield replace(methods[0], name=recipe, seconds=2.0), partial(refined, half, recipe)
        for share in NOISE:
            yield replace(methods[0], name=f"noise {share}", seconds=2.0), partial(noisy, half, share)
        for seed in range(seeds):
            for row in sorted(methods, key=lambda row: row.seconds):
                name = row.name if not seed else f"{row.name}{SEED}{seed}"
                yield replace(row, name=name), partial(trained, half, row, runs, seed)


def refined(read: Callable[[], Half], recipe: str) -> dict[str, Any]:
    """Compare refined features."""
    half = read()
    refiner = Refiner(recipe).fit(half.frozen, training=half.training)
    return half.compare(refiner.neighbors(half.before.shape[1]).indices, refiner.embedding_,
                        refiner.transform(unit_rows(half.views[1])))


def noisy(read: Callable[[], Half], share: float) -> dict[str, Any]:
    """Compare features with noise."""
    half = read()
    random = np.random.default_rng(0)
    own, of_views = (rows + share * random.standard_normal(rows.shape) / np.sqrt(rows.shape[1])
                     for rows in (half.frozen, unit_rows(half.views[1])))
    return embedded(half, own, of_views)


def trained(read: Callable[[], Half], row: Compared, runs: Path, seed: int) -> dict[str, Any]:
    """Train a method and compare its embedding."""
    half = read()
    run = find_or_create_run(plan_row(half.dataset, row.row, seed, device="cpu"), runs)
    finish_run(run, row.name)
    views = Embedder.load(run.embedder_path).embed_features(half.views[1])
    return embedded(half, run.embeddings("final")[half.test], views)


def embedded(half: Half, embedding: Array, views: Array) -> dict[str, Any]:
    """Compare an embedding, ranked by its own Euclidean distance; see `Half.compare`."""
    return half.compare(nearest(embedding, half.before.shape[1])[1], embedding, views)


def summarize(name: str, places: dict[str, Any]) -> dict[str, Any]:
    """Return how often verdicts on a data set are right, with numbers of results chosen on the other data sets."""
    others = [place for other, place in places.items() if other.split(",")[0] != name.split(",")[0]]
    first = max(FIRST, key=lambda count: quality(others, f"first {count}", "recall@1"))
    group = max(GROUPS, key=lambda count: quality(others, f"group {count}", "map@r"))
    place = places[name]
    rows = place["comparisons"]
    own = dict[str, dict[str, float]]()
    for measure in {measure: None for row in rows.values() for measure in row["own"]}:
        known = [row for row in rows.values() if measure in row["own"]]  # an earlier version lacked some
        if len(known) >= CORRELATED:
            own[measure] = {truth: round(correlation([row["own"][measure] for row in known], differences(
                known, truth)), 2) for truth in QUESTIONS.values()}
    return {"comparisons": len(rows), "own measures": own,
            "preferred": preferred(place),
            "in the app": {question: judged_in_app(place, question) for question in QUESTIONS},
            "first result": {"results": first} | judged(place, f"first {first}", "recall@1"),
            "whole group": {"results": group} | judged(place, f"group {group}", "map@r")}


def quality(places: list[dict[str, Any]], measure: str, truth: str) -> tuple[int, float]:
    """Return how many goals verdicts meet with a number of results, then their share of right among large differences.

    Goals: 95 % of the verdicts on large differences are right, at most 5 % of all "better" are false, and the regret is
    at most 1 point of R@1 or 3 of MAP@R on each data set.
    """
    of = [judged(place, measure, truth) for place in places]
    large, decided, right, better, false = (sum(place[name] for place in of) for name in (
        "large", "decided", "right", "better", "false better"))
    regret = max((place["regret"] for place in of), default=0.0)
    goals = (right >= 0.95 * decided) + (false <= 0.05 * better) + (regret <= MOST_REGRET[truth])
    return goals, (round(right / large, 3) if large else 0.0)


def voted(place: dict[str, Any], measure: str) -> Integers:
    """Return the verdict of all judges on each row in a single comparison: 1 for better, −1 for worse, 0 for neither.

    If the queries of a row were counted, for as many results as the app looks at, the count must bear it out.
    """
    means = voted_by_mean(place, measure)
    question = next((question for question, of in APP.items() if of == measure), None)
    if question is None:
        return means
    return np.array([RULES[APP_RULE](mean, lean(place, row, question)) if "counts" in row else mean
                     for mean, row in zip(means, place["comparisons"].values(), strict=True)])


def voted_by_mean(place: dict[str, Any], measure: str) -> Integers:
    """Return the verdict of all judges on each row by the mean difference alone; see `voted`."""
    return np.array([SIGNS[vote(intervals(place, row, measure), list(place["weights"].values()))]
                     for row in place["comparisons"].values()])


def voted_in_app(place: dict[str, Any], question: str) -> Integers:
    """Return the verdict on each row that every page states: certain among a family of comparisons; see `voted`."""
    return np.array([SIGNS[measured(place, name, question).said] for name in place["comparisons"]])


def measured(place: dict[str, Any], name: str, question: str) -> Measured:
    """Return what the app computes from the judges' differences and counts of a row."""
    row = place["comparisons"][name]
    of = combined(intervals(place, row, APP[question]), list(place["weights"].values()), count_of_row(
        place, row, question))
    return of.model_copy(update={"untold": untold(Recipe(), recipe_of(name))})


def intervals(place: dict[str, Any], row: dict[str, Any], measure: str) -> list[Interval]:
    """Return the difference of a row as each judge sees it."""
    return [Interval(0.0, *row["opinions"][judge][measure]) for judge in place["weights"]]


def count_of_row(place: dict[str, Any], row: dict[str, Any], question: str) -> Count | None:
    """Return for how many queries a row is better and worse; None if they were not counted."""
    if "counts" not in row:
        return None
    return counted([Changed(*row["counts"][judge][question]) for judge in place["weights"]],
                   list(place["weights"].values()))


def lean(place: dict[str, Any], row: dict[str, Any], question: str) -> int:
    """Return whether surely more queries of a row are better than worse, 1, or fewer, −1; 0 if neither, or unknown."""
    count = count_of_row(place, row, question)
    return 0 if count is None else count.leans


def ruled(place: dict[str, Any], question: str, rule: str) -> dict[str, Any] | None:
    """Return how right the verdicts of a rule are on the rows whose queries were counted; None without such rows."""
    rows = {name: row for name, row in place["comparisons"].items() if "counts" in row}
    if not rows:
        return None
    of = place | {"comparisons": rows}
    verdicts = np.array([RULES[rule](mean, lean(place, row, question)) for mean, row in zip(
        voted_by_mean(of, APP[question]), rows.values(), strict=True)])
    return judged(of, APP[question], QUESTIONS[question], verdicts)


def judged(place: dict[str, Any], measure: str, truth: str, verdicts: Integers | None = None) -> dict[str, Any]:
    """Return how right the verdicts on a data set are, by default of single comparisons; see `voted`.

    Correlation is Spearman's, of each judge's difference with the truth, and of the mean difference by the judges'
    weights, which the verdict follows. Of the differences of more than 2 points,
    `decided` have a verdict, and `right` the true sign. A false "better" is said of a loss of more than half a point;
    `false` lists every verdict against the true sign, with the difference. Regret is what the best-judged of all
    embeddings that are better loses against the truly best, frozen features included.
    """
    rows = place["comparisons"]
    true = differences(rows.values(), truth)
    verdicts = voted(place, measure) if verdicts is None else verdicts
    large = np.abs(true) > LARGE
    chosen = best_judged(place, measure, verdicts > 0)
    return {"correlation": {judge: round(correlation([row["opinions"][judge][measure][0] for row in rows.values()],
                                                     true), 2) for judge in place["weights"]},
            "correlation together": round(correlation(said_together(place, measure), true), 2),
            "large": int(large.sum()), "decided": int((large & (verdicts != 0)).sum()),
            "right": int((large & (verdicts == np.sign(true))).sum()),
            "better": int((verdicts > 0).sum()), "worse": int((verdicts < 0).sum()),
            "false better": int(((verdicts > 0) & (true < -TINY)).sum()),
            "false": {name: round(float(difference), 2)
                      for name, difference, verdict in zip(rows, true, verdicts, strict=True)
                      if verdict * np.sign(difference) < 0},
            "regret": round(max(float(true.max()), 0.0) - (0.0 if chosen is None else float(true[chosen])), 2)}


def judged_in_app(place: dict[str, Any], question: str) -> dict[str, Any]:
    """Return how right the verdicts are that pages state on a data set; see `judged`."""
    return judged(place, APP[question], QUESTIONS[question], voted_in_app(place, question))


def best_judged(place: dict[str, Any], measure: str, among: Array) -> int | None:
    """Return the position of the embedding with the largest difference, averaged over the judges by their weights.

    Args:
        place: The data set's part of the record.
        measure: The judged measure.
        among: Mask of the embeddings that may be chosen.
    """
    return int(np.where(among, said_together(place, measure), -np.inf).argmax()) if among.any() else None


def said_together(place: dict[str, Any], measure: str) -> Array:
    """Return the difference of each row, averaged over the judges by their weights."""
    total_weight = sum(place["weights"].values())
    return np.array([sum(weight * row["opinions"][judge][measure][0] for judge, weight in place["weights"].items())
                     for row in place["comparisons"].values()]) / total_weight


def preferred(place: dict[str, Any]) -> dict[str, Any]:
    """Return the embedding that the app prefers among the judged, and its true differences."""
    opinions = {name: {judge: Opinion(*(Interval(0.0, *row["opinions"][judge][measure]) for measure in APP.values()))
                       for judge in place["weights"]} for name, row in place["comparisons"].items()}
    first, groups = QUESTIONS
    counts = {name: {judge: (Changed(*of[first]), Changed(*of[groups])) for judge, of in row["counts"].items()}
              for name, row in place["comparisons"].items() if "counts" in row}
    name = Opinions("frozen", opinions, place["weights"], place["group"], counts).preferred()
    truth = {} if name is None else place["comparisons"][name]["truth"]
    return {"name": name or "frozen", **{measure: round(truth[measure][1] - truth[measure][0], 2) if truth else 0.0
                                         for measure in QUESTIONS.values()}}


def rule_words(record: dict[str, Any]) -> str:
    """Return what the record says of rules that count queries, as the documents state it."""
    rules, rows = record["rules"], sum("counts" in row for place in record["places"].values()
                                       for row in place["comparisons"].values())

    def of(rule: str, name: str) -> str:
        return " and ".join(str(rules[question][rule][name]) for question in QUESTIONS)

    return (f"On the {rows} embeddings of the record whose images were counted, the rule decides "
            f"{of(APP_RULE, 'decided')} of {of(APP_RULE, 'large')} differences of two points in first results and "
            f"whole groups, {of(APP_RULE, 'right')} of them right; the mean alone decides "
            f"{of('mean alone', 'decided')}, {of('mean alone', 'right')} right. If the count decided where the mean "
            "cannot tell, "
            f"{of('mean or count', 'decided')} would be decided, but {of('mean or count', 'against the truth')} of all "
            f"verdicts would be against the truth in place of {of(APP_RULE, 'against the truth')}; therefore the count "
            "alone makes no verdict.")


def finding_words(record: dict[str, Any]) -> list[str]:
    """Return the sentences with figures that the text of the record contains."""
    places, totals = record["places"], record["totals in the app"]
    first, groups = (totals[question] for question in QUESTIONS)
    single = [record["totals"][question] for question in QUESTIONS]
    gained = sum(row["truth"]["recall@1"][1] - row["truth"]["recall@1"][0] >= TINY
                 for place in places.values() for row in place["comparisons"].values())
    alone, pair = (withheld(places, question) for question in QUESTIONS)
    counts = [total([judged(place, f"first {count}", "recall@1") for place in places.values()]) for count in FIRST]
    shares = {name: 100 * place["weights"].get("pixels", 0) / sum(place["weights"].values())
              for name, place in places.items()}
    little, much = ([share for name, share in shares.items() if share and name.startswith(weak) == is_weak]
                    for is_weak in (False, True) for weak in [("cifar10", "emoji")])
    preferred = [place["preferred"] for place in record["summary"].values()]
    seeds = seeds_of(places)
    own = {measure: [place["own measures"][measure] for place in record["summary"].values()
                     if measure in place["own measures"]] for measure in OWN_WORDS}
    entered = list(embeddings_by_column(places).values())
    of_all, of_counts, of_views, of_maps = (sum(of[name] for of in entered) for name in entered[0])
    assert of_views == of_maps, "one sentence says both"
    return [
        f"All {of_all} embeddings enter every column of the tables but these: a count of images can stop the verdict "
        f"on {of_counts}, and the other {of_all - of_counts} are judged by the mean difference alone; consistency "
        f"under views and the silhouette on a UMAP map are correlated over {of_views}, in "
        f"{sum(of['correlation of consistency under views'] > 0 for of in entered)} of {len(entered)} rows of the "
        "tables",
        "The judges together, by their weights, correlate " + " and ".join(span([
            place["in the app"][question]["correlation together"] for place in record["summary"].values()])
            + f" with {measure}" for question, measure in (("first result", "R@1"), ("whole group", "MAP@R"))),
        f"{sum(len(place['comparisons']) for place in places.values())} embeddings of "
        f"{len({name.split(',')[0] for name in places})} data sets",
        f"hold {min(little):.0f} to {max(little):.0f} % of the weight on birds, clothes and characters, and "
        f"{min(much):.0f} to {max(much):.0f} % on CIFAR-10 and emoji",
        f"it decides {first['decided']} of {first['large']} in first results (R@1), {first['right']} of them right, "
        f"and {groups['decided']} of {groups['large']} in whole groups (MAP@R), {groups['right']} of them right",
        f"{' and '.join(str(of['right']) + ' of ' + str(of['decided']) for of in single)} where the numbers of "
        "results are chosen on the other data sets",
        f"of {first['better']} embeddings called better in first results and {groups['better']} in whole groups, "
        f"{first['false better'] + groups['false better'] or 'none'} loses half a point; {gained} gain half a point "
        "of R@1",
        f"up to {100 * (1 - 0.05 ** (1 / max(1, first['better']))):.0f} % of \"better\" in first results could "
        "still be false",
        f"Judges would call {alone[0]} such embeddings worse in first results and {pair[0]} in whole groups, and "
        f"{alone[1]} and {pair[1]} of these gain, up to {alone[2]:.1f} points of R@1 and {pair[2]:.1f} of MAP@R",
        f"loses up to {first['largest regret']:.1f} points of R@1 and {groups['largest regret']:.1f} of MAP@R",
        f"gains {min(of['map@r'] for of in preferred):.0f} to {max(of['map@r'] for of in preferred):.1f} points of "
        f"MAP@R and loses at most {-min(of['recall@1'] for of in preferred):.1f} of R@1",
        "of single comparisons, " + "; ".join(
            f"{count} decides {of['decided']} with {of['right']} right and a regret of {of['largest regret']:.1f}"
            for count, of in zip(FIRST, counts, strict=True)),
        f"Of {seeds[0]} methods that were trained with two or three seeds, the verdicts of all seeds are one in "
        f"{seeds[1]} of {2 * seeds[0]} cases, some seed has no verdict in {seeds[2]}, and two seeds are opposite in "
        f"{seeds[3]}",
        *(f"{words} {span([of['recall@1'] for of in own[measure]])} with R@1 and "
          f"{span([of['map@r'] for of in own[measure]])} with MAP@R" for measure, words in OWN_WORDS.items())]


def withheld(places: dict[str, Any], question: str) -> tuple[int, int, float]:
    """Return how many verdicts are not told because judges undervalue a step, how many are false, the largest gain."""
    gains = [difference for place in places.values() for name, difference in zip(
        place["comparisons"], differences(place["comparisons"].values(), QUESTIONS[question]), strict=True)
        if measured(place, name, question).is_undervalued]
    return len(gains), sum(gain > 0 for gain in gains), max(gains, default=0.0)


def by_class_range(places: dict[str, Any]) -> tuple[int, int]:
    """Return how many fewer, and more, of 100 groups are better by class than judges count, over all tests.

    A test is a refinement that the app calls better in whole groups, and that changes nearly all groups, so that both
    counts mean the same.
    """
    gaps = list[float]()
    for place in places.values():
        for name, row in place["comparisons"].items():
            count = count_of_row(place, row, "whole group")
            if BY_CLASS in row and count is not None and count.better is not None and count.changed >= NEARLY_ALL and (
                    measured(place, name, "whole group").said == "better"):
                gaps.append(row[BY_CLASS][0] - count.better)
                assert row[BY_CLASS][0] > row[BY_CLASS][1], "more groups are better than worse"
    return round(-100 * min(gaps)), round(100 * max(gaps))


def seeds_of(places: dict[str, Any]) -> tuple[int, int, int, int]:
    """Return how many methods have several seeds, and in how many cases the verdicts of all are one, some, opposite."""
    count, cases = 0, {"one": 0, "some": 0, "opposite": 0}
    for place in places.values():
        for question in QUESTIONS:
            said = dict[str, set[int]]()
            for name, verdict in zip(place["comparisons"], voted_in_app(place, question), strict=True):
                said.setdefault(name.split(SEED)[0], set()).add(int(verdict))
            several = {name.split(SEED)[0] for name in place["comparisons"] if SEED in name}
            count += len(several)
            for name in several:
                cases["one" if len(said[name]) == 1 else "opposite" if {1, -1} <= said[name] else "some"] += 1
    return count // len(QUESTIONS), cases["one"], cases["some"], cases["opposite"]


def span(values: list[float]) -> str:
    """Return the smallest and the largest of several correlations in words."""
    return f"{min(values):.2f} to {max(values):.2f}".replace("-", "−")


def table(summary: dict[str, Any], question: str) -> dict[str, dict[str, float]]:
    """Return the rows of a table with the verdicts on each data set, and measures that need no judge beside them."""
    rows = {}
    for name, place in summary.items():
        of = place["in the app"][question]
        shown = {"differences of 2 points": of["large"], "with a verdict": of["decided"], "right": of["right"],
                 "called better": of["better"], "falsely better": of["false better"], "regret": of["regret"],
                 "correlation of the judges together": of["correlation together"],
                 "correlation of the best single judge": max(of["correlation"].values()),
                 "gain of the preferred embedding": place["preferred"][QUESTIONS[question]]}
        rows[name] = shown | {f"correlation of {measure}": values[QUESTIONS[question]]
                              for measure, values in place["own measures"].items()}
    return rows


def embeddings_by_column(places: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Return how many embeddings of each data set enter which columns; an earlier version measured less of some.

    A measure of the embedding alone is correlated with the truth over at least `CORRELATED` embeddings.
    """
    rows = dict[str, dict[str, int]]()
    for name, place in places.items():
        known = list(place["comparisons"].values())
        later = {words: sum(measure in row["own"] for row in known) for measure, words in (
            ("consistency", "consistency under views"), ("silhouette on a UMAP map", "silhouette on a UMAP map"))}
        counted_rows = sum("counts" in row for row in known)
        rows[name] = {"all other columns": len(known), "count of images": counted_rows} | {
            f"correlation of {words}": count if count >= CORRELATED else 0 for words, count in later.items()}
    return rows


def false_verdicts(places: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return every verdict of the app against the true sign, with the true difference in points."""
    return {f"{name}: {embedding}, {question}": {"true difference": difference}
            for name, place in places.items() for question in QUESTIONS
            for embedding, difference in judged_in_app(place, question)["false"].items()}


def total(of: list[dict[str, Any]]) -> dict[str, Any]:
    """Add up what the verdicts on all data sets are worth."""
    counts = {name: sum(place[name] for place in of) for name in ("large", "decided", "right", "better",
                                                                  "false better", "worse")}
    return counts | {"against the truth": sum(len(place["false"]) for place in of),
                     "largest regret": max(place["regret"] for place in of)}


def differences(rows: Iterable[dict[str, Any]], truth: str) -> Array:
    return np.array([row["truth"][truth][1] - row["truth"][truth][0] for row in rows])


def correlation(first: Any, second: Any) -> float:
    """Return Spearman's rank correlation; 0 where a side is constant."""
    value = float(spearmanr(first, second).statistic) if len(np.unique(first)) > 1 < len(np.unique(second)) else 0.0
    return value if np.isfinite(value) else 0.0


if __name__ == "__main__":
    main()
