"""Find runs in a folder of runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from udml_core.base.errors import UserError, quoted
from udml_core.base.paths import existing_path
from udml_core.base.paths import runs_folder as runs_folder
from udml_core.exploration.race import FROZEN
from udml_core.runs.examples import are_examples_shown, example_runs
from udml_core.runs.folder import Run


def list_runs(root: Path) -> list[Run]:
    """List the user's runs, newest first, then the examples unless they are hidden.

    A folder whose spec cannot be read is left out. An example that the user has copied is listed once, as the copy.
    """
    own = [run for run in _folders(root) if _is_readable(run)]
    if not are_examples_shown(root):
        return own
    copied = {run.id for run in own}
    return own + [run for run in example_runs() if run.id not in copied]


def frozen_runs(root: Path, fingerprint: str) -> Iterator[Run]:
    """Yield the runs of the frozen features of all images of a data set, the newest first; races belong to them."""
    for run in list_runs(root):
        spec = run.spec()
        if (spec.method, spec.split, spec.fingerprint) == (FROZEN, "all", fingerprint):
            yield run


def find_run(text: str, root: Path) -> Run:
    """Find a run by its id, the beginning of its id, or its folder.

    Only that run's spec is read. Examples are found too, also hidden ones.

    Raises:
        UserError: No run matches, or more than one.
    """
    if re.fullmatch(r"[\w-]{1,200}", text):
        exact = Run(root / text)
        if _is_readable(exact):
            return exact
        examples = {run.id: run for run in example_runs() if run.id.startswith(text)}
        if text in examples:
            return examples[text]
        own = {run.id: run for run in _folders(root) if run.id.startswith(text) and _is_readable(run)}
        matches = list((examples | own).values())
        if len(matches) == 1:
            return matches[0]
        if matches:
            shown = ", ".join([run.id for run in matches[:4]] + ["…"] * (len(matches) > 4))
            raise UserError(f"'{text}' is the beginning of {len(matches)} run ids: {shown}. Give more of the id.")
    path = existing_path(text)
    if path is not None and (path / "spec.json").exists():
        return Run(path.resolve())
    raise UserError(f"No run {quoted(text)} in {root}, and no run folder of that name. `udml runs` lists the runs.")


def _folders(root: Path) -> list[Run]:
    """List candidate folders by name, newest first, without opening any."""
    if not root.is_dir():
        return []
    return [Run(path) for path in sorted(root.iterdir(), reverse=True) if not path.name.startswith(".")]


def _is_readable(run: Run) -> bool:
    if not run.has_spec():
        return False
    try:
        run.spec()
        return True
    except UserError:
        return False
