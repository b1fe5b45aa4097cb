"""Pages that wait for images which the user has just opened, through Streamlit's AppTest."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.data.first_search import HITS
from pages.parts.shell.address import IMAGE
from pages.parts.shell.awaited import AWAITED, CHANGED, Shown
from pages.parts.shell.focus import DATASET
from pages.parts.shell.run_picker import CHOSEN
from tests.app.opening import opened, texts
from tests.app.test_retrieval_page import headers, tiles
from tests.running import spec, worked, write_digits
from udml_core.data import catalog
from udml_core.data.features import features_path
from udml_core.data.given.exclusions import exclude
from udml_core.data.given.log import log_path_of
from udml_core.runs import Run, create_run, list_runs, runs_folder
from udml_core.work.workers import train as worker

pytestmark = pytest.mark.usefixtures("own_places")
WAITS = "Your images are being prepared"


@pytest.fixture(scope="module")
def earlier(places: Path) -> Run:
    """A finished run of other images."""
    return worked(places / "runs", method="frozen")


@pytest.fixture
def browsed(places: Path, earlier: Run) -> Iterator[Run]:
    """A queued run of the features of a folder."""
    folder = write_digits(places / "photos", 60, by_class=False)
    catalog.remember(str(folder))
    run = create_run(spec(method="frozen", dataset=str(folder), split="all"), runs_folder())
    log_path_of(run.dataset(), "exclusions").unlink(missing_ok=True)
    yield run
    shutil.rmtree(run.folder)


def look_at(browsed: Run) -> AppTest:
    """Open the page Data with the images whose features are awaited."""
    test = opened("data", dataset=browsed.spec().dataset)
    test.session_state["data-backbone"] = "pixels"
    test.run()
    assert test.session_state[AWAITED] == browsed.id
    return test


@pytest.mark.parametrize("page", ["labels", "explore", "retrieval"])
def test_a_page_waits_for_the_images_that_the_user_opened_and_then_shows_them(page: str, browsed: Run) -> None:
    test = look_at(browsed)
    test.switch_page(f"pages/{'label' if page == 'labels' else 'search' if page == 'retrieval' else page}.py").run()
    assert WAITS in texts(test)
    assert test.sidebar.selectbox[0].value == browsed.id, "the sidebar names the images that are prepared"
    worker.work(browsed, analyse=False)
    test.run()
    assert not test.exception
    assert WAITS not in texts(test)
    assert test.session_state[CHOSEN] == browsed.id
    assert AWAITED not in test.session_state


def test_search_opens_with_the_first_images_while_the_others_are_compared(browsed: Run) -> None:
    dataset, encoder = browsed.dataset(), browsed.spec().encoder
    path = features_path(dataset, encoder)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = np.lib.format.open_memmap(path.with_suffix(".part"), "w+", np.float32, (60, 576))
    rows[:40] = np.random.default_rng(0).normal(size=(40, 576))
    rows[9] = rows[30] * 2
    rows.flush()
    path.with_suffix(".progress").write_text(json.dumps({"done": 40}), encoding="utf-8")
    exclude(dataset, [3])
    test = look_at(browsed)
    test.session_state[DATASET], test.session_state[IMAGE] = dataset.fingerprint, "30"
    test.switch_page("pages/search.py").run()
    assert not test.exception
    assert WAITS in texts(test)
    assert "Search the first 38 of 60 images already" in texts(test), "39 are thirteen twentieths, 1 is excluded"
    hits = [tile["id"] for tile in tiles(test, "The most similar images so far")]
    assert hits[0] == 9
    assert len(hits) == HITS
    assert not {3, 30, *range(39, 60)} & set(hits)
    assert [tile["id"] for tile in tiles(test, "The query")] == [30]
    for file in (path.with_suffix(".part"), path.with_suffix(".progress")):
        file.unlink()


def test_search_shows_some_of_the_images_before_the_first_are_compared(browsed: Run) -> None:
    dataset = browsed.dataset()
    for suffix in ("", ".part", ".progress"):
        features_path(dataset, browsed.spec().encoder).with_suffix(suffix or ".npy").unlink(missing_ok=True)
    exclude(dataset, [0])
    test = look_at(browsed)
    test.switch_page("pages/search.py").run()
    assert not test.exception
    assert "Search begins here as soon as the first images are compared." in texts(test)
    shown = [tile["id"] for tile in tiles(test, "Some of your images")]
    assert len(shown) == 23, "24 of 60 evenly spaced, without the excluded one"
    assert shown[-1] == 59


def test_a_link_to_another_run_and_the_button_end_the_waiting(browsed: Run, earlier: Run) -> None:
    test = look_at(browsed)
    test.switch_page("pages/label.py").run()
    test.button(key="awaited-skip").click().run()
    assert WAITS not in texts(test)
    test = opened("labels", run=earlier.id)
    test.session_state[AWAITED] = browsed.id
    test.run()
    assert WAITS not in texts(test)
    assert test.query_params["run"] == earlier.id


def test_the_sidebar_names_the_run_of_the_images_that_are_looked_at(browsed: Run, earlier: Run) -> None:
    worker.work(browsed, analyse=False)
    test = opened("data", dataset=browsed.spec().dataset)
    test.session_state["data-backbone"], test.session_state[CHOSEN] = "pixels", earlier.id
    test.run()
    assert test.session_state[CHOSEN] == browsed.id


def test_a_training_on_the_same_images_stays_in_the_sidebar(browsed: Run) -> None:
    other = worked(runs_folder(), dataset=browsed.spec().dataset, split="all", method="pca", fields={"dimension": 4})
    test = opened("data", dataset=browsed.spec().dataset)
    test.session_state["data-backbone"], test.session_state[CHOSEN] = "pixels", other.id
    test.run()
    assert not test.exception
    assert AWAITED not in test.session_state
    worker.work(browsed, analyse=False)
    assert test.run().session_state[CHOSEN] == other.id
    shutil.rmtree(other.folder)


def test_images_that_are_excluded_while_they_are_prepared_stop_nothing(browsed: Run) -> None:
    test = look_at(browsed)
    exclude(browsed.dataset(), [3, 4])
    test.run()
    assert not test.exception
    assert "Browse these images" not in [button.label for button in test.button]
    assert not [run for run in list_runs(runs_folder()) if run.spec().excluded.count], "the features go on first"
    worker.work(browsed, analyse=False)
    test.run()
    (renewed,) = [run for run in list_runs(runs_folder()) if run.spec().excluded.count == 2]
    assert renewed.status().state == "waiting", "started without a click"
    assert test.session_state[AWAITED] == renewed.id
    test.selectbox(key="data-sample").set_value("diverse").run()
    assert "Diverse: 58 images" in texts(test), "the features of the earlier run suffice"
    shutil.rmtree(renewed.folder)


def test_the_bar_does_not_fall_when_an_exclusion_renews_a_preparation(browsed: Run) -> None:
    test = look_at(browsed)
    exclude(browsed.dataset(), [3, 4])
    test.switch_page("pages/label.py").run()
    test.session_state[f"{AWAITED}-share"] = Shown(browsed.id, images_of(browsed), 0.9, is_last=False)
    worker.work(browsed, analyse=False)
    test.session_state[CHANGED] = browsed.spec().dataset
    test.run()
    (renewed,) = [run for run in list_runs(runs_folder()) if run.spec().excluded.count == 2]
    shown = test.session_state[f"{AWAITED}-share"]
    assert (shown.run, shown.share) == (renewed.id, 0.9)
    test.session_state[f"{AWAITED}-share"] = Shown(browsed.id, images_of(browsed), 0.9, is_last=True)
    test.run()
    assert test.session_state[f"{AWAITED}-share"].share == 0.5, "a preparation that was over is no part of this one"
    shutil.rmtree(renewed.folder)


def images_of(run: Run) -> tuple[str, str]:
    return run.spec().fingerprint, run.spec().encoder.key


def test_a_page_prepares_the_images_again_after_an_exclusion(browsed: Run) -> None:
    worker.work(browsed, analyse=False)
    test = opened("labels", run=browsed.id)
    assert test.session_state[CHOSEN] == browsed.id
    test.session_state["data-backbone"] = "pixels"
    test.switch_page("pages/data.py").run()
    exclude(browsed.dataset(), [5])
    test.session_state[CHANGED] = browsed.spec().dataset
    assert "They leave out what you excluded" in texts(test.run())
    test.switch_page("pages/label.py").run()
    assert WAITS in texts(test)
    (renewed,) = [run for run in list_runs(runs_folder()) if run.spec().excluded.count == 1]
    worker.work(renewed, analyse=False)
    test.run()
    assert test.session_state[CHOSEN] == renewed.id
    assert CHANGED not in test.session_state
    shutil.rmtree(renewed.folder)


def test_search_stays_open_while_its_images_are_prepared_again_after_an_exclusion(browsed: Run) -> None:
    worker.work(browsed, analyse=False)
    test = opened("retrieval", run=browsed.id, add="3", k="50")
    first = headers(test)[-1]["tiles"]["list"][0]["id"]
    test.session_state["data-backbone"] = "pixels"
    test.query_params.clear()
    test.switch_page("pages/data.py").run()
    exclude(browsed.dataset(), [first])
    test.session_state[CHANGED] = browsed.spec().dataset
    assert "They leave out what you excluded" in texts(test.run())
    test.query_params.clear()
    test.query_params.update(add="3", k="50")
    test.switch_page("pages/search.py")
    for _ in range(2):
        test.run()
        assert not test.exception
        assert WAITS not in texts(test)
        assert "which Search leaves out already." in texts(test)
        shown = [tile["id"] for tile in headers(test)[-1]["tiles"]["list"]]
        assert first not in shown
    test.query_params.clear()
    test.switch_page("pages/label.py").run()
    (renewed,) = [run for run in list_runs(runs_folder()) if run.spec().excluded.count == 1]
    assert WAITS in texts(test), "the groups are formed of the features"
    shutil.rmtree(renewed.folder)


def test_images_that_could_not_be_prepared_give_way_to_another_run(browsed: Run, earlier: Run) -> None:
    test = look_at(browsed)
    browsed.write_status(browsed.status().model_copy(update={"state": "failed", "message": "The disk is full."}))
    test.switch_page("pages/label.py").run()
    assert not test.exception
    assert WAITS not in texts(test)
    assert AWAITED not in test.session_state
