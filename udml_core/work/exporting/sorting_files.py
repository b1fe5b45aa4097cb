"""Write a plan of sorted images: copies or links first, then the lists."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from udml_core.base.errors import UserError, quoted
from udml_core.data.dataset import Dataset, FileImages, Report
from udml_core.work.exporting.sorting import earlier_items
from udml_core.work.exporting.sorting_former import linked_into, why_kept
from udml_core.work.exporting.sorting_lists import write_lists
from udml_core.work.exporting.sorting_plan import Plan
from udml_core.work.exporting.sorting_record import EARLIER, UNFINISHED, write_list

PART = ".part"
"""Ending of a file in progress."""
SPARE = 100_000_000
"""Bytes that copies leave free on a disk."""


def write_plan(plan: Plan, report: Report | None = None) -> list[Path]:
    """Write the folders and the lists of a plan.

    Args:
        plan: The plan.
        report: Receives the progress; an exception that it raises interrupts the export, whose list stays.

    Returns:
        The written lists.

    Raises:
        UserError: The folder has changed since the plan, or cannot be written.
    """
    try:
        if not plan.continues:
            earlier_items(plan.dataset, plan.target)  # nothing may have come in between
            _check_space(plan)
            plan.target.mkdir(parents=True, exist_ok=True)
        _list_earlier(plan)
        if plan.items:
            write_list(plan.target / UNFINISHED, plan.items, plan.how)
        if plan.how != "list":
            _write_images(plan, report)
        _remove_former(plan)
        written = write_lists(plan)
        _list_earlier(plan)
        (plan.target / UNFINISHED).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"The export to {quoted(str(plan.target))} was interrupted: {error}. The same export "
                        f"continues with its list, {UNFINISHED}.") from error
    return written


def _check_space(plan: Plan) -> None:
    """Check that copies fit on the disk.

    Raises:
        UserError: They do not.
    """
    if plan.how != "copies" or not isinstance(plan.dataset.images, FileImages):
        return
    place = next(parent for parent in (plan.target, *plan.target.parents) if parent.exists())
    needed = sum(_source(plan.dataset, index).stat().st_size for index in _indices(plan, plan.there).values())
    free = shutil.disk_usage(place).free
    if needed + SPARE > free:
        raise UserError(f"The copies need {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free in "
                        f"{quoted(str(place))}. Choose another folder, or write links or a list.")


def _indices(plan: Plan, without: frozenset[str] = frozenset()) -> dict[str, int]:
    names = {item.image for item in plan.items if item.file not in without}
    return plan.dataset.indices_by_name(names)


def _source(dataset: Dataset, index: int) -> Path:
    assert isinstance(dataset.images, FileImages)
    return dataset.images.source(index)


def _write_images(plan: Plan, report: Report | None) -> None:
    """Write every image that an earlier attempt has not written."""
    indices = _indices(plan)
    for number, item in enumerate(plan.items):
        path = plan.target / item.file
        if item.file in plan.there:
            continue  # as the user may have changed it
        if os.path.lexists(path):
            _check_whole(plan, indices[item.image], path)
        else:
            path.parent.mkdir(exist_ok=True)
            if path.parent.is_symlink():
                raise UserError(f"{quoted(str(path.parent))} is a link to another folder, where an export never "
                                "writes. Remove the link, and repeat the export.")
            _write_image(plan, indices[item.image], path)
        if report is not None:
            report((number + 1) / len(plan.items), f"writing {plan.how}")
    if hasattr(os, "sync"):
        os.sync()  # once: waiting for the disk after each image took nine tenths of the time


def _check_whole(plan: Plan, index: int, path: Path) -> None:
    """Check that a file which an earlier attempt wrote is whole: a power cut can leave empty files.

    Raises:
        UserError: It is not; it is never replaced, because it may be the user's.
    """
    if plan.how == "copies" and isinstance(plan.dataset.images, FileImages) \
            and path.stat().st_size != _source(plan.dataset, index).stat().st_size:
        raise UserError(f"{quoted(str(path))} exists and differs from the image that belongs there. Move it away, and "
                        "repeat the export.")


def _write_image(plan: Plan, index: int, path: Path) -> None:
    """Write an image aside and rename it, so that a file that exists is whole."""
    aside = path.with_name(f".{path.name}"[:200] + PART)
    aside.unlink(missing_ok=True)
    is_file = isinstance(plan.dataset.images, FileImages)
    if is_file and not _source(plan.dataset, index).exists():
        raise UserError(f"{quoted(plan.dataset.names[index])} is gone from the folder of the images. Put it back, and "
                        "repeat the export, or begin one in another folder.")
    if plan.how == "links":
        if not is_file:
            raise UserError(f"The images of {plan.dataset.title} are no files, so there is nothing to link to. Write "
                            "copies or a list.")
        aside.symlink_to(_source(plan.dataset, index).resolve())
        aside.rename(path)
        return
    if is_file:
        shutil.copy2(_source(plan.dataset, index), aside)
    else:
        plan.dataset.images[index].save(aside, "PNG")
    aside.rename(path)


def _remove_former(plan: Plan) -> None:
    """Remove files of earlier exports that the plan lists, unless something has changed since, and empty folders."""
    folders, linked = set(), linked_into(plan.dataset, plan.target) if plan.removed else frozenset()
    for former in plan.removed:
        path = plan.target / former.item.file
        if os.path.lexists(path) and not why_kept(plan.dataset, plan.target, former.item, linked):
            path.unlink()
            folders.add(path.parent)
    for folder in folders:
        with suppress(OSError):  # it holds other files
            folder.rmdir()


def _list_earlier(plan: Plan) -> None:
    """Keep a list of the files that exports have written and that the table of images does not list."""
    listed = [former.item for former in plan.earlier]
    if plan.how == "list":  # its table lists the user's own files
        listed += [item for item in plan.items if item.file in plan.there or plan.continues]
    listed = [item for item in listed if os.path.lexists(plan.target / item.file)]
    if listed:
        write_list(plan.target / EARLIER, listed, plan.how)
    else:
        (plan.target / EARLIER).unlink(missing_ok=True)
