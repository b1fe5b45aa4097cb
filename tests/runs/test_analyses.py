"""Analyses: computed once, stored with the run, stopped, resumed and failed."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.numerics.projection.laws import median_move
from tests.project.documents import ROOT
from tests.running import spec, wait_for, worked, write_digits
from udml_core.base.errors import UserError
from udml_core.data.splits import make_split
from udml_core.numerics.evaluation import distortion
from udml_core.numerics.graph import AuthorityGraph
from udml_core.numerics.neighbors import nearest
from udml_core.runs import Run, create_run
from udml_core.runs.analyses import (
    Analysis,
    AnalysisSpec,
    ImageGrid,
    Placed,
    Projection,
    create_analysis,
    find_analysis,
    finished_maps,
    list_analyses,
    plan_analysis,
)
from udml_core.runs.analyses.kinds.exact import ExactEvaluation
from udml_core.runs.analyses.kinds.graph import NeighborGraph
from udml_core.runs.analyses.kinds.pca import PCA
from udml_core.runs.analyses.kinds.placed import NewImages
from udml_core.runs.analyses.kinds.umap import UMAP
from udml_core.runs.tasks import LIVE_STATES, Status
from udml_core.work import jobs
from udml_core.work.workers import analyse as worker
from udml_core.work.workers import evaluate


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return worked(tmp_path_factory.mktemp("runs"), select="validation",
                  fields={"dimension": 16, "epochs": 2, "steps": 3, "n_neighbors": 30})


@pytest.fixture
def run(finished: Run, tmp_path: Path) -> Run:
    """The finished run with only the analyses of its own training."""
    return Run(Path(shutil.copytree(finished.folder, tmp_path / "runs" / finished.id)))


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Analyses are computed at once, in this process."""
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", worker.work)


def png(run: Run, index: int) -> bytes:
    """Return an image of the run's data set as a PNG file."""
    file = io.BytesIO()
    run.dataset().images[index].save(file, "PNG")
    return file.getvalue()


def test_the_id_depends_only_on_fields_that_change_the_result() -> None:
    pca = AnalysisSpec(kind="pca")
    assert pca.id == AnalysisSpec(kind="pca", perplexity=5, seed=3, n_neighbors=40).id
    different = [pca, AnalysisSpec(kind="pca", scope="test"), AnalysisSpec(kind="pca", frames=("final",)),
                 AnalysisSpec(kind="pca", frames=("final", "initial")), AnalysisSpec(kind="tsne"),
                 AnalysisSpec(kind="tsne", perplexity=5), AnalysisSpec(kind="tsne", seed=1),
                 AnalysisSpec(kind="umap"), AnalysisSpec(kind="umap", min_dist=0.5)]
    assert len({request.id for request in different}) == len(different)
    assert AnalysisSpec(kind="graph") == AnalysisSpec(kind="graph", frames=("frozen",), n_neighbors=50)


@pytest.mark.parametrize(("values", "message"), [
    ({"kind": "tsne", "perplexity": 1}, "perplexity: .* greater than or equal to 2, got 1"),
    ({"kind": "tsne", "frames": ("last",)}, "frames: .* got 'last'"),
    ({"kind": "tsne", "frames": ()}, "frames: "),
    ({"kind": "pca", "frames": ("3",)}, "epochs are stored for the sample only"),
    ({"kind": "pca", "frames": ("final", "final")}, "name each frame once, got final, final"),
    ({"kind": "graph", "frames": ("initial", "final")}, "a graph has exactly one frame, got initial, final"),
    ({"kind": "grid"}, "the kind 'grid' needs a map"),
    ({"kind": "pca", "color": "red"}, "color: "),
])
def test_values_that_do_not_fit_are_rejected(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        plan_analysis(**values)


def test_a_finished_run_has_a_pca_map_and_a_graph(run: Run) -> None:
    assert {analysis.id: analysis.status().state for analysis in list_analyses(run)} == {
        AnalysisSpec(kind="pca").id: "done", AnalysisSpec(kind="graph", scope="train", n_neighbors=30).id: "done"}
    (pca,), (graph,) = list_analyses(run, PCA), list_analyses(run, NeighborGraph)
    projection = pca.projection()
    assert projection.frames == ("initial", "final")
    assert projection.positions.shape == (2, 1797, 2)
    np.testing.assert_array_equal(projection.indices, np.arange(1797))
    final = np.asarray(run.embeddings("final"))
    np.testing.assert_array_equal(projection.neighbors[1], nearest(final, 10)[1])
    trust, continuity = distortion(final, projection.positions[1])
    np.testing.assert_allclose(projection.trustworthiness[1], trust, atol=2e-3)  # the layout is stored in float32
    np.testing.assert_allclose(projection.continuity[1], continuity, atol=2e-3)
    halves = make_split(run.dataset(), "seen", "validation", 0)
    assert len(halves.validation) > 100
    np.testing.assert_array_equal(graph.indices(), halves.train)
    pixels = run.dataset().images
    points = np.stack([np.asarray(pixels[index])[..., 0] for index in halves.train]).reshape(len(halves.train), -1)
    points = points / np.linalg.norm(points, axis=1, keepdims=True)
    stored, expected = graph.result(), AuthorityGraph.build(points, 30)
    assert isinstance(stored, AuthorityGraph)
    np.testing.assert_allclose(stored.authority, expected.authority, rtol=1e-4)
    assert abs(len(stored.clusters(0.5, 100.0).modes) - len(expected.clusters(0.5, 100.0).modes)) <= 2


@pytest.mark.slow
def test_an_analysis_is_computed_once_in_the_background(run: Run) -> None:
    request = AnalysisSpec(kind="tsne", scope="test", perplexity=10, frames=("frozen", "final"))
    analysis = jobs.analyse(run, request)
    assert jobs.analyse(run, request) == analysis
    wait_for(analysis, "done")
    result = analysis.projection()
    assert result.positions.shape == (2, 359, 2)
    np.testing.assert_array_equal(result.indices, make_split(run.dataset(), "seen").test)
    modified = (analysis.folder / "result.npz").stat().st_mtime_ns
    assert jobs.analyse(run, request).status().state == "done"
    assert (analysis.folder / "result.npz").stat().st_mtime_ns == modified
    assert find_analysis(run, analysis.id[:8]) == analysis
    assert list_analyses(run)[0] == analysis
    with pytest.raises(UserError, match="is done; there is nothing to resume"):
        jobs.resume(analysis)


@pytest.mark.slow
def test_a_stopped_or_killed_analysis_can_be_computed_again(run: Run) -> None:
    request = AnalysisSpec(kind="tsne", frames=("final",))
    analysis = jobs.analyse(run, request)
    wait_for_layout(analysis)
    assert (analysis.status().seconds_left or 0) > 0
    began = time.monotonic()
    jobs.stop(analysis)
    assert time.monotonic() - began < 5
    assert analysis.status().state == "stopped"
    assert not analysis.is_alive()
    with pytest.raises(UserError, match="is stopped and has no result"):
        analysis.result()
    jobs.resume(analysis)
    wait_for_layout(analysis)
    with pytest.raises(UserError, match="already"):
        jobs.resume(analysis)
    os.killpg(analysis.status().pid or 0, signal.SIGKILL)
    wait_for(analysis, "interrupted")
    assert jobs.analyse(run, request) == analysis
    wait_for(analysis, "done")
    assert analysis.projection().positions.shape == (1, 1797, 2)
    assert run.status().state == "done"


def wait_for_layout(analysis: Analysis) -> None:
    """Wait until the layout of an analysis is in progress."""
    deadline = time.monotonic() + 800
    while analysis.status().phase != "layout" or analysis.status().share < 0.05:
        assert analysis.status().state in LIVE_STATES, analysis.status()
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(("failing", "message"), [
    (AnalysisSpec(kind="tsne", scope="test", perplexity=200), "at least 601 images.* 359"),
    (AnalysisSpec(kind="umap", scope="test", n_neighbors=400), "Lower the number of neighbors to at most 358"),
    (AnalysisSpec(kind="graph", scope="test", n_neighbors=359), "Lower n_neighbors to at most 358"),
    (AnalysisSpec(kind="pca", scope="sample", frames=("0", "7")), "has no embedding '7'. Choose one of"),
])
@pytest.mark.usefixtures("in_this_process")
def test_a_failed_analysis_has_a_message_and_a_trace(failing: AnalysisSpec, message: str, run: Run) -> None:
    analysis = jobs.analyse(run, failing)
    assert analysis.status().state == "failed"
    with pytest.raises(UserError, match=message):
        analysis.result()
    assert "Traceback" in analysis.error()


@pytest.mark.usefixtures("in_this_process")
def test_epochs_are_frames_of_the_sample_also_if_its_indices_are_not_stored(run: Run) -> None:
    request = AnalysisSpec(kind="pca", scope="sample", frames=("0", "1", "2", "final"))
    indices = jobs.analyse(run, request).projection().indices
    np.testing.assert_array_equal(indices, run.sample_indices())
    np.testing.assert_array_equal(indices, make_split(run.dataset(), "seen").test)  # a small test half is the sample
    np.testing.assert_allclose(run.epoch_sample(0), run.embeddings("initial")[indices], atol=1e-6)
    (run.folder / "epochs" / "sample.npy").unlink()
    np.testing.assert_array_equal(run.sample_indices(), indices)


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
def test_a_grid_is_snapped_from_a_map(run: Run) -> None:
    (pca,) = list_analyses(run, PCA)
    result = jobs.analyse(run, AnalysisSpec(kind="grid", source=pca.id, frame="initial")).result()
    assert isinstance(result, ImageGrid)
    assert len(np.unique(result.cells)) == 1797
    assert result.rows * result.columns >= 1797
    assert result.right.shape == (result.rows, result.columns - 1)
    row, column = divmod(int(result.cells[5]), result.columns)
    beside = np.flatnonzero(result.cells == result.cells[5] + 1)
    if column < result.columns - 1 and len(beside):
        vectors = run.embeddings("initial")
        assert result.right[row, column] == pytest.approx(np.linalg.norm(vectors[5] - vectors[beside[0]]), rel=1e-5)


@pytest.mark.usefixtures("in_this_process")
def test_an_exact_evaluation_replaces_a_sampled_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, request = worked(tmp_path / "runs"), plan_analysis(ExactEvaluation)
    exact = run.evaluation()
    with pytest.raises(UserError, match=r"has asked all of its 359 test images\. There is nothing to add"):
        jobs.analyse(run, request)
    monkeypatch.setattr(evaluate, "ASKED_ALL", 100)
    monkeypatch.setattr(evaluate, "ASKED", 50)
    monkeypatch.setattr(evaluate, "LONGEST_EXACT", 0)
    evaluate.evaluate_run(run, evaluate.load(run, lambda *_: None), lambda *_: None)
    assert run.evaluation()["final"]["queries"] == 50
    assert run.evaluation()["final"]["recall@1"] != exact["final"]["recall@1"]
    assert jobs.analyse(run, request).result() == run.evaluation() == exact
    run.write_evaluation({"final": {"images": 359.0, "effective rank": 8.0}})
    with pytest.raises(UserError, match=r"asks no image, because its test images have no labels"):
        jobs.analyse(run, request)


@pytest.mark.usefixtures("in_this_process")
def test_equal_embeddings_have_one_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = worked(tmp_path / "runs", method="frozen")
    counts = []
    original = PCA.layouts
    monkeypatch.setattr(PCA, "layouts", lambda kind, vectors, report: (
        counts.append(len(vectors)) or original(kind, vectors, report)))
    projection = jobs.analyse(run, AnalysisSpec(kind="pca", scope="test", frames=("initial", "final"))).projection()
    assert counts == [1]
    for values in (projection.positions, projection.neighbors, projection.trustworthiness, projection.continuity):
        assert values.shape[:2] == (2, len(projection.indices))
        np.testing.assert_array_equal(*values)
    assert projection.trustworthiness.mean() > 0.5


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("source_request", [
    pytest.param(AnalysisSpec(kind="pca"), id="pca"),
    pytest.param(AnalysisSpec(kind="tsne", scope="test"), id="tsne", marks=pytest.mark.slow),
    pytest.param(AnalysisSpec(kind="umap", scope="test", frames=("frozen",)), id="umap", marks=pytest.mark.slow)])
def test_copies_of_images_are_placed_near_their_points(source_request: AnalysisSpec, run: Run) -> None:
    source = jobs.analyse(run, source_request)
    projection = source.projection()
    rows = np.arange(0, 300, 20)
    files = [(f"{row}.png", png(run, int(projection.indices[row]))) for row in rows]
    placed = jobs.place_images(run, source, projection.frames[-1], files).result()
    assert isinstance(placed, Placed)
    assert placed.names == tuple(name for name, _ in files)
    assert median_move(projection.positions[-1][rows], placed.positions) < 0.03
    assert (placed.nearest[:, 0] == projection.indices[rows]).mean() > 0.9
    again = jobs.place_images(run, source, projection.frames[-1], files)
    assert [analysis.id for analysis in list_analyses(run, NewImages)] == [again.id]


def test_files_and_frames_that_do_not_fit_are_rejected(run: Run) -> None:
    (pca,) = list_analyses(run, PCA)
    for files, frame, message in (
            ([("a.png", b"nothing")], "final", "a.png"), ([], "final", "between 1 and 200 images at a time, got 0"),
            ([("a.png", png(run, 0))], "frozen", "has the frames initial, final, got 'frozen'")):
        with pytest.raises(UserError, match=message):
            jobs.place_images(run, pca, frame, files)
    with pytest.raises(UserError, match="has no analysis 'pca-0'"):
        jobs.analyse(run, AnalysisSpec(kind="grid", source="pca-0", frame="final"))
    (graph,) = list_analyses(run, NeighborGraph)
    with pytest.raises(UserError, match="is not of the kind umap or tsne or pca"):
        graph.projection()


def test_finished_maps_come_in_the_order_in_which_pages_prefer_them(run: Run) -> None:
    (own,) = list_analyses(run, PCA)
    specs = [plan_analysis(PCA, scope="test"), plan_analysis(UMAP, scope="sample"), plan_analysis(UMAP),
             plan_analysis(UMAP, n_neighbors=9), plan_analysis(UMAP, frames=("final",)), plan_analysis(NeighborGraph)]
    for planned in specs:
        create_analysis(run, planned, state="done", result={"indices": np.arange(3)})
    create_analysis(run, plan_analysis("tsne"))  # is waiting
    of_test, of_sample, older, newer, of_one_frame, _ = (planned.id for planned in specs)
    assert [analysis.id for analysis in finished_maps(run)] == [of_one_frame, newer, older, of_sample, own.id, of_test]


def test_no_call_names_a_kind_by_a_text() -> None:
    """A kind of analysis is a class; its name stands in its file, in stored requests and on the command line."""
    call = re.compile(r"""(plan_analysis|(list|finished)_analyses)\(\s*(kind=|[\w.()]+,\s*)?["']""")
    files = [file for folder in ("udml_core", "pages", "experiments") for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 500
    assert not [str(file) for file in files if call.search(file.read_text(encoding="utf-8"))]


@pytest.mark.usefixtures("in_this_process")
def test_a_missing_result_is_computed_again_and_a_damaged_one_gives_a_message(run: Run) -> None:
    (pca,) = list_analyses(run, PCA)
    path = pca.folder / "result.npz"
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(UserError, match=r"result\.npz .* Remove the file"):
        pca.result()
    path.unlink()
    assert isinstance(jobs.analyse(run, pca.spec()).result(), Projection)
    (pca.folder / "spec.json").write_text("{")
    assert list_analyses(run, PCA) == []


def test_two_simultaneous_requests_share_one_folder(run: Run) -> None:
    request = AnalysisSpec(kind="tsne")
    first = create_analysis(run, request)
    first.write_status(Status(state="running"))
    assert create_analysis(run, request) == first
    assert first.stored_status().state == "running"
    assert not list(first.folder.parent.glob(".*"))


def test_only_finished_runs_can_be_analyzed(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"as soon as it has embedded all images, and .* is waiting"):
        jobs.analyse(create_run(spec(), tmp_path), AnalysisSpec(kind="pca"))


@pytest.mark.usefixtures("in_this_process")
def test_a_run_with_few_images_has_no_maps_and_rejects_requests(tmp_path: Path) -> None:
    folder = str(write_digits(tmp_path / "few", 8, by_class=False))
    few = worked(tmp_path / "runs", method="frozen", dataset=folder, split=None)
    assert few.status().state == "done", few.status().message
    assert list_analyses(few) == []
    message = jobs.analyse(few, AnalysisSpec(kind="pca")).status().message
    assert "at least 10 images, and the scope 'all' has 8" in message
    folder = str(write_digits(tmp_path / "twelve", 12, by_class=False))
    twelve = worked(tmp_path / "runs", method="frozen", dataset=folder, split=None)
    assert [analysis.spec().n_neighbors for analysis in list_analyses(twelve, NeighborGraph)] == [11]
    assert jobs.analyse(twelve, AnalysisSpec(kind="tsne", perplexity=3)).projection().neighbors.shape == (2, 12, 10)
