"""Example runs: finished runs that come with the app and can only be read.

They are in `assets/examples`, made by `python -m experiments.make_examples`. The environment variable `UDML_EXAMPLES=0`
turns them off everywhere; `hide_examples` leaves them out of the list of runs of one user.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from udml_core.base import paths
from udml_core.base.errors import UserError
from udml_core.runs.folder import PRIVATE, Run

SHOWCASE = "20261122-120600-distill-clothes"
"""Id of the example that Home plays. It learns without labels, and ends with a MAP@R clearly above all frozen features
and PCA; its R@1 is within chance of theirs, and the judges that took no part say the same."""
POINTS = {
    SHOWCASE:
        "Without labels, 48 numbers find more of each group than all 1,280 ({frozen:map@r} → {final:map@r}). First "
        "results stay level ({frozen:recall@1} → {final:recall@1}).",
    "20261122-120000-rpml-digits":
        "Trained without labels, 8 numbers find more of each group than all 64 pixels ({frozen:map@r} → "
        "{final:map@r}), but fewer right first results ({frozen:recall@1} → {final:recall@1}).",
    "20261122-120400-nml-digits":
        "Similar and dissimilar pairs bring groups together. Whole group found: {frozen:map@r} → {final:map@r}. First "
        "result right, a little less: {frozen:recall@1} → {final:recall@1}.",
    "20261122-120300-ssdml-digits":
        "Spreads 10 labels a class to similar images. First result right: {initial:recall@1} → {final:recall@1}. From "
        "a random start it stays below the pixels: {frozen:recall@1}.",
    "20261122-120200-isif-emoji":
        "Tells each image from all others, without labels. First result right: {initial:recall@1} → "
        "{final:recall@1}. The raw features, 80 times as wide, reach {frozen:recall@1}.",
    "20261122-120100-plm-clothes":
        "Shown because it loses. First result right: {initial:recall@1} at a random start, {final:recall@1} after "
        "training, {centered pca:recall@1} with PCA. So PLM now starts from PCA.",
}
"""What each example shows, in one line; `{EMBEDDING:MEASURE}` stands for a figure of its evaluation. The examples whose
training finds more of a group than the raw features come first."""
FIGURE = re.compile(r"{([^:}]+):([^}]+)}")
HIDDEN = ".examples-hidden"
"""File in a folder of runs that hides the examples."""


def example_runs() -> list[Run]:
    """List the examples that come with the app, in the order of their ids."""
    if os.environ.get("UDML_EXAMPLES") == "0":
        return []
    return [Run(file.parent) for file in sorted(paths.EXAMPLES.glob("*/spec.json"))]


def point_of(run: Run) -> str:
    """Return what an example, or the user's copy of it, shows; empty for other runs."""
    evaluation = run.evaluation() or {}

    def figure(name: re.Match[str]) -> str:
        value = evaluation.get(name[1], {}).get(name[2])
        return "–" if value is None else f"{value:.1f}\N{NO-BREAK SPACE}%"

    return FIGURE.sub(figure, POINTS.get(run.id, ""))


def are_examples_shown(root: Path) -> bool:
    """Return whether the list of a folder's runs ends with the examples."""
    return not (root / HIDDEN).exists()


def hide_examples(root: Path) -> None:
    """Leave the examples out of the list of a folder's runs.

    Raises:
        UserError: The folder cannot be written.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        (root / HIDDEN).touch()
    except OSError as error:
        raise UserError(f"The examples could not be hidden, because {root} cannot be written: {error}.") from error


def show_examples(root: Path) -> None:
    """List the examples after a folder's runs again.

    Raises:
        UserError: The folder cannot be written.
    """
    try:
        (root / HIDDEN).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"The examples could not be shown, because {root} cannot be written: {error}.") from error


def own_copy(run: Run, root: Path) -> Run:
    """Return the user's own copy of an example, which can be changed, for example by a new analysis.

    The copy has the id of the example and replaces it in lists, so that links stay valid. When it is removed, the
    example is listed again. An existing copy is returned as it is.

    Args:
        run: An example.
        root: The user's folder of runs.

    Raises:
        UserError: The folder of runs cannot be written.
    """
    copy = Run(root / run.id)
    if copy.has_spec():
        return copy
    aside = root / f".{run.id}.{os.getpid()}.part"
    try:
        shutil.rmtree(aside, ignore_errors=True)
        shutil.copytree(run.folder, aside, copy_function=shutil.copyfile)
        aside.chmod(PRIVATE)
        aside.rename(copy.folder)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        if not copy.has_spec():  # another process may have copied it meanwhile
            raise UserError(f"{run.id} is an example, so new analyses are stored in a copy of it, but the folder of "
                            f"runs {root} cannot be written: {error}. Choose another folder with --runs or "
                            "UDML_RUNS.") from error
    return copy
