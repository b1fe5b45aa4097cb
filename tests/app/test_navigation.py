"""The sidebar: what a newcomer reads, and that every page stays reachable."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.navigation.page import Page
from streamlit.proto.RootContainer_pb2 import RootContainer

from tests.app.opening import ROOT, opened

navigate = st.navigation
Call = tuple[Mapping[str, Sequence[Page]], bool | int]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """The sections and the number of entries that the page asked the sidebar to show, in order."""
    noted: list[Call] = []

    def note(sections: Any, *, expanded: bool | int) -> Page:
        noted.append((sections, expanded))
        return navigate(sections, expanded=expanded)

    monkeypatch.setattr(st, "navigation", note)
    return noted


def titles(sections: Mapping[str, Sequence[Page]]) -> list[str]:
    return [page.title for section in sections.values() for page in section if page.visibility == "visible"]


@pytest.mark.parametrize("page", ["learn", "train", "compare"])
def test_a_newcomer_reads_nine_entries(page: str, calls: list[Call]) -> None:
    assert not opened(page).exception
    (sections, expanded), = calls
    assert titles(sections)[:expanded] == ["Home", "Learn", "Data", "Train", "Runs", "Explore", "Map", "Retrieval",
                                           "Compare"]


def test_the_page_of_a_link_is_in_the_sidebar_although_newcomers_do_not_read_it(calls: list[Call]) -> None:
    assert not opened("pairs").exception
    assert calls[-1][1] is True


def test_every_page_has_one_entry(calls: list[Call]) -> None:
    opened("results")
    listed = titles(calls[-1][0])
    pages = [page.url_path or "home" for section in calls[-1][0].values() for page in section]
    assert sorted(pages) == sorted(path.stem for path in (ROOT / "pages").glob("*.py") if path.stem != "__init__")
    assert len(set(listed)) == len(listed) == len(pages) - 1, "a former page is not listed"


def test_the_search_lists_every_page_of_the_sidebar_and_opens_it(calls: list[Call],
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Mapping[str, Any]] = []
    answers = [{"page": "Pairs"}]

    def component(_name: str, _html: str) -> Any:
        def show(data: Mapping[str, Any], **_options: Any) -> SimpleNamespace:
            sent.append(data)
            return SimpleNamespace(chosen=answers.pop() if answers else None)
        return show

    monkeypatch.setattr("pages.parts.draw.keys.component", component)
    test = opened("results")
    assert [page["title"] for page in sent[0]["pages"]] == titles(calls[0][0])
    assert all(page["help"] for page in sent[0]["pages"])
    assert test.title[0].value == "Pairs"


def test_the_sidebar_has_an_element_before_the_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it has one, Streamlit shows all links, and then hides most of them, so that the page moves."""
    steps: list[str] = []
    fill, show = DeltaGenerator.html, st.navigation

    def note_element(place: DeltaGenerator, *content: Any, **options: Any) -> Any:
        steps.append("sidebar" if place._root_container == RootContainer.SIDEBAR else "page")
        return fill(place, *content, **options)

    def note_links(*sections: Any, **options: Any) -> Page:
        steps.append("links")
        return show(*sections, **options)

    monkeypatch.setattr(DeltaGenerator, "html", note_element)
    monkeypatch.setattr(st, "navigation", note_links)
    assert not opened("learn").exception
    assert "sidebar" in steps[:steps.index("links")]


@pytest.mark.parametrize("script", ["serve.py", pytest.param("app.py", marks=pytest.mark.slow)])
def test_the_app_opens_beside_a_foreign_package_pages(tmp_path: Path, script: str) -> None:
    foreign = tmp_path / "pages"
    foreign.mkdir()
    (foreign / "__init__.py").write_text("from pages import names\n", encoding="utf-8")
    (foreign / "names.py").write_text("", encoding="utf-8")
    entry = "opened('learn').exception" if script == "app.py" else f"not runpy.run_path({str(ROOT / script)!r})"
    code = ("import pages, runpy, sys\nfrom tests.app.opening import opened\nassert 'pages.names' in sys.modules\n"
            f"assert not {entry}\nassert 'pages.names' not in sys.modules\nprint(sys.modules['pages'].__file__)")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, text=True, capture_output=True,
                          env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"})
    assert done.stdout.split() == [str(ROOT / "pages" / "__init__.py")], done.stdout + done.stderr
