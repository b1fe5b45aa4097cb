"""Encoders in training, alone or with a linear head, what they are given, and the state to go on exactly."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from udml_core.backbones import Encoder
from udml_core.data.augmentation import Augmentation
from udml_core.data.training import TrainingData
from udml_core.methods.base import Setting, State
from udml_core.methods.embedder import AnyHead, Embedder, Head, unit

EMBEDDED = 256
"""Images that pass the encoder at a time where no gradient is wanted."""


class Network(nn.Module):
    """Unit embeddings (b, l) of images where the encoder trains, else of its features.

    encoder: None where only the head trains. weight (d, l): of the head, a parameter.
    """

    def __init__(self, weight: Tensor, encoder: Encoder | None = None) -> None:
        super().__init__()
        self.encoder = copy.deepcopy(encoder)
        self.weight = nn.Parameter(weight.clone())

    def forward(self, given: Tensor) -> Tensor:
        features = given if self.encoder is None else self._encoded(given)
        return unit(unit(features) @ self.weight)

    def _encoded(self, images: Tensor) -> Tensor:
        """Features (b, d) float32; on a GPU the encoder computes in bfloat16 where that is safe."""
        assert self.encoder is not None
        with torch.autocast(images.device.type, torch.bfloat16, enabled=images.is_cuda):
            features: Tensor = self.encoder(images)
        return features.float()

    def momentum_copy(self) -> Network:
        """A copy that `follow` moves; it never gets a gradient and always evaluates."""
        return copy.deepcopy(self).requires_grad_(False).eval()

    def follow(self, other: Network, momentum: float) -> None:
        """Move parameters and buffers towards another network's: ← momentum · own + (1 − momentum) · its."""
        with torch.no_grad():
            for own, its in zip([*self.parameters(), *self.buffers()], [*other.parameters(), *other.buffers()],
                                strict=True):
                if own.dtype.is_floating_point:
                    own.lerp_(its, 1 - momentum)
                else:
                    own.copy_(its)

    def embedder(self, frozen: Encoder, head: AnyHead | None = None) -> Embedder:
        """What it is now, with its own linear head or a given one; training goes on without changing it."""
        head = head or Head(self.weight.detach().clone())
        if self.encoder is None:
            return Embedder(frozen, head)
        return Embedder(copy.deepcopy(self.encoder).eval(), head, trained=True)


def embedded(network: Network, data: TrainingData, device: torch.device) -> Tensor:
    """The training half without augmentation, (n, l), on the device."""
    given = data.images if network.encoder is not None else data.features.__getitem__
    return _in_parts(lambda rows: network(given(rows).to(device)), torch.arange(len(data)))


def follow_batches(module: nn.Module, follows: bool) -> None:
    """Whether batch normalization takes its statistics from the batches. All else stays as it evaluates: dropout and
    stochastic depth draw from no seed of the run, and otherwise for each pass of the same part of a batch."""
    for one in module.modules():
        if isinstance(one, nn.modules.batchnorm._BatchNorm):
            one.train(follows)


def _in_parts(compute: Callable[[Tensor], Tensor], indices: Tensor) -> Tensor:
    """What is computed of indices, without a gradient and `EMBEDDED` at a time."""
    with torch.no_grad():
        return torch.cat([compute(part) for part in indices.split(EMBEDDED)])


def rows_at(features: Tensor, indices: Tensor) -> Tensor:
    """features[indices], with a gradient that is the same every time. That of indexing adds up what comes to a row in
    whichever order the threads arrive."""
    return features.index_select(0, indices)


def random_views(read: Tensor, count: int, random: torch.Generator, augmentation: Augmentation | None,
                 whole: int | None = None, first: int = 0) -> Tensor:
    """`count` random views of every image of a batch, those of a second draw below the first, on the images' device.

    Args:
        read: images (b, c, s, s), or without `augmentation` the features of kept views (b, v, d), of which different
            ones are drawn.
        whole: of how many images the batch is, where `read` is a part of it that begins at `first`: the draws are
            always those of the whole batch.
    """
    whole, part = whole or len(read), slice(first, first + len(read))
    if augmentation is not None:
        draws = [augmentation.draw(whole, random)[part] for _ in range(count)]
        return torch.cat([augmentation.apply(read, one) for one in draws])
    chosen = torch.rand(whole, read.shape[1], generator=random).argsort(1)[part, :count].to(read.device)
    rows = torch.arange(len(read), device=read.device)
    return torch.cat([read[rows, one] for one in chosen.unbind(1)])


class SGDRates(NamedTuple):
    """Of stochastic gradient descent."""

    learning_rate: float
    momentum: float = 0.9
    weight_decay: float = 0.0


class EncoderInTraining:
    """An encoder and its SGD; cached features where it is not to train or has no parameters.

    Args:
        rates: None keeps the encoder frozen. batch_norm: whether batch normalization follows the batches.
        start: a state of `state` to go on from.
    """

    def __init__(self, data: TrainingData, setting: Setting, rates: SGDRates | None, batch_norm: bool,
                 start: State | None) -> None:
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
                                    weight_decay=rates.weight_decay)
        if start is not None:
            load_module("encoder", self._encoder, start)
            load_optimizer(self._sgd, self._encoder.named_parameters(), start)

    def features(self, indices: Tensor) -> Tensor:
        """Unit features (b, d), with a gradient to the encoder where it trains."""
        if not self.trains:
            return unit(self._data.features[indices].to(self._device))
        return unit(self._encoder(self._data.images(indices).to(self._device)))

    def embedded(self, indices: Tensor) -> Tensor:
        """Unit features (b, d) as the encoder is now, of any number of images, without a gradient."""
        if not self.trains:
            return self.features(indices)
        self._encoder.eval()
        found = _in_parts(self.features, indices)
        follow_batches(self._encoder, self._batch_norm)
        return found

    def step(self, loss: Tensor) -> None:
        """One step of SGD; nothing without an encoder to train."""
        if self.trains:
            self._sgd.zero_grad(set_to_none=True)
            loss.backward()
            self._sgd.step()

    def snapshot(self) -> Encoder:
        """The encoder as it is now, for embedding; training goes on without changing it."""
        return copy.deepcopy(self._encoder).eval() if self.trains else self._encoder

    def state(self) -> dict[str, Tensor]:
        if not self.trains:
            return {}
        return (module_state("encoder", self._encoder)
                | optimizer_state(self._sgd, self._encoder.named_parameters()))


def module_state(name: str, module: nn.Module) -> dict[str, Tensor]:
    """Copies of a module's parameters and buffers, under `name.`."""
    return {f"{name}.{key}": value.detach().clone() for key, value in module.state_dict().items()}


def load_module(name: str, module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """The opposite of `module_state`."""
    module.load_state_dict({key: state[f"{name}.{key}"] for key in module.state_dict()})


def optimizer_state(optimizer: torch.optim.Optimizer, parameters: Iterable[tuple[str, Tensor]]) -> dict[str, Tensor]:
    """Copies of what an optimizer remembers of named parameters, under `optimizer.`."""
    return {f"optimizer.{name}.{key}": value.detach().clone() for name, parameter in parameters
            for key, value in optimizer.state.get(parameter, {}).items() if isinstance(value, Tensor)}


def load_optimizer(optimizer: torch.optim.Optimizer, parameters: Iterable[tuple[str, Tensor]],
                   state: Mapping[str, Tensor]) -> None:
    """The opposite of `optimizer_state`; a moment takes its parameter's memory layout, without which sums differ."""
    for name, parameter in parameters:
        prefix = f"optimizer.{name}."
        for key, value in state.items():
            if key.startswith(prefix):
                kept = torch.empty_like(parameter).copy_(value) if value.shape == parameter.shape else value.clone()
                optimizer.state[parameter][key.removeprefix(prefix)] = kept
