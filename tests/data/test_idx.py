"""The idx files of MNIST and Fashion-MNIST, whole and broken in every way that a download breaks them."""

from __future__ import annotations

import gzip
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from udml_core.data import catalog
from udml_core.data.sources.idx import FashionMNIST, read_idx
from udml_core.errors import UserError

DIGITS = load_digits().images.astype(np.uint8)
CLOTHES = np.stack([np.asarray(one)[..., 0] for one in islice(iter(catalog.load("fashion-mini").images), 20)])


def idx(values: np.ndarray) -> bytes:
    sizes = b"".join(side.to_bytes(4, "big") for side in values.shape)
    return b"\x00\x00\x08" + bytes([values.ndim]) + sizes + values.tobytes()


WHOLE = gzip.compress(idx(DIGITS[:20]))
BROKEN = {
    "empty": b"",
    "cut short": WHOLE[:-20],
    "no checksum": WHOLE[:-8],
    "changed inside": WHOLE[:40] + bytes(byte ^ 255 for byte in WHOLE[40:60]) + WHOLE[60:],
    "changed content": gzip.compress(idx(DIGITS[:20]))[:-8] + b"\x00" * 8,
    "a web page": b"<html>404</html>",
    "nothing inside": gzip.compress(b""),
    "no sizes": gzip.compress(b"\x00\x00\x08\x03"),
    "half the sizes": gzip.compress(b"\x00\x00\x08\x03" + b"\x00\x00\x00\x01" * 2),
    "negative sizes": gzip.compress(b"\x00\x00\x08\x02" + b"\xff" * 8 + b"a"),
    "sizes beyond 64 bits": gzip.compress(b"\x00\x00\x08\x03" + b"\x7f\xff\xff\xff" * 3 + b"a"),
    "too many bytes": gzip.compress(idx(DIGITS[:2]) + b"a"),
    "too few bytes": gzip.compress(idx(DIGITS[:2])[:-1]),
    "floats": gzip.compress(b"\x00\x00\x0d\x01" + b"\x00\x00\x00\x01" + b"\x00" * 4),
}


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(WHOLE)
    np.testing.assert_array_equal(read_idx(path), DIGITS[:20])


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_named(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(BROKEN[kind])
    with pytest.raises(UserError, match=r"file\.gz (could not be read|must )"):
        read_idx(path)


def test_the_files_are_looked_for_below_udml_data_and_their_absence_says_so(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FashionMNIST, "installed", tmp_path / "nowhere")
    monkeypatch.setenv("UDML_DATA", str(tmp_path))
    place = tmp_path / "fashion-mnist"
    place.mkdir()
    for count, part in zip((12, 8), FashionMNIST.parts, strict=True):
        assert "were looked for in" in str(FashionMNIST().missing())
        with pytest.raises(UserError, match="apt install dataset-fashion-mnist"):
            catalog.load("fashion-mnist")
        for kind, values in (("images-idx3", CLOTHES[:count]), ("labels-idx1", np.arange(count, dtype=np.uint8) % 10)):
            (place / f"{part}-{kind}-ubyte.gz").write_bytes(gzip.compress(idx(values)))
    dataset = catalog.load("fashion-mnist")
    assert dataset.labels is not None
    assert dataset.labels.tolist() == [*range(10), 0, 1, *range(8)]
    np.testing.assert_array_equal(dataset.official_test, np.arange(20) >= 12)


def test_the_digits_of_the_test_half_alone_have_no_official_halves(tmp_path: Path,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_DATA", str(tmp_path))
    for name in ("mnist", "mnist-t10k"):
        assert f"looked for in {name}/" in str(catalog.find(name).missing())
        (tmp_path / name).mkdir()
        for kind, values in (("images-idx3", CLOTHES[:20]), ("labels-idx1", np.arange(20, dtype=np.uint8) % 10)):
            (tmp_path / name / f"t10k-{kind}-ubyte.gz").write_bytes(gzip.compress(idx(values)))
    assert catalog.find("mnist").missing()
    dataset = catalog.load("mnist-t10k")
    assert dataset.official_test is None
    assert dataset.labels is not None
    assert [dataset.class_names[label] for label in dataset.labels[:3]] == ["0", "1", "2"]


@pytest.mark.data
def test_there_are_ten_thousand_digits() -> None:
    source = catalog.find("mnist-t10k")
    if source.missing():
        pytest.skip(str(source.missing()))
    dataset = catalog.load("mnist-t10k")
    assert dataset.labels is not None
    assert np.bincount(dataset.labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


@pytest.mark.parametrize(("images", "labels"), [
    (np.zeros((10, 28, 28)), np.zeros(6)), (np.zeros((10, 20, 28)), np.zeros(10)), (np.zeros((10, 28)), np.zeros(10)),
    (np.zeros((10, 28, 28)), np.full(10, 12)), (np.zeros((10, 28, 28)), np.zeros((10, 1)))])
def test_files_that_do_not_belong_together_are_refused(
        images: np.ndarray, labels: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_DATA", str(tmp_path))
    (tmp_path / "mnist-t10k").mkdir()
    for kind, values in (("images-idx3", images), ("labels-idx1", labels)):
        (tmp_path / "mnist-t10k" / f"t10k-{kind}-ubyte.gz").write_bytes(gzip.compress(idx(values.astype(np.uint8))))
    with pytest.raises(UserError, match=r"must be images of 28×28 pixels and as many labels of 0 to 9, got arrays of"):
        catalog.load("mnist-t10k")
