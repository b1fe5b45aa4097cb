"""A folder of files in LeCun's IDX format, such as MNIST, Fashion-MNIST or KMNIST."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from udml_core.base import bounded
from udml_core.data.dataset import Report
from udml_core.data.sources.idx import idx_shape, read_idx
from udml_core.data.sources.official.packed import PackedImages, PackedLayout

HALVES = (("train", False), ("t10k", True), ("test", True))
"""Beginnings of the files' names, and whether they are the test half."""


def idx_file(path: Path, half: str, kind: str) -> str | None:
    """Return the name of the file of a half, of the kind `images` or `labels`; None if there is none."""
    digit = 3 if kind == "images" else 1
    names = (f"{half}-{kind}{mark}idx{digit}-ubyte{ending}" for mark in "-." for ending in ("", ".gz"))
    return next((name for name in names if (path / name).is_file()), None)


class IdxFolder(PackedLayout):
    """Images and labels in IDX files, unpacked or compressed by gzip."""

    official_name = "IDX"
    published = None
    expected = ("train-images-idx3-ubyte and train-labels-idx1-ubyte, and optionally t10k-images-idx3-ubyte and "
                "t10k-labels-idx1-ubyte, each unpacked or as .gz")
    advice = "Copy the missing files, or download them again."

    def __init__(self, path: Path, name: str | None = None, option: tuple[str, str] | None = None) -> None:
        super().__init__(path, name, option)
        found = ((half, is_test, idx_file(self.path, half, "images")) for half, is_test in HALVES)
        self._parts = [(images, idx_file(self.path, half, "labels") or f"{half}-labels-idx1-ubyte", is_test)
                       for half, is_test, images in found if images]
        self.needed = tuple(file for part in self._parts for file in part[:2])

    @classmethod
    def matches(cls, path: Path) -> bool:
        return any(idx_file(path, half, "images") for half, _ in HALVES)

    def counts(self) -> tuple[int, int]:
        return sum(self._sizes()), len(self.class_names())

    def halves(self) -> tuple[int, int] | None:
        in_test = [is_test for *_, is_test in self._parts]
        return (self._sizes()[0], sum(self._sizes()[1:])) if in_test == [False, True] else None

    def _sizes(self) -> list[int]:
        return [idx_shape(self.file(images))[0] for images, *_ in self._parts]

    def read_names(self) -> list[str]:
        labels = [read_idx(self.file(file)) for _, file, _ in self._parts]
        return [str(number) for number in range(1 + max(int(part.max(initial=0)) for part in labels))]

    def read(self, report: Report) -> list[PackedImages]:
        parts = []
        for number, (images, names, is_test) in enumerate(self._parts):
            pixels, labels = (bounded.call(file, read_idx, self.file(file)) for file in (images, names))
            if pixels.ndim != 3 or min(pixels.shape[1:]) < 4 or labels.shape != pixels.shape[:1]:
                raise self.damaged(f"{images} must have images of at least 4×4 pixels and {names} a label of each, got "
                                   f"arrays of {pixels.shape} and {labels.shape}")
            parts.append(PackedImages(pixels, labels.astype(np.int64), is_test))
            report((number + 1) / len(self._parts), f"reading {images}")
        if len({part.pixels.shape[1:] for part in parts}) > 1:
            raise self.damaged("its halves have images of different sizes")
        return parts
