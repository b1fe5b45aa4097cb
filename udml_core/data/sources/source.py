"""What the catalog knows of a data set before it is loaded."""

from __future__ import annotations

from abc import ABC, abstractmethod

from udml_core.data.dataset import Dataset, Report


class Source(ABC):
    """A data set by name.

    images, classes: known sizes, or None until the data set is opened.
    """

    name: str
    title: str
    summary: str
    images: int | None
    classes: int | None

    @abstractmethod
    def missing(self) -> str | None:
        """What is needed and how to get it, or None where the data set can be loaded."""

    def signature(self) -> str:
        """A text that changes when what would be loaded does, found without reading it; always the same here."""
        return ""

    @abstractmethod
    def load(self, report: Report) -> Dataset:
        """Load it.

        Raises:
            UserError: it is not there or cannot be read.
        """
