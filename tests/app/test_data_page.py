"""The page Data through Streamlit's AppTest: the gallery's controls, browsing, and the class level of an import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from PIL import Image
from streamlit.testing.v1 import AppTest

from pages.parts.data import browsing as page
from pages.parts.data import computed
from pages.parts.shell import cached, run_picker
from pages.parts.shell.run_status import escaped
from tests.app.opening import opened, switched, texts
from tests.running import spec, trained, worked, write_digits
from udml_core.base.errors import duration
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import choose_spec
from udml_core.data.given.exclusions import exclude
from udml_core.data.speed import record_speed
from udml_core.exploration.browsing import neighbor_similarities, order_images, outlier_scores
from udml_core.exploration.sample import KINDS, Kind, neighborhoods_of, sample_rows
from udml_core.numerics.neighbors import nearest
from udml_core.runs import Run, RunRequest, create_run, runs_folder
from udml_core.runs.analyses import AnalysisSpec, list_analyses
from udml_core.runs.analyses.kinds.pca import PCA
from udml_core.work import jobs
from udml_core.work.jobs import browse
from udml_core.work.jobs.browse import continue_browsing, find_browsing
from udml_core.work.jobs.estimate import encoding_kind, evaluation_kind, follow_kind, record_epoch, start_kind
from udml_core.work.workers import analyse as analyse_worker
from udml_core.work.workers import train as worker


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The indices of the tiles of each gallery that the page draws."""
    galleries: list[list[int]] = []

    def draw(_dataset: Any, tiles: list[Any], *_: Any, **__: Any) -> None:
        galleries.append([tile.id for tile in tiles])

    monkeypatch.setattr(page, "gallery", draw)
    return galleries


@pytest.fixture
def digits() -> Dataset:
    return catalog.load("digits")


@pytest.fixture
def browsed(digits: Dataset, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A finished run of the frozen features of raw pixels, and its map."""
    run = trained(runs_folder(), method="frozen")
    analyse_worker.keep(run, AnalysisSpec(kind="pca", frames=("final",)), lambda _share, _step: None)
    monkeypatch.setattr(computed, "DEFAULT_BACKBONE", "pixels")
    return run


def selectbox(test: AppTest, label: str) -> Any:
    return next(box for box in test.selectbox if box.label == label)


def test_the_gallery_shows_every_image_and_links_filter_it(shown: list[list[int]], digits: Dataset) -> None:
    assert not opened("data", dataset="digits").exception
    assert shown[-1] == list(range(1797))
    test = opened("data", dataset="digits", **{"class": "3"})
    assert digits.labels is not None
    assert shown[-1] == np.flatnonzero(digits.labels == 3).tolist()
    assert selectbox(test, "Class").value == 3
    test.text_input(key="find").set_value("nowhere").run()
    assert "No image matches" in test.info[0].value


def test_the_best_search_is_the_main_button_of_the_gallery_and_the_others_are_links() -> None:
    kinds = {button.label: button.proto.type for button in opened("data", dataset="digits").button}
    assert kinds["Find the best search"] == "primary"
    assert kinds["Browse these images"] == "tertiary"
    audit = opened("data", dataset="digits", view="audit").button
    assert {button.label: button.proto.type for button in audit}["Find the best search"] == "secondary"


def test_the_gallery_leaves_out_excluded_images_until_they_are_asked_for(shown: list[list[int]],
                                                                         digits: Dataset) -> None:
    exclude(digits, [0, 5])
    test = opened("data", dataset="digits")
    assert shown[-1] == [index for index in range(1797) if index not in (0, 5)]
    assert "1,795 of 1,797 images. 2 excluded images left out." in texts(test)
    test.toggle(key="data-excluded").set_value(True).run()
    assert shown[-1] == list(range(1797))


def test_a_sample_before_the_images_are_compared_says_that_it_follows(shown: list[list[int]]) -> None:
    test = opened("data", dataset="digits", sample="diverse", count="50")
    assert "The sample follows once the images are compared; until then all 1,797 are shown." in texts(test)
    assert shown[-1] == list(range(1797))
    assert test.query_params["sample"] == "diverse", "a link's sample waits for the features"


def test_the_gallery_is_sorted_and_the_address_holds_the_order(shown: list[list[int]], digits: Dataset) -> None:
    test = opened("data", dataset="digits")
    selectbox(test, "Sort by").select("class").run()
    assert digits.labels is not None
    assert shown[-1] == np.argsort(digits.labels, kind="stable").tolist()
    assert test.query_params["sort"] == "class"


def test_many_images_are_divided_into_parts(shown: list[list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "PART", 1000)
    test = opened("data", dataset="digits")
    assert shown[-1] == list(range(1000))
    selectbox(test, "Part").select(1000).run()
    assert shown[-1] == list(range(1000, 1797))


def test_browsed_images_are_sorted_by_outlier_score_and_similarity(shown: list[list[int]], browsed: Run) -> None:
    test = opened("data", dataset="digits", sort="outlier")
    assert not test.exception
    scores, similarities = expected_values(np.asarray(browsed.embeddings("final")))
    assert shown[-1][:5] == np.argsort(-scores, kind="stable")[:5].tolist()
    assert {"Map", "Search"} <= {link.label for link in test.get("page_link")}
    assert "Train on these images" in {link.label for link in test.get("page_link")}
    opened("data", dataset="digits", sort="duplicate")
    assert similarities[shown[-1]].tolist() == pytest.approx(sorted(similarities, reverse=True), abs=1e-6)


@pytest.mark.usefixtures("browsed")
def test_a_sample_of_the_filtered_images_is_shown_without_excluded_images(shown: list[list[int]], digits: Dataset,
                                                                          browsed: Run) -> None:
    assert digits.labels is not None
    test = opened("data", dataset="digits", sample="outlying", count="7", **{"class": "3"})
    assert not test.exception
    first = shown[-1]
    assert len(first) == 7
    assert set(digits.labels[first].tolist()) == {3}
    test.number_input(key="data-count").set_value(3).run()
    assert shown[-1] == first[:3], "a smaller sample is the beginning of a larger one"
    test.selectbox(key="data-sample").set_value("next").run()
    assert test.query_params["sample"] == "next"
    assert "They cover" in texts(test)
    assert shown[-1] != first[:3]
    test.selectbox(key="data-sample").set_value("all").run()
    assert len(shown[-1]) == (digits.labels == 3).sum()


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_sample_is_the_librarys_among_the_filtered_images(kind: Kind, shown: list[list[int]],
                                                                       digits: Dataset, browsed: Run) -> None:
    test = opened("data", dataset="digits", sample=kind, count="9", **{"class": "3"})
    assert not test.exception
    images, among = neighborhoods_of(digits, np.asarray(browsed.embeddings("final")))
    assert digits.labels is not None
    rows = sample_rows(kind, among, digits.labels[images] == 3, 9, [])
    assert shown[-1] == images[rows].tolist()
    assert len(rows) == 9


@pytest.mark.usefixtures("browsed")
def test_too_few_images_are_not_offered_for_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computed, "LEAST_TRAINED", 1798)
    labels = {link.label for link in opened("data", dataset="digits").get("page_link")}
    assert "Search" in labels
    assert "Train on these images" not in labels


def expected_values(embeddings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the outlier score (n,) and the similarity (n,) of the nearest neighbor of embeddings (n, l)."""
    neighbors = nearest(embeddings, 10)[1]
    similarities = neighbor_similarities(embeddings, neighbors)
    return outlier_scores(neighbors, similarities), similarities.max(axis=1)


def test_images_excluded_before_the_features_come_last_without_a_value(
        digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    exclude(digits, [3, 1000])
    run = trained(runs_folder(), method="frozen")
    found = computed.load_nearest(run, list_analyses(run, PCA)[0])
    kept = np.setdiff1d(np.arange(1797), [3, 1000])
    for values, expected in zip((found.values("outlier"), found.values("duplicate")),
                                expected_values(np.asarray(run.embeddings("final"))[kept]), strict=True):
        assert values is not None
        np.testing.assert_allclose(values[kept], expected, rtol=1e-5)
        assert np.isnan(values[[3, 1000]]).all()
        assert set(order_images(digits, np.arange(1797), "outlier", values)[-2:]) == {3, 1000}
    assert found.values("class") is None
    assert page._badge(found.outlier, 3) == page._badge(None, 0) == ""
    assert page._badge(np.array([1.5]), 0) == "1.500"


def test_browsing_computes_features_then_a_map(digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                               ) -> None:
    """Each call starts one step, and repeated calls start nothing twice."""
    started: list[str] = []
    monkeypatch.setattr(browse, "submit", lambda planned, root: started.append("run") or create_run(planned, root))
    encoder = choose_spec("pixels", digits.native_size, digits.gray)
    assert find_browsing(digits, encoder, tmp_path).run is None
    first = continue_browsing(digits, encoder, tmp_path).task
    assert isinstance(first, Run)
    assert first.spec().method == "frozen"
    assert find_browsing(digits, encoder, tmp_path).task == first
    continue_browsing(digits, encoder, tmp_path)
    assert started == ["run"]
    worker.work(first)
    assert find_browsing(digits, encoder, tmp_path).finished is not None, "a run ends with a map"
    for analysis in list_analyses(first):
        analysis.remove()
    state = find_browsing(digits, encoder, tmp_path)
    assert (state.run, state.finished, state.task) == (first, None, None)
    monkeypatch.setattr(browse, "analyse", lambda run, wanted: analyse_worker.keep(run, wanted, lambda *_: None))
    continue_browsing(digits, encoder, tmp_path)
    state = find_browsing(digits, encoder, tmp_path)
    assert state.finished is not None
    assert state.task is None
    assert state.finished.projection().frames == ("final",)


def test_browsing_says_a_time_only_once_it_was_measured_to_the_map(shown: list[list[int]], digits: Dataset,
                                                                   tmp_path: Path,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))  # other tests measured their own speeds
    monkeypatch.setattr(computed, "DEFAULT_BACKBONE", "pixels")
    planned = jobs.plan(RunRequest(dataset="digits", method="frozen", backbone="pixels"), digits)
    record_epoch(planned, len(planned.halves(digits).train), 1.0)
    for kind, seconds in ((encoding_kind, 0.01), (start_kind, 5.0), (evaluation_kind, 50.0), (follow_kind, 400.0)):
        test = opened("data", dataset="digits")
        assert "Browse these images" in [button.label for button in test.button]
        assert "measured here" not in texts(test), "a part was never measured"
        record_speed(kind(planned), seconds)
    expected = duration(jobs.estimate(planned, digits).seconds)
    assert f"About {expected}, measured here" in texts(opened("data", dataset="digits"))


def test_runs_of_other_methods_and_encoders_are_no_browsing(digits: Dataset, tmp_path: Path) -> None:
    create_run(spec(method="pca", fields={"dimension": 16}), tmp_path)
    create_run(spec(method="frozen", size=16), tmp_path)
    assert find_browsing(digits, choose_spec("pixels", 8, True), tmp_path).task is None


def test_the_class_level_of_an_import_is_previewed_and_chosen(tmp_path: Path) -> None:
    for number, file in enumerate(("day/cats/1.png", "day/dogs/2.png", "night/cats/3.png")):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (16, 16), 50 * number).save(tmp_path / file)
    test = opened("data", dataset=str(tmp_path))  # a folder that no one imported opens the form with its path
    assert "which was not opened here yet. Press **Open** below." in texts(test)
    assert selectbox(test, "Data set").value is None, "no other data set is shown"
    assert test.text_input(key="import-path").value == str(tmp_path)
    (levels,) = test.radio
    assert levels.options == ["No classes", "Level 1: 2 classes: day (2), night (1)",
                              "Level 2: 2 classes: cats (2), dogs (1)"]
    assert levels.value == 1
    levels.set_value(2).run()
    next(button for button in test.button if button.label == "Open").click().run()
    try:
        assert not test.exception
        assert test.query_params["dataset"] == f"{tmp_path}#level=2"
        assert "2 classes" in texts(test)
        assert "cats" in selectbox(test, "Class").options
    finally:
        catalog.forget(tmp_path)


def test_the_message_of_a_failed_import_stays_until_the_folder_is_imported(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    test = opened("data", **{"import": "1"})
    test.text_input(key="import-path").set_value(str(folder)).run()

    def use() -> None:
        next(button for button in test.button if button.label == "Open").click().run()

    use()
    test.run()
    assert [escaped(str(folder)) in error.value for error in test.error] == [True]
    write_digits(folder, 8)
    use()
    try:
        assert test.query_params["dataset"] == str(folder)
        assert not test.error
    finally:
        catalog.forget(folder)


def test_another_data_set_clears_the_page_before_it_is_opened(monkeypatch: pytest.MonkeyPatch, digits: Dataset) -> None:
    steps: list[str] = []
    load, empty = cached.load_dataset, st.empty

    def note(step: str, then: Any) -> Any:
        return lambda *args: steps.append(step) or then(*args)

    monkeypatch.setattr(cached, "load_dataset", note("open", load))
    monkeypatch.setattr(st, "empty", note("clear", empty))

    def clears(test: AppTest) -> bool:
        assert not test.exception
        found = "clear" in steps[:steps.index("open")]
        steps.clear()
        return found

    test = opened("data", dataset=digits.name, view="classes")
    assert clears(test)
    assert not clears(test.run()), "the same images do not flicker"
    assert clears(test.selectbox(key="data-dataset").set_value("emoji").run())


@pytest.mark.usefixtures("own_places")
def test_the_folder_that_was_opened_last_comes_first_until_another_data_set_is_chosen(tmp_path: Path) -> None:
    worked(runs_folder())
    folder = write_digits(tmp_path / "birds", 12)
    catalog.remember(folder)
    try:
        for page in ("data", "train"):
            assert opened(page).query_params["dataset"] in (str(folder), [str(folder)]), page
        test = opened("retrieval")  # it shows the run on other images
        test.query_params.clear()
        test = switched(test, "data")
        assert test.selectbox(key="data-dataset").value == str(folder)
        test.selectbox(key="data-dataset").set_value("digits").run()
        test = switched(test, "retrieval")
        test.query_params.clear()
        assert switched(test, "data").selectbox(key="data-dataset").value == "digits"
    finally:
        catalog.forget(folder)


@pytest.mark.usefixtures("own_places")
def test_the_enlarged_image_becomes_the_query_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    run = worked(runs_folder())
    monkeypatch.setattr(page, "gallery", lambda *_args, **_options: 5)
    opens: list[tuple[str, dict[str, str]]] = []
    monkeypatch.setattr(run_picker, "open_view", lambda view, query_params: opens.append((view, query_params)))
    test = opened("data", dataset="digits")
    test.button(key="enlarged-search").click().run()
    assert opens == [("retrieval", {"run": run.id, "add": "5"})]
