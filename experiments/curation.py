"""Measure audit and samples: duplicates, best copies, quality and outliers in a messy folder, false pairs, and times.

`python -m experiments.curation FOLDER --others cifar10 emoji --large fashion-mnist --out FILE` expects a folder of
`python -m experiments.messy`, features that `udml train --method frozen` has stored for it and for the other data sets,
and an audit of the large data set with the backbone pixels. `--oracle CSV` compares the quality with the table
`Imagelab.issues` of the package CleanVision, by file name.

Rows of duplicates: before, both the hash and the features had to find a pair and the first copy was kept; now pairs are
aligned and the best copy is kept. The tables of other data sets count the pairs that each rule finds there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from experiments.recording import provenance, record_parser, write_record
from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.base.files import read_array
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import DEFAULT_BACKBONE
from udml_core.data.features import features_path
from udml_core.data.image_facts import ImageFacts, facts_of
from udml_core.exploration.audit import Audit, AuditSettings, audit_of, find_problems
from udml_core.exploration.duplicates import all_but_first
from udml_core.exploration.quality import CHECKS, poor_images, quality_scores, worst_first
from udml_core.exploration.sample import KINDS, Neighborhoods, sample_rows
from udml_core.runs import runs_folder
from udml_core.runs.analyses.kinds.audit import DataAudit
from udml_core.work import jobs
from udml_core.work.jobs.auditing import find_auditing

BEFORE, NOW = "hash and features, first copy kept", "aligned, best copy kept"
RULES = {BEFORE: AuditSettings(compare="both"), NOW: AuditSettings()}
PLANTED = {"blurry": "blurred", "dark": "dark", "bright": "bright", "information": "flat", "aspect": "panoramas"}
ORACLE = {"blurry": "blurry", "dark": "dark", "bright": "light", "information": "low_information",
          "aspect": "odd_aspect_ratio", "size": "odd_size"}
NONE = np.zeros(0, np.int64)
REPEATS = 5
Rows = dict[str, dict[str, list[float]]]


def audit_data(dataset: Dataset, backbone: str) -> Audit:
    """Return the audit of a data set with stored features.

    Raises:
        UserError: No features are stored.
    """
    path = features_path(dataset, jobs.encoder_of(dataset, backbone))
    if not path.exists():
        raise UserError(f"No features of {dataset.title} are stored. Compute them: udml train --dataset {dataset.name} "
                        f"--method frozen --backbone {backbone}")
    return audit_of(dataset, np.asarray(read_array(path, mapped=True)))


def measure_duplicates(dataset: Dataset, audit: Audit, facts: ImageFacts, key: dict[str, Any]) -> Rows:
    """Return precision and recall of the pairs that share a group, and how often the original is kept, by rule."""
    index_of = dataset.indices_by_name()
    planted = {tuple(sorted((index_of[row["file"]], index_of[row["of"]]))): row["kind"] for row in key["duplicates"]}
    rows: Rows = {}
    for name, settings in RULES.items():
        groups = find_problems(audit, dataset, NONE, settings, facts if name == NOW else None).duplicates
        found = {pair for group in groups for pair in zip(*np.sort(_pairs(group)).T.tolist(), strict=True)}
        excluded = set(all_but_first(groups).tolist())
        kept = [row["kind"] for row in key["duplicates"]
                if index_of[row["file"]] in excluded and index_of[row["of"]] not in excluded]
        rows[name] = {"precision": [100 * len(found & planted.keys()) / max(1, len(found)), 0.0],
                      "recall": [100 * len(found & planted.keys()) / len(planted), 0.0]}
        for kind in dict.fromkeys(planted.values()):
            of_kind = {pair for pair, other in planted.items() if other == kind}
            rows[name][f"{kind} found of {len(of_kind)}"] = [float(len(found & of_kind)), 0.0]
            rows[name][f"{kind} with the original kept"] = [float(kept.count(kind)), 0.0]
    return rows


def _pairs(group: Array) -> Array:
    left, right = np.triu_indices(len(group), 1)
    return np.stack([group[left], group[right]], axis=1)


def measure_quality(dataset: Dataset, audit: Audit, facts: ImageFacts, key: dict[str, Any]) -> Rows:
    """Return how many planted images head each ranking, and how many images count as findings."""
    everything, rows = np.ones(len(dataset), bool), Rows()
    for check, planted in PLANTED.items():
        ranked = worst_first(quality_scores(facts, check), everything)
        wanted = {dataset.names.index(name) for name in key[planted]}
        rows[CHECKS[check].title] = {"planted": [float(len(wanted)), 0.0],
                                     "planted among as many first": [float(_among(ranked[:len(wanted)], wanted)), 0.0],
                                     "findings": [float(len(poor_images(facts, everything, check))), 0.0]}
    odd = {dataset.names.index(name) for kind in PLANTED.values() for name in key[kind]}
    first = worst_first(-audit.outlier_scores(), everything)[:10]
    rows["Outliers"] = {"planted": [float(len(odd)), 0.0],
                        "planted among the first ten": [float(_among(first, odd)), 0.0]}
    return rows


def _among(images: Array, wanted: set[int]) -> int:
    return len(wanted.intersection(images.tolist()))


def compare_with_oracle(dataset: Dataset, facts: ImageFacts, table: Path) -> Rows:
    """Return for each check the rank correlation with CleanVision's scores, and the images that both or one find."""
    issues = pd.read_csv(table, index_col=0)
    issues.index = [Path(str(name)).name for name in issues.index]
    issues = issues.loc[list(dataset.names)]
    rows: Rows = {}
    for check, name in ORACLE.items():
        scores, theirs = quality_scores(facts, check), issues[f"{name}_score"].to_numpy()
        ours = np.isin(np.arange(len(dataset)), poor_images(facts, np.ones(len(dataset), bool), check))
        flags = issues[f"is_{name}_issue"].to_numpy(bool)
        rows[CHECKS[check].title] = {
            "rank correlation": [100 * float(spearmanr(scores, theirs).statistic), 0.0],
            "found by both": [float((ours & flags).sum()), 0.0],
            "by the audit alone": [float((ours & ~flags).sum()), 0.0],
            "by CleanVision alone": [float((~ours & flags).sum()), 0.0]}
    return rows


def count_pairs(name: str, backbone: str) -> Rows:
    """Return how many near-duplicates each rule finds in a data set, and how many pairs are left to decide."""
    dataset = catalog.load(name)
    audit = audit_data(dataset, backbone)
    kept, rows = np.ones(len(dataset), bool), Rows()
    for rule, settings in RULES.items():
        found = find_problems(audit, dataset, NONE, settings)
        rows[rule] = {"pairs": [float(len(audit.near_pairs(kept, settings))), 0.0],
                      "groups": [float(len(found.near)), 0.0],
                      "pairs to decide": [float(len(found.border)), 0.0]}
    rows[NOW]["least agreement, %"] = [100 * audit.least_agreement(RULES[NOW]), 0.0]
    return rows


def measure_times(name: str, backbone: str) -> Rows:
    """Return the milliseconds of what a page computes at every movement of a slider."""
    dataset = catalog.load(name)
    state = find_auditing(dataset, jobs.encoder_of(dataset, backbone), runs_folder())
    if state.run is None or state.finished is None:
        raise UserError(f"{dataset.title} has no audit with the backbone {backbone}. Start it on the page Data.")
    audit, facts = state.finished.result_of(DataAudit), facts_of(dataset)
    among = Neighborhoods(np.asarray(state.run.embeddings("final")), audit.neighbors, audit.similarities)
    everything = np.ones(len(dataset), bool)
    tasks: dict[str, Callable[[], object]] = {
        "findings": lambda: find_problems(audit, dataset, NONE, AuditSettings(least_agreement=0.9), facts),
        "rankings of quality": lambda: [poor_images(facts, everything, check) for check in CHECKS],
        **{f"100 images, {kind}": lambda kind=kind: sample_rows(kind, among, everything, 100)  # type: ignore[misc]
           for kind in KINDS}}
    return {task: {"milliseconds": _milliseconds(run)} for task, run in tasks.items()}


def _milliseconds(run: Callable[[], object]) -> list[float]:
    run()
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        run()
        times.append(1000 * (time.perf_counter() - began))
    return [round(float(np.mean(times)), 1), round(float(np.std(times, ddof=1)), 1)]


def main() -> None:
    """Measure what the arguments name, and write the record."""
    parser = record_parser(__doc__)
    parser.add_argument("folder", type=Path, help="a folder of experiments.messy")
    parser.add_argument("--others", nargs="*", default=[], help="data sets whose false pairs are counted")
    parser.add_argument("--large", help="a data set whose times are measured, with the backbone pixels")
    parser.add_argument("--oracle", type=Path, help="table of CleanVision's issues")
    parser.add_argument("--backbone", default=DEFAULT_BACKBONE)
    values = parser.parse_args()
    dataset = catalog.load(str(values.folder / "photos"))
    key = json.loads((values.folder / "key.json").read_text(encoding="utf-8"))
    dataset = replace(dataset, title=f"Messy folder, {len(dataset):,} photographs")
    audit, facts = audit_data(dataset, values.backbone), facts_of(dataset)
    tables = {"duplicates": measure_duplicates(dataset, audit, facts, key),
              "quality": measure_quality(dataset, audit, facts, key)}
    if values.oracle:
        tables["quality beside CleanVision"] = compare_with_oracle(dataset, facts, values.oracle)
    datasets: dict[str, Any] = {dataset.title: tables}
    for name in values.others:
        datasets[name] = {"near-duplicates": count_pairs(name, values.backbone)}
    if values.large:
        datasets[values.large] = {"times": measure_times(values.large, "pixels")}
    write_record(values.out, {**provenance("curation"), "protocol": " ".join(str(__doc__).split("\n\n")[-1].split()),
                              "datasets": datasets})


if __name__ == "__main__":
    main()
