"""A data set: images, and labels where there are any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from PIL import Image, UnidentifiedImageError

from udml_core.arrays import Array
from udml_core.errors import UserError

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")
"""What is read, whatever a file's ending says. Pillow knows others, and hands PostScript to a program that runs it."""
ORIENTATION = 0x0112
TURNS = {2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
         5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_270, 7: Image.Transpose.TRANSVERSE,
         8: Image.Transpose.ROTATE_90}
"""What turns an image upright, by EXIF's orientation."""
Report = Callable[[float, str], None]
"""Called with the share that is done, 0 to 1, and what is being done."""


class Images(Protocol):
    """Images by position, as RGB."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Image.Image: ...


@dataclass(frozen=True)
class ArrayImages:
    """Images held in one array, uint8, (n, height, width) gray or (n, height, width, 3)."""

    pixels: Array

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: int) -> Image.Image:
        return Image.fromarray(self.pixels[index]).convert("RGB")


@dataclass(frozen=True)
class FileImages:
    """Images as files below a folder."""

    root: Path
    files: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Image.Image:
        path = self.root / self.files[index]
        try:
            return read_image(path)
        except Exception as error:  # a broken image can raise anything
            raise UserError(f"The image {path} could be read when the data set was opened and cannot be read now "
                            f"({error}). Bring it back, or open the data set again without it.") from error


def read_user_image(source: Any, name: str) -> Image.Image:
    """An image that a person brings, from a path or an open file.

    Raises:
        UserError: it is none, is broken, or is too large.
    """
    try:
        return read_image(source)
    except UnidentifiedImageError as error:
        raise UserError(f"{name} must be an image, and is none of a known kind. Save it as JPEG or PNG.") from error
    except Exception as error:  # a broken image can raise anything
        raise UserError(f"{name} must be an image, and could not be read: {error}") from error


def read_image(source: Any) -> Image.Image:
    """An image as people see it: turned as its EXIF says, transparency on white, RGB."""
    with open_image(source) as image:
        turn = TURNS.get(_orientation(image))
        turned = image if turn is None else image.transpose(turn)
        if turned.mode[0] in "IF":
            return _eight_bits(turned).convert("RGB")
        if turned.mode in ("RGBA", "LA", "PA") or "transparency" in turned.info:
            layered = turned.convert("RGBA")
            paper = Image.new("RGBA", layered.size, "white")
            return Image.alpha_composite(paper, layered).convert("RGB")
        return turned.convert("RGB")


def open_image(source: Any) -> Image.Image:
    """An image of a known format, not yet decoded."""
    return Image.open(source, formats=FORMATS)


def _orientation(image: Image.Image) -> Any:
    """EXIF's orientation; 1, upright, where EXIF is broken, as it often is: Pillow's `exif_transpose` writes the block
    anew, and fails on what this reads."""
    try:
        return image.getexif().get(ORIENTATION, 1)
    except Exception:  # whatever a broken block makes of its reader
        return 1


def _eight_bits(image: Image.Image) -> Image.Image:
    """Gray of 16 or 32 bits as gray of 8: Pillow's own conversion makes everything above 255 white.

    White is 65,535 in 16 bits; elsewhere the least of 1, 255 and 65,535 that no pixel exceeds, or the brightest pixel.
    """
    values = np.nan_to_num(np.asarray(image, dtype=np.float64))
    levels = (65_535.0,) if image.mode.startswith("I;16") else (1.0, 255.0, 65_535.0)
    white = next((level for level in levels if values.max() <= level), values.max())
    return Image.fromarray(np.round(values.clip(0) * (255 / white)).astype(np.uint8))


@dataclass(frozen=True)
class Skipped:
    """A file that was left out, and why."""

    file: str
    reason: str


@dataclass(frozen=True)
class Dataset:
    """Images with a fingerprint that changes when they do.

    labels (n,) int64, 0 … c−1 in the order of `class_names`, or None: unlabeled. official_test (n,) bool marks the
    authors' test images where there is such a division. native_size: the typical shorter side in pixels.
    names (n,): what to call each image.
    """

    name: str
    title: str
    images: Images
    labels: Array | None
    class_names: tuple[str, ...]
    fingerprint: str
    native_size: int
    gray: bool
    names: tuple[str, ...]
    official_test: Array | None = None
    skipped: tuple[Skipped, ...] = ()

    def __len__(self) -> int:
        return len(self.images)

    @cached_property
    def class_sizes(self) -> Array:
        """Images of each class, (c,)."""
        return np.bincount(self.labels, minlength=len(self.class_names)) if self.labels is not None else np.zeros(0)

    def members(self, label: int | None) -> Array:
        """Positions of a class's images; of all images without a class."""
        if label is None or self.labels is None:
            return np.arange(len(self))
        return np.flatnonzero(self.labels == label)

    def caption(self, index: int) -> str:
        """The image's name, with its class where it has one."""
        if self.labels is None:
            return self.names[index]
        return f"{self.class_names[self.labels[index]]} · {self.names[index]}"
