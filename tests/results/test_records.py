"""Records of experiments.

Every record is listed, readable, consistent with its seeds, and has an existing command."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import statistics
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.project.documents import DOCUMENTS, ROOT
from udml_core.base.errors import UserError
from udml_core.methods import METHODS
from udml_core.results import records
from udml_core.results.records import FINDINGS, FOLDER, Experiment, Finding

ALL = records.findings()
SINGLE = ("named-folders", "visitors-hour")
"""Records with one row: one reader sorted that folder, and one group of visitors moved a slider for an hour."""
COMMAND = re.compile(r"python -m ((?:experiments|tests\.benchmarks)\.\w+) ")
CITATION = re.compile(r"""(?:(?<!without a )[Rr]ecord|\bsee) "([^"]+)"|record '([^']+)'|^As '([^']+)'|"""
                      r"""[Rr]ecord \*\*([^*]+)\*\*|\(\*\*([A-Z][^*]+)\*\*\)""")
"""The title of a record where a text names it; only the guide `results.md` says what has no record."""


@cache
def raw_record(name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return record


@cache
def read_record(finding: Finding) -> Experiment:
    return records.read(finding)


def test_every_record_is_listed_with_a_title_a_source_and_a_text() -> None:
    assert {finding.name for finding in ALL} == {path.stem for path in FOLDER.glob("*.json")}
    assert len({finding.title for finding in ALL}) == len(ALL)
    assert all(finding.source and finding.text for finding in ALL)


@pytest.mark.parametrize("finding", ALL, ids=lambda finding: finding.name)
def test_the_command_of_a_record_exists(finding: Finding) -> None:
    commands = read_record(finding).provenance["command"].split(" && ")
    assert f"assets/results/{finding.name}.json" in commands[0]
    for command in commands:
        module = COMMAND.match(command)
        assert module, f"{command!r} is not a command of this project"
        assert callable(importlib.import_module(module[1]).main)


def citations(text: str) -> list[str]:
    """Return the titles of records that a text names."""
    return [next(filter(None, groups)) for groups in CITATION.findall(" ".join(text.split()))]


def test_every_record_that_a_text_names_exists() -> None:
    documents = [*DOCUMENTS, ROOT / "CHANGELOG.md"]
    texts = {path.name: path.read_text(encoding="utf-8") for path in documents} | {
        "summary": records.summary()} | {method.__name__: method.card.source for method in METHODS} | {
        f"{finding.name}: {part}": words for finding in ALL
        for part, words in (("text", finding.text), ("source", finding.source))}
    named = {name: citations(text) for name, text in texts.items()}
    titles = {finding.title for finding in ALL}
    assert {(name, title) for name, of in named.items() for title in of if title not in titles} == set()
    assert min(len(named[name]) for name in ("results.md", "judging.md", "CHANGELOG.md")) > 0
    assert sum(len(named[method.__name__]) for method in METHODS) >= 6
    assert sum(len(of) for name, of in named.items() if ": " in name) >= 12


def test_only_the_instrument_is_measured_by_a_benchmark() -> None:
    measured_by_tests = {finding.name for finding in ALL
                         if "tests.benchmarks" in read_record(finding).provenance["command"]}
    assert measured_by_tests == {"instrument"}


@pytest.mark.parametrize("finding", ALL, ids=lambda finding: finding.name)
def test_a_record_contains_versions_and_tables(finding: Finding) -> None:
    experiment = read_record(finding)
    assert "numpy" in experiment.provenance["versions"]
    assert experiment.tables
    for table in experiment.tables:
        assert len(table.rows) > (finding.name not in SINGLE)
        assert table.measures()
        for row in [*table.rows.values(), *table.references.values()]:
            assert row
            assert all(deviation >= 0 for _, deviation in row.values())


@pytest.mark.parametrize("finding", [finding for finding in ALL if "rows" in raw_record(finding.name)],
                         ids=lambda finding: finding.name)
def test_means_and_deviations_are_those_of_the_seeds(finding: Finding) -> None:
    record, (table,) = raw_record(finding.name), read_record(finding).tables
    assert isinstance(record["rows"], dict)
    for name, row in record["rows"].items():
        for measure in ("recall@1", "nmi"):
            values = [run["evaluation"]["final"][measure] for run in row["runs"]]
            mean, deviation = {**table.references, **table.rows}[name][measure]
            assert (name in table.references) == (row.get("row", "").split(" ")[0] in ("whiten", "pca", "frozen"))
            assert mean == pytest.approx(statistics.mean(values), abs=0.006)
            assert deviation == pytest.approx(statistics.stdev(values) if len(values) > 1 else 0, abs=0.006)
        epochs = [run["curves"][1]["epoch"] for run in row["runs"]]
        assert table.curves[name][1]["epoch"] == statistics.mean(epochs)
    widths = {run["evaluation"]["frozen"]["dimension"] for row in record["rows"].values() for run in row["runs"]}
    frozen = {title for title in table.references if title.startswith("Frozen features")}
    assert frozen == ({"Frozen features"} if len(widths) == 1 else
                      {f"Frozen features, {width:.0f} dimensions" for width in widths}), "one for each backbone"


def test_references_tell_centered_from_uncentered_pca(tmp_path: Path) -> None:
    """Records of versions before 0.3 contain the uncentered PCA."""
    for candidate, title, other in (("pca", "PCA, same dimension", "PCA (centered)"),
                                    ("centered pca", "PCA (centered)", "PCA, same dimension")):
        evaluation = {name: {"dimension": 8} for name in ("frozen", candidate, "initial", "final")}
        row = {"summary": {name: {"recall@1": [level, 1.0]} for level, name in enumerate(evaluation)},
               "runs": [{"seed": 0, "seconds": 1.0, "curves": [], "evaluation": evaluation}]}
        path = tmp_path / "record.json"
        path.write_text(json.dumps({"versions": {}, "dataset": "digits", "rows": {"PLM": row}}), encoding="utf-8")
        (table,) = records.read(Finding("record", "", "", ""), tmp_path).tables
        assert table.references[title] == {"recall@1": (1.0, 1.0), "width": (8.0, 0.0)}
        assert other not in table.references


def test_pca_is_shown_for_each_distance_that_the_rows_use(tmp_path: Path) -> None:
    evaluation = {name: {"dimension": 8} for name in ("centered pca", "final")}
    rows = {name: {"summary": {"centered pca": {"recall@1": [level, 0.0]}, "final": {"recall@1": [9.0, 0.0]}},
                   "runs": [{"seed": 0, "seconds": 1.0, "curves": [], "evaluation": evaluation} | distance]}
            for name, level, distance in (("PLM", 70.0, {"unit length": True}), ("RPML", 77.0, {"unit length": False}),
                                          ("SSDML", 77.0, {"unit length": False}), ("older", 70.0, {}))}
    path = tmp_path / "record.json"
    path.write_text(json.dumps({"versions": {}, "dataset": "digits", "rows": rows}), encoding="utf-8")
    (table,) = records.read(Finding("record", "", "", ""), tmp_path).tables
    assert {title: row["recall@1"][0] for title, row in table.references.items()} == {
        "PCA (centered)": 70.0, "PCA (centered), Euclidean": 77.0}


def test_several_references_are_named_by_their_dimension_or_else_by_their_rows(tmp_path: Path) -> None:
    def references(widths: tuple[int, int]) -> list[str]:
        rows = {f"RPML, {name}": {
            "summary": {candidate: {"recall@1": [level, 1.0]} for candidate in ("initial", "final")},
            "runs": [{"seed": 0, "seconds": 1.0, "curves": [], "evaluation": {
                candidate: {"dimension": width} for candidate in ("initial", "final")}}]}
            for level, (name, width) in enumerate(zip(("a", "b"), widths, strict=True))}
        path = tmp_path / "record.json"
        path.write_text(json.dumps({"versions": {}, "dataset": "digits", "rows": rows}), encoding="utf-8")
        (table,) = records.read(Finding("record", "", "", ""), tmp_path).tables
        return list(table.references)

    assert references((4, 8)) == ["Start, 4 dimensions", "Start, 8 dimensions"]
    assert references((4, 4)) == ["Start of RPML, a", "Start of RPML, b"]


def test_a_papers_figures_belong_to_the_row_of_the_same_name() -> None:
    finding = next(finding for finding in ALL if finding.name == "fashion-mnist-ssdml")
    printed = read_record(finding).tables[0].printed
    assert printed["SSDML"] == {"nmi": 52.1, "recall@1": 77.6, "recall@2": 86.0, "recall@4": 91.8, "recall@8": 95.6}
    assert printed["Start"]["recall@1"] == 71.9


@pytest.mark.parametrize("content", ["", "{", "[]", '{"versions": {}, "rows": {"a": {}}}', '{"rows": 3}'])
def test_a_broken_record_is_reported_and_affects_no_other(content: str, tmp_path: Path) -> None:
    for finding in ALL[:2]:
        shutil.copy(FOLDER / f"{finding.name}.json", tmp_path)
    (tmp_path / f"{ALL[0].name}.json").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"could not be read.*Restore it from the project"):
        records.read(ALL[0], tmp_path)
    assert records.read(ALL[1], tmp_path).tables


@pytest.mark.parametrize("content", [b"x =", b"summary = 'a'\nx = 3", b"summary = 'a'\n[x]\ntitle = 'a'", b"\xff",
                                     b"summary = 3", b"[x]\ntitle = 'a'\nsource = 'b'\nsays = 'c'"])
def test_a_broken_list_is_reported(content: bytes, tmp_path: Path) -> None:
    (tmp_path / FINDINGS).write_bytes(content)
    for read in (records.findings, records.summary):
        with pytest.raises(UserError, match="must list the records of experiments"):
            read(tmp_path)


def test_the_summary_answers_in_five_sentences() -> None:
    sentences = re.split(r"^\d\. ", records.summary(), flags=re.MULTILINE)[1:]
    assert len(sentences) == 5
    assert all(len(re.findall(r"\.(?:\s|$)", sentence)) == 1 for sentence in sentences)
    assert records.summary() in (FOLDER.parents[1] / "docs" / "results.md").read_text(encoding="utf-8")


def test_a_row_of_a_table_contains_the_shares_of_its_triplets(tmp_path: Path) -> None:
    record = dict(raw_record("birds100-ssdml"))
    name = next(iter(record["rows"]))
    record["rows"] = {name: record["rows"][name] | {"triplets": {"positives by affinity": [75.3, 0.2]}}}
    (tmp_path / "new.json").write_text(json.dumps(record), encoding="utf-8")
    (table,) = records.read(Finding("new", "", "", ""), tmp_path).tables
    assert table.rows[name]["positives by affinity"] == (75.3, 0.2)


@pytest.mark.parametrize("finding", ALL, ids=lambda finding: finding.name)
def test_printed_figures_are_comparable_only_if_every_row_is(finding: Finding) -> None:
    record = raw_record(finding.name)
    rows = record.get("rows", {}).values()
    every_row_is = bool(rows) and all(row.get("comparable", False) for row in rows)
    assert record.get("comparable", False) == every_row_is
    assert all(table.comparable == every_row_is for table in read_record(finding).tables)


def test_a_claim_is_the_first_emphasized_sentence() -> None:
    text = "Three seeds. This is **not comparable**.\n\n**A gains two\npoints** over B. **C loses.**"
    assert records.Finding("n", "t", "s", text).claim == "A gains two points over B."
    assert records.Finding("n", "t", "s", "Nothing is emphasized.").claim == ""
    assert records.findings()[0].claim.startswith("Instance discrimination gains one point of MAP@R over PCA of ")


def test_rows_are_ranked_by_a_measure_but_a_series_keeps_its_order() -> None:
    rows = {"B": {"map@r": (5.0, 0.0)}, "C": {"recall@1": (9.0, 0.0)}}
    table = records.Table("t", rows, {"A": {"map@r": (3.0, 0.0)}}, {"D": {"map@r": 4.0}})
    assert table.ranked("map@r") == ["B", "D", "A", "C"]
    series = records.Table("t", {"α = 5°": {"map@r": (1.0, 0.0)}, "α = 15°": {"map@r": (2.0, 0.0)}})
    assert series.ranked("map@r") == ["α = 5°", "α = 15°"]
    costs = records.Table("t", {"slow": {"seconds": (9.0, 0.0)}, "fast": {"seconds": (1.0, 0.0)}})
    assert costs.ranked("seconds", lowest_first=True) == ["fast", "slow"]
