"""Export the files of a run and tables of its images."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from udml_core.data.dataset import Dataset
from udml_core.numerics.neighbors import build_index, write_index
from udml_core.runs import Run
from udml_core.runs.analyses import Analysis
from udml_core.runs.search import Retrieval
from udml_core.work.exporting import target
from udml_core.work.exporting.tables import TABLES, write_embeddings, write_image_list, write_images


def export(run: Run, folder: Path, dataset: Dataset | None = None, refinement: Analysis | None = None,
           force: bool = False) -> list[Path]:
    """Copy the results of a run into a new folder.

    Tables of the images and their embeddings are added. Excluded images are left out, so that row i of every table,
    every array and the search index is the same image. No file names a folder of this computer.

    Args:
        run: A finished run.
        folder: A new or empty folder.
        dataset: The run's data set, if it is loaded already.
        refinement: A finished refinement of the run, whose embedding and neighbors `images.parquet` then has.
        force: Whether the folder may also be an earlier export, which is replaced.

    Returns:
        The written files.

    Raises:
        UserError: The run or the refinement is not done, or the folder is not empty or cannot be written.
    """
    opened = Retrieval(run, dataset)
    with target.written_aside(folder, force) as aside:
        for path in run.files_to_export():
            shutil.copyfile(path, aside / path.name)
        if len(opened.split.excluded):
            _write_rows(opened, aside)
        write_spec(run, aside / target.SPEC)
        write_image_list(opened, aside / target.LIST)
        for which, name in TABLES.items():
            with (aside / name).open("wb") as file:
                write_embeddings(opened, which, file)
        with (aside / target.IMAGES).open("wb") as file:
            write_images(opened, file, refinement)
        names = sorted(path.name for path in aside.iterdir())
    return [folder / name for name in names]


def _write_rows(opened: Retrieval, folder: Path) -> None:
    """Write the arrays of embeddings and the search index again, without the excluded images."""
    copy = Run(folder)
    for which in TABLES:
        copy.write_embeddings(which, np.asarray(opened.run.embeddings(which)[opened.kept]))
    write_index(build_index(np.asarray(copy.embeddings("final"))), copy.index_path)


def write_spec(run: Run, path: Path) -> None:
    """Write the spec with the names of a folder of images and of a file of weights in place of their paths.

    The paths say who exported the run.
    """
    spec = run.spec()
    names = {"dataset": Path(spec.dataset).name, "weights": spec.weights and Path(spec.weights).name}
    path.write_text(spec.model_copy(update=names).model_dump_json(indent=1), encoding="utf-8")
