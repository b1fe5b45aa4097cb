"""Truncated features: the first numbers of the features, as an example of a method."""

from collections.abc import Iterator
from typing import ClassVar

import torch

from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Epoch, Method, Setting, State
from udml_core.methods.embedder import Embedder, Head
from udml_core.methods.fields import Dimension


class Truncated(Method):
    """Keep the first dimensions of the features."""

    card: ClassVar[Card] = Card(
        name="truncated",
        title="Truncated features",
        paper="An example.",
        summary="Keeps the first numbers that describe each image and drops the rest. It needs no labels.",
        idea="Keep the first dimensions. Learn nothing. Show how little code a method needs.",
        supervision="none",
        promise="may fall",
        source="It discards features.")

    dimension: Dimension = 64
    """Width of the embedding."""

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        if start is None:  # otherwise the only epoch is done
            head = Head(torch.eye(data.features.shape[1])[:, : self.dimension].to(setting.device))
            yield Epoch(1, {}, Embedder(setting.encoder, head), (), {"epoch": torch.tensor(1)})
