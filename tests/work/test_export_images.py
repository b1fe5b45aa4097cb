"""The table of images for other tools, read by these tools."""

from __future__ import annotations

import csv
import json
import time
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from pages.parts.draw.downloads import Download
from pages.parts.retrieval import rankings
from pages.parts.retrieval.embeddings import Column
from tests.cli.test_cli import call
from tests.running import worked
from udml_core.base.errors import UserError
from udml_core.numerics.explanations import Clusters
from udml_core.numerics.neighbors import nearest
from udml_core.runs import Run
from udml_core.runs.analyses import Analysis, create_analysis, plan_analysis
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.search import Retrieval
from udml_core.work.exporting import export, images_file
from udml_core.work.exporting.tables import NEIGHBORS
from udml_core.work.workers import analyse as worker


def add_map(run: Run, kind: str, indices: Any, at: float, **rest: Any) -> Analysis:
    """Store a map of images whose positions are (index, `at`) in its last frame."""
    spec = plan_analysis(kind=kind, **rest)
    positions = np.zeros((len(spec.frames), len(indices), 2), np.float32)
    positions[-1] = np.column_stack([indices, np.full(len(indices), at)])
    flat = np.zeros((len(spec.frames), len(indices)), np.float32)
    return create_analysis(run, spec, state="done", result={
        "indices": np.asarray(indices), "positions": positions, "trustworthiness": flat, "continuity": flat,
        "neighbors": np.zeros((*flat.shape, 1), np.int32)})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = worked(tmp_path_factory.mktemp("runs"))
    add_map(run, "pca", np.arange(1797), 1.0)
    time.sleep(0.01)
    add_map(run, "umap", np.arange(1797), 2.0)
    add_map(run, "umap", np.arange(0, 1797, 2), 3.0, scope="test")
    add_map(run, "tsne", np.arange(1797), 4.0)
    return run


@pytest.fixture(scope="module", params=["average:k=5", "rerank"])
def refinement(run: Run, request: pytest.FixtureRequest) -> Analysis:
    analysis = create_analysis(run, plan_analysis(kind="refine", recipe=request.param))
    worker.work(analysis)
    return analysis


@pytest.fixture(scope="module")
def file(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "images.parquet"
    path.write_bytes(images_file(Retrieval(run)))
    return path


def vectors_of(table: pa.Table) -> Any:
    column = table["vector"].combine_chunks()
    return np.asarray(column.flatten()).reshape(len(table), -1)


def test_a_row_has_the_image_its_embedding_its_neighbors_and_its_place(run: Run, file: Path) -> None:
    opened, table = Retrieval(run), parquet.read_table(file)
    dataset, embeddings = opened.dataset, run.embeddings("final")
    assert table.schema.field("vector").type == pa.list_(pa.float32(), 16)
    np.testing.assert_array_equal(vectors_of(table), embeddings)
    assert table["file_name"].to_pylist() == list(dataset.names)
    assert table["label"].to_pylist() == [dataset.class_names[label] for label in np.asarray(dataset.labels)]
    assert np.flatnonzero(table["test"]).tolist() == opened.split.test.tolist()
    distances, rows = nearest(embeddings, NEIGHBORS - 1)
    neighbors = table["neighbors"].to_pylist()
    assert [row["ids"] for row in neighbors] == [[i, *ids] for i, ids in enumerate(rows.tolist())]
    np.testing.assert_allclose([row["distances"][1:] for row in neighbors], np.sqrt(distances), rtol=1e-6)
    assert all(row["distances"][0] == 0 for row in neighbors)


def test_excluded_images_have_no_row_and_are_no_neighbors(run: Run) -> None:
    opened = Retrieval(run)
    nearest_of_first = int(nearest(run.embeddings("final"), 1)[1][0, 0])
    opened.split = opened.split.without(np.array([nearest_of_first]))
    table = parquet.read_table(BytesIO(images_file(opened)))
    kept = np.setdiff1d(np.arange(1797), [nearest_of_first])
    assert table["index"].to_pylist() == table["projection_x"].to_pylist() == kept.tolist()
    np.testing.assert_array_equal(vectors_of(table), run.embeddings("final")[kept])
    rows = nearest(run.embeddings("final")[kept], NEIGHBORS - 1)[1]
    assert [row["ids"][1:] for row in table["neighbors"].to_pylist()] == rows.tolist()


def test_the_map_is_umap_of_all_images_where_there_is_one(run: Run, file: Path) -> None:
    table = parquet.read_table(file)
    assert table["projection_x"].to_pylist() == list(range(1797))
    assert set(table["projection_y"].to_pylist()) == {2.0}
    assert table.schema.metadata[b"map"].startswith(b"umap-")
    assert table.schema.metadata[b"run"].decode() == run.id


def test_the_last_clusters_of_training_belong_to_the_training_half(run: Run, file: Path) -> None:
    clusters, train = parquet.read_table(file)["cluster"].to_pylist(), Retrieval(run).split.train
    assert run.kept_epoch() == 2
    (record,) = [record for record in run.explanations(1) if isinstance(record, Clusters)]
    assert [clusters[index] for index in train] == record.labels.tolist()
    assert sum(cluster is None for cluster in clusters) == 1797 - len(train)


def test_a_refined_table_has_the_neighbors_of_the_refinement(
        run: Run, refinement: Analysis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    printed = call(capsys, monkeypatch, "export", str(run.folder), str(tmp_path / "out"), "--refined",
                   refinement.id[:9])[2]
    table, result = parquet.read_table(tmp_path / "out" / "images.parquet"), refinement.result_of(Refinement)
    told = json.loads((tmp_path / "out" / "refinement.json").read_text(encoding="utf-8"))["vectors"]
    embeddings = parquet.read_schema(tmp_path / "out" / "embeddings.parquet").metadata.get(b"vectors", b"").decode()
    by_distance = nearest(vectors_of(table), 5)[1]
    if refinement.spec().recipe == "rerank":
        assert (by_distance != result.neighbors[:, :5]).any(), "the vectors do not give the refined ranking"
        assert told == embeddings == table.schema.metadata[b"vectors"].decode()
        assert told in printed
        assert told.startswith("The vectors are the embedding before rerank, which changes the ranking alone.")
    else:
        np.testing.assert_array_equal(by_distance, result.neighbors[:, :5])
        assert (told, embeddings, printed) == ("The vectors are the refined embedding.", "", "")
    assert table["index"].to_pylist() == result.indices.tolist()
    np.testing.assert_array_equal(vectors_of(table), result.embedding)
    neighbors = table["neighbors"].to_pylist()
    assert [row["ids"][1:] for row in neighbors] == result.neighbors[:, : NEIGHBORS - 1].tolist()
    apart = np.linalg.norm(result.embedding[:, None] - result.embedding[result.neighbors[:, : NEIGHBORS - 1]], axis=2)
    np.testing.assert_allclose([row["distances"][1:] for row in neighbors], apart, rtol=1e-6)
    assert table["projection_x"].null_count == len(table), "no map shows the refined embedding"
    add_map(run, "pca", result.indices, 5.0, scope="test", frames=("final", refinement.id))
    table = parquet.read_table(pa.BufferReader(images_file(Retrieval(run), refinement.id)))
    assert table["projection_x"].to_pylist() == result.indices.tolist()
    assert set(table["projection_y"].to_pylist()) == {5.0}


def test_every_file_of_a_refined_export_has_the_refined_vectors_of_its_images(
        run: Run, refinement: Analysis, tmp_path: Path) -> None:
    result = refinement.result_of(Refinement)
    files = {path.name: path for path in export(run, tmp_path / "out", refinement=refinement)}
    table = parquet.read_table(files["embeddings.parquet"])
    vectors = {
        "embeddings.npy": np.load(files["embeddings.npy"]),
        "index.faiss": faiss.read_index(str(files["index.faiss"])).reconstruct_n(0, len(result.indices)),
        "images.parquet": vectors_of(parquet.read_table(files["images.parquet"])),
        "embeddings.parquet": np.stack([table[name].to_numpy() for name in table.column_names[4:]], axis=1)}
    for name, found in vectors.items():
        np.testing.assert_array_equal(found, result.embedding, err_msg=name)
    with files["images.csv"].open(encoding="utf-8", newline="") as file:
        assert [int(row["index"]) for row in csv.DictReader(file)] == result.indices.tolist()
    assert table["index"].to_pylist() == result.indices.tolist()
    told = json.loads(files["refinement.json"].read_text(encoding="utf-8"))
    assert (told["id"], told["recipe"], told["protocol"]) == (refinement.id, refinement.spec().recipe, result.protocol)
    assert told["measures"]["map@r"] == dict(zip(("before", "after"), result.measures["map@r"], strict=True))
    without = {"spec.json", "images.csv", "refinement.json"}
    assert set(files) == without | set(vectors), "no file of the model, its curves or its vectors"
    export(run, tmp_path / "out", force=True)
    assert not files["refinement.json"].exists(), "an export of the trained embedding replaces that of a refinement"


def test_the_page_offers_the_refined_vectors_of_a_refined_search(
        run: Run, refinement: Analysis, monkeypatch: pytest.MonkeyPatch) -> None:
    offered: list[Download] = []
    monkeypatch.setattr(rankings, "share", lambda downloads, _key: offered.extend(downloads))
    opened = Retrieval(run)
    frames = [opened.frame(name) for name in ("final", refinement.id)]
    rankings.share_results(opened, [rankings.SearchResult(Column(frame.name, "", "", opened, frame), [], "", "")
                                    for frame in frames])
    contents = {download.name: download for download in offered}
    for name in ("embeddings.parquet", "images.parquet"):
        table = parquet.read_table(BytesIO(contents[name].make()))
        assert table.schema.metadata[b"embedding"].decode() == refinement.id
    is_reranked = refinement.spec().recipe == "rerank"
    assert (", before rerank" if is_reranked else ", refined") in contents["embeddings.parquet"].label
    assert ", refined" in contents["images.parquet"].label
    assert "before the refinement" in contents["index.faiss"].label


def test_the_page_offers_the_table_and_the_model(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered: list[Download] = []
    monkeypatch.setattr(rankings, "share", lambda downloads, _key: offered.extend(downloads))
    monkeypatch.setattr(rankings, "model_archive", lambda run: run.id.encode())
    rankings.share_results(Retrieval(run), [])
    contents = {download.name: download.make for download in offered}
    assert contents["images.parquet"]() == file.read_bytes()
    assert contents["model.zip"]() == run.id.encode()


def test_the_page_offers_no_model_of_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "table.npy", np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32))
    run = worked(tmp_path / "runs", method="frozen", dataset=str(tmp_path / "table.npy"), split="all",
                 backbone="table")
    offered: list[Download] = []
    monkeypatch.setattr(rankings, "share", lambda downloads, _key: offered.extend(downloads))
    rankings.share_results(Retrieval(run), [])
    names = {download.name for download in offered}
    assert "images.parquet" in names
    assert "model.zip" not in names


def test_only_a_refinement_can_be_exported_as_one(run: Run) -> None:
    map_ = add_map(run, "pca", np.arange(3), 1.0, scope="train")
    with pytest.raises(UserError, match="is not of the kind refine"):
        images_file(Retrieval(run), map_.id)


@pytest.mark.slow
def test_lancedb_finds_the_neighbors_of_the_app(run: Run, file: Path, tmp_path: Path) -> None:
    lancedb = pytest.importorskip("lancedb", reason="needs the package lancedb")
    images = lancedb.connect(tmp_path / "images.lance").create_table("images", parquet.read_table(file))
    opened = Retrieval(run)
    rows = images.search(np.asarray(run.embeddings("final")[17])).limit(6).to_list()
    assert [row["index"] for row in rows[1:]] == [hit.index for hit in opened.search_item(17, 5)]
    assert rows[0]["file_name"] == opened.dataset.names[17]
    assert images.count_rows("label = '3' and test") == sum(opened.dataset.labels[opened.split.test] == 3)


def test_embedding_atlas_reads_neighbors_and_positions(file: Path, tmp_path: Path) -> None:
    reason = "needs the package embedding-atlas, which brings 100 others"
    command = pytest.importorskip("embedding_atlas.cli", reason=reason).main
    words = [str(file), "--x", "projection_x", "--y", "projection_y", "--neighbors", "neighbors", "--pagerank",
             "--kcore", "--export-application", str(tmp_path / "atlas")]
    command(words, standalone_mode=False)
    props = json.loads((tmp_path / "atlas" / "data" / "metadata.json").read_text())["props"]
    table = parquet.read_table(tmp_path / "atlas" / "data" / "dataset.parquet").to_pandas()
    assert "projection_x" in json.dumps(props)
    assert table["pagerank"].sum() == pytest.approx(1)
    assert table["pagerank"].nunique() > 1
    assert (table["kcore"] > 0).any()


def test_fiftyone_finds_the_neighbors_of_the_app(
        run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("fiftyone") is None:
        pytest.skip("needs the package fiftyone, and its MongoDB or FIFTYONE_DATABASE_URI of a running one")
    monkeypatch.setenv("FIFTYONE_DO_NOT_TRACK", "1")
    import fiftyone
    import fiftyone.brain

    opened, rows = Retrieval(run), parquet.read_table(file).to_pylist()
    images = fiftyone.Dataset(f"udml-{tmp_path.name}")
    try:
        images.add_samples([fiftyone.Sample(
            filepath=str(tmp_path / row["file_name"]), index=row["index"], vector=row["vector"], test=row["test"],
            label=fiftyone.Classification(label=row["label"])) for row in rows], progress=False)
        fiftyone.brain.compute_similarity(images, embeddings="vector", backend="sklearn", metric="euclidean",
                                          brain_key="similar")
        query = images.match(fiftyone.ViewField("index") == 17).first()
        nearest_first = images.sort_by_similarity(query.id, k=6, brain_key="similar").values("index")
        assert set(nearest_first) == {17, *(hit.index for hit in opened.search_item(17, 5))}
        assert images.count_values("label.label")["3"] == sum(opened.dataset.labels == 3)
        positions = np.array([[row["projection_x"], row["projection_y"]] for row in rows])
        shown = fiftyone.brain.compute_visualization(images, points=positions, brain_key="map", progress=False)
        np.testing.assert_array_equal(shown.points, positions)
    finally:
        images.delete()
