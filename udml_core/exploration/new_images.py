"""What an audit says about the new images of a folder: copies of what is there, poor images, outliers, and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from udml_core.base.arrays import Booleans, Integers
from udml_core.data.dataset import Dataset
from udml_core.data.given.growth import Changes
from udml_core.data.image_facts import ImageFacts
from udml_core.exploration.audit import Audit, Findings
from udml_core.exploration.quality import CHECKS, poor_images

Names = Mapping[int, tuple[str, float]]
"""The proposed class and its certainty for some images, by index."""


@dataclass(frozen=True, eq=False)
class NewImage:
    """A new or changed image of a folder.

    Attributes:
        index: Its index.
        copies: The other images of its group of duplicates, earlier images first.
        is_copy: Whether one of them was there before.
        poor: The checks of quality that find it.
        is_outlier: Whether it is an outlier.
        name: The proposed class; empty without.
        certainty: The certainty of the name.
    """

    index: int
    copies: tuple[int, ...]
    is_copy: bool
    poor: tuple[str, ...]
    is_outlier: bool
    name: str
    certainty: float

    def words(self, dataset: Dataset) -> str:
        """Return in a few words what was found."""
        parts = [f"copy of {dataset.names[self.copies[0]]}"] if self.is_copy else (
            ["copies among the new"] if self.copies else [])
        parts += [CHECKS[check].title.lower() for check in self.poor]
        parts += ["outlier"] * self.is_outlier
        parts += [f"{self.name} {100 * self.certainty:.0f} %"] if self.name else []
        return ", ".join(parts)


def new_images(audit: Audit, changes: Changes, findings: Findings, kept: Booleans,
               facts: ImageFacts | None, names: Names) -> list[NewImage]:
    """Return what was found about the new and changed images that are not excluded, copies first.

    Args:
        audit: The comparison of all images.
        changes: What has changed.
        findings: What the audit found among all images.
        kept: Mask (n,) of the images that are not excluded.
        facts: Facts about all images; None without checks of quality.
        names: Proposed names.
    """
    wanted = changes.to_look_at[kept[changes.to_look_at]]
    is_new = np.isin(np.arange(len(audit.content)), changes.to_look_at)
    group_of = {int(image): group for group in findings.duplicates for image in group}
    poor = {check: set() if facts is None else set(poor_images(facts, kept, check).tolist()) for check in CHECKS}
    apart = set(findings.outliers.tolist())
    found = []
    for index in wanted.tolist():
        others = _others(group_of.get(index, np.zeros(0, np.int64)), index, is_new)
        name, certainty = names.get(index, ("", 0.0))
        checks = tuple(check for check in CHECKS if index in poor[check])
        found.append(NewImage(index, others, bool(others) and not is_new[others[0]], checks, index in apart, name,
                              certainty))
    return sorted(found, key=lambda image: (not image.is_copy, not image.copies, not image.poor, image.index))


def _others(group: Integers, index: int, is_new: Booleans) -> tuple[int, ...]:
    """Return the other images of a group, earlier images first."""
    others = group[group != index]
    return tuple(others[np.argsort(is_new[others], kind="stable")].tolist())


def report_new(dataset: Dataset, changes: Changes | None, found: Sequence[NewImage]) -> dict[str, Any]:
    """Return the changes of a folder with image names, as the command line writes them."""
    if changes is None:
        return {"changes": "", "new": [], "changed": [], "removed": [], "renamed": {}, "broken_files": [], "images": []}
    return {
        "changes": changes.words, "new": [dataset.names[index] for index in changes.new],
        "changed": [dataset.names[index] for index in changes.changed], "removed": list(changes.removed),
        "renamed": dict(changes.renamed),
        "broken_files": [{"file": skipped.file, "reason": skipped.reason} for skipped in changes.broken],
        "images": [{"image": dataset.names[image.index], "is_copy": image.is_copy,
                    "copies": [dataset.names[other] for other in image.copies], "quality": list(image.poor),
                    "outlier": image.is_outlier, "name": image.name, "certainty": round(image.certainty, 3),
                    "words": image.words(dataset)}
                   for image in found]}
