"""Train the small CNN by the formulas alone, as a reference for all methods on random views.

Views, layers, batch normalization, gradient steps and rates are written out here. The package provides only the random
streams, the starting weights and the method under test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv2d, interpolate, max_pool2d

from udml_core.data.encoders import Encoder, EncoderSpec
from udml_core.data.training_data import TrainingData
from udml_core.methods import Setting
from udml_core.methods.shared.instance import InstanceMethod
from udml_core.numerics.sampling import generator

IMAGES, SIDE, WIDTH, BATCH, SEED = 12, 16, 6, 5, 3
MOMENTUM, DECAY, RATES = 0.9, 0.01, (0.05, 0.005, 0.0005)
FIELDS: dict[str, Any] = {"dimension": WIDTH, "trains": "all", "epochs": 3, "batch": BATCH, "learning_rate": 0.05,
                          "schedule": "steps", "momentum": MOMENTUM, "weight_decay": DECAY}
"""Two batches an epoch and two images left over; the steps schedule gives the three rates."""
TOLERANCE = 1e-9
TRACKED = ("running_mean", "running_var", "num_batches_tracked")
Loss = Callable[[Tensor, Tensor, torch.Generator], Tensor]
"""The loss of unit rows x (views·m, l), positions (m,) of the batch, and the random stream."""
View = Callable[[Tensor, torch.Generator], Tensor]
"""Random views of images (m, …)."""
Plan = Callable[[torch.Generator], Sequence[Tensor]]
"""Batches of an epoch, as positions (m,)."""


@contextmanager
def double_precision() -> Iterator[None]:
    """Compute in float64, where rounding cannot hide a mistake; the package asks for float32 by `Tensor.float`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tensor, "float", Tensor.double)
        torch.set_default_dtype(torch.float64)
        try:
            yield
        finally:
            torch.set_default_dtype(torch.float32)


def small_images() -> tuple[TrainingData, Setting]:
    """Return smooth random color images with their features, and the small CNN."""
    random = torch.Generator().manual_seed(0)
    coarse = torch.rand(IMAGES, 3, 4, 4, generator=random) * 255
    pixels = interpolate(coarse, size=SIDE, mode="bilinear").to(torch.uint8)
    encoder = Encoder(EncoderSpec(backbone="cnn", size=SIDE))
    with torch.no_grad():
        features = encoder(pixels)
    return TrainingData(features, pixels.numpy()), Setting(SEED, torch.device("cpu"), encoder)


def all_images(data: TrainingData) -> Tensor:
    """Return the training images (n, 3, s, s), 0–255, in double precision."""
    return data.images(torch.arange(len(data))).double()


def unit(rows: Tensor) -> Tensor:
    """Return x/‖x‖."""
    return rows / rows.norm(dim=1, keepdim=True)


@dataclass
class Model:
    """Everything that training changes, by the names that the method's state uses."""

    parameters: dict[str, Tensor]
    buffers: dict[str, Tensor]
    velocities: dict[str, Tensor] = field(default_factory=dict)

    @staticmethod
    def begin(method: InstanceMethod, data: TrainingData, setting: Setting) -> Model:
        """Copy the weights that the method starts from."""
        embedder = method.initial(data, setting)
        weights = {f"network.encoder.{name}": value.clone() for name, value in embedder.encoder.state_dict().items()}
        fixed = TRACKED
        if method.batch_norm == "frozen":  # the scale and shift of all layers stay as well
            fixed += tuple(f"network.{layer}.{part}" for layer in (1, 5, 9, 12) for part in ("weight", "bias"))
        if method.trains == "last":  # the fourth convolution and its normalization are late
            fixed += tuple(f"network.{layer}.{part}" for layer in (0, 1, 4, 5, 8, 9) for part in ("weight", "bias"))
        buffers = {name: value for name, value in weights.items() if name.endswith(fixed)}
        parameters = {name: value for name, value in weights.items() if name not in buffers}
        return Model(parameters | {"network.weight": embedder.head.weight.clone()}, buffers)  # type: ignore[operator]

    def embed(self, images: Tensor, by_batch: bool) -> Tensor:
        """Return x = unit(unit(f)·W) of images (b, 3, s, s), 0–255, and track the statistics of a batch."""
        return unit(self.features(images, by_batch) @ self.parameters["network.weight"])

    def features(self, images: Tensor, by_batch: bool) -> Tensor:
        """Return unit(f) of images (b, 3, s, s), 0–255, and track the statistics of a batch."""
        maps = (images - 128) / 128
        for position, layer in enumerate((0, 4, 8, 11)):
            name = f"network.encoder.network.{layer}.weight"
            maps = conv2d(maps, (self.parameters | self.buffers)[name], padding=1)
            maps = self._normalize(maps, f"network.encoder.network.{layer + 1}.", by_batch).clamp_min(0)
            maps = max_pool2d(maps, 2) if position < 2 else maps
        return unit(maps.mean((2, 3)))

    def descend(self, loss: Tensor, rate: float) -> None:
        """Step by v ← μv + (gradient + decay·w) and w ← w − rate·v, with v = 0 before the first step."""
        gradients = torch.autograd.grad(loss, list(self.parameters.values()))
        with torch.no_grad():
            for (name, value), gradient in zip(self.parameters.items(), gradients, strict=True):
                velocity = MOMENTUM * self.velocities.get(name, torch.zeros(())) + gradient + DECAY * value
                self.velocities[name] = velocity
                value -= rate * velocity

    def state(self) -> dict[str, Tensor]:
        """Return what the method's state should hold besides the number of the epoch."""
        moments = {f"optimizer.{name}.momentum_buffer": value for name, value in self.velocities.items()}
        return {name: value.detach().clone() for name, value in (self.parameters | self.buffers | moments).items()}

    def _normalize(self, maps: Tensor, layer: str, by_batch: bool) -> Tensor:
        """Apply γ(x − mean)/√(variance + 1e-5) + β; track a tenth of the batch's mean and unbiased variance.

        γ and β learn unless batch normalization is frozen.
        """
        mean, variance = self.buffers[layer + "running_mean"], self.buffers[layer + "running_var"]
        if by_batch:
            mean, variance = maps.mean((0, 2, 3)), maps.var((0, 2, 3), correction=0)
            count = maps.numel() / maps.shape[1]
            new = {"running_mean": mean.detach(), "running_var": variance.detach() * count / (count - 1)}
            for name, value in new.items():
                self.buffers[layer + name] = 0.9 * self.buffers[layer + name] + 0.1 * value
            self.buffers[layer + "num_batches_tracked"] = self.buffers[layer + "num_batches_tracked"] + 1
        scale, shift = ((self.parameters | self.buffers)[layer + part] for part in ("weight", "bias"))
        normal = (maps - mean[:, None, None]) / (variance[:, None, None] + 1e-5).sqrt()
        return scale[:, None, None] * normal + shift[:, None, None]


def literal_epochs(model: Model, images: Tensor, loss: Loss, views: int, by_batch: bool, parts: int = 1,
                   remember: Callable[[Tensor, Tensor], None] | None = None, kept: Tensor | None = None,
                   view: View | None = None, plan: Plan | None = None, rates: Sequence[float] = RATES,
                   watch: Callable[[Tensor, Tensor], None] | None = None) -> Iterator[float]:
    """Train for three epochs, at a rate each, and yield each epoch's mean loss.

    Without `kept` views (n, v, 3, s, s) of the images, views are random crops, or what `view` returns. A `plan` begins
    each epoch and returns its batches. `watch` sees the views of each batch.
    """
    for value in model.parameters.values():
        value.requires_grad_()
    for epoch, rate in enumerate(rates, 1):
        random = generator(SEED, epoch)
        losses = []
        for batch in (plan or two_batches)(random):
            if kept is None:
                inputs = torch.cat([(view or random_view)(images[batch], random) for _ in range(views)])
            else:  # distinct views, in the order of random numbers
                order = torch.rand(BATCH, kept.shape[1], generator=random).argsort(1)
                inputs = torch.cat([kept[batch, order[:, number]] for number in range(views)])
            if watch is not None:
                watch(inputs, batch)
            rows = torch.cat([model.embed(part, by_batch) for part in inputs.chunk(parts)])
            value = loss(rows, batch, random)
            model.descend(value, rate)
            if remember is not None:
                remember(rows.detach(), batch)
            losses.append(value.item())
        yield sum(losses) / len(losses)


def two_batches(random: torch.Generator) -> Sequence[Tensor]:
    """Draw the order of the images and return two batches; two images are left over."""
    order = torch.randperm(IMAGES, generator=random)
    return [order[:BATCH], order[BATCH : 2 * BATCH]]


def random_view(images: Tensor, random: torch.Generator) -> Tensor:
    """Crop each image (m, 3, s, s) to 16–100 % of its area, resize it, and flip half of the images."""
    views = []
    for image, draws in zip(images, torch.rand(len(images), 23, generator=random).tolist(), strict=True):
        width = height = 1.0
        for area_draw, aspect_draw in reversed(list(zip(draws[:10], draws[10:20], strict=True))):
            side, stretch = math.sqrt(0.16 + 0.84 * area_draw), (4 / 3) ** (aspect_draw - 0.5)
            if side * stretch <= 1 and side / stretch <= 1:  # in reverse, so that the first crop that fits remains
                width, height = side * stretch, side / stretch
        across, down = bilinear(width, draws[20]), bilinear(height, draws[21])
        views.append(down @ image @ (across.flip(0) if draws[22] < 0.5 else across).mT)
    return torch.stack(views)


def bilinear(share: float, place: float) -> Tensor:
    """Return the matrix (s, s) that resizes a `share` of a line of pixels, starting at `place` of what remains."""
    centers = (torch.arange(SIDE) + 0.5) * share + place * (1 - share) * SIDE - 0.5
    distances = centers.clamp(0, SIDE - 1)[:, None] - torch.arange(SIDE)
    return (1 - distances.abs()).clamp_min(0)


def adaptable_softmax(rows: Tensor, compared: Tensor, tau: float, eta: float) -> Tensor:
    """Compute −(1/2m) Σ_i [S_ii' − log D_i + η Σ_{k≠i,i'} log(1 − e^{S_ik}/D_i)] with S = ZZᵀ/τ.

    Args:
        rows: z (2m, l), the second views below the first.
        compared: The same rows, with or without a gradient.
        tau: τ.
        eta: η, also the weight in D_i = e^{S_ii'} + η Σ_{k≠i,i'} e^{S_ik}.
    """
    total, count = torch.zeros(()), len(rows)
    for i in range(count):
        similar = torch.exp(compared @ rows[i] / tau)
        other = (i + count // 2) % count
        rest = similar[[k for k in range(count) if k not in {i, other}]]
        denominator = similar[other] + eta * rest.sum()
        total = total + torch.log(similar[other] / denominator) + eta * torch.log(1 - rest / denominator).sum()
    return -total / count


def assert_same_training(method: InstanceMethod, data: TrainingData, setting: Setting, model: Model,
                         literal: Iterator[float], more: Callable[[], dict[str, Tensor]] = dict) -> None:
    """Compare the loss, all tensors of the state, and the embeddings of the images after each epoch."""
    images = all_images(data)
    for epoch, loss in zip(method.fit(data, setting), literal, strict=True):
        assert epoch.losses["loss"] == pytest.approx(loss, rel=TOLERANCE)
        expected = model.state() | more() | {"epoch": torch.tensor(epoch.number)}
        assert epoch.state.keys() == expected.keys()
        for name, value in expected.items():
            assert_close(epoch.state[name], value, name)
        with torch.no_grad():
            assert_close(epoch.embedder(images), model.embed(images, by_batch=False), "embeddings")


def assert_close(actual: Tensor, expected: Tensor, name: str) -> None:
    """Compare relative to the largest entry."""
    tolerance = TOLERANCE * float(expected.double().abs().max()) if expected.isfinite().all() else 0.0
    torch.testing.assert_close(actual, expected, rtol=0, atol=tolerance, msg=lambda text: f"{name}: {text}")
