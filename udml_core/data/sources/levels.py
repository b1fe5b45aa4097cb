"""Levels of subfolders as classes: `folder/CLASS/image.jpg` is level 1, `folder/photos/CLASS/image.jpg` level 2."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from udml_core.base.errors import UserError
from udml_core.data.sources.table_files import HALVES, test_words

NO_CLASSES = 0
"""The level of images without classes."""
_ENDING = re.compile(r"^(.+)#level=(\d{1,3})$")


@dataclass(frozen=True)
class ClassLevel:
    """The classes that one level of subfolders gives.

    Attributes:
        level: 1 for the folder's own subfolders.
        sizes: Number of images by class, sorted by name. Folders of equal names are one class.
        loose: Number of images above the level, which have no class and are left out.
    """

    level: int
    sizes: Mapping[str, int]
    loose: int

    @property
    def has_classes(self) -> bool:
        """Whether there are at least two classes."""
        return len(self.sizes) > 1

    @property
    def names_halves(self) -> bool:
        """Whether its folders name halves, such as train and test, as `datasets` reads a folder of images."""
        words = {name.lower() for name in self.sizes}
        return not self.loose and words <= HALVES.keys() and test_words(words) not in (set(), words)


def halves_level(levels: Sequence[ClassLevel]) -> int | None:
    """Return the first level of several folders if these are the halves; None otherwise."""
    first = next((level for level in levels if level.has_classes), None)
    return first.level if first is not None and first.names_halves else None


def halves_of(files: Sequence[str], level: int) -> list[str]:
    """Return the word for the half of each file; see `halves_level`."""
    return [file.split("/")[level - 1].lower() for file in files]


def class_levels(files: Sequence[str]) -> list[ClassLevel]:
    """Return the classes at each level of subfolders.

    Args:
        files: Paths of images relative to the folder, with forward slashes.
    """
    folders = [file.split("/")[:-1] for file in files]
    levels = []
    for level in range(1, max(map(len, folders), default=0) + 1):
        sizes = Counter(parts[level - 1] for parts in folders if len(parts) >= level)
        levels.append(ClassLevel(level, dict(sorted(sizes.items())), len(files) - sizes.total()))
    return levels


def first_class_level(levels: Sequence[ClassLevel]) -> int:
    """Return the first level with at least two classes, which are not halves; `NO_CLASSES` if there is none.

    A level below the first counts only if at least half of the images have a class there.
    """
    halves = halves_level(levels)
    return next((class_level.level for class_level in levels
                 if class_level.has_classes and class_level.level != halves
                 and (class_level.level == 1 or class_level.loose <= sum(class_level.sizes.values()))), NO_CLASSES)


def other_levels(levels: Sequence[ClassLevel], level: int | None) -> list[ClassLevel]:
    """Return the levels with classes, without halves, beside the chosen level; None chooses the default."""
    used = first_class_level(levels) if level is None else level
    return [other for other in levels if other.has_classes and other.level not in (used, halves_level(levels))]


def name_with_level(name: str, level: int | None) -> str:
    """Return the name of a data set whose class level is chosen; the plain name if it is not."""
    return name if level is None else f"{name}#level={level}"


def split_level(name: str) -> tuple[str, int | None]:
    """Split a name such as `photos#level=2` into the plain name and the class level.

    Returns:
        The name, and the level; None if the name has none.
    """
    match = _ENDING.match(name)
    return (match[1], int(match[2])) if match else (name, None)


def check_level(level: int, levels: Sequence[ClassLevel], folder: object) -> None:
    """Check that a chosen level has at least two classes.

    Raises:
        UserError: It has not.
    """
    usable = [class_level.level for class_level in levels if class_level.has_classes]
    if level != NO_CLASSES and level not in usable:
        raise UserError(f"The class level must be {', '.join(map(str, [NO_CLASSES, *usable]))} in {folder}, where "
                        f"{NO_CLASSES} means no classes and a level needs at least two subfolders with images; got "
                        f"{level}.")
