"""The page Pairs and training on labeled pairs, through Streamlit's AppTest."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.draw.two_images import unclassed_name
from tests.app.opening import opened, texts
from tests.running import worked, write_digits
from udml_core.data.given.duplicate_decisions import KIND as DUPLICATES
from udml_core.data.given.duplicate_decisions import decide
from udml_core.data.given.log import log_path_of
from udml_core.data.given.pair_sets import PairLog
from udml_core.data.splits import make_split
from udml_core.exploration import pairs as views
from udml_core.numerics.explanations import Pairs
from udml_core.runs import Run, list_runs

NONSENSE = ({"pair": "1.1", "bias": "nan", "margin": "-1", "epoch": "77", "by": "x", "kind": "x", "show": "x"},
            {"pair": "x", "bias": "1e9"}, {"pair": "3.999999"})
pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def run(places: Path) -> Run:
    return worked(places / "runs", method="nml", fields={"dimension": 6, "epochs": 2}, most_pairs=3000)


@pytest.fixture
def log(run: Run) -> Iterator[PairLog]:
    """The log of labeled pairs, empty before and after the test."""
    log = PairLog(run.dataset())
    log_path_of(log.dataset, "pairs").unlink(missing_ok=True)
    yield log
    log_path_of(log.dataset, "pairs").unlink(missing_ok=True)


def load_record(run: Run, epoch: int) -> Pairs:
    return next(record for record in run.explanations(epoch) if isinstance(record, Pairs))


def press(test: AppTest, label: str) -> AppTest:
    next(button for button in test.button if button.label == label).click().run()
    assert not test.exception
    return test


def current_pair(test: AppTest) -> tuple[int, int]:
    """Return the pair in the address."""
    value = test.query_params["asked"]
    first, second = (value if isinstance(value, str) else value[0]).split(".")
    return int(first), int(second)


def labeled(log: PairLog) -> list[tuple[int, int, bool]]:
    pairs = log.read()
    return [(*pair, same) for pair, same in zip(pairs.pairs.tolist(), pairs.same.tolist(), strict=True)]


@pytest.mark.parametrize(("bias", "margin"), [("", ""), ("0.05", "0.01"), ("0.2", "0")])
@pytest.mark.parametrize("epoch", ["", "1"])
def test_violations_are_counted_at_the_hinge_in_the_address(bias: str, margin: str, epoch: str, run: Run) -> None:
    query = {name: value for name, value in (("bias", bias), ("margin", margin), ("epoch", epoch)) if value}
    test = opened("pairs", run=run.id, **query)
    assert not test.exception
    record = load_record(run, int(epoch or 2))
    b, m = float(bias or 0.1), float(margin or 0.02)
    violating = [(d > b - m) if same else (d < b + m) for d, same in zip(record.after, record.same, strict=True)]
    counts = f"{sum(violating):,} of {len(violating):,} stored pairs"
    assert f"{counts} violate the margin at b = {b:g} and m = {m:g}" in texts(test)
    metrics = {metric.label: metric.value for metric in test.metric}
    assert metrics["Similar pairs that violate it"] == f"{100 * np.mean(np.array(violating)[record.same]):.1f} %"


def test_the_page_shows_the_pair_in_the_address_or_the_hardest(run: Run) -> None:
    record, train = load_record(run, 2), make_split(run.dataset(), "seen").train
    first, second = train[record.pairs[7]].tolist()
    words = (f"Labeled **{'same' if record.same[7] else 'different'}**: d² went from **{record.before[7]:.3f}** "
             f"to **{record.after[7]:.3f}**")
    assert words in texts(opened("pairs", run=run.id, pair=f"{second}.{first}"))
    hardest = int(np.argmax(record.argument))
    assert f"its loss is **{record.argument[hardest]:.3f}**" in texts(opened("pairs", run=run.id))


def test_labeled_pairs_may_contradict_but_pairs_drawn_from_classes_do_not(run: Run, places: Path) -> None:
    assert "No pair contradicts the classes" in texts(opened("pairs", run=run.id, by="contradictory"))
    dataset = run.dataset()
    assert dataset.labels is not None
    train = make_split(dataset, "seen").train
    fours = train[dataset.labels[train] == 4][:3]
    seven = train[dataset.labels[train] == 7][0]
    log = PairLog(dataset)
    for first, second, same in ((fours[0], fours[1], True), (fours[1], fours[2], False), (fours[0], seven, True)):
        log.add(int(first), int(second), same)
    pairs = log.read()
    own = worked(places / "given", method="nml", fields={"dimension": 4, "epochs": 1}, pairs=pairs)
    log_path_of(log.dataset, "pairs").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UDML_RUNS", str(places / "given"))
        text = texts(opened("pairs", run=own.id, by="contradictory"))
    assert "The first 2 of 2 pairs" in text
    assert "This pair contradicts the classes" in text


def test_invalid_values_in_the_address_are_ignored(run: Run) -> None:
    for query in NONSENSE:
        test = opened("pairs", run=run.id, **query)
        assert not test.exception
        assert "stored pairs violate" in texts(test)


@pytest.mark.parametrize(("prototype", "level", "shown"), [("0", "inf", 1), ("99", "inf", 1), ("6", "", 6)])
def test_the_prototype_in_the_address_is_shown_with_its_most_similar_images(prototype: str, level: str, shown: int,
                                                                            run: Run) -> None:
    query = {"level": level} if level else {}
    test = opened("pairs", run=run.id, show="prototypes", prototype=prototype, **query)
    assert not test.exception
    assert f"**Images of the test half most similar to prototype {shown}**" in texts(test)
    assert len(test.get("image")) == 1, "a prototype of pixels is an image"


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "words"), [("rbf", "Gaussian kernel decreases beyond l"),
                                               ("hellinger", "grows ever more slowly"),
                                               ("intersection", "stops growing at l")])
def test_the_response_of_each_kernel_is_described(kernel: str, words: str, places: Path) -> None:
    own = worked(places / kernel, method="nml", fields={"dimension": 4, "epochs": 1, "kernel": kernel}, most_pairs=500)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UDML_RUNS", str(places / kernel))
        test = opened("pairs", run=own.id, show="prototypes", level="0")
    assert not test.exception
    assert words in texts(test)


def test_a_run_without_pairs_names_methods_with_pairs_and_lets_users_label_pairs(places: Path) -> None:
    other = worked(places / "others", method="frozen")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UDML_RUNS", str(places / "others"))
        assert "did not learn from pairs; NML" in texts(opened("pairs", run=other.id, show="learnt"))
        assert "no prototypes; NML" in texts(opened("pairs", run=other.id, show="prototypes"))
        links = [link.proto.label for link in opened("pairs", run=other.id).get("page_link")]
        test = opened("pair_labels", run=other.id)
    assert "Mark pairs" in links
    assert not test.exception
    assert "Are these two images of the same class?" in texts(test)


@pytest.mark.parametrize("show", ["learnt", "prototypes"])
def test_a_data_set_that_changed_since_the_run_is_an_error(
        show: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = Run(shutil.copytree(run.folder, tmp_path / "runs" / run.id))
    spec = copy.spec().model_copy(update={"fingerprint": "0" * 24})
    (copy.folder / "spec.json").write_text(spec.model_dump_json(), encoding="utf-8")
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    assert "has changed" in opened("pairs", run=copy.id, show=show).error[0].value


def test_known_copies_are_not_asked(run: Run, log: PairLog) -> None:
    first = current_pair(opened("pair_labels", run=run.id))
    try:
        decide(run.dataset(), np.array([first]), same=True)
        assert current_pair(opened("pair_labels", run=run.id)) != first
    finally:
        log_path_of(run.dataset(), DUPLICATES).unlink()


def test_pairs_are_labeled_skipped_and_undone(run: Run, log: PairLog) -> None:
    test = opened("pair_labels", run=run.id)
    assert not test.exception
    first = current_pair(test)
    train = make_split(run.dataset(), "seen").train
    candidates = views.candidates(run.embeddings("final"), train)
    queue = views.informative_pairs(candidates, 0.1, 0.02, 4)[0].tolist()
    assert list(first) == queue[0]
    late = next(button for button in test.button if button.label == "Different")
    press(test, "Same")
    assert labeled(log) == [(*first, True)]
    second = current_pair(test)
    assert list(second) == queue[1]
    assert {image.caption for element in test.get("image") for image in element.proto.imgs} == {""}, "no file names"
    late.click().run()
    assert labeled(log) == [(*first, True)], "a late press for the first pair does not answer the second"
    press(test, "Skip")
    assert list(current_pair(test)) == queue[2]
    press(test, "Undo")
    assert current_pair(test) == second, "the skipped pair is back"
    press(test, "Different")
    assert labeled(log) == [(*first, True), (*second, False)]
    assert list(current_pair(test)) == queue[2]
    assert "2 labeled pairs" in texts(test)
    names = " and ".join(unclassed_name(run.dataset(), index) for index in second)
    assert f"Saved: {names} are labeled as different." in texts(test).replace("\\", "")
    assert "Training helps from about 1,000 pairs; 2 can be used so far." in texts(test)
    assert "Train with fewer pairs" in [expander.label for expander in test.expander]
    press(press(test, "Undo"), "Undo")
    assert labeled(log) == []
    assert current_pair(test) == first
    assert next(button for button in test.button if button.label == "Undo").disabled
    assert "a method can learn from your answers which images belong together" in texts(test)
    assert current_pair(opened("pair_labels", run=run.id, asked="12.3")) == (12, 3), "a link may name a pair"
    assert list(current_pair(opened("pair_labels", run=run.id, asked="nonsense"))) == queue[0]


def test_the_selected_pair_can_be_labeled_at_any_b(run: Run, log: PairLog) -> None:
    train = make_split(run.dataset(), "seen").train
    pair = train[load_record(run, 2).pairs[5]].tolist()
    test = opened("pairs", run=run.id, pair=".".join(map(str, pair)), bias="0.2")
    press(test, "Label this pair")
    assert test.session_state["page"] == "pair_labels"
    assert "Are these two images of the same class?" in texts(test)
    assert current_pair(test) == tuple(pair)


def test_the_last_answer_can_be_undone_when_all_pairs_are_labeled(
        places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(write_digits(tmp_path / "four", 4, by_class=False))
    own = worked(places / "four", method="frozen", dataset=folder, split=None)
    monkeypatch.setenv("UDML_RUNS", str(places / "four"))
    test = opened("pair_labels", run=own.id)
    for _ in range(6):
        press(test, "Same")
    assert "All candidate pairs are labeled or skipped" in texts(test)
    press(test, "Undo")
    assert "Do these two show the same thing?" in texts(test)
    assert len(PairLog(own.dataset()).read()) == 5


def test_a_labeled_pair_is_not_selected_again_in_another_session(run: Run, log: PairLog) -> None:
    first = current_pair(opened("pair_labels", run=run.id))
    log.add(*first, True)
    assert current_pair(opened("pair_labels", run=run.id)) != first
    again = opened("pair_labels", run=run.id, asked=".".join(map(str, first)))
    assert "This pair is currently labeled same" in texts(again)
    press(again, "Different")
    assert labeled(log) == [(*first, False)]


def test_contradictory_labels_are_shown_as_a_chain(run: Run, log: PairLog) -> None:
    for first, second, same in ((3, 8, True), (8, 20, True), (20, 3, False), (50, 51, False)):
        log.add(first, second, same)
    text = texts(opened("pair_labels", run=run.id, given="others"))
    assert "At least one of these 3 labels is wrong" in text
    assert "3 = 8 = 20, but 3 ≠ 20" in text


def test_a_run_can_train_on_labeled_pairs(run: Run, log: PairLog, monkeypatch: pytest.MonkeyPatch) -> None:
    query = {"dataset": "digits", "method": "nml", "pairs": "given", "backbone": "pixels", "split": "seen"}
    assert "There are no labeled pairs of these images yet" in texts(opened("train", **query))
    train = make_split(run.dataset(), "seen").train.tolist()
    test_image = int(make_split(run.dataset(), "seen").test[0])
    log.add(train[0], train[1], True)
    assert "pairs" in opened("train", **query).error[0].value
    log.add(train[0], train[2], False)
    log.add(train[0], test_image, False)
    test = opened("train", **query)
    assert not test.exception
    assert "3 pairs: 1 similar, 2 dissimilar" in texts(test)
    assert "2 of the 3 pairs have both images in the training half" in texts(test)
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda *_: None)
    press(test, "Start training")
    started = next(other for other in list_runs(run.folder.parent) if other.spec().pairs == "given")
    assert started.spec().encoder.backbone == "pixels"
    assert len(started.pairs()) == 3


def test_new_pairs_continue_the_run(run: Run, log: PairLog, monkeypatch: pytest.MonkeyPatch) -> None:
    train = make_split(run.dataset(), "seen").train.tolist()
    log.add(train[0], train[1], True)
    assert "New pairs: 1 similar, 0 dissimilar" in texts(opened("pair_labels", run=run.id))
    log.add(train[0], train[2], False)
    test = opened("pair_labels", run=run.id)
    test.number_input(key="giving-epochs").set_value(2).run()
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda *_: None)
    press(test, "Continue this run with 2 new pairs")
    started = next(other for other in list_runs(run.folder.parent) if other.spec().starts_from)
    assert (started.spec().starts_from, started.spec().fields["epochs"]) == (run.id, 2)
    assert labeled(log) == [(*pair, same) for pair, same in zip(started.pairs().pairs.tolist(),
                                                                started.pairs().same.tolist(), strict=True)]
    shutil.rmtree(started.folder)


def test_train_shows_pairs_only_for_methods_that_learn_from_them(run: Run) -> None:
    assert "most_pairs" not in [widget.key for widget in opened("train", dataset="digits", method="rpml").slider]
    test = opened("train", dataset="digits", method="ml")
    test.slider(key="most_pairs").set_value(500).run()
    assert not test.exception
    assert re.search("CSV file with the columns", texts(opened("train", dataset="digits", method="ml", pairs="file")))
