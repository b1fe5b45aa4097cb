"""What the official layouts share: detection, messages, and readers of lists and MATLAB files."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from udml_core.base import bounded
from udml_core.base.arrays import Array
from udml_core.base.errors import UserError, quoted
from udml_core.base.files import check_regular, read_regular
from udml_core.base.paths import may_read
from udml_core.data.dataset import Dataset, Report
from udml_core.data.sources.listed import Listing, load_listing
from udml_core.data.sources.located import Located

LONGEST_LIST = 2**28
"""Largest length of a list in bytes."""


class OfficialLayout(Located):
    """A data set in the files of its authors.

    Attributes:
        official_name: Name of the data set in the literature.
        published: Numbers of images and classes that the authors publish; None if many data sets have the layout.
        advice: Where to get the files.
        needed: Files and folders without which the data set cannot be read; `a|b` needs one of both.
        options: Values of the options that a name can have after `#`.
        default: The option that a data set has without a choice; None if it has none then.
    """

    is_benchmark = True
    official_name: ClassVar[str]
    published: tuple[int, int] | None
    advice: ClassVar[str]
    needed: tuple[str, ...]
    options: ClassVar[Mapping[str, Sequence[str]]] = {}
    default: ClassVar[tuple[str, str] | None] = None

    def __init__(self, path: Path, name: str | None = None, option: tuple[str, str] | None = None) -> None:
        super().__init__(path, name)
        self.title += f" ({self.official_name} layout)"
        self.option = option
        if option is not None:
            key, value = option
            if value not in self.options.get(key, ()):
                usable = [f"#{known}={choice}" for known, choices in self.options.items() for choice in choices]
                raise UserError(f"{self.official_name} in {self.path} has {' and '.join(usable) or 'no options'}, got "
                                f"{quoted(f'#{key}={value}')}.")
            self.name += f"#{key}={value}"
            self.title += f" ({key} {value})"
        self.summary = f"{self.official_name} in the files of its authors, from {self.path}"

    @classmethod
    @abstractmethod
    def matches(cls, path: Path) -> bool:
        """Return whether a folder looks like this data set, without reading images."""

    @abstractmethod
    def counts(self) -> tuple[int, int]:
        """Return the numbers of images and classes in the files.

        Raises:
            UserError: The files are damaged.
        """

    @property
    def images(self) -> int | None:  # type: ignore[override]
        return self._count(0)

    @property
    def classes(self) -> int | None:  # type: ignore[override]
        return self._count(1) or None

    def _count(self, position: int) -> int | None:
        try:
            return None if self.missing() else self.counts()[position]
        except UserError:
            return None

    def halves(self) -> tuple[int, int] | None:
        """Return the numbers of images in the official training and test half; None without a division of images.

        Raises:
            UserError: The files are damaged.
        """
        return None

    def effects(self) -> dict[tuple[str, str], str]:
        """Return what each option, other than the default, does with the files that are there."""
        return {}

    def choices(self) -> tuple[str, list[str], str]:
        """Return the key of the options, the values that the files allow, and the default; empty without options."""
        effects = self.effects()
        if not effects:
            return "", [], ""
        ((key, values),) = self.options.items()
        usual = self.default[1] if self.default else ""
        return key, [value for value in values if value == usual or (key, value) in effects], usual

    def describe(self) -> str:
        """Return the numbers in the files, whether they are the published numbers, and what the options do."""
        counts, halves = self.counts(), self.halves()
        published = ""
        if self.published is not None:
            published = " (as published)" if counts == self.published else f" (published: {_words(self.published)})"
        division = "" if halves is None else (f" Official division: {halves[0]:,} training and {halves[1]:,} test "
                                              "images.")
        return f"{self.official_name}: {_words(counts)}{published}.{division}{self._describe_options()}"

    def _describe_options(self) -> str:
        """Return a sentence about the options; nothing if there are none, or if one is chosen."""
        if self.option not in (None, self.default):
            return ""
        effects = [f"#{key}={value} ({effect})" for (key, value), effect in self.effects().items()]
        return f" Add {' or '.join(effects)} to the name." if effects else ""

    def _absent(self) -> str | None:
        for choices in self.needed:
            files = [self.path / choice for choice in choices.split("|")]
            if not any(os.path.exists(file) and may_read(file) for file in files):  # Path.exists can raise
                return str(self.damaged(f"{choices.replace('|', ' or ')} is missing"))
        return None

    def damaged(self, problem: str) -> UserError:
        """Return an error that says what was expected where, and where to get the files."""
        return UserError(f"{self.path} looks like {self.official_name}, but {problem}. Expected: {self.expected}. "
                         f"{self.advice} To open it as a plain folder of images, add #level=1 to its name.")

    def file(self, file: str) -> Path:
        """Return the path of a file that may be read.

        Raises:
            OSError: It is no regular file, or leads out of the folders that an exposed server reads.
        """
        path = self.path / file
        check_regular(path)
        if not may_read(path):
            raise OSError("this server does not read the file that it links to")
        return path

    def read_lines(self, file: str) -> list[str]:
        """Read the lines of a text file that are not empty."""
        try:
            text = read_regular(self.file(file), LONGEST_LIST).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise self.damaged(f"{file} could not be read: {error}") from error
        return [line for line in map(str.strip, text.splitlines()) if line]

    def read_rows(self, file: str, columns: str, header: int = 0) -> list[list[str]]:
        """Read a table whose columns are separated by spaces.

        Args:
            file: Path relative to the folder.
            columns: Names of the columns; the last column may contain spaces.
            header: Number of first lines to skip.
        """
        width = len(columns.split())
        rows = []
        for number, line in enumerate(self.read_lines(file)[header:], start=header + 1):
            row = line.split(maxsplit=width - 1)
            if len(row) != width:
                raise self.damaged(f"line {number} of {file} must have the columns '{columns}', got {quoted(line)}")
            rows.append(row)
        return rows

    def read_by_id(self, file: str, columns: str) -> dict[str, str]:
        """Read a table of two columns as {first: second}."""
        rows = self.read_rows(file, columns)
        table = dict(rows)
        if len(table) < len(rows):
            twice = next(first for first, count in Counter(first for first, _ in rows).items() if count > 1)
            raise self.damaged(f"{file} has two lines for {quoted(twice)}")
        return table

    def look_up(self, table: Mapping[str, str], ids: Iterable[str], file: str) -> list[str]:
        """Return the value of each id in a table that was read from a file."""
        try:
            return [table[number] for number in ids]
        except KeyError as error:
            raise self.damaged(f"{file} has no line for {error.args[0]}") from error

    def to_number(self, text: str, file: str) -> int:
        """Convert a number in a list, such as an id."""
        try:
            return int(text)
        except ValueError as error:
            raise self.damaged(f"{file} must contain whole numbers, got {quoted(text)}") from error

    def read_matlab(self, file: str, variable: str) -> Array:
        """Read a variable of a MATLAB file."""
        from scipy.io import loadmat

        try:
            content: dict[str, Any] = loadmat(self.file(file), squeeze_me=True, variable_names=[variable])
        except Exception as error:  # a damaged file can raise any exception
            raise self.damaged(f"{file} could not be read: {error}") from error
        if variable not in content:
            raise self.damaged(f"{file} has no variable '{variable}'")
        return content[variable]


def _words(counts: tuple[int, int]) -> str:
    return f"{counts[0]:,} images" + (f" in {counts[1]:,} classes" if counts[1] else " without classes")


class ListedLayout(OfficialLayout):
    """A layout of image files with lists of them."""

    @abstractmethod
    def read(self) -> Listing:
        """Read the lists.

        Raises:
            UserError: A list is missing or damaged.
        """

    @cached_property
    def listing(self) -> Listing:
        """The lists, read at first use."""
        return bounded.call(self.official_name, self.read)

    def counts(self) -> tuple[int, int]:
        return len(self.listing.files), len(self.listing.class_names)

    def halves(self) -> tuple[int, int] | None:
        in_test = self.listing.in_test
        return None if in_test is None else (len(in_test) - sum(in_test), sum(in_test))

    def _watched(self) -> Iterable[str]:
        lists = (choice for choices in self.needed for choice in choices.split("|"))
        return (*(file for file in (*lists, "bounding_boxes.txt") if os.path.isfile(self.path / file)),
                *self.listing.files)

    def load(self, report: Report) -> Dataset:
        self.check()
        return load_listing(self, self.listing, report, f"reading {self.official_name}")
