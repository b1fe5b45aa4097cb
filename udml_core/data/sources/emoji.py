"""Drawings of emoji that are part of the app."""

from __future__ import annotations

import hashlib
import json

import numpy as np
from PIL import Image

from udml_core.base.paths import ASSETS
from udml_core.data.dataset import ArrayImages, Dataset, Report
from udml_core.data.sources.source import Source

COLUMNS, SIDE = 40, 64
"""Drawings in a row of the sheet, and their side in pixels."""
FILES = ("emoji.webp", "emoji.json")


class Emoji(Source):
    """Color drawings of 64×64 pixels in Unicode's subcategories (Google LLC, Apache-2.0).

    They are on one sheet, `assets/emoji.webp`; `assets/emoji.json` lists the name and class of each drawing. Both are
    made by `experiments/make_emoji.py`.
    """

    name = "emoji"
    title = "Emoji, 1,214 drawings"
    summary = "Color drawings of 64×64 pixels in 41 groups, such as fruit, tools and faces. Part of the app."
    images = 1214
    classes = 41

    def missing(self) -> str | None:
        absent = next((name for name in FILES if not (ASSETS / name).exists()), None)
        return f"The file assets/{absent} is missing. Restore it from the project." if absent else None

    def load(self, report: Report) -> Dataset:
        content = [(ASSETS / name).read_bytes() for name in FILES]
        rows = json.loads(content[1])
        with Image.open(ASSETS / FILES[0]) as file:
            sheet = np.asarray(file.convert("RGB"))
        tiles = sheet.reshape(-1, SIDE, COLUMNS, SIDE, 3).swapaxes(1, 2).reshape(-1, SIDE, SIDE, 3)[: len(rows)]
        classes = sorted({kind for _, kind in rows})
        labels = np.array([classes.index(kind) for _, kind in rows], dtype=np.int64)
        report(1.0, "emoji")
        # The sheet is lossless, so its bytes stand for the pixels.
        return Dataset(self.name, self.title, ArrayImages(np.ascontiguousarray(tiles)), labels, tuple(classes),
                       hashlib.sha256(b"".join(content)).hexdigest(), SIDE, False, tuple(name for name, _ in rows))
