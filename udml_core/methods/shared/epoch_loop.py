"""The loop over epochs and batches that trains a network: inputs, steps, and the state for an exact resume."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Epoch, Method, Setting, State, mean_curves
from udml_core.methods.shared.distributed import agree, average_gradients, own_part, read_ahead, replicate
from udml_core.methods.shared.training import (
    Network,
    follow_batches,
    load_module,
    load_optimizer,
    module_state,
    optimizer_state,
    pinned,
    random_views,
    view_inputs,
)
from udml_core.numerics.sampling import generator


class EpochLoop(ABC):
    """A network in training, its optimizer, and the batches of each epoch.

    Attributes:
        whole: Whether cached features of views begin with the whole image's.
    """

    whole = False

    def __init__(self, method: Method, data: TrainingData, setting: Setting, start: State | None, network: Network,
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
        self.data, self.setting, self.network = data, setting, network
        self._method, self._optimizer, self._modules, self._named = method, optimizer, modules, named
        self._done = 0
        if start is not None:
            self._done = int(start["epoch"])
            for name, module in modules.items():
                load_module(name, module, start)
            load_optimizer(optimizer, named, start)
        self._replica = replicate(network)

    def run(self) -> Iterator[Epoch]:
        """Train and yield after every epoch."""
        for epoch in range(self._done + 1, self._method.epochs_planned + 1):
            yield self._result(epoch, self._run_epoch(epoch))

    def _run_epoch(self, epoch: int) -> dict[str, float]:
        """Train for one epoch and return its curves."""
        setting = self.setting
        random = generator(setting.seed, epoch)
        batches = list(self._batches(epoch, random))
        follow_batches(self.network, getattr(self._method, "batch_norm", "frozen") == "batch")
        curves = []
        for position, (batch, inputs) in enumerate(read_ahead(self._read, batches), 1):
            curves.append(self._step(batch, inputs.to(setting.device, non_blocking=True), random))
            setting.report(position / len(batches))
        self.network.eval()
        agree(self.network.buffers())
        return mean_curves([{name: float(value) for name, value in values.items()} for values in curves])

    @abstractmethod
    def _batches(self, epoch: int, random: torch.Generator) -> Iterable[Tensor]:
        """Prepare an epoch and return its batches, positions (b, …) in the training half."""

    @abstractmethod
    def _step(self, batch: Tensor, inputs: Tensor, random: torch.Generator) -> Mapping[str, float | Tensor]:
        """Take one step on the whole batch's loss and return the curves.

        Args:
            batch: The batch, on the CPU.
            inputs: What `_read` returned, on the device.
            random: Random stream; the same in every process.
        """

    def _result(self, epoch: int, curves: dict[str, float]) -> Epoch:
        """Return the result of an epoch."""
        return Epoch(epoch, curves, self.network.embedder(self.setting.encoder), (), self._state(epoch))

    def _state(self, epoch: int) -> dict[str, Tensor]:
        """Return everything needed to continue after an epoch."""
        state = {"epoch": torch.tensor(epoch)} | optimizer_state(self._optimizer, self._named)
        for name, module in self._modules.items():
            state |= module_state(name, module)
        return state

    def _read(self, batch: Tensor) -> Tensor:
        """Read this process's part of a batch: images, or cached features or activations of their views."""
        rows, _ = own_part(batch)
        return pinned(view_inputs(self._method.trained_part, self.data, rows, self.whole), self.setting.device)

    def _views(self, inputs: Tensor, count: int, batch: Tensor, random: torch.Generator) -> Tensor:
        """Return random views of every image in this process's part of a batch."""
        method = self._method
        return random_views(inputs, count, random, method.augmentation if method.crops_images else None, len(batch),
                            own_part(batch)[1], self.setting.encoder.spec.size)

    def _descend(self, loss: Tensor, beside: Iterable[nn.Parameter] = ()) -> None:
        """Take one step of the optimizer; `beside` are its parameters outside the network."""
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        average_gradients(beside)
        self._optimizer.step()
