"""A visitor without a browser: a raw connection to the app's server, which speaks Streamlit's protocol."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

PATIENCE = 240.0
"""Seconds after which a script that has not ended counts as hanging."""
LARGEST = 2**28
SLIDER, MAP = "udml_slider", "udml_scatter"
"""Names of the components whose data a visitor follows."""


class Visitor:
    """One session.

    Attributes:
        bytes: Bytes that the server has sent.
        texts: The texts of the page, by element.
        sliders: For each slider its id, the fragment that it belongs to, and its data.
        maps: The last data of each map.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._socket: ClientConnection | None = None
        self._query, self._page = "", ""
        self._states: dict[str, str] = {}
        self.bytes = 0
        self.texts: list[str] = []
        self.sliders: dict[str, tuple[str, dict[str, Any]]] = {}
        self.maps: dict[str, bytes] = {}

    async def open(self, page: str, query: str = "") -> float:
        """Connect and open a page; return the seconds until its script has ended."""
        began = time.monotonic()
        self._page, self._query = page, query
        self._socket = await connect(f"{self._url.replace('http', 'ws', 1)}/_stcore/stream", max_size=LARGEST,
                                     subprotocols=["streamlit"], origin=self._url, open_timeout=PATIENCE,
                                     compression=None, ping_interval=None)
        await self._run("")
        return time.monotonic() - began

    async def move(self, choose: Callable[[dict[str, Any]], float], number: int = 0) -> float:
        """Move a slider; return the seconds until the server's answer is complete.

        Args:
            choose: Returns the new value, given the data of the slider.
            number: The slider on the page.
        """
        began = time.monotonic()
        name = list(self.sliders)[number]
        fragment, data = self.sliders[name]
        report = {"value": choose(data), "revision": data["revision"] + 1}
        self._states[name] = json.dumps({"value": report})
        await self._run(fragment)
        return time.monotonic() - began

    async def close(self) -> None:
        """End the session."""
        if self._socket is not None:
            await self._socket.close()

    async def _run(self, fragment: str) -> None:
        assert self._socket is not None
        message = BackMsg()
        message.rerun_script.query_string = self._query
        message.rerun_script.page_name = self._page
        message.rerun_script.fragment_id = fragment
        message.rerun_script.widget_states.widgets.extend(
            WidgetState(id=name, json_value=value) for name, value in self._states.items())
        await self._socket.send(message.SerializeToString())
        async with asyncio.timeout(PATIENCE):
            while not self._receive(await self._socket.recv()):
                pass

    def _receive(self, content: str | bytes) -> bool:
        """Follow a message; return whether it ends the script."""
        assert isinstance(content, bytes)
        self.bytes += len(content)
        message = ForwardMsg.FromString(content)
        kind = message.WhichOneof("type")
        if kind == "script_finished":
            ended = ForwardMsg.ScriptFinishedStatus.Name(message.script_finished)
            return ended != "FINISHED_EARLY_FOR_RERUN"
        if kind == "page_info_changed":
            self._query = message.page_info_changed.query_string
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._see(message.delta.new_element, message.delta.fragment_id)
        return False

    def _see(self, element: Any, fragment: str) -> None:
        kind = element.WhichOneof("type")
        if kind != "bidi_component":
            self.texts.append(f"{kind}: {str(getattr(element, kind))[:2000]}" if kind else "")
            return
        component = element.bidi_component
        if component.component_name == SLIDER:
            self.sliders[component.id] = fragment, json.loads(component.json)
        elif component.component_name == MAP:
            self.maps[component.id] = component.SerializeToString()
