"""What is stored of a training within its epochs, for a page that watches it.

A step is named by the finished epochs, such as 0.25. It is stored only while a page watches, and nothing but the
picture of the training reads it: curves, selection and results are by epoch.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from udml_core.base.arrays import Array
from udml_core.base.files import append_line, read_array, read_lines, replace_array
from udml_core.runs.folder import Run

FOLDER, ROWS, WATCHED = "live", "live.jsonl", "watched"
ATTENTION = 5.0
"""Seconds for which a page that has looked at a run counts as watching it."""


def mark_watched(run: Run) -> None:
    """Note that a page watches a run, so that its steps are stored."""
    with suppress(OSError):  # a removed run, or a folder that cannot be written
        (run.folder / WATCHED).touch()


def is_watched(run: Run) -> bool:
    """Return whether a page has looked at a run within the last seconds."""
    try:
        return abs(time.time() - (run.folder / WATCHED).stat().st_mtime) < ATTENTION
    except OSError:
        return False


def write_step(run: Run, row: Mapping[str, Any], sample: Array, trained: Array | None) -> None:
    """Store a step.

    Args:
        run: The run.
        row: Its measures; `epoch` is the number of finished epochs with the share of the current epoch.
        sample: Embedding (j, l) of the test images that curves are computed from.
        trained: Embedding (t, l) of a fixed sample of training images.
    """
    run.check_writable()
    (run.folder / FOLDER).mkdir(exist_ok=True)
    for name, rows in (("sample", sample), ("trained", trained)):
        if rows is not None:
            replace_array(run.folder / FOLDER / _file(row["epoch"], name), rows.astype(np.float16))
    append_line(run.folder / ROWS, row)


def step_rows(run: Run) -> list[dict[str, Any]]:
    """Read the measures of the stored steps, ascending; a step that a resumed run took again counts once.

    Steps of an epoch that is not finished are among them.
    """
    rows, _ = read_lines(run.folder / ROWS, 0)
    by_epoch = {float(row["epoch"]): row for row in rows if isinstance(row.get("epoch"), float)}
    return [by_epoch[number] for number in sorted(by_epoch)]


def step_embedding(run: Run, number: float, of_training: bool) -> Array:
    """Read the embedding (s, l) after a step.

    Args:
        run: The run.
        number: Its number.
        of_training: Whether the embedding of training images is read, else of test images.

    Raises:
        UserError: The file is missing or damaged.
    """
    path = run.folder / FOLDER / _file(number, "trained" if of_training else "sample")
    return np.asarray(read_array(path), dtype=np.float32)


def _file(number: float, name: str) -> str:
    return f"{number:08.3f}-{name}.npy"
