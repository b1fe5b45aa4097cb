"""What the command that starts the app tells its user and its server, which is another process.

Environment variables carry it to the server. This module imports only what is quick: it speaks before everything else
is imported.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

BROWSED, OPENS = "UDML_BROWSE", "UDML_OPEN"

WITH_VALUE = ("--port", "--runs")
"""Options of the command that a value follows."""
UVX = ("archive-v", "environments-v")
"""How the folders begin in which uvx keeps environments; their programs are not on the user's PATH."""


def announce(words: Sequence[str]) -> None:
    """Say that the app starts, or end with a message if the folder to open does not exist.

    Args:
        words: The words after the command.
    """
    if not {"--help", "--version"}.isdisjoint(words):
        return
    name = _opened_name(words)
    is_path = os.sep in name or name.startswith(("~", "."))
    paths = (os.path.expanduser(text) for text in (name, name.partition("#")[0], name.rpartition("#")[0]) if text)
    if is_path and not any(map(os.path.exists, paths)):
        print(f"There is no folder or file '{name}'. Name a folder or an archive of images, or a table.",
              file=sys.stderr)
        sys.exit(2)
    print("UDML Explorer starts …", file=sys.stderr, flush=True)


def _opened_name(words: Sequence[str]) -> str:
    """Return the folder, or the data set, that words of the command name; empty for none."""
    rest = iter(words)
    for word in rest:
        if word in WITH_VALUE:
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return ""


def program_words() -> list[str]:
    """Return the words with which a terminal starts the program `udml` of this environment."""
    if any(part.startswith(UVX) for part in Path(sys.prefix).parts):
        return ["uvx", "--from", "udml-explorer", "udml"]
    own = shutil.which("udml", path=os.path.dirname(sys.executable))
    if own is None:
        return [sys.executable, "-m", "udml_core"]
    found = shutil.which("udml")
    return ["udml"] if found is not None and os.path.samefile(found, own) else [own]


def start_variables(dataset: str, opens: bool) -> dict[str, str]:
    """Return the environment variables of a server.

    Args:
        dataset: Name of the data set to browse; empty for the start page.
        opens: Whether the server opens a browser.
    """
    return {BROWSED: dataset, OPENS: str(int(opens))}


def browsed_dataset() -> str:
    """Return the name of the data set that the app was started with; empty for none."""
    return os.environ.get(BROWSED, "")


def opens_browser() -> bool:
    """Return whether this server opens a browser once it listens."""
    return os.environ.get(OPENS) == "1"


def start_address() -> str:
    """Return the first page's address below the server's: the data set to browse, or empty for the start page."""
    name = browsed_dataset()
    return f"data?{urlencode({'dataset': name})}" if name else ""
