"""Limits on the memory of images that are decoded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from PIL import Image

from udml_core.base.errors import byte_words

MOST_BYTES = 1e9
"""Largest memory that an image may need while it is decoded: 125 million pixels."""
LARGE = 20_000_000
"""Pixels above which an image waits for its turn."""
AT_ONCE = 2
"""Large images that a process decodes at the same time: twelve of the largest would take 12 GB."""
_turns = threading.BoundedSemaphore(AT_ONCE)


def check_memory(image: Image.Image) -> None:
    """Check the size that an opened image declares before memory is reserved for its pixels.

    Raises:
        ValueError: It needs more than `MOST_BYTES`.
    """
    width, height = image.size
    # Pillow keeps three channels in four bytes. A copy is turned upright or converted.
    needed = 2 * 4 * width * height
    if needed > MOST_BYTES:
        raise ValueError(f"its {width:,} × {height:,} pixels need more than {byte_words(MOST_BYTES)} of memory "
                         f"({byte_words(needed)}); save it smaller")


def is_large(size: tuple[int, int]) -> bool:
    """Return whether an image of a width and a height in pixels waits for its turn."""
    return size[0] * size[1] > LARGE


@contextmanager
def turn(size: tuple[int, int]) -> Iterator[None]:
    """Wait, if an image is large, until fewer than `AT_ONCE` other large images are decoded."""
    with _turns if is_large(size) else nullcontext():
        yield


def shrink(image: Image.Image, side: int | None) -> Image.Image:
    """Average squares of pixels of a large image, so that it takes little memory after its turn.

    Args:
        image: The decoded image.
        side: Pixels of the shorter side that are needed; twice as many are left, as in a reduced JPEG.
    """
    factor = 1 if side is None or not is_large(image.size) else min(image.size) // (2 * side)
    return image.reduce(factor) if factor > 1 else image
