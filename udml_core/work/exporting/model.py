"""Export a run's model: a folder that other programs can use."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from udml_core import __version__
from udml_core.base.arrays import Integers, evenly_spaced
from udml_core.base.errors import UserError
from udml_core.base.files import jsonable
from udml_core.base.paths import python_path
from udml_core.base.spreadsheets import write_rows
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import Encoder, check_reads_images, graphs
from udml_core.data.encoders.body import Preparation
from udml_core.methods import Embedder
from udml_core.numerics.neighbors import build_index, write_index
from udml_core.runs import Run
from udml_core.runs.search import Retrieval
from udml_core.runs.search.same import same_threshold
from udml_core.work.exporting import onnx_graph, target
from udml_core.work.exporting.card import write_card
from udml_core.work.exporting.onnx_graph import Agreement
from udml_core.work.exporting.tables import classes

EXAMPLE = Path(__file__).with_name(target.SEARCH)
COMPARED = 16
"""Number of test images on which the ONNX graph is compared with torch."""
ARCHIVE = "model"


def export_model(run: Run, folder: Path, dataset: Dataset | None = None, onnx: bool = True,
                 force: bool = False, license_name: str = "") -> list[Path]:
    """Write a run's final model to a new folder.

    The folder contains the weights of encoder and head, their description, a model card, the search index and the list
    of the gallery, and an ONNX graph with an example that searches without torch. No file names a folder of this
    computer.

    Args:
        run: A finished run.
        folder: A new or empty folder.
        dataset: The run's data set, if it is loaded already.
        onnx: Whether to write the ONNX graph and the example.
        force: Whether the folder may also be an earlier export, which is replaced.
        license_name: The license that the model card names, such as `apache-2.0`; empty if unknown.

    Returns:
        The written files.

    Raises:
        UserError: The run is not done or is on a table of embeddings, the folder is not empty or cannot be written, or
            the ONNX graph cannot be written or disagrees with torch.
    """
    check_reads_images(run.spec().encoder, "The export of a model")
    opened = Retrieval(run, dataset)
    final = opened.frame("final")
    embedder = final.model.embedder
    with target.written_aside(folder, force) as aside:
        embedder.save(aside / target.WEIGHTS, whole=True)
        gallery = opened.kept  # the images that a search in the app covers
        write_index(build_index(final.take(gallery)), aside / target.INDEX)
        _write_gallery(opened.dataset, gallery, aside / target.GALLERY)
        agreement = None
        if onnx:
            agreement = _write_onnx(opened, embedder, aside / target.ONNX)
            if embedder.encoder.preparation == Preparation():  # the only one that the example knows
                shutil.copyfile(EXAMPLE, aside / target.SEARCH)
        config = _describe(opened, embedder, len(gallery), agreement)
        (aside / target.CONFIG).write_text(json.dumps(jsonable(config), indent=1), encoding="utf-8")
        write_card(opened, config, aside / target.CARD, license_name)
        names = sorted(path.name for path in aside.iterdir())
    return [folder / name for name in names]


def model_archive(run: Run) -> bytes:
    """Return a ZIP file of the folder that `export_model` writes; without an ONNX graph if it cannot be written.

    Another process writes the folder, because torch converts a network in one thread of a process only.

    Raises:
        UserError: The folder could not be written.
    """
    content = io.BytesIO()
    with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        folder = Path(place) / ARCHIVE
        if _failure(run, folder) and (message := _failure(run, folder, "--no-onnx")):
            raise UserError(message)
        for path in sorted(folder.iterdir()):
            archive.write(path, f"{ARCHIVE}/{path.name}")
    return content.getvalue()


def _failure(run: Run, folder: Path, *options: str) -> str:
    """Write the model folder in another process, and return its message if it fails."""
    environment = os.environ | {"PYTHONPATH": python_path(), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run([sys.executable, "-m", "udml_core", "export", str(run.folder), str(folder), "--model",
                           *options], stdin=subprocess.DEVNULL, capture_output=True, check=False, env=environment)
    lines = done.stderr.decode(errors="replace").split("\n")
    message = next((line.strip() for line in reversed(lines) if line.strip()), "The model could not be exported.")
    return message if done.returncode else ""


def _write_gallery(dataset: Dataset, gallery: Integers, path: Path) -> None:
    """Write the name and class of each image (m,) in the order of the index."""
    labels = classes(dataset)
    with path.open("w", newline="", encoding="utf-8") as file:
        write_rows(file, [["file_name", "label"], *([dataset.names[index], labels[index] or ""] for index in gallery)])


def _write_onnx(opened: Retrieval, embedder: Embedder, path: Path) -> Agreement:
    """Write the ONNX graph and compare it with torch on evenly spaced test images."""
    onnx_graph.write_onnx(embedder, path)
    test = opened.split.test
    chosen = test[evenly_spaced(len(test), COMPARED)]
    images = (opened.dataset.images[int(index)] for index in chosen)
    return onnx_graph.compare(path, embedder, np.stack([embedder.encoder.prepare(image) for image in images]))


def _normalization(encoder: Encoder) -> dict[str, Any]:
    """Return how a network reads the pixels of a prepared image."""
    return {"order": "BGR" if encoder.bgr else "RGB", "mean": encoder.mean.flatten().tolist(),
            "divisor": encoder.deviation.flatten().tolist()}


def _describe(opened: Retrieval, embedder: Embedder, gallery: int, agreement: Agreement | None) -> dict[str, Any]:
    """Return the content of the description of a model."""
    spec, encoder = opened.spec, embedder.encoder
    description: dict[str, Any] = {
        "format": target.FORMAT, "version": __version__, "run": opened.run.id,
        "method": {"name": spec.method, "fields": spec.fields, "seed": spec.seed},
        "encoder": encoder.spec.model_dump() | {"trained": embedder.trained},
        "preprocessing": {
            "image": "upright by EXIF orientation, on white where transparent, RGB",
            "square": encoder.preparation.describe(encoder.spec.size),
            "size": encoder.spec.size, "input": "uint8, 0 to 255, (images, 3, size, size)",
            "inside_the_model": {part.spec.backbone: _normalization(part) for part in encoder.part_encoders}
                                if encoder.spec.parts else _normalization(encoder)},
        "embedding": {"dimension": opened.frame("final").rows.shape[1], "unit_length": embedder.head.normalized,
                      "distance": "Euclidean"},
        "gallery": {"images": gallery, "index": target.INDEX, "list": target.GALLERY}}
    if (threshold := same_threshold(opened)) is not None:
        description["same"] = threshold.describe() | {"sentence": threshold.sentence}
    if agreement is not None:
        description["onnx"] = {
            "input": graphs.INPUT, "output": graphs.OUTPUT, "opset": graphs.OPSET,
            "compared_images": agreement.images, "smallest_cosine_similarity": agreement.cosine,
            "largest_relative_distance": agreement.difference}
    return description
