"""Adding and removing vectors without a new build.

An addition is one more shard; a removal replaces the list of removed rows. Both first write their files, and then
replace the manifest, which alone decides what belongs to the gallery. After a kill in between, the change has not
happened, and the next change overwrites the files that it left.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError, counted
from udml_core.base.files import replace_array
from udml_core.numerics.galleries import storage
from udml_core.numerics.galleries.checks import checked_ids, checked_vectors
from udml_core.numerics.galleries.gallery import StoredGallery
from udml_core.numerics.galleries.manifest import Manifest, Shard, write_manifest
from udml_core.numerics.galleries.recall import tune
from udml_core.numerics.neighbors.centers import Report, ignore_progress

MEASURE_AGAIN = 0.01
"""Share of the vectors that may be added or removed before the recall is measured again."""
MOST_IMBALANCE, MOST_GROWTH, MOST_REMOVED, LEAST_RECALL = 1.5, 2.0, 0.3, 0.95
"""Imbalance and number of vectors relative to the build, share of removed rows, and recall that advise a new build."""


def add_vectors(folder: Path | str, ids: Array, vectors: Array, report: Report = ignore_progress) -> StoredGallery:
    """Add vectors to a gallery.

    Args:
        folder: The gallery's folder.
        ids: Distinct ids (n,) that the gallery does not have.
        vectors: Vectors (n, d).
        report: Receives the progress.

    Returns:
        The changed gallery.

    Raises:
        UserError: An id is taken, or the vectors are unsuitable.
    """
    folder = Path(folder)
    with storage.writing(folder):
        gallery = StoredGallery.open(folder)
        manifest = gallery.manifest
        vectors = checked_vectors(vectors, manifest.dimension, "vectors")
        ids = checked_ids(ids, len(vectors))
        if not len(ids):
            return gallery
        taken = np.intersect1d(ids, gallery.ids())
        if len(taken):
            raise UserError(f"{counted(len(taken), 'id')} of these {len(ids):,} "
                            f"{'is' if len(taken) == 1 else 'are'} in the gallery already, such as {taken[0]}. Remove "
                            "it first, or choose other ids.")
        shard = Shard(number=max((shard.number for shard in manifest.shards), default=-1) + 1, rows=len(ids))
        quantizer = None if manifest.kind == "flat" else storage.read_quantizer(folder, manifest)
        report(0.0, "adding vectors")
        storage.write_shard(folder, manifest, shard, manifest.rows, ids, vectors, quantizer)
        return _publish(folder, manifest.model_copy(update={"shards": (*manifest.shards, shard)}), report)


def remove_vectors(folder: Path | str, ids: Array, report: Report = ignore_progress) -> StoredGallery:
    """Remove vectors from a gallery; searches skip them, and their space is freed by the next build.

    Args:
        folder: The gallery's folder.
        ids: Distinct ids (n,) of the gallery.
        report: Receives the progress.

    Returns:
        The changed gallery.

    Raises:
        UserError: An id is not in the gallery.
    """
    folder = Path(folder)
    with storage.writing(folder):
        gallery = StoredGallery.open(folder)
        manifest = gallery.manifest
        ids = checked_ids(np.asarray(ids), len(ids))
        rows = np.flatnonzero(gallery.live & np.isin(gallery.all_ids, ids))
        if len(rows) < len(ids):
            unknown = np.setdiff1d(ids, gallery.ids())
            raise UserError(f"{counted(len(unknown), 'id')} of these {len(ids):,} "
                            f"{'is' if len(unknown) == 1 else 'are'} not in the gallery, such as {unknown[0]}. Remove "
                            "only ids that it has.")
        if not len(ids):
            return gallery
        removed = np.flatnonzero(~gallery.live | np.isin(np.arange(manifest.rows), rows))
        changed = manifest.model_copy(update={"removed": manifest.removed + 1, "removed_rows": len(removed)})
        report(0.0, "removing vectors")
        replace_array(storage.removed_path(folder, changed), removed)
        gallery = _publish(folder, changed, report)
        if manifest.removed:
            storage.removed_path(folder, manifest).unlink(missing_ok=True)
        return gallery


def _publish(folder: Path, manifest: Manifest, report: Report) -> StoredGallery:
    """Measure the recall again if many vectors have changed, and replace the manifest."""
    measured = 0 if manifest.recall is None else manifest.recall.changes
    if manifest.changes - measured > MEASURE_AGAIN * len(manifest):
        manifest = tune(StoredGallery(folder, manifest), report)
    write_manifest(folder, manifest)
    return StoredGallery(folder, manifest)


def rebuild_advice(gallery: StoredGallery) -> str:
    """Return why a new build is advised, in one sentence; empty if it is not."""
    manifest = gallery.manifest
    if manifest.kind != "flat":
        if manifest.recall is not None and manifest.recall.recall < LEAST_RECALL:
            return (f"Build the gallery again: its recall@10 is {manifest.recall.recall:.3f}, below "
                    f"{LEAST_RECALL:.2f}.")
        imbalance = gallery.imbalance
        if imbalance > MOST_IMBALANCE * manifest.imbalance:
            return (f"Build the gallery again: its lists have an imbalance of {imbalance:.1f} after additions, "
                    f"{imbalance / manifest.imbalance:.1f} times the imbalance of the build, so searches are slower.")
        if len(gallery) > MOST_GROWTH * manifest.planned:
            return (f"Build the gallery again: it has grown from {manifest.planned:,} to {len(gallery):,} vectors, and "
                    "its lists were made for the smaller gallery.")
    if manifest.removed_rows > MOST_REMOVED * manifest.rows:
        return (f"Build the gallery again: {manifest.removed_rows:,} of its {manifest.rows:,} stored vectors are "
                "removed and still take space.")
    return ""
