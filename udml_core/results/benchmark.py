"""The record of the benchmark: one table of all methods, average ranks and their critical difference.

Friedman's test and Nemenyi's critical difference follow Demšar, "Statistical Comparisons of Classifiers over Multiple
Data Sets", JMLR 2006. The data sets are the blocks of the test. Seeds are averaged first: they are no further data
sets, because they share all images.
"""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import stats

from udml_core.base.arrays import Array, Booleans
from udml_core.base.errors import UserError
from udml_core.results.records import FOLDER, UNTRAINED, Spread

NAME = "benchmark"
NOT_RANKED = ("images", "dimension", "map@r left out", "queries", "recall@1 margin", "map@r margin")
"""Counts that every method shares."""
FEWEST_METHODS = 3
Order = Literal["confirmed", "reversed", "not separated", "not measured"]


@dataclass(frozen=True)
class SeedRun:
    """A run of one seed.

    Attributes:
        id: The run's folder name.
        seed: Its seed.
        values: Measures and costs.
        hits: For each test image, whether the nearest image is a hit; None for a refinement.
    """

    id: str
    seed: int
    values: Mapping[str, float]
    hits: Booleans | None = None


@dataclass(frozen=True)
class Entry:
    """A method on one data set.

    Attributes:
        name: Title of the row.
        method: Name of the method.
        is_method: Whether the entry is the method itself: no refinement, no learning rate of 0.
        row: The row of the command: METHOD FIELD=VALUE … @OPTION=VALUE.
        recipe: Recipe that refines the test half without training; empty for none.
        supervision: Labels or pairs that training receives.
        sees_test_images: Whether the unlabeled test images are used.
        summary: Mean and standard deviation over the seeds, by measure and cost; `lines` are the lines of code of the
            method's file.
        runs: The runs, one for each seed.
        printed: The papers' figures on the most similar data set, by table and measure.
        comparable: Whether images, settings and budget are the paper's.
    """

    name: str
    method: str
    is_method: bool
    row: str
    recipe: str
    supervision: str
    sees_test_images: bool
    summary: Mapping[str, Spread]
    runs: tuple[SeedRun, ...]
    printed: Mapping[str, Mapping[str, float]]
    comparable: bool

    @property
    def is_trained(self) -> bool:
        """Whether something is learned: not by the features, PCA, a refinement or a learning rate of 0."""
        return self.is_method and not self.recipe and self.method not in UNTRAINED

    @property
    def group(self) -> str:
        """What the method knows, as the page filters it."""
        return "test images" if self.sees_test_images else self.supervision

    @property
    def hits(self) -> Array:
        """The share of the seeds for which the nearest image of each test image is a hit (images,)."""
        return np.mean([run.hits for run in self.runs if run.hits is not None], axis=0)


@dataclass(frozen=True)
class PaperTable:
    """Printed figures of one table; see `experiments.benchmark_rows`.

    Attributes:
        title: Paper and table.
        data: The paper's data set.
        printed: The measure that the paper prints.
        figures: The printed value by method, in percent.
    """

    title: str
    data: str
    printed: str
    figures: Mapping[str, float]


@dataclass(frozen=True)
class DataSet:
    """A data set of the benchmark.

    Attributes:
        name: Name of the data set.
        title: Title.
        near: The papers' data set that is most like this one.
        budget: Images, passes and labels in words.
        encoder: The encoder in words.
        entries: Entries by the title of their row.
    """

    name: str
    title: str
    near: str
    budget: str
    encoder: str
    entries: Mapping[str, Entry]


@dataclass(frozen=True)
class Benchmark:
    """The record.

    Attributes:
        provenance: Command, protocol, device, date and versions.
        datasets: The measured data sets by name.
        papers: Tables of papers.
    """

    provenance: Mapping[str, str]
    datasets: Mapping[str, DataSet]
    papers: tuple[PaperTable, ...]

    def measures(self) -> list[str]:
        """List the measures that rank methods, in order of first appearance."""
        return list(dict.fromkeys(name for dataset in self.datasets.values() for entry in dataset.entries.values()
                                  for name in entry.summary if name not in NOT_RANKED))

    def groups(self) -> list[str]:
        """List what methods know, in order of growing knowledge."""
        present = {entry.group for dataset in self.datasets.values() for entry in dataset.entries.values()}
        return [group for group in ("none", "test images", "few", "pairs", "all") if group in present]

    def chosen(self, datasets: Iterable[str], groups: Iterable[str]) -> Benchmark:
        """Return the benchmark with some data sets and groups of methods only."""
        kept = set(groups)
        return replace(self, datasets={
            name: replace(dataset, entries={title: entry for title, entry in dataset.entries.items()
                                            if entry.group in kept})
            for name in datasets if (dataset := self.datasets.get(name))})

    def names(self) -> list[str]:
        """List the titles of all rows."""
        return list(dict.fromkeys(name for dataset in self.datasets.values() for name in dataset.entries))

    def scores(self, measure: str) -> tuple[list[str], Array]:
        """Return the methods that are measured on every data set, and their means (data sets, methods)."""
        names = [name for name in self.names() if self.datasets and all(
            name in dataset.entries and measure in dataset.entries[name].summary for dataset in self.datasets.values())]
        return names, np.array([[dataset.entries[name].summary[measure][0] for name in names]
                                for dataset in self.datasets.values()]).reshape(len(self.datasets), len(names))


def read(path: Path | None = None) -> Benchmark | None:
    """Read the record, by default the project's; None if there is none.

    Raises:
        UserError: The record cannot be read.
    """
    path = path or FOLDER / f"{NAME}.json"
    try:
        return _read(path, path.stat().st_mtime_ns)
    except FileNotFoundError:
        return None


@lru_cache(maxsize=4)
def _read(path: Path, _modified: int) -> Benchmark:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
        provenance = {name: str(record[name]) for name in ("command", "protocol", "device", "date")}
        return Benchmark(provenance | {"versions": versions}, {
            name: DataSet(name, dataset["title"], dataset["near"], dataset["budget"], dataset["encoder"],
                          {title: _entry(title, row) for title, row in dataset["rows"].items()})
            for name, dataset in record["datasets"].items()},
            tuple(PaperTable(**table) for table in record["papers"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"The record {path} could not be read: {error!r}. Restore it from the project, or delete it "
                        "and run `python -m experiments.benchmark --budget 20 --dataset digits`.") from error


def _entry(name: str, row: Mapping[str, Any]) -> Entry:
    runs = tuple(SeedRun(run["run"], run["seed"], run["evaluation"]["final"] | run["costs"],
                         None if row["recipe"] else unpack_hits(run["hits"], int(row["summary"]["images"][0])))
                 for run in row["runs"])
    summary = {measure: (float(mean), float(deviation)) for measure, (mean, deviation) in row["summary"].items()}
    return Entry(name, row["method"], row["is method"], row["row"], row["recipe"], row["supervision"],
                 row["sees test images"], summary, runs, row["printed"], row["comparable"])


def pack_hits(hits: Booleans) -> str:
    """Return one bit for each test image as text."""
    return base64.b64encode(np.packbits(hits).tobytes()).decode("ascii")


def unpack_hits(text: str, images: int) -> Booleans:
    """Return what `pack_hits` packed (images,)."""
    bits = np.unpackbits(np.frombuffer(base64.b64decode(text, validate=True), np.uint8))
    if not images <= len(bits) < images + 8:
        raise ValueError(f"{len(bits)} bits for {images} images")
    return bits[:images].astype(bool)


def ranks(scores: Array, lower_is_better: bool = False) -> Array:
    """Return the ranks (data sets, methods) of the scores of each data set, 1 for the best; ties share their mean."""
    signed = scores if lower_is_better else -scores
    return np.asarray(stats.rankdata(signed, axis=1), float)


@dataclass(frozen=True)
class Difference:
    """Average ranks and the difference that separates two methods.

    Attributes:
        names: The methods, best first.
        average_ranks: Their average ranks.
        critical: Nemenyi's critical difference at the level.
        p: p-value of Friedman's test, with scipy's correction for ties.
        datasets: Number of data sets.
        level: Significance level.
    """

    names: tuple[str, ...]
    average_ranks: tuple[float, ...]
    critical: float
    p: float
    datasets: int
    level: float

    @property
    def can_separate(self) -> bool:
        """Whether the best and the worst possible average ranks differ by more than the critical difference."""
        return self.critical < len(self.names) - 1

    def groups(self) -> list[tuple[int, int]]:
        """List the largest groups of methods that are not separated, as first and last position.

        A method on its own is no group.
        """
        found: list[tuple[int, int]] = []
        for first, rank in enumerate(self.average_ranks):
            last = max(position for position, other in enumerate(self.average_ranks)
                       if other - rank <= self.critical + 1e-12)
            if last > first and (not found or last > found[-1][1]):
                found.append((first, last))
        return found


def critical_difference(names: Sequence[str], scores: Array, lower_is_better: bool = False,
                        level: float = 0.05) -> Difference | None:
    """Compare methods over data sets by their ranks.

    Args:
        names: The methods (k).
        scores: Scores (data sets, k).
        lower_is_better: Whether a lower score is better.
        level: Significance level.

    Returns:
        None for fewer than three methods or no data set.
    """
    count, methods = scores.shape
    if count < 1 or methods < FEWEST_METHODS:
        return None
    own = ranks(scores, lower_is_better)
    average = own.mean(axis=0)
    order = np.argsort(average, kind="stable")
    p = float("nan") if (own == own[:, :1]).all() else float(stats.friedmanchisquare(*own.T).pvalue)
    return Difference(tuple(names[index] for index in order), tuple(float(average[index]) for index in order),
                      nemenyi(methods, count, level), p, count, level)


@lru_cache(maxsize=64)
def nemenyi(methods: int, datasets: int, level: float = 0.05) -> float:
    """Return Nemenyi's critical difference of average ranks: q·√(k(k+1)/(6N)).

    q is the quantile of the studentized range of k methods with infinite degrees of freedom, divided by √2.
    """
    quantile = float(stats.studentized_range.ppf(1 - level, methods, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(methods * (methods + 1) / (6 * datasets))


@dataclass(frozen=True)
class PairOrder:
    """Two methods that a paper orders, and their order here.

    Attributes:
        better: Name of the method with the higher printed value.
        worse: Name of the other method.
        printed: Difference of the printed values.
        measured: Difference of the means here; None if one method was not measured.
        order: Whether the order is confirmed, reversed, not separated or not measured.
    """

    better: str
    worse: str
    printed: float
    measured: float | None
    order: Order


def orders(table: PaperTable, dataset: DataSet) -> list[PairOrder]:
    """Compare the order of every two methods of a paper's table with the order of their R@1 on a data set.

    Two methods are separated if their means differ by more than the sum of their standard deviations over the seeds,
    and by more than two standard errors of the difference over the test images: the seeds share these images, so that
    their spread alone says nothing about other images. Both methods search for the same images, so the error is of
    the differences image by image.
    """
    measured = {entry.method: entry for entry in dataset.entries.values()
                if entry.is_method and "recall@1" in entry.summary}
    result = []
    for first, second in combinations(sorted(table.figures, key=table.figures.__getitem__, reverse=True), 2):
        printed = table.figures[first] - table.figures[second]
        if first not in measured or second not in measured:
            result.append(PairOrder(first, second, printed, None, "not measured"))
            continue
        (better, spread), (worse, other) = (measured[name].summary["recall@1"] for name in (first, second))
        difference = better - worse
        order: Order = "not separated"
        error = standard_error(measured[first].hits - measured[second].hits)
        if abs(difference) > max(spread + other, 200 * error):
            order = "confirmed" if difference > 0 else "reversed"
        result.append(PairOrder(first, second, printed, difference, order))
    return result


def count_orders(benchmark: Benchmark) -> Counter[Order]:
    """Count the orders of all printed pairs on the data sets that are most like the papers'.

    Papers reprint each other's figures, so a pair counts once for each data set.
    """
    distinct = {(dataset.name, pair.better, pair.worse): pair.order for table in benchmark.papers
                for dataset in benchmark.datasets.values() if dataset.near == table.data
                for pair in orders(table, dataset)}
    return Counter(distinct.values())


def standard_error(values: Array) -> float:
    """Return the standard error of the mean of the values (images,)."""
    return float(values.std(ddof=1)) / math.sqrt(len(values))
