"""What to do where a folder of the app cannot be written: it is read-only, belongs to another user, or is full."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from udml_core.base.errors import UserError
from udml_core.base.paths import cache_folder, given_folder, runs_folder

FULL = (errno.ENOSPC, errno.EDQUOT)
REASONS = {errno.EROFS: "it is read-only", errno.EACCES: "this user may not write in it",
           errno.EPERM: "this user may not write in it", errno.ENOSPC: "the disk is full",
           errno.EDQUOT: "this user has no space left on the disk"}
LONGEST = 60
"""Letters of a name that is too long in a message."""


def storage_problem(error: OSError) -> UserError | None:
    """Return what a user can do about a name that is too long or a folder of the app; None if it is another error."""
    if error.errno == errno.ENAMETOOLONG:
        name = os.fsdecode(error.filename or "")[-LONGEST:]
        return UserError(f"The name …{name} is too long for a file. Choose a shorter one.")
    reason = REASONS.get(error.errno or 0)
    if reason is None or not isinstance(error.filename, str | bytes | Path):
        return None
    path = Path(os.path.abspath(os.fsdecode(error.filename)))
    folders = {"The folder of runs": (runs_folder(), "UDML_RUNS"), "The cache": (cache_folder(), "UDML_CACHE"),
               "The folder of labels and imported images": (given_folder(), "UDML_CACHE")}
    for words, (folder, variable) in folders.items():
        # Imported images can lie deep below, and where a folder is missing, it is its parent that refuses.
        if path.is_relative_to(os.path.abspath(folder)) or Path(os.path.abspath(folder)).is_relative_to(path):
            fix = "Free some space" if error.errno in FULL else "Make it writable for the user who runs the app"
            place = "" if path == Path(os.path.abspath(folder)) else f" (at {path})"
            return UserError(f"{words}, {folder}, cannot be written, because {reason}{place}. {fix}, or set {variable} "
                             "to another folder and start again.")
    return None
