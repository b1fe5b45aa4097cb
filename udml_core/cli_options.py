"""Command-line options from declared fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from udml_core.declaration import Described, Options, describe


def takes_options(options: type[Options], without: tuple[str, ...] = ()) -> Callable[[Callable[..., None]],
                                                                                     Callable[..., None]]:
    """Give a command one option for each field of a class; the values arrive as its first argument, a dictionary.

    Args:
        options: The declaration.
        without: Fields that the command sets itself.
    """
    fields = [field for field in describe(options) if field.name not in without]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

        def run(**values: Any) -> None:
            command({field.name: values.pop(field.name) for field in fields}, **values)

        parameters = [_parameter(field) for field in fields] + [
            one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


def _parameter(field: Described) -> inspect.Parameter:
    names = field.shown.options or (f"--{field.name.replace('_', '-')}",)
    text = field.text if field.choices or field.kind is str else f"{field.text} Allowed: {field.allowed}."
    required = not field.optional and field.required
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY,
                             default=inspect.Parameter.empty if required else field.default,
                             annotation=Annotated[field.annotation, typer.Option(*names, help=text)])
