"""What the list of fields of a TIFF file declares of its parts, read before a decoder reserves memory for them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

BEGINNINGS = {b"II*\0": "<", b"MM\0*": ">", b"II+\0": "<", b"MM\0+": ">"}
"""The first bytes of TIFF files, and their byte order; + stands for files with addresses of 64 bits."""
WIDTH, HEIGHT, CHANNELS, TILE_WIDTH, TILE_HEIGHT = 256, 257, 277, 322, 323
OFFSETS = (273, 279, 324, 325)
"""Fields that have a number for each strip or tile."""
NUMBERS = {1: "B", 3: "H", 4: "I", 16: "Q"}
"""How numbers are stored, by the type of a field."""
MOST_PARTS = 100_000
"""Strips and tiles that are read; Pillow takes 40 µs for each."""
SMALLEST_TILE, LARGEST_TILE = 16, 2**22
"""Pixels of a tile's side, as the format demands, and of a tile that may be larger than its image."""


def check_tiff(file: BinaryIO) -> None:
    """Check the strips and tiles that a TIFF file declares; other files pass. The file is rewound.

    A tile can be declared to be much larger than its image, and there can be millions of strips of nothing.

    Raises:
        ValueError: A tile is too large, or there are too many parts.
    """
    head = file.read(16)
    fields = dict[int, tuple[int, int]]()
    if (order := BEGINNINGS.get(head[:4])) is not None:
        for field, count, value in _fields(file, order, head):
            known = fields.get(field, (0, 0))
            fields[field] = max(known[0], count), max(known[1], value)  # if a field stands there twice
    file.seek(0)
    width, height, channels = (max(1, fields.get(field, (0, 1))[1]) for field in (WIDTH, HEIGHT, CHANNELS))
    tile = fields.get(TILE_WIDTH, (0, 0))[1] * fields.get(TILE_HEIGHT, (0, 0))[1]
    if tile > max(LARGEST_TILE, 2 * width * height):
        raise ValueError(f"it has tiles of {tile:,} pixels, and {width:,} × {height:,} pixels itself; save it without "
                         "tiles")
    parts = max((fields.get(field, (0, 0))[0] for field in OFFSETS), default=0)
    tiles = -(-width // SMALLEST_TILE) * -(-height // SMALLEST_TILE)
    most = min(MOST_PARTS, channels * max(height, tiles))
    if parts > most:
        raise ValueError(f"it has {parts:,} parts, and at most {most:,} are read; save it with fewer strips or tiles")


def _fields(file: BinaryIO, order: str, head: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield each field of the first image: its number, how many values it has, and the first if it stands there."""
    is_long = head[2:3] == b"+" or head[3:4] == b"+"
    try:
        file.seek(struct.unpack_from(f"{order}Q" if is_long else f"{order}I", head, 8 if is_long else 4)[0])
        count, = struct.unpack(f"{order}Q" if is_long else f"{order}H", file.read(8 if is_long else 2))
        entry = struct.Struct(f"{order}HHQ8s" if is_long else f"{order}HHI4s")
        content = file.read(entry.size * min(count, 2**16))
        for field, kind, values, data in entry.iter_unpack(content[:len(content) // entry.size * entry.size]):
            number = NUMBERS.get(kind)
            yield field, values, struct.unpack_from(order + number, data.ljust(8, b"\0"))[0] if number else 0
    except (struct.error, OSError, OverflowError):
        return  # a cut file, which its reader refuses
