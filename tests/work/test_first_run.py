"""The first run: its own curve shows a clear gain, and it ends above PCA of the same width."""

from __future__ import annotations

import pytest

from udml_core.data import catalog
from udml_core.runs import Run, create_run
from udml_core.work import jobs
from udml_core.work.workers import train as worker


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = create_run(jobs.plan(jobs.FIRST_RUN, catalog.load(jobs.FIRST_RUN.dataset)), tmp_path_factory.mktemp("runs"))
    assert worker.work(run).state == "done"
    return run


@pytest.mark.slow
def test_the_curve_of_the_first_run_rises_clearly(first: Run) -> None:
    curves, _ = first.metrics()
    assert curves[-1]["sample map@r"] > 2 * curves[0]["sample map@r"]
    assert curves[-1]["sample recall@1"] > curves[0]["sample recall@1"] + 0.2


@pytest.mark.slow
def test_the_first_run_ends_above_pca_of_the_same_width(first: Run) -> None:
    result = first.evaluation()
    assert result is not None
    # PCA is compared as RPML is, by Euclidean distance: 91.4 and 51.8.
    assert result["final"]["map@r"] > result["centered pca"]["map@r"] + 8
    assert result["final"]["recall@1"] > result["centered pca"]["recall@1"]


@pytest.mark.slow
def test_the_first_run_finds_more_of_a_group_than_all_pixels(first: Run) -> None:
    result = first.evaluation()
    assert result is not None
    assert result["final"]["map@r"] > result["frozen"]["map@r"] + 7
    assert result["final"]["mprec@10"] > result["frozen"]["mprec@10"]


@pytest.mark.slow
def test_the_first_run_uses_no_labels(first: Run) -> None:
    assert first.spec().build_method().card.supervision == "none"
