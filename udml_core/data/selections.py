"""Sets of images under short names, so that a link can carry any of them."""

from __future__ import annotations

import hashlib
import io
import re

import numpy as np

from udml_core.arrays import Array
from udml_core.errors import UserError
from udml_core.files import replace_bytes
from udml_core.paths import cache_folder

LISTED = 30
"""Up to so many images a name lists them itself; more are kept in a file under their digest."""


def keep(ids: Array) -> str:
    """A name for ascending image positions (m,): `3.17.44`, or `~` and a digest. Nothing selected has no name.

    Raises:
        UserError: the cache cannot be written.
    """
    if len(ids) <= LISTED:
        return ".".join(str(int(one)) for one in ids)
    content = io.BytesIO()
    np.save(content, np.asarray(ids, dtype=np.int64))
    digest = hashlib.sha1(content.getvalue(), usedforsecurity=False).hexdigest()[:16]
    path = cache_folder() / "selections" / f"{digest}.npy"
    if not path.exists():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_bytes(path, content.getvalue())
        except OSError as error:
            raise UserError(f"The selection could not be kept in {path.parent}: {error}. Free some space, or name "
                            "another folder with UDML_CACHE.") from error
    return f"~{digest}"


def recall(name: str, count: int) -> Array:
    """The image positions (m,) behind a name, ascending, each below `count`.

    Raises:
        UserError: no such selection is kept here, or it names images that the data set does not have.
    """
    if re.fullmatch(r"~[0-9a-f]{16}", name):
        path = cache_folder() / "selections" / f"{name[1:]}.npy"
        try:
            ids = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise UserError(f"This link names the selection {name}, which is not kept on this machine. "
                            "Ask its sender for the list of images, or select them anew.") from error
    elif re.fullmatch(r"\d{1,9}(\.\d{1,9})*", name):
        ids = np.array([int(part) for part in name.split(".")])
    else:
        raise UserError(f"A selection is a list like 3.17.44, and the link says '{name[:40]}'. Select anew.")
    if ids.ndim != 1 or ids.dtype.kind not in "iu" or (len(ids) and (ids.min() < 0 or ids.max() >= count)):
        raise UserError(f"The selection in this link names images that this data set does not have: it has {count}. "
                        "Was the link made for another data set?")
    return np.unique(ids.astype(np.int64))
