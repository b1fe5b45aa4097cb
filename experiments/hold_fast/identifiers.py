"""Hostile ids of runs, refinements and other analyses: on the command line, in addresses, and as folders."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from unittest.mock import patch

import numpy as np

from experiments.hold_fast.attempt import Hostility
from experiments.hold_fast.damage import analyzed
from experiments.hold_fast.forked import answer_of
from experiments.hold_fast.inputs import call, checked, quiet
from experiments.hold_fast.junk import junk, word
from experiments.hold_fast.kills import link_tree
from experiments.hold_fast.names import name_for
from tests.app.opening import opened
from udml_core.runs import Run
from udml_core.runs.analyses import find_analysis, list_analyses

PAGES = ("search", "retrieval", "refine", "explore", "compare", "runs", "labels")
PARAMETERS = ("refined", "compare", "embedding", "map", "with", "run")
ESCAPES = ("..", "../..", "../../undisturbed", "../../../outside", "/etc", "analyses/..", ".", "~", "*", "?", "[a-z]",
           "a/b", "\\\\host\\share")


def try_identifier(random: np.random.Generator, scratch: Path) -> str | None:
    """Name analyses that do not exist, rename and copy others, and ask for all of them."""
    whole = analyzed("rpml")
    run = Run(scratch / "runs" / whole.id)
    link_tree(whole.folder, run.folder)
    secret = scratch / "outside"
    secret.mkdir()
    (secret / "spec.json").write_text("{}", encoding="utf-8")
    known = list_analyses(run)
    for analysis in known[:int(random.integers(1, 4))]:
        _rename(random, analysis.folder)
    names = [*(each.name for each in known[0].folder.parent.iterdir()), name_for(random), junk(random)]
    chosen = [*ESCAPES, str(secret)] if random.random() < 0.5 else names
    name = word(chosen[int(random.integers(len(chosen)))])
    for act in (lambda: list_analyses(run), lambda: find_analysis(run, name).result()):
        if broken := checked(act):
            return f"{name!r}: {broken}"
    root = ["--runs", str(run.folder.parent)]
    for words in (["query", run.id, "0", "--embedding", name], ["analyses", run.id],
                  ["export", run.id, str(scratch / "out"), "--refined", name], ["query", name, "0"]):
        if broken := call(words + root):
            return f"{words}: {broken}"
    shown = {str(each): name for each in random.choice(PARAMETERS, int(random.integers(1, 4)), replace=False)}
    page = str(random.choice(PAGES))

    def show() -> str | None:
        with quiet(), patch.dict(os.environ, {"UDML_RUNS": str(run.folder.parent)}):
            test = opened(page, **({"run": run.id} | shown))
        return f"{page} {shown}: {test.exception[0].message}\n{test.exception[0].stack_trace[-3:]}" \
            if test.exception else None

    if broken := answer_of(show, scratch / "report"):
        return broken
    is_whole = json.loads((secret / "spec.json").read_text(encoding="utf-8")) == {}
    return None if is_whole else "a file outside the run has changed"


def _rename(random: np.random.Generator, folder: Path) -> None:
    """Give the folder of an analysis a hostile name, put another one beside it, or lead it out of the run."""
    other = folder.with_name(name_for(random))
    if other.exists():
        return
    match int(random.integers(4)):
        case 0:
            folder.rename(other)
        case 1:
            shutil.copytree(folder, other, symlinks=True)
        case 2:
            other.symlink_to("../../../outside")
        case 3:
            other.write_bytes(b"")


PART = Hostility("identifiers", try_identifier, limit=240, goal=100, seconds=10)
