"""Exclude the first images of rankings on the command line: the names come first, then a question."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import typer

from udml_core.base.errors import UserError, counted, quoted
from udml_core.exploration.quality import CHECKS

if TYPE_CHECKING:
    from udml_core.data.dataset import Dataset
    from udml_core.data.image_facts import ImageFacts
    from udml_core.exploration.audit import Audit

OUTLIERS = "outliers"
TITLES = {**{name: check.title for name, check in CHECKS.items()}, OUTLIERS: "Outliers"}
"""The rankings of the view Audit by their names."""


def parse_rankings(texts: list[str]) -> dict[str, int]:
    """Return the number of first images of each ranking of CHECK:COUNT.

    Raises:
        UserError: A text has no known check, or no number above 0.
    """
    counts: dict[str, int] = {}
    for text in texts:
        check, _, count = text.partition(":")
        if check not in TITLES or not (count.isascii() and count.isdigit() and len(count) < 10 and int(count)):
            raise UserError(f"--exclude needs CHECK:COUNT, such as blurry:5, with a number above 0; got {quoted(text)}."
                            f" Checks: {', '.join(TITLES)}.")
        if check in counts:
            raise UserError(f"--exclude names the check {check} twice. Name each check once.")
        counts[check] = int(count)
    return counts


def first_images(dataset: Dataset, counts: dict[str, int], audit: Audit, facts: ImageFacts | None
                 ) -> dict[str, list[tuple[int, float]]]:
    """Return the first images of rankings with their scores, in order; excluded images are not ranked.

    Raises:
        UserError: The data set has no features, or no image files, as a ranking needs.
    """
    import numpy as np

    from udml_core.data.given.exclusions import excluded_images
    from udml_core.exploration.quality import quality_scores, worst_first

    kept = ~np.isin(np.arange(len(dataset)), excluded_images(dataset))
    found = {}
    for check, count in counts.items():
        if check == OUTLIERS and not audit.has_features:
            raise UserError("Outliers need features, and none are stored, so nothing was excluded. Compute them, or "
                            "leave out --exclude outliers.")
        if check != OUTLIERS and facts is None:
            raise UserError(f"{dataset.title} has no image files, so nothing was excluded. Rank outliers.")
        scores = audit.outlier_scores() if check == OUTLIERS or facts is None else quality_scores(facts, check)
        first = worst_first(-scores if check == OUTLIERS else scores, kept)[:count]
        found[check] = [(int(index), float(scores[index])) for index in first]
    return found


def exclude_first(dataset: Dataset, found: dict[str, list[tuple[int, float]]], is_plan: bool, yes: bool,
                  to_error: bool) -> int:
    """Print the first images of rankings, ask, and exclude them as one decision; return how many were excluded.

    Raises:
        UserError: The user did not agree, or could not be asked.
    """
    from udml_core.data.given.exclusions import exclude

    images = list(dict.fromkeys(index for ranked in found.values() for index, _ in ranked))
    for check, ranked in found.items():
        typer.echo(f"{TITLES[check]}: the first {counted(len(ranked), 'image')}", err=to_error)
        for index, score in ranked:
            typer.echo(f"  {score:.3f}  {dataset.names[index]}", err=to_error)
    if is_plan or not images:
        return 0
    if not yes:
        agree(f"Exclude {counted(len(images), 'image')}?", "Nothing was excluded")
    changed = exclude(dataset, images)
    typer.echo(f"{counted(changed, 'image')} excluded. Undo: "
               f"{shlex.join(['udml', 'exclude', dataset.name, '--undo'])}", err=True)
    return changed


def agree(question: str, nothing: str) -> None:
    """Ask in the terminal.

    Raises:
        UserError: The answer is no, or there is no terminal to ask in.
    """
    if not sys.stdin.isatty():
        raise UserError(f"{nothing}: without a terminal to ask in, confirm the plan by --yes.")
    if not typer.confirm(question, err=True):
        raise UserError(f"{nothing}.")
