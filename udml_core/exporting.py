"""Export a run: its files in a folder, and its embeddings as tables."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.errors import UserError
from udml_core.retrieval import Retrieval, Which
from udml_core.runs import Run

TABLES: dict[Which, str] = {"initial": "embeddings-initial.parquet", "final": "embeddings.parquet"}


def export(run: Run, folder: Path, dataset: Dataset | None = None) -> list[Path]:
    """Copy the results of a run into a new folder.

    Tables of the images and their embeddings are added. No file names a folder of this computer.

    Args:
        run: A finished run.
        folder: A new or empty folder.
        dataset: The run's data set, if it is loaded already.

    Returns:
        The written files.

    Raises:
        UserError: The run is not done, or the folder is not empty or cannot be written.
    """
    opened = Retrieval(run, dataset)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"An export needs a new or empty folder, and {folder} is neither. Choose another folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in run.files_to_export():
            shutil.copyfile(path, folder / path.name)
        _write_spec(run, folder / "spec.json")
        _write_images(opened, folder / "images.csv")
        for which, name in TABLES.items():
            with (folder / name).open("wb") as file:
                write_embeddings(opened, which, file)
    except OSError as error:
        raise UserError(f"The export could not be written to {folder}: {error}. Choose another folder.") from error
    return sorted(folder.iterdir())


def write_embeddings(opened: Retrieval, which: Which, file: BinaryIO) -> None:
    """Write the embeddings of all images as a Parquet table.

    The columns are index, image (its name), class (null without classes), test (bool) and e0, e1, … (float32). The
    metadata of the table names the run and the embedding.

    Args:
        opened: The run.
        which: The embedding before training (`initial`) or after (`final`).
        file: The file to write to.
    """
    embeddings = opened.run.embeddings(which)
    columns = {"index": pa.array(np.arange(len(embeddings))), "image": pa.array(opened.dataset.names, pa.string()),
               "class": pa.array(_classes(opened.dataset), pa.string()), "test": pa.array(_is_test(opened))}
    columns |= {f"e{number}": pa.array(np.ascontiguousarray(values)) for number, values in enumerate(embeddings.T)}
    parquet.write_table(pa.table(columns, metadata={"run": opened.run.id, "embedding": which}), file)


def embeddings_file(opened: Retrieval, which: Which) -> bytes:
    """Return the content of the file that `write_embeddings` writes."""
    content = io.BytesIO()
    write_embeddings(opened, which, content)
    return content.getvalue()


def _write_spec(run: Run, path: Path) -> None:
    """Write the spec with the names of a folder of images and of a file of weights in place of their paths.

    The paths say who exported the run.
    """
    spec = run.spec()
    names = {"dataset": Path(spec.dataset).name, "weights": spec.weights and Path(spec.weights).name}
    path.write_text(spec.model_copy(update=names).model_dump_json(indent=1), encoding="utf-8")


def _write_images(opened: Retrieval, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["index", "image", "class", "test"])
        rows = zip(opened.dataset.names, _classes(opened.dataset), _is_test(opened), strict=True)
        writer.writerows([index, name, label or "", int(test)] for index, (name, label, test) in enumerate(rows))


def _classes(dataset: Dataset) -> list[str | None]:
    if dataset.labels is None:
        return [None] * len(dataset)
    return [dataset.class_names[label] for label in dataset.labels]


def _is_test(opened: Retrieval) -> Array:
    return np.isin(np.arange(len(opened.dataset)), opened.split.test)
