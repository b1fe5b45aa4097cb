"""Selections of images under short names that fit into a link."""

from __future__ import annotations

import hashlib
import io
import re

import numpy as np

from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import UserError
from udml_core.base.files import read_array, replace_bytes
from udml_core.base.paths import cache_folder

LISTED = 30
"""Largest selection whose name lists its images; larger selections are stored in a file named by digest."""


def store_selection(ids: Integers) -> str:
    """Return a name of a selection and store the selection if it is large.

    Args:
        ids: Ascending indices (m,) of the images.

    Returns:
        The indices as `3.17.44`, or `~` and a digest; empty for an empty selection.

    Raises:
        UserError: The cache cannot be written.
    """
    if len(ids) <= LISTED:
        return ".".join(str(int(index)) for index in ids)
    content = io.BytesIO()
    np.save(content, np.asarray(ids, dtype=np.int64))
    digest = hashlib.sha1(content.getvalue(), usedforsecurity=False).hexdigest()[:16]
    path = cache_folder() / "selections" / f"{digest}.npy"
    try:
        if not path.is_file() or path.read_bytes() != content.getvalue():  # a damaged file is replaced
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_bytes(path, content.getvalue())
    except OSError as error:
        raise UserError(f"The selection could not be stored in {path}: {error}. Free some space, or set UDML_CACHE to "
                        "another folder.") from error
    return f"~{digest}"


def load_selection(name: str, count: int) -> Array:
    """Return the selection that a name stands for.

    Args:
        name: A name returned by `store_selection`.
        count: Number of images in the data set.

    Returns:
        Ascending indices (m,) int64.

    Raises:
        UserError: The name is not valid, the selection is not stored on this machine, or an index is out of range.
    """
    if re.fullmatch(r"~[0-9a-f]{16}", name):
        path = cache_folder() / "selections" / f"{name[1:]}.npy"
        if not path.exists():
            raise UserError(f"This link refers to the selection {name}, which is not stored on this machine. "
                            "Ask the sender for the list of images, or select the images again.")
        try:
            ids = read_array(path)
        except UserError as error:
            raise UserError(f"The selection {name} of this link is stored in {path}, which could not be read. Select "
                            "the images again.") from error
    elif re.fullmatch(r"\d{1,9}(\.\d{1,9})*", name):
        ids = np.array([int(part) for part in name.split(".")])
    else:
        raise UserError(f"A selection must be a list of image numbers such as 3.17.44, got '{name[:40]}'. "
                        "Select the images again.")
    if ids.ndim != 1 or ids.dtype.kind not in "iu" or (len(ids) and (ids.min() < 0 or ids.max() >= count)):
        raise UserError(f"The selection in this link must contain image numbers from 0 to {count - 1}. The link was "
                        "probably made for another data set: open it there, or select the images again.")
    return np.unique(ids.astype(np.int64))
