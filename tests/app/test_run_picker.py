"""The app's run: one choice for all pages, kept by the session and written to the address."""

from __future__ import annotations

import json
import re
import shutil
import time
from datetime import date
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.shell import run_picker
from pages.parts.shell.empty_state import IMPROVING, LABELED, PAIRED
from pages.parts.shell.interesting import interesting_queries
from pages.parts.shell.run_status import escaped, run_title, run_titles, tell_apart
from tests.app.opening import opened, switched, texts
from tests.running import worked
from udml_core.runs import Run, example_runs, hide_examples, list_runs, runs_folder, show_examples
from udml_core.runs.notes import Notes
from udml_core.runs.tasks import Status

pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def newer(places: Path) -> Run:
    """A finished run without triplets."""
    return worked(places / "runs")


@pytest.fixture(scope="module")
def older(newer: Run) -> Run:
    """A finished run that no page would choose by itself."""
    return Run(shutil.copytree(newer.folder, newer.folder.with_name("20250101-000000-rpml-a1b2c3")))


def shown(test: AppTest) -> str:
    """Return the id of the run in the sidebar."""
    box, = (box for box in test.sidebar.selectbox if box.label == "Run")
    return str(box.value)


def go(test: AppTest, page: str) -> AppTest:
    """Open a page as a click in the sidebar does, which forgets the address."""
    test.query_params.clear()
    switched(test, page)
    assert not test.exception, page
    return test


@pytest.mark.slow
def test_the_chosen_run_is_kept_from_page_to_page(newer: Run, older: Run) -> None:
    test = opened("retrieval")
    assert shown(test) == newer.id
    test.sidebar.selectbox(key="choose-run").set_value(older.id).run()
    assert test.query_params["run"] in (older.id, [older.id])
    for page in ("explore", "data", "home", "clusters"):
        assert shown(go(test, page)) == older.id, page
    assert "run" not in go(test, "home").query_params, "Home needs no run in its address"


def test_a_link_to_a_data_set_names_a_run_on_its_images_in_a_new_session(newer: Run) -> None:
    other = Run(shutil.copytree(newer.folder, newer.folder.with_name("20250101-000000-rpml-d1b2c3")))
    spec = json.loads((other.folder / "spec.json").read_text(encoding="utf-8"))
    (other.folder / "spec.json").write_text(json.dumps(spec | {"dataset": "fashion-mini"}), encoding="utf-8")
    try:
        assert shown(opened("data", dataset="fashion-mini")) == other.id, "not the newest, whose images are not in view"
        assert shown(opened("data", dataset="digits")) == newer.id
    finally:
        shutil.rmtree(other.folder)


@pytest.mark.slow
def test_the_current_image_is_kept_from_page_to_page(newer: Run) -> None:
    test = opened("explore", run=newer.id, picked="7")
    for page, parameter in (("retrieval", "add"), ("triplets", "picked"), ("refine", "query"), ("clusters", "picked"),
                            ("neighborhoods", "picked"), ("runs", ""), ("explore", "picked")):
        query = go(test, page).query_params
        assert {name: query[name] for name in ("add", "picked", "query") if name in query} in (
            [{}] if not parameter else [{parameter: "7"}, {parameter: ["7"]}]), page
    test.query_params["picked"] = "9"
    test.run()
    assert test.query_params["picked"] in ("9", ["9"]), "the page that is open keeps its own image"


def test_the_image_that_a_page_shows_by_itself_is_shown_on_the_next_page(newer: Run) -> None:
    test = opened("explore", run=newer.id)
    assert "picked" not in test.query_params
    first, second = (str(image) for image, _ in interesting_queries(newer)[:2])
    for page, parameter in (("retrieval", "add"), ("triplets", "picked"), ("explore", "picked")):
        assert go(test, page).query_params[parameter] in (first, [first]), page
    test.button(key="explore-step-1").click().run()
    assert go(test, "triplets").query_params["picked"] in (second, [second]), "the user's image comes before it"


def test_titles_in_the_sidebar_are_short_and_equal_ones_differ(newer: Run, older: Run,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    titles = run_titles([newer, older])
    assert titles[older.id] == "RPML on Digits · Jan 1 00:00", "when it started, no id"
    assert re.fullmatch(r"RPML on Digits · \d\d:\d\d", titles[newer.id]), "no date, because it is today"
    tomorrow = tell_apart([newer, older], dict.fromkeys(titles, "RPML"), today=date(2025, 1, 2))
    assert re.fullmatch(r"RPML · [A-Z][a-z]{2} \d+ \d\d:\d\d", tomorrow[newer.id])
    same = Run(shutil.copytree(older.folder, older.folder.with_name("20250101-000030-rpml-a1b2c4")))
    assert run_titles([older, same])[same.id] == "RPML on Digits · Jan 1 00:00:30"
    shutil.rmtree(same.folder)
    assert run_title(newer) == run_titles([newer, older])[newer.id], "runs that are not listed count"
    monkeypatch.delenv("UDML_EXAMPLES")
    examples = run_titles(example_runs())
    assert "Example: PLM on Fashion-MNIST" in examples.values()
    assert len(set(examples.values())) == len(examples)
    assert max(map(len, examples.values())) <= 31, "the box shows about 31 letters"
    long = "Distilled refinement of clothes without labels"
    newer.write_notes(Notes.make(name=long))
    assert whole_name(opened("runs", run=newer.id)) == long
    newer.write_notes(Notes.make(name="A <b> & more"))
    assert "A &lt;b&gt; &amp; more" in whole_name(opened("runs", run=newer.id)), "a name is no markup"
    newer.write_notes(Notes.make())


def whole_name(test: AppTest) -> str:
    """Return the name that lies over the box of the sidebar, in as many lines as it needs."""
    name, = (element.proto.body for element in test.sidebar.get("html") if "run-name" in element.proto.body)
    return str(name.partition(">")[2].removesuffix("</div>"))


def test_a_user_without_runs_keeps_the_first_example_where_a_page_can_show_it(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("UDML_EXAMPLES")
    monkeypatch.setenv("UDML_RUNS", str(tmp_path))
    assert shown(opened("retrieval")) == PAIRED, "the example that shows a first page best"
    test = opened("explore")
    for page in ("runs", "data", "retrieval"):
        assert shown(go(test, page)) == IMPROVING, page
        assert "Shown instead" not in texts(test)
    for page, example, name in (("affinity", LABELED, "SSDML on Digits"), ("pairs", PAIRED, "NML on Digits")):
        assert shown(go(test, page)) == example, "the kept example lacks what this page shows"
        assert f"lacks what this page shows. Shown instead: **{escaped(f'Example: {name}')}**" in texts(test)
    assert shown(go(test, "neighborhoods")) == IMPROVING, "the others are not kept"


def test_a_run_has_one_name_in_every_list(newer: Run, older: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UDML_EXAMPLES")
    names = list(run_titles(list_runs(runs_folder())).values())
    runs, compare, home = (opened(page) for page in ("runs", "compare", "home"))
    for test in (runs, compare, home):
        assert test.sidebar.selectbox(key="choose-run").options == names
    assert sorted(runs.dataframe[0].value["Run"]) == sorted(names)
    assert compare.multiselect(key="compare-runs").options == names
    listed = [text for text in texts(home).splitlines() if text.startswith((":material/check_circle:", "**"))]
    assert sorted(text.split("**")[1] for text in listed) == sorted(escaped(name) for name in names)
    chosen = opened("runs", run=example_runs()[0].id)
    title, = (text.value for text in chosen.markdown if text.value.startswith("#### "))
    assert title.endswith(escaped(run_title(example_runs()[0])))
    assert title.count("Example") == 1


def test_a_link_chooses_the_run_of_the_following_pages(newer: Run, older: Run) -> None:
    test = opened("runs", run=older.id)
    assert shown(test) == older.id
    assert shown(go(test, "retrieval")) == older.id
    test.sidebar.selectbox(key="choose-run").set_value(newer.id).run()
    assert shown(go(test, "explore")) == newer.id


def test_the_sidebar_chooses_the_run_of_a_page_that_reads_the_address(newer: Run, older: Run) -> None:
    test = opened("runs", run=older.id, section="settings")
    test.sidebar.selectbox(key="choose-run").set_value(newer.id).run()
    assert test.query_params["run"] in (newer.id, [newer.id])
    assert f"`{newer.id}`" in texts(test)


def test_a_run_that_does_not_fit_a_page_is_kept_and_another_is_shown(newer: Run, older: Run) -> None:
    folder = newer.folder.with_name("20250102-000000-rpml-b1b2c3")
    stopped = Run(shutil.copytree(newer.folder, folder))
    stopped.write_status(stopped.stored_status().model_copy(update={"state": "stopped", "searchable": False}))
    try:
        test = opened("retrieval", run=stopped.id)
        assert shown(test) == newer.id
        assert "has not finished. Shown instead" in texts(test)
        test.run()
        assert "has not finished. Shown instead" in texts(test), "the choice is still the stopped run"
        assert shown(go(test, "affinity")) == stopped.id, "this page shows unfinished runs as well"
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("page", ["retrieval", "explore", "clusters", "refine", "runs", "compare"])
def test_a_run_is_shown_while_it_is_evaluated(newer: Run, page: str) -> None:
    run = Run(shutil.copytree(newer.folder, newer.folder.with_name("20250103-000000-rpml-c1c2c3")))
    (run.folder / "evaluation.json").unlink()
    run.write_status(run.stored_status().model_copy(update={"state": "running", "phase": "evaluation"}))
    try:
        test = opened(page, run=run.id)
        assert not test.exception
        assert page in ("runs", "compare") or shown(test) == run.id
        assert not test.error
    finally:
        shutil.rmtree(run.folder)


def test_a_link_to_a_removed_run_warns_once_and_keeps_the_choice(newer: Run, older: Run) -> None:
    test = opened("explore", run=older.id)
    test.query_params["run"] = "nonsense"
    switched(test, "retrieval")
    assert "The link names a run that cannot be shown here: nonsense" in texts(test)
    assert shown(test) == older.id
    assert "The link names" not in texts(test.run())


def test_runs_warns_of_a_removed_run_and_corrects_the_address(newer: Run, older: Run) -> None:
    test = opened("runs", run="nonsense")
    assert "The link names a run that cannot be shown here: nonsense" in texts(test)
    assert test.query_params["run"] in (newer.id, [newer.id], older.id, [older.id])
    assert "The link names" not in texts(test.run())


def test_a_chosen_run_is_in_the_box_under_one_name_before_and_after_its_end(newer: Run, older: Run) -> None:
    run = Run(shutil.copytree(older.folder, older.folder.parent / "20250101-000000-rpml-0000bb"))
    try:
        run.write_status(Status(state="waiting", ticket=time.time()))
        begun = opened("runs", run=run.id)
        during, name = shown(begun), begun.sidebar.selectbox(key="choose-run").proto.options
        run.write_status(newer.stored_status())
        begun.run()
        assert (during, shown(begun)) == (run.id, run.id), "the end of a run changes no choice"
        assert list(begun.sidebar.selectbox(key="choose-run").proto.options) == list(name)
        assert begun.query_params["run"] in (run.id, [run.id])
    finally:
        shutil.rmtree(run.folder)


def test_a_former_name_that_the_browser_sends_is_no_choice(newer: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    state = {run_picker.BOX: "RPML on Digits · waiting", run_picker.CHOSEN: newer.id}
    monkeypatch.setattr(run_picker.st, "session_state", state)
    run_picker._remember_choice()
    run_picker._open_choice()
    assert state == {run_picker.BOX: "RPML on Digits · waiting", run_picker.CHOSEN: newer.id}


def test_a_link_opens_an_example_although_examples_are_hidden(newer: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UDML_EXAMPLES")
    hide_examples(newer.folder.parent)
    try:
        test = opened("explore", run=IMPROVING)
        assert shown(test) == IMPROVING
        assert "The link names" not in texts(test)
        assert shown(go(test, "retrieval")) == IMPROVING, "it stays chosen"
        assert shown(opened("explore")) == newer.id
    finally:
        show_examples(newer.folder.parent)
