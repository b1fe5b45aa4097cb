"""Images that a command acts on, by name or from a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from udml_core.base.errors import counted, quoted

if TYPE_CHECKING:
    from udml_core.data.dataset import Dataset


def listed_images(dataset: Dataset, names: Sequence[str], file: Path | None) -> list[int]:
    """Return the indices of images with names, and of those in the column image of a CSV file.

    Raises:
        UserError: A name is not that of an image, or the file names none.
    """
    from udml_core.data.given.exclusions import find_names, read_list

    listed = find_names(names, dataset)
    if file is not None:
        read = read_list(file, dataset)
        listed += read.images.tolist()
        if read.unknown:
            typer.echo(f"{counted(len(read.unknown), 'name')} in {file} "
                       f"{'is no image' if len(read.unknown) == 1 else 'are no images'} of {dataset.title}, such as "
                       f"{quoted(read.unknown[0])}", err=True)
    return listed
