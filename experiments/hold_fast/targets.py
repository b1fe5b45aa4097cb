"""Exports and copies of curves into hostile places: links, pipes, files, full and foreign folders, odd names."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from experiments.hold_fast.attempt import Hostility
from experiments.hold_fast.damage import analyzed
from experiments.hold_fast.inputs import checked, quiet
from experiments.hold_fast.junk import junk, word
from experiments.hold_fast.names import name_for
from udml_core.runs.analyses import list_analyses
from udml_core.work.exporting import export, export_model, export_shards, mirror

METHODS = ("rpml", "pslr")
KINDS = ("new", "full", "file", "pipe", "link", "loop", "device", "below a file", "read-only", "junk")


def write_there(random: np.random.Generator, scratch: Path) -> str | None:
    """Export a run, or copy its curves, into a place: it is done or refused, and nothing else changes."""
    run = analyzed(str(random.choice(METHODS)))
    kept = scratch / "kept"
    kept.mkdir()
    (kept / "mine.txt").write_text("mine", encoding="utf-8")
    before = _digest(kept), _digest(run.folder)
    kind = str(random.choice(KINDS))
    place = _place(random, kind, scratch, kept)
    refinement = next((each for each in list_analyses(run) if each.is_done() and each.spec().kind == "refine"), None)
    force = bool(random.random() < 0.3) and kind != "full"  # --force replaces what is there
    acts: list[Callable[[], object]] = [
        partial(export, run, place, force=force), partial(export, run, place, refinement=refinement, force=force),
        partial(export_model, run, place, onnx=False, force=force),
        partial(export_shards, run, place, int(random.integers(-1, 300)), force=force),
        partial(mirror, run, "tensorboard", str(place))]
    act = acts[int(random.integers(len(acts)))]
    with quiet():
        broken = checked(act)
    named = f"{act.func.__name__} into {kind} {str(place)[:200]!r}"  # type: ignore[attr-defined]
    if broken:
        return f"{named}: {broken}"
    if (kept / "mine.txt").read_text(encoding="utf-8") != "mine" or _digest(run.folder) != before[1]:
        return f"{named}: other files have changed"
    # TensorBoard's folder of logs is one for all runs.
    return None if "mirror" in named or _digest(kept) == before[0] else f"{named}: other files were added"


def _place(random: np.random.Generator, kind: str, scratch: Path, kept: Path) -> Path:
    """Return a place of a kind."""
    place = scratch / name_for(random)[:80]
    match kind:
        case "full":
            return kept
        case "file":
            place.write_bytes(b"")
        case "pipe":
            os.mkfifo(place)
        case "link":
            place.symlink_to(kept)
        case "loop":
            place.symlink_to(place)
        case "device":
            return Path("/dev/full")
        case "below a file":
            place.write_bytes(b"")
            return place / "folder"
        case "read-only":
            place.mkdir()
            place.chmod(0o500)
        case "junk":
            return scratch / (word(junk(random)).strip("./~") or "x").replace("/", "_")
    return place


def _digest(folder: Path) -> str:
    """Return a hash of the files of a folder and of their names."""
    total = hashlib.sha1(usedforsecurity=False)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "lock":
            total.update(os.fsencode(path.relative_to(folder)) + path.read_bytes())
    return total.hexdigest()


PART = Hostility("targets", write_there, batch=5, limit=120, goal=150)
