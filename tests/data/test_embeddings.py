"""Tables of embeddings: every format gives the same arrays, and hostile files one clear message."""

from __future__ import annotations

import csv
import io
import json
import os
import zipfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from pyarrow import parquet
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch_file

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.sources import table_files, vector_files
from udml_core.data.sources.embeddings import EmbeddingTable, table_of
from udml_core.data.sources.table_columns import Choices, open_table
from udml_core.data.text_tiles import TILE, draw_text_tile

COUNT, WIDTH = 50, 7
LABELS = [(100, 20, 3)[row % 3] for row in range(COUNT)]  # neither in the order of the rows nor of the letters
NAMES = [f"näme {row}" for row in range(COUNT)]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(vector_files, "BLOCK_BYTES", 4 * WIDTH * 8)  # several blocks, the last one shorter


@pytest.fixture(scope="module")
def vectors() -> Array:
    return np.random.default_rng(0).normal(size=(COUNT, WIDTH)).astype(np.float32)


def write_csv(path: Path, **columns: Any) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def write_parquet(path: Path, columns: dict[str, Any]) -> None:
    parquet.write_table(pa.table(columns), path, row_group_size=20)


def write_npz(path: Path, vectors: Array) -> None:
    np.savez_compressed(path, embeddings=vectors, labels=np.array(LABELS), names=np.array(NAMES))


def beside(write: Callable[[Path, Array], Any]) -> Callable[[Path, Array], None]:
    """Write the vectors, and labels and names as a CSV file beside them."""
    def write_both(path: Path, vectors: Array) -> None:
        write(path, vectors)
        write_csv(path.with_suffix(".csv"), label=LABELS, name=NAMES)

    return write_both


def as_lists(kind: Any) -> Callable[[Path, Array], None]:
    return lambda path, vectors: write_parquet(path, {
        "name": NAMES, "embedding": pa.array(list(vectors), kind), "label": LABELS, "score": np.zeros(COUNT)})


def as_columns(path: Path, vectors: Array) -> None:
    """Write the columns out of order, beside another column of fractions."""
    columns: dict[str, Any] = {f"e{number}": vectors[:, number] for number in reversed(range(WIDTH))}
    write_parquet(path, {"projection": np.zeros(COUNT)} | columns | {"label": LABELS, "name": NAMES})


FORMATS: dict[str, tuple[str, Callable[[Path, Array], Any]]] = {
    "npy": ("npy", beside(np.save)),
    "npy in Fortran order": ("npy", beside(lambda path, vectors: np.save(path, np.asfortranarray(vectors)))),
    "npy, float64, big-endian": ("npy", beside(lambda path, vectors: np.save(path, vectors.astype(">f8")))),
    "npz": ("npz", write_npz),
    "npz with one array": ("npz", beside(lambda path, vectors: np.savez(path, anything=vectors))),
    "parquet, lists": ("parquet", as_lists(pa.list_(pa.float32()))),
    "parquet, large lists": ("parquet", as_lists(pa.large_list(pa.float64()))),
    "parquet, fixed-size lists": ("parquet", as_lists(pa.list_(pa.float32(), WIDTH))),
    "parquet, columns": ("parquet", as_columns),
    "safetensors": ("safetensors", beside(lambda path, vectors: save_file({"x": vectors}, path))),
}


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_data_set(kind: str, vectors: Array, tmp_path: Path) -> None:
    ending, write = FORMATS[kind]
    path = tmp_path / f"table.{ending}"
    write(path, vectors)
    dataset = catalog.load(str(path))
    assert dataset.vectors is not None
    assert dataset.labels is not None
    np.testing.assert_array_equal(dataset.vectors, vectors)
    assert dataset.vectors.dtype == np.float32
    assert isinstance(dataset.vectors, np.memmap)
    assert dataset.names == tuple(NAMES)
    assert dataset.class_names == ("3", "20", "100")
    assert [int(dataset.class_names[label]) for label in dataset.labels] == LABELS
    write(tmp_path / f"again.{ending}", vectors)
    assert catalog.load(str(tmp_path / f"again.{ending}")).fingerprint == dataset.fingerprint
    assert catalog.find(str(path)).images == COUNT


def test_all_columns_of_fractions_are_the_vector_if_none_is_numbered(vectors: Array, tmp_path: Path) -> None:
    write_parquet(tmp_path / "t.parquet", {"red": vectors[:, 0], "count": LABELS, "green": vectors[:, 1]})
    np.testing.assert_array_equal(catalog.load(str(tmp_path / "t.parquet")).vectors, vectors[:, :2])


def test_bfloat16_and_integers_are_read(tmp_path: Path) -> None:
    rows = np.arange(12).reshape(4, 3)
    save_torch_file({"embeddings": torch.from_numpy(rows).bfloat16()}, tmp_path / "b.safetensors")
    np.save(tmp_path / "i.npy", rows)
    for name in ("b.safetensors", "i.npy"):
        np.testing.assert_array_equal(catalog.load(str(tmp_path / name)).vectors, rows)


def test_without_columns_rows_are_numbered_and_unlabeled(vectors: Array, tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", vectors)
    dataset = catalog.load(str(tmp_path / "t.npy"))
    assert dataset.labels is None
    assert dataset.names[:2] == ("row 0", "row 1")


@pytest.fixture
def table(vectors: Array, tmp_path: Path) -> Path:
    """A table with several candidates for each role, and images for the first two rows."""
    columns = {"embedding": pa.array(list(vectors)), "other": pa.array(list(vectors[:, :3])), "label": LABELS,
               "species": [f"s{row % 5}" for row in range(COUNT)], "name": NAMES, "key/&=": range(COUNT),
               "split": ["train", "TEST"] * (COUNT // 2), "image": [f"pictures/{row}.png" for row in range(COUNT)]}
    write_parquet(tmp_path / "t.parquet", columns)
    (tmp_path / "pictures").mkdir()
    for row in range(2):
        Image.new("RGB", (20, 10), (255, 0, 0)).save(tmp_path / "pictures" / f"{row}.png")
    return tmp_path / "t.parquet"


def test_chosen_columns_replace_the_usual_ones_and_are_part_of_the_name(table: Path, vectors: Array) -> None:
    chosen = EmbeddingTable(table, Choices(vectors="other", label="species", split="", name="key/&="))
    dataset = catalog.load(chosen.name)
    assert dataset.name == chosen.name != str(table)
    np.testing.assert_array_equal(dataset.vectors, vectors[:, :3])
    assert dataset.class_names == ("s0", "s1", "s2", "s3", "s4")
    assert dataset.names[:2] == ("0", "1")
    assert dataset.official_test is None
    usual = catalog.load(str(table))
    assert usual.official_test is not None
    assert usual.official_test.tolist() == [False, True] * (COUNT // 2)
    assert usual.fingerprint != dataset.fingerprint
    assert catalog.load(f"{table}#label=").labels is None


def test_other_columns_of_a_table_are_read_when_they_are_used(table: Path) -> None:
    dataset = catalog.load(f"{table}#label=species")
    assert list(dataset.columns) == ["other", "label", "key/&="][1:]
    np.testing.assert_array_equal(dataset.columns["label"], LABELS)
    assert "species" in catalog.load(str(table)).columns
    write_csv(table.with_suffix(".csv"), label=["a", "b"])
    with pytest.raises(UserError, match="must describe its 50 rows, got 2 rows"):
        dataset.columns["key/&="]
    with pytest.raises(KeyError):
        dataset.columns["absent"]


def test_dates_and_times_of_a_parquet_table_are_columns_of_text(vectors: Array, tmp_path: Path) -> None:
    moment = datetime(2024, 5, 6, 7, 8, 9)
    columns = {"taken": pa.array([moment, None] * (COUNT // 2), pa.timestamp("us")), "day": [moment.date()] * COUNT,
               "hour": [moment.time()] * COUNT, "nanoseconds": pa.array([1] * COUNT, pa.timestamp("ns", tz="UTC"))}
    write_parquet(tmp_path / "own.parquet", {"x": pa.array(list(vectors))} | columns)
    np.save(tmp_path / "beside.npy", vectors)
    write_parquet(tmp_path / "beside.parquet", columns)
    for file in ("own.parquet", "beside.npy"):
        read = catalog.load(str(tmp_path / file)).columns
        assert {name: read[name][0] for name in read} == {
            "taken": "2024-05-06T07:08:09", "day": "2024-05-06", "hour": "07:08:09",
            "nanoseconds": "1970-01-01T00:00:00.000000001+00:00"}
        assert read["taken"][1] is None


def test_rows_without_an_image_show_the_chosen_text(table: Path) -> None:
    images = catalog.load(str(table)).images
    assert images[0].size == (20, 10)
    assert np.array_equal(np.asarray(images[2]), np.asarray(draw_text_tile(NAMES[2])))
    by_class = catalog.load(f"{table}#text=species").images
    assert np.array_equal(np.asarray(by_class[3]), np.asarray(draw_text_tile("s3")))
    assert len(catalog.load(str(table)).skipped) == COUNT - 2
    (table.parent / "pictures" / "1.png").write_bytes(b"damaged")
    assert images[1].size == (TILE, TILE)


@pytest.mark.parametrize("file", ["../secret.png", "{folder}/../secret.png", "link.png", "a\0.png",
                                  "x" * 5000 + ".png"])
def test_no_image_outside_the_folder_of_the_table_is_shown(file: str, vectors: Array, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    Image.new("RGB", (5, 5)).save(tmp_path / "secret.png")
    (home / "link.png").symlink_to(tmp_path / "secret.png")
    write_parquet(home / "t.parquet", {"x": pa.array(list(vectors)), "image": [file.format(folder=home)] * COUNT})
    assert catalog.load(f"{home / 't.parquet'}#name=").images[0].size == (TILE, TILE)


def test_images_that_cannot_be_shown_are_listed(vectors: Array, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "pictures").mkdir(parents=True)
    for path in (tmp_path / "secret.png", home / "a.png", home / "pictures" / "b.png"):
        Image.new("RGB", (5, 5)).save(path)
    for link, target in (("to a.png", home / "a.png"), ("out.png", tmp_path / "secret.png"), ("outside", tmp_path),
                         ("inside", home / "pictures")):
        (home / link).symlink_to(target)
    shown = ["a.png", "pictures/b.png", "pictures/../a.png", str(home / "a.png"), "to a.png", "inside/b.png", ""]
    hidden = ["absent.png", "none/b.png", "out.png", "outside/secret.png", "../secret.png", "a\0.png", "pictures",
              "x" * 5000 + ".png", str(tmp_path / "secret.png"), "pictures/../../secret.png"]
    files = (shown + hidden + [""] * COUNT)[:COUNT]
    write_parquet(home / "t.parquet", {"x": pa.array(list(vectors)), "file": files})
    dataset = catalog.load(f"{home / 't.parquet'}#image=file")
    assert [skipped.file for skipped in dataset.skipped] == hidden
    sizes = [dataset.images[row].size for row in range(len(shown + hidden))]
    assert [size == (5, 5) for size in sizes] == [True] * 6 + [False] * 11


@pytest.mark.parametrize("text", ["", "7", "a" * 5000, "two words", "日本語", "line\nbreak", "class/0001.png", "́" * 50])
def test_a_text_tile_keeps_its_letters_inside(text: str) -> None:
    pixels = np.asarray(draw_text_tile(text)).astype(int)
    assert pixels.shape == (TILE, TILE, 3)
    edge = np.concatenate([pixels[[0, -1]].reshape(-1, 3), pixels[:, [0, -1]].reshape(-1, 3)])
    assert (edge == pixels[0, 0]).all()
    assert (pixels.min() < 100) == bool(text.strip("\u0301"))


def test_a_tile_shows_accented_letters_without_accents() -> None:
    assert np.array_equal(*(np.asarray(draw_text_tile(text)) for text in ("Bénédicte", "Benedicte")))


def test_an_opened_table_is_read_again_only_if_it_changed(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("read again")

    first = catalog.load(str(table))
    with monkeypatch.context() as patched:
        patched.setattr(vector_files, "_list_rows", never)
        assert same(catalog.load(str(table)), first)
        write_csv(table.with_suffix(".csv"), label=["a", "b"] * (COUNT // 2))
        with pytest.raises(AssertionError, match="read again"):
            catalog.load(str(table))
    changed = catalog.load(str(table))
    assert changed.class_names == ("a", "b")
    assert changed.fingerprint != first.fingerprint


def same(one: Dataset, other: Dataset) -> bool:
    fields = ("name", "title", "class_names", "fingerprint", "names", "skipped", "distinct")
    arrays = ("labels", "official_test", "vectors")
    return all(getattr(one, name) == getattr(other, name) for name in fields) and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)


def test_a_csv_file_beside_vectors_is_parsed_once_for_each_version(vectors: Array, tmp_path: Path,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "x.npy", vectors)
    metadata, parsed = tmp_path / "x.csv", []
    metadata.write_text("label\n" + "".join(f"{label}\n" for label in LABELS))
    real = table_files.read_regular
    monkeypatch.setattr(table_files, "read_regular", lambda path, most: parsed.append(path) or real(path, most))
    for _ in range(3):
        assert open_table(tmp_path / "x.npy", Choices()).beside is not None
    assert parsed == [metadata]
    metadata.write_text("label\n" + "".join(f"other {label}\n" for label in LABELS))
    assert str(open_table(tmp_path / "x.npy", Choices()).columns["label"]()[0]).startswith("other")
    assert parsed == [metadata] * 2


def test_vectors_removed_from_the_cache_are_copied_again(table: Path, vectors: Array) -> None:
    fingerprint = catalog.load(str(table)).fingerprint
    for path in (Path(os.environ["UDML_CACHE"]) / "features").rglob("*.npy"):
        path.unlink()
    dataset = catalog.load(str(table))
    assert dataset.fingerprint == fingerprint
    np.testing.assert_array_equal(dataset.vectors, vectors)


class Bomb:
    """An object whose unpickling creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


def declare(count: int, width: int, content: bytes = b"", is_fortran: bool = False) -> bytes:
    """Return a .npy file whose header declares a shape."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": is_fortran, "shape": (count, width)})
    return file.getvalue() + content


def write_long_labels(path: Path) -> None:
    """Write vectors beside labels that declare 800 million letters each, and hold none."""
    label, vectors = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(label, {"descr": "|S800000000", "fortran_order": False, "shape": (COUNT,)})
    np.save(vectors, np.ones((COUNT, WIDTH)))
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("embeddings.npy", vectors.getvalue())
        file.writestr("label.npy", label.getvalue())


def repeated(text: str, count: int) -> pa.Array:
    """Return a column that stores a text once and names it in every row."""
    return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), [text])


def with_value(value: float) -> Array:
    rows = np.ones((40, WIDTH))
    rows[33, 2] = value
    return rows


def save(ending: str, write: Callable[[Path], Any]) -> tuple[str, Callable[[Path], Any]]:
    return ending, write


def zipped(content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("embeddings.npy", content)

    return write


def of_parquet(**columns: Any) -> tuple[str, Callable[[Path], Any]]:
    return "parquet", lambda path: write_parquet(path, columns)


def of_npz(**arrays: Any) -> tuple[str, Callable[[Path], Any]]:
    return "npz", lambda path: np.savez(path, **arrays)


def of_npy(array: Any) -> tuple[str, Callable[[Path], Any]]:
    return "npy", lambda path: np.save(path, array)


def of_bytes(ending: str, content: bytes) -> tuple[str, Callable[[Path], Any]]:
    return ending, lambda path: path.write_bytes(content)


FOUR = np.ones((4, 2), np.float32)
HOSTILE: dict[str, tuple[tuple[str, Callable[[Path], Any]], str]] = {
    "text": (of_npy(np.array([["a", "b"]] * 3)), "must be numbers of the shape"),
    "complex": (of_npy(np.ones((4, 3), complex)), "complex128"),
    "bool": (of_npy(np.ones((4, 3), bool)), "got bool"),
    "1-D": (of_npy(np.ones(9)), r"of the shape \(9,\)"),
    "3-D": (of_npy(np.ones((3, 3, 3))), r"of the shape \(3, 3, 3\)"),
    "scalar": (of_npy(np.float32(1)), r"of the shape \(\)"),
    "no row": (of_npy(np.ones((0, 3))), "at least 3 rows of at least one number, got 0 rows"),
    "two rows": (of_npy(np.ones((2, 3))), "at least 3 rows"),
    "no number": (of_npy(np.ones((5, 0))), "got 5 rows of 0 numbers"),
    "NaN": (of_npy(with_value(np.nan)), "row 33 has nan in dimension 2"),
    "infinite": (of_npy(with_value(-np.inf)), "row 33 has -inf in dimension 2"),
    "beyond float32": (of_npy(with_value(1e39)), r"row 33 has 1e\+39 in dimension 2"),
    "NaN in parquet": (of_parquet(x=list(with_value(np.nan))), "row 33 has nan in dimension 2"),
    "missing number": (of_parquet(x=[[1.0, 2.0], [1.0, None], [1.0, 2.0]]), "row 1 has nan in dimension 1"),
    "missing vector": (of_parquet(x=[[1.0, 2.0]] * 30 + [None]), "row 30 has no vector"),
    "unequal lengths": (of_parquet(x=[[1.0, 2.0]] * 25 + [[1.0]]), "row 0 has 2 numbers, row 25 has 1 numbers"),
    "text vectors": (of_parquet(embedding=["[1, 2]", "[1]", "[3]"]), r"no vectors; it has 'embedding' \(string\)"),
    "missing column": (of_parquet(a0=[1.0, None, 1.0], a1=[1.0, 2.0, 3.0]), "row 1 has nan in dimension 0"),
    "two vector columns": (of_parquet(a=[[1.0]] * 4, b=[[1.0]] * 4), "'a', 'b'. Add `#vectors=NAME`"),
    "no column": (of_parquet(), "no vectors; it has no columns"),
    "empty parquet": (of_parquet(x=pa.array([], pa.list_(pa.float32()))), "at least 3 rows"),
    "two arrays": (of_npz(a=FOUR, b=FOUR), "'a', 'b'. Add `#vectors=NAME`"),
    "1-D features": (of_npz(features=np.ones(5)), r"of the shape \(5,\)"),
    "empty npz": (of_npz(), "no vectors; it has no columns"),
    "a billion rows": (of_bytes("npy", declare(10**9, 128)), "declares 1,000,000,000 rows of 128 numbers; at most"),
    "a billion rows in npz": (("npz", zipped(declare(10**9, 128))), "declares 1,000,000,000 rows of 128 numbers"),
    "many narrow rows": (of_bytes("npy", declare(6_000_000, 1)), "at most 5,000,000 rows"),
    "many wide rows": (of_bytes("npy", declare(4_000_000, 8_000)), "16 GB as float32"),
    "zeros of 240 MB": (("npz", zipped(declare(30_000, 2_000))), "240 MB, in 0.00 MB; at most 200 times the size"),
    "overflowing shape": (of_bytes("npy", declare(2**62, 2**62)), "at most 5,000,000 rows"),
    "negative shape": (of_bytes("npy", declare(-4, -4)), "declares the shape"),
    "header of 3 GB": (of_bytes("npy", b"\x93NUMPY\x02\x00" + (3 << 30).to_bytes(4, "little") + b" " * 99),
                       "header declares 3,221,225,472 bytes"),
    "4 GB in Fortran order": (("npz", zipped(declare(4_000_000, 256, is_fortran=True))), "200 times the size"),
    "label of 200 kB, stored once": (of_parquet(x=[[1.0, 2.0]] * 30, label=["x" * 200_000] * 30),
                                     "'label' of .* has a text of 200,000 letters"),
    "labels of 800 MB": (("npz", write_long_labels), "'label' of .* has a text of 800,000,000 lett"),
    "labels of 2 GB": (of_parquet(x=pa.FixedSizeListArray.from_arrays(np.ones(140_000), 2),
                                  label=repeated("x" * 30_000, 70_000)), "'label' of .* has 1,0[0-9,]+ bytes"),
    "cut npy": (of_bytes("npy", declare(50, 8, b"\0" * 100)), "declares 50 rows, and it ends in row 3"),
    "cut npz": (("npz", zipped(declare(50, 8, b"\0" * 100))), "declares 50 rows, and it ends in row 3"),
    "not npy": (of_bytes("npy", b"hello, this is text"), "could not be read as .npy"),
    "not npz": (of_bytes("npz", b"hello"), "could not be read as .npz"),
    "not parquet": (of_bytes("parquet", b"PAR1 hello"), "could not be read as .parquet"),
    "not safetensors": (of_bytes("safetensors", b"\xff" * 40), "could not be read as .safetensors"),
    "empty file": (of_bytes("safetensors", b""), "could not be read as .safetensors"),
    "evil header": (of_bytes("npy", b"\x93NUMPY\x01\x00\x20\x00__import__('os').system('x')    "), "could not be"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_gives_one_clear_message(kind: str, tmp_path: Path) -> None:
    (ending, write), message = HOSTILE[kind]
    path = tmp_path / f"table.{ending}"
    write(path)
    with pytest.raises(UserError, match=message) as raised:
        catalog.load(str(path))
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not list((tmp_path / "cache").rglob("*.part"))


@pytest.mark.parametrize(("ending", "write"), [
    ("npy", lambda path, array: np.save(path, array)),
    ("npz", lambda path, array: np.savez(path, embeddings=array)),
    ("npz", lambda path, array: np.savez(path, embeddings=FOUR, labels=array[:4])),
])
def test_nothing_is_unpickled(ending: str, write: Callable[[Path, Array], Any], tmp_path: Path) -> None:
    write(tmp_path / f"t.{ending}", np.array([Bomb(tmp_path / "exploded")] * 5, dtype=object))
    with pytest.raises(UserError, match="Python objects, which are not read"):
        catalog.load(str(tmp_path / f"t.{ending}"))
    assert not (tmp_path / "exploded").exists()


def test_a_large_array_that_is_stored_column_by_column_is_refused(tmp_path: Path,
                                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "t.npz", embeddings=np.asfortranarray(np.ones((40, 8), np.float32)))
    assert len(catalog.load(str(tmp_path / "t.npz"))) == 40
    monkeypatch.setattr(vector_files, "MOST_FORTRAN", 40 * 8 * 4 - 1)
    (tmp_path / "t.npz").rename(tmp_path / "u.npz")
    with pytest.raises(UserError, match="stored column by column and would fill 1,280 bytes"):
        catalog.load(str(tmp_path / "u.npz"))


@pytest.mark.skipif(os.name == "nt", reason="paths are text there")
@pytest.mark.parametrize(("ending", "write"), [
    ("parquet", lambda path: write_parquet(path, {"embedding": FOUR.tolist()})),
    ("safetensors", lambda path: save_file({"embeddings": FOUR}, str(path)))])
def test_a_path_that_is_not_utf_8_is_named_as_the_reason(ending: str, write: Callable[[Path], None],
                                                         tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    folder.mkdir()
    write(tmp_path / f"t.{ending}")
    inside = (tmp_path / f"t.{ending}").rename(folder / f"t.{ending}")
    with pytest.raises(UserError, match=r"because its path is not UTF-8 text\. Rename the file or its folder\."):
        catalog.load(str(inside))
    inside.rename(tmp_path / f"t.{ending}").write_bytes(b"damaged")
    with pytest.raises(UserError, match=f"could not be read as .{ending}"):
        catalog.load(str(tmp_path / f"t.{ending}"))


@pytest.mark.parametrize(("columns", "suffix", "message"), [
    ({"name": ["a", "b", "a", "c"]}, "", "The column 'name' of .*t.csv .*; line 2 and line 4 both have 'a'"),
    ({"label": ["a", "", "a", "c"]}, "", "line 3 has none"),
    ({"split": ["train", "test", "tset", "test"]}, "", "line 4 has 'tset'"),
    ({"split": ["train"] * 4}, "", "rows of both halves"),
    ({"label": ["a", "b"]}, "", "must describe its 4 rows, got 2 rows"),
    ({"label": ["a", "b", "a", "c"]}, "#label=kind", "no column 'kind' for 'label'. Choose one of 'label'"),
    ({"label": ["a", "b", "a", "c"]}, "#labels=label", "label=COLUMN"),
    ({"label": ["a", "b", "a", "c"]}, "#vectors=x", "no vectors 'x'"),
])
def test_columns_that_do_not_fit_give_one_clear_message(columns: dict[str, list[str]], suffix: str, message: str,
                                                        tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", FOUR)
    write_csv(tmp_path / "t.csv", **columns)
    with pytest.raises(UserError, match=message):
        catalog.load(f"{tmp_path / 't.npy'}{suffix}")


@pytest.mark.parametrize(("content", "message"), [
    (b"label\n1\n2,3\n4\n5\n", "1 values in each row.*got 2 in line 3"),
    (b"a,a\n" + b"1,2\n" * 4, "a name occurs twice"),
    (b"label\n1\n\n2\n\xff\n", "line 5 is not UTF-8 text, because it has the byte 0xFF"),
    (b"label,b\n\"1\n1\",1\n\n,\n2,3,4\n", "2 values in each row.*got 3 in line 6"),
    (b"label\n1\n\n2\n\xff\n".replace(b"label", b"\xe9"), "line 1 is not UTF-8 text"),
    (b"label\n" + b'"' + b"x" * 200_000, "could not be read"),
    (b"", "must describe its 4 rows, got 0"),
])
def test_a_damaged_csv_file_gives_one_clear_message(content: bytes, message: str, tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", FOUR)
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(UserError, match=message):
        catalog.load(str(tmp_path / "t.npy"))


def test_an_uploaded_table_is_remembered_and_a_damaged_one_leaves_nothing(vectors: Array, tmp_path: Path) -> None:
    content, metadata = io.BytesIO(), b"label\n" + b"".join(b"%d\n" % label for label in LABELS)
    np.save(content, vectors)
    table = catalog.import_table("Mine", [("x.csv", metadata), ("../x.npy", content.getvalue())])
    assert table.path.name == "Mine.npy"
    assert table.name in [source.name for source in catalog.sources()]
    assert catalog.load(table.name).class_names == ("3", "20", "100")
    for name, files in (("Bad", [("x.npy", b"nonsense")]), ("Two", [("x.npy", b""), ("y.npz", b"")])):
        with pytest.raises(UserError):
            catalog.import_table(name, files)
        assert not (table.path.parents[1] / name).exists()
    with pytest.raises(UserError, match="'Mine' exists already"):
        catalog.import_table("Mine", [("x.npy", content.getvalue())])
    assert table.path.is_file(), "the second import leaves the first one alone"
    catalog.forget(table.path)
    assert table.name not in [source.name for source in catalog.sources()]


@pytest.mark.parametrize(("metadata", "message"), [
    (b"name\na\n\nb\na\nb\n", "The column 'name' of names.csv must have a different name for each row; line 2 and "
     "line 5 both have 'a'. Change the names, or rename the column to number the rows."),
    (b"label\na\n", "names.csv lies beside x.npy and must describe its 4 rows, got 1 rows. Make them equal, or rename "
     "names.csv."),
])
def test_messages_about_an_uploaded_table_have_its_files_and_no_path(metadata: bytes, message: str) -> None:
    content = io.BytesIO()
    np.save(content, FOUR)
    with pytest.raises(UserError) as raised:
        catalog.import_table("Mine", [("below/names.csv", metadata), ("x.npy", content.getvalue())])
    assert str(raised.value) == message


def test_an_exposed_server_reads_no_table_outside_its_folders(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_EXPOSED", "1")
    assert table_of(str(table)) is None
    with pytest.raises(UserError, match="does not read the file"):
        EmbeddingTable(table).load(lambda _share, _step: None)
    monkeypatch.setenv("UDML_DATA", str(table.parent / "data"))
    (table.parent / "data").mkdir()
    np.save(table.parent / "data" / "t.npy", FOUR)
    write_csv(table.parent / "secret.csv", label=["a", "b", "a", "b"])
    (table.parent / "data" / "t.csv").symlink_to(table.parent / "secret.csv")
    assert catalog.load(str(table.parent / "data" / "t.npy")).labels is None


def test_what_was_read_is_plain_json(table: Path) -> None:
    catalog.load(str(table))
    (kept,) = (Path(os.environ["UDML_CACHE"]) / "tables").glob("*.json")
    assert json.loads(kept.read_text(encoding="utf-8"))["texts"] == "names"
    kept.write_text("[1, 2", encoding="utf-8")
    assert len(catalog.load(str(table))) == COUNT
