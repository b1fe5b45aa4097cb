"""Every page through Streamlit's AppTest: empty, with a run, with a run that failed, with nonsense in its address."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pages.parts.base import cached as loading
from tests.app.opening import opened, texts
from tests.running import worked, write_digits
from udml_core.data import catalog
from udml_core.runs import Run

PAGES = ("home", "data", "train", "runs", "map", "grid", "clusters", "neighborhoods", "instances",
         "triplets", "labels", "affinity", "pairs", "retrieval", "lesson_epsilon", "results")


pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(autouse=True)
def no_further_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UDML_DATA", raising=False)


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "none"))


@pytest.fixture(scope="module")
def done(places: Path) -> Run:
    return worked(places / "runs")


@pytest.fixture(scope="module")
def failed(places: Path) -> Run:
    return worked(places / "runs", fields={"dimension": 16, "epochs": 2, "epsilon": 1.0})


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("empty")
def test_without_any_run_each_page_says_what_to_do_next(page: str) -> None:
    test = opened(page)
    assert not test.exception
    advice = {"home": "Train RPML now", "data": "computed once", "train": "Images climb a neighbor graph",
              "runs": "Start one on the page", "lesson_epsilon": "To take away",
              "results": "judged by the same protocol"}
    assert advice.get(page, "Train one, then come back") in texts(test)


@pytest.mark.parametrize("page", PAGES)
def test_with_a_finished_and_a_failed_run_each_page_stands(page: str, done: Run, failed: Run) -> None:
    assert done.status().state == "done", done.status().message
    assert not opened(page).exception


def test_a_failed_run_shows_its_reason_and_can_be_resumed(failed: Run) -> None:
    test = opened("runs", run=failed.id)
    assert "Lower the field 'epsilon'" in "\n".join(one.value for one in test.error)
    assert "Resume" in [button.label for button in test.button]


def test_a_finished_run_shows_its_evaluation_beside_frozen_and_pca(done: Run) -> None:
    test = opened("runs", run=done.id)
    table = next(one.value for one in test.dataframe if "PCA, same width" in one.value.columns)
    assert list(table.columns) == ["Initial", "Frozen", "PCA, same width", "Final"]
    assert table.loc["Recall@1", "Final"] > 90


def test_runs_of_several_widths_are_laid_over_each_other_by_k_and_by_width(done: Run) -> None:
    evaluation = done.evaluation()
    assert evaluation is not None
    copies = [Run(shutil.copytree(done.folder, done.folder.with_name(f"{done.id}-{number}"))) for number in range(2)]
    wider = {name: row | {"dimension": 32.0, "mprec@10": 12.5} for name, row in evaluation.items()}
    copies[0].write_evaluation(wider)
    copies[1].write_evaluation({name: {"dimension": 8.0, "mprec@10": 11.0} for name in evaluation})
    test = opened("runs", run=done.id, **{"with": f"{copies[0].id}.nonsense.{copies[1].id}"})
    assert not test.exception
    assert "How pure the nearest are" in texts(test)
    assert "evaluated before mprec@K was kept" in texts(test)
    tables = [one.value for one in test.dataframe]
    by_depth = next(one for one in tables if "K" in one)
    assert by_depth["K"].tolist() == list(range(1, 51))
    assert by_depth.iloc[9, 1] == round(evaluation["final"]["mprec@10"], 2)
    assert by_depth.shape[1] == 4, "K, two runs with curves, frozen features"
    by_width = next(one for one in tables if "d" in one)
    assert by_width["d"].tolist() == [8, 16, 32]
    assert by_width["mprec@10"].tolist() == [11.0, by_depth.iloc[9, 1], 12.5]
    for copy in copies:
        shutil.rmtree(copy.folder)


def test_retrieval_answers_the_query_in_the_address(done: Run) -> None:
    test = opened("retrieval", run=done.id, add="3")
    assert not test.exception
    assert "After training" in texts(test)
    assert "10 hits" in texts(test).replace("10 of 10", "10")


@pytest.mark.parametrize("query", [{"run": "nonsense"}, {"add": "-4"}, {"add": "3.999999.x"}, {"add": "²"},
                                   {"add": "9" * 5000}, {"add": "inf"}, {"k": "nan"}, {"dataset": "/nowhere"},
                                   {"method": "nonsense"}])
@pytest.mark.parametrize("page", PAGES)
def test_nonsense_in_the_address_is_survived(page: str, query: dict[str, str], done: Run) -> None:
    assert not opened(page, **query).exception


def test_the_form_is_made_of_the_method_s_fields(done: Run) -> None:
    test = opened("train", method="srpml", dataset="digits")
    labels = {one.label for kind in ("slider", "select_slider", "selectbox", "toggle") for one in test.get(kind)}
    assert {"Alpha · α in °", "Epsilon · ε", "Learning rate · η", "Neighbors · k", "Batch norm"} <= labels
    assert "between 0 and 90 degrees" in test.slider(key="train-srpml-alpha").help


def test_a_run_of_a_method_that_is_not_known_here_is_listed_and_says_so(
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
        assert "unheard-of (a method unknown here)" in texts(test) or page == "retrieval"
        assert not test.error
    test = opened("runs", run="20250101-000000-other-a1b2c3")
    assert not test.exception
    assert len(test.dataframe[0].value) == 3
    next(button for button in test.button if button.label == "Resume").click().run()
    assert "The method must be one of" in test.error[0].value


def test_a_folder_whose_images_changed_is_read_again(tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "images", 20)
    before = loading.load_dataset(str(folder))
    next((folder / "class 1").iterdir()).rename(folder / "class 2" / "corrected.png")
    loading._present.clear()
    after = loading.load_dataset(str(folder))
    assert len(after) == len(before)
    assert "class 2/corrected.png" in after.names
    assert after.fingerprint == catalog.load(str(folder)).fingerprint


def test_zero_shot_is_not_offered_as_a_wreck_for_unlabeled_images(tmp_path: Path) -> None:
    from PIL import Image

    for index in range(6):
        Image.new("L", (16, 16), 30 * index).save(tmp_path / f"{index}.png")
    catalog.remember(tmp_path)
    try:
        test = opened("data", dataset=str(tmp_path))
        assert not test.exception
        assert "These images have no classes" in texts(test)
        training = opened("train", dataset=str(tmp_path))
        next(box for box in training.selectbox if box.label == "Split").select("zero-shot").run()
        assert not training.exception
        assert "zero-shot split needs at least 2 classes" in training.error[0].value
    finally:
        catalog.forget(tmp_path)


def test_a_link_to_a_data_set_that_is_not_listed_says_so() -> None:
    test = opened("data", dataset="nothing of the kind")
    assert not test.exception
    assert "not listed here, nothing of the kind" in test.warning[0].value
    assert not opened("data", dataset="digits").warning
