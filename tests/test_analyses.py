"""Analyses: asked once, computed in the background, kept with the run, and ended well whatever happens."""

from __future__ import annotations

import io
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.projection.laws import median_move
from tests.running import spec, until, worked, write_digits
from udml_core import jobs
from udml_core.analyses import (
    Analysis,
    AnalysisSpec,
    ImageGrid,
    Placed,
    Projection,
    create_analysis,
    find_analysis,
    list_analyses,
    plan_analysis,
)
from udml_core.data.splits import make_split
from udml_core.errors import UserError
from udml_core.evaluation import distortion
from udml_core.graph import AuthorityGraph
from udml_core.neighbors import nearest
from udml_core.runs import Run, create_run
from udml_core.tasks import LIVE_STATES, Status
from udml_core.workers import analyse as analyst


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return worked(tmp_path_factory.mktemp("runs"), select="validation",
                  fields={"dimension": 16, "epochs": 2, "steps": 3, "n_neighbors": 30})


@pytest.fixture
def run(finished: Run, tmp_path: Path) -> Run:
    """The finished run with nothing but its own analyses."""
    return Run(Path(shutil.copytree(finished.folder, tmp_path / "runs" / finished.id)))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Analyses are computed in this process."""
    monkeypatch.setattr("udml_core.jobs.launch.launch", analyst.work)


def png(run: Run, index: int) -> bytes:
    written = io.BytesIO()
    run.dataset().images[index].save(written, "PNG")
    return written.getvalue()


def test_what_makes_no_difference_does_not_make_another_analysis() -> None:
    pca = AnalysisSpec(kind="pca")
    assert pca.id == AnalysisSpec(kind="pca", perplexity=5, seed=3, n_neighbors=40).id
    different = [pca, AnalysisSpec(kind="pca", scope="test"), AnalysisSpec(kind="pca", frames=("final",)),
                 AnalysisSpec(kind="pca", frames=("final", "initial")), AnalysisSpec(kind="tsne"),
                 AnalysisSpec(kind="tsne", perplexity=5), AnalysisSpec(kind="tsne", seed=1),
                 AnalysisSpec(kind="umap"), AnalysisSpec(kind="umap", min_dist=0.5)]
    assert len({one.id for one in different}) == len(different)
    assert AnalysisSpec(kind="graph") == AnalysisSpec(kind="graph", frames=("frozen",), n_neighbors=50)


@pytest.mark.parametrize(("given", "message"), [
    ({"kind": "tsne", "perplexity": 1}, "perplexity: .* greater than or equal to 2, got 1"),
    ({"kind": "tsne", "frames": ("last",)}, "frames: .* got 'last'"),
    ({"kind": "tsne", "frames": ()}, "frames: "),
    ({"kind": "pca", "frames": ("3",)}, "epochs are kept for the sample only"),
    ({"kind": "pca", "frames": ("final", "final")}, "each frame can be there once"),
    ({"kind": "graph", "frames": ("initial", "final")}, "a graph is of one frame"),
    ({"kind": "grid"}, "the kind 'grid' needs a map"),
    ({"kind": "pca", "colour": "red"}, "colour: "),
])
def test_what_does_not_fit_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        plan_analysis(**given)


def test_a_run_ends_with_its_principal_plane_and_its_graph(run: Run) -> None:
    assert {one.id: one.status().state for one in list_analyses(run)} == {
        AnalysisSpec(kind="pca").id: "done", AnalysisSpec(kind="graph", scope="train", n_neighbors=30).id: "done"}
    (plane,), (graph,) = list_analyses(run, "pca"), list_analyses(run, "graph")
    projection = plane.projection()
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
    own, built = graph.result(), AuthorityGraph.build(points, 30)
    assert isinstance(own, AuthorityGraph)
    np.testing.assert_allclose(own.authority, built.authority, rtol=1e-4)
    assert abs(len(own.clusters(0.5, 100.0).modes) - len(built.clusters(0.5, 100.0).modes)) <= 2


def test_an_analysis_is_computed_in_the_background_once(run: Run) -> None:
    asked = AnalysisSpec(kind="tsne", scope="test", perplexity=10, frames=("frozen", "final"))
    analysis = jobs.analyse(run, asked)
    assert jobs.analyse(run, asked) == analysis
    until(analysis, "done")
    result = analysis.projection()
    assert result.positions.shape == (2, 359, 2)
    np.testing.assert_array_equal(result.indices, make_split(run.dataset(), "seen").test)
    written = (analysis.folder / "result.npz").stat().st_mtime_ns
    assert jobs.analyse(run, asked).status().state == "done"
    assert (analysis.folder / "result.npz").stat().st_mtime_ns == written
    assert find_analysis(run, analysis.id[:8]) == analysis
    assert list_analyses(run)[0] == analysis
    with pytest.raises(UserError, match="is done; there is nothing to resume"):
        jobs.resume(analysis)


def test_stopped_killed_and_asked_again_it_still_comes_to_its_end(run: Run) -> None:
    asked = AnalysisSpec(kind="tsne", frames=("final",))
    analysis = jobs.analyse(run, asked)
    laid_out(analysis)
    assert (analysis.status().seconds_left or 0) > 0
    began = time.monotonic()
    jobs.stop(analysis)
    assert time.monotonic() - began < 5
    assert analysis.status().state == "stopped"
    assert not analysis.is_alive()
    with pytest.raises(UserError, match="is stopped, so there is no result yet"):
        analysis.result()
    jobs.resume(analysis)
    laid_out(analysis)
    with pytest.raises(UserError, match="already"):
        jobs.resume(analysis)
    os.killpg(analysis.status().pid or 0, signal.SIGKILL)
    until(analysis, "interrupted")
    assert jobs.analyse(run, asked) == analysis
    until(analysis, "done")
    assert analysis.projection().positions.shape == (1, 1797, 2)
    assert run.status().state == "done"


def laid_out(analysis: Analysis) -> None:
    """Wait until a layout is going on."""
    deadline = time.monotonic() + 240
    while analysis.status().phase != "layout" or analysis.status().share < 0.05:
        assert analysis.status().state in LIVE_STATES, analysis.status()
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(("asked", "message"), [
    (AnalysisSpec(kind="tsne", scope="test", perplexity=200), "needs at least 601 images, .* there are 359"),
    (AnalysisSpec(kind="umap", scope="test", n_neighbors=400), "Lower the number of neighbors to at most 358"),
    (AnalysisSpec(kind="graph", scope="test", n_neighbors=359), "Lower n_neighbors to at most 358"),
    (AnalysisSpec(kind="pca", scope="sample", frames=("0", "7")), "has the epochs 0 to 2, and epoch 7 was asked for"),
])
@pytest.mark.usefixtures("at_once")
def test_a_failure_tells_why_and_leaves_the_trace(asked: AnalysisSpec, message: str, run: Run) -> None:
    analysis = jobs.analyse(run, asked)
    assert analysis.status().state == "failed"
    with pytest.raises(UserError, match=message):
        analysis.result()
    assert "Traceback" in analysis.error()


@pytest.mark.usefixtures("at_once")
def test_epochs_are_frames_of_the_sample_also_where_a_run_did_not_note_its_images(run: Run) -> None:
    asked = AnalysisSpec(kind="pca", scope="sample", frames=("0", "1", "2", "final"))
    noted = jobs.analyse(run, asked).projection()
    np.testing.assert_array_equal(noted.indices, run.sample_indices())
    np.testing.assert_array_equal(noted.indices, make_split(run.dataset(), "seen").test)  # all of them
    np.testing.assert_allclose(run.epoch_sample(0), run.embeddings("initial")[noted.indices], atol=1e-6)
    (run.folder / "epochs" / "sample.npy").unlink()
    np.testing.assert_array_equal(run.sample_indices(), noted.indices)


@pytest.mark.usefixtures("at_once")
def test_a_grid_is_snapped_from_a_map(run: Run) -> None:
    (plane,) = list_analyses(run, "pca")
    result = jobs.analyse(run, AnalysisSpec(kind="grid", source=plane.id, frame="initial")).result()
    assert isinstance(result, ImageGrid)
    assert len(np.unique(result.cells)) == 1797
    assert result.rows * result.columns >= 1797
    assert result.right.shape == (result.rows, result.columns - 1)
    row, column = divmod(int(result.cells[5]), result.columns)
    beside = np.flatnonzero(result.cells == result.cells[5] + 1)
    if column < result.columns - 1 and len(beside):
        vectors = run.embeddings("initial")
        assert result.right[row, column] == pytest.approx(np.linalg.norm(vectors[5] - vectors[beside[0]]), rel=1e-5)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("asked", [AnalysisSpec(kind="pca"), AnalysisSpec(kind="tsne", scope="test"),
                                   AnalysisSpec(kind="umap", scope="test", frames=("frozen",))],
                         ids=lambda one: one.kind)
def test_images_of_the_set_are_placed_near_their_own_points(asked: AnalysisSpec, run: Run) -> None:
    source = jobs.analyse(run, asked)
    projection = source.projection()
    rows = np.arange(0, 300, 20)
    files = [(f"{row}.png", png(run, int(projection.indices[row]))) for row in rows]
    placed = jobs.place_images(run, source, projection.frames[-1], files).result()
    assert isinstance(placed, Placed)
    assert placed.names == tuple(name for name, _ in files)
    assert median_move(projection.positions[-1][rows], placed.positions) < 0.03
    assert (placed.nearest[:, 0] == projection.indices[rows]).mean() > 0.9
    again = jobs.place_images(run, source, projection.frames[-1], files)
    assert [one.id for one in list_analyses(run, "placed")] == [again.id]


def test_what_cannot_be_placed_is_told(run: Run) -> None:
    (plane,) = list_analyses(run, "pca")
    for files, frame, message in (
            ([("a.png", b"nothing")], "final", "a.png must be an image"), ([], "final", "Between 1 and 200 images"),
            ([("a.png", png(run, 0))], "frozen", "has the frames initial, final, and 'frozen' was asked for")):
        with pytest.raises(UserError, match=message):
            jobs.place_images(run, plane, frame, files)
    with pytest.raises(UserError, match="has no analysis 'pca-0'"):
        jobs.analyse(run, AnalysisSpec(kind="grid", source="pca-0", frame="final"))
    (graph,) = list_analyses(run, "graph")
    with pytest.raises(UserError, match="A map is needed"):
        graph.projection()


@pytest.mark.usefixtures("at_once")
def test_a_lost_result_is_computed_again_and_a_broken_one_is_told(run: Run) -> None:
    (plane,) = list_analyses(run, "pca")
    path = plane.folder / "result.npz"
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(UserError, match="Remove it, then start it anew"):
        plane.result()
    path.unlink()
    assert isinstance(jobs.analyse(run, plane.spec()).result(), Projection)
    (plane.folder / "spec.json").write_text("{")
    assert list_analyses(run, "pca") == []


def test_two_who_ask_at_once_get_the_same_folder(run: Run) -> None:
    asked = AnalysisSpec(kind="tsne")
    first = create_analysis(run, asked)
    first.write_status(Status(state="running"))
    assert create_analysis(run, asked) == first
    assert first.stored_status().state == "running"
    assert not list(first.folder.parent.glob(".*"))


def test_only_finished_runs_are_analysed(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"Only finished runs are analysed, and .* is waiting"):
        jobs.analyse(create_run(spec(), tmp_path), AnalysisSpec(kind="pca"))


@pytest.mark.usefixtures("at_once")
def test_few_images_make_a_run_without_maps_and_say_so_when_asked(tmp_path: Path) -> None:
    folder = str(write_digits(tmp_path / "few", 8, by_class=False))
    few = worked(tmp_path / "runs", method="frozen", dataset=folder, split=None)
    assert few.status().state == "done", few.status().message
    assert list_analyses(few) == []
    refused = jobs.analyse(few, AnalysisSpec(kind="pca")).status().message
    assert "at least 10 images, and the scope 'all' has 8" in refused
    folder = str(write_digits(tmp_path / "twelve", 12, by_class=False))
    twelve = worked(tmp_path / "runs", method="frozen", dataset=folder, split=None)
    assert [one.spec().n_neighbors for one in list_analyses(twelve, "graph")] == [11]
    assert jobs.analyse(twelve, AnalysisSpec(kind="tsne", perplexity=3)).projection().neighbors.shape == (2, 12, 10)
