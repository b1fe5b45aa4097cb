"""The view Best search of the page Data: its choices, a race in progress and finished, and what its winner opens."""

from __future__ import annotations

import math
import re
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from pages.parts.compare.opinions import judged_pair
from pages.parts.data import computed
from pages.parts.data.advising import preparing_words, whole_time_words
from pages.parts.data.race import kept_words, race_table, result_of
from pages.parts.data.using import REPLACED, judge_link, search_link
from pages.parts.refine.raced import Raced, compared_words, less_words
from pages.parts.runs.leaderboard import leaderboard
from pages.parts.shell.confirming import results_of
from pages.parts.shell.race_verdict import advised_search, frame_verdict
from pages.parts.train.method_cards import SECOND
from tests.app.opening import opened, switched, texts
from tests.app.test_opinions_pages import without_labels
from tests.exploration.test_race import comparison, measured
from tests.running import worked, write_digits
from tests.runs.test_opinions import keep_opinion
from udml_core.base.errors import duration
from udml_core.data import catalog
from udml_core.data.encoders import choose_spec
from udml_core.data.features import features_path
from udml_core.data.given.judged_pairs import judged_pairs
from udml_core.data.speed import record_speed
from udml_core.exploration.plain_names import PLAIN
from udml_core.exploration.race import Duel, Example, Outcome, Race, Setup
from udml_core.exploration.race_advice import tell_advice
from udml_core.exploration.race_clock import Countdown
from udml_core.exploration.race_conclusion import Judgments
from udml_core.exploration.race_measured import Comparison, Count, Measured
from udml_core.numerics.second_opinion import Interval, Opinion
from udml_core.runs import Run, list_runs, runs_folder
from udml_core.runs.aims import AIM_FILE, keep_aim, kept_aim
from udml_core.runs.analyses import Analysis, analysis_at, create_analysis, list_analyses, plan_analysis
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.analyses.kinds.opinion import Opinions, Verdicts
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.opinions import OF_RUN, opinion_of
from udml_core.runs.search import Retrieval
from udml_core.runs.search.differing import Side, compare
from udml_core.runs.search.judging import Judging
from udml_core.runs.tasks import Status
from udml_core.runs.used import use_search, used_search
from udml_core.work import jobs
from udml_core.work.jobs import concluding, first_method
from udml_core.work.jobs.advising import planned_features, wanted_advice
from udml_core.work.jobs.concluding import suggested_by_race
from udml_core.work.jobs.estimate import encoding_kind, evaluation_kind, record_epoch, start_kind
from udml_core.work.jobs.follow_ups import planned, steps_in_use, want, withdraw
from udml_core.work.jobs.raced import judged_in_race, race_of, race_words_of, races_of
from udml_core.work.jobs.verdicts import beside_best, best_words, said_lines, said_of_run, unraced_words
from udml_core.work.workers import analyse as worker

SPEC = plan_analysis(Advice, budget=2.0, serves="groups")
LINK = {"dataset": "digits", "view": "advice", "budget": "2", "serves": "groups"}


@pytest.fixture(autouse=True)
def _pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computed, "DEFAULT_BACKBONE", "pixels")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The tasks that would be executed."""
    tasks: list[Any] = []
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda task, *_: tasks.append(task))
    return tasks


@pytest.fixture
def frozen() -> Run:
    """A finished run of the pixels of all digits."""
    return worked(runs_folder(), method="frozen", split="all")


def outcomes(run: Run) -> list[Outcome]:
    """Return one outcome of each kind."""
    def judged(name: str, recipe: str, first: Any, groups: Any, **rest: Any) -> Outcome:
        of = comparison(first, groups)
        return Outcome(name=name, setup=Setup(backbone="pixels", recipe=recipe), against_best=of, against_start=of,
                       run=run.id, seconds=1.5, kept=of.earns_its_place("groups"), **rest)

    return [judged("Views *bold*", "views", "worse", "worse"), judged("Whitening", "whiten", "cannot tell", "better"),
            judged("Averaging", "whiten+average", "worse", "cannot tell"),
            judged("Diffusion", "whiten+diffuse", "worse", "better"),
            Outcome(name="PLM", setup=Setup(backbone="pixels", method="plm"), state="not tried", seconds=200),
            Outcome(name="Squeeze *Net*", setup=Setup(backbone="squeezenet"), state="not possible",
                    reason="No judge is left.")]


def finished(run: Run, rows: list[Outcome], reason: str = "", weights: dict[str, float] | None = None,
             examples: tuple[Example, ...] = ()) -> Analysis:
    race = Race(serves="groups", budget=2, start=Setup(backbone="pixels"), run=run.id, outcomes=tuple(rows),
                titles={"judge": "A judge"}, reason=reason, weights=weights or {}, examples=examples)
    return create_analysis(run, SPEC, state="done", result={"race": np.array(race.model_dump_json())})


def test_a_race_shows_queries_with_the_results_of_both_searches(frozen: Run) -> None:
    rows = outcomes(frozen)[:2]
    shown = Example(setup=Setup(backbone="pixels", recipe="whiten"), serves="groups", query=3, before=((4, 2), (5, 7)),
                    after=((6, 1), (8, 3)))
    others = [shown.model_copy(update=update) for update in (
        {"setup": Setup(backbone="pixels", recipe="views"), "query": 9}, {"serves": "first", "query": 11})]
    finished(frozen, rows, examples=(shown, *others))
    test = opened("data", **LINK)
    assert not test.exception
    assert "Random queries whose group changes: each row has what only this search finds" in texts(test)
    keys = str([element.proto for element in test.get("bidi_component")])
    assert "race-example-3" in keys
    assert "race-example-9" not in keys, "of the advised search alone"
    assert "race-example-11" not in keys, "and of what the user looks for"


def stopped_again(run: Run, rows: list[Outcome], spec: Any = SPEC) -> Analysis:
    """Return a race that was stopped after some candidates; a finished one with the same choices is set aside."""
    analysis = create_analysis(run, spec, state="stopped")
    if analysis.is_done():
        analysis.set_result_aside()
        analysis.write_status(Status(state="stopped", ticket=time.time()))
    for row in rows:
        analysis.append_part(row.model_dump(mode="json"))
    return analysis


def test_a_stopped_race_shows_what_it_judged_and_the_finished_race_stays(frozen: Run) -> None:
    rows = outcomes(frozen)
    finished(frozen, rows)
    stopped_again(frozen, rows[:1])
    test = opened("data", **LINK)
    assert not test.exception
    shown = texts(test).replace("\\", "")
    assert "The new race was stopped; its finished candidates stay. Below is the race that finished before." in shown
    assert "The new race judged 1 candidate until then" in [of.label for of in test.expander]
    assert "Whitening: better whole groups" in shown, "the lines of the finished race"
    assert verdict(test)[0].endswith("Best search: the refined search")


def test_a_race_that_was_cancelled_does_not_replace_what_an_older_race_said(frozen: Run) -> None:
    rows = outcomes(frozen)
    finished(frozen, rows)
    said = race_words_of(frozen, "whiten")
    assert "better whole groups" in said
    newer = stopped_again(frozen, [rows[1].model_copy(update={"against_start": comparison("worse", "worse")})],
                         plan_analysis(Advice, budget=15.0, serves="groups"))
    assert newer.stored_status().ticket > create_analysis(frozen, SPEC).stored_status().ticket
    assert race_words_of(frozen, "whiten") == said


def test_a_stopped_race_for_another_aim_is_no_news_of_a_finished_one(frozen: Run) -> None:
    rows = outcomes(frozen)
    finished(frozen, rows)
    stopped_again(frozen, rows[:1], plan_analysis(Advice, budget=15.0, serves="first"))
    assert "A newer race was stopped." not in texts(opened("data", **LINK))


def test_a_stopped_race_stands_beside_the_finished_one_not_in_its_place(frozen: Run) -> None:
    rows = outcomes(frozen)
    finished(frozen, rows)
    stopped_again(frozen, rows[:1], plan_analysis(Advice, budget=15.0, serves="groups"))
    test = opened("data", dataset="digits", view="advice")
    assert not test.exception
    assert verdict(test)[0].endswith("Best search: the refined search")
    assert "A newer race was stopped." in texts(test)
    test.button(key="advice-stopped-show").click().run()
    assert "Continue" in [each.label for each in test.button]
    assert "A newer race was stopped." not in texts(test)
    test.segmented_control(key="advice-serves").set_value("first").run()
    assert "Continue" not in [each.label for each in test.button], "the finished race answers for the other aim"


def test_stopping_a_race_leads_back_to_the_finished_one(frozen: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = outcomes(frozen)
    finished(frozen, rows)
    use_search(frozen, worker.keep(frozen, plan_analysis(Refinement, recipe="whiten"), lambda _share, _step: None).id)
    later = stopped_again(frozen, rows[:1], plan_analysis(Advice, budget=15.0, serves="groups"))
    ended = later.stored_status()
    later.write_status(Status(state="running", started=time.time(), phase="judge", ticket=ended.ticket))
    monkeypatch.setattr("udml_core.work.jobs.stop", lambda analysis: analysis.write_status(ended))
    with later.lock().acquire():
        test = opened("data", **LINK | {"budget": "15"})
        assert "**Your search: the refined search.** It stays in use until you choose another." in texts(test)
        test.button(key="advice-cancel").click().run()
    assert verdict(test)[0].endswith("Best search: the refined search")
    assert "A newer race was stopped." in texts(test)


def test_candidates_that_were_left_out_are_named_with_the_reason_and_explained(frozen: Run) -> None:
    late = Outcome(name="DeepCluster", setup=Setup(backbone="pixels", method="deepcluster"), state="given up",
                   seconds=40, needs=500)
    finished(frozen, [*outcomes(frozen), late])
    test = opened("data", **LINK)
    captions = {of.value.replace("\\", ""): of.help for of in test.caption}
    assert "Begun and given up: DeepCluster (after 40 s, because it would take about 8 min)." in captions
    assert "Not possible: Squeeze *Net* (No judge is left)." in captions
    assert PLAIN["deepcluster"] in captions["Not tried in 2 minutes: PLM (it would take about 3 min)."]


def button(test: AppTest, label: str) -> Any:
    return next(button for button in test.button if button.label == label)


def look_for(test: AppTest, serves: str) -> None:
    """Choose what the user looks for."""
    test.segmented_control(key="advice-serves").set_value(serves).run()


def steps(test: AppTest) -> str:
    """Return the steps of the advised search, which stand below its plain name."""
    return next(each.value.replace("\\", "") for each in test.caption if "less attention" in each.value)


def verdict(test: AppTest) -> tuple[str, str]:
    """Return the headline of a race, and the words after it."""
    words = [element.value.replace("\\", "") for element in test.markdown]
    at = next(number for number, value in enumerate(words) if value.startswith("#### "))
    return words[at].removeprefix("#### "), next(iter(words[at + 1:]), "")


def charts(test: AppTest) -> list[str]:
    """Return the text alternatives of the charts."""
    return [element.proto.alt for element in test.get("plotly_chart")]


def test_the_gallery_leads_to_the_choices_of_a_race(launched: list[Any]) -> None:
    test = opened("data", dataset="digits")
    button(test, "Find the best search").click().run()
    assert test.query_params["view"] == ["advice"] or test.query_params["view"] == "advice"
    assert "The judges: EfficientNet-Lite0 and SqueezeNet 1.1." in texts(test)
    assert "All images of the same kind should come before all others." in texts(test), "the usual aim"
    assert not list_runs(runs_folder())
    assert not launched


def test_a_click_starts_the_features_and_notes_the_race(launched: list[Any]) -> None:
    test = opened("data", **LINK)
    button(test, "Find the best search").click().run()
    (run,) = launched
    assert (run.spec().split, run.spec().backbone) == ("all", "pixels")
    assert wanted_advice(run) == SPEC
    assert not test.exception
    assert "Find the best search" not in [button.label for button in test.button]
    assert "What is computed" in button(test, "Stop").help
    button(test, "Stop").click().run()
    assert wanted_advice(run) is None
    assert run.status().state == "stopped"
    assert button(test, "Find the best search")


def test_a_finished_race_shows_its_advice_a_chart_and_a_sentence_for_each_candidate(frozen: Run) -> None:
    finished(frozen, outcomes(frozen))
    test = opened("data", **LINK)
    assert not test.exception
    headline, sure = verdict(test)
    assert headline == ":green[:material/trophy:] Best search: the refined search"
    assert sure.startswith("The judges are very sure: chance alone looks this good in")
    assert "Whole groups are clearly better than with the plain search" in texts(test)
    assert ("Short trainings were not tried: they would not have fitted into the time that was left. Run again with 5 "
            "minutes.") in texts(test).replace("\\", "")
    words = texts(test)
    assert "Squeeze \\*Net\\*" in words, "names are escaped"
    assert f"Whitening: {PLAIN['whiten']} · A new image is searched in the same way." in words.replace("\\", "")
    assert words.replace("\\", "").count(f":gray[{PLAIN['diffuse']}]") == 1, "each name is explained once in the list"
    assert "Whitening, then diffusion: better whole groups" in words.replace("\\", "")
    assert "Not tried in 2 minutes: PLM (it would take about 3 min)." in words.replace("\\", "")
    assert "not possible. No judge is left." in words
    visible = "\n".join(element.value for kind in ("markdown", "caption") for element in test.get(kind))
    assert not re.search("mutual|reciprocal|random walk|weight", visible), "the terms of papers stand behind a ?"
    assert "random walk with restart on the graph of mutual neighbors" in words
    (alt,) = charts(test)
    assert alt.startswith(
        "Gain of 4 candidates over the plain search: Several views of each image −0.020; Whitening +0.020")


def test_a_link_without_choices_shows_the_newest_race(frozen: Run) -> None:
    finished(frozen, outcomes(frozen))
    test = opened("data", dataset="digits", view="advice")
    for _visit in range(2):
        assert verdict(test)
        assert {name: test.query_params[name] for name in ("budget", "serves")} in (
            {"budget": "2", "serves": "groups"}, {"budget": ["2"], "serves": ["groups"]})
        test.query_params.clear()
        switched(test, "learn")
        test.query_params.update(dataset="digits", view="advice")
        switched(test, "data")


@pytest.mark.parametrize(("reason", "rows", "said"), [
    ("", [0], "Nothing is better: keep the plain search."), ("Cannot tell: install timm.", [], "timm"),
    ("", [4], "No candidate was judged in this time.")])
def test_a_race_without_a_winner_says_why(frozen: Run, reason: str, rows: list[int], said: str) -> None:
    finished(frozen, [outcomes(frozen)[row] for row in rows], reason)
    test = opened("data", **LINK)
    assert ":green[" not in verdict(test)[0]
    assert said in f"{verdict(test)[0]}."
    assert "Search with it" not in [button.label for button in test.button]
    frozen_search = [button for button in test.button if button.label == "Use the plain search"]
    assert [button.proto.type for button in frozen_search] == ["primary"] * (rows == [0])


def test_a_stopped_race_keeps_its_candidates_and_can_be_continued(frozen: Run, launched: list[Any]) -> None:
    analysis = create_analysis(frozen, SPEC)
    for outcome in outcomes(frozen)[:2]:
        analysis.append_part(outcome.model_dump(mode="json"))
    analysis.write_status(Status(state="stopped", message="Stopped."))
    test = opened("data", **LINK)
    assert verdict(test)[0].endswith("Better so far: the refined search")
    assert button(test, "Search with it")
    button(test, "Continue").click().run()
    assert launched == [analysis]
    assert "Continue" not in [button.label for button in test.button]
    assert len(charts(test)) == 1, "a race in progress shows its judged candidates"
    assert "can be continued" in button(test, "Stop and keep what is judged").help


def test_the_winner_opens_in_the_search_as_soon_as_it_is_refined(frozen: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def compute(task: Analysis, *_: Any) -> None:
        task.write_result(worker.compute(task.run, task.spec(), lambda *_: None))
        task.write_status(Status(state="done"))

    monkeypatch.setattr("udml_core.work.jobs.launch.launch", compute)
    finished(frozen, outcomes(frozen)[:2])
    test = opened("data", **LINK)
    button(test, "Search with it").click().run()
    (refinement,) = list_analyses(frozen, Refinement)
    assert refinement.spec().recipe == "whiten"
    assert test.session_state["page"] == "retrieval"
    assert test.query_params["compare"] in (refinement.id, [refinement.id]), "one list of results"
    trained = worked(runs_folder(), method="pca", split="all", fields={"dimension": 4})
    assert search_link(trained, "final")["compare"] == "final", "one list of results"
    chosen, own = "You chose **the refined search** for these images.", (
        ":material/push_pin: **Your search: the refined search.**")
    home = opened("home")
    assert own in home.markdown[1].value, "it follows the app's sentence"
    assert home.caption[0].value.replace("\\", "") == "Whole group: better. First result: no clear difference."
    first = opened("retrieval")
    assert first.session_state["app-run"] == frozen.id, "every page begins with it, although a run is newer"
    assert first.multiselect[0].value == [refinement.id]
    assert chosen not in texts(first)
    assert own in texts(first)
    assert "Whole group\\: better." in texts(first)
    assert texts(first).count("Whole group") == 1, "once on the page"
    titles = first.sidebar.selectbox(key="choose-run").options
    assert titles[1].startswith("Refined search on "), "the box names what is used"
    first.query_params["add"] = "7"
    button(first.run(), "Show the plain search beside it").click().run()
    assert first.multiselect[0].value == [refinement.id, "final"]
    assert first.query_params["add"] in ("7", ["7"]), "of the same query"
    trained.write_status(trained.stored_status().model_copy(update={"finished": time.time()}))
    for key in ("app-run", "app-run-trained"):  # as Lab leaves it
        first.session_state[key] = trained.id
    first.query_params.clear()
    first.run()
    assert first.session_state["app-run"] == frozen.id, "a training is never swapped in silently"
    says = "Your training **PCA** is newer than your search. No judge has compared it yet."
    assert says in texts(first)
    for page, link in {"home": {}, "data": LINK, "runs": {}}.items():
        other = opened(page, **link)
        assert says in texts(other), f"{page} says the same"
        assert {"Use this training", "Keep my search"} <= {each.label for each in other.button}
    button(first, "Keep my search").click().run()
    for test in (first, opened("home"), opened("data", **LINK), opened("runs")):
        assert "is newer" not in texts(test), "the choice is made"
    newer = opened("retrieval", run=trained.id)
    assert chosen in texts(newer), "a newer training does not replace it unnoticed"
    again = opened("retrieval", run=trained.id)
    button(again, "Search with it").click().run()
    assert [again.query_params[name] for name in ("run", "compare")] in (
        [frozen.id, refinement.id], [[frozen.id], [refinement.id]]), "a link to this page would leave the former run"
    button(newer, "Choose what is shown").click().run()
    assert used_search([frozen, trained]) == (trained, "final")
    assert chosen not in texts(newer)
    assert used_search([frozen]) == (frozen, refinement.id), "the last choice counts among the runs that are there"
    (frozen.folder / "used.json").write_text('{"frame": "refine-gone", "at": 1e12}')
    assert used_search([frozen]) is None, "its refinement is gone"
    (trained.folder / "used.json").write_text("{")
    assert used_search([frozen, trained]) is None


def test_the_preparation_of_a_race_has_one_estimate_that_never_rises() -> None:
    countdown = Countdown()
    said = [preparing_words(countdown, 60.0, *at) for at in ((0.0, None), (20.0, 5.0), (26.0, 70.0), (55.0, 4.0))]
    assert said == [f", about {left} until the race begins" for left in ("60 s", "40 s", "40 s", "5 s")], (
        "a step that ends soon, or seems to take longer, starts no estimate of its own")
    assert preparing_words(countdown, 60.0, 70.0, 30.0) == ", longer than expected"
    assert preparing_words(Countdown(), 0.0, 3.0, None) == "; how long this takes is not known yet", "never measured"


def test_links_name_the_search_and_the_judgments() -> None:
    assert judge_link("run:frozen", "run", "refine-1") == {"part": "Judge", "runs": "run", "a": "run:frozen",
                                                    "b": "run:refine-1"}
    assert judge_link("run:frozen", "run", "refine-1", "groups")["results"] == "group", "whole groups are judged"
    assert judge_link("run:frozen", "other", None) == {"part": "Judge", "runs": "run.other", "a": "run:frozen",
                                                "b": "other:final"}


def test_the_simpler_search_that_does_about_as_well_is_used_at_once(frozen: Run, launched: list[Any]) -> None:
    def better(gain: float) -> Comparison:
        groups = Measured(verdict="better", difference=gain, low=gain - 0.005, high=gain + 0.005)
        return Comparison(first=measured("cannot tell"), groups=groups, judges=("judge",), changed=0.4)

    rows = [Outcome(name=method, setup=Setup(backbone="pixels", method=method, recipe=recipe), run=frozen.id,
                    against_best=better(gain), against_start=better(gain))
            for method, recipe, gain in (("plm", "", 0.02), ("frozen", "whiten", 0.018))]
    finished(frozen, rows)
    test = opened("data", **LINK)
    assert verdict(test)[0].endswith("Best search: the trained search")
    shown = texts(test).replace("\\", "")
    assert ("1 other candidate does about as well. Without training, the best is the refined search (whitening). "
            "Why this search: its gain is the largest." in shown)
    details = next(each for each in test.expander if each.label == "Details")
    assert any("About as good: whitening." in each.value.replace("\\", "") for each in details.markdown)
    test.button(key="advice-simpler").click().run()
    assert [task.spec().recipe for task in launched] == ["whiten"]


def test_the_card_says_that_others_do_as_well_and_that_one_judge_decides(frozen: Run) -> None:
    def better(gain: float) -> Comparison:
        groups = Measured(verdict="better", difference=gain, low=gain - 0.005, high=gain + 0.005)
        return Comparison(first=measured("cannot tell"), groups=groups, judges=("judge", "pixels"), changed=0.4)

    rows = [Outcome(name=recipe, setup=Setup(backbone="pixels", recipe=recipe), run=frozen.id,
                    against_best=better(gain), against_start=better(gain))
            for recipe, gain in (("whiten", 0.02), ("views", 0.019))]
    finished(frozen, rows, weights={"judge": 0.9, "pixels": 0.1})
    test = opened("data", **LINK)
    inside = next(each for each in test.expander if each.label == "Details").markdown
    card = [each.value for each in test.markdown if each not in inside]
    decides = "One judge decides: A judge, a network that took no part."
    assert any(decides in words.replace("\\", "") for words in card)
    assert any("1 other candidate does about as well. Why this search: its gain is the largest." in
               each.value.replace("\\", "") for each in test.caption)
    assert any("About as good: several views" in each.value.replace("\\", "") for each in inside)
    assert not any("only all of them together" in each.value for each in inside), "one decides"


def test_a_table_of_vectors_says_which_judge_it_needs(tmp_path: Path) -> None:
    np.save(tmp_path / "own.npy", np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32))
    name = str(tmp_path / "own.npy")
    catalog.remember_table(catalog.find(name))  # type: ignore[arg-type]
    try:
        test = opened("data", dataset=name, view="advice")
        assert "A second table of vectors" in test.info[0].value
        assert "Find the best search" not in [button.label for button in test.button]
    finally:
        catalog.forget(Path(name))


def test_a_folder_of_few_images_says_how_many_a_race_needs(tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "few", 12, by_class=False)
    catalog.remember(str(folder))
    try:
        test = opened("data", dataset=str(folder), view="advice")
        button(test, "Find the best search").click().run()
        assert not test.exception
        assert test.error[0].value == "Advice needs at least 20 images, got 12. Add images."
        assert not list_runs(runs_folder())
    finally:
        catalog.forget(folder)


def test_the_table_and_the_results_of_a_race_name_verdicts(frozen: Run) -> None:
    rows = outcomes(frozen)
    race = Race(serves="groups", budget=2, start=Setup(backbone="pixels"), run="run", outcomes=tuple(rows))
    assert [result_of(outcome, race) for outcome in rows[:4]] == [
        "worse", "the advice", "no clear difference", "better"]
    frame = race_table(race)
    assert frame.index.tolist() == [
        "Several views of each image", "Whitening", "Whitening, then averaging with 10 neighbors",
        "Whitening, then diffusion"]
    assert frame["Whole groups: verdict"].tolist() == ["worse", "better", "no clear difference", "better"]
    assert frame["Whole groups: of 100 searches"].tolist() == ["unknown"] * 4, "a race of an earlier version"
    assert "New in it" not in frame, "the chart and the sentences say it, and the table fits"
    of = Comparison(first=measured("cannot tell"), groups=measured("better"), judges=("judge",),
                    whole=Count(changed=0.9, better=0.6, worse=0.3, low=0.55, high=0.65))
    told = rows[1].model_copy(update={"against_start": of})
    frame = race_table(race.model_copy(update={"outcomes": (told,)}))
    assert frame["Whole groups: of 100 searches"].tolist() == ["60 (51 to 69) better, 30 worse"]


def test_train_opens_with_the_method_that_won_the_race(frozen: Run) -> None:
    dataset = frozen.dataset()
    assert first_method(dataset, runs_folder()) == "whiten"
    of = comparison("better", "better", size=0.03)
    winner = Outcome(name="Distilled refinement", setup=Setup(backbone="pixels", method="distill"), kept=True,
                     against_best=of, against_start=of, run=frozen.id)
    finished(frozen, [*outcomes(frozen), winner])
    assert first_method(dataset, runs_folder()) == "distill"


def test_lab_proposes_a_training_to_watch_where_a_race_needs_none(frozen: Run) -> None:
    rows = [Outcome(name=name, setup=Setup(backbone="pixels", method=method, recipe=recipe), kept=True,
                    against_best=(of := comparison("better", "better", size=size)), against_start=of, run=frozen.id)
            for name, method, recipe, size in (("Whitening", "frozen", "whiten", 0.05), ("Short", "distill", "", 0.03),
                                               ("Long", "plm", "", 0.02))]
    finished(frozen, rows)
    assert first_method(frozen.dataset(), runs_folder()) == "plm", "two epochs show nothing"
    shutil.rmtree(frozen.folder / "analyses")
    finished(frozen, rows[:2])
    assert first_method(frozen.dataset(), runs_folder()) == "distill", "the only one"


def trained(run: Run) -> Outcome:
    """Return a judged candidate with a training."""
    of = comparison("cannot tell", "cannot tell")
    return Outcome(name="PCA", setup=Setup(backbone="pixels", method="pca"), against_best=of, against_start=of,
                   run=run.id)


def test_lab_follows_the_race_before_an_example_and_says_what_won(frozen: Run) -> None:
    assert first_method(frozen.dataset(), runs_folder(), example="rpml") == "rpml"
    finished(frozen, outcomes(frozen))
    assert first_method(frozen.dataset(), runs_folder(), example="rpml") == "deepcluster", "whitening was tried"
    test = opened("train", dataset="digits")
    assert not test.exception
    assert test.query_params["method"] in ("deepcluster", ["deepcluster"])
    assert SECOND == "To watch a training"
    suggestion = suggested_by_race(frozen.dataset(), runs_folder())
    assert suggestion is not None
    judged = (*suggestion.race.outcomes, trained(frozen))
    tried = replace(suggestion, race=suggestion.race.model_copy(update={"outcomes": judged}))
    assert tried.needless == "It needs no training: the race tried 1 training and advises none."
    assert replace(tried, conclusion=replace(tried.conclusion, use=trained(frozen))).needless == ""
    words = texts(test).replace("\\", "")
    assert mains(test) == ["Use the best search"], "one next step, and no training beside it"
    assert ":material/trophy: Whole groups: Best search: the refined search (whitening). It needs no training." in words
    worker.keep(frozen, plan_analysis(Refinement, recipe="whiten"), lambda _share, _step: None)
    use_search(frozen, plan_analysis(Refinement, recipe="whiten").id)
    test = opened("train", dataset="digits", method="whiten")
    words = texts(test).replace("\\", "")
    assert "**Your search: the refined search.**" in words
    assert "Best search" not in words, "the choice stands first"
    assert not mains(test)
    (link,) = [link for link in test.get("page_link") if link.proto.label == "Search with it"]
    assert "compare=refine" in link.proto.query_string
    assert ("In the race on these images, the refined search (whitening): no clear difference in first results, "
            "better whole groups, "
            "compared with the plain search.") in words
    assert "The race has tried this step already: trained alone, it gives the same search." in words
    assert "takes seconds" not in words, "the form measures the time"


def mains(test: AppTest) -> list[str]:
    """Return the labels of the main buttons of a page."""
    return [button.label for button in test.main.button if button.proto.type == "primary"]


def test_lab_says_if_nothing_surely_won_the_race(frozen: Run) -> None:
    finished(frozen, outcomes(frozen)[:1])
    test = opened("train", dataset="digits")
    assert len(mains(test)) == 1
    assert test.button(key="lab-begin").proto.type == "secondary"
    assert test.button(key="lab-next").label == mains(test)[0]
    words = texts(test).replace("\\", "")
    assert ":material/balance: Whole groups: Nothing is better: keep the plain search." in words
    assert "No training is advised" not in words


def test_a_small_change_and_a_race_without_a_clear_winner_have_no_trophy(frozen: Run) -> None:
    of = comparison("better", "better").model_copy(update={"changed": 0.13})
    small = Outcome(name="Whitening", setup=Setup(backbone="pixels", recipe="whiten"), against_best=of,
                    against_start=of, run=frozen.id, kept=True)
    race = Race(serves="first", budget=2, start=Setup(backbone="pixels"), run=frozen.id, outcomes=(small,))
    create_analysis(frozen, plan_analysis(Advice, budget=2.0, serves="first"), state="done",
                    result={"race": np.array(race.model_dump_json())})
    test = opened("data", **LINK | {"serves": "first"})
    assert not test.exception
    assert ":green[" not in verdict(test)[0]
    assert "first result of 13 % of images: a small change, so confirm it by eye" in texts(test).replace("\\", "")
    assert button(test, "Search with it")


def test_a_finished_race_can_be_run_again_with_another_time(frozen: Run, launched: list[Any]) -> None:
    rows = outcomes(frozen)
    finished(frozen, rows)
    test = opened("data", **LINK)
    is_late = any(row.state in ("not tried", "given up") for row in rows)
    assert ("so more candidates fit into the same time" in texts(test)) == is_late
    assert ("more time tries nothing new" in texts(test)) != is_late
    test.button(key="advice-again-5").click().run()
    assert not test.exception
    (task,) = launched
    assert task.spec().budget == 5.0
    assert test.query_params.get("budget", ["5"]) in ("5", ["5"])
    enough = opened("data", **LINK)
    button(enough, "5 minutes, in which what was left out fits").click().run()
    assert launched[-1].spec() == task.spec(), "the time that tries what was not tried"
    again = opened("data", **LINK)
    again.button(key="advice-again-2").click().run()
    assert launched[-1].spec() == SPEC, "the race with the same time is computed again"
    assert not launched[-1].is_done()


def test_a_finished_race_stays_while_it_runs_again_and_after_it_was_stopped(frozen: Run, launched: list[Any]) -> None:
    analysis = finished(frozen, outcomes(frozen))
    opened("data", **LINK).button(key="advice-again-2").click().run()
    assert launched == [analysis]
    assert not analysis.parts()
    assert race_words_of(frozen, "whiten"), "other pages still show what the finished race said"
    with analysis.lock().acquire():
        analysis.write_status(Status(state="running", phase="judge"))
        live = opened("data", **LINK)
        (line,) = [of.value for of in live.caption if "The race that finished before stays" in of.value]
        assert "Best search\\: the refined search (whitening)" in line
        assert "How sure" not in texts(live), "one line, below the race that runs"
    analysis.append_part(outcomes(frozen)[0].model_dump(mode="json"))
    analysis.write_status(Status(state="stopped", message="Stopped."))
    test = opened("data", **LINK)
    assert verdict(test)[0].endswith("Best search: the refined search")
    assert "The new race was stopped" in test.warning[0].value
    assert {"Continue", "Keep the finished race"} <= {button.label for button in test.button}
    button(test, "Keep the finished race").click().run()
    assert not test.exception
    assert not test.warning
    assert verdict(test)[0].endswith("Best search: the refined search")
    assert analysis.is_done()
    analysis.set_result_aside()
    analysis.write_result({"race": np.array(race_of(analysis).model_dump_json())})
    assert not analysis.has_earlier(), "a new result takes the place of the earlier one"


def test_one_race_answers_for_both_aims_and_says_by_which_it_chose(frozen: Run, launched: list[Any]) -> None:
    rows = outcomes(frozen)
    both = comparison("better", "cannot tell")
    rows[2] = rows[2].model_copy(update={"against_start": both, "against_best": both})
    finished(frozen, rows)
    test = opened("data", **LINK | {"budget": "5"})
    assert verdict(test)[0].endswith("Best search: the refined search"), "a race of another time answers"
    assert "Neighbor averaging: " not in steps(test)
    assert test.query_params["budget"] in ("2", ["2"])
    assert "This race chose" not in texts(test)
    look_for(test, "first")
    assert not test.exception
    assert verdict(test)[0].endswith("Best search: the refined search")
    assert "Neighbor averaging: " in steps(test)
    assert "This race chose what to try by whole groups, and measured first results as well." in texts(test)
    assert "beat the best before it in whole groups is kept" in texts(test), "which it does not choose again"
    assert "budget" not in test.query_params, "a race for first results could have the same time"
    stopped_again(frozen, rows[:1], plan_analysis(Advice, budget=2.0, serves="first"))
    assert "Try more for first results" in [popover.proto.popover.label for popover in test.get("popover")]
    test.button(key="advice-more-5").click().run()
    (started,) = launched
    kind = started.spec().build_kind()
    assert (kind.serves, kind.budget) == ("first", 5.0), "in a time of its own"


def test_what_the_user_looks_for_is_kept_and_decides_on_every_page(frozen: Run) -> None:
    rows = outcomes(frozen)
    both = comparison("better", "cannot tell")
    rows[2] = rows[2].model_copy(update={"against_start": both, "against_best": both})
    finished(frozen, rows)

    def said() -> str:
        st.cache_data.clear()
        return texts(opened("home")).replace("\\", "")

    assert "Best search: the refined search." in said()
    test = opened("data", **LINK | {"serves": "first"})
    assert kept_aim(runs_folder(), "digits") is None, "a link is no choice"
    look_for(test, "groups")
    look_for(test, "first")
    assert kept_aim(runs_folder(), "digits") == "first"
    assert "First results: Best search: the refined search." in said()
    assert judged_in_race(frozen, "whiten") is not None
    assert {race.serves for race in races_of(frozen)} == {"first"}
    test = opened("data", dataset="digits", view="advice")
    assert verdict(test)[0].endswith("Best search: the refined search")
    assert "Neighbor averaging: " in steps(test)
    race = Race(serves="groups", budget=5, start=Setup(backbone="pixels"), run=frozen.id, outcomes=(rows[1],))
    create_analysis(frozen, plan_analysis(Advice, budget=5.0, serves="groups"), state="done",
                    result={"race": np.array(race.model_dump_json())})
    own = race.model_copy(update={"serves": "first", "budget": 15.0, "outcomes": (rows[2],)})
    older = create_analysis(frozen, plan_analysis(Advice, budget=15.0, serves="first"), state="done",
                            result={"race": np.array(own.model_dump_json())})
    older.write_status(older.stored_status().model_copy(update={"ticket": 1.0}))
    assert next(race.budget for race in races_of(frozen)) == 15, "a race that served the aim comes first"
    (frozen.folder / AIM_FILE).write_text("{")
    assert kept_aim(runs_folder(), "digits") is None, "a damaged choice is none"


def test_judgments_lead_back_to_the_race(frozen: Run) -> None:
    def links() -> list[str]:
        test = opened("compare", part="Judge", a=f"{frozen.id}:frozen", b=f"{frozen.id}:final")
        assert not test.exception
        return [link.proto.query_string for link in test.get("page_link") if "race" in link.proto.label]

    assert not links()
    finished(frozen, outcomes(frozen))
    (address,) = links()
    assert {"view=advice", "budget=2", "serves=groups"} <= set(address.split("&"))


def test_every_other_candidate_can_be_used_and_shows_its_figures(frozen: Run) -> None:
    finished(frozen, outcomes(frozen))
    test = opened("data", **LINK)
    assert sum(button.label == "Use it" for button in test.button) == 3
    assert "better whole groups (+0.020" in texts(test).replace("\\", "")


def test_a_race_without_a_winner_shows_the_search_of_a_later_race_and_a_button_that_opens_it(frozen: Run) -> None:
    level = Race(serves="first", budget=2, start=Setup(backbone="pixels"), run=frozen.id, outcomes=(
        outcomes(frozen)[1],), titles={})
    first = create_analysis(frozen, plan_analysis(Advice, budget=2.0, serves="first"), state="done",
                            result={"race": np.array(level.model_dump_json())})
    of = comparison("better", "better")
    found = Outcome(name="Views", setup=Setup(backbone="pixels", recipe="views"), against_best=of, against_start=of,
                    run=frozen.id, kept=True)
    finished(frozen, [found])
    first.write_status(first.stored_status().model_copy(update={"ticket": 1.0}))
    test = opened("data", **LINK | {"serves": "first"})
    assert not test.exception
    assert "Best search, found by a later race for whole groups" in texts(test).replace("\\", "")
    assert button(test, "Use the refined search (several views of each image)")
    button(test, "Show the later race").click().run()
    assert not test.exception
    assert verdict(test)[0].endswith("Best search: the refined search")
    assert test.query_params["serves"] in ("groups", ["groups"])


def test_a_race_that_runs_under_other_choices_is_named_with_a_button_that_shows_it(frozen: Run) -> None:
    race = Race(serves="first", budget=2, start=Setup(backbone="pixels"), run=frozen.id,
                outcomes=(outcomes(frozen)[1],))
    create_analysis(frozen, plan_analysis(Advice, budget=2.0, serves="first"), state="done",
                    result={"race": np.array(race.model_dump_json())})
    live = create_analysis(frozen, SPEC)
    live.write_status(Status(state="running", started=time.time() - 40, phase="judge"))
    with live.lock().acquire():
        test = opened("data", dataset="digits", view="advice", serves="first")
        assert "Stop" in [element.label for element in test.button], "it answers for both"
        test = opened("data", **LINK | {"serves": "first"})
        assert not test.exception
        assert re.search(r"A race for whole groups, in 2 minutes, is running \(0:[45]\d min\)\.", texts(test))
        button(test, "Show it").click().run()
        assert test.query_params["serves"] in ("groups", ["groups"])
        assert "Show it" not in [element.label for element in test.button], "the race is shown"


@pytest.mark.parametrize(("ago", "words"), [(40, r"25 s of 5 min, and [45]\d s since\. "), (0, r"25 s of 5 min\. ")])
def test_a_race_without_a_report_says_how_long_ago_the_last_was(ago: int, words: str, frozen: Run) -> None:
    live = create_analysis(frozen, SPEC)
    live.write_status(Status(state="running", heartbeat=time.time() - ago, phase="judge looks · 25 s of 5 min"))
    with live.lock().acquire():
        test = opened("data", **LINK)
        assert not test.exception
        assert re.search(words, str([element.proto for element in test.get("progress")]))


def test_the_gallery_says_that_a_race_runs_or_what_to_see(frozen: Run) -> None:
    def labels() -> list[str]:
        test = opened("data", dataset=LINK["dataset"])
        assert not test.exception
        return [button.label for button in test.button]

    assert "Find the best search" in labels()
    finished(frozen, outcomes(frozen))
    assert "See the best search that was found" in labels()
    live = create_analysis(frozen, plan_analysis(Advice, budget=5.0, serves="first"))
    live.write_status(Status(state="running", started=time.time(), phase="judge"))
    with live.lock().acquire():
        assert "Follow the race for the best search" in labels()


def test_own_judgments_of_the_advised_pair_stand_beside_the_advice(frozen: Run) -> None:
    rows = outcomes(frozen)[:2]
    finished(frozen, rows)
    plan = plan_analysis(Refinement, recipe="whiten")
    create_analysis(frozen, plan, state="done", result=worker.compute(frozen, plan, lambda *_: None))
    assert "Your judgments" not in "".join(element.value for element in opened("data", **LINK).markdown)
    retrieval = Retrieval(frozen)
    judging = Judging(compare(Side(retrieval, "initial"), Side(retrieval, plan.id), "all", "ten"))
    question = judging.question()
    assert question is not None
    judging.answer(question, "equal")
    test = opened("data", **LINK)
    assert not test.exception
    assert ("Your judgments of the first ten results, **the refined search (whitening)** against **the plain "
            "search**, do not decide yet "
            "(1 of 20 judged)") in texts(test)
    runs = texts(opened("runs", run=frozen.id))
    assert "Your judgments of the first ten results, **the refined search (whitening)** against" in runs


def test_runs_and_searches_show_what_the_race_said_of_them(frozen: Run) -> None:
    finished(frozen, outcomes(frozen))
    refined = create_analysis(frozen, plan_analysis(Refinement, recipe="whiten"))
    said = "The race for the best search compared the refined search (whitening) with the plain search"
    shown = texts(opened("runs", run=frozen.id)).replace("\\", "")
    assert "Whole groups: **Best search: the refined search (whitening).**" in shown
    assert "The refined search: whitening, compared with the plain search: better whole groups (" in shown
    assert said in texts(opened("refine", run=frozen.id, recipe="whiten"))
    assert race_words_of(frozen, "whiten").startswith(said)
    assert race_words_of(frozen, "diffuse") == ""
    assert race_words_of(frozen, "whiten", is_brief=True).startswith("The refined search (whitening), against the "
                                                                     "plain search, judged")
    assert race_words_of(frozen, "") == ""
    assert refined.spec().recipe == "whiten"


def test_refine_shows_the_verdict_of_the_race_and_no_estimate_beside_it(frozen: Run) -> None:
    finished(frozen, outcomes(frozen))
    test = opened("refine", run=frozen.id, recipe="whiten")
    shown = {metric.label: metric.value for metric in test.metric}
    assert (shown["First result"], shown["Whole group"]) == ("no clear difference", "better")
    assert (f"Judged against the plain search, on all {len(frozen.dataset()):,} images in the race for the best "
            "search") in texts(test)
    assert "live estimate" not in texts(test)
    other = opened("refine", run=frozen.id, recipe="whiten:k=9")
    assert "Judged on all" not in texts(other), "the race judged another recipe"
    assert "First result" not in {metric.label for metric in other.metric}


def test_refine_opens_with_the_advice_of_the_race_and_leads_back_to_it(frozen: Run) -> None:
    best, diffused = outcomes(frozen)[1], outcomes(frozen)[3]
    finished(frozen, [best.model_copy(update={"setup": Setup(backbone="pixels", recipe="average:k=7")}), diffused])
    won = opened("refine", run=frozen.id)
    assert [step for step in ("whiten", "average") if won.toggle(key=f"refine-on-{step}").value] == ["average"]
    assert "The race for the best search compared the refined search (averaging)" in texts(won)
    assert "The race for the best search advises these steps." in texts(won)
    said = [element.value for element in (*won.caption, *won.markdown)]
    assert not [words for words in said if "better whole groups" in words], "the verdict stands once, in the measures"
    (line,) = [caption for caption in won.caption if caption.value.startswith("Judged against the plain search")]
    assert "The race for the best search compared the refined search (averaging)" in line.help
    assert not [one for one in won.button if one.label == "Use the advised recipe"]
    other = opened("refine", run=frozen.id, recipe="whiten+diffuse")
    assert "The race for the best search tried these steps." in texts(other)
    button(other, "Use the advised recipe").click().run()
    assert not other.exception
    assert [step for step in ("average", "diffuse") if other.toggle(key=f"refine-on-{step}").value] == ["average"]


def test_all_pages_say_the_same_of_a_gain_that_may_be_chance_among_the_candidates(frozen: Run) -> None:
    lucky, level = Measured(verdict="better", difference=0.007, low=0.001, high=0.013), measured("cannot tell")

    def judged(recipe: str, groups: Measured) -> Outcome:
        of = Comparison(first=level, groups=groups, judges=("judge",))
        return Outcome(name=recipe, setup=Setup(backbone="pixels", recipe=recipe), against_best=of, against_start=of,
                       run=frozen.id)

    finished(frozen, [judged("whiten", lucky), *(judged(f"average:k={k}", level) for k in range(2, 13))])
    refined = create_analysis(frozen, plan_analysis(Refinement, recipe="whiten"))
    refine = opened("refine", run=frozen.id, recipe="whiten")
    said = {metric.label: metric.value for metric in refine.metric}
    assert (said["First result"], said["Whole group"]) == ("no clear difference", "no clear difference")
    st.cache_data.clear()
    raced = judged_in_race(frozen)
    assert raced is not None
    assert raced[0].verdicts(raced[1]) == ("cannot tell", "cannot tell")
    pages = {"data": texts(opened("data", **LINK)), "refine": texts(refine),
             "runs": texts(opened("runs", run=frozen.id)), "search": frame_verdict(frozen, refined.id)[0]}
    for page, words in pages.items():
        assert "no clear difference in whole groups" in words, page
        assert "better whole groups" not in words, page
    table = next(frame.value for frame in opened("data", **LINK).table if "Whole groups: verdict" in frame.value)
    assert set(table["Whole groups: verdict"]) == {"no clear difference"}


def test_a_run_is_told_the_advice_in_place_of_a_longer_search_with_a_larger_gain(frozen: Run) -> None:
    longer, level = "whiten+average:k=10,alpha=3", measured("cannot tell")
    of = {recipe: Comparison(first=level, groups=Measured(verdict="better", difference=gain, low=gain - 0.002,
                                                          high=gain + 0.002), judges=("judge",))
          for recipe, gain in ((longer, 0.031), ("whiten", 0.03))}
    rows = [Outcome(name=recipe, setup=Setup(backbone="pixels", recipe=recipe), against_best=known, against_start=known,
                    run=frozen.id) for recipe, known in of.items()]
    equal = Comparison(first=level, groups=level, judges=())
    duel = Duel(simpler=rows[1].setup, largest=rows[0].setup, comparison=equal)
    race = Race(serves="groups", budget=2, start=Setup(backbone="pixels"), run=frozen.id, outcomes=tuple(rows),
                duels=(duel,))
    create_analysis(frozen, SPEC, state="done", result={"race": np.array(race.model_dump_json())})
    assert race.best == rows[1]
    assert "compared the refined search (whitening) with the plain search" in race_words_of(frozen)
    assert "averaging" in race_words_of(frozen, longer)


def test_the_table_of_runs_names_the_advised_search_and_leads_to_it(frozen: Run) -> None:
    st.cache_data.clear()
    assert advised_search(frozen) is None
    st.cache_data.clear()
    finished(frozen, outcomes(frozen))
    row = leaderboard([frozen]).iloc[0]
    assert row["Advised search"] == "Whitening"
    assert "Whole group" not in row, "the plain search are not compared with themselves"
    assert not opened("runs", run=frozen.id).exception
    use_search(frozen, worker.keep(frozen, plan_analysis(Refinement, recipe="whiten"), lambda _share, _step: None).id)
    row = leaderboard([frozen]).iloc[0]
    assert row["Run"] == "Refined search on Digits"
    assert (row["First result"], row["Whole group"]) == ("refined: no clear difference", "refined: better")
    steps = plan_analysis(Refinement, recipe="whiten+diffuse")
    use_search(frozen, worker.keep(frozen, steps, lambda _share, _step: None).id)
    row = leaderboard([frozen]).iloc[0]
    assert row["First result"] == "refined: no verdict", "as the pages below say"


def test_a_search_that_a_race_advises_is_a_row_of_runs_with_its_verdict_date_and_button(
        frozen: Run, launched: list[Any]) -> None:
    assert "Best searches of races" not in texts(opened("runs", run=frozen.id))
    finished(frozen, outcomes(frozen))
    st.cache_data.clear()
    test = opened("runs", run=frozen.id)
    named = "**The refined search (whitening)** on Digits"
    row = next(element.value for element in test.markdown if named in element.value)
    assert ": no clear difference in first results, better whole groups" in row
    assert "by a race for whole groups that ended" in row
    assert [button.label for button in test.button if (button.key or "").startswith("runs-advised-")] == [
        "Search with it", "Judge it"]
    test.button(key="runs-advised-use-0").click().run()
    assert test.query_params["view"] in ("advice", ["advice"]), "Data shows how the search is prepared"
    assert [task.spec().recipe for task in launched] == ["whiten"]


def test_an_advised_search_is_compared_with_the_run_that_is_ticked(frozen: Run, launched: list[Any]) -> None:
    finished(frozen, outcomes(frozen))
    rival = worked(runs_folder(), method="pca", split="all", fields={"dimension": 4})
    st.cache_data.clear()
    test = opened("runs", run=rival.id, **{"with": frozen.id})
    test.button(key="runs-advised-compare-0").click().run()
    assert not test.exception
    assert test.session_state["advice-used"][0] == f"{rival.id}:final"
    plan = launched[0].spec().id
    assert judge_link(f"{rival.id}:final", frozen.id, plan)["runs"] == f"{rival.id}.{frozen.id}"


def test_the_line_of_a_run_names_what_its_button_opens(frozen: Run, launched: list[Any]) -> None:
    trained = without_labels(worked(runs_folder(), method="pca", split="all", fields={"dimension": 4}))
    better, unclear = comparison("cannot tell", "better"), comparison("cannot tell", "cannot tell")
    finished(frozen, [Outcome(name="PCA", setup=Setup(backbone="pixels", method="pca", recipe="whiten"),
                              against_best=better, against_start=better, run=trained.id),
                      Outcome(name="NCE", setup=Setup(backbone="pixels", method="nce"),
                              against_best=unclear, against_start=unclear, run="not-advised")])
    test = opened("runs", run=trained.id)
    shown = texts(test).replace("\\", "")
    assert ("A race judged this training together with further steps. The trained search (pca, then whitening), "
            "against the plain" in shown)
    assert "Not judged alone yet: a race judged it with further steps only." in shown
    table = leaderboard([trained, worked(runs_folder())])
    assert table[["First result", "Whole group"]].to_numpy().tolist()[0] == [
        "no clear difference, with steps", "better, with steps"]
    suggestion = concluding.suggested_by_race(frozen.dataset(), runs_folder())
    assert suggestion is not None
    judged = suggestion.judged_of("pca")
    assert judged is not None
    assert suggestion.words_for(judged) == (
        "In the race on these images, the trained search (pca, then whitening): no clear difference in first "
        "results, better whole groups.")
    assert suggestion.judged_of("plm") is None
    test.button(key=f"with-steps-use-{trained.id}").click().run()
    assert [task.spec().recipe for task in launched] == ["whiten"]
    lab = opened("train", dataset=frozen.spec().dataset, method="nce")
    assert "The race has trained it already" in texts(lab)
    again = next(link.proto for link in lab.get("page_link") if link.proto.label == "Settings of the race")
    assert again.query_string == "like=not-advised"


def test_two_runs_of_one_race_are_compared_as_the_race_judged_them(
        frozen: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rival, other = (worked(runs_folder(), method="pca", split="all", fields={"dimension": width}) for width in (4, 8))
    lucky, level = Measured(verdict="better", difference=0.007, low=0.001, high=0.013), measured("cannot tell")

    def judged(run: Run, first: Measured, groups: Measured) -> Outcome:
        of = Comparison(first=first, groups=groups, judges=("judge",))
        return Outcome(name=run.id, setup=Setup(backbone="pixels", method=run.id), against_best=of, against_start=of,
                       run=run.id)

    luckily = Interval(0.5, 0.507, 0.003)  # certain alone, but not among 50
    monkeypatch.setattr("pages.parts.compare.opinions._against", lambda *_: Opinions(
        "rival", {"final": {"judge": Opinion(luckily, luckily)}}, {"judge": 1.0}, 10))
    alone = judged_pair(rival, frozen)
    assert alone is not None
    assert alone.verdicts == ("cannot tell", "cannot tell"), "without a race, a verdict is as strict"
    many = [judged(frozen, level, level).model_copy(update={"setup": Setup(backbone="pixels", recipe=f"average:k={k}")})
            for k in range(2, 12)]
    finished(frozen, [judged(rival, lucky, measured("better")), judged(other, level, measured("worse")), *many])
    for pair, verdicts in ((judged_pair(rival, frozen), ("cannot tell", "better")),
                           (judged_pair(frozen, rival), ("cannot tell", "worse")),
                           (judged_pair(frozen, other), ("cannot tell", "better")),
                           (judged_pair(rival, other), ("cannot tell", "cannot tell"))):
        assert pair is not None
        assert pair.verdicts == verdicts
    for run in (rival, frozen):
        without_labels(run)
    shown = texts(opened("compare", runs=f"{rival.id}.{frozen.id}", part="Settings"))
    assert "against the plain search**. First result: no clear difference. Whole group: better." in shown
    assert "First result: better" not in shown


def test_a_chosen_search_that_is_prepared_leaves_the_verdict_in_view_and_says_what_opens(
        frozen: Run, launched: list[Any]) -> None:
    finished(frozen, outcomes(frozen)[:2])
    test = opened("data", **LINK)
    button(test, "Confirm by judgments").click().run()
    (refinement,) = launched
    with refinement.lock().acquire():
        now = time.time()
        refinement.write_status(Status(state="running", phase="searching", share=0.5, phase_started=now - 8,
                                       heartbeat=now))
        test.run()
        assert not test.exception
        assert verdict(test)[0] == ":green[:material/trophy:] Best search: the refined search"
        (bar,) = [element.proto.text for element in test.get("progress")]
        assert bar == ("Judge opens by itself as soon as all images are prepared for this search (searching, about 8 s "
                       "left).")
        assert "Search with it" not in [element.label for element in test.button], "one search at a time"
        other = create_analysis(frozen, plan_analysis(kind="umap"))
        other.write_status(Status(state="running", share=0.5, phase_started=now - 40, heartbeat=now))
        refinement.write_status(Status(state="waiting"))
        with other.lock().acquire():
            test.run()
        (bar,) = [element.proto.text for element in test.get("progress")]
        assert "waiting for the map of " in bar
        assert re.search(r", about (39|40|41) s left\)\.$", bar)
        button(test, "Stay here").click().run()
        assert button(test, "Search with it")
        assert test.session_state["page"] == "data"


def test_a_race_without_a_winner_tells_of_the_other_aim(frozen: Run) -> None:
    rows = outcomes(frozen)
    race = Race(serves="first", budget=5, start=Setup(backbone="pixels"), run=frozen.id, outcomes=tuple(rows[:3]))
    create_analysis(frozen, plan_analysis(Advice, budget=5.0, serves="first"), state="done",
                    result={"race": np.array(race.model_dump_json())})
    finished(frozen, rows)
    test = opened("data", **LINK | {"serves": "first", "budget": "5"})
    words = texts(test).replace("\\", "")
    assert "For whole groups, a race of its own advises the refined search (whitening)" in words
    look_for(test, "groups")
    assert not test.exception
    assert verdict(test)[0] == ":green[:material/trophy:] Best search: the refined search"


def test_runs_tells_of_both_races_and_links_to_each(frozen: Run) -> None:
    finished(frozen, outcomes(frozen))
    first = SPEC.build_kind().model_copy(update={"serves": "first"})
    lost = [outcome for outcome in outcomes(frozen) if outcome.against_start]
    race = Race(serves="first", budget=2, start=Setup(backbone="pixels"), run=frozen.id, outcomes=tuple(
        outcome.model_copy(update={"against_start": Comparison(
            first=measured("cannot tell"), groups=measured("better"), judges=("judge",))}) for outcome in lost))
    create_analysis(frozen, plan_analysis(type(first), budget=2.0, serves="first"), state="done",
                    result={"race": np.array(race.model_dump_json())})
    test = opened("runs", run=frozen.id)
    shown = texts(test).replace("\\", "")
    assert "First results: **Nothing is better: keep the plain search.**" in shown
    assert shown.index("First results: **Nothing is better") < shown.index("Whole groups: **Best search: the "
                       "refined search (whitening).**")
    links = [link.proto.query_string for link in test.get("page_link") if link.proto.label == "Details"]
    assert ["serves=first" in link for link in links] == [True, False]


def test_a_recipe_that_gains_clearly_less_than_the_advice_says_so() -> None:
    def of(difference: float, error: float = 0.002) -> Measured:
        return Measured(verdict="better", difference=difference, low=difference - error, high=difference + error)

    assert compared_words(of(0.01), of(0.02), "whitening", "groups") == (
        "This recipe gains clearly less than the advised recipe (whitening): in whole groups, +0.010 against +0.020.")
    assert compared_words(of(0.018), of(0.02), "whitening", "first").endswith(
        "in first results, +0.018 against +0.020, but the difference may be chance.")
    assert compared_words(of(0.03), of(0.02), "whitening", "groups") == ""


def test_refine_compares_a_recipe_with_the_advice_of_its_race(frozen: Run) -> None:
    far = Comparison(first=measured("cannot tell"), judges=("judge",), groups=Measured(
        verdict="better", difference=0.001, low=0.0009, high=0.0011), changed=0.5, better=0.26, worse=0.24)
    little = Outcome(name="little", setup=Setup(backbone="pixels", recipe="average:k=9"), run=frozen.id,
                     against_best=far, against_start=far)
    finished(frozen, [outcomes(frozen)[1], little])
    test = opened("refine", run=frozen.id, recipe="average:k=9")
    assert "gains clearly less than the advised recipe (whitening): in whole groups, +0.001 against" in texts(test)
    beside = next(metric.delta for metric in test.metric if metric.label == "Whole group")
    assert beside.startswith("+0.001 · the advised recipe: +")
    assert "of 100 searches: 26 better, 24 worse" in [metric.delta.split(" · ")[0] for metric in test.metric]
    assert "gains clearly less" not in texts(opened("refine", run=frozen.id, recipe="whiten"))


def test_a_run_that_its_race_did_not_judge_is_as_strictly_judged_on_every_page(frozen: Run) -> None:
    trained = without_labels(worked(runs_folder(), method="pca", split="all", fields={"dimension": 4}))
    without_labels(frozen)
    luckily, surely = Interval(0.5, 0.507, 0.003), Interval(0.5, 0.53, 0.003)
    keep_opinion(trained, luckily, surely)
    alone = said_of_run(trained, opinion_of(trained))
    assert alone is not None
    assert (alone.verdicts, alone.note) == (("cannot tell", "better"), ""), "without a race it is as strict"
    level = comparison("cannot tell", "cannot tell")
    rows = [Outcome(name=f"{k}", setup=Setup(backbone="pixels", recipe=f"average:k={k}"), against_best=level,
                    against_start=level, run=frozen.id) for k in range(2, 12)]
    rows.append(Outcome(name="PCA", setup=Setup(backbone="pixels", method="pca", recipe="whiten"), against_best=level,
                        against_start=level, run=trained.id))
    finished(frozen, rows)
    st.cache_data.clear()
    table = leaderboard([trained, frozen])
    assert table[["First result", "Whole group"]].to_numpy().tolist() == [
        ["no clear difference", "better"], ["reference", "reference"]]
    note = ("No race judged {} alone, only as part of the trained search (pca, then whitening), so what Best search "
            "says stays.")
    pages = {"runs": texts(opened("runs", run=trained.id)), "search": frame_verdict(trained, "final")[0],
             "compare": texts(opened("compare", runs=f"{trained.id}.{frozen.id}", part="Settings"))}
    for page, words in pages.items():
        which = "the training with PCA" if page == "compare" else "this training"  # of several it is named
        assert note.format(which) in words.replace("\\", ""), page
        assert "better first results" not in words, page
        assert "First result: better" not in words, page
    assert "First result: no clear difference. Whole group: better." in pages["runs"]
    assert "compared the trained search (pca, then" not in pages["runs"], "the button opens the embedding alone"
    assert said_lines(trained)[0].startswith("First result: no clear difference. Whole group: better.")


def test_a_training_whose_step_a_race_judged_as_a_refinement_is_not_called_unjudged(frozen: Run) -> None:
    whitened = worked(runs_folder(), method="whiten", split="all")
    reduced = worked(runs_folder(), method="pca", split="all", fields={"dimension": 16})
    finished(frozen, outcomes(frozen))
    assert unraced_words(whitened) == (
        "The race judged the same step as a refinement of the features, so what Best search says stays.")
    assert unraced_words(reduced) == "No race judged this training, so what Best search says stays."


@pytest.mark.parametrize(("sees", "says"), [
    ("whitened", "Keep the best search: compared with the best search (whitening), judges see worse first results "
                 "and whole groups in this training alone"),
    ("trained", "Better than the best search; confirm it by judgments: compared with the best search (whitening), "
                "judges see better first results and whole groups in this training alone")])
def test_a_run_that_no_race_judged_is_compared_with_the_search_that_is_advised(
        frozen: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sees: str, says: str) -> None:
    """The judge has the eyes of one of both, so that it finds the results of the other one worse."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))  # encoders that other tests ran would be judges, too
    trained, dataset = without_labels(worked(runs_folder(), method="pca", split="all",
                                             fields={"dimension": 4})), frozen.dataset()
    without_labels(frozen)
    keep_opinion(trained, Interval(0.5, 0.53, 0.003), Interval(0.5, 0.53, 0.003))
    assert best_words(trained, dataset) == "", "no race has finished"
    finished(frozen, outcomes(frozen))
    assert best_words(trained, dataset) == "", "the search was not used yet"
    worker.keep(frozen, plan_analysis(Refinement, recipe="whiten"), lambda _share, _step: None)
    frames = Retrieval(frozen if sees == "whitened" else trained, dataset).frames
    eyes = frames.frame(plan_analysis(Refinement, recipe="whiten").id if sees == "whitened" else "final")
    path = features_path(dataset, choose_spec("squeezenet", dataset.native_size, dataset.gray))
    path.parent.mkdir(parents=True, exist_ok=True)
    seen = np.asarray(eyes.take(np.arange(len(dataset))))
    blur = np.random.default_rng(0).normal(size=seen.shape)  # a judge with the very features would be refused
    np.save(path, (seen + 0.05 * seen.std() * blur).astype(np.float32))
    assert best_words(trained, dataset) == says
    use_search(frozen, plan_analysis(Refinement, recipe="whiten").id)
    assert best_words(trained, dataset) == says.replace("the best search", "your search")
    lab = opened("train", dataset="digits", live=trained.id)
    assert says.partition(":")[0].replace("the best search", "your search") in texts(lab)
    assert "Compared with the plain search: " in texts(lab), "each verdict names what it compares with"
    uses, keeps = lab.button(key="lab-use").proto.type, [each for each in lab.button if each.key == "lab-keep"]
    if sees == "whitened":
        assert (uses, keeps) == ("tertiary", []), "the search was chosen after the training, so it is kept already"
        assert "You kept your search." in texts(lab)
    else:
        assert (uses, [each.proto.type for each in keeps]) == ("secondary", ["tertiary"])
    (link,) = [link for link in lab.get("page_link") if link.label == "Compare both"]
    assert f"a={frozen.id}%3Arefine" in link.proto.query_string
    assert f"b={trained.id}%3Afinal" in link.proto.query_string
    st.cache_data.clear()
    beside = opened("compare", runs=f"{frozen.id}.{trained.id}", part="Settings")
    assert not beside.exception
    assert (f"{says.partition(':')[0].replace('the best search', 'your search')}**: compared with your search "
            "(whitening)") in texts(beside).replace("\\", "")
    assert "No race judged" not in texts(beside)
    use_search(frozen, "final")
    assert "compared with your search (the plain search)" in best_words(trained, dataset)
    lab.button(key="lab-use").click().run()
    assert used_search([frozen, trained]) == (trained, "final")
    assert best_words(trained, dataset) == "", "it is the search in use"
    (trained.folder / "used.json").unlink()
    (frozen.folder / "used.json").unlink()
    st.cache_data.clear()
    shown = texts(opened("runs", run=trained.id))
    assert says.partition(":")[0] in shown
    assert "No race judged this training" not in shown
    assert says in said_lines(trained)[0]


def test_a_training_is_judged_with_the_steps_of_the_search_in_use(
        frozen: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge has the eyes of the training with these steps, so that it finds the results of the search worse."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))  # encoders that other tests ran would be judges, too
    trained, dataset = without_labels(worked(runs_folder(), method="pca", split="all",
                                             fields={"dimension": 4})), frozen.dataset()
    without_labels(frozen)
    keep_opinion(trained, Interval(0.5, 0.53, 0.003), Interval(0.5, 0.53, 0.003))
    steps = plan_analysis(Refinement, recipe="whiten")
    worker.keep(frozen, steps, lambda _share, _step: None)
    assert steps_in_use(trained) is None, "no search was chosen"
    use_search(frozen, steps.id)
    assert steps_in_use(trained) == steps
    assert planned(trained)[1] == steps, "it follows the second opinion, before the slower maps"
    assert steps_in_use(frozen) is None, "it is no training"
    worker.keep(trained, steps, lambda _share, _step: None)
    eyes = Retrieval(trained, dataset).frames.frame(steps.id)
    path = features_path(dataset, choose_spec("squeezenet", dataset.native_size, dataset.gray))
    path.parent.mkdir(parents=True, exist_ok=True)
    seen = np.asarray(eyes.take(np.arange(len(dataset))))
    blur = np.random.default_rng(0).normal(size=seen.shape)  # a judge with the very features would be refused
    np.save(path, (seen + 0.05 * seen.std() * blur).astype(np.float32))
    assert best_words(trained, dataset) == (
        "Better than your search; confirm it by judgments: compared with your search (whitening), judges see better "
        "first results and whole groups in this training with the same steps")
    shutil.rmtree(analysis_at(trained, OF_RUN).folder)
    keep_opinion(trained, Interval(0.5, 0.5, 0.003), Interval(0.5, 0.53, 0.003))
    assert best_words(trained, dataset).startswith("As good as your search for first results, and better for")
    shutil.rmtree(analysis_at(trained, OF_RUN).folder)
    keep_opinion(trained, Interval(0.5, 0.5, 0.003), Interval(0.5, 0.5, 0.003))
    assert best_words(trained, dataset) == (
        "Keep your search, unless your eyes see more: compared with your search (whitening), judges see no clear "
        "difference in first results and whole groups in this training with the same steps. What else they see as "
        "better does not count, as the training alone is not better than the plain search")
    shutil.rmtree(analysis_at(trained, OF_RUN).folder)
    keep_opinion(trained, Interval(0.5, 0.53, 0.003), Interval(0.5, 0.53, 0.003))
    lab = opened("train", dataset="digits", live=trained.id)
    (link,) = [link for link in lab.get("page_link") if link.label == "Compare both"]
    assert f"b={trained.id}%3A{steps.id}" in link.proto.query_string, "what was judged is compared"
    with monkeypatch.context() as patch:  # judges see no difference at all: neither search is recommended
        patch.setattr("udml_core.work.jobs.verdicts.rival_verdicts", lambda *_: Verdicts("cannot tell", "cannot tell"))
        st.cache_data.clear()
        open_lab = opened("train", dataset="digits", live=trained.id)
        assert "Your eyes decide between this training and your search" in texts(open_lab)
        assert not [link for link in open_lab.get("page_link") if link.label == "Compare both"]
        framed = [button.label for button in open_lab.button if button.key in ("lab-compare", "lab-keep", "lab-use")
                  and button.proto.type == "secondary"]
        assert framed == ["Compare both"]
        open_lab.button(key="lab-compare").click().run()
        assert open_lab.query_params["b"] in (f"{trained.id}:{steps.id}", [f"{trained.id}:{steps.id}"])
        st.cache_data.clear()
    lab.button(key="lab-use").click().run()
    assert used_search([frozen, trained]) == (trained, steps.id), "and used"
    use_search(frozen, "final")
    assert steps_in_use(trained) is None, "the plain search has no steps"
    assert "in this training alone" in best_words(trained, dataset)


def test_the_first_step_of_the_search_in_use_is_not_judged_against_that_search(frozen: Run) -> None:
    fields = {"dimension": 4}
    raced = worked(runs_folder(), method="pca", split="all", select="last", fields=fields)
    again = without_labels(worked(runs_folder(), method="pca", split="all", select="last", fields=fields))
    other = worked(runs_folder(), method="pca", split="all", select="last", fields={"dimension": 5})
    assert frozen.spec().fingerprint == raced.spec().fingerprint
    refinement = worker.keep(raced, plan_analysis(Refinement, recipe="whiten"), lambda _share, _step: None)
    use_search(raced, refinement.id)
    dataset, says = raced.dataset(), "Part of your search: your search begins with this training and adds whitening"
    assert best_words(raced, dataset) == best_words(again, dataset) == says
    assert "Part of" not in best_words(other, dataset)
    st.cache_data.clear()
    lab = opened("train", dataset="digits", live=again.id)
    assert "**Part of your search**: your search begins with this training and adds whitening." in texts(lab)
    assert "Keep your search" not in texts(lab)
    assert lab.button(key="lab-use").label == "Use this training"
    assert (lab.button(key="lab-keep").label, lab.button(key="lab-keep").proto.type) == ("Keep my search", "secondary")
    lab.button(key="lab-keep").click().run()
    assert not lab.exception
    assert lab.session_state["page"] == "retrieval"
    assert lab.query_params["run"] in (raced.id, [raced.id])


def test_the_choice_of_compared_runs_names_the_refinement_that_is_in_view(frozen: Run) -> None:
    trained = without_labels(worked(runs_folder(), method="pca", split="all", fields={"dimension": 4}))
    without_labels(frozen)
    refinement = worker.keep(frozen, plan_analysis(Refinement, recipe="whiten"), lambda _share, _step: None)
    link = {"runs": f"{frozen.id}.{trained.id}", "a": f"{frozen.id}:{refinement.id}", "b": f"{trained.id}:final"}
    test = opened("compare", part="Where they differ", **link)
    assert not test.exception
    (box,) = [box for box in test.multiselect if box.label == "Runs to compare"]
    assert "Whitening" in box.options
    assert box.value == [frozen.id, trained.id]
    test.segmented_control(key="compare-part").set_value("Settings").run()
    (box,) = [box for box in test.multiselect if box.label == "Runs to compare"]
    assert "Whitening" in box.options
    assert box.value == [frozen.id, trained.id]
    other = worked(runs_folder(), method="pca", split="all", fields={"dimension": 8})
    box.set_value([frozen.id, other.id]).run()
    test.run()
    (box,) = [box for box in test.multiselect if box.label == "Runs to compare"]
    assert "Whitening" not in box.options, "other runs are chosen"


def test_two_searches_with_their_steps_have_one_verdict_on_every_part(frozen: Run, monkeypatch: pytest.MonkeyPatch
                                                                       ) -> None:
    trained = without_labels(worked(runs_folder(), method="pca", split="all", fields={"dimension": 4}))
    without_labels(frozen)
    first, second = (worker.keep(run, plan_analysis(Refinement, recipe=recipe), lambda _share, _step: None).id
                     for run, recipe in ((trained, "average:k=4"), (frozen, "whiten")))
    better, compared = Interval(0.5, 0.6, 0.003), []

    def against(run: Run, rival: Run, frame: str = "final", own: str = "final", _tickets: Any = ()) -> Opinions:
        compared.append((run.id, own, rival.id, frame))
        return Opinions(rival.id, {"final": {"squeezenet": Opinion(better, better)}}, {"squeezenet": 1.0}, 10)

    monkeypatch.setattr("pages.parts.compare.opinions._against", against)
    link = {"runs": f"{frozen.id}.{trained.id}", "a": f"{trained.id}:{first}", "b": f"{frozen.id}:{second}"}
    says = ", then averaging with 4 neighbors against Whitening**. First result: better. Whole group: better."
    for part in ("Where they differ", "Same query", "Settings", "Curves", "Maps"):
        test = opened("compare", part=part, **link)
        assert not test.exception
        shown = texts(test).replace("\\", "")
        assert shown.count(says) == 1, part
        assert "This run" not in shown
        assert "against the plain search" not in shown, "another comparison"
        assert ("This part shows what was trained" in shown) == (part in ("Curves", "Maps"))
    assert set(compared) == {(trained.id, first, frozen.id, second)}
    settings = opened("compare", part="Settings", **link).dataframe[0].value
    assert [row.tolist()[2:] for _, row in settings.iterrows() if row["Setting"] == "Steps after training"] == [
        ["Whitening", "Averaging with 4 neighbors"]]
    alone = opened("compare", part="Curves", **link | {"runs": trained.id})
    assert says not in texts(alone).replace("\\", "")


@pytest.mark.parametrize(("first", "groups", "serves", "says"), [
    ("cannot tell", "worse", "first", "Keep the best search, unless your eyes see more"),
    ("cannot tell", "better", "first", "As good as the best search for first results, and better for whole groups"),
    ("better", "cannot tell", "groups", "As good as the best search for whole groups, and better for first results"),
    ("worse", "better", "first", "Keep the best search"),
    ("worse", "better", "groups", "Better than the best search; confirm it by judgments")])
def test_what_follows_beside_the_best_search_depends_on_what_its_race_serves(
        first: Any, groups: Any, serves: Any, says: str) -> None:
    assert beside_best(serves, Verdicts(first, groups)) == says


@pytest.mark.parametrize("page", ["retrieval", "explore", "refine"])
def test_a_page_of_a_trained_run_offers_the_search_that_is_advised_in_its_place(frozen: Run, page: str) -> None:
    trained = worked(runs_folder(), method="pca", split="all", fields={"dimension": 4})
    label = "Use the best search for whole groups"
    assert label not in [button.label for button in opened(page, run=trained.id).button], "no race has finished"
    finished(frozen, outcomes(frozen))
    st.cache_data.clear()
    test = opened(page, run=trained.id)
    offered = button(test, label)
    assert offered.help.startswith("Switches from this run to the refined search (whitening). ")
    offered.click().run()
    assert not test.exception
    assert test.session_state["advice-used"][1] == frozen.id, "the search of the frozen features follows"
    own = opened(page, run=frozen.id)
    assert "Switches from this run" not in "".join(button.help or "" for button in own.button), "it is of this run"


def test_search_offers_the_advised_search_until_it_is_in_view(frozen: Run) -> None:
    finished(frozen, outcomes(frozen))
    st.cache_data.clear()
    test = opened("retrieval", run=frozen.id, add="3")
    label = "Show the search advised for whole groups"
    assert "What a race for whole groups advises: whitening." in button(test, label).help
    button(test, label).click().run()
    assert not test.exception
    assert test.toggle(key="search-whiten").value
    assert label not in [button.label for button in test.button]
    assert "The refined search (whitening), against the plain search, judged without labels" in texts(test)
    test.toggle(key="search-diffuse").set_value(True).run()
    assert label in [button.label for button in test.button], "a visible way back"


def test_search_begins_with_the_last_choice_and_says_how_it_stands_beside_the_best_search(
        frozen: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    finished(frozen, outcomes(frozen))
    refined = worker.keep(frozen, plan_analysis(Refinement, recipe="whiten"), lambda _share, _step: None).id
    use_search(frozen, refined)
    trained = worked(runs_folder(), method="pca", split="all", fields={"dimension": 4})
    use_search(trained, "final")
    said = Verdicts("worse", "cannot tell")
    monkeypatch.setattr("udml_core.work.jobs.verdicts.rival_verdicts", lambda *_: said)
    st.cache_data.clear()
    test = opened("explore", run=frozen.id)
    test.query_params.pop("run")
    switched(test, "retrieval")
    assert test.query_params["run"] in (trained.id, [trained.id]), "the plain search gives way"
    assert test.multiselect[0].value == ["final"]
    assert ("Compared with the best search (whitening), judges see worse first results, no clear difference in whole "
            "groups.") in texts(test).replace("\\", "")
    earlier = opened("retrieval", run=frozen.id)
    assert earlier.multiselect[0].value == ["final"], "not the refinement that was chosen before"
    for run in (trained, frozen):
        earlier.selectbox(key="choose-run").select(run.id).run()
    switched(earlier, "learn")
    earlier.query_params.pop("run", None)
    switched(earlier, "retrieval")
    assert earlier.query_params["run"] in (frozen.id, [frozen.id]), "a choice in the sidebar stays"


def test_the_advised_search_takes_the_place_of_the_search_in_use(frozen: Run) -> None:
    finished(frozen, outcomes(frozen))
    st.cache_data.clear()
    kept = worker.keep(frozen, plan_analysis(Refinement, recipe="average:k=4"), lambda _share, _step: None).id
    use_search(frozen, kept)
    test = opened("retrieval", run=frozen.id, add="3")
    assert test.multiselect[0].value == [kept]
    button(test, "Show the search advised for whole groups").click().run()
    assert test.multiselect[0].value == ["final"], "the plain search stands beside it, not the one that it replaces"
    assert (test.toggle(key="search-whiten").value, test.toggle(key="search-average").value) == (True, False)
    button(test, "Search with it").click().run()
    assert test.multiselect[0].value == [kept]
    assert test.query_params["add"] in ("3", ["3"])
    assert not test.toggle(key="search-whiten").value, "its own steps are shown"


def test_a_search_that_is_advised_for_whole_groups_is_judged_by_whole_groups(frozen: Run) -> None:
    finished(frozen, outcomes(frozen))
    st.cache_data.clear()
    refined = {recipe: worker.keep(frozen, plan_analysis(Refinement, recipe=recipe), lambda _share, _step: None).id
               for recipe in ("whiten", "average:k=4")}
    assert results_of(frozen, refined["whiten"]) == {"results": "group"}
    assert results_of(frozen, refined["average:k=4"]) == {}, "another search"
    assert results_of(frozen, "final") == {}


def test_compare_says_of_two_embeddings_of_a_run_what_the_race_said(frozen: Run) -> None:
    finished(frozen, outcomes(frozen))
    refined = {recipe: worker.keep(frozen, plan_analysis(Refinement, recipe=recipe), lambda _share, _step: None).id
               for recipe in ("whiten", "average:k=4")}

    def shown(recipe: str) -> str:
        test = opened("compare", part="Where they differ", runs=frozen.id, a=f"{frozen.id}:final",
                      b=f"{frozen.id}:{refined[recipe]}")
        assert not test.exception
        return texts(test).replace("\\", "")

    st.cache_data.clear()
    assert ("Over all images: The refined search (whitening), against the plain search, judged without labels: no "
            "clear difference in "
            "first results, better whole groups.") in shown("whiten")
    assert "No race judged averaging with 4 neighbors, and it has no second opinion yet." in shown("average:k=4")


def test_the_caption_of_the_chart_and_the_table_mean_the_same_by_kept(frozen: Run) -> None:
    race = finished(frozen, outcomes(frozen)).result_of(Advice)
    assert race_table(race)["Kept for the next steps"].tolist().count("yes") == sum(row.kept for row in race.judged) > 0
    assert kept_words(race) == (
        "A candidate that beat the best before it in whole groups is kept: later candidates add a step to it. This "
        "only chooses what is tried; the verdict is stricter.")
    none = race.model_copy(update={"outcomes": tuple(
        row.model_copy(update={"kept": False}) for row in race.outcomes)})
    assert set(race_table(none)["Kept for the next steps"]) == {"no"}
    assert kept_words(none) == (
        "The race ended before a later candidate could add a step to what beat the plain search.")
    assert kept_words(none, is_live=True) == "The next candidates add a step to what beat the plain search."
    assert kept_words(none.model_copy(update={"outcomes": none.outcomes[:1]})) == (
        "No candidate was kept: none beat the plain search in whole groups.")


def test_the_size_of_a_whole_group_stands_at_its_verdict(frozen: Run) -> None:
    race = Race(serves="groups", budget=2, start=Setup(backbone="pixels"), run=frozen.id, group=25, near=30,
                outcomes=tuple(outcomes(frozen)))
    create_analysis(frozen, SPEC, state="done", result={"race": np.array(race.model_dump_json())})
    page = opened("data", **LINK)
    helps = [caption.help for caption in page.caption if "95 % intervals" in caption.value]
    (words,) = helps
    assert words.endswith(
        "A judge looks at the first 25 results: it sees about 25 images near a typical image. Where you judge by eye, "
        "you see a few of those in which the two searches differ.")
    said = next(element.value for element in page.markdown if "A judge compares looks only" in element.value)
    assert "17 fewer to 14 more of 100 groups were better than judges said" in said
    found = opened("retrieval", run=frozen.id, add="3")
    button(found, "Show a group (a guess: 30)").click().run()
    assert not found.exception
    assert found.slider(key="k").value == 30
    assert not any("Show a group" in each.label for each in found.button), "they are shown"
    keep_aim(frozen, "first")
    found = opened("retrieval", run=frozen.id, add="3")
    assert not any("Show a group" in each.label for each in found.button), "one match needs no group"


def test_refine_and_data_say_the_same_of_a_simpler_search_that_a_direct_comparison_rejects(frozen: Run) -> None:
    level = measured("cannot tell")

    def judged(recipe: str, gain: float) -> Outcome:
        of = Comparison(first=level, judges=("judge",), groups=Measured(
            verdict="better", difference=gain, low=gain - 0.02, high=gain + 0.02))
        return Outcome(name=recipe, setup=Setup(backbone="pixels", recipe=recipe), against_best=of, against_start=of,
                       run=frozen.id)

    simple, best, largest = judged("whiten", 0.04), judged("average:k=4", 0.05), judged("whiten+average:k=4", 0.06)
    duels = (Duel(simpler=simple.setup, largest=largest.setup, comparison=Comparison(
        first=level, groups=measured("better"), judges=("judge",))), Duel(
            simpler=best.setup, largest=largest.setup, comparison=Comparison(first=level, groups=level, judges=())))
    race = Race(serves="groups", budget=2, start=Setup(backbone="pixels"), run=frozen.id,
                outcomes=(simple, best, largest), duels=duels)
    assert race.best == best
    less = less_words(Raced(race, simple))
    assert less.endswith("+0.040 against +0.050, and in a direct comparison less than the largest gain of the "
                         "race (whitening, then averaging with 4 neighbors).")
    assert "Another refined search (whitening) is simpler still, but gains" in " ".join(tell_advice(race).details)
    assert less_words(Raced(race.model_copy(update={"duels": duels[1:]}), simple)).endswith("may be chance.")


def test_home_searches_with_what_a_race_found(frozen: Run, launched: list[Any]) -> None:
    finished(frozen, outcomes(frozen))
    home = opened("home")
    assert home.button(key="home-use").proto.type == "primary"
    home.button(key="home-use").click().run()
    assert not home.exception
    assert [task.spec().recipe for task in launched] == ["whiten"], "its images are prepared, then Search opens"


def test_the_button_of_a_simpler_search_says_what_takes_the_place_of_what(frozen: Run) -> None:
    level = measured("cannot tell")

    def judged(gain: float, **setup: str) -> Outcome:
        of = Comparison(first=level, judges=("judge",), groups=Measured(
            verdict="better", difference=gain, low=gain - 0.001, high=gain + 0.001))
        return Outcome(name="x", setup=Setup(backbone="pixels", **setup), against_best=of, against_start=of,
                       run=frozen.id, kept=True)

    finished(frozen, [judged(0.02, recipe="whiten"), judged(0.08, method="pca")])
    test = opened("data", **LINK)
    assert not test.exception
    simpler = test.button(key="advice-simpler")
    assert simpler.label == "Use it instead"
    assert simpler.help.startswith("Changes your search to the refined search (whitening), in place of the trained "
                                   "search.")
    use_search(frozen, worker.keep(frozen, plan_analysis(Refinement, recipe="whiten"), lambda _share, _step: None).id)
    test = opened("data", **LINK)
    assert "Use it instead" not in [each.label for each in test.button], "the user searches with it already"
    assert "the best is your search" in texts(test)


def test_a_race_without_a_winner_asks_for_no_judgments_once_they_say_that_they_can_stop(
        frozen: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    finished(frozen, [row for row in outcomes(frozen) if row.name == "Averaging"] + [Outcome(
        name="Whitening", setup=Setup(backbone="pixels", recipe="whiten"), run=frozen.id,
        against_best=comparison("cannot tell", "cannot tell"), against_start=Comparison(
            first=measured("cannot tell"), judges=("judge",), groups=Measured(
                verdict="cannot tell", difference=0.01, low=-0.01, high=0.03)))])
    before = texts(opened("data", **LINK)).replace("\\", "")
    assert "Keep the plain search; to decide it, judge the largest gain yourself: the refined search (" in before
    monkeypatch.setattr(concluding, "stored_judgments", lambda *_: Judgments("level", 14, score="14 equal"))
    shown = texts(opened("data", **LINK)).replace("\\", "")
    assert "Either search will do: your 14 judgments cannot tell which is better" in shown
    assert "The judges of the race were not sure of the refined search (whitening), either." in shown
    assert "To decide it" not in shown


def test_judgments_of_the_other_aim_stand_beside_what_the_race_says_of_it(frozen: Run) -> None:
    """The race serves groups, and first results were judged: they show, and decide nothing here."""
    finished(frozen, [row for row in outcomes(frozen) if row.name == "Whitening"])
    plan = plan_analysis(Refinement, recipe="whiten")
    create_analysis(frozen, plan, state="done", result=worker.compute(frozen, plan, lambda *_: None))
    before = verdict(data := opened("data", **LINK))[0]
    assert "first results, **the refined search" not in texts(data)
    retrieval = Retrieval(frozen)
    judging = Judging(compare(Side(retrieval, "frozen"), Side(retrieval, plan.id), "all", "first"))
    question = judging.question()
    assert question is not None
    judging.answer(question, "left")
    data = opened("data", **LINK)
    assert ("Your judgments of first results, **the refined search (whitening)** against **the plain search**, do "
            "not decide yet "
            "(1 of 20 judged).") in texts(data)
    assert verdict(data)[0] == before


def label_of_next(test: AppTest) -> str:
    """Return the label of the main action of an ended race."""
    return next(button.label for button in test.button if (button.key or "").startswith("advice-")
                and button.proto.type == "primary")


def test_eyes_decide_about_a_search_in_use_that_judges_underrate(frozen: Run) -> None:
    of = comparison("worse", "better")
    row = Outcome(name="Averaging", setup=Setup(backbone="pixels", recipe="average:k=3"), kept=True, against_best=of,
                  against_start=of, run=frozen.id)
    finished(frozen, [row])
    plan = plan_analysis(Refinement, recipe="average:k=3")
    create_analysis(frozen, plan, state="done", result=worker.compute(frozen, plan, lambda *_: None))
    use_search(frozen, plan.id)
    test = opened("data", **LINK)
    look_for(test, "first")
    assert not test.exception
    assert ("**Next:** judge your search by eye, as judges underrate searches like it, or go back to the plain search."
            ) in texts(test)
    assert "nothing speaks" not in texts(test)
    assert label_of_next(test) == "Judge it"


@pytest.mark.parametrize(("answers", "headline", "action", "said"), [
    ("", "Best search: the refined search", "Name groups", "better"),
    ("BA", "Best search: the refined search", "Continue judging", "better"),
    ("==A====B==A=========", "Either search will do: your 20 judgments cannot tell which is better; most "
     "results were equal", "Use the plain search", "no clear difference"),
    ("B" * 16, "Better search, confirmed by your 16 judgments: the refined search", "Name groups",
     "better"),
    ("A" * 16, "Keep the plain search: your 16 judgments prefer it", "Use the plain search", "worse")])
def test_every_page_follows_the_judgments_of_the_advised_search(
        frozen: Run, answers: str, headline: str, action: str, said: str) -> None:
    is_advised = said == "better"
    finished(frozen, [row for row in outcomes(frozen) if row.name in ("Whitening", "Averaging")])
    plan = plan_analysis(Refinement, recipe="whiten")
    create_analysis(frozen, plan, state="done", result=worker.compute(frozen, plan, lambda *_: None))
    retrieval = Retrieval(frozen)
    judging = Judging(compare(Side(retrieval, "frozen"), Side(retrieval, plan.id), "all", "group"))
    for answer in answers:
        question = judging.question()
        assert question is not None
        is_second_left = question.left == judging.comparison.options(question.position)[1]
        judging.answer(question, "both right" if answer == "=" else "left" if is_second_left == (answer == "B") else
                       "right")
    data = opened("data", **LINK)
    assert not data.exception
    assert verdict(data)[0].endswith(headline)
    assert label_of_next(data) == action
    assert ("Use the refined search nevertheless" in [button.label for button in data.button]) != is_advised
    shown = {page: texts(opened(page, **link)).replace("\\", "") for page, link in {
        "runs": {"run": frozen.id}, "train": {"dataset": "digits"}}.items()}
    assert all(f"Whole groups: {bold}{headline}" in shown[page] for page, bold in (("runs", "**"), ("train", "")))
    assert (advised_search(frozen) is not None) == is_advised, "Search, Refine and the table of runs follow"
    refine = opened("refine", run=frozen.id, recipe="whiten")
    group = next(metric.value for metric in refine.metric if metric.label == "Whole group")
    assert group == said
    use_search(frozen, plan.id)
    again = opened("data", **LINK)
    if action == "Use the plain search" and said != "worse":
        assert label_of_next(again) == "Keep my search", "nothing speaks against what the user chose"
        assert "**Next:** keep your search, against which nothing speaks here" in texts(again)
        assert verdict(again)[0].endswith(headline), "which asks to keep no other one"
        button(again, "Keep my search").click().run()
        assert again.query_params["compare"] in (plan.id, [plan.id])
    elif action == "Name groups":
        assert label_of_next(again) == "Search with it"
        assert "**Next:** search with it, as you do already." in texts(again)
        offered = {each.label for each in again.button}
        assert "Name groups" in offered
        assert ("Confirm by judgments" in offered) == (not answers), "unless they have confirmed it"
    else:
        assert label_of_next(again) == action
    judged = "judgments" in headline
    assert (headline in texts(refine).replace("\\", "")) == judged


def test_the_card_tells_three_kinds_of_judging_apart_and_leads_to_pairs(frozen: Run) -> None:
    finished(frozen, outcomes(frozen))
    images = frozen.dataset()
    judged_pairs(images).add(0, 1, same=True)
    try:
        part = next(each for each in opened("data", **LINK).expander if each.label == "Your own judgments")
    finally:
        judged_pairs(images).undo()
    lines = part.markdown[0].value.replace("\\", "")
    assert [line.partition(":**")[0] for line in lines.split("\n")] == [
        "- **Judges of the race", "- **Blind judgments", "- **Same or different"]
    assert "So far: none. Next: judge 20" in lines
    assert "So far: 1 pair." in lines
    assert [link.label for link in part.get("page_link")] == ["Same or different"]
    older = opened("retrieval", run=frozen.id, view='Where does "the same" end?')
    assert older.segmented_control(key="retrieval-part-shown").value == "Same or different", "by an older link"


def test_a_choice_that_replaces_another_says_so_at_once_and_can_be_undone(frozen: Run) -> None:
    refinement = worker.keep(frozen, plan_analysis(Refinement, recipe="whiten"), lambda _share, _step: None)
    use_search(frozen, refinement.id)
    finished(frozen, outcomes(frozen)[:1])
    test = opened("data", **LINK)
    test.button(key="advice-frozen").click().run()
    assert test.session_state["page"] == "retrieval"
    assert "**Your search: the plain search.** It takes the place of the refined search (whitening)." in texts(test)
    search = opened("retrieval", run=frozen.id)
    assert "the place of" not in texts(search), "another session chose nothing"
    search.session_state[REPLACED] = test.session_state[REPLACED]
    search.run().button(key="retrieval-use-again").click().run()
    assert not search.exception
    assert used_search([frozen]) == (frozen, refinement.id)
    assert search.session_state[REPLACED] == (frozen.id, "final", frozen.id, refinement.id), "so the undo says, too"


def test_a_race_says_before_it_begins_how_long_it_takes_in_all_once_its_preparation_was_measured(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))  # other tests measured their own speeds
    digits = catalog.load("digits")
    encoder = computed.chosen_encoder(digits)
    planned = planned_features(digits, encoder)
    assert whole_time_words(digits, encoder, 2) == "", "nothing was measured"
    record_epoch(planned, len(digits), 1.0)
    for kind, seconds in ((encoding_kind, 0.001), (start_kind, 5.0), (evaluation_kind, 50.0)):
        record_speed(kind(planned), seconds)
    until = jobs.estimate(planned, digits).seconds_until_search
    assert 6.7 < until < 60, "the start, the features and no evaluation"
    before = 5 * math.ceil(until / 5)
    assert whole_time_words(digits, encoder, 2) == (
        f"In all about {duration(120 + before)}: the images are prepared first, in about {before} s.")
    assert f"in about {before} s." in texts(opened("data", dataset="digits", view="advice"))
    few = catalog.load(str(write_digits(tmp_path / "few", 2, by_class=False)))
    assert whole_time_words(few, jobs.encoder_of(few, "pixels"), 2) == ""
    worked(runs_folder(), method="frozen", split="all")
    assert whole_time_words(digits, encoder, 2) == "", "nothing comes before the race"


def test_while_the_map_is_computed_before_the_audit_the_page_rests(
        frozen: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that ran again at once, again and again, would answer no click."""
    monkeypatch.setattr("udml_core.work.jobs.launch.start_maps", lambda *_: None)  # which the app does as it begins
    want(frozen, "audit")
    test = opened("data", **{name: LINK[name] for name in ("dataset", "view")})
    assert not test.exception
    (progress,) = [each.proto.text for each in test.get("progress")]
    assert progress.startswith("Step 3 of 5, comparing all images. ")
    assert button(test, "Begin without waiting")
    withdraw(frozen, "audit")
    test.run()
    assert not test.get("progress"), "nothing follows"
