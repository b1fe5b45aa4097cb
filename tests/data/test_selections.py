"""Stored selections of images whose file is damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from udml_core.base.errors import UserError
from udml_core.data.selections import LISTED, load_selection, store_selection


@pytest.mark.parametrize("content", [b"", b"PK\3\4" + bytes(100), b"PK\5\6" + bytes(18), b"text", None])
def test_a_damaged_selection_is_named_and_written_again(content: bytes | None, tmp_path: Path,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path))
    ids = np.arange(LISTED + 1)
    name = store_selection(ids)
    path = tmp_path / "selections" / f"{name[1:]}.npy"
    path.write_bytes(path.read_bytes()[:-8] if content is None else content)
    with pytest.raises(UserError, match=rf"{path.name}, which could not be read\. Select the images again\."):
        load_selection(name, 100)
    assert store_selection(ids) == name
    np.testing.assert_array_equal(load_selection(name, 100), ids)
    path.unlink()
    with pytest.raises(UserError, match="not stored on this machine"):
        load_selection(name, 100)
