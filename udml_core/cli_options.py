"""Command-line options from declared fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from udml_core.declaration import Described, Options, describe


def call_with_options(command: Callable[..., None], options: type[Options], context: typer.Context,
                      without: tuple[str, ...] = ()) -> Any:
    """Parse the words after a command's name with generated options, and call the command.

    A declaration may be slow to import, so its options are generated only when the command is used.

    Args:
        command: The command; see `takes_options`.
        options: The declaration.
        context: The context of a command that accepts any words.
        without: Names of fields that get no option.
    """
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(takes_options(options, without)(command))
    return app(context.args, prog_name=context.command_path, standalone_mode=False)


def takes_options(options: type[Options], without: tuple[str, ...] = ()) -> Callable[[Callable[..., None]],
                                                                                     Callable[..., None]]:
    """Return a decorator that gives a command one option for each declared field.

    The command receives the values as its first argument, a dictionary by field name.

    Args:
        options: The declaration.
        without: Names of fields that get no option.
    """
    fields = [field for field in describe(options) if field.name not in without]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        further = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

        def run(**values: Any) -> None:
            command({field.name: values.pop(field.name) for field in fields}, **values)

        parameters = [_parameter(field) for field in fields] + [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in further]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _parameter(field: Described) -> inspect.Parameter:
    """Describe a field as the parameter of a command, from which typer makes an option."""
    name = field.name.replace("_", "-")
    names = field.shown.options or (f"--{name}/--no-{name}" if field.kind is bool else f"--{name}",)
    text = field.text if field.choices or field.kind in (str, bool) else f"{field.text} Allowed: {field.allowed}."
    required = not field.optional and field.required
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY,
                             default=inspect.Parameter.empty if required else field.default,
                             annotation=Annotated[field.annotation, typer.Option(*names, help=text)])
