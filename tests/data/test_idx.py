"""The idx files of MNIST and Fashion-MNIST.

Whole files, damaged files and files that do not fit together are read.
"""

from __future__ import annotations

import gzip
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.sources.idx import FashionMNIST, read_idx

DIGITS = load_digits().images.astype(np.uint8)
CLOTHES = np.stack([np.asarray(image)[..., 0] for image in islice(iter(catalog.load("fashion-mini").images), 20)])


def idx_content(values: np.ndarray) -> bytes:
    sizes = b"".join(side.to_bytes(4, "big") for side in values.shape)
    return b"\x00\x00\x08" + bytes([values.ndim]) + sizes + values.tobytes()


WHOLE = gzip.compress(idx_content(DIGITS[:20]))
DAMAGED = {
    "empty": b"",
    "cut short": WHOLE[:-20],
    "no checksum": WHOLE[:-8],
    "changed bytes": WHOLE[:40] + bytes(byte ^ 255 for byte in WHOLE[40:60]) + WHOLE[60:],
    "wrong checksum": gzip.compress(idx_content(DIGITS[:20]))[:-8] + b"\x00" * 8,
    "a web page": b"<html>404</html>",
    "no content": gzip.compress(b""),
    "no sizes": gzip.compress(b"\x00\x00\x08\x03"),
    "half the sizes": gzip.compress(b"\x00\x00\x08\x03" + b"\x00\x00\x00\x01" * 2),
    "negative sizes": gzip.compress(b"\x00\x00\x08\x02" + b"\xff" * 8 + b"a"),
    "sizes beyond 64 bits": gzip.compress(b"\x00\x00\x08\x03" + b"\x7f\xff\xff\xff" * 3 + b"a"),
    "too many bytes": gzip.compress(idx_content(DIGITS[:2]) + b"a"),
    "too few bytes": gzip.compress(idx_content(DIGITS[:2])[:-1]),
    "floats": gzip.compress(b"\x00\x00\x0d\x01" + b"\x00\x00\x00\x01" + b"\x00" * 4),
}


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(WHOLE)
    np.testing.assert_array_equal(read_idx(path), DIGITS[:20])


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_file_is_named_in_the_error(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(DAMAGED[kind])
    with pytest.raises(UserError, match=r"file\.gz (could not be read|must )"):
        read_idx(path)


@pytest.mark.parametrize(("content", "message"), [
    (b"no gzip", "could not be read"), (gzip.compress(b"\x00\x00\x0d\x01aaaa"), "must be an idx file"),
    (gzip.compress(b"\x00\x00\x08\x01" + (5).to_bytes(4, "big") + b"abc"), "must hold 5 bytes"),
], ids=["no gzip", "floats", "too few bytes"])
def test_the_error_names_the_problem_of_a_file(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "file.gz").write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_idx(tmp_path / "file.gz")


def test_missing_files_are_an_error_with_advice_until_all_files_exist(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FashionMNIST, "installed", tmp_path / "nowhere")
    monkeypatch.setenv("UDML_DATA", str(tmp_path))
    folder = tmp_path / "fashion-mnist"
    folder.mkdir()
    for count, part in zip((12, 8), FashionMNIST.parts, strict=True):
        assert "were not found in" in str(FashionMNIST().missing())
        with pytest.raises(UserError, match="apt install dataset-fashion-mnist"):
            catalog.load("fashion-mnist")
        for kind, values in (("images-idx3", CLOTHES[:count]), ("labels-idx1", np.arange(count, dtype=np.uint8) % 10)):
            (folder / f"{part}-{kind}-ubyte.gz").write_bytes(gzip.compress(idx_content(values)))
    dataset = catalog.load("fashion-mnist")
    assert dataset.labels is not None
    assert dataset.labels.tolist() == [*range(10), 0, 1, *range(8)]
    np.testing.assert_array_equal(dataset.official_test, np.arange(20) >= 12)


def test_the_test_half_of_mnist_alone_has_no_official_division(tmp_path: Path,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_DATA", str(tmp_path))
    for name in ("mnist", "mnist-t10k"):
        assert f"not found in {name}/" in str(catalog.find(name).missing())
        (tmp_path / name).mkdir()
        for kind, values in (("images-idx3", CLOTHES[:20]), ("labels-idx1", np.arange(20, dtype=np.uint8) % 10)):
            (tmp_path / name / f"t10k-{kind}-ubyte.gz").write_bytes(gzip.compress(idx_content(values)))
    assert catalog.find("mnist").missing()
    dataset = catalog.load("mnist-t10k")
    assert dataset.official_test is None
    assert dataset.labels is not None
    assert [dataset.class_names[label] for label in dataset.labels[:3]] == ["0", "1", "2"]


@pytest.mark.data
def test_the_test_half_of_mnist_has_ten_thousand_digits() -> None:
    source = catalog.find("mnist-t10k")
    if source.missing():
        pytest.skip(str(source.missing()))
    dataset = catalog.load("mnist-t10k")
    assert dataset.labels is not None
    assert np.bincount(dataset.labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


@pytest.mark.parametrize(("images", "labels"), [
    (np.zeros((10, 28, 28)), np.zeros(6)), (np.zeros((10, 20, 28)), np.zeros(10)), (np.zeros((10, 28)), np.zeros(10)),
    (np.zeros((10, 28, 28)), np.full(10, 12)), (np.zeros((10, 28, 28)), np.zeros((10, 1)))])
def test_images_and_labels_that_do_not_fit_together_are_rejected(
        images: np.ndarray, labels: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_DATA", str(tmp_path))
    (tmp_path / "mnist-t10k").mkdir()
    for kind, values in (("images-idx3", images), ("labels-idx1", labels)):
        content = gzip.compress(idx_content(values.astype(np.uint8)))
        (tmp_path / "mnist-t10k" / f"t10k-{kind}-ubyte.gz").write_bytes(content)
    with pytest.raises(UserError, match=r"images of 28×28 pixels and as many labels from 0 to 9, got arrays of"):
        catalog.load("mnist-t10k")
