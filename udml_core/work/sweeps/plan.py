"""What a sweep tries, and the requests of its runs: pure functions of its description."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from udml_core.base.declaration import describe
from udml_core.base.errors import UserError
from udml_core.methods import find_method
from udml_core.runs import RunRequest

MOST_RUNS = 1000
"""Largest number of runs of a sweep."""
ATTEMPTS = 50
"""Draws for each requested combination, after which a random search has too few different combinations."""
DIGITS = 4
"""Significant digits of a value that is drawn from a range, so that it can be typed again."""
LONGEST_NAME = 80
Search = Literal["grid", "random"]
Value = bool | int | float | str | None
Combination = dict[str, Value]
"""The value of each field and option that a sweep sets, by name."""


class Range(BaseModel):
    """An interval from which a random search draws.

    Attributes:
        low: The lower end.
        high: The upper end.
        logarithmic: Whether factors are drawn with equal probability, instead of differences.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    low: float
    high: float
    logarithmic: bool = False

    @model_validator(mode="after")
    def _check_ends(self) -> Range:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"a range needs a low end below its high end, got {self.low:g} and {self.high:g}")
        if self.logarithmic and self.low <= 0:
            raise ValueError(f"a logarithmic range needs a low end above 0, got {self.low:g}")
        return self

    def draw(self, random: np.random.Generator, is_whole: bool, multiple: int) -> float | int:
        """Draw a value.

        Args:
            random: The stream of random numbers.
            is_whole: Whether the value is a whole number.
            multiple: The number of which a whole value is a multiple.
        """
        if self.logarithmic:
            value = math.exp(random.uniform(math.log(self.low), math.log(self.high)))
        else:
            value = random.uniform(self.low, self.high)
        if is_whole:
            return min(max(multiple * round(value / multiple), math.ceil(self.low)), math.floor(self.high))
        return min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)


Choices = tuple[Value, ...] | Range
"""The values that a sweep tries for a field: several, one, or an interval."""


class SweepSpec(BaseModel):
    """The description of a sweep: methods × values × data sets × seeds.

    Attributes:
        name: Name of the group.
        data: Names of data sets.
        methods: The choices of each method's hyper-parameters, by method and field.
        options: The choices of options of the runs.
        seeds: Seeds; each combination runs with each of them.
        search: All combinations (grid), or combinations that are drawn (random).
        draws: Number of combinations that a random search draws for each method.
        draw_seed: Seed of these draws.
        criterion: Name of the measure that chooses the best combination; None until the data sets are known.
        budget: Minutes for all runs; None for no limit.
        invalid: Whether a combination that a method does not allow refuses the sweep or is skipped.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
    data: Annotated[tuple[str, ...], Field(min_length=1)]
    methods: Annotated[dict[str, dict[str, Choices]], Field(min_length=1)]
    options: dict[str, Choices] = Field(default_factory=dict)
    seeds: Annotated[tuple[int, ...], Field(min_length=1)] = (0,)
    search: Search = "grid"
    draws: Annotated[int | None, Field(ge=1)] = None
    draw_seed: Annotated[int, Field(ge=0)] = 0
    criterion: str | None = None
    budget: Annotated[float | None, Field(gt=0)] = None
    invalid: Literal["refuse", "skip"] = "refuse"

    @property
    def varied(self) -> list[str]:
        """The names of the fields and options with more than one choice, in the order of the description."""
        names = [name for fields in self.methods.values() for name, choices in fields.items() if is_varied(choices)]
        return list(dict.fromkeys([*names, *(name for name, choices in self.options.items() if is_varied(choices))]))


def is_varied(choices: Choices) -> bool:
    """Return whether there is more than one value."""
    return isinstance(choices, Range) or len(choices) > 1


def count_runs(spec: SweepSpec) -> int:
    """Return the largest number of runs, by arithmetic alone.

    A random search has fewer if it cannot draw enough different combinations.
    """
    combinations = 0
    for fields in spec.methods.values():
        choices = [*fields.values(), *spec.options.values()]
        every = math.prod(len(values) for values in choices if not isinstance(values, Range))
        ranged = any(isinstance(values, Range) for values in choices)
        if spec.search == "grid":
            combinations += every
        else:
            combinations += (spec.draws or 0) if ranged else min(spec.draws or 0, every)
    return combinations * len(spec.data) * len(spec.seeds)


def check_size(spec: SweepSpec) -> None:
    """Check the number of runs before any is planned.

    Raises:
        UserError: There are none or too many.
    """
    count = count_runs(spec)
    if not count:
        raise UserError("A random search needs the number of combinations to draw, such as draws: 20.")
    if count > MOST_RUNS:
        raise UserError(f"The sweep has {count:,} runs, and at most {MOST_RUNS:,} are allowed. Remove values, data "
                        "sets or seeds, or draw some of the combinations with search: random and draws: 20.")


def requests_of(spec: SweepSpec) -> list[RunRequest]:
    """Return the requests of all runs in the order in which they start.

    The first seed of every combination comes first, so that a sweep that ends early has compared all of them.

    Raises:
        UserError: There are too many, or an option does not fit; the message names it.
    """
    check_size(spec)
    options = set(RunRequest.model_fields)
    combinations = [(method, values) for method in spec.methods for values in combinations_of(spec, method)]
    return [RunRequest.make({"dataset": dataset, "method": method, "seed": seed,
                             "fields": {name: value for name, value in values.items() if name not in options}}
                            | {name: value for name, value in values.items() if name in options})
            for seed in spec.seeds for dataset in spec.data for method, values in combinations]


def combinations_of(spec: SweepSpec, method: str) -> Iterator[Combination]:
    """Yield the combinations of a method's fields and of the options.

    A random search draws them with a stream of its own for each method: more draws begin with the same combinations,
    and another method changes none. It yields fewer if it finds no more different ones.
    """
    choices = {**spec.methods[method], **spec.options}
    if spec.search == "grid":
        for row in product(*(values for values in choices.values() if not isinstance(values, Range))):
            yield dict(zip(choices, row, strict=True))
        return
    random = np.random.default_rng([spec.draw_seed, zlib.crc32(method.encode())])
    shapes = _shapes(method)
    drawn: set[tuple[str, ...]] = set()
    for _ in range(ATTEMPTS * (spec.draws or 0)):
        values = {name: one.draw(random, *shapes.get(name, (False, 1))) if isinstance(one, Range)
                  else one[int(random.integers(len(one)))] for name, one in choices.items()}
        identity = tuple(map(repr, values.values()))
        if identity not in drawn:
            drawn.add(identity)
            yield values
            if len(drawn) == spec.draws:
                return


def _shapes(method: str) -> dict[str, tuple[bool, int]]:
    """Return whether each field and option is a whole number, and the number of which it is a multiple."""
    fields = [*describe(RunRequest), *describe(find_method(method))]
    return {field.name: (field.kind is int, int(field.multiple or 1)) for field in fields}


def chosen_values(request: RunRequest, names: list[str]) -> Mapping[str, Any]:
    """Return the values of named fields and options that a request sets."""
    chosen = {name: getattr(request, name) for name in request.model_fields_set if name != "fields"} | request.fields
    return {name: chosen[name] for name in names if name in chosen}
