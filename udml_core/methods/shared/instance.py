"""Losses of random views, shared by instance discrimination, contrastive losses and pseudo-labels.

This module has views, batches, SGD, several processes and the state.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from udml_core.base.declaration import Shown
from udml_core.base.errors import UserError
from udml_core.data.augmentation import COLORS, CROPS, Augmentation
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Epoch, Method, Setting, State
from udml_core.methods.embedder import AnyHead, Embedder
from udml_core.methods.fields import (
    BatchNorm,
    BatchSize,
    Beginning,
    Dimension,
    Epochs,
    KeptViews,
    Momentum,
    Trains,
    WeightDecay,
)
from udml_core.methods.shared.distributed import (
    agree,
    average_gradients,
    gather_rows,
    is_first,
    own_part,
    without_averaging,
)
from udml_core.methods.shared.epoch_loop import NetworkLoop
from udml_core.methods.shared.projection import check_projection, first_network
from udml_core.methods.shared.training import Network, random_views, trained_parameters
from udml_core.numerics.explanations import Explanation

Curves = dict[str, Tensor]


class Objective(nn.Module, ABC):
    """The loss of instance features, and what it learns or stores.

    Parameters and memory beside the network belong to it.

    Attributes:
        restarted: Parameters that `begin` has set to new values, so that their momentum is forgotten.
    """

    restarted: tuple[nn.Parameter, ...] = ()

    def begin(self, network: Network, data: TrainingData) -> None:
        """Prepare an epoch."""

    def batches(self, images: int, size: int, random: torch.Generator) -> Iterator[Tensor]:
        """Yield positions (b,) of the training half in random order.

        An incomplete last batch is dropped.
        """
        order = torch.randperm(images, generator=random)
        yield from order[: images - images % size].split(size)

    def watch(self, views: Tensor, images: int) -> None:
        """See the views (views·s, …) of this process's part of a batch of `images` before they pass the network."""

    @abstractmethod
    def loss(self, instance: Tensor, batch: Tensor, random: torch.Generator) -> tuple[Tensor, Curves]:
        """Return the batch's loss () and curves.

        Args:
            instance: Unit rows (views·m, l), the second views below the first.
            batch: Positions (m,) in the training half, on the CPU.
            random: Random stream for noise; the same in every process.
        """

    def remember(self, instance: Tensor, batch: Tensor) -> None:
        """Store the instance features of a batch after its step."""

    def head(self, weight: Tensor) -> AnyHead | None:
        """Return the head of the embedder; None for the network's own linear head."""
        return None

    def explained(self, network: Network, data: TrainingData) -> tuple[Explanation, ...]:
        """Return the explanations of an epoch."""
        return ()


class InstanceMethod(Method, ABC):
    """Instance features x = unit(unit(f)·W) of random views, trained by SGD.

    The papers' projection has a bias and, on pretrained networks, a batch normalization before it. Here it is the same
    linear head as in every other method.
    """

    shares_batches: ClassVar[bool] = True
    views: ClassVar[int] = 2
    """Number of views of each image in a batch."""

    colored: ClassVar[Augmentation] = COLORS
    """The augmentation of the views if `colors` is on."""

    dimension: Dimension = 128
    trains: Trains = "head"

    epochs: Epochs = 20
    """Epochs. From scratch, the paper trains for 200."""

    learning_rate: Annotated[float, Field(ge=0, le=10), Shown(low=1e-5, high=1.0, logarithmic=True)] = 1e-3
    """Learning rate of SGD, or of AdamW in STML. PSLR's paper uses 0.03 from scratch and 0.001 for pretrained
    encoders."""

    schedule: Annotated[Literal["constant", "steps", "cosine"], Shown(label="Learning rate schedule")] = "constant"
    """Keep the learning rate; divide it by 10 after 60 % and again after 80 % of the epochs, as PSLR's paper does from
    scratch (after 120 and 160 of 200); or lower it along half a cosine toward 0."""

    momentum: Momentum = 0.9
    """Momentum of SGD, or β₁ of AdamW in STML."""

    weight_decay: WeightDecay = 5e-4
    """Weight decay of SGD, or of AdamW in STML."""

    batch: BatchSize = 128
    """Images in a batch. PSLR's paper uses 128 from scratch and 64 for pretrained encoders."""

    parts: Annotated[int, Field(ge=1, le=256), Shown(step=1, high=16, label="Parts of a batch")] = 1
    """Number of parts in which a batch passes the encoder. More parts need less memory and twice the forward passes;
    the gradient stays that of the whole batch, but batch normalization sees the parts."""

    kept_views: KeptViews = 4
    """Views of each image that are cached unless the whole encoder is trained: frozen features of random views for the
    head, and activations of the whole image and of random views for the last blocks."""

    colors: Annotated[bool, Shown(label="Color augmentation")] = False
    """Change the colors of the views and turn a fifth of them gray, as PSLR's paper does for small images. SimCLR and
    SupCon then crop smaller parts as well; Exemplar changes colors more and turns none gray."""

    beginning: Beginning = "pca"
    batch_norm: BatchNorm = "frozen"

    @property
    def augmentation(self) -> Augmentation:
        return self.colored if self.colors else CROPS

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        steps = images / self.batch * (0.003 + 2e-9 * self.views * self.batch * width * self.dimension)
        return steps + (3 * self.views * images * image_seconds if self.trains_encoder else 0)

    def check(self, images: int, width: int | None) -> None:
        check_projection(type(self).__name__, self.dimension, self.beginning, images, width)
        if images < 2:
            raise UserError(f"{type(self).__name__} compares images with each other and needs at least 2, got "
                            f"{images}. Add images.")

    def rate(self, epoch: int) -> float:
        """Return the learning rate in an epoch, counted from 1."""
        if self.schedule == "constant":
            return self.learning_rate
        if self.schedule == "cosine":
            return self.learning_rate * (1 + math.cos(math.pi * (epoch - 1) / self.epochs)) / 2
        return self.learning_rate * 0.1 ** sum(epoch > share * self.epochs for share in (0.6, 0.8))

    def initial(self, data: TrainingData, setting: Setting) -> Embedder:
        return self._network(data, setting).embedder(setting.encoder)

    def draw_views(self, inputs: Tensor, random: torch.Generator, whole: int, first: int, size: int) -> Tensor:
        """Return the views (views·s, …) of a part of s images of a batch; see `random_views` for the arguments."""
        return random_views(inputs, self.views, random, self.augmentation if self.crops_images else None, whole, first,
                            size)

    def optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        """Return the optimizer of the trained parameters, by default SGD."""
        return torch.optim.SGD(parameters, lr=self.learning_rate, momentum=self.momentum,
                               weight_decay=self.weight_decay)

    @abstractmethod
    def objective(self, network: Network, data: TrainingData, setting: Setting) -> Objective:
        """Return the objective before the first epoch, on the device."""

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        yield from InstanceLoop(self, data, setting, start).run()

    def _network(self, data: TrainingData, setting: Setting) -> Network:
        return first_network(self, data, setting, self.dimension, self.beginning)


class InstanceLoop(NetworkLoop[InstanceMethod]):
    """The network, the objective, and the optimizer of both."""

    def __init__(self, method: InstanceMethod, data: TrainingData, setting: Setting, start: State | None) -> None:
        network = method._network(data, setting)
        self.objective = method.objective(network, data, setting)
        modules = {"network": network, "objective": self.objective}
        named = [(f"{name}.{key}", parameter) for name, module in modules.items()
                 for key, parameter in trained_parameters(module)]
        optimizer = method.optimizer([parameter for _, parameter in named])
        super().__init__(method, data, setting, start, network, optimizer, modules, named)
        agree(self.objective.buffers())

    def _batches(self, epoch: int, random: torch.Generator) -> Iterable[Tensor]:
        method = self.method
        for group in self._optimizer.param_groups:
            group["lr"] = method.rate(epoch)
        self.objective.begin(self.network, self.data)
        for parameter in self.objective.restarted:
            self._optimizer.state.pop(parameter, None)
        return self.objective.batches(len(self.data), min(method.batch, len(self.data)), random)

    def _train(self, epoch: int, random: torch.Generator) -> dict[str, float]:
        curves = super()._train(epoch, random)
        if is_first():
            self.explained += self.objective.explained(self.network, self.data)
        return curves

    def _embedder(self) -> Embedder:
        return self.network.embedder(self.setting.encoder, self.objective.head(self.network.weight))

    def _step(self, batch: Tensor, inputs: Tensor, random: torch.Generator) -> Curves:
        """Take one step on the whole batch's loss and return the curves."""
        views = self.method.draw_views(inputs, random, len(batch), own_part(batch)[1], self.setting.encoder.spec.size)
        self.objective.watch(views, len(batch))
        self._optimizer.zero_grad(set_to_none=True)
        parts = views.chunk(self.method.parts)
        instance = self._replica(views) if len(parts) == 1 else self._embed_parts(parts).requires_grad_()
        rows = gather_rows(instance, self.method.views, len(batch))
        loss, curves = self.objective.loss(rows, batch, random)
        loss.backward()
        if len(parts) > 1:
            # The loss needs all instance features at once, but the encoder's activations do not fit into memory. So
            # the loss gives the gradient of each instance feature, and a second pass takes it through the encoder.
            assert instance.grad is not None
            self._backward_parts(parts, instance.grad.chunk(len(parts)))
        average_gradients(self.objective.parameters())
        self._optimizer.step()
        self.objective.remember(rows.detach(), batch)
        return {"loss": loss.detach()} | curves

    def _embed_parts(self, parts: tuple[Tensor, ...]) -> Tensor:
        """Return the instance features of all parts without a gradient.

        The statistics of batch normalization are restored, because the parts pass the network a second time.
        """
        before = [buffer.clone() for buffer in self.network.buffers()]
        with torch.no_grad():
            instance = torch.cat([self.network(part) for part in parts])
        for buffer, value in zip(self.network.buffers(), before, strict=True):
            buffer.copy_(value)
        return instance

    def _backward_parts(self, parts: tuple[Tensor, ...], gradients: tuple[Tensor, ...]) -> None:
        """Propagate the instance features' gradients through the network in parts."""
        for part, gradient in zip(parts[:-1], gradients[:-1], strict=True):
            with without_averaging(self._replica):
                self._replica(part).backward(gradient)
        self._replica(parts[-1]).backward(gradients[-1])


def measure_alignment(rows: Tensor, name: str = "") -> Curves:
    """Return the mean similarity of an image's two views and of any two rows.

    Both are 1 if the embedding collapses.

    Args:
        rows: Unit rows (2m, l), the second views below the first.
        name: Prefix of the curves' names.
    """
    with torch.no_grad():
        first, second = rows.chunk(2)
        return {f"{name}positive similarity": (first * second).sum(1).mean(),
                f"{name}mean similarity": rows.mean(0).square().sum()}
