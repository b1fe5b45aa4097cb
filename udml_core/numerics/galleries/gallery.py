"""Search in a large gallery that lies in a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

import numpy as np

from udml_core.base.arrays import Array, Booleans, Floats, Integers
from udml_core.base.errors import UserError
from udml_core.numerics.galleries import storage
from udml_core.numerics.galleries.checks import checked_vectors
from udml_core.numerics.galleries.manifest import Manifest, read_manifest
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.neighbors.lists import MappedLists, read_vectors

FEW = 5000
"""Number of vectors that a filter keeps up to which an `ivf-pq` compares them all: codes rank distant vectors badly."""


class StoredGallery:
    """A searchable gallery in a folder; its arrays are memory-mapped.

    Searches may run in several threads. A later change of the folder is visible to galleries opened afterwards.

    Attributes:
        folder: Its folder.
        manifest: Its record; see `Manifest`.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        """Map the arrays of a gallery; call `StoredGallery.open` for a finished one."""
        self.folder, self.manifest = folder, manifest
        self._parts = storage.read_parts(self.folder, manifest)
        self._starts = np.array([part.start for part in self._parts])
        self._removed = storage.read_removed(self.folder, manifest)
        self._lists: MappedLists | None = None
        if manifest.kind != "flat":
            quantizer = storage.read_quantizer(self.folder, manifest)
            self._lists = storage.map_lists(self.folder, manifest, self._parts, quantizer)

    @staticmethod
    def open(folder: Path | str) -> StoredGallery:
        """Open a gallery.

        Raises:
            UserError: The folder is not a gallery, is not finished, or is damaged.
        """
        folder = Path(folder)
        manifest = read_manifest(folder)
        if not manifest.finished:
            raise UserError(f"The gallery {folder} is not finished: it has {manifest.rows:,} of {manifest.planned:,} "
                            "vectors. Repeat the command that builds it; it continues with the next part.")
        return StoredGallery(folder, manifest)

    def __len__(self) -> int:
        """Return the number of vectors, without removed ones."""
        return len(self.manifest)

    def search(self, queries: Array, k: int, allowed: Booleans | None = None, probes: int | None = None
               ) -> tuple[Floats, Integers]:
        """Find the k nearest vectors of each query.

        Args:
            queries: Queries (q, d).
            k: Number of vectors; all if there are fewer.
            allowed: Mask over ids of the vectors to search; an id beyond its end is not searched. All by default.
            probes: Number of lists to visit; by default the number that reached the measured recall, and more if the
                filter keeps few vectors.

        Returns:
            Squared Euclidean distances (q, k) float32, ascending, and ids (q, k) int64. For `ivf-pq` they are distances
            to the stored vectors, which are float16 by default.

        Raises:
            UserError: The queries have another dimension or are not finite, or k is below 1.
        """
        queries = checked_vectors(queries, self.manifest.dimension, "queries")
        if k < 1:
            raise UserError(f"The number of neighbors must be at least 1, got {k}.")
        mask = self._mask(allowed)
        k = min(k, int(mask.sum()))
        if k == 0 or not len(queries):
            return np.zeros((len(queries), k), np.float32), np.zeros((len(queries), k), np.int64)
        distances, rows = self.search_rows(queries, k, mask, probes=probes)
        return distances, self._ids(rows)

    def search_rows(self, queries: Floats, k: int, mask: Booleans, manifest: Manifest | None = None,
                    probes: int | None = None) -> tuple[Floats, Integers]:
        """Find the k nearest rows of each query.

        Args:
            queries: Queries (q, d) float32.
            k: Number of rows, at most as many as the mask keeps.
            mask: Mask (rows,) of the rows to search.
            manifest: A record with other probes and candidates to try.
            probes: Number of lists to visit.

        Returns:
            Squared distances (q, k) and row numbers (q, k).
        """
        if self._lists is None:
            return exact_neighbors(self.blocks(), queries, k, mask)
        kept = int(mask.sum())
        if self.manifest.kind == "ivf-pq" and kept <= min(FEW, self.manifest.rows // 2):
            few = np.flatnonzero(mask)
            return exact_neighbors([(few, self.vectors(few))], queries, k)
        manifest = manifest or self.manifest
        probes = probes or _probes(manifest, k, kept)
        distances, rows = self._probe(queries, k, mask, probes, manifest.candidates)
        short = np.flatnonzero((rows < 0).any(axis=1))  # these queries visited too few vectors
        while len(short) and probes < manifest.lists:  # four times as many lists until k are found
            are_found = bool((rows[short] >= 0).all())
            probes = min(manifest.lists, 4 * probes)
            distances[short], rows[short] = self._probe(queries[short], k, mask, probes, manifest.candidates)
            if are_found:  # visited once more: nearer vectors can lie in the next lists
                break
        if rows.min() < 0 or rows.max() >= self.manifest.rows:
            raise UserError(f"The lists of {self.folder} name rows that it does not have. Build the gallery again.")
        return np.maximum(distances, 0.0), rows

    def _probe(self, queries: Floats, k: int, mask: Booleans, probes: int, candidates: int
               ) -> tuple[Floats, Integers]:
        assert self._lists is not None
        quantizer, selected = self._lists.quantizer, None if mask.all() else mask
        rotated = quantizer.rotate(queries)
        if not quantizer.has_codes:
            return self._lists.search(rotated, k, probes, selected)
        listed = self._lists.search(rotated, min(self.manifest.rows, k * candidates), probes, selected)[1]
        return self._compare(queries, listed, k)

    def _compare(self, queries: Floats, candidates: Integers, k: int) -> tuple[Floats, Integers]:
        """Return the k nearest of the candidates (q, c) of each query by their stored vectors; −1 marks no row."""
        distances = np.full(candidates.shape, np.inf, np.float32)
        for number, (query, rows) in enumerate(zip(queries, candidates, strict=True)):
            valid = (rows >= 0) & (rows < self.manifest.rows)
            distances[number, valid] = ((self.vectors(rows[valid]) - query) ** 2).sum(axis=1)
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        rows = np.take_along_axis(candidates, order, axis=1)
        distances = np.take_along_axis(distances, order, axis=1)
        return distances, np.where(np.isfinite(distances), rows, -1)

    def vectors(self, rows: Integers) -> Floats:
        """Read the stored vectors (r, d) float32 of rows; an `ivf` is read from its beginning to its end."""
        vectors = np.empty((len(rows), self.manifest.dimension), np.float32)
        if self.manifest.kind == "ivf":
            order = np.argsort(rows)
            for numbers, block in self.blocks():
                position = np.minimum(np.searchsorted(rows, numbers, sorter=order), len(rows) - 1)
                members = rows[order[position]] == numbers
                vectors[order[position[members]]] = block[members]
            return vectors
        which = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(which):
            part, members = self._parts[number], which == number
            assert part.vectors is not None
            vectors[members] = part.vectors[rows[members] - part.start]
        return vectors

    def _ids(self, rows: Integers) -> Integers:
        """Return the ids of rows of any shape."""
        ids = np.empty(rows.shape, np.int64)
        which = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(which):
            members = which == number
            ids[members] = self._parts[number].ids[rows[members] - self._parts[number].start]
        return ids

    @cached_property
    def live(self) -> Booleans:
        """Mask (rows,) of the vectors that are not removed."""
        live = np.ones(self.manifest.rows, np.bool_)
        live[self._removed] = False
        return live

    def _mask(self, allowed: Booleans | None) -> Booleans:
        """Return the mask (rows,) of the vectors to search."""
        if allowed is None:
            return self.live
        allowed = np.asarray(allowed)
        if allowed.dtype != np.bool_ or allowed.ndim != 1:
            raise UserError(f"`allowed` must be a mask of booleans over ids; got {allowed.dtype} {allowed.shape}.")
        ids = self.all_ids
        known = (ids >= 0) & (ids < len(allowed))
        mask = np.zeros(len(ids), np.bool_)
        mask[known] = allowed[ids[known]]
        return mask & self.live

    @cached_property
    def all_ids(self) -> Integers:
        """Ids (rows,) in the order of rows, with removed vectors."""
        return np.concatenate([part.ids for part in self._parts]) if self._parts else np.zeros(0, np.int64)

    @property
    def imbalance(self) -> float:
        """faiss's imbalance factor of the lists: 1 is even; 1.0 without lists."""
        return 1.0 if self._lists is None else self._lists.imbalance

    def ids(self) -> Integers:
        """Return the ids of all vectors that are not removed, in the order in which they were added."""
        return self.all_ids[self.live]

    def blocks(self) -> Iterator[tuple[Integers, Floats]]:
        """Read all stored vectors, removed ones included, in blocks: rows (b,) and vectors (b, d) float32."""
        for shard, part in zip(self.manifest.shards, self._parts, strict=True):
            if part.vectors is None:
                assert part.sizes is not None
                yield from read_vectors(self.folder / shard.name / "lists.bin", part.sizes, self.manifest.dimension,
                                        storage.READ_ROWS)
                continue
            for start in range(0, shard.rows, storage.READ_ROWS):
                block = part.vectors[start : start + storage.READ_ROWS]
                yield np.arange(start, start + len(block)) + part.start, np.asarray(block, np.float32)


def _probes(manifest: Manifest, k: int, count: int) -> int:
    """Return the number of lists to visit for k neighbors among `count` searched vectors."""
    # With a filter, the k nearest vectors are as far as k / share vectors are without it.
    wanted = manifest.probes * manifest.rows / count
    least = 4 * k * manifest.lists / count  # lists that hold several times k searched vectors
    return int(min(manifest.lists, np.ceil(max(wanted, least))))


def exact_neighbors(blocks: Iterable[tuple[Integers, Floats]], queries: Floats, k: int, mask: Booleans | None = None
                    ) -> tuple[Floats, Integers]:
    """Find the k nearest rows of each query by comparing all.

    Args:
        blocks: Row numbers (b,) and vectors (b, d) of each block.
        queries: Queries (q, d) float32.
        k: Number of rows, at most as many as there are.
        mask: Mask (n,) of the rows to search; all by default.

    Returns:
        Squared distances (q, k) float32, ascending, and row numbers (q, k).
    """
    distances: Array = np.zeros((len(queries), 0), np.float32)
    indices: Array = np.zeros((len(queries), 0), np.int64)
    for rows, vectors in blocks:
        if mask is not None:
            if rows.min() < 0 or rows.max() >= len(mask):
                raise UserError("The lists of the gallery name rows that it does not have. Build the gallery again.")
            kept = mask[rows]
            if not kept.all():
                rows, vectors = rows[kept], vectors[kept]
        if len(rows):
            squared, nearest_rows = nearest(vectors, min(k, len(rows)), queries)
            distances = np.concatenate([distances, squared], axis=1)
            indices = np.concatenate([indices, rows[nearest_rows]], axis=1)
            order = np.argsort(distances, axis=1, kind="stable")[:, :k]
            distances, indices = (np.take_along_axis(values, order, axis=1) for values in (distances, indices))
    return distances, indices
