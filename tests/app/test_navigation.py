"""The nine pages, their views, and former addresses."""

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
from streamlit.testing.v1 import AppTest

from pages.parts.shell import missing
from pages.parts.shell.views import FORMER, PAGES, PARAMETER, VIEWS, former_address, views_of
from tests.app.opening import ROOT, opened
from tests.running import worked
from udml_core.runs import Run
from udml_core.runs.analyses import finished_maps

navigate = st.navigation


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Page]]:
    """The pages that the app registers, at every run of its script."""
    noted: list[Sequence[Page]] = []

    def note(pages: Sequence[Page], **options: Any) -> Page:
        noted.append(pages)
        return navigate(pages, **options)

    monkeypatch.setattr(st, "navigation", note)
    return noted


def titles(pages: Sequence[Page]) -> list[str]:
    return [page.title for page in pages if page.visibility == "visible"]


def test_the_sidebar_has_nine_pages_and_each_file_is_one(calls: list[Sequence[Page]]) -> None:
    assert not opened("results").exception
    assert titles(calls[-1]) == ["Home", "Lab", "Explore", "Search", "Label", "Runs", "Data", "Learn", "Results"]
    shown = [page.url_path or "home" for page in calls[-1] if page.visibility == "visible"]
    assert sorted(shown) == sorted(path.stem for path in (ROOT / "pages").glob("*.py") if path.stem != "__init__")


def test_every_view_has_a_module_and_every_module_is_a_view() -> None:
    assert sorted(VIEWS) == sorted(path.stem for path in (ROOT / "pages" / "views").glob("[!_]*.py"))
    assert {view.page for view in VIEWS.values()} == set(PAGES) - {"home", "data", "learn"}


@pytest.mark.parametrize("page", [page for page in PAGES if views_of(page)])
def test_a_page_opens_each_of_its_views_by_its_control(page: str) -> None:
    first, *others = views_of(page)
    test = opened(first)
    for name in (*others, first):
        control, = (control for control in test.segmented_control if control.label == "View")
        assert control.value == view_in_session(test)
        control.set_value(name).run()
        assert not test.exception, name
        assert view_in_session(test) == name
        assert test.query_params.get(PARAMETER, [first]) in ([name], name)


def view_in_session(test: AppTest) -> str:
    return str(test.session_state["page"])


def test_a_view_that_its_page_lacks_opens_the_first_one() -> None:
    assert view_in_session(opened("explore", tool="refine")) == "explore"


@pytest.mark.parametrize(("former", "parameters", "view", "kept"), [
    ("map", {"run": ["a"], "color": ["class"]}, "explore", {"run": ["a"], "color": ["class"]}),
    ("pairs", {"show": ["give"], "asked": ["1.2"]}, "pair_labels", {"asked": ["1.2"]}),
    ("pairs", {"show": ["prototypes"]}, "pairs", {"show": ["prototypes"]}),
    ("lesson_epsilon", {"epsilon": ["0.5"], "more": ["1"]}, "learn",
     {"lesson": "epsilon", "images": "digits", "epsilon": ["0.5"]}),
    ("advice", {"dataset": ["digits"]}, "data", {"dataset": ["digits"], "view": "advice"})])
def test_a_former_address_names_the_view_that_shows_the_same(
        former: str, parameters: dict[str, Any], view: str, kept: dict[str, Any]) -> None:
    assert former_address(former, parameters) == (view, kept)


def test_a_former_map_and_grid_keep_their_embedding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = worked(tmp_path / "runs", fields={"dimension": 4, "epochs": 1})
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    (first, *_) = finished_maps(run)
    assert first.spec().frames == ("initial", "final")
    own = {"run": [run.id]}
    assert former_address("map", own | {"frame": ["0"]}) == ("explore", own | {"frame": ["0"], "map": first.id})
    assert former_address("map", own | {"picked": ["3"]}) == ("explore", own | {"picked": ["3"]})
    assert former_address("map", own | {"color": ["half"]})[1]["map"] == first.id
    assert former_address("map", own | {"map": ["x"]}) == ("explore", own | {"map": ["x"]})
    assert former_address("grid", own | {"moment": ["initial"]}) == (
        "explore", own | {"map": f"grid-of-{first.id}", "frame": "0"})
    assert former_address("grid", own | {"map": [first.id]}) == ("explore", own | {"map": f"grid-of-{first.id}"})
    assert former_address("grid", {"run": ["../x"]})[1]["map"] == "grid-of-"


def test_former_addresses_are_those_of_version_0_3(calls: list[Sequence[Page]]) -> None:
    opened("learn")
    hidden = {page.url_path for page in calls[-1] if page.visibility == "hidden"}
    assert hidden == {"train", "sweeps", "map", "grid", "clusters", "neighborhoods", "triplets", "instances",
                      "affinity", "pairs", "retrieval", "refine", "labels", "compare", "benchmark", "lesson_epsilon",
                      "home", "advice"}


def test_a_wrong_address_gets_a_page_of_its_own_and_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    state: dict[str, Any] = {}
    wanted = {"name": "learn"}
    monkeypatch.setattr(st, "session_state", state)
    monkeypatch.setattr(missing, "get_script_run_ctx", lambda: SimpleNamespace(
        pages_manager=SimpleNamespace(intended_page_name=wanted["name"])))
    known = {*PAGES, *FORMER}
    assert missing.missing_pages(known) == []
    for name in ("deep/er", "nonsense", "nonsense", ""):  # later runs of the script know the page by a hash only
        wanted["name"] = name
        found = missing.missing_pages(known)
    assert state[missing.SEEN] == ["nonsense"]
    assert len(found) == 1


def test_the_search_lists_every_page_and_view_and_opens_it(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Mapping[str, Any]] = []
    answers = [{"page": "Explore: Pairs"}]

    def component(_name: str, _html: str) -> Any:
        def show(data: Mapping[str, Any], **_options: Any) -> SimpleNamespace:
            sent.append(data)
            return SimpleNamespace(chosen=answers.pop() if answers else None)
        return show

    monkeypatch.setattr("pages.parts.draw.keys.component", component)
    test = opened("results")
    listed = [page["title"] for page in sent[0]["pages"]]
    assert len(listed) == len(set(listed)) == len({"home", "data", "learn", *VIEWS})
    assert all(page["help"] for page in sent[0]["pages"])
    assert view_in_session(test) == "pairs"


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
    entry = "opened('home').exception" if script == "app.py" else f"not runpy.run_path({str(ROOT / script)!r})"
    code = ("import pages, runpy, sys\nfrom tests.app.opening import opened\nassert 'pages.names' in sys.modules\n"
            f"assert not {entry}\nassert 'pages.names' not in sys.modules\nprint(sys.modules['pages'].__file__)")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, text=True, capture_output=True,
                          env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"})
    assert done.stdout.split() == [str(ROOT / "pages" / "__init__.py")], done.stdout + done.stderr


def test_compare_shows_the_runs_that_were_chosen_on_runs(pair: list[Run]) -> None:
    test = opened("runs", run=pair[1].id, **{"with": pair[0].id})
    next(control for control in test.segmented_control if control.label == "View").set_value("compare").run()
    assert test.multiselect(key="compare-runs").value == [pair[1].id, pair[0].id]
