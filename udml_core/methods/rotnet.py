"""RotNet: the network learns by how many degrees an image was rotated.

S. Gidaris, P. Singh, N. Komodakis, "Unsupervised Representation Learning by Predicting Image Rotations", ICLR 2018.
Equation numbers are that paper's. It learns from images alone.

- Transformations g(X | y): X rotated by 90° · (y − 1), y = 1 … K with K = 4, by flips and transposition, so that no
  pixel is interpolated and nothing but the content shows the rotation.
- Loss: (1/n) Σ_i −(1/K) Σ_y log F^y(g(X_i | y)) (eq. 2 and 3), where F^y is the softmax of a linear classifier. Every
  image of a batch is in it in all four rotations, which the paper finds better than one at random.
- The classifier is discarded after training.

Left open, and decided here:
- The embedding is unit(unit(f)·W), the same as in every other method; the paper evaluates the feature maps of inner
  layers, because the last layers become specific to rotations. Scores are divided by τ, because the embedding has
  unit length.
- Views are random crops and flips before they are rotated. The kept views of a head or of the last blocks are random
  crops as well, each in all four rotations; a step draws one crop of each image.
- The classifier starts at small random weights.
- SGD without Nesterov's acceleration, which the authors' code uses.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from udml_core.data.augmentation import Augmentation, QuarterTurns, quarter_turns
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Setting
from udml_core.methods.shared.classifier import Classifier, Sharpness, random_weights
from udml_core.methods.shared.instance import Curves, InstanceMethod, Objective
from udml_core.methods.shared.training import Network
from udml_core.numerics.sampling import generator

ROTATIONS = 4


class RotNet(InstanceMethod):
    """Classification of each view into one of four rotations."""

    card: ClassVar[Card] = Card(
        name="rotnet",
        order=220,
        title="RotNet",
        paper=("S. Gidaris, P. Singh, N. Komodakis: Unsupervised Representation Learning by Predicting Image "
               "Rotations."),
        summary=("Turns each image by 0, 90, 180 and 270 degrees and trains the network to tell the rotation. It "
                 "needs no labels but images with a clear upright position, and trains the whole network; it does "
                 "not compare images, so search may not improve."),
        idea=("Rotate each image by 0, 90, 180 and 270 degrees, and train the network to predict the rotation. To know "
              "which side is up, the network must recognize what the image shows. No two images are compared, so "
              "nothing makes the embedding tell similar images apart."),
        supervision="none",
        promise="may fall",
        source=("The paper evaluates inner layers by trained classifiers, not retrieval. A head on frozen features can "
                "only learn the directions in which rotations differ."))
    views: ClassVar[int] = ROTATIONS

    main_fields: ClassVar[tuple[str, ...]] = ("temperature", "kept_views", "dimension", "trains", "epochs",
                                              "learning_rate")

    temperature: Sharpness = 0.1
    """Divisor of the classifier's scores; lower values allow more certain predictions."""

    @property
    def cached_views(self) -> int:
        return ROTATIONS * self.kept_views + (self.trained_part == "last")  # activations begin with the whole image

    @property
    def augmentation(self) -> Augmentation:
        return QuarterTurns(**vars(super().augmentation))

    def draw_views(self, inputs: Tensor, random: torch.Generator, whole: int, first: int, size: int) -> Tensor:
        """Return a random view of each image in four rotations, (4s, …), ordered by rotation."""
        part = slice(first, first + len(inputs))
        if self.crops_images:
            draws = self.augmentation.draw(whole, random)[part]
            return torch.cat(quarter_turns(self.augmentation.apply(inputs, draws, size)))
        crops = inputs[:, -ROTATIONS * self.kept_views :].unflatten(1, (self.kept_views, ROTATIONS))
        chosen = torch.randint(self.kept_views, (whole,), generator=random)[part].to(inputs.device)
        return crops[torch.arange(len(inputs), device=inputs.device), chosen].transpose(0, 1).flatten(0, 1)

    def objective(self, network: Network, data: TrainingData, setting: Setting) -> Objective:
        return _Rotations(self, setting.seed).to(setting.device)


class _Rotations(Objective):
    """The classifier of the rotations."""

    def __init__(self, method: RotNet, seed: int) -> None:
        super().__init__()
        self.classifier = Classifier(random_weights(ROTATIONS, method.dimension, generator(seed, 0)),
                                     method.temperature)

    def loss(self, instance: Tensor, batch: Tensor, random: torch.Generator) -> tuple[Tensor, Curves]:
        rotations = torch.arange(ROTATIONS, device=instance.device).repeat_interleave(len(batch))
        return self.classifier.loss(instance, rotations)
