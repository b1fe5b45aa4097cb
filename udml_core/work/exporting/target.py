"""The folder of an export: written aside, then published."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from udml_core.base.errors import UserError, quoted
from udml_core.base.files import publish, publish_folder
from udml_core.runs.folder import EXPORTED

SPEC, LIST, IMAGES, REFINEMENT = "spec.json", "images.csv", "images.parquet", "refinement.json"
TABLES = ("embeddings-initial.parquet", "embeddings.parquet")
UNREFINED = ("evaluation.json", "metrics.jsonl", "embedder.safetensors", "initial.safetensors",
             "embeddings-initial.npy")
"""Files of a run that say nothing of a refinement, or whose rows are other images."""
CONFIG, WEIGHTS, CARD, ONNX = "config.json", "model.safetensors", "README.md", "model.onnx"
INDEX, GALLERY, SEARCH = "gallery.faiss", "gallery.csv", "search.py"
DESCRIPTIONS = (SPEC, CONFIG)
"""The files without which an export is not whole; they are published last."""
FORMAT = "udml-model-1"
"""What the description of a model folder says, which tells it from another program's `config.json`."""
SPEC_KEYS = frozenset({"method", "dataset", "fingerprint"})
FILES = frozenset({*EXPORTED, SPEC, LIST, IMAGES, REFINEMENT, *TABLES, CONFIG, WEIGHTS, CARD, ONNX, INDEX,
                   GALLERY, SEARCH})
"""Every file that an export can write, besides shards."""
SHARD = "vectors-{:05}-of-{:05}.parquet"
_SHARD = re.compile(r"vectors-\d{5}-of-\d{5}\.parquet")
UNFINISHED = "unfinished"


@contextmanager
def written_aside(folder: Path, force: bool = False) -> Iterator[Path]:
    """Yield a folder to write to; what it then contains becomes the content of `folder`.

    A new folder appears as a whole. An existing one, which can be a mount point or the current folder, receives the
    files one by one when all of them are written. After an error nothing has changed.

    Args:
        folder: A new or empty folder.
        force: Whether it may also be an earlier export, which is replaced.

    Raises:
        UserError: The folder is neither, or cannot be written.
    """
    try:
        target = Path(os.path.realpath(folder))
        _check(target, force)
        target.parent.mkdir(parents=True, exist_ok=True)
        place = target if target.exists() else target.parent
        _remove_leftovers(place, target.name)
        aside = place / f".{target.name}.{os.getpid()}.part"
        aside.mkdir()
        try:
            yield aside
            if target.exists():
                _replace_files(aside, target)
            else:
                publish_folder(aside, target)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise UserError(f"The export could not be written to {quoted(str(folder))}: {error.strerror or error}. "
                        "Choose another folder.") from error


def _check(folder: Path, force: bool) -> None:
    """Check that an export may be written to a folder.

    Raises:
        UserError: It may not.
    """
    shown = quoted(str(folder))
    if folder.exists() and not folder.is_dir():
        raise UserError(f"An export needs a new or empty folder, and {shown} is a file. Choose another folder.")
    paths = {path.name: path for path in folder.iterdir()} if folder.exists() else {}
    names = {name for name in paths if not _is_leftover(name, folder.name)}
    if names and not force:
        raise UserError(f"An export needs a new or empty folder, and {shown} is not empty. Choose another folder, or "
                        "replace an earlier export with --force.")
    if foreign := sorted(name for name in names if not _is_of_export(name) or not _is_own_file(paths[name])):
        raise UserError(f"--force replaces an earlier export only, and {shown} also contains {quoted(foreign[0])}. "
                        "Choose another folder, or move that entry away.")
    if names and not _is_export(folder):
        raise UserError(f"--force replaces an earlier export only, and {shown} has no {' or '.join(DESCRIPTIONS)} that "
                        "an export wrote. Choose another folder.")


def _is_of_export(name: str) -> bool:
    return name in FILES or _SHARD.fullmatch(name) is not None


def _is_own_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _is_export(folder: Path) -> bool:
    """Return whether a folder is an earlier export, also one whose replacement was interrupted."""
    spec, config = (_read_object(folder / name) for name in DESCRIPTIONS)
    return config.get("format") == FORMAT or spec.keys() >= SPEC_KEYS or _unfinished(folder).exists()


def _unfinished(folder: Path) -> Path:
    """Return the mark of a folder whose files are being replaced."""
    return folder / f".{folder.name}.{UNFINISHED}.part"


def _read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object; an empty one if the file is missing or holds something else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _replace_files(aside: Path, folder: Path) -> None:
    """Move files into a folder, and remove the files of an earlier export that the new one lacks.

    The description is removed first and published last, so that an interrupted export lacks it.
    A mark shows meanwhile that the files are ours.
    """
    _unfinished(folder).touch()
    for name in DESCRIPTIONS:
        (folder / name).unlink(missing_ok=True)
    new = sorted(aside.iterdir(), key=lambda path: (path.name in DESCRIPTIONS, path.name))
    for name in {path.name for path in folder.iterdir() if _is_of_export(path.name)} - {path.name for path in new}:
        (folder / name).unlink(missing_ok=True)
    for path in new:
        publish(path, folder / path.name)
    _unfinished(folder).unlink()


def _is_leftover(name: str, target: str) -> bool:
    """Return whether a name is that of a folder which an export to `target` writes to."""
    return name.startswith(f".{target}.") and name.endswith(".part")


def _remove_leftovers(place: Path, target: str) -> None:
    """Remove what killed exports have left behind."""
    for path in place.iterdir():
        if _is_leftover(path.name, target):
            process = path.name.removeprefix(f".{target}.").removesuffix(".part")
            if process.isdecimal() and not psutil.pid_exists(int(process)):
                shutil.rmtree(path, ignore_errors=True)
