"""The pages Labels and Labels & affinity, and the choice of labels on Train, through Streamlit's AppTest."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs
from xml.etree import ElementTree

import numpy as np
import pytest
import streamlit as st
from PIL import Image
from streamlit.testing.v1 import AppTest

from pages.parts.draw.gallery import gallery
from pages.parts.draw.palette import CLASS_COLORS
from pages.parts.labels.board import TRUE_CLASS
from pages.parts.labels.ego_graph import SIZE, ego_drawing
from pages.parts.shell.run_status import escaped, run_titles
from pages.parts.shell.selection import Selection
from pages.views import labels as labels_view
from tests.app.opening import opened, texts
from tests.app.test_refine_page import tiles
from tests.running import worked, write_digits
from udml_core.data.dataset import Dataset
from udml_core.data.given import labels as annotations
from udml_core.data.given.log import log_path_of
from udml_core.data.splits import make_split
from udml_core.exploration import affinity as views
from udml_core.exploration import label_spread as labels
from udml_core.exploration import naming
from udml_core.exploration.gallery_content import Tile
from udml_core.exploration.grouping import first_number
from udml_core.numerics.explanations import Affinities
from udml_core.runs import Run, list_runs
from udml_core.runs.search import Retrieval
from udml_core.runs.search.naming import grouping_of

SMALL = {"dimension": 8, "epochs": 2, "partition": 0, "steps": 2}
PAGES = ("labels", "affinity")
NONSENSE = ({"gamma": "nan", "show": "x", "source": "other", "picked": "1e12", "label": "0.5", "epoch": "99",
             "moment": "-1", "run2": "nonsense", "selected": "nonsense"},
            {"gamma": "1", "picked": "-3", "label": "9" * 400})
pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def free(places: Path) -> Run:
    """A run whose metric is not orthonormal."""
    return worked(places / "runs", method="ssdml", fields=SMALL | {"orthogonal": False}, labels_per_class=2)


@pytest.fixture(scope="module")
def run(free: Run) -> Run:
    return worked(free.folder.parent, method="ssdml", fields=SMALL, labels_per_class=2)


@pytest.fixture(scope="module")
def frozen(places: Path) -> Run:
    return worked(places / "runs", method="frozen")


@pytest.fixture(autouse=True)
def no_labels(run: Run) -> None:
    """No image has an assigned label at the start of a test."""
    log_path_of(run.dataset(), "labels").unlink(missing_ok=True)


def metrics(test: AppTest) -> dict[str, str]:
    """Return the figures of the line about the labels, by name."""
    line = next((text.value for text in test.markdown if re.match(r"\*\*[\d,]+ labels?\*\*", text.value)), "")
    patterns = {"Labels": r"\*\*([\d,]+) label", "Classes": r"([\d,]+) class",
                "Named": r"([\d.]+ %) of the images named", "Right names": r"([\d.]+ %) of the accepted names right"}
    return {name: found[1] for name, pattern in patterns.items() if (found := re.search(pattern, line))}


def press_submit(test: AppTest) -> AppTest:
    """Press the button of the text input for a class."""
    pressed = next(button for button in test.button if button.label.startswith("Name ")).click().run()
    assert not pressed.exception
    return pressed


def press(test: AppTest, key: str) -> AppTest:
    pressed = test.button(key=key).click().run()
    assert not pressed.exception
    return pressed


@pytest.mark.parametrize("page", PAGES)
def test_without_runs_the_page_suggests_to_train(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "none"))
    test = opened(page)
    assert not test.exception
    assert "Train a run on the page **Lab**" in texts(test)
    assert test.button(key="open-lab")


@pytest.mark.parametrize("page", PAGES)
def test_invalid_values_in_the_address_are_ignored(page: str, run: Run) -> None:
    retrieval = Retrieval(run)
    grouping = grouping_of(retrieval)
    count = first_number(grouping.tree, retrieval.frame("final").take(grouping.indices), 300)
    for query in NONSENSE:
        test = opened(page, run=run.id, **query)
        assert not test.exception
        assert {"labels": f"without a name in {count} groups", "affinity": "walks"}[page] in texts(test)
    test = opened(page, run="nonsense")
    assert not test.exception
    assert "nonsense" in test.warning[0].value


def test_the_suggested_image_gets_a_class_and_undo_removes_it(run: Run) -> None:
    dataset = run.dataset()
    images = np.sort(make_split(dataset, "seen").train)
    neighbors = labels.neighbor_rows(run.embeddings("final"), images, 10)
    first = labels.suggestions(neighbors, np.zeros(len(images), dtype=bool), 0.99, 1)[0]
    assert dataset.labels is not None
    name = dataset.class_names[dataset.labels[images[first.row]]]
    test = opened("labels", run=run.id, section="next")
    assert not test.exception
    assert f"most often before they end: {first.visits:,.0f} visits" in texts(test)
    test = press(show_true_class(test), "labels-class-own")
    assert annotations.assigned_labels(dataset) == {dataset.names[images[first.row]]: name}
    assert metrics(test)["Labels"] == "1"
    assert "reach a label" in texts(test)
    assert float(metrics(test)["Named"].removesuffix(" %")) < 5, "a single class is certain near its label only"
    assert "Only the images that you named have a name. Check 10 proposed names" in texts(test)
    second = labels.suggestions(neighbors, np.arange(len(images)) == first.row, 0.99, 1)[0]
    annotations.assign(dataset, [int(images[second.row])], f"not {name}")
    test.run()
    walk = naming.symmetric_walk(labels.neighbor_rows(run.embeddings("final"), images, 20))
    codes = np.select([np.arange(len(images)) == row for row in (first.row, second.row)], [0, 1], -1)
    names = naming.Naming(naming.Reached(codes, 2, lambda labeled: naming.reach_of(walk, labeled, 0.9)),
                          np.zeros((0, 2), int))
    for least in (0.05, 0.3):
        test.slider(key="labels-least").set_value(int(100 * least)).run()
        named = names.accepted(int(100 * least) / 100) >= 0
        assert metrics(test)["Named"] == f"{100 * named.mean():.1f} %"
        assert 0 < named.mean() < 1
    assert press(test, "labels-calibrate").slider(key="labels-least").value == 100, "too little is known"
    test = press(press(test, "labels-undo"), "labels-undo")
    assert annotations.assigned_labels(dataset) == {}
    assert "Labels" not in metrics(test)
    assert "**1 image selected**" in texts(test)


def show_true_class(test: AppTest) -> AppTest:
    """Switch on the toggle that shows an image's class in the data set."""
    return test.toggle(key=TRUE_CLASS).set_value(True).run()


def test_the_true_class_is_hidden_until_the_user_shows_it(run: Run) -> None:
    dataset = run.dataset()
    image = int(make_split(dataset, "seen").train[5])
    assert dataset.labels is not None
    name = dataset.class_names[dataset.labels[image]]
    annotations.assign(dataset, [int(make_split(dataset, "seen").train[6])], "other")
    test = opened("labels", run=run.id, section="next", selected=f"{dataset.fingerprint[:6]}:{image}")

    def shown_tile() -> dict[str, Any]:
        return dict(tiles(test, "Selected images")[0])

    assert not test.toggle(key=TRUE_CLASS).value
    assert shown_tile() == {"id": image, "caption": dataset.names[image], "mark": "", "badge": dataset.names[image]}
    assert not [button for button in test.button if button.key == "labels-class-own"]
    show_true_class(test)
    assert shown_tile()["badge"] == name
    assert test.button(key="labels-class-own").label == name
    annotations.assign(dataset, [int(make_split(dataset, "seen").train[7])], name)
    assert f"The data set says: **{name}**" in texts(test.run())


def test_selected_images_get_the_typed_class_and_are_deselected(run: Run) -> None:
    dataset = run.dataset()
    train = make_split(dataset, "seen").train[:3]
    token = f"{dataset.fingerprint[:6]}:{'.'.join(map(str, np.sort(train)))}"
    test = opened("labels", run=run.id, section="labels", selected=token)
    assert "**3 images selected**" in texts(test)
    test.text_input(key="labels-typed").input("  my   own ")
    press_submit(test)
    assert set(annotations.assigned_labels(dataset).values()) == {"my own"}
    assert "**No image is selected**" in texts(test)
    assert "1. my own" in texts(test)
    annotations.assign(dataset, [int(make_split(dataset, "seen").train[3])], "my other")
    assert "Right names" not in metrics(test.run()), "the data set has no class of these names"


def test_a_typed_class_that_comes_too_late_for_its_images_says_so(run: Run) -> None:
    dataset = run.dataset()
    train = make_split(dataset, "seen").train[:3]
    token = f"{dataset.fingerprint[:6]}:{'.'.join(map(str, np.sort(train)))}"
    test = opened("labels", run=run.id, section="labels", selected=token)
    test.text_input(key="labels-typed").input("late")
    now = test.session_state["selection"]
    test.session_state["selection"] = replace(now, ids=now.ids[:1], revision=now.revision + 1)
    press_submit(test)
    assert annotations.assigned_labels(dataset) == {}
    assert ["no image was named late" in error.value for error in test.error] == [True]


def test_a_class_keeps_its_number_when_another_class_loses_its_images(run: Run) -> None:
    dataset = run.dataset()
    train = make_split(dataset, "seen").train
    for image, name in zip(train[[0, 1, 2, 0]].tolist(), ("shirt", "bag", "shirt", "coat"), strict=True):
        annotations.assign(dataset, [image], name)
    test = opened("labels", run=run.id, section="labels")
    assert [test.button(key=f"labels-class-{number}").label for number in (1, 2, 3)] == ["shirt", "bag", "coat"]
    annotations.assign(dataset, [train[1]], "coat")
    test = test.run()
    assert not test.exception
    assert [(button.key, button.label) for button in test.button if str(button.key).startswith("labels-class-")
            and button.key != "labels-class-own"] == [("labels-class-1", "shirt"), ("labels-class-3", "coat")]
    assert "3. coat" in texts(test)
    assert metrics(test)["Classes"] == "2"


@pytest.mark.parametrize(("first", "second", "labels_after"), [
    ("labels-class-1", "labels-class-2", ["one", "two", "one"]),
    ("labels-class-1", "labels-skip", ["one", "two", "one"])])
def test_a_second_key_before_the_next_image_is_shown_does_nothing(first: str, second: str, labels_after: list[str],
                                                                  run: Run) -> None:
    test = open_with_two_labels(run)
    test.button(key=first).click()
    press(test, second)
    assert list(annotations.assigned_labels(run.dataset()).values()) == labels_after
    assert "1 image named one." in texts(test)


def test_a_key_before_a_new_selection_is_shown_does_nothing(run: Run) -> None:
    dataset, test = run.dataset(), open_with_two_labels(run)
    test.session_state["selection"] = Selection(dataset.fingerprint, make_split(dataset, "seen").train[4:6], 99)
    press(test, "labels-class-1")
    assert len(annotations.assigned_labels(dataset)) == 2
    assert "**2 images selected**" in texts(test)
    press(test, "labels-class-1")
    assert len(annotations.assigned_labels(dataset)) == 4


def open_with_two_labels(run: Run) -> AppTest:
    """Open the page Labels after two images got the classes one and two."""
    for image, name in zip(make_split(run.dataset(), "seen").train[:2].tolist(), ("one", "two"), strict=True):
        annotations.assign(run.dataset(), [image], name)
    return opened("labels", run=run.id, section="next")


def test_an_empty_class_name_is_an_error(run: Run) -> None:
    test = press_submit(opened("labels", run=run.id, section="next"))
    assert "name" in test.error[0].value
    assert annotations.assigned_labels(run.dataset()) == {}


def test_a_skipped_image_is_not_suggested_again(run: Run) -> None:
    test = opened("labels", run=run.id, section="next")
    first = re.findall(r"end: ([\d,]+) visits", texts(test))
    assert first
    test = press(test, "labels-skip")
    assert re.findall(r"end: ([\d,]+) visits", texts(test)) != first


def test_undo_reverts_the_last_action_a_label_or_a_skip(run: Run) -> None:
    test = press(show_true_class(opened("labels", run=run.id, section="next")), "labels-class-own")
    labeled = annotations.assigned_labels(run.dataset())
    suggested = re.findall(r"label: ([\d,]+) visits", texts(test))
    test = press(press(test, "labels-skip"), "labels-undo")
    assert annotations.assigned_labels(run.dataset()) == labeled, "the label stays"
    assert "**1 image selected**" in texts(test)
    test.session_state["selection"] = Selection(run.dataset().fingerprint)
    assert re.findall(r"label: ([\d,]+) visits", texts(test.run())) == suggested
    assert len(annotations.assigned_labels(run.dataset())) == 1
    test = press(test, "labels-undo")
    assert annotations.assigned_labels(run.dataset()) == {}
    assert test.button(key="labels-undo").disabled


def test_labeling_the_suggested_image_computes_one_more_suggestion(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    computed = []
    suggestions = labels.suggestions
    monkeypatch.setattr(labels, "suggestions", lambda *args: computed.append(suggestions(*args)) or computed[-1])
    st.cache_data.clear()
    test = opened("labels", run=run.id, section="next")
    assert len(computed) == 5
    press(show_true_class(test), "labels-class-own")
    assert len(computed) == 6
    images = np.sort(make_split(run.dataset(), "seen").train)
    labeled = np.isin(np.arange(len(images)), [computed[0][0].row])
    neighbors = labels.neighbor_rows(run.embeddings("final"), images, 10)
    assert [suggestion.row for (suggestion,) in computed[1:]] == [
        suggestion.row for suggestion in suggestions(neighbors, labeled, 0.99, 5)]


@pytest.mark.slow
def test_a_new_label_computes_only_the_walks_to_its_class(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, train = run.dataset(), np.sort(make_split(run.dataset(), "seen").train).tolist()
    for row, name in ((0, "x"), (1, "y"), (2, "z")):
        annotations.assign(dataset, [train[row]], name)
    computed: list[list[int]] = []
    monkeypatch.setattr("pages.parts.shell.label_graph.reach_of", lambda walk, labeled, gamma: computed.extend(
        np.flatnonzero(each).tolist() for each in np.atleast_2d(labeled)) or naming.reach_of(walk, labeled, gamma))
    test = opened("labels", run=run.id, gamma="0.8")
    assert sorted(filter(None, computed)) == [[0], [1], [2]]
    computed.clear()
    partner = next(row for row in range(3, 50) if naming.fold_of(np.array([row])) == naming.fold_of(np.array([1])))
    annotations.assign(dataset, [train[partner]], "y")
    test.run()
    assert not test.exception
    assert computed == [[1, partner]]


def test_ten_classes_have_keys_and_an_existing_class_keeps_its_spelling(run: Run) -> None:
    dataset = run.dataset()
    for image, number in zip(make_split(dataset, "seen").train.tolist(), range(11), strict=False):
        annotations.assign(dataset, [image], f"class {chr(97 + number)}")
    test = opened("labels", run=run.id, section="next")
    keys = [test.button(key=f"labels-class-{number}").proto.shortcut for number in range(1, 12)]
    assert keys == [*"1234567890", ""]
    test.text_input(key="labels-typed").input("Class B")
    press_submit(test)
    assert metrics(test)["Classes"] == "11"
    assert "1 image named class b." in texts(test)


def test_keys_of_classes_that_are_gone_go_to_the_oldest_classes_without_a_key(run: Run) -> None:
    dataset = run.dataset()
    for image, number in zip(make_split(dataset, "seen").train.tolist(), range(13), strict=False):
        annotations.assign(dataset, [image], f"class {chr(97 + number)}")
    annotations.merge_classes(dataset, "class c", "class a")
    test = opened("labels", run=run.id, section="next")
    keys = {button.label: button.proto.shortcut for button in test.button
            if str(button.key).startswith("labels-class-") and button.key != "labels-class-own"}
    assert keys == {f"class {letter}": key for letter, key in zip(
        "abdefghijklm", [*"12", *"4567890", "3", "", ""], strict=True)}
    annotations.undo(dataset)
    back = opened("labels", run=run.id, section="next")
    assert back.button(key="labels-class-3").label == "class c", "undo gives the key back"


def test_of_many_classes_the_most_recent_and_the_own_class_have_buttons(run: Run) -> None:
    dataset = run.dataset()
    train = make_split(dataset, "seen").train
    assert dataset.labels is not None
    names = [f"class {number}" for number in range(1, 11)] + list(dataset.class_names) + [
        f"class {number}" for number in range(21, 53)]
    for image, name in zip(train.tolist(), names, strict=False):
        annotations.assign(dataset, [image], name)
    others = train[len(names):]
    image = int(others[dataset.labels[others] == 0][0])
    test = show_true_class(opened("labels", run=run.id, section="next", selected=f"{dataset.fingerprint[:6]}:{image}"))
    keys = {button.label: button.key for button in test.button if str(button.key).startswith("labels-class-")}
    assert list(keys) == [*names[:10], *names[-30:], dataset.class_names[0]]
    assert keys[dataset.class_names[0]] == "labels-class-own"
    known = list(dict.fromkeys(names))
    assert test.selectbox(key="labels-search").options == [f"{name} · {names.count(name)}" for name in sorted(
        known, key=str.casefold)], "every class, also without a button"
    test.selectbox(key="labels-search").set_value("class 21").run()
    assert annotations.assigned_labels(dataset)[dataset.names[image]] == "class 21"
    test = press(test, "labels-undo")
    test = press(test, "labels-class-own")
    assert annotations.assigned_labels(dataset)[dataset.names[image]] == dataset.class_names[0]
    assert test.button(key="labels-class-11").label == dataset.class_names[0], "it is now the most recent"


def test_labels_outside_the_training_half_are_counted_separately(run: Run) -> None:
    dataset = run.dataset()
    annotations.assign(dataset, make_split(dataset, "seen").test[:2].tolist(), "elsewhere")
    test = opened("labels", run=run.id, section="next")
    assert not test.exception
    assert "outside this run's training half: 2." in texts(test)
    assert "Named" not in metrics(test)


def test_affinity_shows_the_training_affinities_and_the_share_of_correct_triplets(run: Run) -> None:
    test = opened("affinity", run=run.id, picked=str(make_split(run.dataset(), "seen").train[9]))
    assert not test.exception
    record = next(record for record in run.explanations(1) if isinstance(record, Affinities))
    dataset = run.dataset()
    assert dataset.labels is not None
    graph = views.training_graph(record, make_split(dataset, "seen").train)
    truth = views.triplet_truth(graph.neighbors, record.after, dataset.labels[graph.images])
    table = next(frame.value for frame in test.dataframe if "Correct, %" in frame.value.columns)
    nearest_first = views.triplet_truth(graph.neighbors, np.tile(np.arange(10.0)[::-1], (1438, 1)),
                                        dataset.labels[graph.images])
    assert nearest_first != truth
    for source, judged in (("Affinity in training, whole graph", truth), ("Distance, whole graph", nearest_first)):
        (row,) = table[table["Neighbors sorted by"] == source].to_dict("records")
        assert row["Triplets"] == 5 * 1438
        assert row["Correct, %"] == pytest.approx(100 * judged.both, abs=0.06)
        assert row["Positives of the anchor's class, %"] == pytest.approx(100 * judged.positives, abs=0.06)
        assert row["Negatives of the anchor's class, %"] == pytest.approx(100 - 100 * judged.negatives, abs=0.06)
    test = opened("affinity", run=run.id, picked=str(make_split(dataset, "seen").train[9]), section="table")
    affinities = next(frame.value for frame in test.dataframe if "W0" in frame.value.columns)
    row = graph.row_of(int(make_split(dataset, "seen").train[9]))
    np.testing.assert_allclose(affinities.iloc[:, -1], record.after[row], rtol=1e-5)
    assert "20 of 1,438 images of this graph have a label" in texts(test)


@pytest.mark.parametrize("label", [None, 70])
def test_affinity_lists_the_labels_nearest_to_the_image_and_the_chosen_label(
        label: int | None, frozen: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = frozen.dataset()
    images = np.sort(make_split(dataset, "seen").train)
    annotations.assign(dataset, images[:100].tolist(), "some")
    neighbors = labels.neighbor_rows(frozen.embeddings("final"), images, 10)
    nearest = labels.labels_by_distance(neighbors, np.where(np.arange(len(images)) < 100, 0, -1), 90)
    wanted = nearest[0] if label is None else nearest[label]
    galleries = {}
    monkeypatch.setattr("pages.parts.labels.label_reach.gallery", lambda dataset, tiles, name, *args, **named:
                        galleries.update({name: ([tile.id for tile in tiles], named.get("chosen"))})
                        or gallery(dataset, tiles, name, *args, **named))
    query = {} if label is None else {"label": str(images[wanted])}
    test = opened("affinity", run=frozen.id, source="given", picked=str(images[90]), section="reach", **query)
    assert not test.exception
    assert galleries["Images with a label"] == (
        [*images[nearest[:60]], *([] if label is None else [images[wanted]])], images[wanted])
    assert f"{60 if label is None else 61} of 100 labels, the fewest steps" in texts(test)


def test_affinity_warns_about_an_image_outside_its_graph_and_keeps_the_shown_image(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, parts = run.dataset(), make_split(run.dataset(), "seen")
    outside, inside = int(parts.test[3]), int(parts.train[9])
    warning = f"{dataset.caption(outside)} is not among the 1,438 images of this graph"
    test = opened("affinity", run=run.id, picked=str(outside))
    assert warning in test.warning[0].value
    test = opened("affinity", run=run.id, picked=str(inside), section="reach")
    assert not test.warning
    monkeypatch.setattr("pages.parts.labels.label_reach.draw_map", lambda *_, **__: outside)
    monkeypatch.setattr("pages.parts.labels.label_reach.covering_map", a_map)
    monkeypatch.setattr("pages.parts.labels.label_reach.show_distortion", lambda _: None)
    test = test.run()
    assert not test.exception
    assert warning in test.warning[0].value
    assert test.query_params["picked"] == str(inside)
    assert f"**{dataset.caption(inside)}**" in texts(test)


def a_map(_run: Run, images: np.ndarray) -> SimpleNamespace:
    return SimpleNamespace(layout=SimpleNamespace(indices=images))


def test_a_run_without_labels_shows_the_assigned_labels(frozen: Run) -> None:
    assert "Assign a few" in texts(opened("affinity", run=frozen.id))
    dataset = frozen.dataset()
    train = make_split(dataset, "seen").train
    annotations.assign(dataset, train[:4].tolist(), "some")
    annotations.assign(dataset, train[4:7].tolist(), "others")
    test = opened("affinity", run=frozen.id, picked=str(train[5]))
    assert not test.exception
    assert "7 of 1,438 images of this graph have a label; this image has the label others" in texts(test)


def test_without_classes_triplets_are_judged_by_the_assigned_labels(
        places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = worked(places / "own", method="frozen", dataset=str(write_digits(places / "loose", 80, by_class=False)))
    monkeypatch.setenv("UDML_RUNS", str(places / "own"))
    dataset, images = made.dataset(), np.sort(make_split(made.dataset(), made.spec().split).train)
    assert dataset.labels is None
    annotations.assign(dataset, images[:20].tolist(), "first")
    annotations.assign(dataset, images[20:40].tolist(), "second")
    codes = np.where(np.arange(len(images)) < 40, np.arange(len(images)) // 20, -1)
    neighbors = labels.neighbor_rows(made.embeddings("final"), images, 10)
    part = views.propagate_subgraph(views.LabelGraph(images, neighbors, codes), np.arange(len(images)), 0.99)
    expected = views.subgraph_truth(part, codes)
    assert 0 < expected.judged < expected.triplets
    test, marks = open_with_marks(monkeypatch, made, int(images[5]))
    table = next(frame.value for frame in test.dataframe if "Judged" in frame.value.columns)
    assert table["Neighbors sorted by"].tolist()[1] == "Distance, the same images"
    assert table["Triplets"].tolist() == [expected.triplets] * 2
    assert table["Judged"].tolist()[0] == expected.judged
    assert table["Correct, %"].tolist()[0] == pytest.approx(100 * expected.both, abs=0.06)
    assert "whose three images have assigned labels" in texts(test)
    assert marks == {int(images[row]): "" if codes[row] < 0 else "hit" if codes[row] == 0 else "miss"
                     for row in neighbors[5]}
    test, marks = open_with_marks(monkeypatch, made, int(images[-1]))
    assert "The image has none of the assigned labels" in texts(test)
    assert set(marks.values()) == {""}


def open_with_marks(monkeypatch: pytest.MonkeyPatch, run: Run, picked: int) -> tuple[AppTest, dict[int, str]]:
    """Open Labels & affinity at an image, and return the marks of its neighbors."""
    marks: dict[int, str] = {}

    def record_marks(_: Dataset, tiles: list[Tile], label: str, *__: object, **___: object) -> None:
        if label.endswith("by affinity"):
            marks.update({tile.id: tile.mark for tile in tiles})

    monkeypatch.setattr("pages.parts.labels.affinities.gallery", record_marks)
    test = opened("affinity", run=run.id, picked=str(picked))
    assert not test.exception
    return test, marks


def test_two_spectra_have_the_names_of_their_runs(run: Run, free: Run) -> None:
    test = opened("affinity", run=run.id, run2=free.id, moment="1")
    assert not test.exception
    for shown, name in zip((run, free), run_titles([run, free]).values(), strict=True):
        assert f"{escaped(name)}**: effective rank {views.spectrum(shown.epoch_sample(1)).rank:.1f} of 8" in texts(test)


@pytest.mark.slow
def test_labels_link_to_training_on_the_same_images_with_the_same_backbone(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    folder = write_digits(tmp_path / "my photos", 80)
    made = worked(tmp_path / "runs", method="frozen", dataset=str(folder))
    train = make_split(made.dataset(), "seen").train
    for image, name in zip(train[:2].tolist(), ("one", "two"), strict=True):
        annotations.assign(made.dataset(), [image], name)
    link = opened("labels", run=made.id, section="labels").get("page_link")[-1].proto
    query = {name: values[0] for name, values in parse_qs(link.query_string).items()}
    assert query == {"dataset": str(folder), "method": "ssdml", "labels": "given", "backbone": "pixels",
                     "split": "seen"}
    test = opened("train", **query)
    assert not test.exception
    assert not test.warning
    chosen = {box.label: box.value for box in test.selectbox}
    assert (chosen["Data set"], chosen["Backbone"], chosen["Split"]) == (str(folder), "pixels", "seen")
    shutil.rmtree(folder)
    assert escaped(str(folder)) in opened("train", dataset=str(folder)).warning[0].value


def test_train_reads_the_name_of_a_backbone_from_the_address() -> None:
    test = opened("train", dataset="digits", backbone="timm:vit_tiny")
    assert test.selectbox(key="backbone").value == "timm:vit_tiny"
    assert test.query_params["backbone"] == "timm:vit_tiny"


def test_affinity_starts_at_the_gamma_of_the_run_even_close_to_1(
        run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    near = Run(Path(shutil.copytree(run.folder, tmp_path / "runs" / run.id)))
    spec = near.spec()
    (near.folder / "spec.json").write_text(spec.model_copy(update={"fields": spec.fields | {"gamma": 0.999}}
                                                           ).model_dump_json())
    sliders = []
    monkeypatch.setattr("pages.parts.draw.slider.live_slider",
                        lambda _, low, high, value, step, *__, marks, **___:
                        sliders.append((low, high, value, step, marks)) or value)
    test = opened("affinity", run=near.id)
    assert not test.exception
    assert sliders[-1] == (0.001, 0.999, 0.999, 0.001, {0.999: "this run"})
    opened("affinity", run=near.id, source="told")
    assert sliders[-1] == (0.01, 0.99, 0.99, 0.01, {0.99: "default"})


def test_the_spectrum_follows_a_run_in_progress_and_the_graph_waits(
        run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    intervals = []
    fragment = st.fragment
    monkeypatch.setattr(st, "fragment", lambda *args, **named: intervals.append(named.get("run_every")) or fragment(
        *args, **named))
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    unfinished = Run(Path(shutil.copytree(run.folder, tmp_path / "runs" / run.id)))
    second, later = unfinished.folder / "epochs" / "0002", tmp_path / "later"
    second.rename(later)
    done = unfinished.stored_status()
    unfinished.write_status(done.model_copy(update={"state": "running"}))
    with unfinished.lock().acquire():
        test = opened("affinity", run=unfinished.id)
        assert not test.exception
        assert f"need a finished run; {unfinished.id} is running" in texts(test)
        assert "Before propagation" not in texts(test)
        assert f"effective rank {views.spectrum(unfinished.epoch_sample(1)).rank:.1f} of 8" in texts(test)
        assert "2s" in intervals
        later.rename(second)
        assert f"effective rank {views.spectrum(unfinished.epoch_sample(2)).rank:.1f} of 8" in texts(test.run())
    unfinished.write_status(done.model_copy(update={"state": "stopped"}))
    intervals.clear()
    assert f"{unfinished.id} is stopped. Resume" in texts(test.run())
    unfinished.write_status(done)
    assert "Before propagation" in texts(test.run())
    assert not test.exception
    assert "2s" not in intervals


@pytest.mark.parametrize(("source", "select", "hint"), [
    ("drawn", "last", "15 % of the training half"), ("given", "validation", "leave-one-out")])
def test_train_offers_methods_with_few_labels_both_sources(source: str, select: str, hint: str, run: Run,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = run.dataset()
    test = opened("train", dataset="digits", method="ssdml", labels=source, split="seen", backbone="pixels")
    assert not test.exception
    assert hint in test.selectbox(key="select").help
    if source == "drawn":
        assert test.number_input(key="labels_per_class").value is None
    else:
        assert "0 images have an assigned label" in texts(test)
        assert "labels" in test.error[0].value
        annotations.assign(dataset, make_split(dataset, "seen").train[:4].tolist(), "some")
        annotations.assign(dataset, make_split(dataset, "seen").train[4:7].tolist(), "others")
        test = test.run()
        assert "7 images have an assigned label, in 2 classes" in texts(test)
    assert not test.error
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda *_: None)
    known = list_runs(run.folder.parent)
    next(button for button in test.button if button.label == "Start training").click().run()
    (started,) = [other for other in list_runs(run.folder.parent) if other not in known]
    assert (started.spec().labels, started.spec().select) == (source, select)
    shutil.rmtree(started.folder)


def test_train_shows_no_labels_for_other_methods(run: Run) -> None:
    test = opened("train", dataset="digits", method="rpml", labels="given")
    assert not test.exception
    assert not test.error
    assert not [widget for widget in test.number_input if widget.key == "labels_per_class"]


def test_the_drawing_stays_within_its_bounds_and_dashes_negative_edges() -> None:
    neighbors = np.array([[1, 2], [2, 3], [0, 4], [0, 1], [0, 2]])
    graph = views.LabelGraph(np.arange(5), neighbors, np.array([0, 0, 1, -1, 1]))
    ego = views.ego_graph(views.propagate_subgraph(graph, np.arange(5), 0.9))
    image = Image.new("L", (8, 8))
    root = ElementTree.fromstring(ego_drawing(ego, ego.before, [image] * 3, ["a<b", "", "c"], graph.codes >= 0))
    lines = [element for element in root.iter() if element.tag.endswith("line")]
    assert len(lines) == len(ego.edges)
    dashed = [line.get("stroke-dasharray") is not None for line in lines]
    assert dashed == (ego.before < 0).tolist()
    for line in lines:
        assert all(0 <= float(line.attrib[end]) <= SIZE for end in ("x1", "y1", "x2", "y2"))


def test_labeled_images_have_rings_in_the_color_of_their_class_and_one_says_its_name_and_count() -> None:
    rings = labels_view._rings({3: "a", 5: "b", 7: "a"}, ("b", "a"))
    first, second = CLASS_COLORS["light"][:2]
    assert [(ring.image, ring.word, ring.color) for ring in rings] == [
        (3, "a · 2", second), (5, "b · 1", first), (7, "", second)]
