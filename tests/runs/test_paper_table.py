"""Runs as rows of a table for papers, in the library and on the command line."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.cli.test_cli import call
from tests.running import spec, worked
from udml_core.base.errors import UserError
from udml_core.exploration.paper_tables import paired_p
from udml_core.runs import Run, create_run
from udml_core.runs.paper_table import table_of_runs
from udml_core.runs.search import Retrieval
from udml_core.runs.spec import ExclusionList
from udml_core.runs.tasks import Status


def finished(root: Path, seed: int, value: float, **request: Any) -> Run:
    """Create a run with an evaluation, which was never trained."""
    run = create_run(spec(seed=seed, **request), root)
    run.write_evaluation({"final": {"map@r": value, "recall@1": 90.0}, "frozen": {"map@r": 1.0, "recall@1": 1.0}})
    run.write_status(Status(state="done", started=1.0, finished=2.0))
    return run


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    small, large = ({"method": "pca", "fields": {"dimension": width}} for width in (4, 16))
    rows = [(small, (50.0, 52.0, 51.0)), (large, (60.0, 61.0, 63.0)), ({"method": "frozen"}, (40.0,))]
    return [finished(tmp_path, seed, value, **request) for request, values in rows for seed, value in enumerate(values)]


def test_equal_settings_are_a_row_and_equal_methods_are_told_apart(runs: list[Run]) -> None:
    table = table_of_runs(runs)
    assert list(table.rows) == ["PCA, dimension 4", "PCA, dimension 16", "Frozen features"]
    assert table.measures == ["recall@1", "map@r"]
    cell = table.rows["PCA, dimension 4"]["map@r"]
    assert (cell.mean, cell.deviation, dict(cell.by_seed)) == (51.0, 1.0, {0: 50.0, 1: 52.0, 2: 51.0})
    assert table.first("map@r") == ["PCA, dimension 16"]
    rows = [row for row in csv.DictReader(io.StringIO(table.written("csv"))) if row["measure"] == "map@r"]
    assert [(row["run"], row["split"]) for row in rows] == [(run.id, run.spec().split) for run in runs]
    assert list(table_of_runs(runs, ["map@r"], ["a", "b", "c"]).rows) == ["a", "b", "c"]


def test_every_row_names_its_encoder_where_the_encoders_differ(runs: list[Run], tmp_path: Path) -> None:
    further = [finished(tmp_path, 0, 70.0, method="pca", fields={"dimension": 4}, backbone="squeezenet", size=size)
               for size in (64, 96)]
    assert list(table_of_runs([*runs, *further]).rows) == [
        "PCA, pixels, dimension 4", "PCA, pixels, dimension 16", "Frozen features, pixels",
        "PCA, squeezenet, size 64", "PCA, squeezenet, size 96"]
    assert list(table_of_runs([*runs[:3], further[0]]).rows) == ["PCA, pixels", "PCA, squeezenet"]


def test_runs_that_search_other_images_or_have_no_measure_make_no_table(runs: list[Run], tmp_path: Path) -> None:
    other = finished(tmp_path, 0, 50.0, method="frozen", split="zero-shot")
    with pytest.raises(UserError, match="search different test images"):
        table_of_runs([*runs, other])
    with pytest.raises(UserError, match="has none of these measures: nmi"):
        table_of_runs(runs, ["nmi"])
    with pytest.raises(UserError, match=r"No run has the measure 'mse'\. Choose among map@r, recall@1\."):
        table_of_runs(runs, ["map@r", "mse"])
    excluding = finished(tmp_path, 0, 50.0, method="frozen")
    path = excluding.folder / "spec.json"
    path.write_text(excluding.spec().model_copy(update={"excluded": ExclusionList.of(["image 0"])}).model_dump_json())
    with pytest.raises(UserError, match="that leave out the same images"):
        table_of_runs([*runs, Run(excluding.folder)])


def test_the_command_prints_the_table(runs: list[Run], capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [run.id for run in runs]
    root = str(runs[0].folder.parent)
    code, out, err = call(capsys, monkeypatch, "table", *ids, "--runs", root, "--measure", "map@r")
    assert code == 0, err
    assert r"PCA, dimension 16 & \textbf{61.3 $\pm$ 1.5} \\" in out
    assert r"PCA, dimension 4 & 51.0 $\pm$ 1.0$^\dagger$ \\" in out
    assert r"Frozen features & 40.0 \\" in out
    code, out, err = call(capsys, monkeypatch, "table", *ids, "--runs", root, "--form", "csv")
    assert code == 0, err
    assert out.splitlines()[0] == "row,measure,seed,value,p,note,run,split"
    assert out.count("\n") == 1 + 2 * len(ids)


def test_differences_over_queries_are_of_the_hits_and_precisions_of_each_test_image(
        tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    good = [worked(tmp_path, seed=seed) for seed in (0, 1)]
    poor = worked(tmp_path, fields={"dimension": 2, "epochs": 1, "steps": 1})
    table = table_of_runs([*good, poor], titles=["good", "poor"], over="queries")
    hits = []
    for run in (*good, poor):
        opened = Retrieval(run)
        rows, labels = np.asarray(opened.frame("final").take(opened.split.test), float), opened.dataset.labels
        squares = ((rows[:, None] - rows) ** 2).sum(axis=2) + np.diag(np.full(len(rows), np.inf))
        hits.append(100 * (labels[opened.split.test][squares.argmin(axis=1)] == labels[opened.split.test]))
    first = table.column("recall@1")
    assert list(first["good"].by_query) == opened.split.test.tolist()
    np.testing.assert_allclose(list(first["good"].by_query.values()), np.mean(hits[:2], axis=0))
    assert paired_p(first["good"].by_query, first["poor"].by_query) == pytest.approx(
        stats.ttest_rel(np.mean(hits[:2], axis=0), hits[2]).pvalue)
    for measure in table.measures:
        for cell in table.column(measure).values():
            assert np.mean(list(cell.by_query.values())) == pytest.approx(cell.mean, abs=0.01)
        assert table.different(measure) == {"poor": True}
    assert "paired t-test over the queries" in table.written("latex")
    assert not table_of_runs([*good, poor], titles=["good", "poor"]).different("map@r"), "two seeds are too few"
    ids = [run.id for run in (*good, poor)]
    code, out, err = call(capsys, monkeypatch, "table", *ids, "--runs", str(tmp_path), "--test-over", "queries")
    assert (code, out.count(r"$^\dagger$")) == (0, 3), err
