"""A data set before it is loaded."""

from __future__ import annotations

from abc import ABC, abstractmethod

from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset, Report


class Source(ABC):
    """A data set that the catalog can load.

    Attributes:
        name: Name in commands and stored runs.
        title: Name in the app.
        summary: A short description for the app.
        images: Number of images; None if unknown before loading.
        classes: Number of classes; None if unknown before loading.
    """

    name: str
    title: str
    summary: str
    images: int | None
    classes: int | None

    @abstractmethod
    def missing(self) -> str | None:
        """Return which files are missing and how to get them; None if none is missing."""

    def check(self) -> None:
        """Check that no file is missing.

        Raises:
            UserError: Files are missing; the message says how to get them.
        """
        problem = self.missing()
        if problem:
            raise UserError(problem)

    def signature(self) -> str:
        """Return a text that changes with the files, without reading them.

        It is constant for fixed data sets.
        """
        return ""

    def version(self, fingerprint: str, now: Dataset) -> Dataset | None:
        """Return an earlier state of the data set, whose images are read where they are now.

        Args:
            fingerprint: Fingerprint of the state.
            now: The present state of the data set.

        Returns:
            The state; None if it is unknown, or too many of its images are gone.
        """
        return None

    def classes_column(self) -> str | None:
        """Return the column of a table that names the classes; None if there is none.

        Raises:
            UserError: The table is damaged.
        """
        return None

    @abstractmethod
    def load(self, report: Report) -> Dataset:
        """Load the data set.

        Raises:
            UserError: The files are missing or cannot be read.
        """
