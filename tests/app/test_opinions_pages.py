"""The verdict without labels on Runs and Compare."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st

from pages.parts.compare.opinions import frozen_words
from pages.parts.compare.seed_means import measure_table
from pages.parts.runs.leaderboard import BAR, STATE, leaderboard, shown_columns
from pages.parts.runs.opinion import verdict_icon
from pages.parts.shell.opinions import stored_opinion
from pages.parts.shell.race_verdict import frame_verdict, joint_verdicts
from pages.parts.shell.run_status import search_title
from tests.app.opening import opened, texts
from tests.running import worked
from tests.runs.test_opinions import BETTER, DAMAGED, UNCLEAR, WORSE, damage, keep_opinion
from udml_core.data.given.labels import assign
from udml_core.exploration.assigned import AssignedMeasures, Measured, assigned_words
from udml_core.exploration.race_figures import shares
from udml_core.runs import Run, create_run, example_runs
from udml_core.runs.analyses import analysis_at, create_analysis
from udml_core.runs.analyses.kinds.opinion import Verdicts
from udml_core.runs.notes import Notes
from udml_core.runs.opinions import OF_RUN, QUESTION_WORDS, TRUST
from udml_core.runs.search import Retrieval
from udml_core.runs.search.differing import Side, compare
from udml_core.runs.search.judging import Judging
from udml_core.work import jobs
from udml_core.work.jobs import launch
from udml_core.work.jobs.verdicts import IN_USE, Rival, Stand

FIRST, GROUP = QUESTION_WORDS
pytestmark = pytest.mark.usefixtures("own_runs")


def without_labels(run: Run) -> Run:
    """Leave only measures that need no labels in a run's evaluation."""
    evaluation = run.evaluation()
    assert evaluation is not None
    run.write_evaluation({name: {key: value for key, value in row.items() if key in ("images", "dimension")}
                          for name, row in evaluation.items()})
    return run


def with_recall(run: Run, final: float, frozen: float) -> Run:
    evaluation = run.evaluation()
    assert evaluation is not None
    for name, value in (("final", final), ("frozen", frozen)):
        evaluation[name] |= {"recall@1": value, "map@r": 30.0}
    run.write_evaluation(evaluation)
    return run


def test_runs_without_labels_are_listed_by_their_second_opinion_without_columns_of_dashes(pair: list[Run]) -> None:
    for run in pair:
        without_labels(run)
    keep_opinion(pair[0], BETTER, WORSE)
    rows = leaderboard(pair)
    assert rows[[FIRST, GROUP]].to_numpy().tolist() == [["better", "worse"], ["not judged"] * 2]
    assert not {BAR, "MAP@R", "R@1", "MAP@R − baseline", "R@1 − baseline"} & set(rows.columns)
    test = opened("runs", run=pair[0].id)
    assert ("**First result: better. Whole group: worse.** Compared with the plain search, without labels, by "
            "SqueezeNet 1.1, which took no part in this run.") in texts(test)
    assert "These runs have no labels." in texts(test)
    assert "cannot be judged" not in texts(test)
    assert not test.exception


def test_a_verdict_with_counts_is_a_bar_for_each_measure_and_its_judges_are_behind_a_button(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_EXAMPLES", "1")
    run = example_runs()[0]
    opinions = stored_opinion(run)
    assert opinions is not None
    test = opened("runs", run=run.id)
    shown = "".join(html.proto.body for html in test.get("html"))
    labels = re.findall(r'aria-label="([^"]*), of 100 searches: (\d+) better, (\d+) [a-z ]+, (\d+) worse"', shown)
    first, groups = (shares(measured) for measured in opinions.measured("final"))
    assert [(name, tuple(map(int, counts))) for name, *counts in labels] == [
        ("Whole group", groups), ("First result", first)]
    (judges,) = (block for block in test.get("popover") if block.proto.popover.label == "Judges")
    assert any(element.value.startswith("Compared with the plain search, without labels, by ")
               for element in judges.markdown)


def test_ones_own_runs_without_labels_stand_beside_examples_with_their_verdicts_alone(
        root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, labeled = without_labels(worked(root)), worked(root, seed=5)
    keep_opinion(run, BETTER, WORSE)
    listed = [run, labeled]
    columns = leaderboard(listed).columns
    assert {BAR, "R@1", FIRST} <= set(columns)
    mixed = shown_columns(listed, columns)
    assert mixed == shown_columns([labeled], columns), "one order, whatever is listed"
    assert {FIRST, GROUP, BAR} <= set(mixed)
    assert {BAR, "R@1"} <= set(shown_columns([labeled], columns)), "labeled runs show their measures"
    monkeypatch.setattr("pages.parts.runs.leaderboard.example_runs", lambda: [labeled])
    assert shown_columns(listed, columns) == ["Run", GROUP, FIRST], "no column that is empty for one's own runs"
    unknown = create_run(run.spec(), root)
    assert shown_columns([*listed, unknown], columns) == ["Run", GROUP, FIRST], "one without results says nothing"


def test_lab_says_without_labels_whether_training_helped(pair: list[Run]) -> None:
    run = without_labels(pair[0])
    assert "Judge without labels" in [button.label for button in opened("train", live=run.id).button]
    keep_opinion(run, BETTER, WORSE)
    test = opened("train", live=run.id)
    assert not test.exception
    assert "**Did it help?**" in texts(test)
    (said,) = (element for element in test.markdown if "**First result: better. Whole group: worse.**" in element.value)
    assert said.help.startswith("Compared with the plain search, without labels, by SqueezeNet 1.1")


def test_lab_says_first_that_training_added_nothing_and_gives_it_no_trophy(
        pair: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    run = without_labels(pair[0])
    keep_opinion(run, BETTER, WORSE)
    rival = Rival(pair[1], "final", "RPML", "first", IN_USE)
    for place in ("opinion", "rivals"):
        monkeypatch.setattr(f"pages.parts.runs.{place}.stand_beside",
                            lambda _: Stand(rival, "As good", "see", prefers_run=True))
    before = opened("train", live=run.id)
    assert ":material/trophy: **As good**" in texts(before)
    assert before.button(key="lab-use").label == "Use this training"
    for place in ("opinion", "rivals"):
        monkeypatch.setattr(f"pages.parts.runs.{place}.adds_nothing", lambda _: True)
    test = opened("train", live=run.id)
    shown = texts(test)
    assert not test.exception
    assert "trophy: **As good" not in shown
    (line,) = [each for each in test.markdown if "**No gain by training**: to a judge, the start before" in each.value]
    assert line.value.endswith("was as good. As good.")
    assert line.help.startswith("See. Compared with the plain search: ")
    assert (test.button(key="lab-use").label, test.button(key="lab-use").proto.type) == (
        "Use this training", "tertiary")


def test_labels_are_named_where_they_agree_with_the_judges_and_where_they_do_not(pair: list[Run]) -> None:
    agreeing, opposed = with_recall(pair[0], 51.2, 50.0), with_recall(pair[1], 48.8, 50.0)
    for run in pair:
        keep_opinion(run, BETTER, UNCLEAR)
    assert leaderboard(pair)[[FIRST, GROUP]].to_numpy().tolist() == [["better", "no clear difference"]] * 2
    assert "took no part in this run. The labels agree." in texts(opened("runs", run=agreeing.id))
    shown = texts(opened("runs", run=opposed.id))
    assert f"The labels say otherwise: R@1 falls by 1.2 points. {TRUST}" in shown
    assert shown.index("##### Judged without labels") < shown.index("##### Measured with labels")
    compared = opened("compare", runs=f"{agreeing.id}.{opposed.id}")
    assert f"Labels and judges differ on RPML on Digits. {TRUST}" in texts(compared), "the runs share a row"
    table = next(html.proto.body for html in compared.get("html") if "compare-table" in html.proto.body)
    assert re.findall(r"colspan='\d'>(.*?)</th>", table) == [
        "Whole group found · MAP@R", "First result right · R@1", "Judged without labels"]
    assert re.findall(r"<th scope='col'>(.*?)</th>", table)[-2:] == ["whole group", "first result"]
    assert measure_table(pair)[[FIRST, GROUP]].to_numpy().tolist() == [["better", "no clear difference"]], "one row"


def test_frozen_features_are_the_start_where_another_run_is_judged(root: Path) -> None:
    frozen, trained = worked(root, method="frozen"), worked(root)
    assert FIRST not in leaderboard([frozen, trained]), "nothing is said of either"
    keep_opinion(trained, BETTER, WORSE)
    assert leaderboard([frozen, trained])[[FIRST, GROUP]].to_numpy().tolist() == [
        ["reference", "reference"], ["better", "worse"]]


def test_the_overview_of_frozen_features_speaks_of_no_training_and_of_images_without_halves(root: Path) -> None:
    run = worked(root, method="frozen", split="all")
    test = opened("runs", run=run.id)
    table = next(frame.value for frame in test.dataframe if "Frozen features" in frame.value.columns)
    assert list(table.columns) == ["Frozen features", "PCA (centered)"]
    assert table["Frozen features"]["Trustworthiness"] == "reference"
    assert "All measures on the images." in texts(test)
    assert "How rarely an image that is far in the frozen features becomes a neighbor" in texts(test)
    linear = opened("runs", run=worked(root, method="pca", fields={"dimension": 16}).id)
    shown = next(frame.value for frame in linear.dataframe if "Frozen features" in frame.value.columns)
    assert "Before training" not in shown.columns
    assert "After training" not in shown.columns
    assert "PCA" in shown.columns
    assert "All measures on the test images." in texts(linear)


def test_compare_shows_the_progress_of_a_map_that_is_computed(pair: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages.parts.compare.matched_maps.maps_by_kind", lambda _runs: {})
    monkeypatch.setattr(jobs, "are_maps_coming", lambda run: run == pair[1])
    shown = texts(opened("compare", runs=f"{pair[0].id}.{pair[1].id}", part="Maps"))
    assert shown.count("is being computed.") == 1
    assert "Maps and judgments without labels follow in the background" in shown
    monkeypatch.setattr(jobs, "are_maps_coming", lambda _run: False)
    shown = texts(opened("compare", runs=f"{pair[0].id}.{pair[1].id}", part="Maps"))
    assert "None of these runs has a map yet." in shown


def test_labeled_runs_without_second_opinions_have_no_column_for_them(pair: list[Run]) -> None:
    assert FIRST not in leaderboard(pair)
    assert FIRST not in measure_table(pair)


def test_a_run_in_progress_shows_its_state_where_no_run_has_labels(root: Path) -> None:
    run = without_labels(worked(root))
    waiting = create_run(run.spec().model_copy(update={"seed": 7}), root)
    rows = leaderboard([run, waiting])
    assert rows[STATE].tolist() == ["", "… waiting"]
    assert FIRST not in rows, "a column of dashes"


def test_a_button_starts_a_missing_second_opinion_and_its_progress_is_shown(
        root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, started = without_labels(worked(root)), []
    monkeypatch.setattr(jobs, "analyse", lambda run, spec: started.append((run.id, spec)))
    test = opened("runs", run=run.id)
    assert "Not judged yet." in texts(test)
    test.button(key=f"opinion-new-{run.id}").click().run()
    assert started == [(run.id, OF_RUN)]


@pytest.mark.parametrize(("state", "words"), [
    ("failed", "The second opinion is failed. No weights"), ("stopped", "The second opinion is stopped.")])
def test_an_unfinished_second_opinion_says_why_and_can_be_tried_again(
        root: Path, state: Any, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run, resumed = without_labels(worked(root)), []
    analysis = create_analysis(run, OF_RUN)
    analysis.write_status(analysis.stored_status().__class__(state=state, message="No weights"))
    monkeypatch.setattr(launch, "start_again", lambda task: resumed.append(task.id))
    test = opened("runs", run=run.id)
    assert words in texts(test)
    assert "pip install timm" in texts(test)
    test.button(key=f"opinion-again-{run.id}").click().run()
    assert resumed == [analysis.id]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_second_opinion_counts_as_missing_and_can_be_computed_again(
        content: bytes, pair: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    run, resumed = without_labels(pair[0]), []
    keep_opinion(run, BETTER, WORSE)
    damage(run, content)
    monkeypatch.setattr(launch, "start_again", lambda task: resumed.append(task.id))
    test = opened("runs", run=run.id)
    assert not test.exception
    assert "The file of the second opinion is damaged, so it does not count" in texts(test)
    assert FIRST not in leaderboard([run]).columns
    test.button(key=f"opinion-again-{run.id}").click().run()
    without_labels(pair[1])
    compared = opened("compare", runs=".".join(run.id for run in pair))
    assert not compared.exception
    assert "Without a verdict: RPML on Digits" in texts(compared)
    assert resumed == [analysis_at(run, OF_RUN).id]


def test_an_example_offers_no_second_opinion() -> None:
    test = opened("runs", run="20261122-120000-rpml-digits")
    assert not [button for button in test.button if (button.key or "").startswith("opinion-")]


def test_a_training_that_its_race_gave_up_leaves_the_advice_as_it_is(root: Path) -> None:
    run = without_labels(worked(root))
    keep_opinion(run, BETTER, BETTER)
    assert frame_verdict(run, "final")[0].endswith("better first results, better whole groups.")
    run.write_notes(Notes.make(tags=("candidate",)))
    st.cache_data.clear()
    assert frame_verdict(run, "final")[0].endswith(
        "groups. No race judged this training, so what Best search says stays.")


def test_runs_without_labels_are_compared_by_second_opinions(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages.parts.compare.opinions._against", lambda *_runs: None)  # other tests stored features
    first, second = without_labels(worked(root)), without_labels(worked(root, method="pca", fields={"dimension": 16}))
    keep_opinion(first, BETTER, BETTER)
    keep_opinion(second, WORSE, UNCLEAR)
    test = opened("compare", runs=f"{first.id}.{second.id}", part="Settings")
    shown = texts(test)
    assert ("First result: **RPML on Digits** is better than the plain search; **PCA on Digits** is worse than the "
            "plain search. Whole group: **RPML on Digits** is better than the plain search; **PCA on Digits** "
            "shows no clear difference to the plain search.") in shown
    assert "Measured on the test half" not in shown
    assert not test.exception


def test_the_judges_table_of_three_runs_is_open_and_begins_with_the_largest_gain(root: Path) -> None:
    runs = [without_labels(worked(root, method=method, fields=fields)) for method, fields in (
        ("pca", {"dimension": 16}), ("rpml", {}), ("whiten", {}))]
    for run, said in zip(runs, (WORSE, UNCLEAR, BETTER), strict=True):
        keep_opinion(run, said, said)
    test = opened("compare", runs=".".join(run.id for run in runs), part="Settings")
    assert not test.exception
    measured = next(box for box in test.expander if box.label == "What the judges measured")
    assert measured.proto.expanded
    table = next(html.proto.body for html in test.get("html") if "Verdicts without labels" in html.proto.body)
    places = [table.index(f"{search_title(run)} on Digits") for run in reversed(runs)]
    assert places == sorted(places)


def test_compare_states_ones_own_judgments_once_they_decide(root: Path, monkeypatch: pytest.MonkeyPatch,
                                                            tmp_path: Path) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    first, second = worked(root), worked(root, method="pca", fields={"dimension": 16})
    sides = Side(Retrieval(first), "final"), Side(Retrieval(second), "final")
    judging = Judging(compare(*sides))
    shown = []
    while not judging.share("me").is_decided:
        question = judging.question()
        assert question is not None
        is_second_left = question.left == judging.comparison.options(question.position)[1]
        judging.answer(question, "left" if is_second_left else "right")
        if judging.count("me") in (1, 2):
            test = opened("compare", runs=f"{first.id}.{second.id}", part="Settings")
            shown.append(texts(test))
    assert ("Your judgments of first results, **PCA on Digits** against **RPML on Digits**, do not decide yet "
            "(1 of 20 judged).") in shown[0]
    next(button for button in test.button if button.label == "Continue judging").click().run()
    assert test.session_state["compare-part"] == "Judge"
    assert "finds the better image" not in shown[1], "judging stays blind"
    decided = texts(opened("compare", runs=f"{first.id}.{second.id}", part="Settings")).replace("\xa0", " ")
    count = judging.count("me")
    assert (f"Your judgments of first results: {count} of {count} for **PCA on Digits**; that is too one-sided for "
            "chance (95 % certainty).") in decided


def test_seeds_share_a_verdict_only_if_all_have_it(pair: list[Run]) -> None:
    assert joint_verdicts(pair) is None
    keep_opinion(pair[0], BETTER, BETTER)
    keep_opinion(pair[1], BETTER, WORSE)
    assert joint_verdicts(pair) == ("better", "cannot tell")


def test_names_in_the_verdict_are_escaped() -> None:
    words = frozen_words({"a*b": Verdicts("better", "worse"), "c": Verdicts("better", "better")})
    assert words == (r"First result: **a\*b** and **c** are better than the plain search. Whole group: **c** is "
                     r"better than the plain search; **a\*b** is worse than the plain search.")


@pytest.mark.parametrize(("verdicts", "icon"), [
    (("better", "better"), "trending_up"), (("worse", "worse"), "trending_down"),
    (("cannot tell", "better"), "balance"), (("worse", "cannot tell"), "balance"),
    (("better", "worse"), "swap_vert"), (("cannot tell", "cannot tell"), "help")])
def test_the_icon_shows_the_direction(verdicts: Any, icon: str) -> None:
    assert icon in verdict_icon(Verdicts(*verdicts))


def test_assigned_labels_measure_a_run_at_once(root: Path, tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))  # other tests assign labels to the same digits
    run = without_labels(worked(root))
    dataset = run.dataset()
    assert dataset.labels is not None
    assert "that you labeled" not in texts(opened("runs", run=run.id))
    for code in (0, 1):
        assign(dataset, np.flatnonzero(dataset.labels == code)[:5].tolist(), f"digit *{code}*")
    shown = texts(opened("runs", run=run.id))
    assert "Among the 10 images that you labeled, in 2 classes: **First result right · R@1" in shown
    assert "95 % interval" in shown


def test_a_run_that_trained_on_assigned_labels_says_that_they_flatter_it() -> None:
    found = AssignedMeasures(4, 2, 4, {"recall@1": Measured(100.0, 51.0, 100.0)})
    assert assigned_words(found, has_trained=False) == (
        "Among the 4 images that you labeled, in 2 classes: **First result right · R@1 100.0 %** (95 % interval 51.0 "
        "to 100.0), over 4 queries. Other images do worse where you named groups of similar images at once.")
    assert "too high" in assigned_words(found, has_trained=True)
