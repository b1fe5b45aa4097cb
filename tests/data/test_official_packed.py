"""Official layouts that pack images into a few files: CIFAR-10, CIFAR-100 and STL-10."""

from __future__ import annotations

import io
import os
import pickle
import resource
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.running import trained
from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.base.unpickling import read_pickled_arrays
from udml_core.data import catalog
from udml_core.data.sources.official.layout import OfficialLayout
from udml_core.data.splits import make_split

RANDOM = np.random.default_rng(0)
PIXELS = RANDOM.integers(0, 256, (12, 3, 32, 32), dtype=np.uint8)
LABELS = [3, 0, 1, 1, 9, 2, 3, 3, 0, 5, 6, 7]
NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


class Python2Pickler(pickle._Pickler):  # type: ignore[misc,name-defined]
    """Write what Python 2 wrote: bytes and text are both strings, and NumPy has its former module names."""

    dispatch: ClassVar[Any] = dict(pickle._Pickler.dispatch)  # type: ignore[attr-defined]

    def save_string(self, value: bytes | str) -> None:
        content = value if isinstance(value, bytes) else value.encode()
        self.write(pickle.BINSTRING + len(content).to_bytes(4, "little") + content)
        self.memoize(value)

    dispatch[bytes] = dispatch[str] = save_string


def python2_pickle(value: object) -> bytes:
    file = io.BytesIO()
    Python2Pickler(file, 2).dump(value)
    return file.getvalue().replace(b"numpy._core.multiarray", b"numpy.core.multiarray")


def write_cifar10(folder: Path) -> Path:
    root = folder / "cifar-10-batches-py"
    root.mkdir(parents=True)
    for number in range(6):
        part = slice(2 * number, 2 * number + 2)
        content = {"data": PIXELS[part].reshape(2, -1), "labels": LABELS[part], "batch_label": f"batch {number} of 5",
                   "filenames": ["leptodactylus_pentadactylus_s_000004.png" * 40] * 2}
        name = "test_batch" if number == 5 else f"data_batch_{number + 1}"
        (root / name).write_bytes(python2_pickle(content))
    meta = {"label_names": NAMES, "num_cases_per_batch": 2, "num_vis": 3072}
    (root / "batches.meta").write_bytes(python2_pickle(meta))
    return root


def write_cifar10_binary(folder: Path) -> Path:
    root = folder / "cifar-10-batches-bin"
    root.mkdir(parents=True)
    rows = np.concatenate([np.array(LABELS, np.uint8)[:, None], PIXELS.reshape(12, -1)], axis=1)
    for number in range(6):
        name = "test_batch.bin" if number == 5 else f"data_batch_{number + 1}.bin"
        rows[2 * number: 2 * number + 2].tofile(root / name)
    (root / "batches.meta.txt").write_text("\n".join(NAMES) + "\n\n")
    return root


FINE, COARSE = [f"fine {number}" for number in range(100)], [f"coarse {number}" for number in range(20)]


def write_cifar100(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in (("train", slice(0, 8)), ("test", slice(8, 12))):
        fine = [9 * label for label in LABELS[part]]
        content = {"data": PIXELS[part].reshape(-1, 3072), "fine_labels": fine, "coarse_labels": LABELS[part]}
        (folder / name).write_bytes(python2_pickle(content))
    names = {"fine_label_names": FINE, "coarse_label_names": COARSE}
    (folder / "meta").write_bytes(python2_pickle(names))
    return folder


def write_cifar100_binary(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    coarse = np.array(LABELS, np.uint8)[:, None]
    rows = np.concatenate([coarse, 9 * coarse, PIXELS.reshape(12, -1)], axis=1)
    rows[:8].tofile(folder / "train.bin")
    rows[8:].tofile(folder / "test.bin")
    (folder / "fine_label_names.txt").write_text("\n".join(FINE))
    (folder / "coarse_label_names.txt").write_text("\n".join(COARSE))
    return folder


BIG = RANDOM.integers(0, 256, (5, 3, 96, 96), dtype=np.uint8)


def write_stl10(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    by_column = BIG.transpose(0, 1, 3, 2)
    for name, part in (("train", slice(0, 2)), ("test", slice(2, 4)), ("unlabeled", slice(3, 5))):
        np.ascontiguousarray(by_column[part]).tofile(folder / f"{name}_X.bin")
    np.array([1, 10], np.uint8).tofile(folder / "train_y.bin")
    np.array([2, 1], np.uint8).tofile(folder / "test_y.bin")
    (folder / "class_names.txt").write_text("\n".join(NAMES) + "\n")
    return folder


@pytest.mark.parametrize("write", [write_cifar10, write_cifar10_binary])
def test_cifar10_has_its_pixels_labels_names_and_test_half(write: Callable[[Path], Path], tmp_path: Path) -> None:
    folder = write(tmp_path)
    dataset = catalog.load(str(folder))
    for index in (0, 11):
        np.testing.assert_array_equal(np.asarray(dataset.images[index]), PIXELS[index].transpose(1, 2, 0))
    assert dataset.labels is not None
    assert dataset.labels.tolist() == LABELS
    assert dataset.class_names == tuple(NAMES)
    assert make_split(dataset, "seen").test.tolist() == [10, 11]
    source = catalog.find(str(folder))
    assert (source.images, source.classes) == (12, 10)
    assert isinstance(source, OfficialLayout)
    assert source.describe() == ("CIFAR-10: 12 images in 10 classes (published: 60,000 images in 10 classes). Official "
                                 "division: 10 training and 2 test images.")
    assert (dataset.native_size, dataset.gray) == (32, False)


@pytest.mark.parametrize("write", [write_cifar100, write_cifar100_binary])
def test_cifar100_has_fine_labels_or_coarse_labels(write: Callable[[Path], Path], tmp_path: Path) -> None:
    folder = write(tmp_path)
    fine, coarse = catalog.load(str(folder)), catalog.load(f"{folder}#label=coarse")
    assert fine.labels is not None
    assert coarse.labels is not None
    assert [fine.class_names[label] for label in fine.labels] == [f"fine {9 * label}" for label in LABELS]
    assert [coarse.class_names[label] for label in coarse.labels] == [f"coarse {label}" for label in LABELS]
    assert fine.fingerprint != coarse.fingerprint
    assert catalog.load(f"{folder}#label=fine").fingerprint == fine.fingerprint, "these are the labels without a choice"
    assert make_split(fine, "seen").test.tolist() == [8, 9, 10, 11]
    assert catalog.folder_of(str(folder)).describe() == (
        "CIFAR-100: 12 images in 100 classes (published: 60,000 images in 100 classes). Official division: 8 training "
        "and 4 test images. Add #label=coarse (the labels are the 20 coarse classes) to the name.")
    assert "Add" not in catalog.folder_of(f"{folder}#label=coarse").describe()


def test_stl10_has_labeled_halves_and_an_unlabeled_part(tmp_path: Path) -> None:
    folder = write_stl10(tmp_path)
    labeled, unlabeled = catalog.load(str(folder)), catalog.load(f"{folder}#part=unlabeled")
    np.testing.assert_array_equal(np.asarray(labeled.images[1]), BIG[1].transpose(1, 2, 0))
    assert labeled.labels is not None
    assert labeled.labels.tolist() == [0, 9, 1, 0]
    assert make_split(labeled, "seen").test.tolist() == [2, 3]
    assert unlabeled.labels is None
    assert len(unlabeled) == 2
    np.testing.assert_array_equal(np.asarray(unlabeled.images[1]), BIG[4].transpose(1, 2, 0))
    described = catalog.folder_of(str(folder)).describe()
    assert described == ("STL-10: 4 images in 10 classes (published: 13,000 images in 10 classes). Official division: "
                         "2 training and 2 test images. Add #part=all (methods also train on the 2 unlabeled images) "
                         "or #part=unlabeled (the data set has only the unlabeled images) to the name.")
    described = catalog.folder_of(f"{folder}#part=unlabeled").describe()
    assert described == "STL-10: 2 images without classes (published: 100,000 images without classes)."
    assert isinstance(unlabeled.images.pixels, np.memmap), "2.7 GB stay on the disk"  # type: ignore[attr-defined]


def test_packed_images_are_digested_again_only_if_a_file_changed(tmp_path: Path) -> None:
    name = f"{write_stl10(tmp_path)}#part=unlabeled"
    file = tmp_path / "unlabeled_X.bin"
    before, time = catalog.load(name).fingerprint, file.stat().st_mtime_ns
    content = bytearray(file.read_bytes())
    content[0] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(time, time))
    assert catalog.load(name).fingerprint == before, "the same length and time stand for the same content"
    os.utime(file, ns=(time + 1, time + 1))
    assert catalog.load(name).fingerprint != before


def test_all_images_of_stl10_train_without_labels_and_its_labeled_images_vote(tmp_path: Path) -> None:
    name = f"{write_stl10(tmp_path / 'stl')}#part=all"
    dataset = catalog.load(name)
    assert [len(dataset), dataset.labels] == [6, None]
    for index, source in enumerate((0, 1, 2, 3, 3, 4)):
        np.testing.assert_array_equal(np.asarray(dataset.images[index]), BIG[source].transpose(1, 2, 0))
    with pytest.raises(IndexError):
        dataset.images[6]
    assert dataset.evaluation_classes is not None
    assert np.argwhere(dataset.evaluation_classes).tolist() == [[0, 0], [1, 9], [2, 1], [3, 0]]
    split = make_split(dataset, "seen")
    assert [split.train.tolist(), split.test.tolist()] == [[0, 1, 4, 5], [2, 3]]
    run = trained(tmp_path / "runs", method="frozen", dataset=name, split=None, size=16)
    evaluation = run.evaluation()
    assert evaluation is not None
    features = np.asarray(run.embeddings("final"))
    assert run.spec().split == "seen"
    labels = np.array([0, 9, 1, 0])
    voted = [labels[:2][np.argmax(features[:2] @ features[index])] == labels[index] for index in (2, 3)]
    assert evaluation["final"]["knn@200"] == 100 * np.mean(voted), "unlabeled images do not vote"
    assert "recall@1" in evaluation["final"]
    described = catalog.folder_of(name).describe()
    assert described == ("STL-10: 6 images in 10 classes (published: 113,000 images in 10 classes). Official division: "
                         "4 training and 2 test images.")


class Attack:
    """An object whose unpickling runs a command."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("protocol", range(6))
def test_a_malicious_pickle_runs_nothing(protocol: int, tmp_path: Path) -> None:
    folder = write_cifar10(tmp_path)
    attack = pickle.dumps({"data": Attack(tmp_path / "attacked"), "labels": []}, protocol)
    (folder / "data_batch_2").write_bytes(attack)
    with pytest.raises(UserError, match=r"data_batch_2 could not be read: it must contain only arrays, numbers and "
                                        r"text, but names (posix|nt)\.mkdir"):
        catalog.load(str(folder))
    assert not (tmp_path / "attacked").exists()
    pickle.loads(attack)
    assert (tmp_path / "attacked").exists(), "the attack works where nothing prevents it"


@pytest.mark.parametrize("content", [
    b"cnumpy\nndarray\n((I1\ntS'O'\nS'AAAAAAAA'\ntR.", b"\x80\x02cnumpy\nndarray\n)\x81.",
    b"\x80\x02K\x01r\xff\xff\xff\x3f.", pickle.dumps(np.array([{}], object)),
    pickle.dumps(np.zeros(2, [("field", "V8")]))], ids=["addresses", "empty array", "memo", "objects", "fields"])
def test_a_pickle_cannot_choose_addresses_or_fill_the_memory(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with suppress(pickle.UnpicklingError):
        assert not isinstance(read_pickled_arrays(tmp_path / "file"), np.ndarray)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 2**18, "less than 256 MB"


def test_long_names_of_classes_are_refused_however_short_their_pickle_is(tmp_path: Path) -> None:
    root = write_cifar10(tmp_path)
    name = "a" * 2**10
    for count in (1023, 1024):
        (root / "batches.meta").write_bytes(pickle.dumps({"label_names": [name] * count}, 2))
        assert (root / "batches.meta").stat().st_size < 5000
        if count == 1023:
            assert catalog.find(str(root)).classes == count
        else:
            with pytest.raises(UserError, match="more than 1,048,576 characters together"):
                catalog.load(str(root))


def test_files_of_zeros_beyond_the_memory_are_refused_unread(tmp_path: Path) -> None:
    root = tmp_path / "cifar-10-batches-bin"
    root.mkdir()
    for number in range(1, 6):
        with (root / f"data_batch_{number}.bin").open("wb") as file:
            file.truncate(3073 * 10**8)  # 307 GB that take no room
    (root / "test_batch.bin").write_bytes(bytes(3073))
    (root / "batches.meta.txt").write_text("\n".join(NAMES))
    with pytest.raises(UserError, match=r"needs 3\.\d TB of memory, and this computer has .*Use files of fewer images"):
        catalog.load(str(root))


@pytest.mark.parametrize("protocol", range(5))  # published files are of protocol 2
@pytest.mark.parametrize("array", [np.arange(12, dtype=np.uint8).reshape(3, 4), np.arange(3, dtype=">f4"),
                                   np.asfortranarray(np.arange(6).reshape(2, 3)), np.array(["ab", "c"])])
def test_pickled_arrays_are_read_as_they_were(array: Array, protocol: int, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(pickle.dumps({"data": array, "labels": [1, 2]}, protocol))
    content = read_pickled_arrays(tmp_path / "file")
    np.testing.assert_array_equal(content["data"], array)
    assert content["data"].dtype.kind == array.dtype.kind
    assert content["labels"] == [1, 2]


@pytest.mark.parametrize(("file", "content", "message"), [
    ("data_batch_1", b"", "data_batch_1 could not be read: it is damaged: EOFError"),
    ("data_batch_1", b"<html>404</html>", "data_batch_1 could not be read"),
    ("test_batch", pickle.dumps([1]), "test_batch must be a dictionary"),
    ("test_batch", pickle.dumps({"data": np.zeros((2, 3), np.uint8)}, 2), "must be an array of n × 3,072 bytes"),
    ("test_batch", pickle.dumps({"data": np.zeros((1, 3072), np.uint8), "labels": [1, 2]}, 2), "a list of 1 whole"),
    ("test_batch", pickle.dumps({"data": np.zeros((1, 3072), np.uint8), "labels": [10]}, 2), "10 classes, got 0 to 10"),
    ("batches.meta", pickle.dumps({"names": 1}), "'label_names' in batches.meta must be a list"),
    ("data_batch_3", None, "data_batch_3 is missing"),
])
def test_a_damaged_batch_is_one_message(file: str, content: bytes | None, message: str, tmp_path: Path) -> None:
    folder = write_cifar10(tmp_path)
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(content)
    with pytest.raises(UserError, match=f"looks like CIFAR-10, but .*{message}.* Expected: data_batch_1 .*cs.toronto"):
        catalog.load(str(folder))


@pytest.mark.parametrize(("write", "file", "message"), [
    (write_cifar10_binary, "data_batch_1.bin", "must have 3,073 bytes for each image, got 6,145"),
    (write_cifar100_binary, "train.bin", "must have 3,074 bytes for each image, got 24,591"),
    (write_stl10, "test_X.bin", "must have 27,648 bytes for each image, got 55,295"),
    (write_stl10, "test_y.bin", "must have a label for each of the 2 images, got 1"),
    (write_stl10, "class_names.txt", "must name the 9 classes, got 0 to 9")])
def test_a_short_file_is_one_message(write: Callable[[Path], Path], file: str, message: str, tmp_path: Path) -> None:
    folder = write(tmp_path)
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[:-6] if file.endswith(".txt") else content[:-1])
    with pytest.raises(UserError, match=message):
        catalog.load(str(folder))
