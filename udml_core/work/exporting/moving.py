"""Excluded images leave their folder, and come back: a plan first, which moves nothing. `moving_files` does it.

The folder of the moved files has a list, `moved.csv`, that is complete before the first file moves. Whether a file has
moved is seen from the two folders alone, so an interrupted move continues by the same command, in either direction.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from udml_core.base.errors import UserError, byte_words, counted, quoted
from udml_core.base.moving import is_same_file
from udml_core.base.paths import imports_folder
from udml_core.base.spreadsheets import unguarded
from udml_core.data import catalog
from udml_core.data.dataset import Dataset, FileImages
from udml_core.data.given.exclusions import excluded_names
from udml_core.data.given.log import read_log
from udml_core.data.sources.image_folder import MOST_GONE, Folder
from udml_core.data.sources.listing import ENDINGS, is_hidden
from udml_core.work.exporting.sorting import check_outside

MOVED = "moved.csv"
COLUMNS = ("file", "bytes", "folder")
KIND = "moved"
"""Log of the folders that excluded images of a data set were moved to: {"folder": PATH}."""
FEWEST = 2
"""Images that a data set needs, so that it can still be opened."""
MOST_BYTES = 64_000_000
"""Largest list that is read."""


@dataclass(frozen=True)
class MovedFile:
    """A file of the list.

    Attributes:
        file: Its path below either folder, with forward slashes.
        bytes: Its size.
    """

    file: str
    bytes: int


@dataclass(frozen=True)
class MovePlan:
    """What a move would do.

    Attributes:
        dataset: The data set.
        home: The folder of the images.
        away: The folder of the moved files and their list.
        items: The files that move.
        listed: The files of the list that moved before.
        left: Files that cannot move, with the reason.
        is_back: Whether the files move back home.
    """

    dataset: Dataset
    home: Path
    away: Path
    items: tuple[MovedFile, ...]
    listed: tuple[MovedFile, ...]
    left: tuple[tuple[str, str], ...]
    is_back: bool

    @property
    def source(self) -> Path:
        """The folder that the files leave."""
        return self.away if self.is_back else self.home

    @property
    def target(self) -> Path:
        """The folder that the files come to."""
        return self.home if self.is_back else self.away

    @property
    def notes(self) -> list[str]:
        """What a user should know before files move, in sentences."""
        reasons = Counter(reason for _, reason in self.left).most_common()
        notes = [f"{counted(count, 'file')} stay{'s' if count == 1 else ''}: {reason}." for reason, count in reasons]
        if not self.is_back and len(self.items) > MOST_GONE * len(self.dataset):
            notes.append("More than half of the images would leave, so earlier runs of this folder cannot be opened "
                         "until the images are back.")
        return notes

    @property
    def lines(self) -> list[str]:
        """The plan in words."""
        size = byte_words(sum(item.bytes for item in self.items))
        what = "file" if self.is_back else "excluded image"
        after = ("They stay on the list of excluded images. Nothing is overwritten." if self.is_back else
                 f"Subfolders are kept, nothing is deleted or overwritten, and {MOVED} there lists the files, so that "
                 "they can be moved back.")
        return [f"Move {counted(len(self.items), what)} ({size}) from {quoted(str(self.source))} to "
                f"{quoted(str(self.target))}. {after}", *self.notes]


def plan_moving(dataset: Dataset, folder: Path | str) -> MovePlan:
    """Plan to move the excluded images of a data set out of its folder; nothing is moved.

    Args:
        dataset: A folder of images in its present state.
        folder: A new or empty folder outside it, or one to which images of this data set were moved before.

    Raises:
        UserError: The images are no plain folder of the user's, the other folder is unsuitable, or no image can move.
    """
    home, away = home_of(dataset), Path(os.path.abspath(Path(folder).expanduser()))
    check_outside(dataset, away)
    if os.path.lexists(away) and not away.is_dir():
        raise UserError(f"Images are moved to a folder, and {quoted(str(away))} is a file. Choose another folder.")
    before = _earlier(home, away)
    names = excluded_names(dataset)
    if not names:
        raise UserError("No image is excluded, so there is nothing to move. Exclude images first.")
    items, left = _divide(names, home, away, {item.file for item in before})
    if not items:
        raise UserError(f"None of the excluded images can move: {left[0][1]}. Choose another folder.")
    if len(dataset) - len(items) < FEWEST:
        raise UserError(f"{len(dataset) - len(items)} of {counted(len(dataset), 'image')} would stay, and a data set "
                        f"needs {FEWEST}. Include some images again.")
    moving = {item.file for item in items}
    return MovePlan(dataset, home, away, items, tuple(item for item in before if item.file not in moving), left, False)


def plan_moving_back(dataset: Dataset, folder: Path | str) -> MovePlan:
    """Plan to move excluded images back into the folder of a data set; nothing is moved.

    Args:
        dataset: The folder of images in its present state.
        folder: The folder of the moved files, or their list.

    Raises:
        UserError: The list is missing, damaged, of another data set, or names a path outside the folder.
    """
    home, away = home_of(dataset), Path(os.path.abspath(Path(folder).expanduser()))
    away = away.parent if away.name == MOVED else away
    listed, origin = read_moved(away)
    if origin != str(home) and os.path.isdir(origin):
        raise UserError(f"The files in {quoted(str(away))} come from {quoted(origin)}. Name that data set.")
    here = [item for item in listed if os.path.lexists(away / item.file)]
    items, left = _divide([item.file for item in here], away, home, {item.file for item in listed})
    return MovePlan(dataset, home, away, items, (), left, True)


def moved_folders(dataset: Dataset) -> list[Path]:
    """Return the folders that hold moved images of a data set, the newest first."""
    paths = dict.fromkeys(str(row.get("folder")) for row in reversed(read_log(dataset, KIND)))
    found = []
    for path in map(Path, paths):
        with suppress(OSError, ValueError):
            found += [path] * (path / MOVED).is_file()
    return found


def home_of(dataset: Dataset) -> Path:
    """Return the folder of a user's own images.

    Raises:
        UserError: The images are not a plain folder: a table would list missing files, and an archive stays as it is.
    """
    source = catalog.find(dataset.name)
    if not isinstance(source, Folder) or not isinstance(dataset.images, FileImages):
        raise UserError(f"Only images of a plain folder can be moved, and {dataset.title} is read from a table, an "
                        "archive or other files. Download the list of excluded images.")
    home = Path(os.path.realpath(source.path))
    if home.is_relative_to(os.path.realpath(imports_folder())):
        raise UserError(f"The images of {dataset.title} are copies from an upload or an archive, and your own files "
                        "are elsewhere. Download the list of excluded images.")
    return home


def _earlier(home: Path, away: Path) -> tuple[MovedFile, ...]:
    """Return the files that were moved to a folder before; none if it is new or empty.

    Raises:
        UserError: It holds other files, or files of another data set.
    """
    if not away.exists() or not any(away.iterdir()):
        return ()
    if not (away / MOVED).exists():
        raise UserError(f"Images are moved to a new or empty folder, or one with the list {MOVED} of an earlier move, "
                        f"and {quoted(str(away))} has other files. Choose another folder.")
    listed, origin = read_moved(away)
    if origin != str(home):
        raise UserError(f"{quoted(str(away))} has files from {quoted(origin)}. Choose another folder.")
    return tuple(item for item in listed if os.path.lexists(away / item.file))


def read_moved(away: Path) -> tuple[list[MovedFile], str]:
    """Return the files in the list of a folder, and the folder that they left.

    Raises:
        UserError: The list is missing or damaged, or names a path that is not an image below the folder.
    """
    path = away / MOVED
    try:
        if path.is_symlink() or path.stat().st_size > MOST_BYTES:
            raise OSError("it is a link, or too long")
        with path.open(newline="", encoding="utf-8") as table:
            rows = list(csv.DictReader(table))
        listed = [MovedFile(unguarded(row["file"]), int(row["bytes"])) for row in rows]
        origins = {unguarded(row["folder"]) for row in rows}
        if len(origins) != 1:
            raise ValueError("it names no folder, or several")
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise UserError(f"{quoted(str(path))} should list moved images, but could not be read: {error}. Name the "
                        "folder to which images were moved.") from error
    if foreign := [item.file for item in listed if not _is_inside(item.file)]:
        raise UserError(f"{quoted(str(path))} lists the path {quoted(foreign[0])}, which is no image below a folder. "
                        "Nothing was moved.")
    return listed, origins.pop()


def _is_inside(file: str) -> bool:
    """Return whether a path is an image below a folder, as `listing.listed` gives it."""
    parts = Path(file).parts
    return ("/".join(parts) == file and not any(is_hidden(part) for part in parts) and "\0" not in file
            and file.lower().endswith(tuple(ENDINGS)))


def _divide(files: Iterable[str], source: Path, target: Path, known: set[str]
            ) -> tuple[tuple[MovedFile, ...], tuple[tuple[str, str], ...]]:
    """Return the files that can move from one folder to another, and the others with the reason."""
    reasons: list[tuple[str, str]] = []
    items: list[MovedFile] = []
    for file in files:
        reason = why_not(file, source, target, file in known)
        if reason:
            reasons.append((file, reason))
        else:
            items.append(MovedFile(file, (source / file).stat().st_size))
    return tuple(items), tuple(reasons)


def why_not(file: str, source: Path, target: Path, is_known: bool) -> str:
    """Return why a file cannot move, in a few words; empty if it can.

    Args:
        file: Its path below either folder.
        source: The folder that it leaves.
        target: The folder that it comes to.
        is_known: Whether the list has it, so that it may be in both folders if a move was interrupted.
    """
    if not _is_plain(source, file):
        return "links and what they lead to are never moved"
    if not (source / file).is_file():
        return "the file is gone"
    parent = (target / file).parent
    if os.path.realpath(parent) != str(Path(os.path.realpath(target)) / Path(file).parent):
        return "a link in the other folder leads elsewhere"
    if os.path.lexists(target / file) and not (is_known and is_same_file(source / file, target / file)):
        return "a file of the same name is in the other folder"
    return ""


def _is_plain(folder: Path, file: str) -> bool:
    """Return whether neither a file nor a folder on the way to it is a link."""
    return os.path.realpath(folder / file) == str(Path(os.path.realpath(folder)) / file)
