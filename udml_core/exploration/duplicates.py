"""Duplicates: which pairs of images are checked, how well they agree, where duplicates begin, and the best copy.

Features and hashes only nominate pairs. Aligning two images decides whether they are the same photograph: a crop, a
smaller copy or a strong compression keeps the detail of a photograph where it is, while two photographs of one object
agree in no detail.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
from PIL import Image

from udml_core.base.arrays import Array, Booleans, Floats, Integers, rows_by_group
from udml_core.base.errors import UserError
from udml_core.base.files import read_arrays, replace_arrays
from udml_core.base.paths import dataset_cache
from udml_core.data.dataset import DETAIL, Dataset, Report, reduced
from udml_core.data.image_facts import ImageFacts
from udml_core.data.reusing import Earlier, current_file, earlier_file
from udml_core.data.speed import measured_speed, record_speed
from udml_core.exploration.browsing import near_duplicates
from udml_core.numerics.alignment import COLOR_SIDE, SIDE, Thumbnails, agreements

Groups = tuple[Integers, ...]
"""Groups of at least two images each, by their first image; the image to keep comes first in a group."""
CHECKED_NEIGHBORS = 3
"""Nearest images by features with which an image is aligned."""
LEAST_CHECKED = 0.6
"""Least cosine similarity of features from which images are aligned; crops by 8 % are above 0.8."""
MOST_CHECKED = 20_000
"""Most pairs that are aligned: the most similar."""
PAIR_BYTES, HEADERS = 20, 1024
"""Stored bytes of an aligned pair, and of the headers of both arrays."""
ALIGNING = "aligning pairs"
"""The step that compares candidates pixel by pixel."""
FIRST_SECONDS = {"aligned image": 0.0015, "aligned pair": 0.00045}
"""Seconds of reading an image and of aligning a pair of 1,589 photographs on two cores, until a machine has its own."""
FEWEST_TIMED = 200
"""Images and pairs from which their time is kept for estimates."""
CHECK_BLOCK = 1024
"""Pairs that are aligned between two progress reports."""
VALLEY_EDGES = np.linspace(0.5, 1.0, 11)
RARE = 0.005
"""Largest share of the pairs in a valley, which is 0.05 wide."""
LOWEST, HIGHEST = 0.6, 0.99
"""Ends of the least agreement that a gap proposes."""
BORDER, MOST_BORDER = 0.12, 200
"""Distance from the least agreement within which a pair is at the border, and most pairs there: the closest."""


def candidate_pairs(pairs: Integers, cosines: Floats, neighbors: Integers, similarities: Floats) -> Integers:
    """Return the pairs i < j (p, 2) that are worth an alignment, the most similar first.

    Args:
        pairs: Pairs (q, 2) with close hashes.
        cosines: Cosine similarities (q,) of their features.
        neighbors: Indices (n, k) of each image's nearest images by features.
        similarities: Their cosine similarities (n, k).
    """
    nearest = slice(0, CHECKED_NEIGHBORS)
    by_features, values = near_duplicates(neighbors[:, nearest], similarities[:, nearest], LEAST_CHECKED)
    both = np.concatenate([by_features, pairs[cosines >= LEAST_CHECKED]])
    all_values = np.concatenate([values, cosines[cosines >= LEAST_CHECKED]])
    unique, first = np.unique(both, axis=0, return_index=True)
    falling = np.argsort(-all_values[first], kind="stable")[:MOST_CHECKED]
    return unique[falling].astype(np.int64)


def check_pairs(dataset: Dataset, pairs: Integers, report: Report = lambda _share, _step: None) -> Floats:
    """Align the images of pairs (p, 2), and return how well they agree (p,) float32; see `alignment.agreements`.

    Pairs that were aligned before, in this or an earlier state of the folder, are not aligned again.

    Raises:
        UserError: An image can no longer be read, or the values cannot be stored.
    """
    finest = SIDE if dataset.native_size > SIDE // 2 else SIDE // 2
    file = f"aligned-{finest}.npz"
    values = _known_agreements(dataset, pairs, file)
    unknown = np.isnan(values)
    values[unknown] = _align(dataset, pairs[unknown], finest, report)
    if dataset.digests:
        path = dataset_cache(dataset.fingerprint) / file
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_arrays(path, {"pairs": pairs, "values": values})
    return values


def _known_agreements(dataset: Dataset, pairs: Integers, file: str) -> Floats:
    """Return the stored agreement (p,) of pairs (p, 2) whose images have not changed; NaN for other pairs."""
    values = np.full(len(pairs), np.nan, np.float32)
    for stored in (current_file(dataset, file), earlier_file(dataset, file)):
        if stored is not None and len(pairs):
            with suppress(UserError, KeyError, IndexError, ValueError):  # a damaged file is computed again
                _fill_agreements(values, pairs, stored)
    return values


def _fill_agreements(values: Floats, pairs: Integers, stored: Earlier) -> None:
    """Write the stored agreement of pairs (p, 2) to values (p,) that are NaN."""
    arrays = read_arrays(stored.path, MOST_CHECKED * PAIR_BYTES + HEADERS)
    keys, wanted = (np.sort(rows, axis=1) @ [stored.count, 1] for rows in (arrays["pairs"], stored.rows[pairs]))
    order = np.argsort(keys)
    places = np.searchsorted(keys, wanted, sorter=order).clip(0, len(keys) - 1)
    same = (keys[order[places]] == wanted) & (stored.rows[pairs] >= 0).all(axis=1) & np.isnan(values)
    values[same] = arrays["values"][order[places]][same]


def _align(dataset: Dataset, pairs: Integers, finest: int, report: Report) -> Floats:
    """Align the images of pairs (p, 2) up to a side in pixels, and return how well they agree (p,) float32."""
    values = np.zeros(len(pairs), np.float32)
    images, rows = np.unique(pairs, return_inverse=True)
    began = time.perf_counter()
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        small = Thumbnails(np.empty((len(images), SIDE, SIDE), np.uint8),
                           np.empty((len(images), 2, COLOR_SIDE, COLOR_SIDE), np.uint8))
        for row, (gray, chroma) in enumerate(pool.map(
                lambda index: make_square(reduced(dataset.images, int(index), SIDE)), images)):
            small.gray[row], small.chroma[row] = gray, chroma
            if row % CHECK_BLOCK == 0:
                report(_aligned_share(row, 0, images, pairs), f"{ALIGNING}{DETAIL}reading the images")
    read = time.perf_counter()
    left, right = rows.reshape(-1, 2).T
    for start in range(0, len(pairs), CHECK_BLOCK):
        part = slice(start, start + CHECK_BLOCK)
        values[part] = agreements(small.of(left[part]), small.of(right[part]), finest)
        report(_aligned_share(len(images), min(len(pairs), start + CHECK_BLOCK), images, pairs), ALIGNING)
    done = time.perf_counter()
    _keep_speeds({"aligned image": (read - began, len(images)), "aligned pair": (done - read, len(pairs))})
    return values


def _keep_speeds(taken: Mapping[str, tuple[float, int]]) -> None:
    """Keep what an image and a pair took, for the estimates of later audits.

    Args:
        taken: Seconds and number of each kind.
    """
    for kind, (seconds, count) in taken.items():
        if count >= FEWEST_TIMED:
            with suppress(OSError):  # nothing can be written, and only estimates need it
                record_speed(kind, seconds / count)


def _aligned_share(read: int, aligned: int, images: Integers, pairs: Integers) -> float:
    """Return the finished share of the time, by what reading an image and aligning a pair took here before.

    Args:
        read: Number of images that are read.
        aligned: Number of pairs that are aligned.
        images: The images.
        pairs: Their pairs.
    """
    of_image, of_pair = (measured_speed(kind) or first for kind, first in FIRST_SECONDS.items())
    return (read * of_image + aligned * of_pair) / max(len(images) * of_image + len(pairs) * of_pair, 1e-9)


def make_square(image: Image.Image) -> tuple[Array, Array]:
    """Return the gray values (64, 64) and the color differences (2, 16, 16) of an image, stretched to a square."""
    square = image.resize((SIDE, SIDE), Image.Resampling.BILINEAR, reducing_gap=3.0).convert("YCbCr")
    colors = np.asarray(square.resize((COLOR_SIDE, COLOR_SIDE), Image.Resampling.BOX))
    return np.asarray(square)[:, :, 0], colors[:, :, 1:].transpose(2, 0, 1)


def propose_agreement(values: Floats) -> float:
    """Return the least agreement of duplicates that the data propose: a valley between two modes, or the widest gap.

    Different photographs agree up to somewhere above 0.4, and copies from somewhere below 1, so their mixture has two
    modes with hardly a pair between them, and most pairs are below. Images with little detail, such as drawings, fill
    the valley: then only the widest gap in the upper half of the pairs tells.

    Args:
        values: Agreement (p,) of every pair that was checked.
    """
    counts, edges = np.histogram(values, VALLEY_EDGES)
    low = counts[:-1].min()
    rows = np.flatnonzero(counts[:-1] == low)
    runs = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
    valley = max(runs, key=len)
    least, middle = (edges[valley[0]] + edges[valley[-1] + 1]) / 2, float(np.median(values)) if len(values) else 0.0
    if low <= RARE * len(values) and middle < least and counts[valley[-1] + 1 :].max() > 1.5 * low:
        return float(round(least, 3))
    inside = np.sort(values[values > LOWEST])
    ends = np.concatenate([[LOWEST], inside, [1.0]]).astype(np.float64)
    middles, widths = (ends[1:] + ends[:-1]) / 2, np.diff(ends)
    allowed = (middles <= HIGHEST) & (middles > middle)
    return float(round(middles[allowed][widths[allowed].argmax()], 3)) if allowed.any() else HIGHEST


def groups_of(pairs: Integers, count: int) -> Groups:
    """Return the groups that pairs (p, 2) of `count` images connect, by their first image."""
    if not len(pairs):
        return ()
    from scipy.sparse import coo_array  # here, because it slows the start of the command line
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(pairs), bool), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    _, group = connected_components(graph, directed=False)
    return tuple(sorted(rows_by_group(np.unique(pairs), group), key=lambda images: int(images[0])))


def all_but_first(groups: Groups) -> Integers:
    """Return the ascending indices of all images of groups except the first of each."""
    return np.sort(np.concatenate([group[1:] for group in groups])) if groups else np.zeros(0, np.int64)




def best_first(groups: Groups, facts: ImageFacts | None, preferred: Sequence[int] = ()) -> Groups:
    """Order each group by quality: a copy that the user prefers, then pixels, length of the file, sharpness, and age.

    Args:
        groups: Groups of images.
        facts: Facts about all images; None keeps the order, except for the preferred images.
        preferred: Images that the user wants to keep, the last choice first.
    """
    if not groups:
        return ()
    images = np.concatenate(groups)
    numbers = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    keys = [images]  # the last key counts most
    if facts is not None:
        keys += [facts.time[images], -facts.edges[images].round(2), -facts.bytes[images], -facts.pixels[images]]
    place = {image: number for number, image in enumerate(preferred)}
    choice = np.array([place.get(image, len(place)) for image in images.tolist()])
    order = np.lexsort([*keys, choice, numbers])
    return tuple(np.split(images[order], np.flatnonzero(np.diff(numbers)) + 1))


def at_border(pairs: Integers, values: Floats, least: float, kept: Booleans) -> Integers:
    """Return the positions (b,) of pairs close to the least agreement, the closest first.

    Args:
        pairs: Pairs (p, 2) that were checked.
        values: Their agreement (p,).
        least: The least agreement of duplicates.
        kept: Mask (n,) of the images that are not excluded.
    """
    distance = np.abs(values.astype(np.float64) - least)
    near = np.flatnonzero((distance <= BORDER) & kept[pairs].all(axis=1))
    return near[np.argsort(distance[near], kind="stable")][:MOST_BORDER]
