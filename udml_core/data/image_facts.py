"""Facts about each image of a data set: its size, its file, its brightness, its detail and its sharpness.

All measures but the detail are CleanVision's, which ranks images by them. Large JPEG files are decoded at a part of
their size, of which at least 512 pixels of the shorter side remain.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from PIL import Image, ImageFilter, ImageStat

from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import UserError
from udml_core.base.files import read_arrays, replace_arrays, version_of
from udml_core.base.paths import dataset_cache
from udml_core.data.dataset import Dataset, EncodedImages, Report, reduced, upright_size
from udml_core.data.reusing import earlier_file
from udml_core.data.text_tiles import file_of

SIDE, SMALL = 256, 64
"""Pixels of the shorter side that a network would need, of which twice as many are decoded; and of a small copy, on
which a photograph far out of focus is not sharp either, though its noise and its compression are."""
EDGES = 64
"""Pixels of the longer side to which an image is reduced before its edges are measured."""
BLOCK = 64
"""Images that are read between two progress reports."""
STEP = "quality of the images"
FILE = "facts-2.npz"
"""Name of the stored facts; the number changes with their definition."""
SHARP, MOST_SHARP = (1.0, 4.0), 99
"""Standard deviations of the two blurs, in pixels of an image whose shorter side is at most 256, between which detail
is coarse, and the percentile of the pixels that is compared: a sharp bird before a blurred background is sharp."""
LEAST_COARSE = 0.5
"""Coarse detail, in gray values of 255, below which an image is one color."""
IMAGE_BYTES, HEADERS = 88, 4096
"""Most stored bytes of an image, and of the headers of all arrays."""
WEIGHTS = np.array([0.241, 0.691, 0.068], np.float32)
"""Weights of the squares of red, green and blue in the perceived brightness."""


@dataclass(frozen=True, eq=False)
class ImageFacts:
    """Facts about all images of a data set, each (n,).

    Attributes:
        width: Width in pixels, as viewers display the image.
        height: Height in pixels.
        bytes: Length of the file; 0 without one.
        time: When the file was changed, in seconds since 1970; 0 without one.
        dark: Brightness that 1 % of the pixels exceed, 0 … 1.
        light: Brightness that 95 % of the pixels exceed, 0 … 1.
        entropy: Entropy of the histogram in bits.
        edges: Standard deviation of the edges of the image reduced to 64 pixels, 0 … 255.
        spread: Standard deviation of the histogram of that image, in pixels.
        detail: Fine detail relative to coarse detail where the image is sharpest, about 0.1 when blurred and 0.3 to 1
            when sharp; see `fine_detail`. NaN in facts of earlier versions.
    """

    width: Array
    height: Array
    bytes: Array
    time: Array
    dark: Array
    light: Array
    entropy: Array
    edges: Array
    spread: Array
    detail: Array

    @property
    def pixels(self) -> Array:
        """Number of pixels (n,)."""
        return self.width * self.height


TYPES = {name: np.int64 if name in ("width", "height", "bytes", "time") else np.float64
         for name in (field.name for field in fields(ImageFacts))}


def facts_of(dataset: Dataset, report: Report = lambda _share, _step: None) -> ImageFacts:
    """Return the facts about a data set's images, computed on first use.

    Raises:
        UserError: An image can no longer be read, or the facts cannot be stored.
    """
    path = _path(dataset)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        facts = stored_facts(dataset)
        if facts is None or np.isnan(facts.detail).any():
            facts = _compute(dataset, report)
            replace_arrays(path, vars(facts))
    return facts


def stored_facts(dataset: Dataset) -> ImageFacts | None:
    """Return the facts about a data set's images if they are stored and undamaged."""
    return _read(_path(dataset), len(dataset))


def facts_version(dataset: Dataset) -> tuple[int, ...]:
    """Return numbers that change when the facts are stored again; none before the first time."""
    try:
        return version_of(_path(dataset))
    except OSError:
        return ()


def _read(path: Path, count: int) -> ImageFacts | None:
    """Read the facts about a number of images; None if they are missing or damaged."""
    try:
        stored = read_arrays(path, count * IMAGE_BYTES + HEADERS)
    except (UserError, OSError):
        return None
    stored.setdefault("detail", np.full(count, np.nan))  # facts of an earlier version
    fits = stored.keys() == TYPES.keys() and all(array.shape == (count,) for array in stored.values())
    return ImageFacts(**stored) if fits else None


def _path(dataset: Dataset) -> Path:
    return dataset_cache(dataset.fingerprint) / FILE


def _compute(dataset: Dataset, report: Report) -> ImageFacts:
    rows, missing = _known(dataset)
    report(0.0, STEP)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for start in range(0, len(missing), BLOCK):
            images = missing[start : start + BLOCK].tolist()
            for index, facts in zip(images, pool.map(lambda index: _facts(dataset, index), images), strict=True):
                for name, value in facts.items():
                    rows[name][index] = value
            report((start + len(images)) / len(missing), STEP)
    return ImageFacts(**rows)


def _known(dataset: Dataset) -> tuple[dict[str, Array], Integers]:
    """Return the facts about images that were measured in an earlier state of the folder, and the other images.

    The time of a file can change without its content, so it is read again.
    """
    rows = {name: np.zeros(len(dataset), kind) for name, kind in TYPES.items()}
    earlier = earlier_file(dataset, FILE)
    facts = None if earlier is None else _read(earlier.path, earlier.count)
    if earlier is None or facts is None or np.isnan(facts.detail).any():
        return rows, np.arange(len(dataset))
    for name, values in vars(facts).items():
        rows[name][earlier.known] = values[earlier.rows[earlier.known]]
    for index in earlier.known.tolist():
        rows["time"][index] = _file_facts(dataset, index)["time"]
    return rows, earlier.missing


def _facts(dataset: Dataset, index: int) -> dict[str, Any]:
    image = reduced(dataset.images, index, SIDE)
    images = dataset.images
    size = upright_size(images.source(index)) if isinstance(images, EncodedImages) else image.size
    return {"width": size[0], "height": size[1], **_file_facts(dataset, index), **measure(image)}


def _file_facts(dataset: Dataset, index: int) -> dict[str, int]:
    path = file_of(dataset, index)
    status = path.stat() if path else None
    return {"bytes": status.st_size if status else 0, "time": int(status.st_mtime) if status else 0}


def measure(image: Image.Image) -> dict[str, float]:
    """Return brightness, entropy and edges of an RGB image, as CleanVision computes them."""
    squares = np.asarray(image, np.float32) ** 2 @ WEIGHTS
    light, dark = np.sqrt(np.percentile(squares, [5, 99])) / 255
    ratio = max(1.0, max(image.size) / EDGES)
    width, height = (max(1, int(side // ratio)) for side in image.size)
    small = image.resize((width, height)) if ratio > 1 else image
    gray = small.convert("L")
    edges = ImageStat.Stat(gray.filter(ImageFilter.FIND_EDGES)).stddev[0]
    return {"dark": float(dark), "light": float(light), "entropy": image.entropy(), "edges": edges,
            "spread": float(np.std(gray.histogram())), "detail": fine_detail(image)}


def fine_detail(image: Image.Image) -> float:
    """Return the fine detail of an image relative to its coarse detail, which hardly depends on contrast.

    Fine detail is what the smaller of two blurs removes, coarse detail what the larger removes besides. Blurring takes
    away the fine detail first. Each is the value that one of a hundred pixels exceeds. An image of one color has no
    detail that tells, and gets 1. Of the image and a small copy, the lower value counts.
    """
    gray = image.convert("L")
    return min(_detail_at(gray, side) for side in (SIDE, SMALL))


def _detail_at(image: Image.Image, side: int) -> float:
    """Return the fine detail of a gray image whose shorter side is reduced to a length."""
    from scipy.ndimage import gaussian_filter  # here, because it slows the start of the command line

    scale = min(1.0, side / min(image.size))
    size = max(1, round(scale * image.width)), max(1, round(scale * image.height))
    gray = np.asarray(image.resize(size, Image.Resampling.BOX), np.float32)
    little, much = (gaussian_filter(gray, sigma) for sigma in SHARP)
    fine, coarse = (np.percentile(np.abs(part), MOST_SHARP) for part in (gray - little, little - much))
    return float(fine / (coarse + 1)) if coarse >= LEAST_COARSE else 1.0
