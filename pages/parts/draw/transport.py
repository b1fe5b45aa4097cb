"""The browser components on the app's pages.

Large parts of their messages are fetched once; changing parts travel inside the message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from udml_core.base import components
from udml_core.base.components import digest, script_and_style

from .served import SERVED

LOADER = 'const { default: draw } = await import(new URL("%s", location.href));\nexport default draw;\n'
"""A module that fetches a component's script once. Streamlit sends a component's module with every change of its data:
of the 183 kB that a slider's step sent, 152 kB were scripts."""


class Message(components.Message):
    """A message whose large parts the server keeps, once it runs.

    Args:
        self_contained: Whether all parts travel inside, for a file that must work without a server.
    """

    def __init__(self, self_contained: bool = False) -> None:
        self._is_served = SERVED.is_open and not self_contained
        super().__init__(SERVED.address if self._is_served else None)

    def later(self, make: Callable[[], bytes], kind: str, name: str) -> str:
        """Return the address of a file that is made when the browser fetches it; see `ServedFiles.address_later`."""
        return SERVED.address_later(make, kind, name) if self._is_served else self.url(make(), kind)


@st.cache_resource(show_spinner=False)
def component(name: str, html: str) -> Any:
    """Register the component of assets/NAME.js and assets/NAME.css."""
    script, style = script_and_style(name)
    if SERVED.is_open:
        script = LOADER % SERVED.address(script.encode(), "text/javascript", f"{name}-{digest(script.encode())}", True)
    return st.components.v2.component(f"udml_{name}", html=html, css=style, js=script)
