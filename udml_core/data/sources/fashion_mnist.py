"""Fashion-MNIST: a part of it with the app, the whole where its files are."""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from udml_core.data.dataset import ArrayImages, Dataset, Report
from udml_core.data.places import ASSETS, data_folder
from udml_core.data.sources.source import Source
from udml_core.errors import UserError

Array = np.ndarray[Any, Any]
CLASSES = ("T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")
PARTS = ("train", "t10k")


class FashionMini(Source):
    """500 training and 100 test images of each class, in `assets/fashion-mini.npz` (Zalando, MIT)."""

    name = "fashion-mini"
    title = "Fashion-MNIST, 6,000 images"
    summary = "600 photographs of each of 10 kinds of clothing, 28×28 pixels. Comes with the app."
    images = 6000
    classes = 10

    def missing(self) -> str | None:
        return None if (ASSETS / "fashion-mini.npz").exists() else "assets/fashion-mini.npz is missing: restore it."

    def load(self, report: Report) -> Dataset:
        with np.load(ASSETS / "fashion-mini.npz", allow_pickle=False) as stored:
            pixels, labels, is_test = stored["pixels"], stored["labels"].astype(np.int64), stored["is_test"]
        report(1.0, "Fashion-MNIST")
        return _dataset(self.name, self.title, pixels, labels, is_test)


class FashionMNIST(Source):
    """All 60,000 + 10,000 images, from the official idx files (H. Xiao, K. Rasul, R. Vollgraf, 2017; MIT)."""

    name = "fashion-mnist"
    title = "Fashion-MNIST, whole"
    summary = "70,000 photographs of 10 kinds of clothing, 28×28 pixels."
    images = 70_000
    classes = 10

    def missing(self) -> str | None:
        if self._folder() is not None:
            return None
        return ("Fashion-MNIST's four files ({train,t10k}-{images-idx3,labels-idx1}-ubyte.gz) were looked for in "
                f"{DEBIAN_FOLDER} and in fashion-mnist/ below UDML_DATA. On Debian and Ubuntu: "
                "`sudo apt install dataset-fashion-mnist`.")

    def load(self, report: Report) -> Dataset:
        folder = self._folder()
        if folder is None:
            raise UserError(str(self.missing()))
        images, labels = [], []
        for position, part in enumerate(PARTS):
            images.append(read_idx(folder / f"{part}-images-idx3-ubyte.gz"))
            labels.append(read_idx(folder / f"{part}-labels-idx1-ubyte.gz"))
            report((position + 1) / len(PARTS), "Fashion-MNIST")
        is_test = np.repeat([False, True], [len(part) for part in labels])
        return _dataset(self.name, self.title, np.concatenate(images), np.concatenate(labels).astype(np.int64), is_test)

    @staticmethod
    def _folder() -> Path | None:
        base = data_folder()
        candidates = [DEBIAN_FOLDER] if base is None else [base / "fashion-mnist", DEBIAN_FOLDER]
        needed = [f"{part}-{kind}-ubyte.gz" for part in PARTS for kind in ("images-idx3", "labels-idx1")]
        return next((folder for folder in candidates if all((folder / name).exists() for name in needed)), None)


def read_idx(path: Path) -> Array:
    """An idx file of unsigned bytes, gzipped, in the layout of Y. LeCun's MNIST files.

    Raises:
        UserError: the header or the length is wrong.
    """
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} could not be read ({error}); fetch it again.") from error
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        raise UserError(f"{path} must be an idx file of unsigned bytes, its first bytes are {content[:4]!r}.")
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise UserError(f"{path} must have a header of {start} bytes, found {len(content)}.")
    shape = np.frombuffer(content, dtype=">u4", count=content[3], offset=4).tolist()
    values = np.frombuffer(content, dtype=np.uint8)[start:]
    if values.size != math.prod(shape):
        raise UserError(f"{path} must hold {math.prod(shape)} bytes after its header, found {values.size}.")
    return values.reshape(shape)


def _dataset(name: str, title: str, pixels: Array, labels: Array, is_test: Array) -> Dataset:
    fingerprint = hashlib.sha256(np.ascontiguousarray(pixels).tobytes() + labels.tobytes()).hexdigest()
    return Dataset(name, title, ArrayImages(pixels), labels, CLASSES, fingerprint, 28, True,
                   tuple(f"image {index}" for index in range(len(labels))), official_test=is_test)
