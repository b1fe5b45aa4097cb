"""Messages to browser components, read as the browser reads them."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest

from udml_core.base.arrays import Array
from udml_core.base.components import (
    MOST_INSIDE,
    PARTS,
    Message,
    pack_mask,
    plain_script,
    script_and_style,
    unpack_mask,
)


def unpack(packed: bytes) -> tuple[dict[str, Any], bytes]:
    """Return a message's header and the bytes behind it."""
    end = 4 + int.from_bytes(packed[:4], "little")
    return json.loads(packed[4:end]), packed[end:]


def part_of(parts: bytes, part: dict[str, Any]) -> Array:
    return np.frombuffer(parts[part["at"] : part["at"] + part["length"]], part["type"])


def test_arrays_inside_a_message_are_read_back() -> None:
    rows, codes = np.arange(6, dtype=np.int32).reshape(3, 2)[:, ::-1], np.array([1, -1, 0], dtype=np.int8)
    message = Message()
    header, parts = unpack(message.pack({"codes": message.inside(codes), "rows": message.once(rows), "none":
                                         message.inside(None), "name": "é"}))
    np.testing.assert_array_equal(part_of(parts, header["rows"]), rows.ravel())
    np.testing.assert_array_equal(part_of(parts, header["codes"]), codes)
    assert (header["none"], header["name"]) == (None, "é")
    assert message.url(b"12", "image/jpeg") == "data:image/jpeg;base64,MTI="


def test_large_and_lasting_parts_are_kept_at_addresses_that_change_with_the_content() -> None:
    kept: dict[str, tuple[bytes, str]] = {}

    def keep(content: bytes, kind: str, name: str) -> str:
        kept[name] = content, kind
        return name

    rows = np.arange(5, dtype=np.float32)
    first, second, other = (Message(keep).once(array) for array in (rows, rows + 0, rows + 1))
    assert first == second != other
    assert first is not None
    assert kept[first["url"]] == (rows.tobytes(), "application/octet-stream")
    message = Message(keep)
    small, large = message.part(rows), message.part(np.zeros(MOST_INSIDE + 1, dtype=np.uint8))
    assert small is not None
    assert large is not None
    assert "at" in small
    assert "url" in large


@pytest.mark.parametrize("count", [1, 8, 9, 1000])
def test_a_selection_passes_in_either_direction(count: int) -> None:
    chosen = np.flatnonzero(np.random.default_rng(count).random(count) < 0.4)
    packed = pack_mask(chosen, count)
    text = "" if packed is None else base64.b64encode(packed.tobytes()).decode()
    np.testing.assert_array_equal(unpack_mask(text, count), chosen)
    assert (packed is None) == (len(chosen) == 0)


@pytest.mark.parametrize("name", sorted(PARTS))
def test_the_joined_script_has_one_export_which_code_in_the_same_module_can_call(name: str) -> None:
    script, style = script_and_style(name)
    assert script.count("export ") == 1
    assert "export " not in plain_script(script)
    assert f"\nfunction {name}(" in plain_script(script)
    assert "{" in style
