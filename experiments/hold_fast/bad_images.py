"""Random images: odd, damaged, mislabeled and harmful."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable

import numpy as np
from PIL import Image

from udml_core.data.sources.listing import ENDINGS

MODES = {"PNG": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"), "JPEG": ("L", "RGB", "CMYK"), "GIF": ("P", "L"),
         "TIFF": ("1", "L", "RGB", "RGBA", "CMYK", "I", "F", "I;16"), "BMP": ("1", "L", "P", "RGB"),
         "WEBP": ("RGB", "RGBA")}
FOREIGN = (b"", b"\0", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"II*\0", b"BM", b"RIFF\0\0\0\0WEBP",
           b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n", b"%PDF-1.7\n", b"PK\x03\x04", b"P6 9 9 255 ",
           b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"<html><script>alert(1)</script>", b"\0\0\1\0\1\0",
           b"GIF89a\xff\xff\xff\xff\xf7\0\0", b"\x80\x04cos\nsystem\n.")
"""Beginnings of files that are no images, or of images that the app does not read."""


def bad_image(random: np.random.Generator) -> tuple[str, bytes]:
    """Return the name and the content of a file that looks like an image by its ending."""
    make = MAKERS[int(random.integers(len(MAKERS)))]
    ending = str(random.choice(sorted(ENDINGS)))
    return f"{make.__name__.strip('_')}{ending.upper() if random.random() < 0.2 else ending}", make(random)


def _stored(random: np.random.Generator, **options: object) -> bytes:
    """Store random pixels in a random format and mode."""
    kind = str(random.choice(list(MODES)))
    return _save(_pixels(random, str(random.choice(MODES[kind]))), kind, **options)


def _pixels(random: np.random.Generator, mode: str) -> Image.Image:
    width, height = (int(2 ** random.uniform(0, 8)) for _ in range(2))
    values = random.integers(0, 256, (height, width, 3), dtype=np.uint8)
    if mode == "I;16":
        return Image.fromarray((values[..., 0].astype(np.uint16)) * 257)
    if mode == "F":
        extremes = random.choice([0.0, 1.0, np.nan, np.inf, -1e30, 1e30], (height, width))
        return Image.fromarray(extremes.astype(np.float32))
    return Image.fromarray(values).convert("L" if mode == "I" else mode).convert(mode)


def _save(image: Image.Image, kind: str, **options: object) -> bytes:
    content = io.BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


def _animation(random: np.random.Generator) -> bytes:
    frames = [_pixels(random, "RGB").resize((20, 20)) for _ in range(int(random.integers(2, 6)))]
    return _save(frames[0], str(random.choice(["GIF", "PNG", "WEBP", "TIFF"])), save_all=True, append_images=frames[1:])


def _exif(random: np.random.Generator) -> bytes:
    """Store a random orientation, allowed or not, or a random block."""
    exif = Image.Exif()
    exif[0x0112] = int(random.integers(0, 2**16)) if random.random() < 0.5 else int(random.integers(1, 9))
    block = exif.tobytes()
    if random.random() < 0.5:
        block = b"Exif\0\0" + random.bytes(int(random.integers(0, 200)))
    return _save(_pixels(random, "RGB"), str(random.choice(["JPEG", "PNG", "WEBP"])), exif=block)


def _truncated(random: np.random.Generator) -> bytes:
    content = _stored(random)
    return content[: int(random.integers(0, len(content)))]


def _flipped(random: np.random.Generator) -> bytes:
    """Replace some bytes of a valid file."""
    content = bytearray(_stored(random))
    for _ in range(int(random.integers(1, 30))):
        content[int(random.integers(min(len(content), 400) if random.random() < 0.5 else len(content)))] = int(
            random.integers(256))
    return bytes(content)


def _foreign(random: np.random.Generator) -> bytes:
    return FOREIGN[int(random.integers(len(FOREIGN)))] + random.bytes(int(random.integers(0, 300)))


def _bomb(random: np.random.Generator) -> bytes:
    """Return a small PNG that claims to be, or is, very large."""
    side = int(random.choice([20_000, 60_000, 2**31 - 1]))
    rows = zlib.compress(bytes(2501) * 200) if random.random() < 0.5 else b""
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", rows) + _chunk(b"IEND", b"")


def _text_bomb(random: np.random.Generator) -> bytes:
    """Return a PNG with a compressed comment of several megabytes."""
    content = _save(_pixels(random, "L"), "PNG")
    comment = b"Comment\0\0" + zlib.compress(bytes(int(random.integers(1, 9)) * 10**6))
    return content[:33] + _chunk(b"zTXt", comment) + content[33:]


def _chunk(kind: bytes, content: bytes) -> bytes:
    """Return a chunk of a PNG file."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


MAKERS: tuple[Callable[[np.random.Generator], bytes], ...] = (
    _stored, _animation, _exif, _truncated, _flipped, _foreign, _bomb, _text_bomb)
