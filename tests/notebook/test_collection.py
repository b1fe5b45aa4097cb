"""Embeddings, images and labels as users of notebooks hold them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from udml_core.base.errors import UserError
from udml_core.notebook.collection import collect

COUNT = 30
VECTORS = np.random.default_rng(0).normal(size=(COUNT, 5))
PIXELS = np.random.default_rng(1).integers(0, 256, (COUNT, 8, 8, 3), dtype=np.uint8)


def test_the_index_is_that_of_the_pandas_objects() -> None:
    names = pd.Index([f"photo-{row}" for row in range(COUNT)])
    frame, series = pd.DataFrame(VECTORS, index=names), pd.Series(range(COUNT), index=names)
    assert collect(frame, PIXELS).index.equals(names)
    assert collect(VECTORS, PIXELS, series).index.equals(names)
    assert list(collect(torch.tensor(VECTORS), PIXELS).index) == list(range(COUNT))
    with pytest.raises(UserError, match="The index of `labels` must equal that of `embeddings`"):
        collect(frame, PIXELS, series[::-1])


@pytest.mark.parametrize(("labels", "codes", "names"), [
    ([10, 9, 10], [1, 0, 1], ("9", "10")),
    (["b", None, "a"], [1, -1, 0], ("a", "b")),
    (pd.Series(["b", np.nan, "a"]), [1, -1, 0], ("a", "b")),
    ([True, False, True], [1, 0, 1], ("False", "True")),
    (["a", 1, "a"], [1, 0, 1], ("1", "a")),
    (torch.tensor([10, 9, 10]), [1, 0, 1], ("9", "10")),
])
def test_labels_are_classes_in_their_order(labels: Any, codes: list[int], names: tuple[str, ...]) -> None:
    collection = collect(VECTORS[:3], PIXELS[:3], labels)
    assert collection.codes is not None
    assert collection.codes.tolist() == codes
    assert collection.color.names == names
    assert collection.class_name(0) == names[codes[0]]
    assert collection.class_name(1) == ("" if codes[1] < 0 else names[codes[1]])


def test_floating_point_labels_are_a_scale_and_missing_labels_are_none() -> None:
    numbers = collect(VECTORS, PIXELS, np.linspace(0, 1, COUNT))
    assert (numbers.color.names, numbers.codes) == ((), None)
    np.testing.assert_allclose(numbers.color.values, np.linspace(0, 1, COUNT))
    for labels in (None, [None] * COUNT):
        assert collect(VECTORS, PIXELS, labels).codes is None


def test_images_are_files_or_pixels(tmp_path: Path) -> None:
    paths = [tmp_path / f"{row}.png" for row in range(COUNT)]
    for path, pixels in zip(paths, PIXELS, strict=True):
        Image.fromarray(pixels).save(path)
    expected = np.asarray(collect(VECTORS, PIXELS).thumbnail(4, 64))
    for images in (paths, list(map(str, paths)), pd.Series(map(str, paths)), np.array(list(map(str, paths))),
                   [Image.fromarray(pixels) for pixels in PIXELS]):
        np.testing.assert_array_equal(np.asarray(collect(VECTORS, images).thumbnail(4, 64)), expected)
    assert (collect(VECTORS, paths).name(4), collect(VECTORS, PIXELS).name(4)) == ("4.png", "image 4")
    gray = Image.fromarray(PIXELS[0]).convert("RGBA")
    assert collect(VECTORS[:2], [gray, gray]).thumbnail(0, 64).mode == "RGB"


def test_the_nearest_images_are_those_of_the_smallest_euclidean_distances() -> None:
    collection = collect(VECTORS, PIXELS)
    distances = np.linalg.norm(VECTORS - VECTORS[7], axis=1)
    expected = [row for row in np.argsort(distances) if row != 7]
    rows, found = collection.nearest(7, 4)
    assert rows.tolist() == expected[:4]
    np.testing.assert_allclose(found, distances[rows], rtol=1e-5)
    assert collection.nearest(7, 100)[0].tolist() == expected
    assert collection.layout.neighbors is not None
    assert collection.layout.neighbors[7].tolist() == expected[:10]


def test_the_map_lies_along_the_principal_axes_or_as_the_user_says() -> None:
    places = np.arange(2 * COUNT, dtype=np.float64).reshape(COUNT, 2)
    np.testing.assert_array_equal(collect(VECTORS, PIXELS, positions=places).layout.positions, places)
    centered = VECTORS - VECTORS.mean(axis=0)
    spread = np.linalg.svd(centered)[1][:2]
    np.testing.assert_allclose(np.linalg.norm(collect(VECTORS, PIXELS).layout.positions, axis=0), spread, rtol=1e-3)


@pytest.mark.parametrize(("arguments", "words"), [
    ((VECTORS[0], PIXELS), "`embeddings` must be an array of rows and columns; got the shape (5,)"),
    (([["a"]], PIXELS), "`embeddings` must be an array of numbers"),
    ((np.where(np.arange(COUNT)[:, None] == 3, np.nan, VECTORS), PIXELS), "row 3 is not"),
    ((VECTORS[:1], PIXELS[:1]), "at least 2 rows; got 1"),
    ((VECTORS, PIXELS[:9]), "`images` must have a value for each of the 30 embeddings; got 9"),
    ((VECTORS, PIXELS, [1, 2]), "`labels` must have a value for each of the 30 embeddings; got 2"),
    ((VECTORS, PIXELS, np.zeros((COUNT, 2))), "`labels` must be one value for each embedding"),
    ((VECTORS, "photos"), "got the single path 'photos'"),
    ((VECTORS, PIXELS / 255), "must be uint8"),
    ((VECTORS, PIXELS.transpose(0, 3, 1, 2)), "must be uint8"),
    ((VECTORS * 1e30, PIXELS), "`embeddings` must be between −1e+12 and 1e+12; got"),
    ((VECTORS, PIXELS, None, VECTORS), "`positions` must have 2 columns; got 5"),
])
def test_an_error_names_the_argument_and_the_fix(arguments: Any, words: str) -> None:
    with pytest.raises(UserError, match=re.escape(words)):
        collect(*arguments)


def test_tensors_with_gradients_and_of_half_precision_are_vectors() -> None:
    learned = torch.from_numpy(VECTORS).requires_grad_()
    np.testing.assert_array_equal(collect(learned, PIXELS).embeddings, VECTORS.astype(np.float32))
    np.testing.assert_allclose(collect(learned.bfloat16(), PIXELS).embeddings, VECTORS, rtol=0.01)
    assert np.isfinite(collect(VECTORS * 1e11, PIXELS).layout.positions).all(), "what is allowed has a map"


def test_an_image_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.jpg").write_text("none")
    with pytest.raises(UserError, match=r"broken\.jpg must be an image"):
        collect(VECTORS[:2], [tmp_path / "broken.jpg"] * 2).thumbnail(0, 64)
    with pytest.raises(UserError, match=r"PIL image; got a Tensor of the shape \(3, 8, 8\) in row 0"):
        collect(VECTORS, list(torch.zeros(COUNT, 3, 8, 8))).thumbnail(0, 64)
    with pytest.raises(UserError, match=r"must be a path or a PIL image; got 3 in row 1"):
        collect(VECTORS[:2], [tmp_path / "broken.jpg", 3]).thumbnail(1, 64)


def test_a_column_of_vectors_is_a_matrix(tmp_path: Path) -> None:
    """`udml export` writes the vectors so into images.parquet."""
    frame = pd.DataFrame({"vector": list(VECTORS)}, index=[f"n{row}" for row in range(COUNT)])
    frame.to_parquet(tmp_path / "images.parquet")
    frame = pd.read_parquet(tmp_path / "images.parquet")
    for vectors in (frame["vector"], frame["vector"].to_numpy(), list(frame["vector"])):
        np.testing.assert_array_equal(collect(vectors, PIXELS).embeddings, VECTORS.astype(np.float32))
    assert collect(frame["vector"], PIXELS).index.tolist() == frame.index.tolist()
    with pytest.raises(UserError, match="`embeddings` must be an array of numbers"):
        collect([[1, 2], [1]], PIXELS[:2])


def test_a_missing_image_is_missing(tmp_path: Path) -> None:
    absent = tmp_path / "absent.jpg"
    with pytest.raises(UserError, match=re.escape(f"The image {absent} does not exist. Check its path.")):
        collect(VECTORS[:2], [absent] * 2).thumbnail(0, 64)
