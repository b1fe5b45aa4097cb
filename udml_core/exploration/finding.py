"""Find an image of a data set by what a user remembers of it."""

from __future__ import annotations

import numpy as np

from udml_core.data.dataset import Dataset


def find_image(dataset: Dataset, text: str) -> int | None:
    """Return the first image with a number, file name or class.

    The number counts first, then a whole name or class, then a part of one. Case does not matter.

    Args:
        dataset: The data set.
        text: Number, file name, class, or a part of these names.

    Returns:
        Data set index; None if nothing matches.
    """
    wanted = text.strip().casefold()
    if wanted.isdecimal() and int(wanted) < len(dataset):
        return int(wanted)
    if not wanted:
        return None
    names = [name.casefold() for name in dataset.names]
    classes = [] if dataset.labels is None else [name.casefold() for name in dataset.class_names]
    for position, name in enumerate(names):
        if wanted in (name, name.rsplit("/", 1)[-1]):
            return position
    label = next((at for at, name in enumerate(classes) if name == wanted), None)
    if label is None:
        within = next((at for at, name in enumerate(names) if wanted in name), None)
        if within is not None:
            return within
        label = next((at for at, name in enumerate(classes) if wanted in name), None)
    if label is None or dataset.labels is None:
        return None
    rows = np.flatnonzero(dataset.labels == label)
    return int(rows[0]) if len(rows) else None
