"""Command-line options that several commands have, and options from declared fields."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from udml_core import __version__
from udml_core.base.declaration import Described, Options, describe
from udml_core.base.errors import UserError, quoted
from udml_core.base.paths import runs_folder

if TYPE_CHECKING:
    from udml_core.runs import Run
    from udml_core.runs.search import Retrieval

DatasetName = Annotated[str, typer.Argument(metavar="DATASET", help="The name of a data set, or a folder of images.")]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, the beginning of its id, or its folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
Root = Annotated[Path | None, typer.Option("--runs", help="Folder of runs. Default: UDML_RUNS, else ./runs.")]


def _print_version(is_asked: bool) -> None:
    """Print the version of the program and end it."""
    if is_asked:
        typer.echo(f"udml {__version__}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True,
                                       help="Print the version and exit.")]


def root_of(root: Path | None) -> Path:
    """Return the folder of runs that an option names."""
    return root.expanduser().resolve() if root is not None else runs_folder()


def named_run(name: str, root: Path | None) -> Run:
    """Return the run that a command names.

    Raises:
        UserError: No run has this name.
    """
    from udml_core.runs import find_run

    return find_run(name, root_of(root))


def warn_of_new(opened: Retrieval) -> None:
    """Say on stderr how many new images of its folder a run does not have, and how to get a run that has them."""
    from udml_core.runs.newer import say_new_images

    if words := say_new_images(opened.run, opened.dataset):
        typer.echo(words, err=True)


def parse_settings(settings: list[str], option: str = "--set") -> dict[str, Any]:
    """Parse FIELD=VALUE; VALUE is JSON, or text if it is not valid JSON."""
    values: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise UserError(f"{option} needs FIELD=VALUE, got {quoted(setting)}.")
        try:
            values[name.strip()] = json.loads(text)
        except ValueError:
            values[name.strip()] = text
    return values


def call_with_options(command: Callable[..., None], options: type[Options], context: typer.Context,
                      without: tuple[str, ...] = ()) -> Any:
    """Parse the words after a command's name by a declaration, and call the command.

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


def takes_options(options: type[Options], without: tuple[str, ...] = (), only_given: bool = False
                  ) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command one option for each declared field.

    The command receives the values as its first argument, a dictionary by field name.

    Args:
        options: The declaration.
        without: Names of fields that get no option.
        only_given: Whether the command receives only the values that a user gives, because the declaration's defaults
            depend on other values.
    """
    fields = [field for field in describe(options) if field.name not in without]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        further = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

        def run(**values: Any) -> None:
            chosen = {field.name: values.pop(field.name) for field in fields}
            if only_given:
                chosen = {name: value for name, value in chosen.items() if value is not None}
            command(chosen, **values)

        parameters = [_parameter(field, only_given) for field in fields] + [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in further]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _parameter(field: Described, only_given: bool) -> inspect.Parameter:
    """Describe a field as a parameter of a command, from which typer makes an option."""
    name = field.name.replace("_", "-")
    names = field.shown.options or (f"--{name}/--no-{name}" if field.kind is bool else f"--{name}",)
    text = field.text if field.choices or field.kind in (str, bool) else f"{field.text} Allowed: {field.allowed}."
    required = not field.optional and field.required
    default = inspect.Parameter.empty if required else None if only_given else field.default
    annotation = field.annotation if required or not only_given else field.annotation | None
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default,
                             annotation=Annotated[annotation, typer.Option(*names, help=text)])
