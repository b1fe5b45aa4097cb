"""A folder that grows on the page Data, and where a run of it is shown, through Streamlit's AppTest."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PIL import Image
from sklearn.datasets import load_sample_image

from pages.parts.data import computed, growing
from tests.app.opening import offer, opened, texts
from tests.app.test_refine_page import tiles
from tests.running import spec
from udml_core.data import catalog
from udml_core.data.given.exclusions import excluded_names
from udml_core.data.given.labels import assign, assigned_labels, judged_names
from udml_core.runs import Run, create_run, list_runs, runs_folder
from udml_core.runs.analyses import plan_analysis
from udml_core.work.jobs import auditing as auditing_jobs
from udml_core.work.workers import analyse as analysis_worker
from udml_core.work.workers import train as worker


def part(number: int) -> Image.Image:
    image = Image.fromarray(load_sample_image(("china.jpg", "flower.jpg")[number % 2]))
    return image.crop((60 * (number // 2), 80, 60 * (number // 2) + 80, 160)).resize((24, 24))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of 14 photographs with a finished run and an audit, to which five files were added since."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(computed, "DEFAULT_BACKBONE", "pixels")
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(14):
        part(number).save(photos / f"{number:02}.png")
    catalog.remember(str(photos))
    audited(photos)
    for number in (14, 15, 16):
        part(number).save(photos / f"new {number}.png")
    shutil.copyfile(photos / "03.png", photos / "new _copy_.png")
    (photos / "new broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (photos / "13.png").unlink()
    return photos


def audited(photos: Path) -> Run:
    run = create_run(spec("frozen", str(photos), "all"), runs_folder())
    assert worker.work(run, analyse=False).state == "done"
    for kind in ("audit", "pca"):
        analysis_worker.keep(run, plan_analysis(kind=kind), lambda _share, _step: None)
    return run


def test_one_click_compares_the_new_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda *_: None)
    started: list[str] = []
    start = growing.start_auditing
    monkeypatch.setattr(growing, "start_auditing", lambda dataset, *rest: (
        started.append(dataset.name), start(dataset, *rest))[1])
    test = opened("data", dataset=str(folder))
    assert "5 new files and 1 removed since " in texts(test)
    assert not started
    test.button(key="growth-look").click().run()
    assert not test.exception
    assert started == [str(folder)]
    assert len(list_runs(runs_folder())) == 2
    assert len(tiles(test, "New and changed images")) == 4, "the new images are shown before they are compared"
    assert test.query_params["view"] == "audit"
    assert test.query_params["finding"] == "new"
    assert auditing_jobs.find_auditing(catalog.load(str(folder)), spec(
        "frozen", str(folder), "all").encoder, runs_folder()).task is not None


def test_the_new_images_are_shown_with_their_copies_and_the_earlier_run(folder: Path,
                                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    audited(folder)
    shown: dict[str, str] = {}
    monkeypatch.setattr(growing, "select_images", lambda dataset, images, *_: shown.update(
        {dataset.names[index]: badge for index, badge in zip(images.images, images.badges, strict=True)}))
    placed: list[list[str]] = []
    monkeypatch.setattr(growing.jobs, "place_images", lambda _run, _map, _frame, files: placed.append(
        [name for name, _ in files]))
    test = opened("data", dataset=str(folder), view="audit", finding="new")
    assert not test.exception
    assert set(shown) == {"new 14.png", "new 15.png", "new 16.png", "new _copy_.png"}
    assert shown["new _copy_.png"].startswith("copy of 03.png")
    assert [name for name, badge in shown.items() if badge.startswith("copy of")] == ["new _copy_.png"]
    assert "1 broken, 1 removed" in [expander.label for expander in test.expander]
    assert r"Nearest images of new \_copy\_.png in this run" in texts(test), "names from outside are escaped"
    test.button(key="growth-place").click().run()
    assert [sorted(names) for names in placed] == [sorted(shown)]
    offer(test).click().run()
    assert excluded_names(catalog.load(str(folder))) == ("new _copy_.png",)
    assert test.button(key="growth-confirm").disabled, "no name is proposed"
    test.button(key="growth-done").click().run()
    assert not test.exception
    assert "Nothing has changed in this folder" in texts(test)


def test_proposed_names_of_new_images_are_confirmed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audited(folder)
    dataset = catalog.load(str(folder))
    new, copy = (dataset.indices_by_name()[name] for name in ("new 14.png", "new _copy_.png"))
    monkeypatch.setattr(growing, "names_along", lambda *_: {new: ("gull", 0.9), copy: ("gull", 0.8)})
    test = opened("data", dataset=str(folder), view="audit", finding="new")
    assert test.button(key="growth-confirm").label == "Confirm 1 name"
    test.button(key="growth-confirm").click().run()
    assert not test.exception
    assert assigned_labels(dataset) == {"new 14.png": "gull"}, "the copy is left to the exclusion"
    assert [(name.certainty, name.is_right) for name in judged_names(dataset)] == [(0.9, True)]


def test_undo_reverts_confirmed_names_of_all_classes_before_an_earlier_exclusion(
        folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audited(folder)
    dataset = catalog.load(str(folder))
    index_of = dataset.indices_by_name()
    named = {index_of[f"new {number}.png"]: (name, 0.9) for number, name in ((14, "gull"), (15, "tern"), (16, "gull"))}
    monkeypatch.setattr(growing, "names_along", lambda *_: named)
    test = opened("data", dataset=str(folder), view="audit", finding="new")
    offer(test).click().run()
    test.button(key="growth-confirm").click().run()
    assert assigned_labels(dataset) == {"new 14.png": "gull", "new 15.png": "tern", "new 16.png": "gull"}
    assert [toast.value for toast in test.toast] == ["Named 3 images: gull (2) and tern (1). Undo (U) reverts it."]
    assert not test.button(key="audit-undo").disabled
    test.button(key="audit-undo").click().run()
    assert not test.exception
    assert assigned_labels(dataset) == {}, "one decision is one undo"
    assert excluded_names(dataset) == ("new _copy_.png",), "the exclusion before it stays"
    test.button(key="growth-confirm").click().run()
    assign(dataset, [index_of["00.png"]], "heron")
    test.button(key="audit-undo").click().run()
    assert len(assigned_labels(dataset)) == 4, "a later name of the page Label stays, and so do the names before it"
    test.button(key="audit-undo").click().run()
    assert excluded_names(dataset) == ()


@pytest.mark.parametrize("view", ["explore", "labels", "retrieval"])
def test_an_earlier_run_is_still_shown_and_says_what_is_new(view: str, folder: Path) -> None:
    (run,) = list_runs(runs_folder())
    test = opened(view, run=run.id)
    assert not test.exception
    assert not test.error
    links = [element.proto.label for element in test.get("page_link")]
    assert any(label.startswith("5 new files and 1 removed since ") for label in links)


def test_an_unchanged_folder_has_no_line(folder: Path) -> None:
    from udml_core.data.given.growth import mark_seen

    mark_seen(catalog.load(str(folder)))
    assert "new file" not in texts(opened("data", dataset=str(folder)))
