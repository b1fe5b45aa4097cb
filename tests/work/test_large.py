"""A large data set: what is sampled, searched approximately, and sent to the browser; and shards for vector stores."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from pages.parts.draw.transport import Message
from pages.parts.maps import frame
from pages.parts.maps.content import map_header
from pages.parts.shell.selection import Selection
from tests.app.opening import opened, texts
from tests.cli.test_cli import answer, call
from tests.running import spec, write_digits
from udml_core.base import arrays
from udml_core.base.errors import UserError
from udml_core.base.paths import ASSETS
from udml_core.data import catalog, dataset
from udml_core.data.given.labels import assign, assigned_labels, labels_by_index
from udml_core.data.splits import fixed_sample
from udml_core.data.thumbnails import are_sheets_made
from udml_core.exploration import map_content
from udml_core.exploration.map_content import Color, Layout
from udml_core.exploration.map_values import hide_rest
from udml_core.numerics.evaluation import nearest_is_hit
from udml_core.numerics.galleries import build, build_gallery, remove_vectors
from udml_core.numerics.galleries.manifest import Manifest, Recall, Shard, read_manifest
from udml_core.numerics.galleries.storage import write_shard
from udml_core.numerics.neighbors import ignore_progress, nearest
from udml_core.numerics.projection import pca
from udml_core.numerics.projection.sampled import place_by_neighbors, sampled_layouts
from udml_core.runs import Run, RunRequest, create_run
from udml_core.runs.analyses import list_analyses, map_kind
from udml_core.runs.analyses.kinds.exact import ExactEvaluation
from udml_core.runs.search import Query, Retrieval
from udml_core.work.exporting import export_shards
from udml_core.work.jobs.planning import plan
from udml_core.work.workers import evaluate, train

ROWS, WIDTH, CLASSES = 20_000, 32, 10
ASKED = 300
GUIDE = (ASSETS.parent / "docs" / "galleries.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run of frozen features on a table that counts as large."""
    folder = tmp_path_factory.mktemp("large")
    random = np.random.default_rng(0)
    labels = random.integers(0, CLASSES, ROWS)
    points = random.normal(size=(CLASSES, WIDTH))[labels] + random.normal(size=(ROWS, WIDTH))
    np.save(folder / "table.npy", points.astype(np.float32))
    parquet.write_table(pa.table({"label": labels, "shop": labels % 3}), folder / "table.parquet")
    with pytest.MonkeyPatch.context() as patch:
        for module in (dataset, evaluate, map_kind, map_content, frame):
            patch.setattr(module, "LARGE", 1_000)
        patch.setattr(evaluate, "ASKED_ALL", 1_000)
        patch.setattr(evaluate, "ASKED", ASKED)
        patch.setattr(evaluate, "LONGEST_EXACT", 0)
        patch.setattr(map_kind, "MOST_JUDGED", 1_000)
        patch.setattr(train, "MOST_ANALYZED", 1_000)
        patch.setenv("UDML_RUNS", str(folder / "runs"))
        table = catalog.load(str(folder / "table.npy"))
        created = create_run(plan(RunRequest(dataset=table.name, method="frozen"), table), folder / "runs")
        assert train.work(created).state == "done"
        yield created


@pytest.fixture
def own_runs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the run, in place of a folder for each test."""
    monkeypatch.setenv("UDML_RUNS", str(run.folder.parent))


@pytest.mark.slow
def test_a_large_run_has_a_gallery_and_a_map_and_a_sampled_evaluation(run: Run) -> None:
    assert run.gallery_path.is_dir()
    assert not run.index_path.exists()
    assert not are_sheets_made(run.dataset())
    final, test = run.evaluation()["final"], Retrieval(run).split.test
    assert (final["images"], final["queries"]) == (len(test), ASKED)
    rows = np.flatnonzero(np.isin(test, fixed_sample(test, ASKED)))
    hits = nearest_is_hit(np.asarray(run.embeddings("final"))[test], run.dataset().labels[test])[rows]
    assert final["recall@1"] == pytest.approx(100 * hits.mean()), "queries of the sample, gallery of all"
    assert final["recall@1 margin"] == pytest.approx(196 * hits.std(ddof=1) / np.sqrt(ASKED))
    ExactEvaluation().check_run(run)
    words = texts(opened("runs", run=run.id))
    assert f"A sample of {ASKED} of {len(test):,} is asked" in words
    (map_,) = list_analyses(run)
    projection = map_.projection()
    assert projection.neighbors.shape == (2, ROWS, 0)
    for measured in (projection.trustworthiness, projection.continuity):
        assert np.isfinite(measured).sum(axis=1).tolist() == [map_kind.JUDGED, map_kind.JUDGED]
    embeddings = np.asarray(run.embeddings("final"), np.float64)
    np.testing.assert_allclose(projection.positions[0], pca.pca_layout(embeddings), atol=1e-5)


@pytest.mark.parametrize("gallery", ["all", "test"])
@pytest.mark.parametrize("shop", [None, 1.0])
def test_a_large_run_finds_the_nearest_images(run: Run, gallery: Any, shop: float | None) -> None:
    opened_run = Retrieval(run)
    vectors = np.asarray(run.embeddings("final"))
    allowed = None if shop is None else np.asarray(opened_run.dataset.columns["shop"] == shop)
    candidates = np.arange(ROWS) != 17
    if allowed is not None:
        candidates &= allowed
    if gallery == "test":
        candidates &= np.isin(np.arange(ROWS), opened_run.split.test)
    rows = np.flatnonzero(candidates)
    hits = opened_run.search(Query((17,)), 10, gallery=gallery, allowed=allowed)
    assert [hit.index for hit in hits] == rows[nearest(vectors[rows], 10, vectors[17:18])[1][0]].tolist()


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of each array of a gallery, and its record without the time that it took."""
    record = read_manifest(folder).model_copy(update={"seconds": 0.0})
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.[nb][pi][yn]")} | {
        "record": record.model_dump_json().encode()}


@pytest.fixture
def four_shards(run: Run, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the shards that are written from now on, four for each index of a run."""
    for name, value in (("EXACT_UP_TO", 1_000), ("SHARDS", 4), ("LEAST_SHARD", 100)):
        monkeypatch.setattr(build, name, value)
    for module in (dataset, evaluate):
        monkeypatch.setattr(module, "LARGE", 1_000)
    monkeypatch.setattr(evaluate, "ASKED_ALL", 1_000)
    monkeypatch.setattr(evaluate, "ASKED", ASKED)
    monkeypatch.setattr(evaluate, "LONGEST_EXACT", 0)
    written: list[int] = []

    def write(folder: Path, manifest: Manifest, shard: Shard, *rest: Any) -> None:
        if shard.number == 2 and len(written) == 2:
            written.append(-1)
            raise OSError("No space left on device")
        written.append(shard.number)
        write_shard(folder, manifest, shard, *rest)

    monkeypatch.setattr(build.storage, "write_shard", write)
    return written


@pytest.mark.slow
def test_the_index_of_an_interrupted_run_continues_after_its_last_shard(
        run: Run, four_shards: list[int], tmp_path: Path) -> None:
    interrupted = create_run(run.spec(), tmp_path)
    assert train.work(interrupted, analyse=False).state == "failed"
    assert "No space left" in interrupted.error()
    trained = (interrupted.gallery_path / "centers.npy").stat().st_mtime_ns
    interrupted.clear_failure()
    assert train.work(interrupted, analyse=False).state == "done"
    assert four_shards == [0, 1, -1, 2, 3]
    assert (interrupted.gallery_path / "centers.npy").stat().st_mtime_ns == trained
    np.testing.assert_array_equal(interrupted.embeddings("final"), run.embeddings("final"))
    assert interrupted.evaluation() == run.evaluation()
    build_gallery(run.embeddings("final"), tmp_path / "whole")
    assert four_shards[5:] == [0, 1, 2, 3]
    assert contents(interrupted.gallery_path) == contents(tmp_path / "whole")


@pytest.mark.parametrize("change", ["other vectors", "other files", "removed"])
def test_an_index_that_does_not_fit_the_vectors_is_built_again(
        change: str, four_shards: list[int], tmp_path: Path) -> None:
    four_shards.append(-1)  # nothing interrupts
    vectors = np.random.default_rng(1).normal(size=(1_500, 8)).astype(np.float32)
    folder = tmp_path / "gallery"
    if change == "other files":
        folder.mkdir()
        (folder / "else").touch()
    else:
        build_gallery(vectors + (change == "other vectors"), folder)
        if change == "removed":
            remove_vectors(folder, np.arange(10))
    train._build_gallery(vectors, folder, ignore_progress)
    train._build_gallery(vectors, tmp_path / "new", ignore_progress)
    assert contents(folder) == contents(tmp_path / "new")


def test_a_search_says_how_many_neighbors_it_finds(run: Run) -> None:
    opened_run = Retrieval(run)
    index = opened_run.frame("final").index.index  # type: ignore[attr-defined]
    index.manifest = index.manifest.model_copy(update={"recall": Recall(recall=0.986, queries=9, rows=ROWS, changes=0)})
    assert opened_run.describe_searched().endswith("(training half included), which finds 98.6 % of the 10 nearest")


def test_a_large_run_without_its_gallery_is_still_searched(run: Run) -> None:
    expected = [hit.index for hit in Retrieval(run).search_item(3, 5)]
    aside = run.gallery_path.rename(run.gallery_path.with_name("aside"))
    try:
        assert [hit.index for hit in Retrieval(run).search_item(3, 5)] == expected
    finally:
        aside.rename(run.gallery_path)


def arrays_of(message: Message, part: Any) -> np.ndarray:
    """Read an array as the browser does."""
    content = message.pack({})[4 + 8:]
    return np.frombuffer(content[part["at"] : part["at"] + part["length"]], part["type"])


@pytest.mark.parametrize(("classes", "kind"), [(10, "int8"), (127, "int8"), (128, "int16"), (40_000, "int32")])
def test_points_of_a_large_map_are_sent_in_few_bytes(run: Run, classes: int, kind: str) -> None:
    positions = np.random.default_rng(1).normal(size=(ROWS, 2)).astype(np.float32) * (3, 500)
    codes = np.arange(ROWS) % (classes + 1) - 1
    message = Message(self_contained=True)
    header = map_header(message, run.dataset(), Layout(np.arange(ROWS), positions), Color(
        "cluster", codes, tuple(map(str, range(classes)))), Selection("x"), True)
    assert (header["names"], header["sheets"], header["ids"], header["neighbors"]) == (None,) * 4
    assert header["positions"]["length"] == 4 * ROWS
    assert header["classes"]["length"] == ROWS
    low, width = np.array(header["steps"]["low"]), np.array(header["steps"]["width"])
    received = low + width * arrays_of(message, header["positions"]).reshape(-1, 2)
    assert np.abs(received - positions).max(axis=0) == pytest.approx(np.ptp(positions, axis=0) / 65_535 / 2, rel=0.1)
    assert header["color"]["values"]["type"] == kind
    np.testing.assert_array_equal(arrays_of(message, header["color"]["values"]), codes)


def test_the_map_page_says_what_a_large_map_leaves_out(run: Run, own_runs: None) -> None:
    page = opened("explore", run=run.id, picked="17")
    assert not page.exception
    words = texts(page)
    assert "All 20,000 images, as points without thumbnails" in words
    assert "among all 20,000 images" in words
    (color,) = (box for box in page.selectbox if box.key == "explore-color")
    assert "column: shop" in color.options or "shop" in " ".join(color.options)
    assert not {"density", "Density", "Purity: neighbors of the same class"} & set(color.options)


def test_a_sample_of_the_images_that_are_not_hidden_is_drawn() -> None:
    indices, hidden = np.arange(0, 200, 2), np.array([2, 4])
    np.testing.assert_array_equal(hide_rest(indices, hidden, 100), hidden)
    drawn = np.setdiff1d(indices, hide_rest(indices, hidden, 30))
    assert len(drawn) == 30
    assert not np.isin(hidden, drawn).any()


def test_points_are_placed_among_their_neighbors_in_the_sample() -> None:
    random = np.random.default_rng(0)
    points = np.concatenate([random.normal(size=(300, 8)) + 9 * np.eye(8)[group] for group in range(4)])
    (layout,) = sampled_layouts([points], lambda samples, _: [pca.pca_layout(sample) for sample in samples], size=200)
    group = np.repeat(np.arange(4), 300)
    found = nearest(layout, 10)[1]
    assert (group[found] == group[:, None]).mean() > 0.95
    near = place_by_neighbors(points[:50], np.arange(100.0).reshape(50, 2), points[:50] + 1e-6)
    assert np.abs(near - np.arange(100.0).reshape(50, 2)).mean() < np.ptp(near) / 4


def test_a_plane_does_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(0).normal(size=(50, 6)) * np.arange(1, 7) + 100
    whole = pca.pca_layout(points)
    monkeypatch.setattr(arrays, "BLOCK_ENTRIES", 42)
    np.testing.assert_allclose(pca.pca_layout(points), whole, atol=1e-9)


def test_labels_of_few_images_are_found_without_listing_all(run: Run) -> None:
    table = run.dataset()
    assign(table, [5, 3], "new")
    assert labels_by_index(table, assigned_labels(table) | {"no such image": "new"}) == {5: "new", 3: "new"}


def test_shards_have_all_rows_in_their_order(run: Run, tmp_path: Path) -> None:
    files = export_shards(run, tmp_path / "shards", 6_000)
    assert [path.name for path in files[1:]] == [f"vectors-{number:05}-of-00004.parquet" for number in range(4)]
    tables = [parquet.read_table(path) for path in files[1:]]
    assert [len(table) for table in tables] == [6_000, 6_000, 6_000, 2_000]
    table = pa.concat_tables(tables)
    np.testing.assert_array_equal(np.asarray(table["vector"].combine_chunks().flatten()).reshape(ROWS, -1),
                                  run.embeddings("final"))
    assert table["index"].to_pylist() == list(range(ROWS))
    assert table["label"].to_pylist()[:3] == [run.dataset().class_names[label] for label in run.dataset().labels[:3]]
    assert np.flatnonzero(table["test"]).tolist() == Retrieval(run).split.test.tolist()
    assert tables[0].schema.metadata[b"metric"] == b"cosine"


def test_new_shards_replace_earlier_ones(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")  # not UTF-8, as Arrow wants names
    export_shards(run, folder, 6_000)
    with pytest.raises(UserError, match="is not empty"):
        export_shards(run, folder, 10_000)
    files = export_shards(run, folder, 10_000, force=True)
    assert sorted(folder.iterdir()) == files
    assert len(files) == 3


@pytest.mark.parametrize("rows", [0, -5, 99])
def test_tiny_shards_are_refused(run: Run, tmp_path: Path, rows: int) -> None:
    with pytest.raises(UserError, match=f"at least 100 rows, got {rows}"):
        export_shards(run, tmp_path, rows)


@pytest.fixture
def vectors(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that the guide's command writes, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(r"```bash\nudml (.+?)\n```", GUIDE)
    answer(capsys, monkeypatch, *command.replace("RUN", run.id).split())


def test_shards_are_neither_a_model_nor_a_refinement(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, error = call(capsys, monkeypatch, "export", run.id, str(tmp_path / "out"), "--shards", "500", "--model")
    assert code
    assert "Remove --model and --refined, or --shards" in error


def follow_guide(title: str) -> dict[str, Any]:
    """Execute the Python of a section of the guide and return its variables."""
    code = GUIDE.partition(f"\n## {title}\n")[2].partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {}
    exec(compile(code, f"galleries.md, {title}", "exec"), names)
    return names


@pytest.mark.slow
@pytest.mark.usefixtures("vectors")
def test_lancedb_finds_the_neighbors_by_its_index(run: Run) -> None:
    pytest.importorskip("lancedb", reason="needs the package lancedb")
    names = follow_guide("LanceDB")
    images, embeddings = names["images"], np.asarray(run.embeddings("final"))
    assert images.count_rows() == ROWS
    assert images.index_stats(images.list_indices()[0].name).num_indexed_rows == ROWS
    assert all(hit["test"] for hit in names["filtered"])
    queries = np.random.default_rng(2).choice(ROWS, 50, replace=False)
    recall = []
    for query, exact in zip(queries, nearest(embeddings, 10, embeddings[queries])[1], strict=True):
        found = images.search(embeddings[query]).distance_type("cosine").nprobes(names["partitions"]).refine_factor(10)
        recall.append(np.isin(exact, [hit["index"] for hit in found.limit(10).to_list()]).mean())
    assert np.mean(recall) >= 0.95


@pytest.mark.slow
def test_qdrant_finds_the_neighbors(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("qdrant_client", reason="needs the package qdrant-client")
    export_shards(run, tmp_path / "all", 500)
    (tmp_path / "vectors").mkdir()
    for path in sorted((tmp_path / "all").glob("*.parquet"))[:2]:
        shutil.copy(path, tmp_path / "vectors")
    monkeypatch.chdir(tmp_path)
    names = follow_guide("Qdrant")
    embeddings = np.asarray(run.embeddings("final")[:1_000])
    assert names["client"].count("images").count == 1_000
    assert [hit.id for hit in names["hits"]] == nearest(embeddings, 10, embeddings[:1])[1][0].tolist()
    is_test = np.isin(np.arange(1_000), Retrieval(run).split.test)
    rows = np.flatnonzero(is_test)
    assert [hit.id for hit in names["filtered"]] == rows[nearest(embeddings[rows], 10, embeddings[:1])[1][0]].tolist()
    assert names["filtered"][0].payload["label"] in run.dataset().class_names


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory differ")
def test_wide_features_need_no_square_matrix_of_their_width(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """12,544 pixels an image have a map in 2 GB; their covariance and its eigenvectors alone have more."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    folder = write_digits(tmp_path / "digits", 300)
    request = spec(method="frozen", dataset=str(folder), backbone="pixels", size=112)
    run = create_run(request, tmp_path / "runs")
    limit = 2_000_000_000
    subprocess.run([sys.executable, "-m", "udml_core", "work", str(run.folder)], check=True, timeout=300,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
    assert run.status().state == "done"
    assert run.evaluation()["final"]["recall@1"] > 50
    assert {analysis.spec().kind for analysis in list_analyses(run) if analysis.is_done()} == {"pca", "graph"}
