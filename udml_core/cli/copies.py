"""Copies of photographs on the command line: decisions about them, and an exclusion of all but one."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import typer

from udml_core.base.errors import UserError, counted

if TYPE_CHECKING:
    from udml_core.data.dataset import Dataset
    from udml_core.data.given.duplicate_decisions import Decisions
    from udml_core.data.image_facts import ImageFacts
    from udml_core.exploration.audit import Audit, AuditSettings


def decide_copies(dataset: Dataset, same: list[str], different: list[str], preferred: list[str], undo: bool) -> None:
    """Store a decision about copies as the page Data does, or revert the last.

    Args:
        dataset: The data set.
        same: Names of images that are the same photograph.
        different: Names of images that are different photographs.
        preferred: Names of the copies to keep in their groups.
        undo: Whether the last decision is reverted instead.

    Raises:
        UserError: There is more than one decision, a name is no image, or a decision about pairs has fewer than two.
    """
    import numpy as np

    from udml_core.data.given.duplicate_decisions import decide, prefer, undo_decision
    from udml_core.data.given.exclusions import find_names

    if sum((bool(same), bool(different), bool(preferred), undo)) > 1:
        raise UserError("Decide one thing at a time: --same, --different, --prefer or --undo. Remove the others.")
    if undo:
        typer.echo("The last decision was reverted." if undo_decision(dataset) else "There is no decision to revert.",
                   err=True)
    if preferred:
        prefer(dataset, find_names(preferred, dataset))
        typer.echo(f"Chosen to keep: {', '.join(preferred)}. Undo: {_undo(dataset)}", err=True)
    if same or different:
        images = sorted(set(find_names(same or different, dataset)))
        if len(images) < 2:
            raise UserError(f"{'--same' if same else '--different'} needs two images or more. Give it once for each.")
        pairs = np.array([(left, right) for left in images for right in images if left < right])
        decide(dataset, pairs, bool(same))
        typer.echo(f"{counted(len(images), 'image')}: {'the same photograph' if same else 'different photographs'}. "
                   f"Undo: {_undo(dataset)}", err=True)


def _undo(dataset: Dataset) -> str:
    return shlex.join(["udml", "audit", dataset.name, "--undo"])


def exclude_copies(dataset: Dataset, compared: Audit, settings: AuditSettings, facts: ImageFacts | None,
                   decided: Decisions) -> None:
    """Exclude all but the first image of each group of duplicates, and say how to undo it."""
    from udml_core.data.given.exclusions import exclude, excluded_images
    from udml_core.exploration.audit import find_problems
    from udml_core.exploration.duplicates import all_but_first

    groups = find_problems(compared, dataset, excluded_images(dataset), settings, facts, decided).duplicates
    changed = exclude(dataset, all_but_first(groups).tolist())
    if not changed:
        typer.echo("No duplicates are left to exclude.", err=True)
        return
    total, copies = len(excluded_images(dataset)), f"{changed:,} {'copy' if changed == 1 else 'copies'}"
    typer.echo(f"Excluded {copies}: one image of each of {counted(len(groups), 'group')} of duplicates stays. Of "
               f"{counted(len(dataset), 'image')}, {total:,} {'is' if total == 1 else 'are'} excluded now; no file has "
               f"changed. Undo: {shlex.join(['udml', 'exclude', dataset.name, '--undo'])}", err=True)
