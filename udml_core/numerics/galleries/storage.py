"""Reading and writing the arrays of a gallery, one writer at a time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from udml_core.base.arrays import Array, Integers, misfit
from udml_core.base.errors import UserError
from udml_core.base.files import publish_folder, read_array, replace_array
from udml_core.numerics.galleries.manifest import NAME, Manifest, Shard, read_manifest
from udml_core.numerics.neighbors.lists import MappedLists, Quantizer, write_lists

READ_ROWS = 65_536
LOCK = "lock"
QUANTIZER = {"centers": "float lists l", "rotation": "float l d", "codebooks": "float codes 256 part"}


@dataclass(frozen=True, eq=False)
class StoredShard:
    """The arrays of a shard, memory-mapped.

    Attributes:
        start: Row number of its first vector in the gallery.
        ids: Ids (n,) int64.
        vectors: Vectors (n, d); None for `ivf`, whose lists hold the vectors.
        sizes: Sizes (lists,) of the lists; None for `flat`.
    """

    start: int
    ids: Integers
    vectors: Array | None
    sizes: Integers | None


def write_quantizer(folder: Path, quantizer: Quantizer) -> None:
    """Write what training computed."""
    for name in QUANTIZER:
        replace_array(folder / f"{name}.npy", getattr(quantizer, name))


def read_quantizer(folder: Path, manifest: Manifest) -> Quantizer:
    """Read what training computed.

    Raises:
        UserError: A file is missing, or does not fit the manifest.
    """
    arrays = {name: np.asarray(_read(folder / f"{name}.npy")) for name in QUANTIZER}
    width = arrays["centers"].shape[-1]
    rotated = f"{width if arrays['rotation'].size else 0}", f"{manifest.dimension if arrays['rotation'].size else 0}"
    part = width // manifest.codes if manifest.codes else 0
    problem = misfit(arrays, {
        "centers": f"float {manifest.lists} {width}", "rotation": f"float {' '.join(rotated)}",
        "codebooks": f"float {manifest.codes} {256 if manifest.codes else 0} {part}"})
    if manifest.codes and part * manifest.codes != width:
        problem = f"{width} dimensions cannot be divided into {manifest.codes} parts"
    if not arrays["rotation"].size and width != manifest.dimension:
        problem = f"centers has {width} dimensions, not {manifest.dimension}"
    if problem or any(array.dtype != np.float32 for array in arrays.values()):
        raise _damaged(folder, problem or "an array is not float32")
    return Quantizer(**arrays)


def write_shard(folder: Path, manifest: Manifest, shard: Shard, start: int, ids: Integers, vectors: Array,
                quantizer: Quantizer | None) -> None:
    """Write a shard aside, then rename it; the manifest does not name it yet.

    Args:
        folder: The gallery's folder.
        manifest: Its record.
        shard: The new shard.
        start: Row number of its first vector.
        ids: Ids (n,) of the vectors.
        vectors: Vectors (n, d).
        quantizer: What training computed; None for `flat`.
    """
    final = folder / shard.name
    aside = final.with_suffix(".part")
    for leftover in (aside, final):  # of a process that was killed before it wrote the manifest
        shutil.rmtree(leftover, ignore_errors=True)
    aside.mkdir(parents=True)
    vectors = np.ascontiguousarray(vectors, np.float32)
    np.save(aside / "ids.npy", ids.astype(np.int64))
    if quantizer is not None:
        from udml_core.numerics.neighbors.centers import nearest_center

        rotated = quantizer.rotate(vectors)
        assigned = nearest_center(rotated, quantizer.centers)
        sizes = write_lists(aside / "lists.bin", quantizer.encode(rotated, assigned), assigned,
                            np.arange(start, start + len(ids)), manifest.lists)
        np.save(aside / "sizes.npy", sizes.astype(np.int64))
    if manifest.kind != "ivf":
        np.save(aside / "vectors.npy", vectors.astype(np.float16) if manifest.half else vectors)
    publish_folder(aside, final)


def read_parts(folder: Path, manifest: Manifest) -> list[StoredShard]:
    """Map the arrays of all shards.

    Raises:
        UserError: A file is missing, or does not fit the manifest.
    """
    parts, start = list[StoredShard](), 0
    for shard in manifest.shards:
        where = folder / shard.name
        arrays, shapes = {"ids": _read(where / "ids.npy")}, {"ids": f"int {shard.rows}"}
        if manifest.kind != "ivf":
            arrays["vectors"] = _read(where / "vectors.npy")
            shapes["vectors"] = f"float {shard.rows} {manifest.dimension}"
        if manifest.kind != "flat":
            arrays["sizes"] = np.asarray(_read(where / "sizes.npy"))
            shapes["sizes"] = f"int {manifest.lists}"
        problem = misfit(arrays, shapes)
        sizes = arrays.get("sizes")
        if not problem and sizes is not None and (sizes.min() < 0 or sizes.max() > shard.rows
                                                  or sizes.sum() != shard.rows):
            problem = f"the lists have {sizes.sum():,} rows, not {shard.rows:,}"
        if problem:
            raise _damaged(where, problem)
        parts.append(StoredShard(start, arrays["ids"], arrays.get("vectors"), sizes))
        start += shard.rows
    return parts


def map_lists(folder: Path, manifest: Manifest, parts: list[StoredShard], quantizer: Quantizer) -> MappedLists:
    """Map the lists of all shards.

    Raises:
        UserError: A file is missing, or has another length.
    """
    return MappedLists(quantizer, [(folder / shard.name / "lists.bin", part.sizes)
                                   for shard, part in zip(manifest.shards, parts, strict=True)
                                   if part.sizes is not None])


def read_removed(folder: Path, manifest: Manifest) -> Integers:
    """Read the ascending row numbers (r,) of removed vectors.

    Raises:
        UserError: The file is missing, or does not fit the manifest.
    """
    if not manifest.removed:
        return np.zeros(0, np.int64)
    rows = np.asarray(_read(removed_path(folder, manifest)))
    problem = misfit({"rows": rows}, {"rows": f"int {manifest.removed_rows}"})
    if not problem and len(rows) and (rows[0] < 0 or rows[-1] >= manifest.rows or (np.diff(rows) <= 0).any()):
        problem = "its row numbers are not ascending rows of the gallery"
    if problem:
        raise _damaged(removed_path(folder, manifest), problem)
    return rows


def removed_path(folder: Path, manifest: Manifest) -> Path:
    """Path of the removed rows."""
    return folder / f"removed-{manifest.removed:05}.npy"


def _read(path: Path) -> Array:
    if not path.exists():
        raise UserError(f"{path} is missing. Build the gallery again.")
    return read_array(path, mapped=True)


def _damaged(path: Path, problem: str) -> UserError:
    return UserError(f"{path} does not belong to this gallery: {problem}. Build the gallery again.")


@contextmanager
def writing(folder: Path, create: bool = False) -> Iterator[None]:
    """Hold the lock of a gallery's folder.

    Args:
        folder: The folder.
        create: Whether the folder may be new; it must then be empty, or hold a gallery.

    Raises:
        UserError: Another process writes to it, it holds other files, or it is not a gallery.
    """
    if create:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise UserError(f"{folder} is not a folder. Choose another name.") from None
        if not (folder / NAME).exists() and not (folder / LOCK).exists() and any(folder.iterdir()):
            raise UserError(f"{folder} holds other files. Choose a new or an empty folder.")
    else:
        read_manifest(folder)  # no lock is written into a folder that is not a gallery
    try:
        with FileLock(folder / LOCK, timeout=0):
            yield
    except Timeout:
        raise UserError(f"Another process changes the gallery {folder}. Wait until it has finished.") from None
