"""Encoders in training, alone or with a linear head.

The module has their inputs and the state for an exact resume.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import torch
from torch import Tensor, nn

from udml_core.data.augmentation import CROPS, Augmentation
from udml_core.data.encoders import Encoder, Precision
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Setting, State
from udml_core.methods.embedder import AnyHead, Embedder, Head, unit
from udml_core.methods.fields import BatchNorm, Part
from udml_core.methods.shared.distributed import agree, average_gradients, gather_rows, own_part

EMBEDDED = 256
"""Number of images that pass the encoder at a time without a gradient."""


class Network(nn.Module):
    """Unit embeddings (b, l) of images, or of features if only the head is trained.

    Attributes:
        encoder: The encoder in training; None if only the head is trained.
        weight: The head's projection (d, l), a parameter.
        bias: The head's bias (l,) after the projection, a parameter; None for zero.
    """

    bias: nn.Parameter | None

    def __init__(self, weight: Tensor, encoder: Encoder | None = None, part: Part = "all",
                 precision: Precision = "auto", bias: Tensor | None = None) -> None:
        """Copy the encoder and the head's projection.

        Args:
            weight: The head's projection (d, l).
            encoder: The encoder; None if only the head is trained.
            part: The trained part. Without the early blocks the inputs are their activations.
            precision: Precision of the encoder's computation.
            bias: The head's bias (l,); None for zero.
        """
        super().__init__()
        self.encoder = copy.deepcopy(encoder)
        self.weight = nn.Parameter(weight.clone())
        self.register_parameter("bias", None if bias is None else nn.Parameter(bias.clone()))
        self.part: Part = "head" if encoder is None else part
        self._precision = precision
        self._compiled = False
        if self.encoder is not None and part == "last":
            self.encoder.freeze_early()

    def forward(self, inputs: Tensor) -> Tensor:
        rows = self.features(inputs) @ self.weight
        return unit(rows if self.bias is None else rows + self.bias)

    def features(self, inputs: Tensor) -> Tensor:
        """Return the unit features (b, d) that the head reads."""
        return unit(inputs if self.encoder is None else self._encode(inputs))

    def _encode(self, images: Tensor) -> Tensor:
        """Return features (b, d) float32."""
        assert self.encoder is not None
        return encode(self.encoder, images, self.part, self._precision)

    def compile_encoder(self) -> None:
        """Compile the passes of the encoder, if the whole encoder is trained."""
        if self.encoder is not None and self.part == "all":
            self.encoder.compile()
            self._compiled = True

    def momentum_copy(self) -> Network:
        """Return a copy for `follow`, without gradients and in evaluation mode."""
        other = copy.deepcopy(self).requires_grad_(False).eval()
        if self._compiled:
            other.compile_encoder()  # a copy is not compiled
        return other

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
        bias = None if self.bias is None else self.bias.detach().clone()
        head = head or Head(self.weight.detach().clone(), bias=bias)
        if self.encoder is None:
            return Embedder(frozen, head)
        return Embedder(copy.deepcopy(self.encoder).eval(), head, trained=True)


def encode(encoder: Encoder, inputs: Tensor, part: Part, precision: Precision) -> Tensor:
    """Return features (b, d) float32.

    Args:
        encoder: The encoder.
        inputs: Images (b, c, s, s), or activations (b, c, h, w) of the early blocks if `part` is `last`.
        part: The trained part.
        precision: `bf16` computes in bfloat16 where that is safe, `auto` does so on a GPU.
    """
    mixed = precision == "bf16" or (precision == "auto" and inputs.is_cuda)
    with torch.autocast(inputs.device.type, torch.bfloat16, enabled=mixed):
        features: Tensor = encoder.late(inputs) if part == "last" else encoder(inputs)
    return features.float()


def whole_inputs(part: Part, data: TrainingData, indices: Tensor) -> Tensor:
    """Return what the trained part reads of images without augmentation.

    These are features (b, d), activations (b, c, h, w) of the early blocks, or images (b, c, s, s).
    """
    if part == "head":
        return data.features[indices]
    return data.whole_activations(indices) if part == "last" else data.images(indices)


def view_inputs(part: Part, data: TrainingData, indices: Tensor, whole: bool = False) -> Tensor:
    """Return what `random_views` draws the views of images from.

    Args:
        part: The trained part.
        data: Training half.
        indices: Positions (b,) in the training half.
        whole: Whether the features begin with the whole image's. The activations always do.

    Returns:
        Features (b, v, d) or activations (b, v, c, h, w) of views, or images (b, c, S, S).
    """
    if part == "head":
        views = data.view_features(indices)
        return torch.cat([data.features[indices][:, None], views], dim=1) if whole else views
    return data.view_activations(indices) if part == "last" else data.crop_sources(indices)


def pinned(inputs: Tensor, device: torch.device) -> Tensor:
    """Return inputs in memory from which a GPU copies beside its computation; on a CPU, the inputs themselves."""
    return inputs.pin_memory() if device.type == "cuda" else inputs


def embed_training_half(network: Network, data: TrainingData, device: torch.device) -> Tensor:
    """Return the embeddings (n, l) of the training half on the device.

    The images are not augmented.
    """
    return _in_parts(lambda rows: network(whole_inputs(network.part, data, rows).to(device)), torch.arange(len(data)))


def embed_jointly(network: Network, data: TrainingData, device: torch.device) -> Tensor:
    """Return the result of `embed_training_half`, of which each process computes a part."""
    part, _ = own_part(torch.arange(len(data)))
    rows = _in_parts(lambda indices: network(whole_inputs(network.part, data, indices).to(device)), part)
    return gather_rows(rows, 1, len(data))


def follow_batches(module: nn.Module, follows: bool) -> None:
    """Choose whether batch normalization uses the statistics of the batches.

    All other layers stay in evaluation mode: dropout and stochastic depth draw from a random stream outside the run's
    seed, and differently in each pass of the same part of a batch.
    """
    for layer in module.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            layer.train(follows)


def freeze_batch_norm(module: nn.Module) -> None:
    """Keep the scale γ and the shift β of every batch normalization.

    Without a gradient they are not in an optimizer either, whose weight decay would shrink them.
    """
    for layer in module.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            layer.requires_grad_(False)


def trained_parameters(module: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """Return the parameters that are trained, with their names."""
    return [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]


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
                 whole: int | None = None, first: int = 0, size: int | None = None) -> Tensor:
    """Return random views of every image of a batch, on the images' device.

    The second views are below the first.

    Args:
        inputs: Images (b, c, s, s), or without `augmentation` cached features (b, v, d) or activations (b, v, c, h, w)
            of views, from which distinct views are drawn.
        count: Number of views of each image.
        random: Random stream.
        augmentation: The random augmentation; None for cached views.
        whole: Number of images of the whole batch, if `inputs` is a part of it. Random numbers are drawn
            for the whole batch, so that they do not depend on the number of processes.
        first: Position of the part in the whole batch.
        size: Side of the views, by default the images'.
    """
    whole, part = whole or len(inputs), slice(first, first + len(inputs))
    if augmentation is not None:
        draws = [augmentation.draw(whole, random)[part] for _ in range(count)]
        return torch.cat([augmentation.apply(inputs, draw, size) for draw in draws])
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

    If several processes train the encoder, each encodes its part of a batch and returns the features of the whole
    batch. Batch normalization with the statistics of batches sees the part of its process, and the running statistics
    come from the first process.

    Attributes:
        trains: Whether the encoder is trained.
    """

    def __init__(self, data: TrainingData, setting: Setting, rates: SGDRates | None, batch_norm: BatchNorm,
                 start: State | None, part: Part = "all") -> None:
        """Copy the setting's encoder and prepare its SGD.

        Args:
            data: Training half.
            setting: Device and encoder.
            rates: Rates of SGD; None keeps the encoder frozen.
            batch_norm: What batch normalization keeps and what it trains.
            start: State from `state` to continue after.
            part: The trained part of the encoder, `last` or `all`.
        """
        self.trains = rates is not None and setting.encoder.trainable
        self._data = data
        self._device = setting.device
        self._precision: Precision = setting.precision
        self._part: Part = part if self.trains else "head"
        self._reader = ThreadPoolExecutor(max_workers=1)
        self._coming: list[tuple[Tensor, Future[Tensor]]] = []
        self._follows_batches = batch_norm == "batch"
        self._encoder = setting.encoder
        if rates is None or not self.trains:
            return
        self._encoder = copy.deepcopy(setting.encoder)
        if setting.compile and part == "all":
            self._encoder.compile()
        follow_batches(self._encoder, self._follows_batches)
        if part == "last":
            self._encoder.freeze_early()
        if batch_norm == "frozen":
            freeze_batch_norm(self._encoder)
        agree([*self._encoder.parameters(), *self._encoder.buffers()])
        self._named = trained_parameters(self._encoder)
        self._sgd = torch.optim.SGD([parameter for _, parameter in self._named], lr=rates.learning_rate,
                                    momentum=rates.momentum, weight_decay=rates.weight_decay,
                                    dampening=rates.dampening)
        if start is not None:
            load_module("encoder", self._encoder, start)
            load_optimizer(self._sgd, self._named, start)

    def features(self, indices: Tensor, random: torch.Generator | None = None) -> Tensor:
        """Return unit features (b, d), with a gradient to the encoder if it is trained.

        Args:
            indices: Positions (b,) in the training half.
            random: Random stream of crops and flips; None for whole images. Cached features are always of whole images.
        """
        if not self.trains:
            return unit(self._take(indices).to(self._device, non_blocking=True))
        part, first = own_part(indices)
        inputs = self._take(part, random is not None).to(self._device, non_blocking=True)
        if random is not None:
            inputs = random_views(inputs, 1, random, CROPS if self._part == "all" else None, len(indices), first,
                                  self._encoder.spec.size)
        return gather_rows(self._encode(inputs), 1, len(indices))

    def _encode(self, inputs: Tensor) -> Tensor:
        """Return unit features (b, d) of what the trained part reads."""
        return unit(encode(self._encoder, inputs, self._part, self._precision))

    def prefetch(self, indices: Tensor) -> None:
        """Read the input of a coming call of `features` for whole images in the background."""
        part = own_part(indices)[0] if self.trains else indices
        self._coming.append((part, self._reader.submit(self._read, part)))

    def _read(self, indices: Tensor, views: bool = False) -> Tensor:
        read = view_inputs if views else whole_inputs
        return pinned(read(self._part, self._data, indices), self._device)

    def _take(self, indices: Tensor, views: bool = False) -> Tensor:
        """Return the input of images or of their views; that of images may have been read in the background."""
        if not views and self._coming and torch.equal(self._coming[0][0], indices):
            return self._coming.pop(0)[1].result()
        return self._read(indices, views)

    def embed(self, indices: Tensor) -> Tensor:
        """Return the current unit features (b, d) of images, without a gradient.

        The number of images is not limited.
        """
        if not self.trains:
            return self.features(indices)
        self._encoder.eval()
        part, _ = own_part(indices)
        rows = _in_parts(lambda images: self._encode(self._take(images).to(self._device, non_blocking=True)), part)
        follow_batches(self._encoder, self._follows_batches)
        return gather_rows(rows, 1, len(indices))

    def step(self, loss: Tensor) -> None:
        """Take one step of SGD; do nothing if the encoder is not trained."""
        if self.trains:
            self._sgd.zero_grad(set_to_none=True)
            loss.backward()
            average_gradients(self._encoder.parameters())
            self._sgd.step()
            if self._follows_batches:
                agree(self._encoder.buffers())

    def snapshot(self) -> Encoder:
        """Return the current encoder for embedding; further training does not change it."""
        return copy.deepcopy(self._encoder).eval() if self.trains else self._encoder

    def state(self) -> dict[str, Tensor]:
        """Return everything needed to continue: weights, buffers and SGD's moments."""
        if not self.trains:
            return {}
        return module_state("encoder", self._encoder) | optimizer_state(self._sgd, self._named)


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
