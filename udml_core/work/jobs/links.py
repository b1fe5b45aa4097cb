"""The settings of a run as parameters of an address, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from udml_core.base.errors import UserError
from udml_core.methods import Method, find_method
from udml_core.runs import RunRequest, Spec
from udml_core.work.jobs.presets import ImageKind, find_preset
from udml_core.work.jobs.settings import Settings

FIELDS = "fields"
"""The parameter of the hyper-parameters, such as alpha:40,trains:head."""
OPTIONS = tuple(name for name in RunRequest.model_fields if name not in ("dataset", "method", "preset", "fields"))


def write_fields(values: Mapping[str, Any]) -> str:
    """Write hyper-parameters as `read_fields` reads them."""
    return ",".join(f"{name}:{value if isinstance(value, str) else json.dumps(value)}"
                    for name, value in values.items())


def read_fields(text: str, method: type[Method]) -> dict[str, Any]:
    """Read hyper-parameters of a method; names and values that it does not allow are left out."""
    values: dict[str, Any] = {}
    for part in text.split(","):
        name, _, written = part.partition(":")
        try:
            values[name] = getattr(method.make({name: _parse(written)}), name)
        except (UserError, AttributeError):
            continue
    return values


def write_option(value: Any) -> str:
    """Write an option of a run as `read_options` reads it; nothing for no value."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def read_options(query: Mapping[str, str], options: type[RunRequest] = RunRequest) -> dict[str, Any]:
    """Read the options of a run; values that are not allowed are left out.

    Args:
        query: The parameters of an address.
        options: The declaration.
    """
    values: dict[str, Any] = {}
    for name in options.model_fields:
        if written := query.get(name):
            with suppress(UserError):
                values[name] = getattr(options.make({"dataset": "", "method": "", name: _parse(written)}), name)
    return values


def _parse(written: str) -> Any:
    try:
        return json.loads(written)
    except ValueError:
        return written


def link_of(spec: Spec, images: ImageKind) -> dict[str, str]:
    """Return the address parameters that fill the page Lab with a run's settings.

    Args:
        spec: The run's spec.
        images: The kind of the data set's images, for a run with the paper's settings.

    Raises:
        UserError: The method is unknown.
    """
    like = settings_like(spec, images)
    link = {"dataset": spec.dataset, "method": spec.method, "preset": like.source, FIELDS: write_fields(like.fields),
            **{name: write_option(value) for name, value in like.options.items()}}
    return {name: value for name, value in link.items() if value and (name, value) != ("preset", "default")}


def settings_like(spec: Spec, images: ImageKind) -> Settings:
    """Return the settings of a run, with the fields that differ from the defaults or from the paper's values."""
    known = find_method(spec.method).make({}).model_dump()
    preset = find_preset(spec.method, images) if spec.preset == "paper" else None
    if preset is not None:
        known |= preset.field_values()
    return Settings(spec.preset, {name: value for name, value in spec.fields.items() if value != known.get(name)},
                    {name: value for name in OPTIONS if (value := getattr(spec, name)) is not None
                     and value != RunRequest.model_fields[name].get_default()})
