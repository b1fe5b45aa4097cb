"""What has changed in a folder of images since the user looked at its changes last.

Each line {"seen": fingerprint} of the log marks a state of the folder, from which changes count. Before the first line
they count from the state in which the folder was opened first. New images that the user has named or excluded are no
news, and neither are excluded images that left the folder. A line {"looked": fingerprint} ends the reminder of the
changes up to this state, which stay listed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Integers
from udml_core.base.errors import counted
from udml_core.data.dataset import Dataset, FileImages, Skipped
from udml_core.data.given.exclusions import listed_names
from udml_core.data.given.following import moved_names
from udml_core.data.given.labels import assigned_labels
from udml_core.data.given.log import append_to_log, read_log
from udml_core.data.sources.versions import Version, known_versions, read_version

KIND = "seen"
DAY = 86_400.0


@dataclass(frozen=True, eq=False)
class Changes:
    """Changes of a folder between two states.

    Attributes:
        since: When the user looked last, in seconds since 1970.
        new: Ascending indices (m,) of new images that are neither named nor excluded.
        changed: Ascending indices (c,) of images whose files were replaced.
        removed: Names of removed images.
        renamed: Former and present names of images that were renamed or moved, which are neither new nor removed.
        broken: New files that cannot be read.
    """

    since: float
    new: Integers
    changed: Integers
    removed: tuple[str, ...]
    renamed: Mapping[str, str]
    broken: tuple[Skipped, ...]

    @property
    def to_look_at(self) -> Integers:
        """Ascending indices of new and changed images."""
        return np.union1d(self.new, self.changed)

    @property
    def words(self) -> str:
        """The changes in words, such as "12 new files, 2 removed, and 1 changed since yesterday"; empty without any."""
        files = len(self.new) + len(self.broken)
        parts = [f"{counted(files, 'new file')}"] * bool(files)
        parts += [f"{number:,} {word}" for number, word in (
            (len(self.renamed), "renamed"), (len(self.removed), "removed"), (len(self.changed), "changed")) if number]
        joined = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1] if parts else ""
        return f"{joined} since {since_words(self.since, time.time())}" if parts else ""


def since_words(then: float, now: float) -> str:
    """Return a time of the past as "since" continues, by the days of the calendar here."""
    days = (np.datetime64(time.strftime("%Y-%m-%d", time.localtime(now)))
            - np.datetime64(time.strftime("%Y-%m-%d", time.localtime(then)))).astype(int)
    if days <= 1:
        return time.strftime("%H:%M", time.localtime(then)) if days < 1 else "yesterday"
    return time.strftime("%B %-d", time.localtime(then)) if now - then < 300 * DAY else time.strftime(
        "%B %Y", time.localtime(then))


def changes_of(dataset: Dataset) -> Changes | None:
    """Return what has changed since the user looked last; None if nothing has, or the earlier state is unknown."""
    if not dataset.digests or not isinstance(dataset.images, FileImages):
        return None
    found = _last_seen(dataset)
    if found is None:
        return None
    since, version = found
    before = dict(zip(version.names, version.digests, strict=True))
    is_known = np.array([name in before for name in dataset.names], bool)
    differs = np.array([before.get(name, digest) != digest for name, digest in zip(
        dataset.names, dataset.digests, strict=True)], bool)
    known = {file: entry["digest"] for file, entry in version.entries.items()}
    broken = tuple(skipped for skipped in dataset.skipped if skipped.file not in known)
    here, excluded = set(dataset.names), set(listed_names(dataset))
    decided = excluded | assigned_labels(dataset).keys()
    is_decided = np.array([name in decided for name in dataset.names], bool)
    gone = [name for name in version.names if name not in here and name not in excluded]
    renamed = moved_names(dataset, gone)
    is_renamed = np.isin(np.arange(len(dataset)), list(dataset.indices_by_name(set(renamed.values())).values()))
    changes = Changes(since, np.flatnonzero(~is_known & ~is_decided & ~is_renamed), np.flatnonzero(differs),
                      tuple(name for name in gone if name not in renamed), renamed, broken)
    return changes if changes.words else None


def note_looked(dataset: Dataset) -> None:
    """Note that the user has opened the list of all changes so far, unless that is noted.

    Raises:
        UserError: The note cannot be written.
    """
    if not was_looked_at(dataset):
        append_to_log(dataset, KIND, {"looked": dataset.fingerprint})


def was_looked_at(dataset: Dataset) -> bool:
    """Return whether the user has opened the list of all changes so far."""
    return any(row.get("looked") == dataset.fingerprint for row in read_log(dataset, KIND))


def mark_seen(dataset: Dataset) -> None:
    """Note that the user has looked at all changes so far.

    Raises:
        UserError: The note cannot be written.
    """
    append_to_log(dataset, KIND, {"seen": dataset.fingerprint, "time": time.time()})


def _last_seen(dataset: Dataset) -> tuple[float, Version] | None:
    """Return when the user looked last, and the folder's state then; None if it is unknown."""
    assert isinstance(dataset.images, FileImages)
    root = dataset.images.root
    for row in reversed(read_log(dataset, KIND)):
        if row.get("seen") == dataset.fingerprint:
            return None
        with suppress(ValueError, TypeError):
            if (version := read_version(root, str(row.get("seen")))) is not None:
                return float(row.get("time", version.seen)), version
    versions = [version for fingerprint in known_versions(root)
                if (version := read_version(root, fingerprint)) is not None]
    oldest = min(versions, key=lambda version: version.seen, default=None)
    return None if oldest is None else (oldest.seen, oldest)
