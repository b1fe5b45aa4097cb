"""What folders with tables of images share: the columns of labels and halves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from udml_core.base.errors import UserError, first_of, quoted
from udml_core.data.dataset import skipped_words
from udml_core.data.sources.listed import Listing
from udml_core.data.sources.located import Located
from udml_core.data.sources.table_files import find_column

LABEL_COLUMNS = ("label", "class", "label_name", "class_name")
"""Columns of labels, the first that exists is the default."""
SPLIT_COLUMNS = ("split",)


class TableFolder(Located):
    """Images whose labels, halves and other columns are in tables.

    Attributes:
        label: Name of the column of the labels; None for the first of `usual_labels` that exists.
        usual_labels: Usual names of that column.
        tables: The files of the tables, relative to the folder.
    """

    tables: list[str]
    usual_labels: ClassVar[Sequence[str]] = LABEL_COLUMNS

    def __init__(self, path: Path, name: str | None = None, title: str | None = None, label: str | None = None) -> None:
        super().__init__(path, name, title)
        self.label = label
        if label is not None:
            self.name += f"#label={label}"
            self.title += f" (label {label})"

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """Names of the columns, without the images.

        Raises:
            UserError: A table is damaged.
        """

    @property
    @abstractmethod
    def listing(self) -> Listing:
        """The rows of the tables, without decoding images.

        Raises:
            UserError: A table is damaged, or has no such column of labels.
        """

    @property
    def images(self) -> int | None:  # type: ignore[override]
        return self._count(lambda listing: len(listing.files))

    @property
    def classes(self) -> int | None:  # type: ignore[override]
        return self._count(lambda listing: len(listing.class_names)) or None

    def _count(self, count: Callable[[Listing], int]) -> int | None:
        try:
            return None if self.missing() else count(self.listing)
        except UserError:
            return None

    def describe(self) -> str:
        listing = self.listing
        classes = f"in {len(listing.class_names):,} classes" if listing.class_names else "without classes"
        columns = f" Other columns: {first_of(self.other_columns)}." if self.other_columns else ""
        words = f" {unused}" if (unused := self.unused_split) else ""
        more = f" and {len(self.tables) - 1:,} more" if len(self.tables) > 1 else ""
        missing = skipped_words(len(listing.files), [file for file in listing.left_out if file.kind == "missing"])
        words += f" {missing}." if missing else ""
        return f"{len(listing.files):,} images {classes}, from {self.tables[0]}{more}.{columns}{words}"

    @property
    def unused_split(self) -> str:
        """That the column of the halves is not used, in a sentence; empty if it is, or if there is none."""
        split, listing = self.split_column, self.listing
        if not split or listing.in_test is not None or listing.training_classes is not None:
            return ""
        return f"The column {split} does not say train and test for the images, so it is not used."

    def _absent(self) -> str | None:
        return None if self.tables else f"{self.path} has no table of images. Expected: {self.expected}."

    @property
    def split_column(self) -> str | None:
        """The column of the halves; None if there is none."""
        return find_column(self.columns, SPLIT_COLUMNS)

    @cached_property
    def label_column(self) -> str | None:
        """The column of the labels; None if there is none."""
        if self.label is None:
            return find_column(self.columns, self.usual_labels) or self._typed_label()
        if self.label not in self.columns:
            raise UserError(f"{self.path / self.tables[0]} has no column {quoted(self.label)} for labels. Its columns: "
                            f"{first_of(self.columns)}.")
        return self.label

    def classes_column(self) -> str | None:
        return self.label_column

    def _typed_label(self) -> str | None:
        """Return the only column that a file declares to be classes; None if there is none, or several."""
        return None

    @property
    def label_columns(self) -> list[str]:
        """The columns that can have the labels."""
        return [name for name in self.columns if name != self.split_column]

    @property
    def other_columns(self) -> list[str]:
        """The columns besides labels and halves."""
        return [name for name in self.label_columns if name != self.label_column]
