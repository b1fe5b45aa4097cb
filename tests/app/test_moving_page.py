"""Excluded images leave their folder on the pages Data and Label: the plan, the tick, the way back, and guests."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from sklearn.datasets import load_sample_image
from streamlit.testing.v1 import AppTest

from pages.parts.data import computed, moving
from pages.parts.shell import cached
from tests.app.opening import opened, texts
from tests.running import worked
from udml_core.base.errors import UserError
from udml_core.base.paths import EXPOSED
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.given.exclusions import exclude, excluded_names
from udml_core.data.given.labels import assign
from udml_core.runs import runs_folder
from udml_core.runs.analyses import plan_analysis
from udml_core.work.exporting.moving import MOVED
from udml_core.work.workers import analyse as analysis_worker

OUT = ("*a*.png", "03.png")


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Sixteen photographs with an audit, of which two are excluded."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(computed, "DEFAULT_BACKBONE", "pixels")
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda *_: None)
    photos = tmp_path / "photos"
    photos.mkdir()
    image = Image.fromarray(load_sample_image("china.jpg"))
    for number in range(16):
        name = OUT[0] if number == 0 else f"{number:02}.png"
        image.crop((30 * number, 80, 30 * number + 80, 160)).resize((24, 24)).save(photos / name)
    catalog.remember(str(photos))
    run = worked(runs_folder(), method="frozen", dataset=str(photos), split="all")
    analysis_worker.keep(run, plan_analysis(kind="audit"), lambda _share, _step: None)
    loaded = catalog.load(str(photos))
    exclude(loaded, loaded.indices_by_name(set(OUT)).values())
    return loaded


def excluded_page(dataset: Dataset) -> AppTest:
    test = opened("data", dataset=dataset.name, view="audit", finding="excluded")
    assert not test.exception
    return test


def has(test: AppTest, key: str) -> bool:
    return any(button.key == key for button in test.button)


def plan(test: AppTest, folder: Path) -> AppTest:
    test.text_input(key="move-target").set_value(str(folder))
    next(button for button in test.button if button.label == "Show plan").click().run()
    return test


def test_another_folder_makes_another_plan_without_a_tick(dataset: Dataset, tmp_path: Path) -> None:
    test = tick(plan(excluded_page(dataset), tmp_path / "first"))
    assert not test.button(key="move-files").disabled
    test.text_input(key="move-target").set_value(str(tmp_path / "second")).run()
    assert str(tmp_path / "second") in texts(test).replace("\\", "")
    assert str(tmp_path / "first") not in texts(test).replace("\\", "")
    assert test.button(key="move-files").disabled


def tick(test: AppTest) -> AppTest:
    next(box for box in test.checkbox if str(box.key).startswith("move-agreed")).check().run()
    return test


def test_excluded_images_move_after_a_tick_and_come_back(dataset: Dataset, tmp_path: Path) -> None:
    photos, away = tmp_path / "photos", tmp_path / "away"
    test = plan(excluded_page(dataset), away)
    assert "Move 2 excluded images (" in texts(test)
    table = test.dataframe[-1].value
    assert set(table["File"]) == set(OUT)
    assert test.button(key="move-files").disabled, "the list is confirmed first"
    assert not away.exists()
    tick(test).button(key="move-files").click().run()
    assert not test.exception
    assert {path.name for path in away.iterdir()} == {*OUT, MOVED}
    assert len(list(photos.iterdir())) == 14
    assert [toast.value.startswith("Moved 2 files to ") for toast in test.toast] == [True]
    assert "removed since" not in texts(test)
    test = excluded_page(dataset)
    test.button(key="move-back-0").click().run()
    assert not test.exception
    assert "Move 2 files (" in texts(test)
    tick(test).button(key="move-files").click().run()
    assert not test.exception
    assert len(list(photos.iterdir())) == 16
    assert not has(excluded_page(dataset), "move-back-0")
    assert set(excluded_names(catalog.load(dataset.name))) == set(OUT)


def test_problems_are_said_and_nothing_moves(dataset: Dataset, tmp_path: Path,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    test = plan(excluded_page(dataset), tmp_path / "photos" / "inside")
    assert "lies in the folder of the images" in test.error[0].value
    assert not has(test, "move-files")
    test = plan(excluded_page(dataset), tmp_path / "away")

    def fail(*_: object) -> int:
        raise UserError("The disk *is* full.")

    monkeypatch.setattr(moving, "move_files", fail)
    tick(test).button(key="move-files").click().run()
    assert test.error[0].value == r"The disk \*is\* full."
    assert len(list((tmp_path / "photos").iterdir())) == 16


def test_a_plan_of_earlier_images_is_not_carried_out(dataset: Dataset, tmp_path: Path) -> None:
    test = plan(excluded_page(dataset), tmp_path / "away")
    (tmp_path / "photos" / "05.png").unlink()
    cached.forget_signature(dataset.name)
    test.run()
    assert not test.exception
    assert not has(test, "move-files")


def test_folders_offers_the_move_too(dataset: Dataset, tmp_path: Path) -> None:
    run = worked(runs_folder(), method="frozen", dataset=dataset.name, split="all", seed=3)
    assign(dataset, [4, 5], "gull")
    test = opened("labels", run=run.id, section="folders")
    assert not test.exception
    plan_button = [button for button in test.button if button.label == "Show plan"][-1]
    test.text_input(key="move-target").set_value(str(tmp_path / "away"))
    plan_button.click().run()
    tick(test).button(key="move-files").click().run()
    assert not test.exception
    assert {path.name for path in (tmp_path / "away").iterdir()} == {*OUT, MOVED}
    assert len(list((tmp_path / "photos").iterdir())) == 14


def test_guests_move_nothing(dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EXPOSED, "1")
    monkeypatch.setenv("UDML_DATA", str(tmp_path))
    test = excluded_page(dataset)
    assert not any(field.key == "move-target" for field in test.text_input)
    assert "it moves no files" in texts(test)
