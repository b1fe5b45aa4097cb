"""Encoders in training, alone or with a linear head.

The module has their inputs and the state for an exact resume.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from udml_core.backbones import Encoder
from udml_core.data.augmentation import CROPS, Augmentation
from udml_core.data.training import TrainingData
from udml_core.methods.base import Setting, State
from udml_core.methods.embedder import AnyHead, Embedder, Head, unit

EMBEDDED = 256
"""Number of images that pass the encoder at a time without a gradient."""


class Network(nn.Module):
    """Unit embeddings (b, l) of images, or of features if only the head is trained.

    Attributes:
        encoder: The encoder in training; None if only the head is trained.
        weight: The head's projection (d, l), a parameter.
    """

    def __init__(self, weight: Tensor, encoder: Encoder | None = None) -> None:
        super().__init__()
        self.encoder = copy.deepcopy(encoder)
        self.weight = nn.Parameter(weight.clone())

    def forward(self, inputs: Tensor) -> Tensor:
        features = inputs if self.encoder is None else self._encode(inputs)
        return unit(unit(features) @ self.weight)

    def _encode(self, images: Tensor) -> Tensor:
        """Return features (b, d) float32.

        On a GPU the encoder computes in bfloat16 where that is safe.
        """
        assert self.encoder is not None
        with torch.autocast(images.device.type, torch.bfloat16, enabled=images.is_cuda):
            features: Tensor = self.encoder(images)
        return features.float()

    def momentum_copy(self) -> Network:
        """Return a copy for `follow`, without gradients and in evaluation mode."""
        return copy.deepcopy(self).requires_grad_(False).eval()

    def follow(self, other: Network, momentum: float) -> None:
        """Move parameters and buffers toward another network's.

        own ← momentum·own + (1 − momentum)·target.
        """
        with torch.no_grad():
            for own, target in zip([*self.parameters(), *self.buffers()], [*other.parameters(), *other.buffers()],
                                   strict=True):
                if own.dtype.is_floating_point:
                    own.lerp_(target, 1 - momentum)
                else:
                    own.copy_(target)

    def embedder(self, frozen: Encoder, head: AnyHead | None = None) -> Embedder:
        """Return the current embedder; further training does not change it.

        Args:
            frozen: The frozen encoder, if only the head is trained.
            head: A head to use in place of the network's linear head.
        """
        head = head or Head(self.weight.detach().clone())
        if self.encoder is None:
            return Embedder(frozen, head)
        return Embedder(copy.deepcopy(self.encoder).eval(), head, trained=True)


def embed_training_half(network: Network, data: TrainingData, device: torch.device) -> Tensor:
    """Return the embeddings (n, l) of the training half on the device.

    The images are not augmented.
    """
    inputs = data.images if network.encoder is not None else data.features.__getitem__
    return _in_parts(lambda rows: network(inputs(rows).to(device)), torch.arange(len(data)))


def follow_batches(module: nn.Module, follows: bool) -> None:
    """Choose whether batch normalization uses the statistics of the batches.

    All other layers stay in evaluation mode: dropout and stochastic depth draw from a random stream outside the run's
    seed, and differently in each pass of the same part of a batch.
    """
    for layer in module.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            layer.train(follows)


def _in_parts(compute: Callable[[Tensor], Tensor], indices: Tensor) -> Tensor:
    """Compute a function of indices without a gradient, `EMBEDDED` indices at a time."""
    with torch.no_grad():
        return torch.cat([compute(part) for part in indices.split(EMBEDDED)])


def rows_at(features: Tensor, indices: Tensor) -> Tensor:
    """Return features[indices] with a deterministic gradient.

    The gradient of indexing adds the contributions to a row in the order in which threads arrive.
    """
    return features.index_select(0, indices)


def random_views(inputs: Tensor, count: int, random: torch.Generator, augmentation: Augmentation | None,
                 whole: int | None = None, first: int = 0) -> Tensor:
    """Return random views of every image of a batch, on the images' device.

    The second views are below the first.

    Args:
        inputs: Images (b, c, s, s), or without `augmentation` cached features of views (b, v, d), from which distinct
            views are drawn.
        count: Number of views of each image.
        random: Random stream.
        augmentation: The random augmentation; None for cached features.
        whole: Number of images of the whole batch, if `inputs` is a part of it. Random numbers are drawn
            for the whole batch, so that they do not depend on the number of processes.
        first: Position of the part in the whole batch.
    """
    whole, part = whole or len(inputs), slice(first, first + len(inputs))
    if augmentation is not None:
        draws = [augmentation.draw(whole, random)[part] for _ in range(count)]
        return torch.cat([augmentation.apply(inputs, draw) for draw in draws])
    views = torch.rand(whole, inputs.shape[1], generator=random).argsort(1)[part, :count].to(inputs.device)
    rows = torch.arange(len(inputs), device=inputs.device)
    return torch.cat([inputs[rows, view] for view in views.unbind(1)])


class SGDRates(NamedTuple):
    """The rates of stochastic gradient descent."""

    learning_rate: float
    momentum: float = 0.9
    weight_decay: float = 0.0
    dampening: float = 0.0


class EncoderInTraining:
    """An encoder with its SGD, or cached features.

    Features are cached if the encoder stays frozen or has no parameters.

    Attributes:
        trains: Whether the encoder is trained.
    """

    def __init__(self, data: TrainingData, setting: Setting, rates: SGDRates | None, batch_norm: bool,
                 start: State | None) -> None:
        """Copy the setting's encoder and prepare its SGD.

        Args:
            data: Training half.
            setting: Device and encoder.
            rates: Rates of SGD; None keeps the encoder frozen.
            batch_norm: Whether batch normalization uses the statistics of the batches.
            start: State from `state` to continue after.
        """
        self.trains = rates is not None and setting.encoder.trainable
        self._data = data
        self._device = setting.device
        self._batch_norm = batch_norm
        self._encoder = setting.encoder
        if rates is None or not self.trains:
            return
        self._encoder = copy.deepcopy(setting.encoder)
        follow_batches(self._encoder, batch_norm)
        self._sgd = torch.optim.SGD(self._encoder.parameters(), lr=rates.learning_rate, momentum=rates.momentum,
                                    weight_decay=rates.weight_decay, dampening=rates.dampening)
        if start is not None:
            load_module("encoder", self._encoder, start)
            load_optimizer(self._sgd, self._encoder.named_parameters(), start)

    def features(self, indices: Tensor, random: torch.Generator | None = None) -> Tensor:
        """Return unit features (b, d), with a gradient to the encoder if it is trained.

        Args:
            indices: Positions (b,) in the training half.
            random: Random stream of crops and flips; None for whole images. Cached features are always of whole images.
        """
        if not self.trains:
            return unit(self._data.features[indices].to(self._device))
        images = self._data.images(indices).to(self._device)
        return unit(self._encoder(images if random is None else CROPS(images, random)))

    def embed(self, indices: Tensor) -> Tensor:
        """Return the current unit features (b, d) of images, without a gradient.

        The number of images is not limited.
        """
        if not self.trains:
            return self.features(indices)
        self._encoder.eval()
        features = _in_parts(self.features, indices)
        follow_batches(self._encoder, self._batch_norm)
        return features

    def step(self, loss: Tensor) -> None:
        """Take one step of SGD; do nothing if the encoder is not trained."""
        if self.trains:
            self._sgd.zero_grad(set_to_none=True)
            loss.backward()
            self._sgd.step()

    def snapshot(self) -> Encoder:
        """Return the current encoder for embedding; further training does not change it."""
        return copy.deepcopy(self._encoder).eval() if self.trains else self._encoder

    def state(self) -> dict[str, Tensor]:
        """Return everything needed to continue: weights, buffers and SGD's moments."""
        if not self.trains:
            return {}
        return (module_state("encoder", self._encoder)
                | optimizer_state(self._sgd, self._encoder.named_parameters()))


def module_state(name: str, module: nn.Module) -> dict[str, Tensor]:
    """Return copies of a module's parameters and buffers under the prefix `name.`."""
    return {f"{name}.{key}": value.detach().clone() for key, value in module.state_dict().items()}


def load_module(name: str, module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Load parameters and buffers that `module_state` returned."""
    module.load_state_dict({key: state[f"{name}.{key}"] for key in module.state_dict()})


def optimizer_state(optimizer: torch.optim.Optimizer, parameters: Iterable[tuple[str, Tensor]]) -> dict[str, Tensor]:
    """Return copies of an optimizer's tensors for named parameters.

    The names have the prefix `optimizer.`.
    """
    return {f"optimizer.{name}.{key}": value.detach().clone() for name, parameter in parameters
            for key, value in optimizer.state.get(parameter, {}).items() if isinstance(value, Tensor)}


def load_optimizer(optimizer: torch.optim.Optimizer, parameters: Iterable[tuple[str, Tensor]],
                   state: Mapping[str, Tensor]) -> None:
    """Load tensors that `optimizer_state` returned.

    A moment gets the memory layout of its parameter, because sums in another order differ in the last bits.
    """
    for name, parameter in parameters:
        prefix = f"optimizer.{name}."
        for key, value in state.items():
            if key.startswith(prefix):
                moment = torch.empty_like(parameter).copy_(value) if value.shape == parameter.shape else value.clone()
                optimizer.state[parameter][key.removeprefix(prefix)] = moment
