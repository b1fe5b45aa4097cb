"""Addresses that no page writes: parameters that stand twice, and embeddings and images with hostile names."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from pages.parts.shell.views import VIEWS
from tests.app.opening import opened, texts
from tests.app.test_pages import SHOWN
from tests.running import worked
from tests.tiers import fast_first
from udml_core.base.errors import UserError
from udml_core.runs import Run
from udml_core.runs.analyses import REFINED
from udml_core.runs.search import Retrieval
from udml_core.runs.search.names import RECIPE

pytestmark = pytest.mark.usefixtures("own_places")
TAILS = ("../../../etc/passwd", "..", "/etc/passwd", "a\0b", "x" * 300, "planted", "folder", "pipe", "*",
         "</script><script>alert(1)</script>", "\u202e0\U0001f600", "[a](http://evil.example)")
"""What follows the beginning of a refinement's id or of a recipe."""
TWICE = {"run": ("nonsense", "a"), "epsilon": ("1", "2"), "k": ("5", "x"), "embedding": ("final", "initial"),
         "dataset": ("digits", "nowhere"), "method": ("rpml", "plm"), "add": ("3", "4"), "map": ("umap", "pca"),
         "view": ("a", "b"), "picked": ("1", "2"), "query": ("1", "2"), "classes": ("0", "1"), "epoch": ("1", "2"),
         "selected": ("1.2", "3"), "with": ("a", "b"), "runs": ("a.b", "c"), "size": ("8", "9"), "seed": ("1", "2"),
         "alpha": ("30", "40"), "gamma": ("0.5", "x"), "find": ("a", "b"), "judge": ("a", "b"), "lesson": ("a", "b"),
         "record": ("a", "b"), "recipe": ("whiten", "average"), "label": ("1", "2"), "gallery": ("all", "test")}
"""Parameters that stand twice."""


@pytest.fixture(scope="module")
def run(places: Path) -> Run:
    return worked(places / "runs")


class _Shell:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("executed",)


def plant(run: Run) -> None:
    """Put beside the refinements of a run what must not be read as one: a pickle, a folder and a named pipe."""
    for name in ("planted", "folder", "pipe"):
        folder = run.folder / "analyses" / f"{REFINED}{name}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "spec.json"
        if name == "planted":
            path.write_bytes(pickle.dumps(_Shell()))
        elif name == "folder":
            path.mkdir(exist_ok=True)
        elif not path.exists():
            os.mkfifo(path)


@pytest.mark.parametrize("start", [REFINED, RECIPE, ""])
@pytest.mark.parametrize("tail", TAILS, ids=range(len(TAILS)))
def test_a_hostile_name_of_an_embedding_has_a_short_message(
        start: str, tail: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plant(run)
    with pytest.raises(UserError) as raised:
        Retrieval(run).frames.frame(f"{start}{tail}")
    assert len(str(raised.value)) < 900
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("page", fast_first(["retrieval", "refine", "compare", "explore", "neighborhoods"], 2))
def test_pages_refuse_hostile_names_of_embeddings_and_images(
        page: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plant(run)
    for tail in TAILS:
        name = f"{REFINED}{tail}"
        test = opened(page, run=run.id, embedding=name, add=name, refined=name, map=name, recipe=name, frame=name)
        assert not test.exception, (tail, test.exception[0].message)
        assert texts(test)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("page", fast_first(SHOWN, 4))
def test_a_parameter_may_stand_twice(page: str, run: Run) -> None:
    for first in (run.id, "nonsense"):
        twice = {name: list(values) for name, values in TWICE.items()} | {"run": [first, run.id]}
        test = opened(page, **twice)  # type: ignore[arg-type]
        assert not test.exception, test.exception[0].message
        assert len(texts(test)) > 20


def test_all_views_are_shown() -> None:
    assert set(VIEWS) <= set(SHOWN)
