"""Comparisons of two embeddings that are kept on disk, so that the first page after a restart need not search again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from udml_core.base.arrays import Integers
from udml_core.base.errors import UserError
from udml_core.base.files import read_arrays, replace_arrays
from udml_core.base.paths import dataset_cache
from udml_core.data.dataset import Dataset
from udml_core.data.given import exclusions
from udml_core.data.given.log import log_version
from udml_core.runs.search.asked import asked_images
from udml_core.runs.search.differing import LARGEST, MOST_QUERIES, Comparison, Results, comparison_key
from udml_core.runs.search.query import Gallery

FOLDER = "comparisons"
MOST_BYTES = MOST_QUERIES * (2 * LARGEST + 1) * 8 + 4096
"""Largest length of a stored comparison."""


def stored_comparison(dataset: Dataset, names: tuple[str, str], gallery: Gallery, results: Results, copies: Integers,
                      tickets: tuple[float, ...], compute: Callable[[], Comparison]) -> Comparison:
    """Return the stored comparison of two embeddings, or compute and store it.

    A comparison of other images, exclusions, copies, findings of quality or embeddings is replaced.

    Args:
        dataset: The data set.
        names: Names of A and B, RUN:FRAME.
        gallery: The images that are searched.
        results: What is judged.
        copies: Index (n,) of the first known copy of each image.
        tickets: What changes when A or B is computed again, or when another size of a group is known.
        compute: Compares the embeddings.
    """
    name = hashlib.sha256(" ".join((*names, comparison_key(names, gallery, results))).encode()).hexdigest()[:24]
    path = dataset_cache(dataset.fingerprint) / FOLDER / f"{name}.npz"
    version = np.frombuffer(hashlib.sha256(repr((tickets, log_version(dataset, exclusions.KIND))).encode()
                                           + np.ascontiguousarray(copies).tobytes()
                                           + asked_images(dataset).tobytes()).digest(), np.uint8)
    with suppress(UserError, KeyError, ValueError):  # none is stored, or it is damaged
        return _read(path, version, dataset, names, gallery, results)
    comparison = compute()
    with suppress(OSError, UserError):  # nothing can be written: the next process compares again
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_arrays(path, {"version": version, "differing": comparison.differing,
                              "candidates": comparison.candidates, "numbers": np.array(
            [comparison.images, comparison.queries, comparison.with_copies, comparison.not_asked])})
    return comparison


def _read(path: Path, version: Integers, dataset: Dataset, names: tuple[str, str], gallery: Gallery,
          results: Results) -> Comparison:
    """Read a stored comparison.

    Raises:
        UserError: None is stored, or it is damaged.
        KeyError: An array is missing.
        ValueError: It is of another version, or its arrays do not fit.
    """
    stored = read_arrays(path, MOST_BYTES)
    differing, candidates = (stored[name].astype(np.int64, casting="safe") for name in ("differing", "candidates"))
    largest = max(differing.max(initial=0), candidates.max(initial=0))
    if not np.array_equal(stored["version"], version) or largest >= len(dataset) or differing.ndim != 1 or (
            candidates.shape[:2] != (len(differing), 2)):
        raise ValueError("The stored comparison is of another version.")
    images, queries, with_copies, not_asked = map(int, stored["numbers"])
    return Comparison(dataset, names, gallery, images, queries, differing, candidates, results, with_copies, not_asked)
