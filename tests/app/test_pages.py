"""Every page through Streamlit's AppTest, with and without runs."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from pages.parts.curves import precision
from pages.parts.draw.tables import inert_table
from pages.parts.shell import cached
from pages.parts.shell.views import PAGES, VIEWS, page_of
from tests.app.opening import ROOT, opened, switched, texts
from tests.running import worked, write_digits
from udml_core.data import catalog
from udml_core.runs import Run

SHOWN = ("home", *VIEWS, "data", "learn")
"""All views, and the pages without views."""
ADVICE = {"home": "Train RPML now", "data": "Browse these images", "train": "Start training", "runs": "Start a run",
          "sweeps": "Try several values",
          "learn": "Every lesson", "results": "the same protocol",
          "benchmark": "the same encoder"}
"""Part of the advice on a page without runs; the other pages need a finished run."""
NONSENSE = {"run": "nonsense", "with": "..", "dataset": "/nowhere", "method": "nonsense", "record": "[x]",
            "add": f"-4.3.999999.x.².inf.{'9' * 5000}", "subtract": "²", "classes": "99.-1", "clusters": "77777.a",
            "pair": "1.1", "view": "nonsense", "misses": "never", "gallery": "nowhere", "k": "nan", "epochs": "maybe",
            "map": "nonsense", "moment": "-1", "epoch": "x", "color": "nonsense", "selected": "a:b:c", "picked": "nan",
            "second": "1e12", "embedding": "other", "candidates": "0", "flat": "x", "threshold": "7",
            "n_alpha": "inf", "proxy": "900", "admission": "perhaps", "epsilon": "-1", "gamma": "x", "alpha": "1e9",
            "cluster": "-1", "triplet": "1e12", "label": "9" * 400, "show": "nonsense", "margin": "-1", "bias": "1e9",
            "recipe": "nonsense", "query": "-1", "panel": "nonsense", "frame": "-1", "image": "x", "lesson": "../x",
            "refined": "nonsense", "size": "-5", "split": "nonsense", "device": "", "seed": "x", "answer": "9",
            "measure": "nonsense", "uses": "nobody"}
"""A link in which nothing can be read."""
pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(autouse=True)
def _without_further_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UDML_DATA", raising=False)


@pytest.fixture
def _without_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "none"))


@pytest.fixture(scope="module")
def done(places: Path) -> Run:
    """A finished run on the digits."""
    return worked(places / "runs")


@pytest.fixture(scope="module")
def failed(places: Path) -> Run:
    """A run that failed because no two images are similar enough."""
    return worked(places / "runs", fields={"dimension": 16, "epochs": 2, "epsilon": 1.0})


def test_tables_of_all_pages_are_drawn_by_the_function_that_makes_their_texts_inert() -> None:
    """Streamlit's own menu downloads a table as CSV, past the guard of the app's files."""
    drawing = [path.name for path in (ROOT / "pages").rglob("*.py") if "st.dataframe(" in path.read_text("utf-8")]
    assert drawing == ["tables.py"]
    frame = pd.DataFrame({"=a": ["=1+1", "b"], "n": [-1, 2]}, index=["@x", "y"])
    table = inert_table(frame)
    assert [*table.columns, *table.index, *table.iloc[:, 0]] == [
        "\u2060=a", "n", "\u2060@x", "y", "\u2060=1+1", "b"]
    assert table["n"].tolist() == [-1, 2]
    assert frame.iloc[0, 0] == "=1+1", "the page's own table stays"


@pytest.mark.parametrize("script", [ROOT / "app.py", *sorted((ROOT / "pages").glob("*.py"))],
                         ids=lambda path: path.stem)
def test_a_page_script_has_no_bare_string_that_streamlit_would_show(script: Path) -> None:
    module = ast.parse(script.read_text(encoding="utf-8"))
    bare = [node.lineno for node in module.body[1:]
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    assert not bare, f"strings below constants in lines {bare}; write comments instead"


@pytest.mark.usefixtures("_without_runs")
def test_the_app_navigates_from_home_to_every_page() -> None:
    test = opened("home")
    for name in SHOWN:
        switched(test, name)
        assert not test.exception, name
        assert test.title[0].value == ("UDML Explorer" if name == "home" else PAGES[page_of(name)].title)


@pytest.mark.parametrize("page", SHOWN)
@pytest.mark.usefixtures("_without_runs")
def test_a_page_without_runs_says_what_to_do_next(page: str) -> None:
    test = opened(page)
    assert not test.exception
    labels = "\n".join(button.label for button in test.button)
    assert ADVICE.get(page, "Train a run") in f"{texts(test)}\n{labels}"


@pytest.mark.parametrize("page", SHOWN)
def test_a_page_opens_with_a_finished_and_a_failed_run(page: str, done: Run, failed: Run) -> None:
    assert done.status().state == "done", done.status().message
    assert not opened(page).exception


@pytest.mark.parametrize("page", SHOWN)
def test_a_page_ignores_a_nonsense_link(page: str, done: Run) -> None:
    assert not opened(page, **NONSENSE).exception


def test_a_failed_run_shows_its_reason_and_can_be_resumed(failed: Run) -> None:
    test = opened("runs", run=failed.id)
    assert "Lower the field 'epsilon'" in "\n".join(error.value for error in test.error)
    assert "Resume" in [button.label for button in test.button]


def test_a_finished_run_shows_its_evaluation_beside_frozen_features_and_pca(done: Run) -> None:
    test = opened("runs", run=done.id)
    table = next(table.value for table in test.dataframe if "PCA (centered)" in table.value.columns)
    assert list(table.columns) == ["Before training", "Frozen features", "PCA (centered)", "After training"]
    assert float(table.loc["R@1", "After training"].removesuffix(" %")) > 90


def test_baselines_tell_centered_from_uncentered_pca(done: Run) -> None:
    """Runs of versions before 0.3 have evaluated PCA without centering."""
    rows = {"frozen": {"mprec@10": 40.0}, "final": {"dimension": 16}}
    for name, title in (("centered pca", "PCA (centered)"), ("pca", "PCA, same dimension")):
        references = precision._references([(done.spec(), rows | {name: {"mprec@10": 30.0}})])
        assert references == {"Frozen features": rows["frozen"], title: {"mprec@10": 30.0}}


def test_a_run_is_titled_by_the_hyperparameters_that_differ_from_the_defaults(done: Run) -> None:
    assert "(dimension 16, epochs 2, conjugate-gradient steps 3)" in texts(
        opened("runs", run=done.id, section="settings"))


def test_runs_of_several_widths_are_compared_by_k_and_by_width(done: Run) -> None:
    evaluation = done.evaluation()
    assert evaluation is not None
    copies = [Run(shutil.copytree(done.folder, done.folder.with_name(f"{done.id}-{number}"))) for number in range(2)]
    wider = {name: row | {"dimension": 32.0, "mprec@10": 12.5} for name, row in evaluation.items()}
    copies[0].write_evaluation(wider)
    copies[1].write_evaluation({name: {"dimension": 8.0, "mprec@10": 11.0} for name in evaluation})
    test = opened("runs", run=done.id, section="neighbors", **{"with": f"{copies[0].id}.nonsense.{copies[1].id}"})
    assert not test.exception
    assert "evaluate" in "".join(info.value for info in test.info), "one run was evaluated before every K was kept"
    tables = [table.value for table in test.dataframe]
    by_depth = next(table for table in tables if "K" in table)
    assert by_depth["K"].tolist() == list(range(1, 51))
    assert by_depth.iloc[9, 1] == round(evaluation["final"]["mprec@10"], 1)
    assert by_depth.shape[1] == 4, "K, two runs with curves, frozen features"
    by_width = next(table for table in tables if "d" in table)
    assert by_width["d"].tolist() == [8, 16, 32]
    assert by_width["mprec@10"].tolist() == [11.0, by_depth.iloc[9, 1], 12.5]
    for copy in copies:
        shutil.rmtree(copy.folder)


def test_retrieval_shows_the_hits_of_the_query_in_the_link(done: Run) -> None:
    test = opened("retrieval", run=done.id, add="3")
    assert not test.exception
    assert "After training" in texts(test)
    assert "10 hits" in texts(test).replace("10 of 10", "10")


def test_the_form_has_a_widget_for_every_hyperparameter(done: Run) -> None:
    test = opened("train", method="srpml", dataset="digits")
    labels = {widget.label for kind in ("slider", "select_slider", "selectbox", "toggle") for widget in test.get(kind)}
    assert {"Largest half angle · α in °", "Strictness of groups · ε", "Learning rate", "Neighbors · k",
            "Batch normalization"} <= labels
    assert "between 0 and 90 degrees" in test.slider(key="train-srpml-alpha").help


def test_a_run_of_an_unknown_method_is_listed_and_cannot_be_resumed(
        done: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, state in (("old", "done"), ("other", "stopped"), ("known", "done")):
        run = Run(shutil.copytree(done.folder, tmp_path / "runs" / f"20250101-000000-{name}-a1b2c3"))
        run.write_status(run.stored_status().model_copy(update={"state": state}))
        if name != "known":
            spec = run.spec().model_copy(update={"method": "unheard-of"})
            (run.folder / "spec.json").write_text(spec.model_dump_json(), encoding="utf-8")
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    for page in ("home", "retrieval"):
        test = opened(page)
        assert not test.exception
        assert "unheard-of (unknown me" in texts(test) or page == "retrieval", "two equal names lose their middle"
        assert not test.error
    test = opened("runs", run="20250101-000000-other-a1b2c3")
    assert not test.exception
    assert len(test.dataframe[0].value) == 3
    next(button for button in test.button if button.label == "Resume").click().run()
    assert "method must be one of" in test.error[0].value


def test_a_folder_is_read_again_when_its_images_change(tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "images", 20)
    before = cached.load_dataset(str(folder))
    next((folder / "class 1").iterdir()).rename(folder / "class 2" / "corrected.png")
    cached._available.clear()
    after = cached.load_dataset(str(folder))
    assert len(after) == len(before)
    assert "class 2/corrected.png" in after.names
    assert after.fingerprint == catalog.load(str(folder)).fingerprint


def test_an_open_data_set_is_used_again_without_a_message_to_the_browser(tmp_path: Path) -> None:
    folders = [str(write_digits(tmp_path / f"images {number}", 20)) for number in range(6)]

    def show(folder: str) -> None:
        from pages.parts.shell.cached import load_dataset

        load_dataset(folder)

    test = AppTest.from_function(show, args=(folders[0],)).run()
    assert [child.type for child in test.main.children.values()] == ["empty"], "the bar is gone and leaves no gap"
    first = cached.load_dataset(folders[0])
    assert [child.type for child in test.run().main.children.values()] == ["empty"], "what follows keeps its place"
    assert cached.load_dataset(folders[0]) is first
    for folder in folders[1:]:
        cached.load_dataset(folder)
    assert cached.load_dataset(folders[0]) is not first  # the four that were used last stay open


def test_the_zero_shot_split_of_unlabeled_images_is_an_error_that_says_why(tmp_path: Path) -> None:
    for index in range(6):
        Image.new("L", (16, 16), 30 * index).save(tmp_path / f"{index}.png")
    catalog.remember(tmp_path)
    try:
        test = opened("data", dataset=str(tmp_path))
        assert not test.exception
        assert "· no classes ·" in texts(test)
        training = opened("train", dataset=str(tmp_path))
        next(box for box in training.selectbox if box.label == "Split").select("zero-shot").run()
        assert not training.exception
        assert "zero-shot split needs at least 2 classes" in training.error[0].value
    finally:
        catalog.forget(tmp_path)


def test_given_halves_are_named_on_data_and_lab(tmp_path: Path) -> None:
    for index in range(6):
        half = tmp_path / ("train" if index < 4 else "test")
        half.mkdir(exist_ok=True)
        Image.new("L", (16, 16), 30 * index).save(half / f"{index}.png")
    catalog.remember(tmp_path)
    try:
        assert "· no classes · halves given: 4 train, 2 test ·" in texts(opened("data", dataset=str(tmp_path)))
        words = texts(opened("train", dataset=str(tmp_path)))
        assert "does not use the given halves (4 train, 2 test); the split 'seen' does." in words
    finally:
        catalog.forget(tmp_path)


def test_a_link_to_an_unlisted_data_set_shows_a_warning() -> None:
    test = opened("data", dataset="nothing of the kind")
    assert not test.exception
    assert "'nothing of the kind' in the link is not listed" in test.warning[0].value
    assert not opened("data", dataset="digits").warning
