"""Exported files and tables of a run."""

from __future__ import annotations

import csv
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.running import worked, write_digits
from udml_core.base.errors import UserError
from udml_core.methods import Embedder
from udml_core.numerics.neighbors import read_index
from udml_core.runs import ExclusionList, Run
from udml_core.runs.search import Retrieval
from udml_core.work.exporting import embeddings_file, export, export_model, images_file, run_files
from udml_core.work.exporting import target as target_module
from udml_core.work.exporting.target import written_aside


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return worked(tmp_path_factory.mktemp("runs"))


def test_an_export_contains_everything_to_embed_new_images(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "out"
    names = {path.name for path in export(run, target)}
    assert {"embedder.safetensors", "embeddings.npy", "index.faiss", "images.csv", "evaluation.json",
            "embeddings.parquet", "embeddings-initial.parquet"} <= names
    copied = Embedder.load(target / "embedder.safetensors")
    assert copied.encoder.spec == run.spec().encoder
    with pytest.raises(UserError, match="new or empty folder"):
        export(run, target)


def test_an_export_fills_an_empty_folder(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    export(run, Path())
    assert "spec.json" in os.listdir()
    assert not list(tmp_path.glob(".*"))


def test_force_replaces_an_earlier_export_of_any_kind_and_nothing_else(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "out"
    model = {path.name for path in export_model(run, target, onnx=False)}
    files = {path.name for path in export(run, target, force=True)}
    assert set(os.listdir(target)) == files
    assert not model & files
    (target / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match=r"earlier export only, and .* also contains 'mine\.txt'"):
        export_model(run, target, force=True)
    assert set(os.listdir(target)) == files | {"mine.txt"}
    content = {path.name for path in run.folder.iterdir()}
    with pytest.raises(UserError, match="earlier export only"):
        export(run, run.folder, force=True)
    assert {path.name for path in run.folder.iterdir()} == content


@pytest.mark.parametrize("description", ['{"model_type": "vit"}', '["format"]', "no JSON"])
def test_force_keeps_the_folder_of_a_model_that_another_program_wrote(
        description: str, run: Run, tmp_path: Path) -> None:
    for name in ("README.md", "model.safetensors", "spec.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "config.json").write_text(description)
    for make in (export, export_model):
        with pytest.raises(UserError, match=r"has no spec\.json or config\.json that an export wrote"):
            make(run, tmp_path, force=True)
    assert set(os.listdir(tmp_path)) == {"README.md", "model.safetensors", "spec.json", "config.json"}


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to(path.parent / "model.safetensors")])
def test_force_keeps_what_is_no_regular_file(make: Callable[[Path], object], run: Run, tmp_path: Path) -> None:
    target = tmp_path / "out"
    files = {path.name for path in export_model(run, target, onnx=False)}
    make(target / "search.py")
    with pytest.raises(UserError, match=r"earlier export only, and .* also contains 'search\.py'"):
        export(run, target, force=True)
    assert set(os.listdir(target)) == files | {"search.py"}


@pytest.mark.parametrize("exists", [False, True])
def test_a_killed_export_leaves_no_file_and_is_tidied_up(run: Run, tmp_path: Path, exists: bool) -> None:
    target = tmp_path / "out"
    if exists:
        target.mkdir()
    child = os.fork()
    if child == 0:
        with written_aside(target) as aside:
            (aside / "spec.json").write_text("{}")
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert len(list(tmp_path.rglob("*.part"))) == 1, "the kill came too early to show anything"
    assert not (target / "spec.json").exists()
    export(run, target)
    assert not list(tmp_path.rglob("*.part"))


def test_an_interrupted_replacement_is_not_taken_for_a_whole_export(
        run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out"
    export(run, target)
    publish, published = target_module.publish, []

    def interrupt(aside: Path, final: Path) -> None:
        if len(published) == 3:
            raise KeyboardInterrupt
        published.append(final.name)
        publish(aside, final)

    monkeypatch.setattr(target_module, "publish", interrupt)
    with pytest.raises(KeyboardInterrupt):
        export(run, target, force=True)
    assert len(published) == 3
    assert not (target / "spec.json").exists()
    monkeypatch.undo()
    files = export(run, target, force=True)
    assert set(target.iterdir()) == set(files), "the mark of the interruption is removed"


def test_a_failed_export_leaves_nothing(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_files, "write_images", fail)
    with pytest.raises(UserError, match=r"could not be written to '.*out': .*No space left"):
        export(run, tmp_path / "out")
    assert not any(path for path in tmp_path.iterdir() if path.name != "runs")


@pytest.mark.parametrize(("which", "name"), [("initial", "embeddings-initial.parquet"),
                                             ("final", "embeddings.parquet")])
def test_a_table_has_one_row_for_each_image_and_its_embedding(run: Run, which: str, name: str, tmp_path: Path) -> None:
    opened = Retrieval(run)
    export(run, tmp_path / "out")
    path = tmp_path / "out" / name
    assert path.read_bytes() == embeddings_file(opened, which)  # type: ignore[arg-type]
    table = parquet.read_table(path)
    embeddings = run.embeddings(which)  # type: ignore[arg-type]
    assert table.column_names == ["index", "image", "class", "test", *(f"e{i}" for i in range(embeddings.shape[1]))]
    values = np.stack([table[f"e{i}"].to_numpy() for i in range(embeddings.shape[1])], axis=1)
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values, embeddings)
    dataset = opened.dataset
    assert table["image"].to_pylist() == list(dataset.names)
    assert table["class"].to_pylist() == [dataset.class_names[label] for label in np.asarray(dataset.labels)]
    assert np.flatnonzero(table["test"].to_numpy()).tolist() == opened.split.test.tolist()
    assert table.schema.metadata[b"run"].decode() == run.id
    with (tmp_path / "out" / "images.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["image"] for row in rows] == table["image"].to_pylist()
    assert [row["test"] == "1" for row in rows] == table["test"].to_pylist()


def test_every_file_of_an_export_leaves_out_excluded_images(run: Run, tmp_path: Path) -> None:
    excluded, own = [0, 700, 1796], Run(Path(shutil.copytree(run.folder, tmp_path / run.id)))
    names = Retrieval(run).dataset.names
    listed = ExclusionList.of([names[index] for index in excluded])
    (own.folder / "spec.json").write_text(run.spec().model_copy(update={"excluded": listed}).model_dump_json())
    target = tmp_path / "out"
    export(own, target)
    kept = np.setdiff1d(np.arange(1797), excluded)
    for which, name in (("initial", "embeddings-initial"), ("final", "embeddings")):
        rows = run.embeddings(which)[kept]  # type: ignore[arg-type]
        np.testing.assert_array_equal(np.load(target / f"{name}.npy"), rows)
        table = parquet.read_table(target / f"{name}.parquet")
        assert table["index"].to_pylist() == kept.tolist()
        np.testing.assert_array_equal(table["e0"].to_numpy(), rows[:, 0])
    assert parquet.read_table(target / "images.parquet")["index"].to_pylist() == kept.tolist()
    index = read_index(target / "index.faiss")
    np.testing.assert_array_equal(index.reconstruct_n(0, index.ntotal), run.embeddings("final")[kept])
    with (target / "images.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["index"]) for row in rows] == kept.tolist()
    assert [row["image"] for row in rows] == [names[position] for position in kept]


def test_unlabeled_images_have_no_class_in_the_tables(tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "flat", 12, by_class=False)
    run = worked(tmp_path / "runs", method="frozen", dataset=str(folder), split="all")
    export(run, tmp_path / "out")
    assert parquet.read_table(tmp_path / "out" / "embeddings.parquet")["class"].null_count == 12
    assert (tmp_path / "out" / "images.csv").read_text(encoding="utf-8").splitlines()[1] == "0,000.png,,1"
    images = parquet.read_table(tmp_path / "out" / "images.parquet")
    assert {name: images[name].null_count for name in images.column_names if images[name].null_count} == {
        "label": 12, "cluster": 12}
    assert images.schema.metadata[b"map"].startswith(b"pca-"), "every run stores a PCA map"
    assert {len(row["ids"]) for row in images["neighbors"].to_pylist()} == {12}


def test_several_classes_of_an_image_are_joined(run: Run) -> None:
    dataset = Retrieval(run).dataset
    several = np.zeros((len(dataset), 10), bool)
    several[1, [3, 7]] = several[2, 4] = True
    opened = Retrieval(run, replace(dataset, labels=None, evaluation_classes=several))
    for content, column in ((embeddings_file(opened), "class"), (images_file(opened), "label")):
        assert parquet.read_table(pa.BufferReader(content))[column].to_pylist()[:3] == [None, "3;7", "4"]
