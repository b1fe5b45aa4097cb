"""The pages Labels and Labels & affinity, and the labels on Train, through Streamlit's AppTest."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs
from xml.etree import ElementTree

import numpy as np
import pytest
import streamlit as st
from PIL import Image
from streamlit.testing.v1 import AppTest

from pages.parts.base.selection import Selection
from pages.parts.components.gallery import Tile, gallery
from pages.parts.curves.spectrum import short_names
from pages.parts.labels.ego_graph import SIZE, ego_drawing
from tests.app.opening import opened, texts
from tests.running import worked, write_digits
from udml_core.data.dataset import Dataset
from udml_core.data.given import labels as annotations
from udml_core.data.given.log import log_path_of
from udml_core.data.splits import make_split
from udml_core.explanations import Affinities
from udml_core.exploration import affinity as views
from udml_core.exploration import label_spread as labels
from udml_core.runs import Run

SMALL = {"dimension": 8, "epochs": 2, "partition": 0, "steps": 2}
PAGES = ("labels", "affinity")
pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def run(places: Path) -> Run:
    worked(places / "runs", method="ssdml", fields=SMALL | {"orthogonal": False}, labels_per_class=2)
    return worked(places / "runs", method="ssdml", fields=SMALL, labels_per_class=2)


@pytest.fixture(scope="module")
def frozen(places: Path) -> Run:
    return worked(places / "runs", method="frozen")


@pytest.fixture(autouse=True)
def nothing_given(run: Run) -> None:
    log_path_of(run.dataset(), "labels").unlink(missing_ok=True)


def figures(test: AppTest) -> dict[str, str]:
    return {one.label: one.value for one in test.metric}


def press(test: AppTest, key: str) -> AppTest:
    pressed = test.button(key=key).click().run()
    assert not pressed.exception
    return pressed


@pytest.mark.parametrize("page", PAGES)
def test_without_any_run_it_says_what_to_do(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "none"))
    test = opened(page)
    assert not test.exception
    assert "Train one, then come back" in texts(test)


@pytest.mark.parametrize("query", [{"run": "nonsense"}, {"gamma": "nan"}, {"gamma": "1"}, {"show": "x"},
                                   {"source": "other"}, {"picked": "1e12"}, {"picked": "-3"}, {"label": "0.5"},
                                   {"label": "9" * 400}, {"epoch": "99"}, {"moment": "-1"}, {"run2": "nonsense"},
                                   {"selected": "nonsense"}])
@pytest.mark.parametrize("page", PAGES)
def test_nonsense_in_the_address_is_survived(page: str, query: dict[str, str], run: Run) -> None:
    test = opened(page, **({"run": run.id} | query))
    assert not test.exception
    assert "walks" in texts(test)


def test_the_suggested_image_is_named_and_the_name_is_taken_back(run: Run) -> None:
    dataset = run.dataset()
    images = np.sort(make_split(dataset, "seen").train)
    neighbors = labels.neighbor_rows(run.embeddings("final"), images, 10)
    first = labels.suggestions(neighbors, np.zeros(len(images), dtype=bool), 0.99, 1)[0]
    assert dataset.labels is not None
    name = dataset.class_names[dataset.labels[images[first.row]]]
    test = opened("labels", run=run.id)
    assert not test.exception
    assert f"come by as often before they end: {first.visits:,.0f} times" in texts(test)
    test = press(test, "labels-class-own")
    assert annotations.given(dataset) == {dataset.names[images[first.row]]: name}
    assert figures(test)["Labels"] == "1"
    assert "meet a label" in texts(test)
    codes = np.where(np.arange(len(images)) == first.row, 0, -1)
    ends = labels.ends(neighbors, codes, 1, 0.99)
    assert figures(test)["Reached"] == f"{100 * (ends.best >= 0).mean():.0f} %"
    test = press(test, "labels-undo")
    assert annotations.given(dataset) == {}
    assert figures(test)["Labels"] == "0"
    assert "To be named: 1 selected" in texts(test)


def test_selected_images_are_named_as_typed_and_let_go(run: Run) -> None:
    dataset = run.dataset()
    train = make_split(dataset, "seen").train[:3]
    token = f"{dataset.fingerprint[:6]}:{'.'.join(map(str, np.sort(train)))}"
    test = opened("labels", run=run.id, selected=token)
    assert "To be named: 3 selected" in texts(test)
    test.text_input(key="labels-typed").input("  my   own ")
    next(button for button in test.button if button.label == "Name it so").click().run()
    assert not test.exception
    assert set(annotations.given(dataset).values()) == {"my own"}
    assert "To be named: the suggested one" in texts(test)
    assert "1. my own" in texts(test)
    assert figures(test)["Right"] == "0.0 %", "no class of the data set is called so"


def test_a_class_keeps_its_button_when_another_image_of_it_is_renamed(run: Run) -> None:
    dataset = run.dataset()
    train = make_split(dataset, "seen").train
    for image, name in zip(train[[0, 1, 2, 0]].tolist(), ("shirt", "bag", "shirt", "coat"), strict=True):
        annotations.give(dataset, [image], name)
    test = opened("labels", run=run.id)
    assert [test.button(key=f"labels-class-{number}").label for number in (1, 2, 3)] == ["shirt", "bag", "coat"]
    annotations.give(dataset, [train[1]], "coat")
    test = test.run()
    assert not test.exception
    assert [(one.key, one.label) for one in test.button if str(one.key).startswith("labels-class-")
            and one.key != "labels-class-own"] == [("labels-class-1", "shirt"), ("labels-class-3", "coat")]
    assert "3. coat" in texts(test)
    assert figures(test)["Classes"] == "2"


@pytest.mark.parametrize(("first", "second", "kept"), [
    ("labels-class-1", "labels-class-2", ["one", "two", "one"]),
    ("labels-class-1", "labels-skip", ["one", "two", "one"])])
def test_a_second_key_before_the_next_image_is_shown_does_nothing(first: str, second: str, kept: list[str],
                                                                  run: Run) -> None:
    test = two_named(run)
    test.button(key=first).click()
    press(test, second)
    assert list(annotations.given(run.dataset()).values()) == kept
    assert "Kept: 1 as one." in texts(test)


def test_a_key_before_the_images_that_were_just_selected_are_shown_does_nothing(run: Run) -> None:
    dataset, test = run.dataset(), two_named(run)
    test.session_state["selection"] = Selection(dataset.fingerprint, make_split(dataset, "seen").train[4:6], 99)
    press(test, "labels-class-1")
    assert len(annotations.given(dataset)) == 2
    assert "To be named: 2 selected" in texts(test)
    press(test, "labels-class-1")
    assert len(annotations.given(dataset)) == 4


def two_named(run: Run) -> AppTest:
    """The page Labels after two images were named one and two."""
    for image, name in zip(make_split(run.dataset(), "seen").train[:2].tolist(), ("one", "two"), strict=True):
        annotations.give(run.dataset(), [image], name)
    return opened("labels", run=run.id)


def test_an_empty_name_is_told(run: Run) -> None:
    test = opened("labels", run=run.id)
    next(button for button in test.button if button.label == "Name it so").click().run()
    assert not test.exception
    assert "A class needs a name" in test.error[0].value
    assert annotations.given(run.dataset()) == {}


def test_who_is_passed_over_is_not_suggested_again(run: Run) -> None:
    test = opened("labels", run=run.id)
    first = re.findall(r"end: ([\d,]+) times", texts(test))
    assert first
    test = press(test, "labels-skip")
    assert re.findall(r"end: ([\d,]+) times", texts(test)) != first


def test_undo_takes_back_what_was_done_last_a_label_or_a_passing_over(run: Run) -> None:
    test = press(opened("labels", run=run.id), "labels-class-own")
    labeled = annotations.given(run.dataset())
    suggested = re.findall(r"label: ([\d,]+) times", texts(test))
    test = press(press(test, "labels-skip"), "labels-undo")
    assert annotations.given(run.dataset()) == labeled, "the label stays"
    assert "To be named: 1 selected" in texts(test)
    test.session_state["selection"] = Selection(run.dataset().fingerprint)
    assert re.findall(r"label: ([\d,]+) times", texts(test.run())) == suggested
    assert len(annotations.given(run.dataset())) == 1
    test = press(test, "labels-undo")
    assert annotations.given(run.dataset()) == {}
    assert test.button(key="labels-undo").disabled


def test_naming_the_suggested_image_solves_for_one_more_suggestion(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    solved = []
    suggestions = labels.suggestions
    monkeypatch.setattr(labels, "suggestions", lambda *given: solved.append(suggestions(*given)) or solved[-1])
    test = opened("labels", run=run.id, gamma="0.9")  # a place of its own: nothing of it is known yet
    assert len(solved) == 5
    press(test, "labels-class-own")
    assert len(solved) == 6
    images = np.sort(make_split(run.dataset(), "seen").train)
    labeled = np.isin(np.arange(len(images)), [solved[0][0].row])
    neighbors = labels.neighbor_rows(run.embeddings("final"), images, 10)
    assert [one.row for (one,) in solved[1:]] == [one.row for one in suggestions(neighbors, labeled, 0.9, 5)]


def test_a_label_solves_for_the_walks_to_its_own_class_only(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, train = run.dataset(), np.sort(make_split(run.dataset(), "seen").train).tolist()
    for row, name in ((0, "x"), (1, "y"), (2, "z")):
        annotations.give(dataset, [train[row]], name)
    solved: list[list[int]] = []
    ends_among = labels.ends_among
    monkeypatch.setattr(labels, "ends_among", lambda neighbors, labeled, gamma: solved.append(
        np.flatnonzero(labeled).tolist()) or ends_among(neighbors, labeled, gamma))
    test = opened("labels", run=run.id, gamma="0.8")
    assert solved == [[0], [1], [2]]
    annotations.give(dataset, [train[5]], "y")
    test.run()
    assert not test.exception
    assert solved == [[0], [1], [2], [1, 5]]


def test_ten_classes_have_keys_and_a_class_is_spelled_as_before(run: Run) -> None:
    dataset = run.dataset()
    for image, number in zip(make_split(dataset, "seen").train.tolist(), range(11), strict=False):
        annotations.give(dataset, [image], f"class {chr(97 + number)}")
    test = opened("labels", run=run.id)
    keys = [test.button(key=f"labels-class-{number}").proto.shortcut for number in range(1, 12)]
    assert keys == [*"1234567890", ""]
    test.text_input(key="labels-typed").input("Class B")
    next(button for button in test.button if button.label == "Name it so").click().run()
    assert not test.exception
    assert figures(test)["Classes"] == "11"
    assert "Kept: 1 as class b." in texts(test)


def test_of_many_classes_those_given_last_have_buttons_and_so_does_the_image_s_own(run: Run) -> None:
    dataset = run.dataset()
    train = make_split(dataset, "seen").train
    assert dataset.labels is not None
    names = [f"class {number}" for number in range(1, 11)] + list(dataset.class_names) + [
        f"class {number}" for number in range(21, 53)]
    for image, name in zip(train.tolist(), names, strict=False):
        annotations.give(dataset, [image], name)
    others = train[len(names):]
    image = int(others[dataset.labels[others] == 0][0])
    test = opened("labels", run=run.id, selected=f"{dataset.fingerprint[:6]}:{image}")
    drawn = {one.label: one.key for one in test.button if str(one.key).startswith("labels-class-")}
    assert list(drawn) == [*names[:10], *names[-30:], dataset.class_names[0]]
    assert drawn[dataset.class_names[0]] == "labels-class-own"
    assert "Buttons for 40 of 52 classes" in texts(test)
    assert "any of the other 12" in texts(test)
    test = press(test, "labels-class-own")
    assert annotations.given(dataset)[dataset.names[image]] == dataset.class_names[0]
    assert test.button(key="labels-class-11").label == dataset.class_names[0], "it was given last"


def test_labels_outside_the_training_half_are_told_apart(run: Run) -> None:
    dataset = run.dataset()
    annotations.give(dataset, make_split(dataset, "seen").test[:2].tolist(), "elsewhere")
    test = opened("labels", run=run.id)
    assert not test.exception
    assert "2 of the labels are of images outside" in texts(test)
    assert "Reached" not in figures(test)


def test_affinity_shows_what_training_had_and_how_many_triplets_were_true(run: Run) -> None:
    test = opened("affinity", run=run.id, picked=str(make_split(run.dataset(), "seen").train[9]))
    assert not test.exception
    record = next(one for one in run.explanations(1) if isinstance(one, Affinities))
    dataset = run.dataset()
    assert dataset.labels is not None
    graph = views.graph_of(record, make_split(dataset, "seen").train)
    truth = views.triplet_truth(graph.neighbors, record.after, dataset.labels[graph.images])
    table = next(one.value for one in test.dataframe if "True, %" in one.value.columns)
    assert table["Number"].tolist()[-1] == truth.triplets
    assert table["True, %"].tolist()[-1] == pytest.approx(100 * truth.both, abs=0.06)
    affinities = next(one.value for one in test.dataframe if "W0" in one.value.columns)
    row = graph.row_of(int(make_split(dataset, "seen").train[9]))
    np.testing.assert_allclose(affinities.iloc[:, -1], record.after[row], rtol=1e-5)
    assert "20 of 1,438 images of this graph have a label" in texts(test)


@pytest.mark.parametrize("label", [None, 70])
def test_affinity_lists_the_labels_nearest_to_the_image_and_the_one_that_is_looked_at(
        label: int | None, frozen: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = frozen.dataset()
    images = np.sort(make_split(dataset, "seen").train)
    annotations.give(dataset, images[:100].tolist(), "some")
    neighbors = labels.neighbor_rows(frozen.embeddings("final"), images, 10)
    nearest = labels.labels_from(neighbors, np.where(np.arange(len(images)) < 100, 0, -1), 90)
    wanted = nearest[0] if label is None else nearest[label]
    drawn = {}
    monkeypatch.setattr("pages.parts.components.gallery.gallery", lambda dataset, tiles, name, *given, **named: drawn.update(
        {name: ([tile.id for tile in tiles], named.get("chosen"))}) or gallery(dataset, tiles, name, *given, **named))
    query = {} if label is None else {"label": str(images[wanted])}
    test = opened("affinity", run=frozen.id, source="given", picked=str(images[90]), **query)
    assert not test.exception
    assert drawn["Images with a label"] == (
        [*images[nearest[:60]], *([] if label is None else [images[wanted]])], images[wanted])
    assert f"{60 if label is None else 61} of 100 are listed" in texts(test)


def test_affinity_says_when_an_image_is_not_in_its_graph_and_keeps_the_one_that_was_shown(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, parts = run.dataset(), make_split(run.dataset(), "seen")
    outside, inside = int(parts.test[3]), int(parts.train[9])
    said = f"{dataset.caption(outside)} is none of the 1,438 images of this graph"
    test = opened("affinity", run=run.id, picked=str(outside))
    assert said in test.warning[0].value
    test = opened("affinity", run=run.id, picked=str(inside))
    assert not test.warning
    monkeypatch.setattr("pages.parts.components.scatter.scatter", lambda *_, **__: outside)
    monkeypatch.setattr("pages.parts.map.shown_map.covering_map", a_map)
    monkeypatch.setattr("pages.parts.map.shown_map.distortion", lambda _: None)
    test = test.run()
    assert not test.exception
    assert said in test.warning[0].value
    assert test.query_params["picked"] == str(inside)
    assert f"**{dataset.caption(inside)}**" in texts(test)


def a_map(_run: Run, images: np.ndarray) -> SimpleNamespace:
    return SimpleNamespace(layout=SimpleNamespace(indices=images))


def test_a_run_that_was_told_no_labels_shows_those_that_are_given(frozen: Run) -> None:
    assert "Give a few" in texts(opened("affinity", run=frozen.id))
    dataset = frozen.dataset()
    train = make_split(dataset, "seen").train
    annotations.give(dataset, train[:4].tolist(), "some")
    annotations.give(dataset, train[4:7].tolist(), "others")
    test = opened("affinity", run=frozen.id, picked=str(train[5]))
    assert not test.exception
    assert "7 of 1,438 images of this graph have a label; this one is called others" in texts(test)


def test_without_classes_triplets_and_halves_are_judged_by_the_labels_given_by_hand(
        places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = worked(places / "own", method="frozen", dataset=str(write_digits(places / "loose", 80, by_class=False)))
    monkeypatch.setenv("UDML_RUNS", str(places / "own"))
    dataset, images = made.dataset(), np.sort(make_split(made.dataset(), made.spec().split).train)
    assert dataset.labels is None
    annotations.give(dataset, images[:20].tolist(), "first")
    annotations.give(dataset, images[20:40].tolist(), "second")
    codes = np.where(np.arange(len(images)) < 40, np.arange(len(images)) // 20, -1)
    neighbors = labels.neighbor_rows(made.embeddings("final"), images, 10)
    part = views.propagated(views.LabelGraph(images, neighbors, codes), np.arange(len(images)), 0.99)
    expected = views.part_truth(part, codes)
    assert 0 < expected.judged < expected.triplets
    test, marks = with_marks(monkeypatch, made, int(images[5]))
    table = next(one.value for one in test.dataframe if "Judged" in one.value.columns)
    assert table[["Number", "Judged"]].to_numpy().tolist() == [[expected.triplets, expected.judged]]
    assert table["True, %"].tolist() == [pytest.approx(100 * expected.both, abs=0.06)]
    assert "one of the labels given by hand" in texts(test)
    assert marks == {int(images[row]): "" if codes[row] < 0 else "hit" if codes[row] == 0 else "miss"
                     for row in neighbors[5]}
    test, marks = with_marks(monkeypatch, made, int(images[-1]))
    assert "The image has none of the labels given by hand" in texts(test)
    assert set(marks.values()) == {""}


def with_marks(monkeypatch: pytest.MonkeyPatch, run: Run, picked: int) -> tuple[AppTest, dict[int, str]]:
    """Labels & affinity at an image, and how its halves are marked."""
    marks: dict[int, str] = {}

    def drawn(_: Dataset, tiles: list[Tile], label: str, *__: object, **___: object) -> None:
        if label.endswith("by affinity"):
            marks.update({tile.id: tile.mark for tile in tiles})

    monkeypatch.setattr("pages.parts.components.gallery.gallery", drawn)
    test = opened("affinity", run=run.id, picked=str(picked))
    assert not test.exception
    return test, marks


def test_two_spectra_are_named_by_what_differs(run: Run, places: Path) -> None:
    other = next(one for one in (Run(path) for path in (places / "runs").iterdir() if path.name[0] != ".")
                 if one.spec().fields.get("orthogonal") is False)
    assert short_names([run, other]) == ["ssdml orthogonal True", "ssdml orthogonal False"]
    test = opened("affinity", run=run.id, run2=other.id, moment="1")
    assert not test.exception
    for name, one in (("ssdml orthogonal True", run), ("ssdml orthogonal False", other)):
        assert f"{name}**: effective rank {views.spectrum(one.epoch_sample(1)).rank:.1f} of 8" in texts(test)


def test_labels_lead_to_training_on_the_same_images_by_the_same_backbone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                                         ) -> None:
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    folder = write_digits(tmp_path / "my photos", 80)
    made = worked(tmp_path / "runs", method="frozen", dataset=str(folder))
    annotations.give(made.dataset(), [0], "one")
    link = opened("labels", run=made.id).get("page_link")[-1].proto
    query = {name: values[0] for name, values in parse_qs(link.query_string).items()}
    assert query == {"dataset": str(folder), "method": "ssdml", "labels": "given", "backbone": "pixels",
                     "split": "seen"}
    test = opened("train", **query)
    assert not test.exception
    assert not test.warning
    chosen = {one.label: one.value for one in test.selectbox}
    assert (chosen["Data set"], chosen["Backbone"], chosen["Split"]) == (str(folder), "pixels", "seen")
    shutil.rmtree(folder)
    assert f"a data set that is not here, {folder}" in opened("train", dataset=str(folder)).warning[0].value


def test_train_takes_a_model_by_its_name_from_the_link() -> None:
    test = opened("train", dataset="digits", backbone="timm:vit_tiny")
    assert test.text_input(key="train-backbone-name").value == "timm:vit_tiny"
    assert test.query_params["backbone"] == "timm:vit_tiny"


def test_affinity_opens_at_the_gamma_of_the_run_however_near_to_1(
        run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    near = Run(Path(shutil.copytree(run.folder, tmp_path / "runs" / run.id)))
    spec = near.spec()
    (near.folder / "spec.json").write_text(spec.model_copy(update={"fields": spec.fields | {"gamma": 0.999}}
                                                           ).model_dump_json())
    drawn = []
    monkeypatch.setattr("pages.parts.labels.few_labels.live_slider", lambda _, low, high, value, step, *__, marks: drawn.append(
        (low, high, value, step, marks)) or value)
    test = opened("affinity", run=near.id)
    assert not test.exception
    assert drawn[-1] == (0.001, 0.999, 0.999, 0.001, {0.999: "this run"})
    opened("affinity", run=near.id, source="told")
    assert drawn[-1] == (0.01, 0.99, 0.99, 0.01, {0.99: "SSDML's default"})


def test_the_spectrum_of_a_run_that_goes_on_follows_it_and_the_rest_waits(
        run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beats = []
    fragment = st.fragment
    monkeypatch.setattr(st, "fragment", lambda *given, **named: beats.append(named.get("run_every")) or fragment(
        *given, **named))
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    going = Run(Path(shutil.copytree(run.folder, tmp_path / "runs" / run.id)))
    second, later = going.folder / "epochs" / "0002", tmp_path / "later"
    second.rename(later)
    done = going.stored_status()
    going.write_status(done.model_copy(update={"state": "running"}))
    with going.lock().acquire():
        test = opened("affinity", run=going.id)
        assert not test.exception
        assert f"need a finished run, and {going.id} is running" in texts(test)
        assert "Sorted, and cut in halves" not in texts(test)
        assert f"effective rank {views.spectrum(going.epoch_sample(1)).rank:.1f} of 8" in texts(test)
        assert "2s" in beats
        later.rename(second)
        assert f"effective rank {views.spectrum(going.epoch_sample(2)).rank:.1f} of 8" in texts(test.run())
    going.write_status(done.model_copy(update={"state": "stopped"}))
    beats.clear()
    assert f"{going.id} is stopped. Resume it" in texts(test.run())
    going.write_status(done)
    assert "Sorted, and cut in halves" in texts(test.run())
    assert not test.exception
    assert "2s" not in beats


@pytest.mark.parametrize("source", ["drawn", "given"])
def test_train_asks_methods_for_few_labels_which(source: str, run: Run) -> None:
    dataset = run.dataset()
    test = opened("train", dataset="digits", method="ssdml", labels=source, split="seen")
    assert not test.exception
    select = next(one for one in test.selectbox if one.label == "Keep the epoch")
    if source == "drawn":
        assert (select.value, "15 % of the training half" in select.help) == ("last", True)
        assert test.number_input(key="labels-per-class").value is None
        assert not test.error
        return
    assert (select.value, "leave-one-out R@1" in select.help) == ("validation", True)
    assert "0 images have a label so far" in texts(test)
    assert "got 0 labels in 0 classes" in test.error[0].value
    annotations.give(dataset, make_split(dataset, "seen").train[:4].tolist(), "some")
    annotations.give(dataset, make_split(dataset, "seen").train[4:7].tolist(), "others")
    test = test.run()
    assert "7 images have a label so far, in 2 classes" in texts(test)
    assert not test.error


def test_train_asks_other_methods_for_no_labels(run: Run) -> None:
    test = opened("train", dataset="digits", method="rpml", labels="given")
    assert not test.exception
    assert not test.error
    assert not [one for one in test.number_input if one.key == "labels-per-class"]


def test_the_drawing_stays_within_its_picture_and_tells_signs_apart() -> None:
    neighbors = np.array([[1, 2], [2, 3], [0, 4], [0, 1], [0, 2]])
    graph = views.LabelGraph(np.arange(5), neighbors, np.array([0, 0, 1, -1, 1]))
    found = views.ego(views.propagated(graph, np.arange(5), 0.9))
    image = Image.new("L", (8, 8))
    drawn = ego_drawing(found, found.before, [image] * 3, ["a<b", "", "c"], graph.codes >= 0)
    root = ElementTree.fromstring(drawn)
    lines = [one for one in root.iter() if one.tag.endswith("line")]
    assert len(lines) == len(found.edges)
    dashed = [one.get("stroke-dasharray") is not None for one in lines]
    assert dashed == (found.before < 0).tolist()
    for line in lines:
        assert all(0 <= float(line.attrib[end]) <= SIZE for end in ("x1", "y1", "x2", "y2"))
