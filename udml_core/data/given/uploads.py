"""Lists and tables that users upload about a data set, read by bounded calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from PIL import Image

from udml_core.base import bounded
from udml_core.data.dataset import Dataset

Read = TypeVar("Read")


@dataclass(frozen=True)
class _NoImages:
    """Stands for images that nothing looks at.

    Attributes:
        count: Number of images.
    """

    count: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Image.Image:
        raise IndexError(index)


def parse_upload(parse: Callable[[bytes, str, Dataset], Read], content: bytes, name: str, dataset: Dataset) -> Read:
    """Read an uploaded file about the images of a data set.

    Args:
        parse: Reads the content of a file, given its name for messages and the data set.
        content: The file's content.
        name: The file's name.
        dataset: The data set, of which `parse` needs no pixels, vectors and columns.

    Raises:
        UserError: The file cannot be read, or needs too much memory.
    """
    plain = replace(dataset, images=_NoImages(len(dataset)), vectors=None, columns={})
    return bounded.call(name, parse, content, name, plain)
