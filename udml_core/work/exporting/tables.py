"""Tables of a run's images and embeddings."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from udml_core.base.arrays import Array, Floats, Integers, rows_of
from udml_core.base.errors import UserError
from udml_core.base.spreadsheets import write_rows
from udml_core.data.dataset import Dataset
from udml_core.numerics.explanations import Clusters
from udml_core.numerics.neighbors import graph_neighbors
from udml_core.numerics.refinement import Recipe
from udml_core.runs import Run
from udml_core.runs.analyses import Analysis, find_analysis, finished_maps
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.search import Retrieval, Which
from udml_core.work.exporting import target

TABLES: dict[Which, str] = dict(zip(("initial", "final"), target.TABLES, strict=True))
NEIGHBORS = 15
"""Entries of a row's neighbors, the image itself included, as embedding-atlas writes by default."""
NO_CLUSTER = -1
CLASS_SEPARATOR = ";"
"""Separates the classes of an image that has several."""
CHUNK = 256
"""Rows whose neighbors' embeddings are in memory at a time."""


@dataclass(frozen=True, eq=False)
class Embedded:
    """An embedding as an export writes it.

    Attributes:
        name: `initial`, `final`, or the id of a refinement.
        indices: Image indices (m,), ascending.
        vectors: Embeddings (m, l).
        ranking: Rows (m, k) of the nearest images in the order of a refinement, which re-ranking changes; None for the
            order of the distances.
        note: What the vectors lack of a refinement, in a sentence; empty if nothing.
    """

    name: str
    indices: Integers
    vectors: Floats
    ranking: Integers | None = None
    note: str = ""

    @property
    def metadata(self) -> dict[str, str]:
        """The name and the note, as the metadata of a table."""
        return {"embedding": self.name} | ({"vectors": self.note} if self.note else {})

    @cached_property
    def nearest(self) -> tuple[Floats, Integers]:
        """Distances and rows (m, k) of the nearest images; each image is its own first neighbor."""
        if self.ranking is not None:
            rows = self.ranking[:, : NEIGHBORS - 1]
            return _after_itself(_distances(self.vectors, rows), rows)
        k = min(NEIGHBORS, len(self.vectors)) - 1
        nothing = np.zeros((len(self.vectors), 0))
        squared, rows = graph_neighbors(self.vectors, k) if k else (nothing, nothing.astype(np.int64))
        return _after_itself(np.sqrt(squared), rows)


def embedded_images(opened: Retrieval, which: Which) -> Embedded:
    """Return the embedding before (`initial`) or after training (`final`) of all images that are not excluded."""
    return Embedded(which, opened.kept, opened.frame(which).take(opened.kept))


def refined_images(refinement: Analysis) -> Embedded:
    """Return the embedding, the images and the neighbors of a refinement.

    Raises:
        UserError: The analysis is not a finished refinement.
    """
    result = refinement.result_of(Refinement)
    return Embedded(refinement.id, result.indices, result.embedding, result.neighbors, vectors_note(refinement))


def steps_without_vectors(refinement: Analysis) -> str:
    """Return the steps of a refinement that change its ranking but no vector, as `rerank` or `expand + diffuse`."""
    return " + ".join(step.name for step in Recipe.parse(refinement.spec().recipe).ranking_steps())


def vectors_note(refinement: Analysis) -> str:
    """Return what the vectors of a refinement lack, in a few sentences; empty if nothing."""
    steps = steps_without_vectors(refinement)
    return steps and (f"The vectors are the embedding before {steps}, which changes the ranking alone. The refined "
                      f"ranking is the column neighbors of {target.IMAGES}, and the measures after the refinement are "
                      "of that ranking, not of the vectors.")


def embedding_named(opened: Retrieval, name: str) -> Embedded:
    """Return the embedding that an export writes: a refinement of the run by its id, or else a trained one.

    Raises:
        UserError: The run has no such refinement, or it is not finished.
    """
    which = next((which for which in TABLES if which == name), None)
    return refined_images(find_analysis(opened.run, name)) if which is None else embedded_images(opened, which)


def write_embeddings(opened: Retrieval, embedded: Embedded, file: BinaryIO) -> None:
    """Write an embedding as a Parquet table.

    The columns are index (in the data set), image (its name), class (null without classes), test (bool) and e0, e1, …
    (float32). The metadata of the table names the run and the embedding, and says under `vectors`
    which steps of a refinement the vectors lack.

    Args:
        opened: The run.
        embedded: The embedding.
        file: The file to write to.
    """
    indices = embedded.indices
    columns = {"index": pa.array(indices, pa.int64()), "image": strings(opened.dataset.names, indices),
               "class": pa.array(class_names_of(opened.dataset, indices), pa.string()),
               "test": pa.array(_is_test(opened)[indices])}
    columns |= {f"e{number}": pa.array(np.ascontiguousarray(values))
                for number, values in enumerate(embedded.vectors.T)}
    parquet.write_table(pa.table(columns, metadata={"run": opened.run.id, **embedded.metadata}), file)


def embeddings_file(opened: Retrieval, name: str = "final") -> bytes:
    """Return the content of the file that `write_embeddings` writes of an embedding: a trained one, or a refinement."""
    content = io.BytesIO()
    write_embeddings(opened, embedding_named(opened, name), content)
    return content.getvalue()


def write_images(opened: Retrieval, embedded: Embedded, file: BinaryIO) -> None:
    """Write a Parquet table of the images for embedding-atlas, FiftyOne and LanceDB.

    The columns are:

    - index: Index of the image in the data set.
    - file_name: Name of the image; below the folder of the data set, if the images are files.
    - label: Class, several joined by semicolons; null without classes.
    - cluster: Last cluster that training assigned to a training image; null for other images and methods.
    - test: Whether the image is in the test half.
    - vector: Embedding, a list of fixed length.
    - projection_x, projection_y: Position on the run's map of this embedding (UMAP, else t-SNE, else PCA); null
      without a map.
    - neighbors: `ids` of the rows of the nearest images, the image itself first, and their Euclidean `distances`. A
      re-ranking has another order than the distances.

    The metadata of the table names the run, the embedding and the map, and says under `vectors` which steps of a
    refinement the vectors lack.

    Args:
        opened: The run.
        embedded: The embedding.
        file: The file to write to.
    """
    dataset, indices = opened.dataset, embedded.indices
    clusters, (positions, source) = _clusters(opened)[indices], _positions(opened.run, embedded)
    distances, rows = embedded.nearest
    columns = {
        "index": pa.array(indices, pa.int64()), "file_name": strings(dataset.names, indices),
        "label": pa.array(class_names_of(dataset, indices), pa.string()),
        "cluster": pa.array(clusters, pa.int32(), mask=clusters == NO_CLUSTER),
        "test": pa.array(_is_test(opened)[indices]), "vector": fixed_lists(embedded.vectors),
        "projection_x": pa.array(positions[:, 0], pa.float32(), mask=np.isnan(positions[:, 0])),
        "projection_y": pa.array(positions[:, 1], pa.float32(), mask=np.isnan(positions[:, 1])),
        "neighbors": pa.StructArray.from_arrays(
            [_lists(rows, pa.int32()), _lists(distances, pa.float32())], ["ids", "distances"])}
    metadata = {"run": opened.run.id, **embedded.metadata, "map": source}
    parquet.write_table(pa.table(columns, metadata=metadata), file)


def images_file(opened: Retrieval, name: str = "final") -> bytes:
    """Return the content of the file that `write_images` writes of an embedding: a trained one, or a refinement."""
    content = io.BytesIO()
    write_images(opened, embedding_named(opened, name), content)
    return content.getvalue()


def write_image_list(opened: Retrieval, indices: Integers, path: Path) -> None:
    """Write a CSV table of images: index in the data set, image (its name), class, test."""
    names, labels, is_test = opened.dataset.names, classes(opened.dataset), _is_test(opened)
    with path.open("w", newline="", encoding="utf-8") as file:
        write_rows(file, [["index", "image", "class", "test"], *(
            [index, names[index], labels[index] or "", int(is_test[index])] for index in indices.tolist())])


def classes(dataset: Dataset) -> list[str | None]:
    """Return the class of each image, several joined by semicolons; None without classes."""
    return class_names_of(dataset, np.arange(len(dataset)))


def class_names_of(dataset: Dataset, indices: Integers) -> list[str | None]:
    """Return the class of some images, several joined by semicolons; None without classes."""
    if dataset.evaluation_classes is not None:
        return [CLASS_SEPARATOR.join(dataset.class_names[number] for number in np.flatnonzero(row)) or None
                for row in dataset.evaluation_classes[indices]]
    if dataset.labels is None:
        return [None] * len(indices)
    return [dataset.class_names[label] for label in dataset.labels[indices]]


def _is_test(opened: Retrieval) -> Array:
    return np.isin(np.arange(len(opened.dataset)), opened.split.test)


def _distances(vectors: Floats, rows: Integers) -> Floats:
    """Return the Euclidean distances of each embedding (m, l) to its other rows (m, k)."""
    starts = range(0, len(rows), CHUNK)
    return np.concatenate([np.linalg.norm(vectors[start : start + CHUNK, None] - vectors[rows[start : start + CHUNK]],
                                          axis=2) for start in starts])


def _after_itself(distances: Floats, rows: Integers) -> tuple[Floats, Integers]:
    """Put each image before its neighbors (m, k), at distance 0."""
    return (np.hstack([np.zeros((len(rows), 1)), distances]), np.hstack([np.arange(len(rows))[:, None], rows]))


def _clusters(opened: Retrieval) -> Integers:
    """Return the last cluster of each image (n,) up to the kept epoch; `NO_CLUSTER` where training assigned none."""
    clusters = np.full(len(opened.dataset), NO_CLUSTER)
    run, spec = opened.run, opened.spec
    train = spec.halves(opened.dataset).train
    kept = run.kept_epoch()
    for number in (number for number in reversed(run.epoch_numbers()) if number <= kept):
        for record in run.explanations(number):
            if isinstance(record, Clusters) and len(record.labels) == len(train):
                clusters[train] = record.labels
                return clusters
    return clusters


def _positions(run: Run, embedded: Embedded) -> tuple[Floats, str]:
    """Return the positions (m, 2) of images on a map of their embedding, and the map's id.

    A map of all images comes before a map of some, whose other images have the position NaN. Without a map all have,
    and the id is empty.
    """
    positions = np.full((len(embedded.indices), 2), np.nan)
    for analysis in _maps(run, embedded.name):
        with suppress(UserError):  # a damaged map is passed over
            projection = analysis.projection()
            rows = rows_of(projection.indices, embedded.indices)
            positions[rows >= 0] = projection.positions[projection.frames.index(embedded.name)][rows[rows >= 0]]
            return positions, analysis.id
    return positions, ""


def _maps(run: Run, frame: str) -> list[Analysis]:
    """List the finished maps of a frame, the preferred one first."""
    return [analysis for analysis in finished_maps(run) if frame in analysis.spec().frames]


def strings(values: Sequence[str], indices: Integers) -> pa.Array:
    """Return the texts of some images as a column."""
    return pa.array([values[index] for index in indices], pa.string())


def fixed_lists(rows: Floats) -> pa.Array:
    """Return rows (m, l) as lists of l numbers."""
    values = pa.array(np.ascontiguousarray(rows, dtype=np.float32).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(values, rows.shape[1])


def _lists(rows: Array, kind: pa.DataType) -> pa.Array:
    """Return rows (m, k) as lists of variable length."""
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(offsets, pa.array(rows.reshape(-1), kind))
