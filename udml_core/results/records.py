"""Records of experiments that come with the project: what was measured, by which command, beside what papers print.

A record is a JSON file that a benchmark wrote; `findings.toml` beside it says what each shows, in the order in which
they are to be read.
"""

from __future__ import annotations

import json
import statistics
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from udml_core.errors import UserError
from udml_core.paths import ASSETS

FOLDER = ASSETS / "results"
FINDINGS = "findings.toml"
PRINTED_ORDER = ("nmi", "recall@1", "recall@2", "recall@4", "recall@8")
"""What a list of printed figures holds."""
BESIDE = {"frozen": "Frozen features", "pca": "PCA, same width", "initial": "Start"}
"""What stands in every run's evaluation beside its result."""

Spread = tuple[float, float]
Row = Mapping[str, Spread]


@dataclass(frozen=True)
class Finding:
    """What a record shows. name: its file without .json. source: the table or figure it is after. says: Markdown."""

    name: str
    title: str
    source: str
    says: str


@dataclass(frozen=True)
class Table:
    """Measured rows on one data set: measure to mean and standard deviation.

    rows: what was trained. beside: what needs no training, and the starts. printed: a paper's figures, by row;
    comparable: whether they are of the same images and budget. curves: by row, the mean of the seeds' curves, a
    dictionary an epoch.
    """

    title: str
    rows: Mapping[str, Row]
    beside: Mapping[str, Row] = field(default_factory=dict)
    printed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    comparable: bool = True
    curves: Mapping[str, list[dict[str, float]]] = field(default_factory=dict)

    def measures(self) -> list[str]:
        """Every measure of some row, in the order of the first that has it."""
        return list(dict.fromkeys(name for row in self.rows.values() for name in row))


@dataclass(frozen=True)
class Experiment:
    """A record. made: the command and on what it ran, as far as the record tells."""

    finding: Finding
    made: Mapping[str, str]
    tables: tuple[Table, ...]


def findings(folder: Path = FOLDER) -> list[Finding]:
    """All records, in reading order.

    Raises:
        UserError: the list cannot be read.
    """
    try:
        listed = tomllib.loads((folder / FINDINGS).read_text(encoding="utf-8"))
        return [Finding(name, one["title"], one["source"], one["says"].strip()) for name, one in listed.items()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{folder / FINDINGS} must list the records of experiments, and could not be read: {error}. "
                        "Restore it from the project.") from error


def read(finding: Finding, folder: Path = FOLDER) -> Experiment:
    """A record's tables.

    Raises:
        UserError: it cannot be read.
    """
    path = folder / f"{finding.name}.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
        made = {name: str(record[name]) for name in ("command", "protocol", "device", "date") if name in record}
        return Experiment(finding, made | {"versions": versions}, tuple(_tables(record)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"The record {path} could not be read: {error!r}. Restore it from the project, or measure it "
                        "anew with its command.") from error


def _tables(record: Mapping[str, Any]) -> Iterable[Table]:
    if "rows" in record:
        yield _of_runs(record)
    for title, found in record.get("datasets", {}).items():
        rows = found.get("rows") or {f"{name}: {kind}": row for name, kinds in found.items()
                                     for kind, row in kinds.items()}
        yield Table(title, {name: _row(row) for name, row in rows.items()})
    if "costs" in record:
        yield Table(record["costs"]["protocol"], {f"n = {name}": _row(row)
                                                  for name, row in record["costs"]["rows"].items()})
    if "pairs a second" in record:
        yield Table("Pairs a second", {f"D = {one['D']}, d = {one['d']}": _row({name: one[name] for name in
                                                                                ("ours", "autograd")})
                                       for one in record["pairs a second"]})
    if "medians" in record:
        yield Table(record["what"], {name: {"median": (value, 0.0)} for name, value in record["medians"].items()})


def _of_runs(record: Mapping[str, Any]) -> Table:
    """Rows that are runs, each with what its evaluation holds beside the result."""
    rows: dict[str, Row] = {}
    for name, one in record["rows"].items():
        rows[name] = _judged(one, "final") | {"seconds": _spread([run["seconds"] for run in one["runs"]])}
        if "latent" in one["summary"]:
            rows[f"{name}, z"] = _judged(one, "latent")
    beside: dict[str, Row] = {}
    for kind, title in BESIDE.items():
        alike: list[tuple[Row, list[str]]] = []
        for name, one in record["rows"].items():
            row = _judged(one, kind)
            known = next((names for other, names in alike if other == row), None)
            if known is not None:
                known.append(name)
            elif row not in beside.values():  # a start at the principal components
                alike.append((row, [name]))
        beside |= {title if len(alike) == 1 else f"{title} of {', '.join(names)}": row for row, names in alike}
    printed = record.get("printed", {}) | {name: one["printed"] for name, one in record["rows"].items()
                                           if one.get("printed")}
    return Table(record["dataset"], rows, beside, {name: _printed(row) for name, row in printed.items()},
                 record.get("comparable", True),
                 {name: _mean_curves([run["curves"] for run in one["runs"]]) for name, one in record["rows"].items()})


def _judged(row: Mapping[str, Any], candidate: str) -> dict[str, Spread]:
    """How a row's runs evaluated one candidate, and how wide it is."""
    width = row["runs"][0]["evaluation"][candidate]["dimension"]
    return _row(row["summary"][candidate]) | {"width": (width, 0.0)}


def _row(found: Mapping[str, Any]) -> dict[str, Spread]:
    """Measures as mean and deviation; what is no measure is left out."""
    row: dict[str, Spread] = {}
    for name, value in found.items():
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
    """Epochs that every seed came to, with the mean of what all of them hold."""
    rows = []
    for together in zip(*seeds, strict=False):
        names = [name for name in together[0]
                 if all(isinstance(one.get(name), int | float) for one in together)]
        rows.append({name: statistics.mean(one[name] for one in together) for name in names})
    return rows
