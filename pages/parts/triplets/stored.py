"""The triplets that a run stored for one epoch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from udml_core.base.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.exploration import triplets as views
from udml_core.exploration.gallery_content import Mark
from udml_core.numerics.explanations import Triplets
from udml_core.results.embedding_words import words_of
from udml_core.runs import Run

from ..shell.cached import dataset_of, load_split

ROLES: tuple[Mark, Mark, Mark] = ("anchor", "positive", "negative")
STAGES = {"initial": words_of("initial").title, "loss": "During training", "final": words_of("final").title}
"""When a triangle is drawn: in the embedding before or after training, or in the projection that the loss compares."""


@dataclass(frozen=True)
class StoredTriplets:
    """The stored triplets of an epoch, with their images.

    Attributes:
        run: The run.
        record: The t triplets.
    """

    run: Run
    record: Triplets

    @cached_property
    def dataset(self) -> Dataset:
        """The run's data set."""
        return dataset_of(self.run)

    @cached_property
    def shape(self) -> views.Shape:
        """The triangles in the space of the loss."""
        return views.recorded_shape(self.record)

    def stages(self, triplet: int) -> list[str]:
        """Return the names of `STAGES` whose triangles differ: after the last epoch, the loss and the result agree."""
        after, position = self.shape_at("final", triplet)
        same = np.isclose(after.angle[position], self.shape.angle[triplet], atol=0.05)
        return [name for name in STAGES if not (same and name == "loss")]

    def shape_at(self, stage: str, triplet: int) -> tuple[views.Shape, int]:
        """Return triangles at one of `STAGES`, and the position of a triplet's triangle among them."""
        if stage == "loss":
            return self.shape, triplet
        rows = self.images[:, triplet, None]
        return views.shape_in(self.run.embeddings("initial" if stage == "initial" else "final"), *rows), 0

    @cached_property
    def images(self) -> Array:
        """Data set indices of anchors, positives and negatives, (3, t)."""
        train = load_split(self.run).train
        return np.stack([train[part] for part in (self.record.anchor, self.record.positive, self.record.negative)])

    @cached_property
    def correct(self) -> tuple[Array, Array] | None:
        """Whether positives and negatives agree with the classes; None without classes.

        Both arrays are (t,) bool.
        """
        labels = self.dataset.labels
        return None if labels is None else views.truth(self.record, labels[load_split(self.run).train])

    def agrees(self, triplet: int) -> bool | None:
        """Return whether a triplet agrees with the classes; None without classes."""
        return None if self.correct is None else all(bool(part[triplet]) for part in self.correct)
