"""Data sets that pack all images into a few files: CIFAR-10, CIFAR-100 and STL-10."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from abc import abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import psutil

from udml_core.base import bounded
from udml_core.base.arrays import Array
from udml_core.base.errors import UserError, byte_words
from udml_core.base.files import read_json, replace_text
from udml_core.base.paths import cache_folder
from udml_core.base.unpickling import read_pickled_arrays
from udml_core.data.dataset import ArrayImages, Dataset, Images, JoinedImages, Report
from udml_core.data.sources.official.layout import OfficialLayout

PIXELS = 32 * 32 * 3
"""Bytes of a CIFAR image: 32×32 red values by row, then green, then blue."""
LONGEST_NAMES = 2**20
"""Characters of all names of classes together: in a pickle, a few bytes can repeat a long name."""


@dataclass(frozen=True)
class PackedImages:
    """The images of one file.

    Attributes:
        pixels: RGB images (n, height, width, 3) uint8.
        labels: Class of each image (n,), 0 … c−1; None if unlabeled.
        is_test: Whether the images are in the official test half.
    """

    pixels: Array
    labels: Array | None
    is_test: bool


class PackedLayout(OfficialLayout):
    """A layout without image files."""

    def class_names(self) -> list[str]:
        """Read the names of the classes, by a bounded call.

        Raises:
            UserError: They cannot be read, or are too long.
        """
        return bounded.call(self.official_name, self._checked_names)

    def _checked_names(self) -> list[str]:
        names = self.read_names()
        if sum(len(name) + 1 for name in names) > LONGEST_NAMES:
            raise self.damaged(f"the names of its classes have more than {LONGEST_NAMES:,} characters together")
        return names

    @abstractmethod
    def read_names(self) -> list[str]:
        """Read the names of the classes."""

    @abstractmethod
    def read(self, report: Report) -> list[PackedImages]:
        """Read the images.

        Raises:
            UserError: A file is missing or damaged.
        """

    def map_bytes(self, file: str) -> Array:
        """Map a file as bytes (n,), without reading it into the memory."""
        try:
            return np.memmap(self.file(file), np.uint8, "r")
        except (OSError, ValueError) as error:  # an empty file is a ValueError
            raise self.damaged(f"{file} could not be read: {error}") from error

    def _watched(self) -> Iterable[str]:
        return self.needed

    def load(self, report: Report) -> Dataset:
        self.check()
        self._check_memory()
        report(0.0, f"reading {self.official_name}")
        parts, names = self.read(report), self.class_names()
        labels = np.concatenate([np.full(len(part.pixels), -1) if part.labels is None else part.labels.astype(np.int64)
                                 for part in parts])
        has_label = np.repeat([part.labels is not None for part in parts], [len(part.pixels) for part in parts])
        known = labels[has_label]
        if known.min(initial=0) < 0 or known.max(initial=0) >= len(names) > 0:
            raise self.damaged(f"its labels must name the {len(names)} classes, got {known.min()} to {known.max()}")
        in_test = np.repeat([part.is_test for part in parts], [len(part.pixels) for part in parts])
        report(1.0, f"reading {self.official_name}")
        is_partly = has_label.any() and not has_label.all()
        # Parts with unlabeled images may be files too large for the memory, so that they are not copied.
        images: Images = JoinedImages(tuple(ArrayImages(part.pixels) for part in parts))
        if len(parts) == 1 or has_label.all():
            pixels = parts[0].pixels if len(parts) == 1 else np.concatenate([part.pixels for part in parts])
            images = ArrayImages(pixels)
        return Dataset(self.name, self.title, images, labels if has_label.all() else None,
                       tuple(names) if has_label.any() else (), self._fingerprint(parts, names),
                       min(parts[0].pixels.shape[1:3]), False, tuple(f"image {index}" for index in range(len(labels))),
                       official_test=in_test if len(parts) > 1 else None,
                       evaluation_classes=labels[:, None] == np.arange(len(names)) if is_partly else None)

    def _check_memory(self) -> None:
        """Check the size of the files that are copied into the memory: files of zeros are small in an archive."""
        needed = 2 * sum(os.path.getsize(self.path / file) for file in self.needed if not file.startswith("unlabeled"))
        if needed > (total := psutil.virtual_memory().total):
            raise UserError(f"{self.path} needs {byte_words(needed)} of memory, and this computer has "
                            f"{byte_words(total)}. Use files of fewer images.")

    def _fingerprint(self, parts: list[PackedImages], names: list[str]) -> str:
        """Return a digest of the images, labels and names; it is kept until a file changes."""
        identity = hashlib.sha256(f"{self.path}|{self.option}".encode()).hexdigest()[:24]
        kept_path, signature = cache_folder() / "packed" / f"{identity}.json", self.signature()
        with suppress(OSError, ValueError, TypeError, KeyError):  # nothing is kept yet, or the file is damaged
            kept = read_json(kept_path)
            if kept["signature"] == signature:
                return str(kept["fingerprint"])
        option = None if self.option == self.default else self.option
        content = hashlib.sha256("|".join([*names, str(option)]).encode())
        for part in parts:
            content.update(part.labels.tobytes() if part.labels is not None else b"")
            for start in range(0, len(part.pixels), 1_000):
                content.update(part.pixels[start: start + 1_000].tobytes())
        kept_path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(kept_path, json.dumps({"signature": signature, "fingerprint": content.hexdigest()}))
        return content.hexdigest()


class Cifar(PackedLayout):
    """What the versions of CIFAR share (A. Krizhevsky, "Learning multiple layers of features from tiny images", 2009).

    Attributes:
        versions: Training files, test file and file of class names, of the python and of the binary version.
        label_columns: Number of labels of each image in the binary version.
        is_binary: Whether the files are the binary version.
        training: The training files.
        tests: The test file.
        meta: The file of the class names.
    """

    versions: ClassVar[tuple[tuple[tuple[str, ...], str, str], ...]]
    label_columns: ClassVar[int] = 1
    advice = "Download the python or the binary version from https://www.cs.toronto.edu/~kriz/cifar.html."

    def __init__(self, path: Path, name: str | None = None, option: tuple[str, str] | None = None) -> None:
        super().__init__(path, name, option)
        python, binary = self.versions
        self.is_binary = (self.path / binary[0][0]).exists()
        self.training, self.tests, self.meta = binary if self.is_binary else python
        self.needed = (*self.training, self.tests, self.meta)

    @classmethod
    def matches(cls, path: Path) -> bool:
        return any((path / training[0]).is_file() and ((path / tests).is_file() or (path / meta).is_file())
                   for training, tests, meta in cls.versions)

    def counts(self) -> tuple[int, int]:
        return sum(self._halves), len(self.class_names())

    def halves(self) -> tuple[int, int] | None:
        return self._halves

    @cached_property
    def _halves(self) -> tuple[int, int]:
        return sum(map(self._size, self.training)), self._size(self.tests)

    def _size(self, file: str) -> int:
        """Return the number of images in a file."""
        if self.is_binary:
            return len(self._read_binary(file)[1])
        return bounded.call(self.official_name, self._count_python, file)

    @property
    def label_key(self) -> str:
        """The name of the labels in the python version."""
        return "labels"

    @property
    def label_column(self) -> int:
        """The column of the labels in the binary version."""
        return 0

    def read(self, report: Report) -> list[PackedImages]:
        parts = []
        files = (*self.training, self.tests)
        for number, file in enumerate(files):
            pixels, labels = self._read_binary(file) if self.is_binary else bounded.call(
                self.official_name, self._read_python, file)
            pixels = np.ascontiguousarray(pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
            parts.append(PackedImages(pixels, labels, file == self.tests))
            report(number / len(files), f"reading {self.official_name}")
        return parts

    def _read_binary(self, file: str) -> tuple[Array, Array]:
        content = self.map_bytes(file)
        width = self.label_columns + PIXELS
        if len(content) % width:
            raise self.damaged(f"{file} must have {width:,} bytes for each image, got {len(content):,} bytes")
        rows = content.reshape(-1, width)
        return rows[:, self.label_columns:], rows[:, self.label_column]

    def _count_python(self, file: str) -> int:
        return len(self._read_python(file)[1])

    def _read_python(self, file: str) -> tuple[Array, Array]:
        content = self.unpickle(file)
        pixels, labels = content.get("data"), content.get(self.label_key)
        if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[1:] != (PIXELS,):
            raise self.damaged(f"'data' in {file} must be an array of n × {PIXELS:,} bytes")
        if not isinstance(labels, list) or [type(label) for label in labels] != [int] * len(pixels):
            raise self.damaged(f"'{self.label_key}' in {file} must be a list of {len(pixels):,} whole numbers")
        return np.asarray(pixels), np.array(labels, dtype=np.int64)

    def unpickle(self, file: str) -> dict[str, Any]:
        """Read a file of the python version with text keys."""
        try:
            content = read_pickled_arrays(self.file(file))
        except (pickle.UnpicklingError, OSError) as error:
            raise self.damaged(f"{file} could not be read: {error}") from error
        if not isinstance(content, dict):
            raise self.damaged(f"{file} must be a dictionary")
        return {key.decode("latin1") if isinstance(key, bytes) else str(key): value for key, value in content.items()}

    def read_names(self) -> list[str]:
        if self.is_binary:
            return self.read_lines(self.meta)
        names = self.unpickle(self.meta).get(self.names_key)
        if not isinstance(names, list):
            raise self.damaged(f"'{self.names_key}' in {self.meta} must be a list of names")
        return [name.decode("latin1") if isinstance(name, bytes) else str(name) for name in names]

    @property
    def names_key(self) -> str:
        """The name of the class names in the python version."""
        return "label_names"


class Cifar10Batches(Cifar):
    """CIFAR-10 in batches."""

    official_name = "CIFAR-10"
    published = (60_000, 10)
    versions = ((tuple(f"data_batch_{number}" for number in range(1, 6)), "test_batch", "batches.meta"),
                (tuple(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin", "batches.meta.txt"))
    expected = ("data_batch_1 to data_batch_5, test_batch and batches.meta, or data_batch_1.bin to data_batch_5.bin, "
                "test_batch.bin and batches.meta.txt")


class Cifar100(Cifar):
    """CIFAR-100 with its 100 fine or 20 coarse labels."""

    official_name = "CIFAR-100"
    published = (60_000, 100)
    versions = ((("train",), "test", "meta"), (("train.bin",), "test.bin", "fine_label_names.txt"))
    expected = "train, test and meta, or train.bin, test.bin, fine_label_names.txt and coarse_label_names.txt"
    options: ClassVar = {"label": ("coarse", "fine")}
    default = ("label", "fine")
    label_columns = 2

    def __init__(self, path: Path, name: str | None = None, option: tuple[str, str] | None = None) -> None:
        super().__init__(path, name, option)
        self.labels = option[1] if option else "fine"
        if self.labels == "coarse":
            self.published = (60_000, 20)
        if self.is_binary:
            self.meta = f"{self.labels}_label_names.txt"
            self.needed = (*self.training, self.tests, self.meta)

    def effects(self) -> dict[tuple[str, str], str]:
        return {("label", "coarse"): "the labels are the 20 coarse classes"}

    @property
    def label_key(self) -> str:
        return f"{self.labels}_labels"

    @property
    def names_key(self) -> str:
        return f"{self.labels}_label_names"

    @property
    def label_column(self) -> int:
        return 0 if self.labels == "coarse" else 1


class Stl10(PackedLayout):
    """STL-10 (A. Coates et al., AISTATS 2011): 5,000 training and 8,000 test images, and 100,000 unlabeled images.

    With `#part=all` all images are one data set: methods train without labels on the 105,000 images of the training
    half, and in the evaluation the 5,000 labeled images among them vote on the classes of the test images.
    """

    official_name = "STL-10"
    published = (13_000, 10)
    expected = ("train_X.bin, train_y.bin, test_X.bin, test_y.bin and class_names.txt; unlabeled_X.bin with "
                "#part=unlabeled or #part=all after the name")
    advice = "Download stl10_binary.tar.gz from https://cs.stanford.edu/~acoates/stl10/."
    options: ClassVar = {"part": ("labeled", "unlabeled", "all")}
    default = ("part", "labeled")
    side = 96

    needed: tuple[str, ...] = ("train_X.bin", "train_y.bin", "test_X.bin", "test_y.bin", "class_names.txt")

    def __init__(self, path: Path, name: str | None = None, option: tuple[str, str] | None = None) -> None:
        super().__init__(path, name, option)
        if option == ("part", "unlabeled"):
            self.needed, self.published = ("unlabeled_X.bin",), (100_000, 0)
        if option == ("part", "all"):
            self.needed, self.published = (*self.needed, "unlabeled_X.bin"), (113_000, 10)

    @classmethod
    def matches(cls, path: Path) -> bool:
        return any((path / f"{part}_X.bin").is_file() for part in ("train", "test", "unlabeled"))

    def counts(self) -> tuple[int, int]:
        return sum(len(self._pixels(name)) for name in self.needed if name.endswith("_X.bin")), len(self.class_names())

    def effects(self) -> dict[tuple[str, str], str]:
        unlabeled = 0
        with suppress(UserError):  # the file is not needed without an option
            unlabeled = len(self._pixels("unlabeled_X.bin"))
        return {("part", "all"): f"methods also train on the {unlabeled:,} unlabeled images",
                ("part", "unlabeled"): "the data set has only the unlabeled images"} if unlabeled else {}

    def halves(self) -> tuple[int, int] | None:
        tests = len(self._pixels("test_X.bin")) if "test_X.bin" in self.needed else 0
        return (self.counts()[0] - tests, tests) if tests else None

    def read_names(self) -> list[str]:
        return self.read_lines("class_names.txt") if "class_names.txt" in self.needed else []

    def read(self, report: Report) -> list[PackedImages]:
        if len(self.needed) == 1:
            return [PackedImages(self._pixels("unlabeled_X.bin"), None, False)]
        parts = []
        for part in ("train", "test"):
            pixels, labels = self._pixels(f"{part}_X.bin"), self.map_bytes(f"{part}_y.bin")
            if len(labels) != len(pixels):
                raise self.damaged(f"{part}_y.bin must have a label for each of the {len(pixels):,} images, got "
                                   f"{len(labels):,}")
            parts.append(PackedImages(pixels, labels.astype(np.int64) - 1, part == "test"))
        return parts + ([PackedImages(self._pixels("unlabeled_X.bin"), None, False)] if len(self.needed) > 5 else [])

    def _pixels(self, file: str) -> Array:
        """Map the images (n, 96, 96, 3) of a file, which stores them by channel, then by column."""
        content, width = self.map_bytes(file), 3 * self.side**2
        if len(content) % width:
            raise self.damaged(f"{file} must have {width:,} bytes for each image, got {len(content):,} bytes")
        return content.reshape(-1, 3, self.side, self.side).transpose(0, 3, 2, 1)
