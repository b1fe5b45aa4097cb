"""Where "the same" ends, on the pages Retrieval and Data, through Streamlit's AppTest."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.draw.two_images import unclassed_name
from tests.app.opening import opened, texts
from tests.app.test_retrieval_page import headers
from tests.running import worked, write_clothes
from udml_core.data.dataset import ArrayImages, Dataset
from udml_core.data.given.judged_pairs import KIND, judged_pairs, want_precision, wanted_precision
from udml_core.data.given.log import log_path_of
from udml_core.data.given.pair_sets import PairLog
from udml_core.runs import Run
from udml_core.runs.analyses import plan_analysis
from udml_core.runs.search import DISTANCE, Retrieval
from udml_core.runs.search.same import Threshold, open_same_pairs, same_threshold
from udml_core.runs.used import USED_FILE, use_search
from udml_core.work.workers.analyse import keep

pytestmark = pytest.mark.usefixtures("own_places")
VIEW = "Same or different"


@pytest.fixture(scope="module")
def run(places: Path) -> Run:
    return worked(places / "runs", fields={"dimension": 16, "epochs": 2})


@pytest.fixture
def log(run: Run) -> Iterator[PairLog]:
    """The log of judged pairs, empty before and after the test."""
    log = judged_pairs(run.dataset())
    log_path_of(log.dataset, KIND).unlink(missing_ok=True)
    yield log
    log_path_of(log.dataset, KIND).unlink(missing_ok=True)


def judge(run: Run, count: int) -> Threshold | None:
    """Judge pairs by the labels, which stand in for the user."""
    retrieval = Retrieval(run)
    labels = retrieval.dataset.labels
    assert labels is not None
    for _ in range(count):
        pair = open_same_pairs(retrieval).next()
        assert pair is not None
        judged_pairs(retrieval.dataset).add(*pair, bool(labels[pair[0]] == labels[pair[1]]))
    return same_threshold(retrieval)


def press(test: AppTest, label: str) -> AppTest:
    next(button for button in test.button if button.label == label).click().run()
    assert not test.exception
    return test


def test_pairs_are_judged_skipped_undone_and_continued_in_another_session(run: Run, log: PairLog) -> None:
    test = opened("retrieval", run=run.id, view=VIEW)
    assert not test.exception
    assert "No pair is judged yet. After 10 judgments, this says about how many are needed in all." in texts(test)
    assert "Search then marks where such results end" in texts(test), "what the answers are good for"
    assert "Answers from here count there once you click **Use** on that page" in texts(test)
    labeling = texts(opened("pair_labels", run=run.id))
    assert "Answers of Search count here once you click **Use** below" in labeling
    expected = [open_same_pairs(Retrieval(run)).next()]
    for label in ("Same", "Different", "Skip"):
        press(test, label)
        expected.append(open_same_pairs(Retrieval(run)).next())
    assert ("2 of 10 pairs count for this search so far; after 10, this says how many are needed in all. 2 pairs" in
            texts(test))
    assert [(pair, answer.same) for pair, answer in log.answers().items()] == list(
        zip(expected[:3], (True, False, None), strict=True))
    assert "2 pairs judged." in texts(test)
    assert "1 pair skipped." in texts(test)
    again = opened("retrieval", run=run.id, view=VIEW)
    shown = [(image.caption, image.alt) for element in again.get("image") for image in element.proto.imgs]
    assert shown == [("", "First image of the pair"), ("", "Second image of the pair")], "no file names"
    first, second = expected[3] or ()
    assert again.button(key=f"same-S-{first}-{second}"), "the session continues with the next pair"
    press(press(again, "Undo"), "Undo")
    assert "Undone: the last answer was different." in texts(again).replace("\\", "")
    assert f"digit {expected[1][0]} " not in texts(again), "neither an answer nor its undoing names the files"
    assert list(log.answers()) == expected[:1]
    assert next(button for button in press(again, "Undo").button if button.label == "Undo").disabled


def test_a_late_answer_to_a_pair_that_is_no_longer_shown_counts_for_no_other(run: Run, log: PairLog) -> None:
    test = opened("retrieval", run=run.id, view=VIEW)
    late = next(button for button in test.button if button.label == "Same")
    press(test, "Different")
    late.click().run()
    assert [answer.same for answer in log.answers().values()] == [False]


def test_the_meaning_of_the_same_stays_in_view_after_an_answer(run: Run, log: PairLog) -> None:
    test = opened("retrieval", run=run.id, view=VIEW)
    assert "**Do these two images show the same thing?**" in texts(test)
    box = next(box for box in test.text_input if box.label.startswith("What counts as the same?"))
    box.set_value("one *digit*").run()
    press(test, "Same")
    assert r"**Do these two images show the same: one \*digit\*?**" in texts(test)
    again = opened("retrieval", run=run.id, view=VIEW)
    assert r"the same: one \*digit\*?" in texts(again)


def test_the_chart_begins_when_it_says_something_and_keeps_its_axis(run: Run, log: PairLog) -> None:
    def chart() -> dict[str, Any]:
        return json.loads(opened("retrieval", run=run.id, view=VIEW).get("plotly_chart")[0].proto.spec)

    def low_and_high(of: dict[str, Any]) -> list[float]:
        return list(of["layout"]["xaxis"]["range"])

    judge(run, 29)
    test = opened("retrieval", run=run.id, view=VIEW)
    assert not test.get("plotly_chart")
    assert "A curve follows as soon as it says something, at 30 judged pairs or later." in "".join(
        bar.proto.text for bar in test.get("progress"))
    judge(run, 1)
    while not open_same_pairs(Retrieval(run)).tells:
        assert not opened("retrieval", run=run.id, view=VIEW).get("plotly_chart"), "its interval leaves all open"
        judge(run, 10)
    first = chart()
    assert [trace.get("name") for trace in first["data"]][1:3] == ["95 % interval", "estimate"]
    judged = open_same_pairs(Retrieval(run))
    assert judged.measure == DISTANCE
    values = judged.plan.distances
    assert low_and_high(first) == pytest.approx([values.min(), values.max()], abs=0.03 * np.ptp(values))
    judge(run, 3)
    assert low_and_high(chart()) == low_and_high(first)


def test_a_file_name_is_shown_unless_it_tells_the_class() -> None:
    names = ("birds/a/DSC_1.jpg", "a/Blue_Jay_7.jpg", "a\\jays.png", "7/digit 70", "7_3.png")
    dataset = Dataset("set", "Set", ArrayImages(np.zeros((5, 2, 2), np.uint8)), np.array([0, 0, 0, 1, 1]),
                      ("Blue Jay", "7"), "f", 2, True, names)
    assert [unclassed_name(dataset, index) for index in range(5)] == ["DSC_1.jpg", "image 1", "image 2", "digit 70",
                                                                      "image 4"]
    assert unclassed_name(replace(dataset, labels=None), 1) == "a/Blue_Jay_7.jpg"


def test_the_precision_is_kept_with_the_judgments(run: Run, log: PairLog) -> None:
    judge(run, 40)
    test = opened("retrieval", run=run.id, view=VIEW)
    assert "Cannot tell yet: about" in texts(test)
    test.slider[0].set_value(80).run()
    assert wanted_precision(log.dataset) == 0.8
    threshold = same_threshold(Retrieval(run))
    assert threshold is not None
    assert threshold.sentence in texts(test)
    assert opened("retrieval", run=run.id, view=VIEW).slider[0].value == 80


def test_results_beyond_the_threshold_are_marked_in_the_embedding_that_it_holds_for(run: Run, log: PairLog) -> None:
    want_precision(log.dataset, 0.8)
    threshold = judge(run, 50)
    assert threshold is not None
    test = opened("retrieval", run=run.id, add="42", k="30")
    assert not test.exception
    ends = {header["label"]: header["end"] for header in headers(test)}
    hits = Retrieval(run).search_item(42, 30)
    end = sum(map(threshold.holds, hits))
    assert ends == {"Sample queries": None, "The 30 nearest images, raw pixels": None,
                    "The 30 nearest images, after training": end}
    assert f"{end} of 30 count as the same: {threshold.short}." in texts(test)


def test_without_judgments_the_search_says_nothing_about_the_same(run: Run, log: PairLog) -> None:
    test = opened("retrieval", run=run.id, add="42")
    assert {header["end"] for header in headers(test)} == {None}
    assert "the same:" not in texts(test)
    assert not log_path_of(log.dataset, KIND).exists()


def test_damaged_lines_and_unknown_embeddings_do_not_stop_the_page(run: Run, log: PairLog) -> None:
    judge(run, 3)
    with log_path_of(log.dataset, KIND).open("ab") as file:
        file.write(b'{"first": "digit 1", "second\n\xff\xfe\n{"undo": "yes"}\n')
    test = opened("retrieval", run=run.id, view=VIEW, judged="nonsense")
    assert not test.exception
    assert "3 pairs judged." in texts(test)


@pytest.mark.slow
def test_two_images_have_no_pairs_to_judge(places: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = write_clothes(tmp_path / "two", "aa")
    own = worked(places / "two", method="frozen", dataset=str(folder), split="all")
    monkeypatch.setenv("UDML_RUNS", str(places / "two"))
    test = opened("retrieval", run=own.id, view=VIEW)
    assert not test.exception
    assert "at least 3 images" in test.error[0].value


@pytest.mark.slow
def test_data_proposes_the_threshold_of_its_features_for_near_duplicates(
        places: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UDML_RUNS", str(places / "audited"))
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    run = worked(places / "audited", method="frozen")
    keep(run, plan_analysis(kind="audit"), lambda _share, _step: None)
    monkeypatch.setattr("pages.parts.data.auditing.chosen_encoder", lambda _: run.spec().encoder)
    monkeypatch.setattr("pages.parts.data.computed.chosen_encoder", lambda _: run.spec().encoder)
    query: dict[str, Any] = {"dataset": "digits", "view": "audit", "finding": "near"}
    test = opened("data", **query)
    assert not test.exception
    assert "From your judged pairs" not in texts(test)
    want_precision(run.dataset(), 0.7)
    threshold = judge(run, 50)
    assert threshold is not None
    assert threshold.similarity is not None
    test = opened("data", **query)
    assert f"From your judged pairs: {threshold.sentence}" in texts(test)
    slider = next(slider for slider in test.slider if slider.label == "Least cosine similarity")
    assert slider.value == 0.85, "nothing changes unless the user asks for it"
    button = next(button for button in test.button if button.label.startswith("Use 0."))
    press(test, button.label)
    slider = next(slider for slider in test.slider if slider.label == "Least cosine similarity")
    assert threshold.similarity <= slider.value < threshold.similarity + 0.01
    assert test.session_state["compare"] == "features"
    assert not [button for button in test.button if button.label.startswith("Use 0.")]


def test_the_embedding_in_view_is_judged_first(run: Run, log: PairLog) -> None:
    name = keep(run, plan_analysis(kind="refine", recipe="whiten:k=7"), lambda _share, _step: None).id
    test = opened("retrieval", run=run.id, view=VIEW, refined=name)
    assert not test.exception
    assert test.selectbox(key=f"same-embedding-{run.id}").value == name
    assert opened("retrieval", run=run.id, view=VIEW).selectbox(key=f"same-embedding-{run.id}").value == "final"
    use_search(run, name)
    try:
        test = opened("retrieval", run=run.id, view=VIEW)
        assert test.selectbox(key=f"same-embedding-{run.id}-{name}").value == name, "the user searches with it"
        assert re.findall(r"Your answers are for this search: \*\*(.+?)\*\*", texts(test)) == ["RPML, then whitening"]
    finally:
        (run.folder / USED_FILE).unlink()


def test_labeled_pairs_and_judged_pairs_know_each_other(run: Run, log: PairLog) -> None:
    labeled = PairLog(run.dataset())
    log.add(3, 5, True)
    log.add(4, 9, None)  # a skipped pair has no answer
    try:
        test = opened("pair_labels", run=run.id)
        assert not test.exception
        assert "You judged 1 further pair on the page Search, by whether both images show the same thing" in texts(test)
        test.button(key="give-judged").click().run()
        assert labeled.read().pairs.tolist() == [[3, 5]]
        assert labeled.read().same.tolist() == [True]
        assert "further pair" not in texts(test)
        shown = texts(opened("retrieval", run=run.id, view=VIEW))
        assert "from the page Label" not in shown, "the pair was judged here first"
        labeled.add(7, 8, True)
        shown = texts(opened("retrieval", run=run.id, view=VIEW))
        assert "Not counted here: 1 pair from the page Label" in shown
    finally:
        log_path_of(labeled.dataset, "pairs").unlink(missing_ok=True)
    assert "on the page Label" not in texts(opened("retrieval", run=run.id, view=VIEW))


def test_pairs_that_were_judged_in_another_embedding_are_not_said_to_be_of_this_one(run: Run, log: PairLog) -> None:
    test = opened("retrieval", run=run.id, view=VIEW)
    for _ in range(3):
        press(test, "Same")
    assert {answer.of for answer in log.answers().values()} == {f"{run.id}:final"}
    here, there = (open_same_pairs(Retrieval(run), name) for name in ("final", "frozen"))
    assert here.judged_words == "3 pairs judged."
    shared = replace(there, plan=here.plan)  # as if the random order of the other embedding drew the same pairs
    assert shared.judged_words == (
        "3 pairs judged, all of them in another embedding whose random order draws the same.")
    log.add(*next(iter(log.answers())), False, f"{run.id}:frozen")
    assert replace(there, plan=here.plan, given=log.answers()).judged_words == (
        "3 pairs judged, 2 of them in another embedding whose random order draws the same.")
