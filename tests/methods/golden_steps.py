"""A tiny encoder, optimizers and neighbor search, written literally in float64.

The golden tests of sRPML, PLM and SSDML train a method on this encoder and repeat the training with these functions.
They follow FORMULAS.md and call nothing of `udml_core.numerics` or `udml_core.methods.shared`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, max_pool2d

from udml_core.data.encoders import Encoder, EncoderSpec
from udml_core.data.training_data import TrainingData
from udml_core.methods import Epoch, Method, Setting
from udml_core.methods.fields import BatchNorm

IMAGES, CLASSES, WIDTH, SEED = 40, 4, 12, 3
Network = dict[str, Tensor]
"""Parameters and buffers by name, as the encoder's `state_dict` holds them."""
Point = tuple[Tensor, ...]


@contextmanager
def double_precision() -> Iterator[None]:
    """Compute in float64, also where the code asks for float32.

    A tolerance of 1e-8 can then decide.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "float", torch.Tensor.double)
        torch.set_default_dtype(torch.float64)
        try:
            yield
        finally:
            torch.set_default_dtype(torch.float32)


def tiny_setting() -> Setting:
    """Return two convolutions with batch normalization and a dropout.

    Training must leave the dropout inactive.
    """
    encoder = Encoder(EncoderSpec(backbone="cnn", size=8))
    encoder.network = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.5),
        nn.Conv2d(6, WIDTH, 3, padding=1, bias=False), nn.BatchNorm2d(WIDTH), nn.Tanh())  # unlike ReLU of both signs
    encoder.dimension = WIDTH
    random = torch.Generator().manual_seed(1)
    for value in encoder.state_dict().values():
        if value.ndim == 4:
            value.copy_(torch.randn(value.shape, generator=random) / 3)
        elif value.ndim == 1:
            value.copy_(0.5 + torch.rand(value.shape, generator=random))  # statistics that differ from a batch's
    return Setting(SEED, torch.device("cpu"), encoder.eval())


def tiny_data(setting: Setting, labels: Tensor | None = None) -> TrainingData:
    """Return noisy images of four patterns, with the frozen encoder's features.

    Image i shows pattern i mod 4.
    """
    random = torch.Generator().manual_seed(2)
    patterns = torch.rand(CLASSES, 3, 8, 8, generator=random)
    noise = torch.rand(IMAGES, 3, 8, 8, generator=random)
    images = (255 * (0.5 * patterns[torch.arange(IMAGES) % CLASSES] + 0.5 * noise)).to(torch.uint8)
    rows = features(network_of(setting), images, False)
    return TrainingData(rows.detach(), images.numpy(), given_labels=labels)


def last_epoch(method: Method, data: TrainingData, setting: Setting, resumed: bool) -> Epoch:
    """Fit and return the last epoch.

    Training runs in one go, or is resumed from the stored state of the first epoch.
    """
    start = next(iter(method.fit(data, setting))).state if resumed else None
    *_, last = method.fit(data, setting, start)
    return last


def network_of(setting: Setting) -> Network:
    return {name: value.clone() for name, value in setting.encoder.state_dict().items()}


def is_parameter(name: str) -> bool:
    return "running" not in name and "tracked" not in name


def features(network: Network, images: Tensor, follows: bool) -> Tensor:
    """Return unit features (b, 12).

    If batch normalization follows the batch, the running statistics are updated.
    """
    maps = (images.double() - 128) / 128
    for conv, norm in (("network.0", "network.1"), ("network.5", "network.6")):
        maps = conv2d(maps, network[f"{conv}.weight"], padding=1)
        mean, variance = network[f"{norm}.running_mean"], network[f"{norm}.running_var"]
        if follows:
            count = maps.numel() / maps.shape[1]
            old_mean, old_variance = mean, variance
            mean = maps.mean((0, 2, 3))
            variance = (maps - mean[:, None, None]).square().mean((0, 2, 3))
            network[f"{norm}.running_mean"] = 0.9 * old_mean + 0.1 * mean.detach()
            network[f"{norm}.running_var"] = 0.9 * old_variance + 0.1 * variance.detach() * count / (count - 1)
            network[f"{norm}.num_batches_tracked"] = network[f"{norm}.num_batches_tracked"] + 1
        maps = (maps - mean[:, None, None]) / (variance[:, None, None] + 1e-5).sqrt()
        maps = maps * network[f"{norm}.weight"][:, None, None] + network[f"{norm}.bias"][:, None, None]
        maps = max_pool2d(maps.relu(), 2) if conv == "network.0" else maps.tanh()
    return unit(maps.mean((2, 3)))


def unit(rows: Tensor) -> Tensor:
    return rows / rows.norm(dim=1, keepdim=True)


def trainable(network: Network, batch_norm: BatchNorm) -> dict[str, Tensor]:
    """Replace the trained parameters by leaves of a new graph and return them.

    Frozen batch normalization keeps its scale and shift.
    """
    kept = ("network.1.", "network.6.") if batch_norm == "frozen" else ()
    leaves = {name: value.detach().requires_grad_() for name, value in network.items()
              if is_parameter(name) and not name.startswith(kept)}
    network |= leaves
    return leaves


def sgd(network: Network, velocity: Network, loss: Tensor, rate: float, momentum: float, decay: float,
        dampening: float = 0.0) -> None:
    """Take a step of SGD.

    v ← momentum·v + (1 − dampening)·(gradient + decay·θ), θ ← θ − rate·v. The first v is not dampened.
    """
    parameters = {name: value for name, value in network.items() if value.requires_grad}
    gradients = torch.autograd.grad(loss, [*parameters.values()])
    for (name, value), gradient in zip(parameters.items(), gradients, strict=True):
        force = gradient + decay * value.detach()
        velocity[name] = momentum * velocity[name] + (1 - dampening) * force if name in velocity else force
        network[name] = value.detach() - rate * velocity[name]


def adam(parameters: dict[str, Tensor], moments: dict[str, dict[str, Tensor]], gradients: tuple[Tensor, ...],
         time: int, rates: Mapping[str, float], rate: float) -> None:
    """Take step number `time` of Adam without weight decay.

    The rate is given by name, or else is `rate`.
    """
    for (name, value), gradient in zip(parameters.items(), gradients, strict=True):
        old = moments.get(name, {"exp_avg": torch.zeros(()), "exp_avg_sq": torch.zeros(())})
        first = 0.9 * old["exp_avg"] + 0.1 * gradient
        second = 0.999 * old["exp_avg_sq"] + 0.001 * gradient.square()
        moments[name] = {"exp_avg": first, "exp_avg_sq": second, "step": torch.tensor(float(time))}
        root = (second / (1 - 0.999**time)).sqrt() + 1e-8
        parameters[name] = value.detach() - rates.get(name, rate) * first / (1 - 0.9**time) / root


def state_of(network: Network, velocity: Network) -> Network:
    """Return the encoder's part of the state after an epoch."""
    return ({f"encoder.{name}": value.detach() for name, value in network.items()}
            | {f"optimizer.{name}.momentum_buffer": value for name, value in velocity.items()})


def nearest_rows(points: Tensor, k: int) -> Tensor:
    """Return the k nearest other rows of every row, (n, k), nearest first."""
    squared = (points[:, None] - points).square().sum(2)
    return squared.fill_diagonal_(torch.inf).argsort(1)[:, :k]


def random_frame(rows: int, columns: int, seed: int) -> Tensor:
    """Return the Q factor of a seeded Gaussian matrix."""
    return torch.linalg.qr(torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)))[0]


def angular_excess(rows: Tensor, triplets: Tensor, projection: Tensor, alpha: float) -> Tensor:
    """Return z = ‖Lᵀ(a−p)‖² − 4tan²α·‖Lᵀ(n−m)‖² with m = (a+p)/2, (t,)."""
    anchor, positive, negative = (rows[part] @ projection for part in triplets.T)
    kappa = 4 * torch.tan(torch.deg2rad(torch.tensor(alpha))) ** 2
    return (anchor - positive).square().sum(1) - kappa * (negative - (anchor + positive) / 2).square().sum(1)


def softplus(values: Tensor) -> Tensor:
    return torch.logaddexp(values, torch.zeros(()))


def descend(loss: Callable[..., Tensor], point: Point, step: float, steps: int,
            orthonormal: bool = True) -> tuple[Point, float]:
    """Return the point and the remembered step after conjugate-gradient steps.

    Each step follows the printed formulas.

    The last tensor of the point is a subspace's orthonormal basis if `orthonormal`; all others are free.
    """
    def tangent(base: Point, vector: Point) -> Point:
        *free, last = vector
        return (*free, last - base[-1] @ (base[-1].T @ last)) if orthonormal else vector

    def move(base: Point, length: float, direction: Point) -> Point:
        *free, last = (part + length * along for part, along in zip(base, direction, strict=True))
        if orthonormal:
            left, _, right = torch.linalg.svd(last, full_matrices=False)
            last = left @ right
        return (*free, last)

    def evaluate(base: Point) -> tuple[float, Point]:
        leaves = tuple(part.detach().requires_grad_() for part in base)
        value = loss(*leaves)
        return value.item(), tangent(base, torch.autograd.grad(value, leaves))

    def inner(first: Point, second: Point) -> float:
        return sum(float((a * b).sum()) for a, b in zip(first, second, strict=True))

    def combine(first: Point, factor: float, second: Point) -> Point:
        return tuple(a + factor * b for a, b in zip(first, second, strict=True))

    value, gradient = evaluate(point)
    direction = combine(gradient, -2, gradient)
    for _ in range(steps):
        slope, trial, evaluations = inner(gradient, direction), step or inner(direction, direction) ** -0.5, 1
        while evaluate(move(point, trial, direction))[0] > value + 0.5 * trial * slope:
            assert evaluations <= 10, "the example should not exhaust the line search"
            trial, evaluations = trial / 2, evaluations + 1
        step = trial if evaluations == 2 else 2 * trial
        old, point = (gradient, direction), move(point, trial, direction)
        value, gradient = evaluate(point)
        old_gradient, old_direction = (tangent(point, part) for part in old)
        change = combine(gradient, -1, old_gradient)
        beta = max(0.0, inner(gradient, change) / inner(change, old_direction))
        direction = combine(combine(gradient, -2, gradient), beta, old_direction)
        if inner(gradient, direction) >= 0:
            direction = combine(gradient, -2, gradient)
    return point, step


def assert_same_state(state: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Require the same tensors under the same names, to 1e-8."""
    assert {*state} == {*expected}
    for name, value in expected.items():
        torch.testing.assert_close(state[name].double(), value.double(), rtol=1e-8, atol=1e-10,
                                   msg=f"{name}: {{}}".format)


def assert_same_embedder(epoch: Epoch, data: TrainingData, network: Network, projection: Tensor,
                         bias: Tensor | float = 0.0, unit_length: bool = True) -> None:
    """Require an embedder with running statistics, followed by a projection and a bias."""
    images = data.images(torch.arange(len(data)))
    rows = features(network, images, False) @ projection + bias
    torch.testing.assert_close(epoch.embedder(images), unit(rows) if unit_length else rows)
