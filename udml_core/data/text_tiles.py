"""Images of the rows of a table: their image files, and tiles of text in place of missing images."""

from __future__ import annotations

import textwrap
import unicodedata
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from udml_core.base.paths import may_read
from udml_core.data.dataset import Dataset, FileImages, read_image

TILE = 96
"""Side of a tile in pixels."""
MARGIN = 5
LONGEST_TEXT = 100
"""Letters of a text that a tile shows at most; more do not fit at the smallest size."""
FONT_SIZES = (34, 26, 20, 16, 13, 11)
LETTER_WIDTH, LINE_HEIGHT = 0.56, 1.2
"""Mean width of a letter and distance of two lines, in units of the font size."""
SYSTEM_FONTS = ("NotoSansCJK-Regular.ttc", "Arial Unicode.ttf", "msyh.ttc", "DejaVuSans.ttf", "Arial.ttf")
"""Fonts for other scripts than Latin, fonts with many scripts first."""
PAPER, INK = (244, 245, 247), (30, 34, 42)


def draw_text_tile(text: str) -> Image.Image:
    """Draw a text, broken into lines, at the largest size at which it fits into a square tile."""
    plain = _without_accents(" ".join(text[:LONGEST_TEXT].replace("/", "/ ").split()))
    tile = Image.new("RGB", (TILE, TILE), PAPER)
    if plain:
        size, lines = _fit(plain)
        center, font = (TILE / 2, TILE / 2), _font(size, plain.isascii())
        ImageDraw.Draw(tile).multiline_text(center, "\n".join(lines), INK, font, "mm", align="center", spacing=1)
    return tile


def _fit(text: str) -> tuple[int, list[str]]:
    """Return the font size of a text, and its lines; lines that do not fit at the smallest size are cut."""
    for size in FONT_SIZES:
        columns = int((TILE - 2 * MARGIN) / (LETTER_WIDTH * size))
        rows = int((TILE - 2 * MARGIN) / (LINE_HEIGHT * size))
        lines = textwrap.wrap(text, columns)
        breaks_word = any(len(word) > columns for word in text.split())
        if len(lines) <= rows and (size == FONT_SIZES[-1] or not breaks_word):
            break
    return size, lines[:rows]


def _without_accents(text: str) -> str:
    """Return Latin letters without accents, which Pillow's own font lacks."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))


@lru_cache(maxsize=2 * len(FONT_SIZES))
def _font(size: int, is_ascii: bool) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Return Pillow's own font, or a font of the system for other scripts than Latin if there is one."""
    for name in () if is_ascii else SYSTEM_FONTS:
        with suppress(OSError):
            return ImageFont.truetype(name, size)
    return ImageFont.load_default(size)


@dataclass(frozen=True)
class TableImages:
    """Images of the rows of a table.

    Attributes:
        root: The table's folder.
        files: Path of each row's image relative to the folder, empty without an image; None if no row has an image.
        texts: Text of each row, drawn where the image is missing, damaged or outside the folder.
    """

    root: Path
    files: tuple[str, ...] | None
    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> Image.Image:
        path = self.path(index)
        if path is not None:
            try:
                return read_image(path)
            except Exception:  # a damaged image can raise any exception; the vector of the row is there anyway
                pass
        return draw_text_tile(self.texts[index])

    def path(self, index: int) -> Path | None:
        """Return the path of a row's image; None if it does not exist, or is outside the table's folder."""
        return None if self.files is None or not self.files[index] else self.find(self.files[index])

    def find(self, file: str) -> Path | None:
        """Return the path of an image file; None if it does not exist, or is outside the table's folder."""
        path = self._inside(file)
        return path if path is not None and path.is_file() else None

    def has_folder(self, folder: str) -> bool:
        """Return whether images of a folder, relative to the table's, may be shown."""
        path = self._inside(folder)
        return path is not None and path.is_dir()

    def _inside(self, file: str) -> Path | None:
        """Return where a relative path leads; None if it leads out of the table's folder, or nowhere."""
        try:
            path = (self.root / file).resolve()
            return path if path.is_relative_to(self.root) and may_read(path) and path.exists() else None
        except (OSError, ValueError, RuntimeError):  # a name too long or not allowed, a null byte, a loop of links
            return None


def file_of(dataset: Dataset, index: int) -> Path | None:
    """Return the path of an image's file; None if it has none."""
    if isinstance(dataset.images, FileImages):
        return dataset.images.source(index)
    return dataset.images.path(index) if isinstance(dataset.images, TableImages) else None


def image_path(dataset: Dataset, index: int) -> str:
    """Return the path of an image's file; its name if the data set has no files."""
    path = file_of(dataset, index)
    return dataset.names[index] if path is None else str(path)
