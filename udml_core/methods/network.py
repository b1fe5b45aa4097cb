"""An encoder and a linear head in training, their momentum copy, and the state to go on exactly."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from udml_core.backbones import Encoder
from udml_core.methods.embedder import Embedder, Head, unit


class Network(nn.Module):
    """Unit embeddings (b, l) of images where the encoder trains, else of its features.

    encoder: None where only the head trains. weight (d, l): of the head, a parameter.
    """

    def __init__(self, weight: Tensor, encoder: Encoder | None = None) -> None:
        super().__init__()
        self.encoder = copy.deepcopy(encoder)
        self.weight = nn.Parameter(weight.clone())

    def forward(self, given: Tensor) -> Tensor:
        features = given if self.encoder is None else self.encoder(given)
        return unit(unit(features) @ self.weight)

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

    def embedder(self, frozen: Encoder) -> Embedder:
        """What it is now, for embedding; training goes on without changing it."""
        head = Head(self.weight.detach().clone())
        if self.encoder is None:
            return Embedder(frozen, head)
        return Embedder(copy.deepcopy(self.encoder).eval(), head, trained=True)


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
