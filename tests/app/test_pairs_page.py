"""The page Pairs through Streamlit's AppTest, and how given pairs come into a run: what a link shows, keys' buttons."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.app.opening import opened, texts
from tests.running import worked, write_digits
from udml_core.data.given.log import log_path_of
from udml_core.data.given.pairs import PairLog
from udml_core.data.splits import make_split
from udml_core.explanations import Pairs
from udml_core.exploration import pairs as views
from udml_core.runs import Run, list_runs

pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def run(places: Path) -> Run:
    return worked(places / "runs", method="nml", fields={"dimension": 6, "epochs": 2}, most_pairs=3000)


@pytest.fixture
def given(run: Run) -> Iterator[PairLog]:
    """No pairs were given yet, and none stay."""
    found = PairLog(run.dataset())
    log_path_of(found.dataset, "pairs").unlink(missing_ok=True)
    yield found
    log_path_of(found.dataset, "pairs").unlink(missing_ok=True)


def load_record(run: Run, epoch: int) -> Pairs:
    return next(one for one in run.explanations(epoch) if isinstance(one, Pairs))


def press(test: AppTest, label: str) -> AppTest:
    next(button for button in test.button if button.label == label).click().run()
    assert not test.exception
    return test


def asked(test: AppTest) -> tuple[int, int]:
    """The pair in the address."""
    value = test.query_params["asked"]
    first, second = (value if isinstance(value, str) else value[0]).split(".")
    return int(first), int(second)


def told(given: PairLog) -> list[tuple[int, int, bool]]:
    found = given.read()
    return [(*pair, same) for pair, same in zip(found.pairs.tolist(), found.same.tolist(), strict=True)]


@pytest.mark.parametrize(("bias", "margin"), [("", ""), ("0.05", "0.01"), ("0.2", "0")])
@pytest.mark.parametrize("epoch", ["", "1"])
def test_it_counts_who_violates_the_link_s_hinge(bias: str, margin: str, epoch: str, run: Run) -> None:
    query = {name: value for name, value in (("bias", bias), ("margin", margin), ("epoch", epoch)) if value}
    test = opened("pairs", run=run.id, **query)
    assert not test.exception
    record = load_record(run, int(epoch or 2))
    b, m = float(bias or 0.1), float(margin or 0.02)
    violating = [(d > b - m) if same else (d < b + m) for d, same in zip(record.after, record.same, strict=True)]
    assert f"{sum(violating):,} of {len(violating):,} kept pairs violate b = {b:g} and m = {m:g}" in texts(test)
    shown = {one.label: one.value for one in test.metric}
    assert shown["Same that violate"] == f"{100 * np.mean(np.array(violating)[record.same]):.1f} %"


def test_it_shows_the_pair_in_the_link_or_the_hardest(run: Run) -> None:
    record, train = load_record(run, 2), make_split(run.dataset(), "seen").train
    first, second = train[record.pairs[7]].tolist()
    words = (f"Given as **{'the same' if record.same[7] else 'different'}**: d² went from **{record.before[7]:.3g}** "
             f"to **{record.after[7]:.3g}**")
    assert words in texts(opened("pairs", run=run.id, pair=f"{second}.{first}"))
    hardest = int(np.argmax(record.argument))
    assert f"its loss is **{record.argument[hardest]:.3g}**" in texts(opened("pairs", run=run.id))


def test_pairs_from_labels_do_not_contradict_and_given_ones_may(run: Run, places: Path) -> None:
    assert "none contradicts the classes" in texts(opened("pairs", run=run.id, by="contradictory"))
    dataset = run.dataset()
    assert dataset.labels is not None
    train = make_split(dataset, "seen").train
    of_one = train[dataset.labels[train] == 4][:3]
    other = train[dataset.labels[train] == 7][0]
    found = PairLog(dataset)
    for first, second, same in ((of_one[0], of_one[1], True), (of_one[1], of_one[2], False), (of_one[0], other, True)):
        found.give(int(first), int(second), same)
    pairs = found.read()
    own = worked(places / "given", method="nml", fields={"dimension": 4, "epochs": 1}, pairs=pairs)
    log_path_of(found.dataset, "pairs").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UDML_RUNS", str(places / "given"))
        text = texts(opened("pairs", run=own.id, by="contradictory"))
    assert "The first 2 of 2" in text
    assert "It contradicts the classes" in text


@pytest.mark.parametrize("query", [{"pair": "1.1"}, {"pair": "x"}, {"pair": "3.999999"}, {"bias": "nan"},
                                   {"margin": "-1"}, {"bias": "1e9"}, {"epoch": "77"}, {"by": "x"}, {"kind": "x"},
                                   {"show": "x"}])
def test_nonsense_in_the_address_is_survived(query: dict[str, str], run: Run) -> None:
    test = opened("pairs", **({"run": run.id} | query))
    assert not test.exception
    assert "kept pairs violate" in texts(test)


@pytest.mark.parametrize("query", [{"prototype": "0"}, {"prototype": "99"}, {"prototype": "6"}, {"level": "inf"}])
def test_prototypes_are_shown_by_who_answers(query: dict[str, str], run: Run) -> None:
    test = opened("pairs", **({"run": run.id, "show": "prototypes"} | query))
    assert not test.exception
    chosen = query["prototype"] if query.get("prototype") == "6" else "1"
    assert f"Of the test half, these answer to prototype {chosen} most" in texts(test)
    assert len(test.get("image")) == 1, "pixels are a picture"


@pytest.mark.parametrize(("kernel", "words"), [("rbf", "Gaussian kernel falls"), ("hellinger", "rises ever slower"),
                                               ("intersection", "stops at l")])
def test_each_kernel_s_response_is_said_for_what_it_is(kernel: str, words: str, places: Path) -> None:
    own = worked(places / kernel, method="nml", fields={"dimension": 4, "epochs": 1, "kernel": kernel}, most_pairs=500)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UDML_RUNS", str(places / kernel))
        test = opened("pairs", run=own.id, show="prototypes", level="0")
    assert not test.exception
    assert words in texts(test)


def test_a_run_without_pairs_says_what_has_some_and_lets_pairs_be_given(places: Path) -> None:
    other = worked(places / "others", method="frozen")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UDML_RUNS", str(places / "others"))
        assert "learnt from no pairs: NML" in texts(opened("pairs", run=other.id, show="learnt"))
        assert "no prototypes: NML" in texts(opened("pairs", run=other.id, show="prototypes"))
        test = opened("pairs", run=other.id)
    assert not test.exception
    assert "Are these two the same?" in texts(test)


@pytest.mark.parametrize("show", ["learnt", "prototypes", "give"])
def test_images_that_changed_since_are_not_taken_for_those_of_the_run(
        show: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = Run(shutil.copytree(run.folder, tmp_path / "runs" / run.id))
    spec = copy.spec().model_copy(update={"fingerprint": "0" * 24})
    (copy.folder / "spec.json").write_text(spec.model_dump_json(), encoding="utf-8")
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    assert "has changed since this run was started" in opened("pairs", run=copy.id, show=show).error[0].value


def test_pairs_are_given_skipped_and_taken_back(run: Run, given: PairLog) -> None:
    test = opened("pairs", run=run.id, show="give")
    assert not test.exception
    first = asked(test)
    train = make_split(run.dataset(), "seen").train
    found = views.candidates(run.embeddings("final"), train)
    stream = views.informative_pairs(found, 0.1, 0.02, 4)[0].tolist()
    assert list(first) == stream[0]
    press(test, "Same")
    assert told(given) == [(*first, True)]
    second = asked(test)
    assert list(second) == stream[1]
    press(test, "Skip")
    assert list(asked(test)) == stream[2]
    press(test, "Undo")
    assert asked(test) == second, "what was skipped is back"
    press(test, "Different")
    assert told(given) == [(*first, True), (*second, False)]
    assert list(asked(test)) == stream[2]
    assert "2 given pairs" in texts(test)
    press(press(test, "Undo"), "Undo")
    assert told(given) == []
    assert asked(test) == first
    press(test, "Undo")
    assert "Nothing is left to take back" in texts(test)
    assert asked(opened("pairs", run=run.id, show="give", asked="12.3")) == (12, 3), "a link may ask"
    assert list(asked(opened("pairs", run=run.id, show="give", asked="nonsense"))) == stream[0]


def test_what_was_looked_at_is_asked_whatever_b_or_run_was_before(run: Run, given: PairLog) -> None:
    test = opened("pairs", run=run.id, show="give")
    pair = load_record(run, 2).pairs[5]
    train = make_split(run.dataset(), "seen").train
    test.segmented_control(key="pairs-show").set_value("learnt").run()
    test.query_params["pair"], test.query_params["bias"] = ".".join(map(str, train[pair].tolist())), "0.2"
    test.run()
    press(test, "Answer it yourself")
    assert "Are these two the same?" in texts(test)
    assert test.query_params["bias"] in ("0.2", ["0.2"])
    assert asked(test) == tuple(train[pair].tolist())


def test_the_last_answer_can_be_taken_back_when_nothing_is_left_to_ask(
        places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(write_digits(tmp_path / "four", 4, by_class=False))
    own = worked(places / "four", method="frozen", dataset=folder, split=None)
    monkeypatch.setenv("UDML_RUNS", str(places / "four"))
    test = opened("pairs", run=own.id, show="give")
    for _ in range(6):
        press(test, "Same")
    assert "Every pair that can be told from the embedding was asked" in texts(test)
    press(test, "Undo")
    assert "Are these two the same?" in texts(test)
    assert len(PairLog(own.dataset()).read()) == 5


def test_a_pair_that_was_given_is_not_asked_in_another_session(run: Run, given: PairLog) -> None:
    first = asked(opened("pairs", run=run.id, show="give"))
    given.give(*first, True)
    assert asked(opened("pairs", run=run.id, show="give")) != first
    again = opened("pairs", run=run.id, show="give", asked=".".join(map(str, first)))
    assert "So far this pair is given as the same" in texts(again)
    press(again, "Different")
    assert told(given) == [(*first, False)]


def test_answers_that_contradict_each_other_are_shown_as_a_chain(run: Run, given: PairLog) -> None:
    for first, second, same in ((3, 8, True), (8, 20, True), (20, 3, False), (50, 51, False)):
        given.give(first, second, same)
    text = texts(opened("pairs", run=run.id, show="give", given="others"))
    assert "One of these 3 answers is wrong" in text
    assert "3 = 8 = 20, yet 3 ≠ 20" in text


def test_given_pairs_come_into_a_run(run: Run, given: PairLog, monkeypatch: pytest.MonkeyPatch) -> None:
    query = {"dataset": "digits", "method": "nml", "pairs": "given", "backbone": "pixels", "split": "seen"}
    assert "No pairs of these images were given yet" in texts(opened("train", **query))
    train = make_split(run.dataset(), "seen").train.tolist()
    test_image = int(make_split(run.dataset(), "seen").test[0])
    given.give(train[0], train[1], True)
    assert "pairs of both kinds" in opened("train", **query).error[0].value
    given.give(train[0], train[2], False)
    given.give(train[0], test_image, False)
    test = opened("train", **query)
    assert not test.exception
    assert "3 pairs: 1 the same, 2 different" in texts(test)
    assert "2 of the 3 pairs train" in texts(test)
    monkeypatch.setattr("udml_core.jobs.launch.launch", lambda _task: None)
    press(test, "Start training")
    begun = next(one for one in list_runs(run.folder.parent) if one.spec().pairs == "given")
    assert begun.spec().encoder.backbone == "pixels"
    assert len(begun.pairs()) == 3


def test_further_pairs_continue_the_run(run: Run, given: PairLog, monkeypatch: pytest.MonkeyPatch) -> None:
    train = make_split(run.dataset(), "seen").train.tolist()
    given.give(train[0], train[1], True)
    assert "so far 1 the same and 0 different" in texts(opened("pairs", run=run.id, show="give"))
    given.give(train[0], train[2], False)
    test = opened("pairs", run=run.id, show="give")
    test.number_input(key="giving-epochs").set_value(2).run()
    monkeypatch.setattr("udml_core.jobs.launch.launch", lambda _task: None)
    press(test, "Continue this run with the 2 further pairs")
    begun = next(one for one in list_runs(run.folder.parent) if one.spec().starts_from)
    assert (begun.spec().starts_from, begun.spec().fields["epochs"]) == (run.id, 2)
    assert told(given) == [(*pair, same) for pair, same in zip(begun.pairs().pairs.tolist(),
                                                                begun.pairs().same.tolist(), strict=True)]
    shutil.rmtree(begun.folder)


def test_train_asks_for_pairs_only_where_a_method_learns_from_them(run: Run) -> None:
    labels = {one.label for one in opened("train", dataset="digits", method="rpml").get("number_input")}
    assert "Pairs drawn, at most" not in labels
    test = opened("train", dataset="digits", method="ml")
    test.number_input(key="pairs-most").set_value(500).run()
    assert not test.exception
    assert re.search("CSV file with the columns", texts(opened("train", dataset="digits", method="ml", pairs="file")))
