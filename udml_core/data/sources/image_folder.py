"""A user's folder of images: `folder/class/*.jpg`, or files without labels.

Halves are folders above the classes: `folder/train/class/*.jpg` and `folder/test/class/*.jpg`.
Images without labels are directly in the folder. The class folders can be deeper; see `levels`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np

from udml_core.base.errors import counted
from udml_core.base.paths import may_read
from udml_core.data.dataset import Dataset, FileImages, Report, Skipped, skipped_words
from udml_core.data.sources.levels import (
    NO_CLASSES,
    ClassLevel,
    check_level,
    class_levels,
    first_class_level,
    halves_level,
    halves_of,
    name_with_level,
)
from udml_core.data.sources.listed import Listing
from udml_core.data.sources.listing import ENDINGS, has_image, listed
from udml_core.data.sources.located import Located, printable
from udml_core.data.sources.rows import Row, listing_of
from udml_core.data.sources.scanning import Scan, known_reasons, scan
from udml_core.data.sources.table_files import test_words
from udml_core.data.sources.versions import VersionImages, keep_version, read_version

LAYOUT = "folder/CLASS/image.jpg (one subfolder for each class), or image files directly in the folder (unlabeled)"
MOST_GONE = 0.5
"""Largest share of an earlier state's images that may be gone while its runs are still shown."""


class Folder(Located):
    """A folder as a data set.

    The labels are the names of the subfolders at the class level, by default the first level with at least two
    subfolders that are not the halves. Without such a level the images are unlabeled. Every image is decoded once, so
    that damaged images are found before training; the result is cached by file size and modification time. The
    fingerprint is a digest of the names and the contents, of a class level that is not the default, and of halves.

    Attributes:
        level: The chosen class level, which is part of the name; None for the default.
    """

    expected = LAYOUT
    names_classes = False

    def __init__(self, path: Path, name: str | None = None, title: str | None = None, level: int | None = None
                 ) -> None:
        super().__init__(path, name, title)
        self.level = level
        self.name = name_with_level(self.name, level)
        self.title += "" if level is None else f" (class level {level})"

    def levels(self) -> list[ClassLevel]:
        """Return the classes at each level of subfolders, without opening an image."""
        return class_levels(self._files)

    @cached_property
    def _files(self) -> list[str]:
        return [] if not may_read(self.path) else sorted(file for file, _ in listed(self.path))

    # Counted on access only: a folder can be large, and the catalog lists many folders without opening them.
    @property
    def images(self) -> int | None:  # type: ignore[override]
        return len(self._files) if os.path.isdir(self.path) else None

    @property
    def classes(self) -> int | None:  # type: ignore[override]
        levels = self.levels()
        level = first_class_level(levels) if self.level is None else self.level
        return next((len(class_level.sizes) for class_level in levels
                     if class_level.level == level and class_level.has_classes), None)

    def describe(self) -> str:
        classes = f"in {self.classes:,} classes" if self.classes else "without classes"
        level = halves_level(self.levels())
        words = [] if level in (None, self.level) else halves_of(self._files, level)
        count = sum(map(words.count, test_words(words)))
        divided = f" Halves given: {len(words) - count:,} train, {count:,} test." if words else ""
        return f"{len(self._files):,} images {classes}, by their folders.{divided}"

    def count_words(self) -> str:
        """Return the number of images, and of files that cannot be read; of all files if they were not read yet."""
        reasons = known_reasons(self.path, self._files)
        if reasons is None:
            return counted(len(self._files), "file")
        skipped = [Skipped(file, reason) for file, reason in zip(self._files, reasons, strict=True) if reason]
        images = len(self._files) - len(skipped)
        return ", ".join(filter(None, [counted(images, "image"), skipped_words(images, skipped)]))

    def _absent(self) -> str | None:
        if not has_image(self.path):
            return f"The folder {self.path} has no images. Expected: {LAYOUT}, with the extensions {_endings()}."
        return None

    def _watched(self) -> Iterable[str]:
        return (file for file, _ in listed(self.path))

    def load(self, report: Report) -> Dataset:
        self.check()
        entries = scan(self.path, sorted(file for file, _ in listed(self.path)), report)
        dataset = self._assemble(entries)
        keep_version(self.path, dataset.fingerprint, entries, dataset.names)
        return dataset

    def version(self, fingerprint: str, now: Dataset) -> Dataset | None:
        stored = read_version(self.path, fingerprint)
        if stored is None:
            return None
        dataset, path_of = self._assemble(stored.entries), dict(zip(now.digests, now.names, strict=True))
        same = set(zip(now.names, now.digests, strict=True))
        gone = frozenset(row for row, digest in enumerate(dataset.digests) if digest not in path_of)
        if dataset.fingerprint != fingerprint or len(gone) > MOST_GONE * len(dataset):
            return None
        files = tuple(name if (name, digest) in same else path_of.get(digest, name)  # an image may have been moved
                      for name, digest in zip(dataset.names, dataset.digests, strict=True))
        return replace(dataset, images=VersionImages(self.path, files, gone))

    def _default_level(self, levels: Sequence[ClassLevel]) -> int:
        return first_class_level(levels)

    def _assemble(self, entries: Scan) -> Dataset:
        """Return the data set of described files.

        Raises:
            UserError: There is no such class level, or there are fewer than two images.
        """
        files = sorted(file for file, entry in entries.items() if entry["reason"] is None)
        skipped = [Skipped(printable(file), entry["reason"]) for file, entry in sorted(entries.items())
                   if entry["reason"]]
        levels = class_levels(files)
        level = default = self._default_level(levels)
        if self.level is not None:
            check_level(self.level, levels, self.path)
            level = self.level
        groups: list[str] = []
        labels = None
        if level != NO_CLASSES:
            groups = list(levels[level - 1].sizes)
            loose = [file for file in files if file.count("/") < level]
            skipped += [Skipped(file, "has no class, because it is not in a class folder", "unused") for file in loose]
            files = [file for file in files if file.count("/") >= level]
            number_of = {group: number for number, group in enumerate(groups)}
            labels = np.array([number_of[file.split("/")[level - 1]] for file in files], dtype=np.int64)
        if len(files) < 2:
            raise self.too_few(len(files), skipped)
        divided = Listing(files)
        if (of_halves := halves_level(levels)) not in (None, level):
            halves = halves_of(files, of_halves)
            texts = [None] * len(files) if labels is None else [groups[label] for label in labels]
            divided = listing_of([Row(*row, ()) for row in zip(files, texts, halves, strict=True)], labels is not None,
                                 (), ())
            groups, labels = list(divided.class_names), None if divided.labels is None else np.array(divided.labels)
        is_divided = divided.in_test is not None or divided.training_classes is not None
        sides = [min(entries[file]["size"]) for file in files]
        content = "\n".join(f"{file}|{entries[file]['digest']}" for file in files)
        content += "" if level == default else f"\nclass level {level}"
        content += "\nhalves" * is_divided
        return Dataset(self.name, self.title, FileImages(self.path, tuple(files)), labels,
                       tuple(groups), hashlib.sha256(content.encode()).hexdigest(),
                       int(np.median(sides)), all(entries[file]["gray"] for file in files), tuple(files),
                       skipped=tuple(skipped), distinct=len({entries[file]["digest"] for file in files}),
                       digests=tuple(entries[file]["digest"] for file in files),
                       official_test=None if divided.in_test is None else np.array(divided.in_test),
                       training_classes=divided.training_classes, divides_own_images=is_divided)


def _endings() -> str:
    return ", ".join(sorted(ENDINGS))
