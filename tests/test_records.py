"""Records of experiments: each that lies there is listed and read, its figures are those of its seeds, a broken one is
told."""

from __future__ import annotations

import json
import shutil
import statistics
from pathlib import Path

import pytest

from udml_core.errors import UserError
from udml_core.results import records as experiments
from udml_core.results.records import FINDINGS, FOLDER, Finding

EVERY = experiments.findings()


def raw(finding: Finding) -> dict[str, object]:
    found: dict[str, object] = json.loads((FOLDER / f"{finding.name}.json").read_text(encoding="utf-8"))
    return found


def test_every_record_is_listed_with_what_it_shows() -> None:
    assert {one.name for one in EVERY} == {path.stem for path in FOLDER.glob("*.json")}
    assert len({one.title for one in EVERY}) == len(EVERY)
    assert all(one.source and one.says for one in EVERY)


@pytest.mark.parametrize("finding", EVERY, ids=lambda one: one.name)
def test_a_record_tells_its_command_and_has_tables_of_figures(finding: Finding) -> None:
    found = experiments.read(finding)
    assert found.made["command"].startswith("python -m tests.benchmarks.")
    assert f"assets/results/{finding.name}.json" in found.made["command"]
    assert "numpy" in found.made["versions"]
    assert found.tables
    for table in found.tables:
        assert len(table.rows) > 1
        assert table.measures()
        for row in [*table.rows.values(), *table.beside.values()]:
            assert row
            assert all(deviation >= 0 for _, deviation in row.values())


@pytest.mark.parametrize("finding", [one for one in EVERY if "rows" in raw(one)], ids=lambda one: one.name)
def test_means_and_deviations_are_those_of_the_seeds(finding: Finding) -> None:
    record, (table,) = raw(finding), experiments.read(finding).tables
    assert isinstance(record["rows"], dict)
    for name, row in record["rows"].items():
        for measure in ("recall@1", "nmi"):
            values = [run["evaluation"]["final"][measure] for run in row["runs"]]
            mean, deviation = table.rows[name][measure]
            assert mean == pytest.approx(statistics.mean(values), abs=0.006)
            assert deviation == pytest.approx(statistics.stdev(values) if len(values) > 1 else 0, abs=0.006)
        curve = [run["curves"][1]["epoch"] for run in row["runs"]]
        assert table.curves[name][1]["epoch"] == statistics.mean(curve)
    assert "Frozen features" in table.beside


def test_a_papers_figures_stand_beside_the_row_that_they_are_of() -> None:
    finding = next(one for one in EVERY if one.name == "fashion-mnist-ssdml")
    printed = experiments.read(finding).tables[0].printed
    assert printed["SSDML"] == {"nmi": 52.1, "recall@1": 77.6, "recall@2": 86.0, "recall@4": 91.8, "recall@8": 95.6}
    assert printed["Start"]["recall@1"] == 71.9


@pytest.mark.parametrize("content", ["", "{", "[]", '{"versions": {}, "rows": {"a": {}}}', '{"rows": 3}'])
def test_a_broken_record_is_told_and_spoils_no_other(content: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FOLDER, tmp_path / "results"))
    (folder / f"{EVERY[0].name}.json").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"could not be read.*Restore it from the project"):
        experiments.read(EVERY[0], folder)
    assert experiments.read(EVERY[1], folder).tables


@pytest.mark.parametrize("content", [b"x =", b"x = 3", b"[x]\ntitle = 'a'", b"\xff"])
def test_a_broken_list_is_told(content: bytes, tmp_path: Path) -> None:
    (tmp_path / FINDINGS).write_bytes(content)
    with pytest.raises(UserError, match="must list the records of experiments"):
        experiments.findings(tmp_path)
