"""The header of a run names the run, what training gained, and the embedding in view, on every page of one run."""

from __future__ import annotations

import pytest

from pages.parts.base.empty_state import IMPROVING
from tests.app.opening import opened


@pytest.mark.parametrize(("page", "query", "embedding"), [
    ("map", {"frame": "0"}, "before training"), ("map", {}, "after training"),
    ("grid", {"moment": "initial"}, "before training"), ("triplets", {"epoch": "3"}, "epoch 3"),
    ("clusters", {}, "frozen features"), ("retrieval", {}, "after training")])
def test_the_header_names_the_embedding_in_view(page: str, query: dict[str, str], embedding: str,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UDML_EXAMPLES")
    test = opened(page, run=IMPROVING, **query)
    headers = [html.proto.body for html in test.get("html") if 'class="run-header"' in html.proto.body]
    assert len(headers) == 1
    assert "<small>Method</small> <b>RPML</b>" in headers[0]
    assert "34.3 % → 81.9 %</b> <small>frozen 96.1 %</small>" in headers[0]
    assert f"<small>Embedding</small> <b>{embedding}</b>" in headers[0]
