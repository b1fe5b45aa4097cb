"""The command that starts the app, and folders that it browses."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from udml_core.base.paths import APP, is_exposed, python_path
from udml_core.base.started import start_variables
from udml_core.cli.options import Root, Version, root_of
from udml_core.cli.output import exit_with, print_progress

if TYPE_CHECKING:
    from udml_core.data.sources.source import Source

ADDRESS = "127.0.0.1"
"""Where the server listens unless its configuration names another address."""
explorer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
"""The program `udml-explorer`."""


@explorer.command()
def open_app(folder: Annotated[str | None, typer.Argument(show_default=False, help=(
                 "A folder or archive of images, or a table of embeddings, to browse at once."))] = None,
             port: Annotated[int | None, typer.Option(min=1, max=65535, show_default=False, help=(
                 "The server's port. Default: 8501, or the next free port."))] = None,
             browser: Annotated[bool, typer.Option(help="Open the app in the browser.")] = True,
             root: Root = None, _version: Version = False) -> None:
    """Start the app on this computer and open it in the browser.

    Ctrl+C ends the server. Runs in progress continue, and a later start shows them.
    """
    if port is not None and is_used(port):
        exit_with(f"Port {port} is used, perhaps by this app: open http://{ADDRESS}:{port}, or leave out --port.", 1)
    name = "" if folder is None else remember(folder).name
    variables = start_variables(name, browser and _can_open()) | {"PYTHONPATH": python_path()}
    if root is not None:
        variables["UDML_RUNS"] = str(root_of(root))
    options = [] if port is None else ["--server.port", str(port)]
    # -P: a file streamlit.py or a folder pages in the current folder is not imported.
    _become([sys.executable, "-P", str(APP / "serve.py"), *options], os.environ | variables)


def is_used(port: int) -> bool:
    """Return whether another program listens at a port of this computer."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port that was left a moment ago is free
        try:
            probe.bind((ADDRESS, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def remember(name: str) -> Source:
    """Add a folder, an archive or a table to the list of data sets; the name of a listed data set is left as it is.

    Raises:
        UserError: There is no such folder, or it has no images.
    """
    from udml_core.data import catalog
    from udml_core.data.sources.embeddings import EmbeddingTable
    from udml_core.data.sources.located import Located
    from udml_core.data.sources.metadata import MetadataFolder

    source = catalog.find(catalog.extracted(name, print_progress()))
    source.check()
    if isinstance(source, EmbeddingTable):
        catalog.remember_table(source)
    elif isinstance(source, Located) and Path(source.name).is_absolute():
        source = catalog.remember(source.name)
        if isinstance(source, MetadataFolder):
            typer.echo(source.describe(), err=True)
    return source


def _can_open() -> bool:
    """Return whether there is a screen for a browser: a text browser would take the terminal from the server."""
    has_screen = sys.platform in ("win32", "darwin") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return (has_screen or "BROWSER" in os.environ) and not is_exposed()


def _become(command: list[str], environment: dict[str, str]) -> NoReturn:
    """Run a program in this process, so that signals reach it; Windows has only child processes."""
    sys.stdout.flush()
    sys.stderr.flush()
    if sys.platform == "win32":
        sys.exit(subprocess.call(command, env=environment))
    os.execve(command[0], command, environment)
