"""Exemplar: every image and its transformations are a class of their own.

A. Dosovitskiy, J. T. Springenberg, M. Riedmiller, T. Brox, "Discriminative Unsupervised Feature Learning with
Convolutional Neural Networks", NeurIPS 2014 (extended by P. Fischer in TPAMI 2016). It learns from images alone.

- Surrogate classes: N seed patches x_i, each of a different image, and K random transformations T of each. The class
  S_i = {T x_i} has the label i.
- Loss: Σ_i Σ_{T x_i ∈ S_i} −log softmax(g(T x_i))_i, with a linear classifier g of N classes. It is minimized if a
  network tells seeds apart and is invariant to the transformations.
- Transformations: translation and scaling by 0.7 to 1.4, rotation by up to 20°, changes of contrast and of color.

Left open, and decided here:
- The seed patch is the whole image, because retrieval embeds whole images; the paper cuts 32 pixels where the gradient
  is large from images of 96. Translation and scaling are crops of at least half of the area, 1/1.4². Contrast and
  color changes are brightness, contrast and saturation by up to 40 % and hue by a tenth of the color circle; the paper
  scales the pixels' principal components and the powers of saturation and value. Without `colors`, none changes.
- K is the number of kept views if a head or the last blocks are trained; otherwise each step draws new ones.
- The embedding is unit(unit(f)·W), the same as in every other method, and scores are divided by τ, because the
  embedding has unit length. The paper concatenates the pooled responses of all its layers.
- All training images are seeds; the paper finds about 8,000 best, because among more seeds some are too similar for a
  classifier.
- The classifier starts at the embeddings of the seeds, so that a good start is kept. `first_classifier` = "random" is
  the paper's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from udml_core.base.declaration import Shown
from udml_core.base.errors import UserError
from udml_core.data.augmentation import TRANSFORMATIONS, Augmentation
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Setting
from udml_core.methods.shared.classifier import (
    Classifier,
    FirstClassifier,
    Sharpness,
    classifier_seconds,
    random_weights,
)
from udml_core.methods.shared.distributed import agree
from udml_core.methods.shared.instance import Curves, InstanceMethod, Objective
from udml_core.methods.shared.training import Network, embed_training_half
from udml_core.numerics.sampling import generator


class Exemplar(InstanceMethod):
    """Classification of transformed images into one class for each seed image."""

    card: ClassVar[Card] = Card(
        name="exemplar",
        order=200,
        title="Exemplar",
        paper=("A. Dosovitskiy, J. T. Springenberg, M. Riedmiller, T. Brox: Discriminative Unsupervised Feature "
               "Learning with Convolutional Neural Networks."),
        summary=("Makes many randomly changed copies of single images and trains the network to tell which image a "
                 "copy comes from. It needs no labels, and helps if the random changes, such as crops and colors, do "
                 "not matter for your search."),
        idea=("Each seed image and its random transformations form a surrogate class. The network learns to classify "
              "a transformed image into the class of its seed, among all seeds. The embedding becomes invariant to the "
              "transformations and keeps what tells images apart."),
        supervision="none",
        promise="may fall",
        source=("PSLR's paper, tables 1 and 3–6: below instance discrimination without a classifier on small images, "
                "on birds and on products trained from scratch."))
    views: ClassVar[int] = 1

    main_fields: ClassVar[tuple[str, ...]] = ("classes", "temperature", "dimension", "trains", "epochs",
                                              "learning_rate")

    classes: Annotated[int, Field(ge=0, le=1_000_000), Shown(symbol="N", step=1000, high=32_000,
                                                             label="Surrogate classes")] = 0
    """Number of random training images that each become a surrogate class; at 0, all training images do."""

    first_classifier: Annotated[FirstClassifier, Shown(label="Initial classifier")] = "centers"
    """Initialize the classifier at the embeddings of the seeds, or at small random weights as in the paper."""

    temperature: Sharpness = 0.1
    """Divisor of the classifier's scores; lower values give the most similar seed a larger share."""

    def check(self, images: int, width: int | None) -> None:
        super().check(images, width)
        if self.classes == 1 or self.classes > images:
            raise UserError(f"Exemplar.classes must be 0 or between 2 and the number of training images {images}, got "
                            f"{self.classes}. Change the field 'classes'.")

    @property
    def augmentation(self) -> Augmentation:
        return TRANSFORMATIONS if self.colors else replace(TRANSFORMATIONS, jitter=None)

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        classes = self.classes or images
        return super().expected_seconds(classes, width, image_seconds) + classifier_seconds(classes, classes,
                                                                                            self.dimension)

    def objective(self, network: Network, data: TrainingData, setting: Setting) -> Objective:
        seeds = self.seed_images(len(data), setting.seed)
        if self.first_classifier == "random":
            weight = random_weights(len(seeds), self.dimension, generator(setting.seed, 0))
        else:
            weight = embed_training_half(network, data, setting.device)[seeds.to(setting.device)]
        agree([weight])
        return _Surrogate(weight, seeds, self.temperature).to(setting.device)

    def seed_images(self, images: int, seed: int) -> Tensor:
        """Return the seed of each surrogate class (N,) int64, as positions in the training half."""
        if not self.classes:
            return torch.arange(images)
        return torch.randperm(images, generator=generator(seed, -1))[: self.classes].sort().values


class _Surrogate(Objective):
    """The classifier of the surrogate classes."""

    def __init__(self, weight: Tensor, seeds: Tensor, temperature: float) -> None:
        super().__init__()
        self._seeds = seeds
        self.classifier = Classifier(weight, temperature)

    def batches(self, images: int, size: int, random: torch.Generator) -> Iterator[Tensor]:
        """Yield batches of seeds in random order; an incomplete last batch is dropped."""
        for batch in super().batches(len(self._seeds), min(size, len(self._seeds)), random):
            yield self._seeds[batch]

    def loss(self, instance: Tensor, batch: Tensor, random: torch.Generator) -> tuple[Tensor, Curves]:
        classes = torch.searchsorted(self._seeds, batch)
        return self.classifier.loss(instance, classes.to(instance.device))
