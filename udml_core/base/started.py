"""What the command that starts the app tells its server.

The server is another process, so environment variables carry it.
"""

from __future__ import annotations

import os
from urllib.parse import urlencode

BROWSED, OPENS = "UDML_BROWSE", "UDML_OPEN"


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
