"""Messages from the server to the browser."""

from __future__ import annotations

import tomllib

import pytest
from streamlit import config
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_cache import create_reference_msg, populate_hash_if_needed
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

from tests.app.opening import ROOT

FRAGMENT = "explore"


@pytest.fixture
def _project_settings() -> None:
    """Streamlit's settings of this project."""
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    for name, value in settings["global"].items():
        config.set_option(f"global.{name}", value)


@pytest.mark.usefixtures("_project_settings")
def test_a_fragment_that_runs_again_leaves_no_message_of_its_earlier_run() -> None:
    """A message left over has a place that the page does not have, and the page goes blank."""
    message = ForwardMsg()
    message.metadata.delta_path[:] = [0, 2, 4]
    message.delta.fragment_id = FRAGMENT
    message.delta.new_element.text.body = "x" * 10_000_000
    populate_hash_if_needed(message)
    queue = ForwardMsgQueue()
    queue.enqueue(create_reference_msg(message) if message.metadata.cacheable else message)  # as its sessions do
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=[FRAGMENT])
    assert queue.is_empty()
