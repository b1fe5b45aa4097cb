"""Inverted files whose lists are memory-mapped.

A file of lists holds, for each list, the codes of its rows and then the row numbers (int64), each padded to a multiple
of 8 rows. faiss's own files are never read: the sizes (lists,) that lay out such a file are a checked array, so no
content of it can make faiss read outside of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from udml_core.base.arrays import Array, Booleans, Floats, Integers
from udml_core.base.errors import UserError
from udml_core.base.files import publish

library: Any = faiss
"""faiss without its types, which describe the C++ functions below its Python functions."""
PADDING = 8
ROW_BYTES = 8


@dataclass(frozen=True, eq=False)
class Quantizer:
    """What training computed, as plain arrays.

    Attributes:
        centers: Centers (lists, l) float32.
        rotation: Rotation (l, d) float32 before the lists; (0, 0) without one.
        codebooks: Centers (m, 256, l / m) float32 of the product quantizer, which codes the difference from the center
            of the list; (0, 0, 0) if the lists hold the vectors themselves.
    """

    centers: Floats
    rotation: Floats
    codebooks: Floats

    @property
    def has_codes(self) -> bool:
        """Whether the lists hold codes of a product quantizer."""
        return self.codebooks.size > 0

    @property
    def code_bytes(self) -> int:
        """Bytes of a row in a list."""
        return len(self.codebooks) if self.has_codes else 4 * self.centers.shape[1]

    def rotate(self, vectors: Array) -> Floats:
        """Return vectors (n, d) as the lists have them, (n, l) float32."""
        vectors = np.ascontiguousarray(vectors, np.float32)
        return vectors @ self.rotation.T if self.rotation.size else vectors

    def encode(self, rotated: Floats, assigned: Integers) -> Array:
        """Return the bytes (n, code_bytes) uint8 of rotated vectors (n, l) in their lists (n,)."""
        if not self.has_codes:
            return np.ascontiguousarray(rotated).view(np.uint8)
        codes: Array = self._product_quantizer().compute_codes(rotated - self.centers[assigned])
        return codes

    def _product_quantizer(self) -> Any:
        quantizer = library.ProductQuantizer(self.centers.shape[1], len(self.codebooks), 8)
        faiss.copy_array_to_vector(np.ascontiguousarray(self.codebooks, np.float32).ravel(), quantizer.centroids)
        return quantizer

    def index(self) -> Any:
        """Return an inverted file without lists."""
        lists, width = self.centers.shape
        coarse = faiss.IndexFlatL2(width)
        coarse.add(np.ascontiguousarray(self.centers, np.float32))
        if not self.has_codes:
            index = library.IndexIVFFlat(coarse, width, lists)
        else:
            index = library.IndexIVFPQ(coarse, width, lists, len(self.codebooks), 8)
            index.pq = self._product_quantizer()
            index.precompute_table()
        index.is_trained = True
        return index


def train_codebooks(differences: Floats, codes: int) -> Floats:
    """Train a product quantizer of `codes` bytes on differences (n, l); return its centers (codes, 256, l / codes)."""
    quantizer = faiss.ProductQuantizer(differences.shape[1], codes, 8)
    quantizer.cp.min_points_per_centroid = 1  # faiss prints a warning about small galleries otherwise
    quantizer.train(np.ascontiguousarray(differences, np.float32))
    return faiss.vector_to_array(quantizer.centroids).reshape(codes, 256, -1)


def balanced_rotation(differences: Floats, codes: int) -> Floats:
    """Return the rotation (l, d) before a product quantizer of `codes` parts; l is the next multiple of `codes`.

    The principal directions of the differences (n, d) are divided among the parts so that the products of the variances
    are as equal as possible: the closed form of optimized product quantization.

    References:
        T. Ge, K. He, Q. Ke, J. Sun, "Optimized Product Quantization", CVPR 2013, section 3.2.2.
    """
    dimension = differences.shape[1]
    size = -(-dimension // codes)
    variances, directions = np.linalg.eigh((differences.T @ differences).astype(np.float64) / len(differences))
    logarithms = np.log(np.maximum(variances[::-1], 1e-12 * max(variances[-1], 1e-300)))
    parts: list[list[int]] = [[] for _ in range(codes)]
    sums = np.zeros(codes)
    for number, value in enumerate(logarithms - logarithms.min()):
        # The part with room whose product is smallest takes the next largest variance.
        part = min((part for part in range(codes) if len(parts[part]) < size), key=lambda part: sums[part])
        parts[part].append(number)
        sums[part] += value
    rotation = np.zeros((codes, size, dimension), np.float32)
    for part, members in enumerate(parts):
        rotation[part, : len(members)] = directions[:, ::-1][:, members].T
    return rotation.reshape(codes * size, dimension)


def layout_of(sizes: Integers, code_bytes: int) -> tuple[Integers, Integers]:
    """Return the capacity (lists,) and the offset in bytes (lists + 1,) of each list of a file."""
    capacity = -(-np.asarray(sizes, np.int64) // PADDING) * PADDING
    return capacity, np.concatenate([[0], np.cumsum(capacity * (code_bytes + ROW_BYTES))]).astype(np.int64)


def write_lists(path: Path, codes: Array, assigned: Integers, rows: Integers, lists: int) -> Integers:
    """Write a file of lists atomically.

    Args:
        path: The file.
        codes: Bytes (n, b) uint8 of each row.
        assigned: List (n,) of each row.
        rows: Row numbers (n,).
        lists: Number of lists.

    Returns:
        The sizes (lists,) of the lists.
    """
    sizes = np.bincount(assigned, minlength=lists)
    order, ends = np.argsort(assigned, kind="stable"), np.cumsum(sizes)
    capacity, offsets = layout_of(sizes, codes.shape[1])
    aside = path.with_suffix(".part")
    with aside.open("wb") as file:
        for number in np.flatnonzero(sizes):
            members = order[ends[number] - sizes[number] : ends[number]]
            padding = int(capacity[number] - sizes[number])
            file.write(codes[members].tobytes() + bytes(padding * codes.shape[1]))
            file.write(rows[members].astype(np.int64).tobytes() + bytes(padding * ROW_BYTES))
    assert aside.stat().st_size == offsets[-1]
    publish(aside, path)
    return sizes


class MappedLists:
    """Files of lists, searched as one inverted file.

    Attributes:
        quantizer: What training computed.
        count: Number of rows.
    """

    def __init__(self, quantizer: Quantizer, files: Sequence[tuple[Path, Integers]]) -> None:
        """Map files of lists.

        Args:
            quantizer: What training computed.
            files: Each file with the sizes (lists,) of its lists.

        Raises:
            UserError: A file does not have the length that the sizes require.
        """
        self.quantizer = quantizer
        self.count = sum(int(sizes.sum()) for _, sizes in files)
        self._index = quantizer.index()
        self._parts = [_map_lists(path, sizes, quantizer.code_bytes) for path, sizes in files]
        pointers = library.InvertedListsPtrVector()
        for part in self._parts:
            pointers.push_back(part)
        # The stack keeps the parts in order; each query visits a list in all of them.
        self._lists = self._parts[0] if len(self._parts) == 1 else library.HStackInvertedLists(
            len(self._parts), pointers.data())
        self._index.replace_invlists(self._lists, False)
        self._index.ntotal = self.count

    @property
    def imbalance(self) -> float:
        """faiss's imbalance factor: 1 if all lists have the same size; the expected cost relative to that."""
        return float(self._lists.imbalance_factor())

    def search(self, queries: Floats, k: int, probes: int, allowed: Booleans | None = None
               ) -> tuple[Floats, Integers]:
        """Search rotated queries (q, l) in the lists of the nearest centers.

        Args:
            queries: Rotated queries (q, l).
            k: Number of rows.
            probes: Number of lists.
            allowed: Mask (n,) of the rows to search; all rows by default.

        Returns:
            Squared distances (q, k), and row numbers (q, k), −1 where the lists have fewer rows.
        """
        selector = None
        if allowed is not None:
            selector = library.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))
        probes = min(probes, len(self.quantizer.centers))
        parameters = (library.IVFPQSearchParameters if self.quantizer.has_codes else library.SearchParametersIVF)(
            nprobe=probes, sel=selector)
        return self._index.search(np.ascontiguousarray(queries, np.float32), k, params=parameters)


def _map_lists(path: Path, sizes: Integers, code_bytes: int) -> Any:
    capacity, offsets = layout_of(sizes, code_bytes)
    length = path.stat().st_size if path.is_file() else 0
    if length != offsets[-1]:
        raise UserError(f"{path} should have {offsets[-1]:,} bytes and has {length:,}. Build the gallery again.")
    mapped = library.OnDiskInvertedLists()
    mapped.nlist, mapped.code_size = len(sizes), code_bytes
    for size, room, offset in zip(sizes.tolist(), capacity.tolist(), offsets.tolist(), strict=False):
        entry = library.OnDiskOneList()
        entry.size, entry.capacity, entry.offset = size, room, offset
        mapped.lists.push_back(entry)
    mapped.filename, mapped.totsize, mapped.read_only = str(path), int(offsets[-1]), True
    if offsets[-1]:
        mapped.do_mmap()
    return mapped


def read_vectors(path: Path, sizes: Integers, width: int, block: int) -> Iterator[tuple[Integers, Floats]]:
    """Read the rows and the vectors of a file of lists without codes, at least `block` rows at a time if there are.

    Args:
        path: The file.
        sizes: Sizes (lists,) of its lists.
        width: Width d of the vectors.
        block: Rows of a block.

    Yields:
        Row numbers (b,) and vectors (b, d) float32.
    """
    capacity, offsets = layout_of(sizes, 4 * width)
    content = np.memmap(path, np.uint8, "r")
    rows, vectors, waiting = list[Array](), list[Array](), 0
    filled = np.flatnonzero(sizes)
    for number in filled:
        begin, size = int(offsets[number]), int(sizes[number])
        ids = begin + int(capacity[number]) * 4 * width
        vectors.append(content[begin : begin + 4 * width * size].view(np.float32).reshape(size, width))
        rows.append(content[ids : ids + ROW_BYTES * size].view(np.int64))
        waiting += size
        if waiting >= block or number == filled[-1]:
            yield np.concatenate(rows), np.concatenate(vectors)
            rows, vectors, waiting = [], [], 0
