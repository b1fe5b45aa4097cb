"""Options declared once: name, type, range, default, meaning and display hints.

`Method` (hyper-parameters) and `RunRequest` (run options) are `Options`. The command line, the forms, the sliders, the
stored specs and the error messages are generated from the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema

from udml_core.base.errors import UserError, quoted


@dataclass(frozen=True)
class Shown:
    """How a field is displayed.

    Attributes:
        symbol: The paper's symbol.
        unit: The unit of the value.
        step: Step of a slider.
        low: Lower end of a slider where the field's range is open or too wide.
        high: Upper end of a slider where the field's range is open or too wide.
        logarithmic: Whether a slider moves in decades.
        label: The name in forms; the field's name in words when empty.
        text: The meaning of a type that several fields share, for fields without a docstring of their own.
        suggestions: Returns values to offer for a field of free text, each with a title.
        placeholder: What an empty input shows.
        supervision: The kinds of supervision that the option applies to; empty for all.
        options: Names of the option on the command line; `--field-name` when empty.
    """

    symbol: str = ""
    unit: str = ""
    step: float | None = None
    low: float | None = None
    high: float | None = None
    logarithmic: bool = False
    label: str = ""
    text: str = ""
    suggestions: Callable[[], Mapping[str, str]] | None = None
    placeholder: str = ""
    supervision: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Describe the type by its text; a field's docstring takes its place."""
        return handler(schema) | ({"description": self.text} if self.text else {})


@dataclass(frozen=True)
class Described:
    """A field as forms, the command line and error messages need it.

    Attributes:
        name: The field's name.
        kind: The type of a value, without None.
        annotation: The declared type.
        optional: Whether None is allowed.
        required: Whether there is no default.
        default: The default value.
        text: The meaning, in sentences.
        shown: Display hints.
        low: The lower bound, excluded when `low_open`.
        high: The upper bound, excluded when `high_open`.
        low_open: Whether the lower bound is excluded.
        high_open: Whether the upper bound is excluded.
        multiple: The number that every value is a multiple of, if any.
        choices: The allowed values, if they are listed.
    """

    name: str
    kind: type
    annotation: Any
    optional: bool
    required: bool
    default: Any
    text: str
    shown: Shown
    low: float | None
    high: float | None
    low_open: bool
    high_open: bool
    multiple: float | None
    choices: tuple[Any, ...]

    @property
    def words(self) -> str:
        """The name in words."""
        return self.shown.label or self.name.removeprefix("n_").replace("_", " ").capitalize()

    @property
    def label(self) -> str:
        """The name in words, with symbol and unit."""
        symbol = f" · {self.shown.symbol}" if self.shown.symbol else ""
        unit = f" in {self.shown.unit}" if self.shown.unit else ""
        return f"{self.words}{symbol}{unit}"

    @property
    def allowed(self) -> str:
        """The allowed values in words, such as ``between 0 and 90 degrees``."""
        unit = {"°": " degrees"}.get(self.shown.unit, f" {self.shown.unit}" if self.shown.unit else "")
        if self.choices:
            return "one of " + ", ".join(repr(choice) for choice in self.choices)
        if self.kind is bool:
            return "true or false"
        if self.kind is str:
            return "text"
        if self.kind in (dict, tuple):
            return "a set of FIELD=VALUE" if self.kind is dict else "a list of values"
        number = self._number
        of = "of " if number else ""
        low = None if self.low is None else f"{self.low:g}" if abs(self.low) < 1e5 else f"{self.low:,.0f}"
        high = None if self.high is None else f"{self.high:g}" if abs(self.high) < 1e5 else f"{self.high:,.0f}"
        if low is not None and high is not None:
            excluded = [text for text, is_open in ((low, self.low_open), (high, self.high_open)) if is_open]
            outside = f" ({' and '.join(excluded)} excluded)" if excluded else ""
            return f"{number} between {low} and {high}{unit}{outside}".lstrip()
        if low is not None:
            return f"{number} {'above' if self.low_open else f'{of}at least'} {low}{unit}".lstrip()
        if high is not None:
            return f"{number} {'below' if self.high_open else f'{of}at most'} {high}{unit}".lstrip()
        return number or "a number"

    @property
    def _number(self) -> str:
        """The kind of number in words; empty for any number."""
        if self.multiple is None or self.multiple == 1:
            return "a whole number" if self.kind is int else ""
        return "an even whole number" if self.multiple == 2 else f"a multiple of {self.multiple:g}"

    @property
    def slider(self) -> tuple[float, float, float]:
        """The ends and the step of a slider.

        The display hints come first, then the bounds without excluded ends. The step is at least the field's multiple.
        """
        step = max(self.shown.step or (1 if self.kind is int else 0.01), self.multiple or 0)
        low = self.shown.low if self.shown.low is not None else (self.low or 0.0) + (step if self.low_open else 0.0)
        bound = self.high if self.high is not None else 10.0 * self.default
        high = self.shown.high if self.shown.high is not None else bound - (step if self.high_open else 0.0)
        return low, high, step


class Options(BaseModel):
    """A frozen record of options, each with its range, meaning and display hints."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", use_attribute_docstrings=True)
    message_prefix: ClassVar[str | None] = None
    """What error messages put before a field's name; the class name and a dot if None."""

    @field_validator("*", mode="before")
    @classmethod
    def _take_scalars(cls, value: Any) -> Any:
        """Take a number or truth value of NumPy, as a grid of values has them, like one of Python."""
        return value.item() if getattr(value, "shape", None) == () else value

    def __str__(self) -> str:
        """Return the text of `repr`, as estimators of scikit-learn do, so that tables of a search name the class."""
        return repr(self)

    @classmethod
    def make(cls, values: Mapping[str, Any]) -> Self:
        """Build the record from field values.

        Raises:
            UserError: A value is not allowed; the message names the field, the allowed values and the value received.
        """
        try:
            return cls(**values)
        except ValidationError as error:
            raise UserError(" ".join(_explanation(cls, problem) for problem in error.errors())) from None


def is_number(value: Any) -> bool:
    """Return whether a field's value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def describe(options: type[Options]) -> list[Described]:
    """List the fields in the order of their declaration."""
    return [_describe_field(name, info) for name, info in options.model_fields.items()]


def describe_field(options: type[Options], name: str) -> Described:
    """Describe one field of an options class."""
    return _describe_field(name, options.model_fields[name])


def _describe_field(name: str, info: FieldInfo) -> Described:
    shown = next((part for part in info.metadata if isinstance(part, Shown)), Shown())
    low = high = multiple = None
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
            case annotated_types.MultipleOf(multiple_of=factor):
                multiple = float(str(factor))
    declared: Any = info.annotation
    optional = get_origin(declared) in (Union, UnionType)
    if optional:
        (declared,) = (part for part in get_args(declared) if part is not NoneType)
    choices = get_args(declared) if get_origin(declared) is Literal else ()
    kind: type = type(choices[0]) if choices else get_origin(declared) or declared
    text = " ".join((info.description or shown.text).split())
    default = None if info.is_required() else info.get_default(call_default_factory=True, validated_data={})
    return Described(name, kind, info.annotation, optional, info.is_required(), default, text, shown, low, high,
                     low_open, high_open, multiple, choices)


def _explanation(options: type[Options], problem: Any) -> str:
    name = str(problem["loc"][0]) if problem["loc"] else ""
    if name not in options.model_fields:
        known = ", ".join(options.model_fields) or "none"
        return f"{options.__name__} has no field {quoted(name)}; its fields are: {known}."
    prefix = f"{options.__name__}." if options.message_prefix is None else options.message_prefix
    field = _describe_field(name, options.model_fields[name])
    if problem["type"] == "missing":
        return f"{prefix}{name} is required. Give {field.text[:1].lower()}{field.text[1:]}"
    return f"{prefix}{name} must be {field.allowed}, got {quoted(problem['input'])}."
