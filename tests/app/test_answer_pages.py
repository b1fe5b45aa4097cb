"""The search that the user chose stands first on each page, with the same words about it."""

from __future__ import annotations

import re
import time
from urllib.parse import parse_qs

import numpy as np
import pytest
import streamlit as st

from pages.parts.data import computed
from tests.app.opening import opened, texts
from tests.app.test_advice_page import LINK, button, finished, outcomes
from tests.exploration.test_race import comparison
from tests.running import worked
from udml_core.exploration.race import Outcome, Race, Setup
from udml_core.exploration.race_measured import Comparison
from udml_core.runs import Run, runs_folder
from udml_core.runs.aims import keep_aim
from udml_core.runs.analyses import Analysis, create_analysis, plan_analysis
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.used import use_search, used_search
from udml_core.work.jobs.raced import judged_in_race
from udml_core.work.jobs.verdicts import rival_of
from udml_core.work.workers import analyse as worker

OWN = ":material/push_pin: **Your search: the refined search.**"


@pytest.fixture(autouse=True)
def _pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computed, "DEFAULT_BACKBONE", "pixels")


@pytest.fixture
def frozen() -> Run:
    """A finished run of the pixels of all digits, whose user searches with re-ranking."""
    run = worked(runs_folder(), method="frozen", split="all")
    use_search(run, worker.keep(run, plan_analysis(Refinement, recipe="rerank"), lambda _share, _step: None).id)
    return run


def reranked(run: Run, of: Comparison) -> Outcome:
    return Outcome(name="Re-ranking", setup=Setup(backbone="pixels", recipe="rerank"), against_best=of,
                   against_start=of, run=run.id)


def ended(analysis: Analysis, seconds: float) -> None:
    """Note that a race ended some seconds from now."""
    status = analysis.stored_status()
    analysis.write_status(status.model_copy(update={"finished": time.time() + seconds}))


def plain(text: str) -> str:
    return text.replace("\\", "")


def next_words(text: str) -> str:
    return plain(text).partition("**Next:** ")[2].partition("\n")[0]


def test_a_search_that_does_about_as_well_is_kept_and_can_be_changed(frozen: Run) -> None:
    level = comparison("cannot tell", "better")
    finished(frozen, [outcomes(frozen)[1], reranked(frozen, level)])
    test = opened("data", **LINK)
    assert f"{OWN} It does about as well as the best of this race." in plain(texts(test))
    assert next_words(texts(test)) == "keep your search, which does about as well."
    assert test.button(key="advice-own").proto.type == "primary"
    labels = [each.label for each in test.button]
    assert "Use this one instead" in labels
    assert "Search with it" not in labels
    test.button(key="advice-own").click().run()
    assert test.session_state["page"] == "retrieval"
    assert used_search([frozen]) == (frozen, plan_analysis(Refinement, recipe="rerank").id), "nothing was changed"


def test_the_verdict_on_ones_search_begins_with_what_one_looks_for(frozen: Run) -> None:
    finished(frozen, outcomes(frozen)[:2])
    refined = worker.keep(frozen, plan_analysis(Refinement, recipe="whiten"), lambda _share, _step: None)
    use_search(frozen, refined.id)
    assert opened("home").caption[0].value.startswith("Whole group")
    keep_aim(frozen, "first")
    st.cache_data.clear()
    assert opened("home").caption[0].value.startswith("First result"), "whatever the race served"
    opened("data", **LINK)  # a link to what is seen of whole groups
    st.cache_data.clear()
    assert opened("home").caption[0].value.startswith("Whole group"), "all pages answer for the choice in view"


def test_one_button_keeps_ones_search_beside_a_newer_training(frozen: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages.parts.runs.rivals._stand", lambda *_: None)  # as without a judge's stored features
    finished(frozen, [outcomes(frozen)[1], reranked(frozen, comparison("cannot tell", "better"))])
    use_search(frozen, worker.keep(frozen, plan_analysis(Refinement, recipe="rerank"), lambda _share, _step: None).id)
    trained = worked(runs_folder(), method="pca", split="all", fields={"dimension": 4})
    trained.write_status(trained.stored_status().model_copy(update={"finished": time.time() + 1}))
    test = opened("data", **LINK)
    assert "Your training **PCA** is newer than your search." in texts(test)
    assert [each.key for each in test.button if each.label == "Keep my search"] == ["advice-own"]
    assert "advice-newer-use" in [each.key for each in test.button]


def test_a_training_with_the_settings_of_a_judged_one_has_its_verdict(frozen: Run) -> None:
    raced, again, other = (worked(runs_folder(), method="pca", split="all", fields={"dimension": dimension})
                           for dimension in (4, 4, 5))
    of = comparison("cannot tell", "better")
    judged = Outcome(name="PCA", setup=Setup(backbone="pixels", method="pca", recipe="whiten"), against_best=of,
                     against_start=of, run=raced.id)
    finished(frozen, [judged])
    for run in (raced, again):
        found = judged_in_race(run, "whiten")
        assert found is not None
        assert found[1].run == raced.id
    assert judged_in_race(again, "rerank") is None
    assert judged_in_race(other, "whiten") is None


def test_a_search_that_took_no_part_does_not_stop_the_advice(frozen: Run) -> None:
    finished(frozen, outcomes(frozen)[:2])
    test = opened("data", **LINK)
    assert f"{OWN} It took no part in this race." in plain(texts(test))
    assert test.button(key="advice-own").proto.type == "tertiary"
    assert next_words(texts(test)).startswith("Search with it")


def test_nothing_keeps_a_search_that_is_worse_than_the_plain_search(frozen: Run) -> None:
    whitened = worker.keep(frozen, plan_analysis(Refinement, recipe="whiten"), lambda _share, _step: None)
    use_search(frozen, whitened.id)
    of = comparison("cannot tell", "worse")
    finished(frozen, [outcomes(frozen)[1].model_copy(update={"against_best": of, "against_start": of, "kept": False})])
    test = opened("data", **LINK)
    assert "**Your search: the refined search.** In this race: worse whole groups" in plain(texts(test))
    assert "nothing speaks" not in texts(test)
    assert button(test, "Use the plain search").proto.type == "primary"


def test_home_and_runs_begin_with_the_choice_and_name_a_race_only_if_it_advises_another_search_later(
        frozen: Run) -> None:
    analysis = finished(frozen, [outcomes(frozen)[1], reranked(frozen, comparison("cannot tell", "better"))])
    ended(analysis, +60)
    home = plain(texts(opened("home")))
    assert OWN in home
    assert "Best search:" not in home, "it does about as well as the search in use"
    runs = opened("runs", run=frozen.id)
    assert f"{OWN} For Digits." in plain(texts(runs))
    assert "Whole group: better. First result: no clear difference." in plain(texts(runs))
    assert "What races advise beside it" in [each.label for each in runs.expander]
    assert "Best searches of races" not in texts(runs)
    st.cache_data.clear()
    race = Race(serves="groups", budget=5, start=Setup(backbone="pixels"), run=frozen.id,
                outcomes=(outcomes(frozen)[1],))
    analysis = create_analysis(frozen, plan_analysis(Advice, budget=5.0, serves="groups"), state="done",
                               result={"race": np.array(race.model_dump_json())})
    ended(analysis, -60)
    assert "Best search:" not in plain(texts(opened("home"))), "the user chose after it"
    ended(analysis, +60)
    assert ":material/new_releases: Whole groups: Best search: the refined search (whitening)." in (
        plain(texts(opened("home"))))


def test_search_judges_what_the_search_in_use_gains_against_the_plain_search_first(frozen: Run) -> None:
    finished(frozen, [reranked(frozen, comparison("cannot tell", "better"))])
    refinement = plan_analysis(Refinement, recipe="rerank").id
    test = opened("retrieval", run=frozen.id, compare=f"{refinement}~2~final", add="3")
    (link,) = [link for link in test.get("page_link") if link.proto.label == "Judge them blind"]
    sides = parse_qs(link.proto.query_string)
    assert (sides["a"], sides["b"]) == ([f"{frozen.id}:final"], [f"{frozen.id}:{refinement}"]), (
        "under the names of earlier judgments, however the results stand")
    assert sides["results"] == ["group"]


def test_a_training_is_compared_with_the_search_in_use_by_what_that_gains(frozen: Run) -> None:
    trained = worked(runs_folder(), method="pca", split="all", fields={"dimension": 4})
    rival = rival_of(trained, frozen.dataset())
    assert rival is not None
    assert rival.serves == "first", "nothing is known of it"
    race = Race(serves="first", budget=2, start=Setup(backbone="pixels"), run=frozen.id,
                outcomes=(reranked(frozen, comparison("cannot tell", "better")),))
    create_analysis(frozen, plan_analysis(Advice, budget=2.0, serves="first"), state="done",
                    result={"race": np.array(race.model_dump_json())})
    rival = rival_of(trained, frozen.dataset())
    assert rival is not None
    assert rival.serves == "groups", "although the race served first results"


def test_compare_opens_with_the_search_that_the_user_chose_until_other_runs_are_chosen(frozen: Run) -> None:
    others = [worked(runs_folder(), method="pca", split="all", fields={"dimension": size}) for size in (4, 8)]
    finished(frozen, [outcomes(frozen)[1], reranked(frozen, comparison("cannot tell", "better"))])
    refinement = plan_analysis(Refinement, recipe="rerank").id
    test = opened("compare", run=frozen.id)
    assert not test.exception
    assert (test.query_params["a"], test.query_params["b"]) in (
        (f"{frozen.id}:final", f"{frozen.id}:{refinement}"), ([f"{frozen.id}:final"], [f"{frozen.id}:{refinement}"]))
    shown = plain(texts(test))
    assert f"{OWN} It is compared with the plain search." in shown
    assert "Whole group: better. First result: no clear difference." in shown
    assert shown.count("no clear difference") == 1, "the verdict stands once"
    chosen = opened("compare", run=frozen.id, runs=".".join(run.id for run in others))
    assert "a" not in chosen.query_params, "a link names other runs"
    assert OWN not in plain(texts(chosen))


def test_rows_of_compare_are_named_where_the_user_looks_for_whole_groups(frozen: Run) -> None:
    finished(frozen, [reranked(frozen, comparison("cannot tell", "better"))])
    test = opened("compare", run=frozen.id, results="ten", runs=frozen.id, a=f"{frozen.id}:frozen",
                  b=f"{frozen.id}:{plan_analysis(Refinement, recipe='rerank').id}")
    rows = [element.proto.body for element in test.get("html") if 'class="judge-rows"' in element.proto.body]
    named = [re.findall('judge-name">([^<]*)<', row) for row in rows]
    assert named == [["Query", "Plain search", "Refined search"]] * 4
