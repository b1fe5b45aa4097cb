"""Sessions on a real server without a browser."""

from __future__ import annotations

import time

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

ANSWERING = 120.0
"""Seconds that a server has to answer."""


def visit(url: str, page: str, query: str = "") -> float:
    """Open a page in a session of its own, as a browser's tab does.

    Returns:
        Seconds until the page was complete.

    Raises:
        AssertionError: The page shows an exception, or did not end in time.
    """
    began = time.monotonic()
    with connect(f"{url.replace('http', 'ws')}/_stcore/stream", subprotocols=["streamlit"],  # type: ignore[list-item]
                 max_size=None, origin=url) as session:  # type: ignore[arg-type]
        request = BackMsg()
        request.rerun_script.query_string = query
        request.rerun_script.page_name = page
        session.send(request.SerializeToString())
        while time.monotonic() - began < ANSWERING:
            message = ForwardMsg()
            message.ParseFromString(session.recv(timeout=ANSWERING))  # type: ignore[arg-type]
            kind = message.WhichOneof("type")
            shown = message.delta.new_element if kind == "delta" else None
            if shown is not None and shown.WhichOneof("type") == "exception":
                raise AssertionError(f"{page}: {shown.exception.type}: {shown.exception.message}")
            if kind == "script_finished":
                return time.monotonic() - began
    raise AssertionError(f"{page} was not complete after {ANSWERING:g} seconds")
