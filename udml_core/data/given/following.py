"""Files that were renamed or moved within their folder: what users said about them follows their content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from udml_core.data.dataset import Dataset, FileImages
from udml_core.data.sources.versions import Version, known_versions, read_version

MOST_STATES = 50
"""Newest states of a folder in which a name is looked for."""


def moved_names(dataset: Dataset, names: Collection[str]) -> dict[str, str]:
    """Return the present names of images whose files have other names now.

    A name follows its content if exactly one file of this content vanished, and exactly one appeared. Of several equal
    copies it is not known which is which, so nothing follows.

    Args:
        dataset: The data set.
        names: Former names; names of images that are still there are left out.
    """
    if not dataset.digests or not isinstance(dataset.images, FileImages):
        return {}
    wanted = set(names) - dataset.indices_by_name(set(names)).keys()
    moved: dict[str, str] = {}
    for fingerprint in known_versions(dataset.images.root)[:MOST_STATES]:
        if not wanted:
            break
        version = read_version(dataset.images.root, fingerprint)
        if version is not None and (known := wanted.intersection(version.names)):
            wanted -= known  # the newest state decides
            followed = _followed(dataset, version)
            moved |= {name: followed[name] for name in known & followed.keys()}
    return moved


def _followed(dataset: Dataset, version: Version) -> dict[str, str]:
    """Return the present name of each image of a state that has another name now."""
    before, here = set(version.names), set(dataset.names)
    vanished = [(name, digest) for name, digest in zip(version.names, version.digests, strict=True)
                if name not in here]
    appeared = [(name, digest) for name, digest in zip(dataset.names, dataset.digests, strict=True)
                if name not in before]
    once, there = (Counter(digest for _, digest in files) for files in (vanished, appeared))
    name_of = {digest: name for name, digest in appeared if there[digest] == 1}
    return {name: name_of[digest] for name, digest in vanished if once[digest] == 1 and digest in name_of}


def names_in(value: Any) -> Iterator[str]:
    """Yield all texts in lists, as actions of logs list names of images."""
    for part in value if isinstance(value, list) else ():
        if isinstance(part, str):
            yield part
        else:
            yield from names_in(part)


def renamed(value: Any, moved: dict[str, str]) -> Any:
    """Return lists with the present names of images."""
    if isinstance(value, list):
        return [moved.get(part, part) if isinstance(part, str) else renamed(part, moved) for part in value]
    return value


def all_names(rows: Iterable[dict[str, Any]]) -> set[str]:
    """Return the names of images in actions of a log."""
    return {name for row in rows for value in row.values() for name in names_in(value)}
