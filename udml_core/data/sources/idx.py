"""MNIST and the whole Fashion-MNIST: 28×28 gray pixels in Y. LeCun's idx format."""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from pathlib import Path
from typing import ClassVar

import numpy as np

from udml_core.base.arrays import Array, Booleans, Integers
from udml_core.base.errors import UserError
from udml_core.base.paths import data_folder
from udml_core.data.dataset import ArrayImages, Dataset, Report
from udml_core.data.sources.source import Source

CLOTHES = ("T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
SIDE = 28
KINDS = ("images-idx3", "labels-idx1")


class IdxFiles(Source):
    """A data set in the files {PARTS}-{images-idx3,labels-idx1}-ubyte.gz.

    The files are in a folder with the name of the data set below UDML_DATA, or in `installed`.

    Attributes:
        parts: Prefixes of the files. The second part, if any, is the official test half.
        class_names: Names of the classes.
        installed: Folder of an installed system package; None if there is no package.
        advice: How to get the files.
    """

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
                f"not found in {installed}{self.name}/ below UDML_DATA. {self.advice}")

    def load(self, report: Report) -> Dataset:
        folder = self._folder()
        if folder is None:
            raise UserError(str(self.missing()))
        read = []
        for position, part in enumerate(self.parts):
            read.append(self._read(folder, part))
            report((position + 1) / len(self.parts), self.title)
        pixels, labels = (np.concatenate(arrays) for arrays in zip(*read, strict=True))
        is_test = np.repeat([False, True], [len(part) for _, part in read]) if len(read) == 2 else None
        return gray_dataset(self, pixels, labels.astype(np.int64), is_test, self.class_names)

    def _read(self, folder: Path, part: str) -> tuple[Array, Array]:
        """Read the images (n, 28, 28) and labels (n,) of a part."""
        pixels, labels = (read_idx(folder / f"{part}-{kind}-ubyte.gz") for kind in KINDS)
        if pixels.shape[1:] != (SIDE, SIDE) or labels.shape != pixels.shape[:1] or labels.max(initial=0) > 9:
            raise UserError(f"{self.title}'s files of '{part}' in {folder} must contain images of {SIDE}×{SIDE} pixels "
                            f"and as many labels from 0 to 9, got arrays of {pixels.shape} and {labels.shape} with "
                            f"labels up to {labels.max(initial=0)}. Download both files again.")
        return pixels, labels

    def _folder(self) -> Path | None:
        base = data_folder()
        candidates = [folder for folder in (base and base / self.name, self.installed) if folder]
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
    advice = "Copy the files into this folder."


class MNISTTest(MNIST):
    """The 10,000 digits of MNIST's official test half.

    The data set has no official division.
    """

    name = "mnist-t10k"
    title = "MNIST, 10,000 digits"
    summary = "The 10,000 handwritten digits of MNIST's test half, 28×28 pixels."
    images = 10_000
    parts = ("t10k",)


def idx_shape(path: Path) -> tuple[int, ...]:
    """Return the numbers of images, rows and columns in the header of an idx file of images, without reading them.

    Raises:
        UserError: The file cannot be read, or is no idx file of images.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            header = file.read(16)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} could not be read: {error}. Download it again.") from error
    if len(header) < 16 or header[:4] != b"\x00\x00\x08\x03":
        raise UserError(f"{path} must be an idx file of images, got the first bytes {header[:4]!r}. Download it again.")
    return tuple(np.frombuffer(header, dtype=">u4", offset=4).tolist())


def read_idx(path: Path) -> Array:
    """Read an idx file of unsigned bytes, which is compressed if its name ends in .gz.

    Raises:
        UserError: The file cannot be read, or its header or length is wrong.
    """
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} could not be read: {error}. Download it again.") from error
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        raise UserError(f"{path} must be an idx file of unsigned bytes, got the first bytes {content[:4]!r}. "
                        "Download it again.")
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise UserError(f"{path} must have a header of {start} bytes, got {len(content)} bytes. Download it again.")
    shape = np.frombuffer(content, dtype=">u4", count=content[3], offset=4).tolist()
    values = np.frombuffer(content, dtype=np.uint8)[start:]
    if values.size != math.prod(shape):
        raise UserError(f"{path} must hold {math.prod(shape)} bytes after its header, got {values.size}. "
                        "Download it again.")
    return values.reshape(shape)


def gray_dataset(source: Source, pixels: Array, labels: Integers, is_test: Booleans | None,
                 class_names: tuple[str, ...]) -> Dataset:
    """Build a data set of gray images.

    Args:
        source: Its name and title.
        pixels: Images (n, 28, 28) uint8.
        labels: Class of each image (n,) int64.
        is_test: Mask of the official test half (n,) bool, or None.
        class_names: Names of the classes.
    """
    fingerprint = hashlib.sha256(np.ascontiguousarray(pixels).tobytes() + labels.tobytes()).hexdigest()
    return Dataset(source.name, source.title, ArrayImages(pixels), labels, class_names, fingerprint, 28, True,
                   tuple(f"image {index}" for index in range(len(labels))), official_test=is_test)
