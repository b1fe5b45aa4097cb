"""Building a gallery in shards, so that an interrupted build continues with the next one."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import numpy as np

from udml_core.base.arrays import Array, Floats, Integers
from udml_core.base.errors import UserError
from udml_core.numerics.galleries import storage
from udml_core.numerics.galleries.checks import check_shape, checked_ids, finite_rows
from udml_core.numerics.galleries.gallery import StoredGallery
from udml_core.numerics.galleries.manifest import NAME, GalleryKind, Manifest, Shard, read_manifest, write_manifest
from udml_core.numerics.galleries.recall import tune
from udml_core.numerics.neighbors import EXACT_UP_TO
from udml_core.numerics.neighbors.centers import (
    SAMPLED_PER_LIST,
    Report,
    choose_lists,
    ignore_progress,
    nearest_center,
    sample_rows,
    train_centers,
)
from udml_core.numerics.neighbors.lists import Quantizer, balanced_rotation, train_codebooks

MOST_EXACT_BYTES = 2 * 1024**3
"""Largest size of all vectors for which the lists hold the vectors themselves."""
SHARDS, LEAST_SHARD, LARGEST_SHARD = 8, 50_000, 1_000_000
"""Number of shards of a build, and the bounds of their sizes, which bound the memory and the loss by a kill."""
DIMENSIONS_PER_CODE, MOST_CODES = 4, 64
CODE_SAMPLE = 65_536
HALF_RANGE = 1e-2, 1e4
"""Largest absolute values between which float16 keeps enough digits."""
DIGEST_ROWS = 65_536
"""Vectors that are read at once to compare them with the vectors of an earlier build."""


def choose_kind(count: int, dimension: int) -> GalleryKind:
    """Choose how a gallery is searched.

    All vectors are compared up to 200,000. Above, lists hold the vectors up to 2 GiB, and codes of them beyond.
    """
    if count <= EXACT_UP_TO:
        return "flat"
    return "ivf" if 4 * count * dimension <= MOST_EXACT_BYTES else "ivf-pq"


def build_gallery(vectors: Array, folder: Path | str, report: Report = ignore_progress, ids: Integers | None = None,
                  kind: GalleryKind | None = None) -> StoredGallery:
    """Build a gallery of vectors, or continue a build that was interrupted.

    Args:
        vectors: Vectors (n, d), n ≥ 1; a memory-mapped array is read in parts.
        folder: A new or empty folder, or the folder of the interrupted build of the same vectors.
        report: Receives the finished share and the step; an exception that it raises interrupts the build.
        ids: Distinct ids (n,) between 0 and 2³¹ − 1; the row numbers by default.
        kind: `flat`, `ivf` or `ivf-pq`; by default chosen by size, see `choose_kind`.

    Returns:
        The gallery, with its measured recall in `manifest.recall`.

    Raises:
        UserError: The vectors or ids are unsuitable, or the folder holds something else.
    """
    folder = Path(folder)
    check_shape(vectors)
    if not len(vectors):
        raise UserError("A gallery needs at least one vector; got none.")
    ids = np.arange(len(vectors)) if ids is None else checked_ids(ids, len(vectors))
    with storage.writing(folder, create=True):
        manifest = _begin(vectors, folder, ids, kind, report)
        if manifest.finished:
            return StoredGallery.open(folder)
        quantizer = None if manifest.kind == "flat" else storage.read_quantizer(folder, manifest)
        began, earlier = time.monotonic(), manifest.seconds
        while manifest.rows < manifest.planned:
            start = manifest.rows
            report(start / manifest.planned, "adding vectors")
            stop = min(start + manifest.shard_rows, manifest.planned)
            shard = Shard(number=len(manifest.shards), rows=stop - start)
            storage.write_shard(folder, manifest, shard, start, ids[start:stop], finite_rows(vectors[start:stop]),
                                quantizer)
            manifest = manifest.model_copy(update={"shards": (*manifest.shards, shard),
                                                   "seconds": earlier + time.monotonic() - began})
            write_manifest(folder, manifest)
        report(1.0, "adding vectors")
        gallery = StoredGallery(folder, manifest)
        manifest = tune(gallery, report)
        write_manifest(folder, manifest.model_copy(update={
            "finished": True, "imbalance": gallery.imbalance, "seconds": earlier + time.monotonic() - began}))
        return StoredGallery.open(folder)


def _begin(vectors: Array, folder: Path, ids: Integers, kind: GalleryKind | None, report: Report) -> Manifest:
    """Return the record of the interrupted build, or train and write a new one.

    Raises:
        UserError: The folder holds a gallery of other vectors, or other files.
    """
    content = _digest(vectors, ids)
    if (folder / NAME).exists():
        manifest = read_manifest(folder)
        if manifest.content != content or (kind or manifest.kind) != manifest.kind or (
                manifest.planned, manifest.dimension) != vectors.shape:
            raise UserError(f"{folder} holds a gallery of other vectors or of another kind ({manifest.kind}, "
                            f"{manifest.planned:,} vectors of {manifest.dimension} dimensions). Choose another folder, "
                            "or remove this one.")
        return manifest
    count, dimension = vectors.shape
    kind = kind or choose_kind(count, dimension)
    began = time.monotonic()
    lists = 0 if kind == "flat" else min(choose_lists(count), count)
    shard_rows = count if kind == "flat" else int(np.clip(-(-count // SHARDS), LEAST_SHARD, LARGEST_SHARD))
    manifest = Manifest(kind=kind, dimension=dimension, lists=lists, planned=count, content=content,
                        shard_rows=shard_rows)
    if kind != "flat":
        sample = finite_rows(vectors[sample_rows(count, SAMPLED_PER_LIST * lists)])
        quantizer = _train(sample, lists, kind == "ivf-pq", report)
        largest = float(np.abs(sample).max())
        manifest = manifest.model_copy(update={
            "codes": len(quantizer.codebooks), "seconds": time.monotonic() - began,
            "half": kind == "ivf-pq" and HALF_RANGE[0] <= largest <= HALF_RANGE[1]})
        storage.write_quantizer(folder, quantizer)
    write_manifest(folder, manifest)
    return manifest


def _train(sample: Floats, lists: int, has_codes: bool, report: Report) -> Quantizer:
    """Train the centers and, for codes, the rotation and the codebooks of the differences from the centers."""
    centers = train_centers(sample, lists, report)
    if not has_codes:
        return Quantizer(centers, np.zeros((0, 0), np.float32), np.zeros((0, 0, 0), np.float32))
    codes = min(MOST_CODES, -(-sample.shape[1] // DIMENSIONS_PER_CODE))
    report(0.0, "training the codes")
    coded = sample[sample_rows(len(sample), CODE_SAMPLE, seed=2)]
    differences = coded - centers[nearest_center(coded, centers)]
    rotation = balanced_rotation(differences, codes)
    return Quantizer(centers @ rotation.T, rotation, train_codebooks(differences @ rotation.T, codes))


def _digest(vectors: Array, ids: Integers) -> str:
    """Return a digest of all vectors and ids: a single new vector makes another gallery."""
    digest = hashlib.blake2b(repr((vectors.shape, str(vectors.dtype))).encode(), digest_size=16)
    for start in range(0, len(vectors), DIGEST_ROWS):
        digest.update(np.ascontiguousarray(vectors[start:start + DIGEST_ROWS]).data)
    digest.update(np.ascontiguousarray(ids).data)
    return digest.hexdigest()
