"""Named images as folders: a plan first, then copies, links or a list. No file of the user is moved or deleted.

An export that is interrupted leaves its list, `unfinished.csv`. The same export continues with this list, even if
labels have changed since. `sorting_files` writes a plan.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from udml_core.base.arrays import Booleans, Integers
from udml_core.base.errors import UserError, quoted
from udml_core.data.dataset import Dataset, FileImages
from udml_core.data.given.exclusions import excluded_names
from udml_core.data.given.following import moved_names
from udml_core.runs.search.naming import NamedImages
from udml_core.work.exporting.safe_names import Names
from udml_core.work.exporting.sorting_former import former_files
from udml_core.work.exporting.sorting_own import TABLES, are_updated, changed_lists, is_kept
from udml_core.work.exporting.sorting_plan import HOWS, OF_PROGRAMS, How, Item, Plan
from udml_core.work.exporting.sorting_record import EARLIER, METADATA, UNFINISHED, is_inside, read_table

UNNAMED, ALL = "unnamed", "images"
"""Folder of images without a name, if they are exported too; and of all images, if none has a name."""
BEGIN = 65_536
"""Bytes of a file that are compared, beside its size."""
LISTS = (*TABLES, EARLIER, *OF_PROGRAMS)
"""Files and folders of lists beside the folders of the classes."""


def plan_sorting(named: NamedImages, target: Path | str, how: How = "copies", with_unnamed: bool = False,
                 for_programs: bool = True, prunes: bool = False) -> Plan:
    """Plan an export of named images as folders; nothing is written.

    Args:
        named: The names.
        target: A new or empty folder, the folder of an interrupted export, whose list is continued, or the folder of
            an earlier export of these images, to which images are added.
        how: Copies, symbolic links, or a list alone.
        with_unnamed: Whether images without a name get a folder, too.
        for_programs: Whether files that FiftyOne and Label Studio import are written, too.
        prunes: Whether files of earlier exports that do not belong to this one are removed, if nothing is lost.

    Raises:
        UserError: The folder holds other files, or there is no image to write.
    """
    folder = Path(os.path.abspath(Path(target).expanduser()))
    if how not in HOWS:
        raise UserError(f"An export writes {', '.join(HOWS)}; got {quoted(str(how))}.")
    for_programs = for_programs or are_updated(named.dataset, folder)
    changed = changed_lists(named.dataset, folder, for_programs)
    if (folder / UNFINISHED).exists():
        continued = _continued(named.dataset, folder, how, prunes)
        return replace(continued, for_programs=for_programs, changed=changed)
    earlier = earlier_items(named.dataset, folder)
    is_missing = ~named.left_out & _are_missing(named.dataset, named.images.tolist())
    items = tuple(_items(named, np.flatnonzero(~named.left_out & ~is_missing), with_unnamed, folder, earlier))
    former = tuple(former_files(named.dataset, folder, earlier, items, prunes))
    if not items and not (prunes and former):
        raise UserError(_why_nothing(named, bool(former)))
    excluded, missing = len(excluded_names(named.dataset)), int(is_missing.sum())  # also images that no run has seen
    there = frozenset(item.file for item in items) & {item.file for item in earlier}
    return Plan(named.dataset, folder, how, items, len(named.dataset) - len(items) - excluded - missing, excluded,
                missing, there=there, other_kind=_other_kind(folder, there, how),
                differing=tuple(_differing(named.dataset, folder, items, there)), for_programs=for_programs,
                changed=changed, earlier=former, prunes=prunes)


def _why_nothing(named: NamedImages, has_former: bool) -> str:
    """Return why there is nothing to write, and what to do."""
    is_hidden = bool(excluded_names(named.dataset)) or (named.codes >= 0).any()
    who = "No image that is there and not excluded has a name" if is_hidden else "No image has a name"
    remove = " To remove files of the earlier export, choose that (--prune)." if has_former else ""
    return (f"{who}, so there is no folder to write. Name groups on the page Label or with `udml groups`, accept names "
            f"from a lower certainty, or write images without a name, too.{remove}")


def _other_kind(folder: Path, files: Iterable[str], how: How) -> int:
    """Count files that are links although an export writes copies, or the other way around."""
    paths = [folder / file for file in files] if how != "list" else []
    return sum(path.is_symlink() == (how == "copies") for path in paths if os.path.lexists(path))


def _differing(dataset: Dataset, folder: Path, items: Iterable[Item], there: Collection[str]) -> Iterator[str]:
    """Yield the files there whose size or beginning is not that of the image that they stand for."""
    images = dataset.images
    if not isinstance(images, FileImages):
        return
    written = [item for item in items if item.file in there]
    index_of = dataset.indices_by_name({item.image for item in written})
    for item in written:
        path, image = folder / item.file, images.source(index_of[item.image])
        if not path.exists() or path.stat().st_size != image.stat().st_size or _begin(path) != _begin(image):
            yield item.file


def _begin(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(BEGIN)


def _are_missing(dataset: Dataset, indices: Sequence[int]) -> Booleans:
    """Return whether the file of each image (n,) is gone."""
    images = dataset.images
    if not isinstance(images, FileImages):
        return np.zeros(len(indices), bool)
    return np.array([not images.source(index).exists() for index in indices], bool)


def check_outside(dataset: Dataset, folder: Path) -> None:
    """Check that a folder is outside the user's images.

    Raises:
        UserError: It is not.
    """
    if isinstance(dataset.images, FileImages):
        root = Path(os.path.realpath(dataset.images.root))
        if Path(os.path.realpath(folder)).is_relative_to(root):
            raise UserError(f"{quoted(str(folder))} lies in the folder of the images, where an export would become "
                            "part of the data set. Choose a folder outside it.")


def earlier_items(dataset: Dataset, folder: Path) -> tuple[Item, ...]:
    """Return the images that an earlier export of a data set has written to a folder; none if it is new or empty.

    Raises:
        UserError: It holds other files, or lies among the user's images.
    """
    check_outside(dataset, folder)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"An export needs a folder, and {quoted(str(folder))} is a file. Choose another folder.")
    entries = sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []
    listed = _listed(dataset, folder)
    written = _written(folder, listed or ())
    foreign = [name for name in entries if not (name in LISTS or is_kept(name)) or listed is None]
    if foreign and not written:
        raise UserError(f"An export needs a new or empty folder, or an earlier export of the same images, and "
                        f"{quoted(str(folder))} contains {quoted(foreign[0])}. Choose another folder.")
    return written


def _listed(dataset: Dataset, folder: Path) -> tuple[Item, ...] | None:
    """Return the images in the tables of earlier exports by their present names; None without a table of this data set.

    Raises:
        UserError: A table cannot be read.
    """
    items: list[Item] = []
    is_new = not os.path.lexists(folder / METADATA)
    for table, columns in ((EARLIER, ("file", "class")), (METADATA, ("file_name", "label"))):
        if os.path.lexists(folder / table):
            items += read_table(folder / table, "an earlier export", *columns)[1]
    moved = moved_names(dataset, {item.image for item in items})
    items = [replace(item, image=moved[item.image]) if item.image in moved and (folder / item.file).exists() else item
             for item in items]
    is_other = bool(items) and not dataset.indices_by_name({item.image for item in items})
    return None if is_other or (is_new and not items) else tuple(items)


def _written(folder: Path, items: Iterable[Item]) -> tuple[Item, ...]:
    """Return the images whose file is in the folder; the last of a file."""
    last = {item.file: item for item in items}
    return tuple(item for item in last.values() if is_inside(item.file) and os.path.lexists(folder / item.file))


def _items(named: NamedImages, rows: Integers, with_unnamed: bool, target: Path, earlier: Sequence[Item]
           ) -> Iterator[Item]:
    """Yield the images of some rows, each with a path that stays below the target.

    An image that an earlier export has written with the same class keeps its path; no other file is in the way.
    """
    path_of = {(item.image, item.label): item.file for item in earlier}
    folder_of = {item.label: item.file.partition("/")[0] for item in earlier if item.label}
    folders = Names((UNNAMED, UNFINISHED, *LISTS, *folder_of.values()))
    folder_of |= {name: folders.give(name) for name in named.classes if name not in folder_of}
    rest = UNNAMED if folder_of else ALL
    files = {folder: Names(entry.name for entry in (target / folder).iterdir()) if (target / folder).is_dir() else
             Names() for folder in (*folder_of.values(), rest)}
    certainty, is_labeled = named.naming.named[1].copy(), named.codes >= 0
    guessed = np.flatnonzero(is_labeled & ~named.seen)
    certainty[guessed] = named.naming.certainty_without_own(guessed, named.codes[guessed])
    for row in rows.tolist():
        image, label = int(named.images[row]), named.class_of(row)
        if label or with_unnamed:
            folder, name = folder_of.get(label, rest), named.dataset.names[image]
            path = path_of.get((name, label)) or (folder + "/" + files[folder].give_file(
                name if isinstance(named.dataset.images, FileImages) else f"{name}.png"))
            yield Item(name, path, label, float(certainty[row]) if label else 0.0,
                       bool(is_labeled[row] and named.seen[row]))


def _continued(dataset: Dataset, folder: Path, how: How, prunes: bool) -> Plan:
    """Return the plan in the list of an interrupted export, whose other images are written as it is chosen now.

    Raises:
        UserError: The list is damaged, is of other images, lies among the images, names a path outside the folder, or
            lists no image that is still to be written.
    """
    check_outside(dataset, folder)
    path = folder / UNFINISHED
    begun, items = read_table(path, "an interrupted export", "file", "class")
    if begun is None:
        raise UserError(f"{quoted(str(path))} does not say what an export writes. Choose another folder.")
    known = dataset.indices_by_name({item.image for item in items})
    if items and not known:
        raise UserError(f"{quoted(str(path))} lists {quoted(items[0].image)}, which is no image of {dataset.title}. "
                        "Choose another folder.")
    for item in items:
        if not is_inside(item.file):
            raise UserError(f"{quoted(str(path))} lists the path {quoted(item.file)}, which an export does not write. "
                            "Choose another folder.")
    excluded, listed = set(excluded_names(dataset)), [item for item in items if item.image in known]
    is_missing = _are_missing(dataset, [known[item.image] for item in listed])
    missing = sum(gone and item.image not in excluded for item, gone in zip(listed, is_missing, strict=True))
    kept = tuple(item for item, gone in zip(listed, is_missing, strict=True)
                 if not gone and item.image not in excluded)
    if not kept:
        raise UserError(f"You excluded or removed all images on {quoted(str(path))} since. Choose another folder.")
    before = _written(folder, _listed(dataset, folder) or ())
    written = _written(folder, (*before, *items))
    there = frozenset(item.file for item in before) & {item.file for item in kept}
    other_kind = _other_kind(folder, (item.file for item in kept), how)
    return Plan(dataset, folder, how, kept, len(dataset) - len(kept) - len(excluded) - missing, len(excluded),
                missing + len(items) - len(listed), begun=begun, there=there, other_kind=other_kind, prunes=prunes,
                earlier=tuple(former_files(dataset, folder, written, kept, prunes)))
