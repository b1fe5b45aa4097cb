"""The loops over epochs: numbers, random streams, results, and the state for an exact resume.

`EpochLoop` is the loop of every method that trains in epochs. `NetworkLoop` trains encoder and head by one optimizer;
`EncoderLoop` trains an encoder beside a head that learns in a way of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from udml_core.data.encoders import check_trainable
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Epoch, Method, Setting, State
from udml_core.methods.embedder import Embedder, Head
from udml_core.methods.shared.distributed import agree, average_gradients, own_part, read_ahead, replicate
from udml_core.methods.shared.training import (
    EncoderInTraining,
    Network,
    SGDRates,
    follow_batches,
    load_module,
    load_optimizer,
    module_state,
    optimizer_state,
    pinned,
    random_views,
    view_inputs,
)
from udml_core.numerics.explanations import Explanation
from udml_core.numerics.sampling import generator

AnyMethod = TypeVar("AnyMethod", bound=Method)
StepCurves = Mapping[str, float | Tensor]


class EpochLoop(ABC, Generic[AnyMethod]):
    """A method in training.

    Attributes:
        method: The method; its field `epochs` counts.
        data: Training half.
        setting: Seed, device and encoder.
        explained: Explanations of the current epoch.
    """

    def __init__(self, method: AnyMethod, data: TrainingData, setting: Setting, start: State | None) -> None:
        """Begin after the epoch of the state `start`, if it is given."""
        self.method, self.data = method, data
        # A step that is reported can be observed: the methods need no code for it.
        self.setting = setting if setting.observe is None else replace(setting, report=self._observed(setting))
        self.explained: list[Explanation] = []
        self._done = 0 if start is None else int(start["epoch"])

    def run(self) -> Iterator[Epoch]:
        """Train and yield after every epoch."""
        for epoch in range(self._done + 1, self.method.epochs_planned + 1):
            curves = self._train(epoch, generator(self.setting.seed, epoch))
            state = self._state() | {"epoch": torch.tensor(epoch)}
            yield Epoch(epoch, curves, self._embedder(), tuple(self.explained), state)
            self.explained.clear()

    def _observed(self, setting: Setting) -> Callable[[float], None]:
        """Return the report of a setting, followed by a look at the current embedder."""
        def report(share: float) -> None:
            setting.report(share)
            if setting.observe is not None:
                setting.observe(share, self._embedder)

        return report

    def _train(self, epoch: int, random: torch.Generator) -> dict[str, float]:
        """Train for one epoch and return the means of its steps' curves."""
        steps = [{name: float(value) for name, value in curves.items()} for curves in [*self._steps(epoch, random)]]
        return {name: float(np.mean([step[name] for step in steps])) for name in (steps[0] if steps else ())}

    @abstractmethod
    def _steps(self, epoch: int, random: torch.Generator) -> Iterator[StepCurves]:
        """Train for one epoch and yield the curves of each step.

        Args:
            epoch: Number of the epoch, from 1.
            random: The epoch's random stream; the same in every process.
        """

    @abstractmethod
    def _embedder(self) -> Embedder:
        """Return the current embedder; further training does not change it."""

    @abstractmethod
    def _state(self) -> dict[str, Tensor]:
        """Return everything needed to continue, besides the number of the epoch."""


class NetworkLoop(EpochLoop[AnyMethod]):
    """A network in training, its optimizer, and the batches of each epoch.

    Attributes:
        whole: Whether cached features of views begin with the whole image's.
        network: The network in training.
    """

    whole = False

    def __init__(self, method: AnyMethod, data: TrainingData, setting: Setting, start: State | None, network: Network,
                 optimizer: torch.optim.Optimizer, modules: Mapping[str, nn.Module],
                 named: Sequence[tuple[str, nn.Parameter]]) -> None:
        """Load the state of an earlier epoch.

        Args:
            method: The method; its fields `trains`, `epochs` and `batch_norm` count.
            data: Training half.
            setting: Seed, device and encoder.
            start: State of an earlier epoch to continue after.
            network: The network in training.
            optimizer: The optimizer of all trained parameters.
            modules: The network, and modules that learn or store beside it, by their names in the state.
            named: The trained parameters, by their names in the state.
        """
        super().__init__(method, data, setting, start)
        self.network = network
        self._optimizer, self._modules, self._named = optimizer, modules, named
        if start is not None:
            for name, module in modules.items():
                load_module(name, module, start)
            load_optimizer(optimizer, named, start)
        self._replica = replicate(network)

    def _steps(self, epoch: int, random: torch.Generator) -> Iterator[StepCurves]:
        setting = self.setting
        batches = list(self._batches(epoch, random))
        follow_batches(self.network, getattr(self.method, "batch_norm", "frozen") == "batch")
        for position, (batch, inputs) in enumerate(read_ahead(self._read, batches), 1):
            yield self._step(batch, inputs.to(setting.device, non_blocking=True), random)
            setting.report(position / len(batches))
        self.network.eval()
        agree(self.network.buffers())

    @abstractmethod
    def _batches(self, epoch: int, random: torch.Generator) -> Iterable[Tensor]:
        """Prepare an epoch and return its batches, positions (b, …) in the training half."""

    @abstractmethod
    def _step(self, batch: Tensor, inputs: Tensor, random: torch.Generator) -> StepCurves:
        """Take one step on the whole batch's loss and return the curves.

        Args:
            batch: The batch, on the CPU.
            inputs: What `_read` returned, on the device.
            random: Random stream; the same in every process.
        """

    def _embedder(self) -> Embedder:
        return self.network.embedder(self.setting.encoder)

    def _state(self) -> dict[str, Tensor]:
        state = optimizer_state(self._optimizer, self._named)
        for name, module in self._modules.items():
            state |= module_state(name, module)
        return state

    def _read(self, batch: Tensor) -> Tensor:
        """Read this process's part of a batch: images, or cached features or activations of their views."""
        rows, _ = own_part(batch)
        return pinned(view_inputs(self.method.trained_part, self.data, rows, self.whole), self.setting.device)

    def _views(self, inputs: Tensor, count: int, batch: Tensor, random: torch.Generator) -> Tensor:
        """Return random views of every image in this process's part of a batch."""
        method = self.method
        return random_views(inputs, count, random, method.augmentation if method.crops_images else None, len(batch),
                            own_part(batch)[1], self.setting.encoder.spec.size)

    def _descend(self, loss: Tensor, beside: Iterable[nn.Parameter] = ()) -> None:
        """Take one step of the optimizer; `beside` are its parameters outside the network."""
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        average_gradients(beside)
        self._optimizer.step()


class EncoderLoop(EpochLoop[AnyMethod]):
    """An encoder with its SGD, or cached features, and a head that learns beside it.

    Attributes:
        network: The encoder, trained if the method's field `trains` says so.
    """

    def __init__(self, method: AnyMethod, data: TrainingData, setting: Setting, start: State | None) -> None:
        """Load the state of an earlier epoch.

        Raises:
            UserError: The method trains the encoder and cannot do without, and the encoder has no parameters.
        """
        super().__init__(method, data, setting, start)
        if not method.learns_from_vectors:
            check_trainable(setting.encoder.spec)
        rates = None
        if method.trains_encoder:
            rates = SGDRates(**{name: getattr(method, name) for name in SGDRates._fields if hasattr(method, name)})
        self.network = EncoderInTraining(data, setting, rates, getattr(method, "batch_norm", "frozen"), start,
                                         method.trained_part)

    @abstractmethod
    def _head(self) -> Head:
        """Return the current head; further training does not change it."""

    def _embedder(self) -> Embedder:
        return Embedder(self.network.snapshot(), self._head(), trained=self.network.trains)

    def _state(self) -> dict[str, Tensor]:
        return self.network.state()
