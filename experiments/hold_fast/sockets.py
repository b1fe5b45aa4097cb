"""A visitor without a browser: a raw connection to the app's server, which speaks Streamlit's protocol."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
import urllib.request
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

Result = TypeVar("Result")
PATIENCE = 240.0
"""Seconds after which a script that has not ended counts as hanging."""
LARGEST = 2**28
SLIDER = "udml_slider"
DRAWN = ("plotly_chart", "arrow_data_frame", "imgs", "html", "metric")
"""Elements that show results, besides the app's own components."""
SERVED = re.compile(rb"/served/[\w-]+")


class Pictures:
    """What a page shows, by the messages of the server.

    Attributes:
        drawn: Digest of the last content of each element that shows results.
        sliders: The fragment and the data of each slider, by its id.
        files: Addresses of files that the elements need.
        texts: The texts of the page.
        query: The parameters in the address.
    """

    def __init__(self) -> None:
        self.drawn: dict[str, str] = {}
        self.sliders: dict[str, tuple[str, dict[str, Any]]] = {}
        self.files: set[str] = set()
        self.texts: list[str] = []
        self.query = ""

    def follow(self, content: bytes) -> str:
        """Follow a message; return its type."""
        message = ForwardMsg.FromString(content)
        kind = str(message.WhichOneof("type"))
        if kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "script_finished":
            return ForwardMsg.ScriptFinishedStatus.Name(message.script_finished)
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._see(message.delta.new_element, message.delta.fragment_id, str(list(message.metadata.delta_path)))
        return kind

    def _see(self, element: Any, fragment: str, place: str) -> None:
        kind = element.WhichOneof("type")
        if kind == "bidi_component":
            component = element.bidi_component
            self.files |= {name.decode() for name in SERVED.findall(component.bytes + component.js_content.encode())}
            if component.component_name == SLIDER:
                self.sliders[component.id] = fragment, json.loads(component.json)
            else:
                self.drawn[component.id] = hashlib.sha1(component.bytes, usedforsecurity=False).hexdigest()
        elif kind in DRAWN:
            content = getattr(element, kind).SerializeToString()
            self.drawn[place] = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        if kind in ("markdown", "alert", "exception", "text"):
            self.texts.append(str(getattr(element, kind)))


class Visitor:
    """One session.

    Attributes:
        pictures: What the page shows.
        bytes: Bytes of messages that the server has sent.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._socket: ClientConnection | None = None
        self._page = ""
        self._states: dict[str, str] = {}
        self.bytes = 0
        self.pictures = Pictures()

    async def open(self, page: str, query: str = "") -> float:
        """Connect, open a page and fetch its files; return the seconds until then."""
        began = time.monotonic()
        self._page, self.pictures.query = page, query
        self._socket = await connect(f"{self._url.replace('http', 'ws', 1)}/_stcore/stream", max_size=LARGEST,
                                     subprotocols=["streamlit"], origin=self._url, open_timeout=PATIENCE,  # type: ignore[list-item, arg-type]
                                     compression=None, ping_interval=None)
        await self._run("")
        await asyncio.gather(*(asyncio.to_thread(self._fetch, name) for name in self.pictures.files))
        return time.monotonic() - began

    async def move(self, choose: Callable[[dict[str, Any]], float], number: int = 0) -> float:
        """Move a slider; return the seconds until the server's answer is complete.

        Args:
            choose: Returns the new value, given the data of the slider.
            number: The slider on the page.
        """
        began = time.monotonic()
        name = list(self.pictures.sliders)[number]
        fragment, data = self.pictures.sliders[name]
        self._states[name] = json.dumps({"value": {"value": choose(data), "revision": data["revision"] + 1}})
        await self._run(fragment)
        return time.monotonic() - began

    async def close(self) -> None:
        """End the session."""
        if self._socket is not None:
            await self._socket.close()

    def _fetch(self, name: str) -> None:
        with urllib.request.urlopen(self._url + name, timeout=PATIENCE) as answer:
            answer.read()

    async def _run(self, fragment: str) -> None:
        """Run the page, or a fragment of it, and follow the messages to the end."""
        assert self._socket is not None
        message = BackMsg()
        message.rerun_script.query_string = self.pictures.query
        message.rerun_script.page_name = self._page
        message.rerun_script.fragment_id = fragment
        message.rerun_script.widget_states.widgets.extend(
            WidgetState(id=name, json_value=value) for name, value in self._states.items())
        await self._socket.send(message.SerializeToString())
        async with asyncio.timeout(PATIENCE):
            kind = ""
            while not kind.startswith("FINISHED") or kind == "FINISHED_EARLY_FOR_RERUN":
                content = await self._socket.recv(decode=False)
                self.bytes += len(content)
                kind = self.pictures.follow(content)


def run_alone(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in a thread of its own: a browser that was open has left its event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
