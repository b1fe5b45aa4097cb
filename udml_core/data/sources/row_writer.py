"""Where each image of files with rows is, its description, and the copy of compressed images."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath
from typing import Any, BinaryIO

from udml_core.data.sources.archive import Budget
from udml_core.data.sources.listing import is_text
from udml_core.data.sources.opened import find_file, opened_folders
from udml_core.data.sources.row_file import StoredImage
from udml_core.data.sources.scanning import describe_content, unreadable

COPY = -1
"""Number of the copy among the files that hold images."""
WHOLE = -1
"""Length of an image that is a file of its own."""
MOST_PARTS = (1, 2)
"""Numbers of parts of a path that can be the name of an image: its file, or also the folder of the file."""


class RowWriter:
    """What is known about the images that were read so far."""

    def __init__(self, root: Path, copy: BinaryIO, budget: Budget) -> None:
        self.root, self.copy, self.budget = root, copy, budget
        self.opened = opened_folders()
        self.names: list[tuple[str, int, str | None]] = []
        self.files: dict[str, int] = {}
        self.parts: list[tuple[int, int, int]] = []
        self.entries: list[dict[str, Any]] = []

    @property
    def lacks_images(self) -> bool:
        """Whether a row has no image that may be read, which a newly opened folder could have."""
        return any(not length for _, _, length in self.parts)

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Forget what was taken if an error ends the context."""
        count, end = len(self.names), self.copy.tell()
        try:
            yield
        except BaseException:
            for part in (self.names, self.parts, self.entries):
                del part[count:]
            self.copy.seek(end)
            self.copy.truncate()
            raise

    def take(self, table: str, block: Sequence[StoredImage], over: Callable[..., Iterable[Any]]) -> None:
        """Take the images of some rows of a file."""
        contents = [self._content(image) for image in block]
        self.entries += over(_described, contents)
        for image, content in zip(block, contents, strict=True):
            self.budget.count_file()
            number = self.names[-1][1] + 1 if self.names and self.names[-1][0] == table else 0
            self.names.append((table, number, image.name))
            self.parts.append(self._part(table, image, content))

    def _part(self, table: str, image: StoredImage, content: bytes | None) -> tuple[int, int, int]:
        if image.content is None and content is not None:
            return self._number(str(image.name)), 0, WHOLE
        if image.offset is not None:
            return self._number(table), image.offset, len(content or b"")
        offset = self.copy.tell()
        self.budget.count_bytes(len(content or b""))
        self.copy.write(content or b"")
        return COPY, offset, len(content or b"")

    def _number(self, file: str) -> int:
        return self.files.setdefault(file, len(self.files))

    def _content(self, image: StoredImage) -> bytes | None:
        """Return the content of an image; None if it is a file that may not be read; see `find_file`."""
        if image.content is not None or not image.name:
            return image.content
        path = find_file(image.name, self.root, self.opened)
        try:
            return None if path is None else path.read_bytes()
        except OSError:
            return None

    def unique_names(self) -> list[str]:
        """Return the names that the rows give if all differ, or else the files and the numbers of the rows.

        Of the path of a computer, the name has only the end.
        """
        given = [name for _, _, name in self.names if name and is_text(name)]
        if any(map(_leaves_folder, given)):
            ends = ([_end(name, parts) for name in given] for parts in MOST_PARTS)
            given = next((names for names in ends if len(set(names)) == len(given)), [])
        if len(set(given)) == len(self.names):
            return given
        return [f"{os.path.splitext(table)[0]}/{number}" for table, number, _ in self.names]


def _leaves_folder(name: str) -> bool:
    """Return whether a name is a path that does not begin at the folder."""
    path = PureWindowsPath(name)  # it knows the slashes of other systems too
    return bool(path.root or path.drive or ".." in path.parts)


def _end(name: str, parts: int) -> str:
    """Return the last parts of a path that leaves the folder; another path as it is."""
    path = PureWindowsPath(name)
    inner = [part for part in path.parts if part not in (path.anchor, "..")]
    return "/".join(inner[-parts:]) if _leaves_folder(name) else name


def _described(content: bytes | None) -> dict[str, Any]:
    if content is None:
        return unreadable(ValueError(
            "the row has no image, and names no file below this folder or one that you opened"))
    return describe_content(content)
