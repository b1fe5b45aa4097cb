"""Gray images of 28×28 pixels in the idx files of Y. LeCun's MNIST: that, and Fashion-MNIST, whole."""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from pathlib import Path
from typing import ClassVar

import numpy as np

from udml_core.arrays import Array
from udml_core.data.dataset import ArrayImages, Dataset, Report
from udml_core.data.sources.source import Source
from udml_core.errors import UserError
from udml_core.paths import data_folder

CLOTHES = ("T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
SIDE = 28
KINDS = ("images-idx3", "labels-idx1")


class IdxFiles(Source):
    """What is in {PARTS}-{images-idx3,labels-idx1}-ubyte.gz of a folder with the data set's name below UDML_DATA, or of
    `installed`. Where there are two parts, the second is the official test half."""

    parts: ClassVar[tuple[str, ...]] = ("train", "t10k")
    class_names: ClassVar[tuple[str, ...]]
    installed: ClassVar[Path | None] = None
    advice: ClassVar[str]
    classes = 10

    def missing(self) -> str | None:
        if self._folder() is not None:
            return None
        installed = f"{self.installed} and in " if self.installed else ""
        parts = f"{{{','.join(self.parts)}}}" if len(self.parts) > 1 else self.parts[0]
        return (f"{self.title}'s {2 * len(self.parts)} files ({parts}-{{images-idx3,labels-idx1}}-ubyte.gz) were "
                f"looked for in {installed}{self.name}/ below UDML_DATA. {self.advice}")

    def load(self, report: Report) -> Dataset:
        folder = self._folder()
        if folder is None:
            raise UserError(str(self.missing()))
        read = []
        for position, part in enumerate(self.parts):
            read.append(self._read(folder, part))
            report((position + 1) / len(self.parts), self.title)
        pixels, labels = (np.concatenate(one) for one in zip(*read, strict=True))
        is_test = np.repeat([False, True], [len(part) for _, part in read]) if len(read) == 2 else None
        return gray_dataset(self, pixels, labels.astype(np.int64), is_test, self.class_names)

    def _read(self, folder: Path, part: str) -> tuple[Array, Array]:
        """Images (n, 28, 28) and labels (n,) of a part."""
        pixels, labels = (read_idx(folder / f"{part}-{kind}-ubyte.gz") for kind in KINDS)
        if pixels.shape[1:] != (SIDE, SIDE) or labels.shape != pixels.shape[:1] or labels.max(initial=0) > 9:
            raise UserError(f"{self.title}'s files of '{part}' in {folder} must be images of {SIDE}×{SIDE} pixels and "
                            f"as many labels of 0 to 9, got arrays of {pixels.shape} and {labels.shape} with labels up "
                            f"to {labels.max(initial=0)}. They do not belong together: fetch them again.")
        return pixels, labels

    def _folder(self) -> Path | None:
        base = data_folder()
        candidates = [place for place in (base and base / self.name, self.installed) if place]
        needed = [f"{part}-{kind}-ubyte.gz" for part in self.parts for kind in KINDS]
        return next((folder for folder in candidates if all((folder / name).exists() for name in needed)), None)


class FashionMNIST(IdxFiles):
    """All 60,000 + 10,000 images (H. Xiao, K. Rasul, R. Vollgraf, 2017; MIT)."""

    name = "fashion-mnist"
    title = "Fashion-MNIST, whole"
    summary = "70,000 photographs of 10 kinds of clothing, 28×28 pixels."
    images = 70_000
    class_names = CLOTHES
    installed = Path("/usr/share/datasets/fashion-mnist")
    advice = "On Debian and Ubuntu: `sudo apt install dataset-fashion-mnist`."


class MNIST(IdxFiles):
    """All 60,000 + 10,000 digits (Y. LeCun, C. Cortes, C. Burges)."""

    name = "mnist"
    title = "MNIST"
    summary = "70,000 handwritten digits, 28×28 pixels."
    images = 70_000
    class_names = tuple("0123456789")
    advice = "Put them there."


class MNISTTest(MNIST):
    """The 10,000 digits of the official test half alone, which are divided anew."""

    name = "mnist-t10k"
    title = "MNIST, 10,000 digits"
    summary = "The 10,000 handwritten digits of MNIST's test half, 28×28 pixels."
    images = 10_000
    parts = ("t10k",)


def read_idx(path: Path) -> Array:
    """An idx file of unsigned bytes, gzipped.

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


def gray_dataset(source: Source, pixels: Array, labels: Array, is_test: Array | None,
                 class_names: tuple[str, ...]) -> Dataset:
    """Gray images (n, 28, 28) uint8 with labels (n,) int64."""
    fingerprint = hashlib.sha256(np.ascontiguousarray(pixels).tobytes() + labels.tobytes()).hexdigest()
    return Dataset(source.name, source.title, ArrayImages(pixels), labels, class_names, fingerprint, 28, True,
                   tuple(f"image {index}" for index in range(len(labels))), official_test=is_test)
