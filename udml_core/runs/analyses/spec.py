"""A request for an analysis, as it is stored: the fields of all kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, create_model, model_validator
from pydantic.fields import FieldInfo

from udml_core.base.declaration import Options
from udml_core.base.errors import UserError, listed, quoted
from udml_core.runs.analyses.fields import REFINED, Scope
from udml_core.runs.analyses.kind import AnalysisKind
from udml_core.runs.analyses.kinds import KINDS, MAPS

FIRST_FIELDS = ("scope", "frames", "perplexity", "n_neighbors", "min_dist", "seed", "source", "frame", "names",
                "content", "recipe")
"""The fields that every stored request has, in this order. Fields of later kinds are stored with their kinds only."""


def _declared_fields() -> dict[str, Any]:
    """Return the fields of all kinds; a field has the default of the first kind that declares it."""
    fields: dict[str, FieldInfo] = {}
    for kind in KINDS.values():
        for name, field in kind.model_fields.items():
            first = fields.setdefault(name, field)
            if (first.annotation, first.metadata) != (field.annotation, field.metadata):
                raise TypeError(f"{kind.__name__}.{name} has another type or range than the field of an earlier kind; "
                                "choose another name, or take the type from `fields`")
    order = [*FIRST_FIELDS, *(name for name in fields if name not in FIRST_FIELDS)]
    declared: dict[str, Any] = {"kind": (Literal[tuple(KINDS)], Field(description=_kinds_in_words()))}
    return declared | {name: (fields[name].annotation, fields[name]) for name in order}


def _kinds_in_words() -> str:
    maps = [kind.name for kind in KINDS.values() if kind in MAPS]
    parts = [f"{listed(maps)} are maps", *(kind.text for kind in KINDS.values() if kind.text)]
    return f"The kind of analysis; {', '.join(parts[:-1])}, and {parts[-1]}."


_Declared: Any = create_model("_Declared", __base__=Options, **_declared_fields())


class AnalysisSpec(_Declared):
    """A request for an analysis.

    The options of `udml analyse` and the sliders for a new map are generated from the fields.
    """

    # A stored spec is read leniently, because JSON has no tuples.
    model_config = ConfigDict(strict=False)

    if TYPE_CHECKING:
        kind: str
        scope: Scope
        frames: tuple[str, ...]
        n_neighbors: int
        source: str
        frame: str
        recipe: str

    @model_validator(mode="before")
    @classmethod
    def _set_defaults_of_kind(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or not isinstance(values.get("kind"), str):
            return values
        kind = KINDS.get(values["kind"])
        return values if kind is None else {
            name: field.get_default() for name, field in kind.model_fields.items()} | dict(values)

    @model_validator(mode="after")
    def _check_combination(self) -> AnalysisSpec:
        frames = ", ".join(self.frames)
        if self.scope != "sample" and any(frame.isdecimal() for frame in self.frames):
            raise ValueError("epochs are stored for the sample only; use the scope 'sample' or the frames frozen, "
                             f"initial and final, got the frames {frames} with the scope '{self.scope}'")
        if self.scope not in ("test", "train") and any(frame.startswith(REFINED) for frame in self.frames):
            raise ValueError("a refinement has the embedding of one half; use its scope, 'test' or 'train', got "
                             f"{frames} with the scope '{self.scope}'")
        if len(set(self.frames)) < len(self.frames):
            raise ValueError(f"name each frame once, got {frames}")
        self.build_kind().check()
        return self

    @property
    def declared(self) -> type[AnalysisKind]:
        """The declaration of the kind."""
        return KINDS[self.kind]

    def build_kind(self) -> AnalysisKind:
        """Return the kind with its own fields, validated with the request."""
        return self.declared.model_construct(**{name: getattr(self, name) for name in self.declared.model_fields})

    @property
    def id(self) -> str:
        """The kind and a hash of the fields that change the result."""
        return self.build_kind().id

    def stored(self) -> str:
        """Return the text of spec.json."""
        foreign = set(type(self).model_fields) - {"kind", *FIRST_FIELDS, *self.declared.model_fields}
        return self.model_dump_json(indent=1, exclude=foreign)


def plan_analysis(kind: type[AnalysisKind] | str, **values: Any) -> AnalysisSpec:
    """Build a request from a user's values.

    Args:
        kind: The kind of analysis, or its name.
        values: Values of its fields; the others have the kind's defaults.

    Raises:
        UserError: A value is not allowed; the message names the field and the value received.
    """
    try:
        return AnalysisSpec(kind=kind if isinstance(kind, str) else kind.name, **values)
    except ValidationError as error:
        problems = "; ".join(map(_explanation, error.errors()))
        raise UserError(f"The analysis cannot be computed: {problems}.") from None


def _explanation(problem: Any) -> str:
    """Return a problem in words; a message of our own names the value received."""
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"]).removesuffix(".")
    return f"{problem['loc'][0]}: {problem['msg']}, got {quoted(problem['input'])}"
