"""Files whose rows hold images, whatever their format.

Nothing is unpickled. A row gives its image as a file's content, and where the file holds it, so that it need not be
copied; or else as the path of an image file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROWS = 64
"""Rows that are read at once: at most a few hundred megabytes of photographs."""


class StoredImage(NamedTuple):
    """The image of a row.

    Attributes:
        name: Its name or path; None if it has none.
        content: The content of its file; None if only its path is known.
        offset: Where the file of rows holds the content; None if it is compressed there.
    """

    name: str | None
    content: bytes | None
    offset: int | None = None


class RowFile(ABC):
    """A file whose rows hold images.

    Attributes:
        path: The file, or the folder of a Lance table.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names of the other columns with texts and numbers."""

    @abstractmethod
    def images(self) -> Iterator[StoredImage]:
        """Yield the image of each row."""

    @abstractmethod
    def read(self, name: str) -> list[Any]:
        """Return the values of a column."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of rows."""

    @property
    def image_columns(self) -> list[str]:
        """Names of the columns with images, if columns have names; the first is used."""
        return []

    @property
    def class_columns(self) -> list[str]:
        """Names of the columns that the file declares to be classes."""
        return []

    @property
    def flaw(self) -> str:
        """Why the file may lack rows, as the reason of a skipped file; empty if it seems whole."""
        return ""

    def paths_alone(self) -> list[str]:
        """Return the paths of the images if the file holds none of their contents; else an empty list."""
        return []

    def holds_images(self) -> bool:
        """Return whether the rows hold images."""
        return True
