"""Hashes of images, which find equal content and similar images.

The perceptual hash is the difference hash: an image is reduced to 9×8 gray values, and each of the 64 bits says whether
a value is smaller than its right neighbor. It hardly changes when an image is scaled, compressed or brightened; it does
change when an image is cropped by more than a few percent, rotated or mirrored.

References:
    N. Krawetz, "Kind of Like That", hackerfactor.com, 2013.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from filelock import FileLock
from PIL import Image

from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import UserError
from udml_core.base.files import read_arrays, replace_arrays
from udml_core.base.paths import dataset_cache
from udml_core.data.dataset import Dataset, Report
from udml_core.data.reusing import earlier_file

ROWS, COLUMNS = 8, 9
"""Gray values that an image is reduced to."""
BLOCK = 64
"""Images that are read between two progress reports."""
COMPARED = 2**21
"""Pairs of hashes that are compared at once, in 40 MB."""
MOST_PAIRS = 200_000
"""Most pairs that are kept: the most similar, where more are similar enough."""
STEP = "hashes of the images"
FILE = "hashes-1.npz"
"""Name of the stored hashes; the number changes with their definition."""
DIGESTS = "digests-1.npz"
"""Name of the file that keeps the hashes and the digest of each image for a later state of the folder."""
HASH_BYTES, DIGEST_BYTES, HEADERS = 16, 40, 1024
"""Stored bytes of an image in both files, and of the headers of two arrays."""


@dataclass(frozen=True, eq=False)
class ImageHashes:
    """The hashes of all images of a data set.

    Attributes:
        perceptual: Difference hash (n,) uint64 of each image.
        content: Index (n,) int64 of the first image with equal size and pixels, which is often the image itself.
    """

    perceptual: Array
    content: Integers


def hashes_of(dataset: Dataset, report: Report = lambda _share, _step: None) -> ImageHashes:
    """Return the hashes of a data set's images, computed on first use.

    Raises:
        UserError: An image can no longer be read, or the hashes cannot be stored.
    """
    path = dataset_cache(dataset.fingerprint) / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        if (stored := stored_hashes(dataset)) is not None:
            return stored
        perceptual, digests = _compute(dataset, report)
        hashes = ImageHashes(perceptual, first_equal(digests))
        replace_arrays(path.with_name(DIGESTS), {"perceptual": perceptual, "digests": digests})
        replace_arrays(path, vars(hashes))
    return hashes


def stored_hashes(dataset: Dataset) -> ImageHashes | None:
    """Return the hashes of a data set's images if they are stored and undamaged."""
    with suppress(UserError, OSError, KeyError):
        stored = read_arrays(dataset_cache(dataset.fingerprint) / FILE, len(dataset) * HASH_BYTES + HEADERS)
        if stored["perceptual"].shape == stored["content"].shape == (len(dataset),):
            return ImageHashes(stored["perceptual"], stored["content"])
    return None


def _compute(dataset: Dataset, report: Report) -> tuple[Array, Array]:
    """Return the perceptual hash (n,) and the digest of the pixels (n,) of each image; unchanged images are skipped."""
    perceptual, digests, missing = _known(dataset)
    report(0.0, STEP)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for start in range(0, len(missing), BLOCK):
            images = missing[start : start + BLOCK]
            grays, values = zip(*pool.map(lambda index: _reduced(dataset.images[int(index)]), images), strict=True)
            perceptual[images], digests[images] = difference_hash(np.stack(grays)), values
            report((start + len(images)) / len(missing), STEP)
    return perceptual, digests


def _known(dataset: Dataset) -> tuple[Array, Array, Integers]:
    """Return the stored values of images that were hashed in an earlier state of the folder, and the other images."""
    perceptual, digests = np.zeros(len(dataset), np.uint64), np.zeros(len(dataset), "S32")
    if (earlier := earlier_file(dataset, DIGESTS)) is not None:
        with suppress(UserError, KeyError, IndexError):  # a damaged file is computed again
            stored = read_arrays(earlier.path, earlier.count * DIGEST_BYTES + HEADERS)
            rows = earlier.rows[earlier.known]
            perceptual[earlier.known], digests[earlier.known] = stored["perceptual"][rows], stored["digests"][rows]
            return perceptual, digests, earlier.missing
    return perceptual, digests, np.arange(len(dataset))


def _reduced(image: Image.Image) -> tuple[Array, bytes]:
    """Return the gray values (8, 9) of an image, and a digest of its size and pixels."""
    digest = hashlib.blake2b(repr(image.size).encode(), digest_size=16)
    digest.update(np.asarray(image).data)
    return reduced_gray(image), digest.hexdigest().encode()


def reduced_gray(image: Image.Image) -> Array:
    """Reduce an image to gray values (8, 9) uint8, each the mean of its part of the image."""
    return np.asarray(image.convert("L").resize((COLUMNS, ROWS), Image.Resampling.BOX))


def difference_hash(grays: Array) -> Array:
    """Return the difference hash (n,) uint64 of reduced images (n, 8, 9).

    The first bit, of the top left corner, is the most significant.
    """
    bits = grays[:, :, :-1] < grays[:, :, 1:]
    packed = np.packbits(bits.reshape(len(grays), -1), axis=1)
    return np.ascontiguousarray(packed).view(">u8").astype(np.uint64).ravel()


def first_equal(keys: Array) -> Integers:
    """Return the index (n,) int64 of the first of all equal keys (n,)."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first[inverse.ravel()].astype(np.int64)


def close_pairs(hashes: Array, largest: int, most: int = MOST_PAIRS,
                report: Callable[[float], None] = lambda _share: None) -> tuple[Integers, Integers]:
    """Find the pairs of images whose hashes differ in few bits.

    All hashes are compared, in blocks, so that the memory does not grow with their square.

    Args:
        hashes: Hashes (n,) uint64.
        largest: Largest Hamming distance, 0 … 64.
        most: Most pairs to return: the closest, and among equally close pairs the first.
        report: Receives the finished share.

    Returns:
        Pairs i < j (p, 2) int64, closest first, and their Hamming distances (p,) uint8.
    """
    pairs, distances = np.zeros((0, 2), np.int64), np.zeros(0, np.uint8)
    step = max(1, COMPARED // max(1, len(hashes)))
    for start in range(0, len(hashes), step):
        block = np.bitwise_count(hashes[start : start + step, None] ^ hashes[None, start:])
        rows, columns = np.nonzero(block <= largest)
        later = columns > rows  # each pair once
        rows, columns = rows[later], columns[later]
        pairs = np.concatenate([pairs, np.stack([rows, columns], axis=1) + start])
        distances = np.concatenate([distances, block[rows, columns]])
        if len(pairs) > most:
            kept = np.sort(np.argsort(distances, kind="stable")[:most])
            pairs, distances = pairs[kept], distances[kept]
            largest = int(distances.max())
        report(min(1.0, (start + step) / len(hashes)))
    closest = np.argsort(distances, kind="stable")
    return pairs[closest], distances[closest]
