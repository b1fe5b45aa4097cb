"""Make a messy folder of photographs, and the key of what was planted in it.

`python -m experiments.messy FOLDER` writes `FOLDER/photos/` without class folders, and `FOLDER/key.json`. The
photographs are drawn from a data set of files, by default birds100 in `UDML_DATA`. Their classes are in the key only.

Of 20 photographs each there is an equal copy, a re-encoding, and a smaller copy (6 scaled, 14 cropped by 8 %); of 6 a
copy that is stored turned, with the EXIF orientation that turns it upright. A copy is younger than its original, never
better or longer, and half of the copies sort before it. Besides: 5 broken files, 3 panoramas of 7.5 : 1, 5 blurred,
dark, bright and flat photographs each, and names with signs of Markdown, formulas, accents and spaces.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter

from experiments.recording import write_record
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import ORIENTATION, Dataset, FileImages

KINDS = {"copies": 20, "reencodings": 20, "smaller": 20, "turned": 6}
DAMAGED = ("blurred", "dark", "bright", "flat")
OF_EACH = 5
"""Photographs with each kind of damage, and broken files."""
CROP = 0.08
"""Share of the width and of the height that a crop cuts off."""
PANORAMA = 7.5
OLD, YOUNG = 1_577_836_800, 1_704_067_200
"""Times of the originals and of what was made from them: 2020 and 2024."""
ODD_NAMES = ("=1+1", "-rf", "**bold** [x](y)", "été à la mer", "鳥 🐦", "a  b", "IMG_0001 (1)", "#hash?&", "café%20",
             "Ω" * 40)


class MessyFolder:
    """Writes the files, and remembers what each of them is.

    Args:
        root: The folder of the photographs.
        source: The data set that they are drawn from.
        seed: Seed of the draw and of the crops.
    """

    def __init__(self, root: Path, source: Dataset, seed: int) -> None:
        if not isinstance(source.images, FileImages) or source.labels is None:
            raise UserError(f"{source.title} must have image files and classes.")
        self.root, self.source, self.files = root, source, source.images
        self.random = np.random.default_rng(seed)
        self.drawn = iter(self.random.permutation(len(source)).tolist())
        self.key: dict[str, Any] = {"classes": {}, "duplicates": [], **{name: [] for name in (
            "panoramas", "broken", "odd_names", *DAMAGED)}}

    def add_originals(self, count: int) -> Iterator[tuple[str, Image.Image]]:
        """Copy photographs of the source, the first with odd names, and yield name and image of each."""
        for number in range(count):
            index = next(self.drawn)
            stem = ODD_NAMES[number] if number < len(ODD_NAMES) else f"m{number:05}"
            suffix = Path(self.files.files[index]).suffix
            name = f"{stem}{suffix.upper() if number % 7 == 0 else suffix}"
            shutil.copyfile(self.files.root / self.files.files[index], self.root / name)
            self.note(name, index, OLD + 60 * number)
            if number < len(ODD_NAMES):
                self.key["odd_names"].append(name)
            yield name, self.source.images[index]

    def note(self, name: str, index: int, time: int) -> None:
        """Store the class of a file in the key, and set its time."""
        self.key["classes"][name] = self.source.class_names[np.asarray(self.source.labels)[index]]
        os.utime(self.root / name, (time, time))

    def add_duplicate(self, kind: str, number: int, original: str, image: Image.Image) -> None:
        """Write a copy of a photograph; every second name sorts before the original's."""
        name = f"{'a' if number % 2 else 'z'}-{kind}-{number:02}"
        path = self.root / f"{name}.jpg"
        match kind:
            case "copies":
                shutil.copyfile(self.root / original, path)
            case "reencodings" if number % 3 == 2:
                path = path.with_suffix(".webp")
                image.save(path, quality=40)
            case "reencodings":
                image.save(path, quality=(30, 45)[number % 3])
            case "smaller" if number < 6:
                side = round((0.4 + 0.1 * number) * image.width)
                image.resize((side, round(side * image.height / image.width))).save(path, quality=85)
            case "smaller":
                self._crop(image).save(path, quality=85)
            case _:
                exif = Image.Exif()
                exif[ORIENTATION] = 6
                image.transpose(Image.Transpose.ROTATE_90).save(path, quality=50, exif=exif)
        os.utime(path, (YOUNG, YOUNG))
        self.key["classes"][path.name] = self.key["classes"][original]
        self.key["duplicates"].append({"file": path.name, "of": original, "kind": kind})

    def _crop(self, image: Image.Image) -> Image.Image:
        width, height = (round((1 - CROP) * side) for side in image.size)
        left, top = (int(self.random.integers(0, side - kept + 1))
                     for side, kept in ((image.width, width), (image.height, height)))
        return image.crop((left, top, left + width, top + height))

    def add_changed(self, kind: str, change: Callable[[Image.Image], Image.Image], count: int) -> None:
        """Write changed photographs whose originals are not in the folder."""
        for number in range(count):
            index = next(self.drawn)
            name = f"k{kind}{number}.jpg"
            change(self.source.images[index]).save(self.root / name, quality=90)
            self.note(name, index, OLD)
            self.key[kind].append(name)

    def add_broken(self, original: str) -> None:
        """Write files that no reader can open: cut off, empty, a web page, a bare header, and noise."""
        content = (self.root / original).read_bytes()
        for name, broken in {"cut.jpg": content[:len(content) // 3], "empty.jpg": b"", "page.jpg": b"<html></html>",
                             "header.png": b"\x89PNG\r\n\x1a\n", "noise.jpg": self.random.bytes(4000)}.items():
            (self.root / name).write_bytes(broken)
            self.key["broken"].append(name)


def damage(kind: str) -> Callable[[Image.Image], Image.Image]:
    """Return what a kind of damage does to a photograph."""
    match kind:
        case "blurred":
            return lambda image: image.filter(ImageFilter.GaussianBlur(image.width / 28))
        case "dark":
            return lambda image: ImageEnhance.Brightness(image).enhance(0.12)
        case "bright":
            return lambda image: image.point([min(255, 245 + value // 25) for value in range(256)] * 3)
        case _:
            return lambda image: Image.new("RGB", image.size, image.resize((1, 1)).getpixel((0, 0)))


def panorama(image: Image.Image) -> Image.Image:
    """Cut a strip out of the middle of a photograph."""
    height = round(image.width / PANORAMA)
    return image.crop((0, (image.height - height) // 2, image.width, (image.height + height) // 2))


def make_messy(folder: Path, source: Dataset, count: int, seed: int) -> dict[str, Any]:
    """Write a messy folder, and return its key.

    Args:
        folder: A new folder.
        source: A data set of image files with classes.
        count: Number of photographs that are copied as they are.
        seed: Seed of the draw.

    Raises:
        UserError: The folder exists, or the source is too small.
    """
    planted = sum(KINDS.values()) + len(ODD_NAMES)
    if count < planted or len(source) < count + OF_EACH * len(DAMAGED) + 3:
        raise UserError(f"The number of photographs must be at least {planted}, and {source.title} must have 23 more; "
                        f"got {count} of {len(source):,}.")
    photos = folder / "photos"
    if photos.exists():
        raise UserError(f"{photos} exists already. Choose another folder.")
    photos.mkdir(parents=True)
    messy = MessyFolder(photos, source, seed)
    originals = messy.add_originals(count)
    for _ in ODD_NAMES:
        next(originals)
    for kind, copies in KINDS.items():
        for number in range(copies):
            messy.add_duplicate(kind, number, *next(originals))
    last = [name for name, _ in originals] or [next(iter(messy.key["classes"]))]
    messy.add_broken(last[-1])
    messy.add_changed("panoramas", panorama, 3)
    for kind in DAMAGED:
        messy.add_changed(kind, damage(kind), OF_EACH)
    write_record(folder / "key.json", messy.key)
    return messy.key


def main() -> None:
    """Make the folder that the arguments describe."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--source", default="birds100", help="the data set that photographs are drawn from")
    parser.add_argument("--images", type=int, default=1500, help="photographs that are copied as they are")
    parser.add_argument("--seed", type=int, default=0)
    values = parser.parse_args()
    key = make_messy(values.folder, catalog.load(values.source), values.images, values.seed)
    print(f"{len(key['classes'])} photographs and {len(key['broken'])} broken files in {values.folder / 'photos'}")


if __name__ == "__main__":
    main()
