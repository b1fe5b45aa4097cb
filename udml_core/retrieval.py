"""Search in what a finished run learnt, beside what it started from."""

from __future__ import annotations

import csv
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.features import embed_pixels
from udml_core.data.splits import Split, make_split
from udml_core.errors import UserError
from udml_core.methods import Embedder
from udml_core.neighbors import build_index, read_index, search
from udml_core.runs import Run
from udml_core.tasks import ADVICE

Array = np.ndarray[Any, Any]
Which = Literal["initial", "final"]
Gallery = Literal["test", "all"]


@dataclass(frozen=True)
class Hit:
    """One retrieved image. similarity: the cosine. correct: whether it shares the query's class, None if unknown."""

    rank: int
    index: int
    similarity: float
    correct: bool | None


class Retrieval:
    """A run's gallery: every image of its data set, embedded before and after training.

    Raises:
        UserError: the run is not done, or its data set is gone or has changed.
    """

    def __init__(self, run: Run, dataset: Dataset | None = None) -> None:
        self.run = run
        self.spec = run.spec()
        status = run.status()
        if status.state != "done":
            raise UserError(f"The run {run.id} is {status.state}, so there is nothing to search yet. "
                            + ADVICE[status.state])
        self.dataset = dataset or catalog.load(self.spec.dataset)
        if self.dataset.fingerprint != self.spec.fingerprint:
            raise UserError(f"The data set '{self.spec.dataset}' has changed since the run {run.id}, so its images "
                            "no longer match what was learnt. Restore it, or train again.")

    @cached_property
    def split(self) -> Split:
        return make_split(self.dataset, self.spec.split)

    @cached_property
    def _final_index(self) -> Any:
        return read_index(self.run.index_path)

    @cached_property
    def _initial_index(self) -> Any:
        return build_index(self.run.embeddings("initial"))

    @cached_property
    def _final_embedder(self) -> Embedder:
        return Embedder.load(self.run.embedder_path)

    @cached_property
    def _initial_embedder(self) -> Embedder:
        return Embedder.load(self.run.initial_embedder_path)

    def search_item(self, index: int, k: int = 10, which: Which = "final", gallery: Gallery = "test") -> list[Hit]:
        """The k images nearest to one of the data set's own, which is left out.

        Raises:
            UserError: there is no such image.
        """
        if not 0 <= index < len(self.dataset):
            raise UserError(f"The images are numbered 0 to {len(self.dataset) - 1}, got {index}.")
        query = np.asarray(self.run.embeddings(which)[index])
        return self._search(query, k, which, gallery, index)

    def search_image(self, image: Image.Image, k: int = 10, which: Which = "final",
                     gallery: Gallery = "test") -> list[Hit]:
        """The k images nearest to one that a person brings."""
        embedder = self._final_embedder if which == "final" else self._initial_embedder
        pixels = embedder.encoder.prepare(image.convert("RGB"))
        return self._search(embed_pixels(embedder, pixels[None])[0], k, which, gallery, None)

    def _search(self, query: Array, k: int, which: Which, gallery: Gallery, own: int | None) -> list[Hit]:
        index = self._final_index if which == "final" else self._initial_index
        allowed = np.ones(len(self.dataset), dtype=bool)
        if gallery == "test":
            allowed[:] = False
            allowed[self.split.test] = True
        if own is not None:
            allowed[own] = False
        squared, found = search(index, query[None], k, allowed)
        labels = self.dataset.labels
        return [Hit(rank + 1, int(item), float(1.0 - distance / 2.0),
                    None if labels is None or own is None else bool(labels[item] == labels[own]))
                for rank, (distance, item) in enumerate(zip(squared[0], found[0], strict=True))]


def export(run: Run, folder: Path, dataset: Dataset | None = None) -> list[Path]:
    """Copy what a run learnt into a new folder, with a table of its images.

    Returns:
        The files written.

    Raises:
        UserError: the run is not done, or the folder has something in it already or cannot be written.
    """
    opened = Retrieval(run, dataset)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"Export needs a new or empty folder, and {folder} has something in it. Name another.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in run.files_to_export():
            shutil.copy2(path, folder / path.name)
        _write_table(opened, folder / "images.csv")
    except OSError as error:
        raise UserError(f"The export could not be written into {folder}: {error}. Name another folder.") from error
    return sorted(folder.iterdir())


def _write_table(opened: Retrieval, path: Path) -> None:
    is_test = np.isin(np.arange(len(opened.dataset)), opened.split.test)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["index", "image", "class", "test"])
        for index, name in enumerate(opened.dataset.names):
            label = "" if opened.dataset.labels is None else opened.dataset.class_names[opened.dataset.labels[index]]
            writer.writerow([index, name, label, int(is_test[index])])
