"""Records of experiments.

A record holds the measured tables, the command behind them, and the papers' printed figures. It is a JSON file written
by a command in `experiments/`. `findings.toml` lists the records in reading order and says what each one shows, after a
summary of all.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from udml_core.base.errors import UserError
from udml_core.base.paths import ASSETS
from udml_core.results.embedding_words import words_of

FOLDER = ASSETS / "results"
FINDINGS = "findings.toml"
PRINTED_ORDER = ("nmi", "recall@1", "recall@2", "recall@4", "recall@8")
"""Measures of a list of printed figures."""
REFERENCES = {name: words_of(name).title for name in ("frozen", "centered pca", "pca")} | {
    "initial": words_of("initial").short}
"""Row titles of the candidates that a run's evaluation contains in addition to the final embedding.

PCA has unit length if the final embedding has; the title of PCA without unit length ends in "Euclidean".
"""

UNTRAINED = ("frozen", "pca", "whiten")
"""Methods without training: the features, and projections that are computed in one step. The others are judged beside
them."""
SENTENCE = re.compile(r"(?<=[.!?])(?:\*\*)?\s+(?=[A-Z*])")
"""The end of a sentence."""
CAUTION = "**not comparable**"
"""Emphasized words that are no result."""
SERIES = re.compile(r"=\s?[\d.]|^\d|\bd=\d")
"""A row's name with a number, which has a place in a series."""

Spread = tuple[float, float]
Row = Mapping[str, Spread]


@dataclass(frozen=True)
class Finding:
    """What a record shows.

    Attributes:
        name: File name without `.json`.
        title: Title.
        source: The table or figure of a paper that the experiment follows, and how it differs.
        text: The result, in Markdown.
    """

    name: str
    title: str
    source: str
    text: str

    @property
    def claim(self) -> str:
        """The first sentence of the text with emphasized words, without the emphasis; empty if there is none."""
        sentences = SENTENCE.split(self.text.replace("\n", " "))
        emphasized = [sentence for sentence in sentences if "**" in sentence and CAUTION not in sentence]
        return next((sentence.replace("**", "") for sentence in emphasized), "")


@dataclass(frozen=True)
class Table:
    """Results on one data set; a row maps measures to mean and standard deviation.

    Attributes:
        title: Title.
        rows: Trained embeddings.
        references: Embeddings without training: frozen features, PCA, whitening, and the embeddings before training.
        printed: A paper's figures, by row.
        comparable: Whether the printed figures are of the same images and training budget.
        curves: By row, the mean of the seeds' curves, one dictionary per epoch.
        by_seed: By row and measure, the value of each seed, where the record has the runs.
    """

    title: str
    rows: Mapping[str, Row]
    references: Mapping[str, Row] = field(default_factory=dict)
    printed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    comparable: bool = False
    curves: Mapping[str, list[dict[str, float]]] = field(default_factory=dict)
    by_seed: Mapping[str, Mapping[str, Mapping[int, float]]] = field(default_factory=dict)

    def measures(self) -> list[str]:
        """List the measures of all rows in order of first appearance."""
        return list(dict.fromkeys(name for row in self.rows.values() for name in row))

    @property
    def is_series(self) -> bool:
        """Whether most rows are a series of values, such as of α, whose order means something."""
        return 2 * sum(SERIES.search(name) is not None for name in self.rows) > len(self.rows)

    def ranked(self, measure: str, lowest_first: bool = False) -> list[str]:
        """List all rows, the best by a measure first; rows of a series, such as values of α, keep their order.

        Rows without the measure come last.

        Args:
            measure: Key of the measure.
            lowest_first: Whether lower values are better; else the highest value comes first.
        """
        names = list({**self.references, **self.rows, **self.printed})
        if self.is_series:
            return names
        sign = 1 if lowest_first else -1
        values = {name: row[measure][0] for name, row in {**self.references, **self.rows}.items() if measure in row}
        printed = {name: row[measure] for name, row in self.printed.items() if measure in row}
        known = printed | values
        return sorted(names, key=lambda name: sign * known[name] if name in known else math.inf)


@dataclass(frozen=True)
class Experiment:
    """A record.

    Attributes:
        finding: What the record shows.
        provenance: Command, protocol, device, date and versions, as far as the record contains them.
        tables: Results.
    """

    finding: Finding
    provenance: Mapping[str, str]
    tables: tuple[Table, ...]


def findings(folder: Path = FOLDER) -> list[Finding]:
    """List all records in reading order.

    Raises:
        UserError: The list cannot be read.
    """
    return _read_list(folder)[1]


def summary(folder: Path = FOLDER) -> str:
    """Return what all records show together, in Markdown.

    Raises:
        UserError: The list of records cannot be read.
    """
    return _read_list(folder)[0]


def _read_list(folder: Path) -> tuple[str, list[Finding]]:
    """Return the summary and all records in reading order."""
    try:
        entries = tomllib.loads((folder / FINDINGS).read_text(encoding="utf-8"))
        text = entries.pop("summary").strip()
        return text, [Finding(name, entry["title"], entry["source"], entry["says"].strip())
                      for name, entry in entries.items()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{folder / FINDINGS} must list the records of experiments, and could not be read: {error}. "
                        "Restore it from the project.") from error


def read(finding: Finding, folder: Path = FOLDER) -> Experiment:
    """Read a record.

    Raises:
        UserError: The record cannot be read.
    """
    path = folder / f"{finding.name}.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
        provenance = {name: str(record[name]) for name in ("command", "protocol", "device", "date") if name in record}
        return Experiment(finding, provenance | {"versions": versions}, tuple(_tables(record)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"The record {path} could not be read: {error!r}. Restore it from the project, or run its "
                        "command again.") from error


def _tables(record: Mapping[str, Any]) -> Iterable[Table]:
    if "rows" in record:
        yield _table_of_runs(record)
    if "overview" in record:
        yield Table(record["overview"]["title"], {name: _row(row) for name, row in record["overview"]["rows"].items()})
    for title, dataset in record.get("datasets", {}).items():
        rows = dataset.get("rows") or {f"{name}: {kind}": row for name, kinds in dataset.items()
                                       for kind, row in kinds.items()}
        by_seed = {name: _by_seed(row["runs"], row["summary"], "final") for name, row in rows.items()
                   if "summary" in row and isinstance(row.get("runs"), list)}
        yield Table(dataset.get("title", title), {name: _row(row.get("summary", row)) for name, row in rows.items()},
                    by_seed=by_seed)
    if "costs" in record:
        yield Table(record["costs"]["protocol"], {f"n = {count}": _row(row)
                                                  for count, row in record["costs"]["rows"].items()})
    if "pairs a second" in record:
        yield Table("Pairs per second", {f"D = {speed['D']}, d = {speed['d']}": _row({name: speed[name] for name in
                                                                                    ("ours", "autograd")})
                                         for speed in record["pairs a second"]})
    if "medians" in record:
        yield Table(record["what"], {name: {"median": (value, 0.0)} for name, value in record["medians"].items()})


def _table_of_runs(record: Mapping[str, Any]) -> Table:
    """Return the table of a record whose rows are runs, with reference embeddings."""
    rows: dict[str, Row] = {}
    references: dict[str, Row] = {}
    by_seed: dict[str, dict[str, dict[int, float]]] = {}
    for name, result in record["rows"].items():
        seconds = _spread([run["seconds"] for run in result["runs"]])
        row = _evaluated(result, "final") | {"seconds": seconds} | _row(result.get("triplets", {}))
        (references if _method_of(result) in UNTRAINED else rows)[name] = row
        by_seed[name] = _by_seed(result["runs"], result["summary"]["final"], "final")
        if "latent" in result["summary"]:
            rows[f"{name}, z"] = _evaluated(result, "latent")
            by_seed[f"{name}, z"] = _by_seed(result["runs"], result["summary"]["latent"], "latent")
    for candidate, title in REFERENCES.items():
        for full_title, results in _by_distance(record["rows"], candidate, title).items():
            found = _reference_rows(results, candidate, full_title, references)
            of_row = {title: next(result for result in results.values() if _evaluated(result, candidate) == row)
                      for title, row in found.items()}
            by_seed |= {title: _by_seed(result["runs"], result["summary"][candidate], candidate)
                        for title, result in of_row.items()}
            references |= found
    printed = record.get("printed", {}) | {name: result["printed"] for name, result in record["rows"].items()
                                           if result.get("printed")}
    curves = {name: _mean_curves([run["curves"] for run in result["runs"]]) for name, result in record["rows"].items()}
    return Table(record["dataset"], rows, references, {name: _printed(row) for name, row in printed.items()},
                 record.get("comparable", False), curves, by_seed)


def _method_of(result: Mapping[str, Any]) -> str:
    """Return the method of a row, the first word of its request; empty in records without requests."""
    return str(result.get("row", "")).partition(" ")[0]


def _by_distance(results: Mapping[str, Any], candidate: str, title: str) -> dict[str, dict[str, Any]]:
    """Return the rows whose runs evaluated a reference candidate, by the title that names its distance."""
    groups: dict[str, dict[str, Any]] = {}
    for name, result in results.items():
        if candidate in result["summary"]:
            is_euclidean = candidate == "centered pca" and not result["runs"][0].get("unit length", True)
            groups.setdefault(f"{title}, Euclidean" if is_euclidean else title, {})[name] = result
    return groups


def _reference_rows(results: Mapping[str, Any], candidate: str, title: str,
                    earlier: Mapping[str, Row]) -> dict[str, Row]:
    """Return the distinct rows of a reference candidate that all these runs evaluated.

    If there are several rows, each title names its dimension, or its results if the dimension does not distinguish
    the rows.
    """
    distinct: list[tuple[Row, list[str]]] = []
    for name, result in results.items():
        row = _evaluated(result, candidate)
        names = next((names for other, names in distinct if other == row), None)
        if names is not None:
            names.append(name)
        elif row not in earlier.values():  # a run that starts from the principal components repeats the PCA row
            distinct.append((row, [name]))
    if len(distinct) == 1:
        return {title: distinct[0][0]}
    widths = [int(row["width"][0]) for row, _ in distinct]
    if len(set(widths)) == len(widths):
        return {f"{title}, {width} dimensions": row for (row, _), width in zip(distinct, widths, strict=True)}
    return {f"{title} of {'; '.join(names)}": row for row, names in distinct}


def _evaluated(result: Mapping[str, Any], candidate: str) -> dict[str, Spread]:
    """Return the measures of one candidate embedding, and its width."""
    width = result["runs"][0]["evaluation"][candidate]["dimension"]
    return _row(result["summary"][candidate]) | {"width": (width, 0.0)}


def _by_seed(runs: Iterable[Mapping[str, Any]], measures: Iterable[str], candidate: str
             ) -> dict[str, dict[int, float]]:
    """Return the value of each seed by measure, of the measures that all runs have."""
    of_seed = {run["seed"]: run["evaluation"][candidate] for run in runs}
    return {name: {seed: float(values[name]) for seed, values in of_seed.items()} for name in measures
            if all(isinstance(values.get(name), int | float) for values in of_seed.values())}


def _row(values: Mapping[str, Any]) -> dict[str, Spread]:
    """Return the measures as mean and standard deviation, without other entries."""
    row: dict[str, Spread] = {}
    for name, value in values.items():
        if isinstance(value, list) and len(value) == 2:
            row[name] = float(value[0]), float(value[1])
        elif isinstance(value, int | float):
            row[name] = float(value), 0.0
    return row


def _spread(values: list[float]) -> Spread:
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def _printed(figures: list[float] | Mapping[str, float]) -> dict[str, float]:
    return dict(figures) if isinstance(figures, Mapping) else dict(zip(PRINTED_ORDER, figures, strict=True))


def _mean_curves(seeds: list[list[dict[str, Any]]]) -> list[dict[str, float]]:
    """Return the mean curve over the epochs and values that all seeds recorded."""
    curve = []
    for epochs in zip(*seeds, strict=False):
        names = [name for name in epochs[0] if all(isinstance(epoch.get(name), int | float) for epoch in epochs)]
        curve.append({name: statistics.mean(epoch[name] for epoch in epochs) for name in names})
    return curve
