"""The header of a run names the run, what training gained, and the embedding in view, on every page of one run."""

from __future__ import annotations

import pytest

from pages.parts.shell.empty_state import DRAWINGS, IMPROVING, LABELED, PAIRED
from tests.app.opening import opened
from tests.tiers import fast_first


@pytest.mark.parametrize(("page", "query", "embedding"), fast_first([
    ("explore", {"frame": "0"}, "before training"), ("explore", {}, "after training"),
    ("triplets", {"epoch": "3"}, "epoch 3"),
    ("clusters", {}, "raw pixels"), ("retrieval", {}, "after training"),
    ("neighborhoods", {"embedding": "initial"}, "before training"), ("labels", {}, "after training"),
    ("affinity", {}, "after training"), ("pairs", {}, "after training"), ("refine", {}, "refined")], 4))
def test_the_header_names_the_embedding_in_view(page: str, query: dict[str, str], embedding: str,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UDML_EXAMPLES")
    header = header_of(page, run=IMPROVING, **query)
    assert "<small>Method</small> <b>RPML</b>" in header
    assert "68.8 % → 92.2 %</b> <small>frozen 96.1 %</small>" in header
    assert f"<small>Embedding</small> <b>{embedding}</b>" in header


@pytest.mark.parametrize(("page", "run", "query", "embedding"), [
    ("pairs", PAIRED, {"epoch": "3"}, "epoch 3"), ("instances", DRAWINGS, {}, "before and after training"),
    ("affinity", LABELED, {}, "frozen features"), ("affinity", LABELED, {"source": "told"}, "after training")])
def test_pages_of_some_methods_name_what_they_compare(page: str, run: str, query: dict[str, str], embedding: str,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UDML_EXAMPLES")
    assert f"<small>Embedding</small> <b>{embedding}</b>" in header_of(page, run=run, **query)


def header_of(page: str, **query: str) -> str:
    """Return the header of a page, which has only one."""
    (header,) = (html.proto.body for html in opened(page, **query).get("html")
                 if 'class="run-header"' in html.proto.body)
    return str(header)
