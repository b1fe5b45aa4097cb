"""Data sets in a folder that their name, or their path, chooses."""

from __future__ import annotations

import hashlib
import os
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from udml_core.base.errors import UserError, quoted
from udml_core.base.paths import may_read, readable_roots
from udml_core.data.dataset import Skipped
from udml_core.data.sources.levels import ClassLevel
from udml_core.data.sources.listing import is_text
from udml_core.data.sources.source import Source


class Located(Source):
    """A data set in a folder.

    Attributes:
        path: The folder.
        expected: The files that are expected in the folder, for messages.
        names_classes: Whether lists or tables of the data set name the classes, not the levels of its subfolders.
        is_benchmark: Whether its authors have a protocol, so that their halves are not the default.
    """

    expected: ClassVar[str]
    names_classes: ClassVar[bool] = True
    is_benchmark: ClassVar[bool] = False

    def __init__(self, path: Path, name: str | None = None, title: str | None = None) -> None:
        with suppress(OSError, ValueError, RuntimeError):  # see `existing_path`; such a folder is missing
            path = path.expanduser().resolve()
        self.path = path
        self.name = name or str(path)
        self.title = title or path.name
        self.summary = f"Images in {path}"

    def levels(self) -> list[ClassLevel]:
        """Return the levels of subfolders that can be the classes; none if `names_classes`."""
        return []

    @property
    def origin(self) -> Path:
        """The folder, or the file in it, that opens the data set."""
        return self.path

    @abstractmethod
    def describe(self) -> str:
        """Return what the folder has, without decoding images.

        Raises:
            UserError: Its files are damaged.
        """

    def missing(self) -> str | None:
        if not may_read(self.path):
            return (f"This server does not read the folder {self.path}. It reads only folders in "
                    f"{', '.join(readable_roots())}. Choose a listed data set, or upload the images.")
        if not os.path.isdir(self.path):  # Path.is_dir raises if a parent folder is not accessible
            return f"The folder {self.path} does not exist. Expected: {self.expected}."
        if not is_text(str(self.path)):
            return f"The name of the folder {printable(str(self.path))} is not valid Unicode text. Rename it."
        return self._absent()

    @abstractmethod
    def _absent(self) -> str | None:
        """Return which files are missing in the folder, which exists."""

    @abstractmethod
    def _watched(self) -> Iterable[str]:
        """Return the files that the data set depends on, relative to the folder."""

    def too_few(self, count: int, skipped: Sequence[Skipped]) -> UserError:
        """Return the error for fewer than two readable images, with the first of the skipped files."""
        first = f" The first skipped file is {quoted(skipped[0].file)}: {skipped[0].reason}." if skipped else ""
        return UserError(f"The folder {self.path} needs at least 2 readable images, got {count} ({len(skipped)} "
                         f"skipped).{first} Expected: {self.expected}.")

    def signature(self) -> str:
        state = hashlib.sha256()
        for file in self._watched():
            with suppress(OSError, ValueError):  # it was deleted after it was listed, or a list names no file
                status = os.stat(self.path / file)
                state.update(os.fsencode(f"{file}|{status.st_size}|{status.st_mtime_ns}\n"))
        return state.hexdigest()


def printable(name: str) -> str:
    """Return a file name with replacements for bytes that are not Unicode."""
    return os.fsencode(name).decode(errors="replace")
