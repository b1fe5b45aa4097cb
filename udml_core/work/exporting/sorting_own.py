"""Which lists of an export are as it wrote them: what a user changed or put there is kept beside the new list."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from udml_core.base.errors import UserError, quoted
from udml_core.data.dataset import Dataset
from udml_core.data.given.log import append_to_log, read_log
from udml_core.work.exporting.safe_names import Names
from udml_core.work.exporting.sorting_plan import FIFTYONE, OF_PROGRAMS, PROGRAM_FILES
from udml_core.work.exporting.sorting_record import METADATA

TARGETS = "sorted"
"""Log of the folders that exports of a data set were written to, with the digests of their lists."""
TABLES = (METADATA, "images.parquet")
"""The tables beside the folders of the classes."""


def last_target(dataset: Dataset) -> str:
    """Return the folder of the last finished export of a data set; empty before the first."""
    folders = (row.get("folder") for row in reversed(read_log(dataset, TARGETS)))
    return next((folder for folder in folders if isinstance(folder, str)), "")


def note_lists(dataset: Dataset, folder: Path, contents: Mapping[str, bytes]) -> None:
    """Note a finished export and the lists that it wrote, by their paths below the folder."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    with suppress(UserError):  # the export itself needs no memory; a later one then keeps the lists beside new ones
        append_to_log(dataset, TARGETS, {"folder": str(folder), "lists": digests})


def are_updated(dataset: Dataset, folder: Path) -> bool:
    """Return whether lists for other programs are written again because an export wrote them, so that none grows old.
    """
    known = _digests(dataset, folder)
    return any(name in known and (folder / name).exists() for name in PROGRAM_FILES)


def changed_lists(dataset: Dataset, folder: Path, for_programs: bool) -> tuple[str, ...]:
    """Return the lists in a folder that an export would replace and that are not as an export wrote them.

    Raises:
        UserError: The folder of a list is a link to another folder.
    """
    if for_programs and (folder / FIFTYONE).is_symlink():
        raise UserError(f"{quoted(str(folder / FIFTYONE))} is a link to another folder, where an export never writes. "
                        "Remove the link, or leave out the lists for other programs.")
    known = _digests(dataset, folder)
    names = (*TABLES, *(PROGRAM_FILES if for_programs else ()))
    return tuple(name for name in names if (folder / name).is_file() and known.get(name) != _digest_of(folder / name))


def keep_changed(dataset: Dataset, folder: Path, for_programs: bool) -> None:
    """Copy each list that an export would replace, and that is not as an export wrote it, to a free name beside it."""
    for name in changed_lists(dataset, folder, for_programs):
        path = folder / name
        names = Names(entry.name for entry in path.parent.iterdir())
        shutil.copy2(path, path.with_name(names.give_file(f"{path.stem} kept{path.suffix}")))


def is_kept(name: str) -> bool:
    """Return whether an entry of an export's folder is a list of its user that an export has kept."""
    return any(name.startswith(f"{Path(own).stem} kept") for own in (*TABLES, *OF_PROGRAMS))


def _digests(dataset: Dataset, folder: Path) -> Mapping[str, str]:
    """Return the digests of the lists that the last export wrote to a folder; none if it is not known."""
    rows = (row.get("lists") for row in reversed(read_log(dataset, TARGETS)) if row.get("folder") == str(folder))
    lists = next(rows, None)
    return lists if isinstance(lists, dict) else {}


def _digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
