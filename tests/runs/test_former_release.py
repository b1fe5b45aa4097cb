"""Runs that version 0.3.0 wrote: every later version opens and continues them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from udml_core.runs import Run, list_runs
from udml_core.runs.analyses import list_analyses
from udml_core.runs.search import Retrieval
from udml_core.work.workers import train as worker

WRITTEN = Path(__file__).with_name("written_by_0.3.0")


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    """Copies of the runs: RPML with a map of its directions, and SSDML with a refinement."""
    shutil.copytree(WRITTEN, tmp_path / "runs")
    return sorted(list_runs(tmp_path / "runs"), key=lambda run: run.id)


def test_a_run_of_the_former_release_opens_with_all_that_it_stored(runs: list[Run]) -> None:
    assert [run.spec().method for run in runs] == ["rpml", "ssdml"]
    stored = [("clusters", "triplets"), ("triplets", "affinities")]
    for run, kind, names in zip(runs, ("pca", "refine"), stored, strict=True):
        assert run.spec().version == "0.3.0"
        assert run.spec().fields == run.spec().build_method().model_dump()
        assert run.status().state == "done"
        assert run.broken_result() is None
        assert run.evaluation() is not None
        assert [row["epoch"] for row in run.metrics()[0]] == run.epoch_numbers() == [0, 1]
        assert [type(record).__name__.lower() for record in run.explanations(1)] == list(names)
        (analysis,) = list_analyses(run)
        assert analysis.spec().kind == kind
        analysis.result()


def test_the_search_and_the_model_of_the_former_release_give_the_stored_embeddings(runs: list[Run]) -> None:
    for run in runs:
        search = Retrieval(run)
        rows = np.asarray(run.embeddings("final")).astype(np.float64)
        for query in (0, 700):
            distances = np.linalg.norm(rows - rows[query], axis=1)
            distances[query] = np.inf
            hits = search.search_item(query, 5)
            np.testing.assert_allclose([distances[hit.index] for hit in hits], np.sort(distances)[:5], atol=1e-5)
            (nearest,) = search.search_image(search.dataset.images[query], 1)
            assert nearest.index == query


def test_a_run_that_the_former_release_began_continues_to_the_same_result(runs: list[Run]) -> None:
    for run in runs:
        before = np.asarray(run.embeddings("final")).copy()
        for name in ("evaluation.json", "embeddings.npy", "index.faiss", "embedder.safetensors", "status.json"):
            (run.folder / name).unlink()
        worker.work(run)
        assert run.status().state == "done"
        np.testing.assert_array_equal(np.asarray(run.embeddings("final")), before)
