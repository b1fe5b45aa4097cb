"""The one abstraction: a method is its hyper-parameters plus `fit`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import annotated_types
import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from torch import Tensor

from udml_core.backbones import Encoder
from udml_core.data.augmentation import CROPS, Augmentation
from udml_core.data.training import Supervision, TrainingData
from udml_core.errors import UserError
from udml_core.explanations import Explanation
from udml_core.methods.embedder import Embedder

State = Mapping[str, Tensor]
"""Everything that `fit` needs to go on, as tensors. `epoch` () int64 is the number of the last finished epoch."""


@dataclass(frozen=True)
class Shown:
    """How a field is shown: the paper's symbol, the unit, a slider's step, and its ends where the bounds are open."""

    symbol: str = ""
    unit: str = ""
    step: float | None = None
    low: float | None = None
    high: float | None = None
    logarithmic: bool = False


@dataclass(frozen=True)
class Setting:
    """What a fit is given besides data: seed, device, the encoder, and whom to tell the share of the epoch done."""

    seed: int
    device: torch.device
    encoder: Encoder
    report: Callable[[float], None] = field(default=lambda _share: None)


@dataclass(frozen=True)
class Epoch:
    """What is known after one pass: its number from 1, curves, the embedder, explanations, and the state to go on."""

    number: int
    losses: dict[str, float]
    embedder: Embedder
    explanations: tuple[Explanation, ...]
    state: State


def mean_curves(batches: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """An epoch's curves from those of its batches."""
    return {name: float(np.mean([one[name] for one in batches])) for name in (batches[0] if batches else ())}


class Method(BaseModel, ABC):
    """Hyper-parameters as fields, each with its range, meaning, symbol and unit; and the algorithm in `fit`.

    name: on the command line. idea: three sentences for the page. promise: `gain` if MAP@R is expected to rise over
    the method's own start, `may fall` if not, with `promise_source`. rank_tells: whether an effective rank far from the
    start's tells a collapse.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", use_attribute_docstrings=True)

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    idea: ClassVar[str]
    supervision: ClassVar[Supervision]
    promise: ClassVar[Literal["gain", "may fall"]]
    promise_source: ClassVar[str]
    rank_tells: ClassVar[bool] = True

    @property
    def trains_encoder(self) -> bool:
        """Whether `fit` trains the encoder, so that it needs images."""
        return False

    @property
    def views_needed(self) -> int:
        """Of how many augmented views of each training image `fit` needs the frozen features."""
        return 0

    @property
    def shares_batches(self) -> bool:
        """Whether several processes can work on a batch together."""
        return False

    @property
    def augmentation(self) -> Augmentation:
        """How these views are made."""
        return CROPS

    @property
    def positive_only(self) -> bool:
        """Whether `fit` refuses features below 0."""
        return False

    @property
    def epochs_planned(self) -> int:
        """How many epochs `fit` yields from the start."""
        return int(getattr(self, "epochs", 1))

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        """A rough guess of an epoch's time on two CPU cores, for a person who is about to start.

        Args:
            images: of the training half. width: d of the features. image_seconds: the encoder's time for one image.
        """
        return 1e-10 * images * width**2 + 0.5

    def expected_bytes(self, images: int, width: int) -> float:
        """A rough guess of the memory that training takes, without an encoder; for the same."""
        return 12.0 * images * width

    def check(self, images: int, width: int | None) -> None:
        """Refuse, before anything is computed, fields that cannot work.

        Args:
            images: of the training half. width: d of the features, None where only the loaded network tells it.

        Raises:
            UserError: naming the field, what it allows and what to do.
        """

    def initial(self, data: TrainingData, setting: Setting) -> Embedder:
        """The embedder that `fit` starts from at this seed; closed-form methods start from the frozen features."""
        return Embedder(setting.encoder)

    @abstractmethod
    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        """Yield after every pass; go on behind `start` where it is given."""

    @classmethod
    def make(cls, values: Mapping[str, Any]) -> Self:
        """Build a method from field values.

        Raises:
            UserError: naming the field, what it allows and what came.
        """
        try:
            return cls(**values)
        except ValidationError as error:
            raise UserError(" ".join(_explained(cls, problem) for problem in error.errors())) from None


@dataclass(frozen=True)
class Described:
    """A field as forms, command line and messages need it. low and high are the bounds, exclusive where `open`."""

    name: str
    kind: type
    default: Any
    text: str
    shown: Shown
    low: float | None
    high: float | None
    low_open: bool
    high_open: bool
    choices: tuple[Any, ...]

    @property
    def allowed(self) -> str:
        """What the field allows, in words: ``between 0 and 90 degrees``."""
        unit = {"°": " degrees"}.get(self.shown.unit, f" {self.shown.unit}" if self.shown.unit else "")
        if self.choices:
            return "one of " + ", ".join(repr(choice) for choice in self.choices)
        if self.kind is bool:
            return "true or false"
        number = "a whole number " if self.kind is int else ""
        low = None if self.low is None else f"{self.low:g}"
        high = None if self.high is None else f"{self.high:g}"
        if low is not None and high is not None:
            apart = [text for text, is_open in ((low, self.low_open), (high, self.high_open)) if is_open]
            outside = f" ({' and '.join(apart)} excluded)" if apart else ""
            return f"{number}between {low} and {high}{unit}{outside}"
        if low is not None:
            return f"{number}{'above' if self.low_open else 'at least'} {low}{unit}"
        if high is not None:
            return f"{number}{'below' if self.high_open else 'at most'} {high}{unit}"
        return "a whole number" if self.kind is int else "a number"


def describe(method: type[Method]) -> list[Described]:
    """The fields of a method, in the order they are declared."""
    return [_described(name, info) for name, info in method.model_fields.items()]


def _described(name: str, info: FieldInfo) -> Described:
    shown = next((part for part in info.metadata if isinstance(part, Shown)), Shown())
    low = high = None
    low_open = high_open = False
    for part in info.metadata:
        match part:
            case annotated_types.Gt(gt=bound):
                low, low_open = float(str(bound)), True
            case annotated_types.Ge(ge=bound):
                low = float(str(bound))
            case annotated_types.Lt(lt=bound):
                high, high_open = float(str(bound)), True
            case annotated_types.Le(le=bound):
                high = float(str(bound))
    choices = tuple(getattr(info.annotation, "__args__", ()))
    kind = type(info.default) if choices else info.annotation
    assert isinstance(kind, type)
    return Described(name, kind, info.default, " ".join((info.description or "").split()), shown, low, high,
                     low_open, high_open, choices)


def _explained(method: type[Method], problem: Any) -> str:
    name = str(problem["loc"][0]) if problem["loc"] else ""
    by_name = {one.name: one for one in describe(method)}
    if name not in by_name:
        known = ", ".join(by_name) or "none"
        return f"{method.__name__} has no field '{name}'; its fields are: {known}."
    came = problem["input"]
    return f"{method.__name__}.{name} must be {by_name[name].allowed}, got {came!r}."
