"""Export the files of a run and tables of its images."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from udml_core.data.dataset import Dataset
from udml_core.numerics.neighbors import build_index, write_index
from udml_core.runs import Run
from udml_core.runs.analyses import Analysis
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.search import Retrieval, Which
from udml_core.work.exporting import target
from udml_core.work.exporting.tables import (
    TABLES,
    Embedded,
    embedded_images,
    refined_images,
    vectors_note,
    write_embeddings,
    write_image_list,
    write_images,
)


def export(run: Run, folder: Path, dataset: Dataset | None = None, refinement: Analysis | None = None,
           force: bool = False) -> list[Path]:
    """Copy the results of a run into a new folder.

    Tables of the images and their embeddings are added. Excluded images are left out, so that row i of every table,
    every array and the search index is the same image. No file names a folder of this computer.

    Args:
        run: A finished run.
        folder: A new or empty folder.
        dataset: The run's data set, if it is loaded already.
        refinement: A finished refinement of the run. Its images and its embedding are then exported, with its measures
            in place of the model, the curves and the evaluation, which are of the embedding before it.
        force: Whether the folder may also be an earlier export, which is replaced.

    Returns:
        The written files.

    Raises:
        UserError: The run or the refinement is not done, or the folder is not empty or cannot be written.
    """
    opened = Retrieval(run, dataset)
    embedded: dict[Which, Embedded] = ({which: embedded_images(opened, which) for which in TABLES}
                                       if refinement is None else {"final": refined_images(refinement)})
    with target.written_aside(folder, force) as aside:
        for path in run.files_to_export():
            if refinement is None or path.name not in target.UNREFINED:
                shutil.copyfile(path, aside / path.name)
        if refinement is not None:
            _write_measures(refinement, aside / target.REFINEMENT)
        if refinement is not None or len(opened.split.excluded):
            _write_arrays(aside, embedded)
        write_spec(run, aside / target.SPEC)
        write_image_list(opened, embedded["final"].indices, aside / target.LIST)
        for which, of in embedded.items():
            with (aside / TABLES[which]).open("wb") as file:
                write_embeddings(opened, of, file)
        with (aside / target.IMAGES).open("wb") as file:
            write_images(opened, embedded["final"], file)
        names = sorted(path.name for path in aside.iterdir())
    return [folder / name for name in names]


def _write_arrays(folder: Path, embedded: Mapping[Which, Embedded]) -> None:
    """Write arrays of embeddings and the search index again, of the images that are exported."""
    copy = Run(folder)
    for which, of in embedded.items():
        copy.write_embeddings(which, of.vectors)
    write_index(build_index(embedded["final"].vectors), copy.index_path)


def _write_measures(refinement: Analysis, path: Path) -> None:
    """Write what a refinement did, which images it saw, and its measures before and after."""
    result = refinement.result_of(Refinement)
    told = {"id": refinement.id, "recipe": refinement.spec().recipe, "images": len(result.indices),
            "vectors": vectors_note(refinement) or "The vectors are the refined embedding.",
            **refinement.spec().build_kind().findings(lambda: result)}
    path.write_text(json.dumps(told, indent=1), encoding="utf-8")


def write_spec(run: Run, path: Path) -> None:
    """Write the spec with the names of a folder of images and of a file of weights in place of their paths.

    The paths say who exported the run.
    """
    spec = run.spec()
    names = {"dataset": Path(spec.dataset).name, "weights": spec.weights and Path(spec.weights).name}
    path.write_text(spec.model_copy(update=names).model_dump_json(indent=1), encoding="utf-8")
