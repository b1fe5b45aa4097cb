"""Jobs of a race: its features first, then the race; and the runs that it trains."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pages.parts.shell.run_picker import first_chosen
from tests.running import spec, wait_for, write_digits
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import WAITING, Dataset
from udml_core.data.given.exclusions import exclude, undo
from udml_core.exploration.race import Outcome, Setup
from udml_core.runs import Run, create_run, list_runs
from udml_core.runs.analyses import analysis_at, create_analysis, list_analyses, plan_analysis
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.notes import Notes
from udml_core.runs.tasks import LIVE_STATES, Status
from udml_core.runs.used import use_search
from udml_core.work import jobs
from udml_core.work.jobs.advising import (
    TRIAL,
    find_advice,
    newest_aim,
    refinement_of,
    start_advice,
    use_outcome,
    wanted_advice,
)
from udml_core.work.jobs.browse import find_browsing
from udml_core.work.jobs.raced import race_of
from udml_core.work.workers import analyse, candidates
from udml_core.work.workers import train as training
from udml_core.work.workers.evaluate import evaluate_run
from udml_core.work.workers.execute import StopRequestedError

SPEC = plan_analysis(Advice, budget=2.0, serves="groups", judges=("efficientnet-lite0",), encoders=())
OWN = Setup(backbone="pixels")
PLM = Setup(backbone="pixels", method="plm", recipe="whiten")


@pytest.fixture
def digits(tmp_path: Path) -> Dataset:
    return catalog.load(str(write_digits(tmp_path / "digits", 120)))


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The tasks that would be executed."""
    tasks: list[Any] = []
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda task, *_: tasks.append(task))
    return tasks


def features(dataset: Dataset, root: Path) -> Run:
    """Return the finished run of the frozen features of all images."""
    run = create_run(spec(method="frozen", dataset=dataset.name, split="all"), root)
    training.work(run, analyse=False)
    return run


def test_a_race_follows_its_features_even_if_no_page_waits_for_them(
        digits: Dataset, tmp_path: Path, launched: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    root, encoder = tmp_path / "runs", jobs.encoder_of(digits, "pixels")
    create_run(spec(method="frozen", dataset=digits.name), root)  # a half by classes, which no race starts from
    assert find_advice(digits, encoder, SPEC, root).run is None
    state = start_advice(digits, encoder, SPEC, root)
    assert state.run is not None
    assert (state.run.spec().split, state.run.spec().method, state.analysis, state.is_wanted) == (
        "all", "frozen", None, True)
    assert launched == [state.run]
    jobs.start_wanted(root)
    assert launched == [state.run], "the features are not there yet"
    assert newest_aim(digits, encoder, root) == SPEC.build_kind().serves
    at_evaluation = list[int]()

    def evaluated(*given: Any) -> Any:
        at_evaluation.append(len(launched))
        return evaluate_run(*given)

    monkeypatch.setattr(training, "evaluate_run", evaluated)
    training.work(state.run, analyse=False)
    assert at_evaluation == [2], "the race waits for no evaluation"
    found = find_advice(digits, encoder, SPEC, root)
    assert found.analysis is not None
    assert not found.is_wanted
    assert launched == [state.run, found.analysis]
    assert start_advice(digits, encoder, SPEC, root) == found, "it is in progress"
    assert launched == [state.run, found.analysis]
    assert race_of(found.analysis).start == OWN


@pytest.mark.usefixtures("launched")
def test_a_race_after_exclusions_gets_features_without_the_excluded_images(
        digits: Dataset, tmp_path: Path, launched: list[Any]) -> None:
    root = tmp_path / "runs"
    encoder = jobs.encoder_of(digits, "pixels")
    whole = features(digits, root)
    assert start_advice(digits, encoder, SPEC, root).run == whole
    exclude(digits, range(10))
    assert find_advice(digits, encoder, SPEC, root).run is None, "the race searched the excluded images"
    assert find_browsing(digits, encoder, root).run is None
    later = start_advice(digits, encoder, SPEC, root).run
    assert later is not None
    assert later != whole
    assert later.spec().excluded.count == 10
    undo(digits)
    assert find_advice(digits, encoder, SPEC, root).run == whole
    assert find_browsing(digits, encoder, root).run == whole


def test_features_that_failed_get_no_race_and_a_wish_can_be_withdrawn(digits: Dataset, tmp_path: Path) -> None:
    root, encoder = tmp_path / "runs", jobs.encoder_of(digits, "pixels")
    run = start_advice(digits, encoder, SPEC, root).run
    assert run is not None
    jobs.withdraw(run, "advice")
    assert not find_advice(digits, encoder, SPEC, root).is_wanted
    start_advice(digits, encoder, SPEC, root)
    run.write_status(Status(state="failed"))
    jobs.start_wanted(root)
    assert wanted_advice(run) is None
    assert not (run.folder / "analyses").exists()


@pytest.mark.usefixtures("launched")
def test_images_excluded_while_a_run_prepares_them_are_prepared_without_waiting_for_its_map(
        digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, encoder = tmp_path / "runs", jobs.encoder_of(digits, "pixels")
    first = start_advice(digits, encoder, SPEC, root).run
    assert first is not None
    assert find_browsing(digits, encoder, root).task == first
    later = list[object]()

    def excluded(*given: Any) -> Any:
        assert find_browsing(digits, encoder, root).task == first
        exclude(digits, range(10))
        later.append(find_browsing(digits, encoder, root).task)
        return evaluate_run(*given)

    monkeypatch.setattr(training, "evaluate_run", excluded)
    training.work(first)
    assert later == [None], "its features are stored: the next run needs nothing of it"
    assert not [each for each in list_analyses(first) if each.spec().kind == "pca"], "a map that no page would show"
    undo(digits)
    monkeypatch.setattr(training, "evaluate_run", evaluate_run)
    other = create_run(spec(method="frozen", dataset=digits.name, split="all"), tmp_path / "others")
    training.work(other)
    assert [each for each in list_analyses(other) if each.spec().kind == "pca"]


@pytest.mark.usefixtures("launched")
def test_unknown_judges_are_refused_before_anything_is_computed(digits: Dataset, tmp_path: Path) -> None:
    wrong = plan_analysis(Advice, judges=("squeznet",))
    with pytest.raises(UserError, match="got 'squeznet'"):
        start_advice(digits, jobs.encoder_of(digits, "pixels"), wrong, tmp_path / "runs")
    assert not list_runs(tmp_path / "runs")


def test_the_winner_is_a_refinement_of_all_images_or_a_trained_run(digits: Dataset, tmp_path: Path,
                                                                 launched: list[Any]) -> None:
    run = features(digits, tmp_path / "runs")
    refined = Outcome(name="Step", setup=PLM, run=run.id)
    used, analysis = use_outcome(refined, run.root)
    assert used == run
    assert analysis is not None
    assert (analysis.spec().recipe, analysis.id) == ("whiten", refinement_of(refined).id)
    assert analysis.spec().scope == "test", "the search lists it, and all images are the test half"
    assert len(run.spec().halves(digits).test) == len(digits)
    plain = Outcome(name="Method", setup=PLM.model_copy(update={"recipe": ""}), run=run.id)
    assert use_outcome(plain, run.root) == (run, None)
    assert launched == [analysis]


def test_the_search_in_use_takes_part_if_it_refines_the_features_of_the_race(digits: Dataset, tmp_path: Path) -> None:
    run = features(digits, tmp_path)
    plan, request = plan_analysis(Refinement, recipe="whiten"), plan_analysis(Advice, budget=1.0)
    create_analysis(run, plan, state="done", result=analyse.compute(run, plan, lambda *_: None))
    material = analyse.StoredMaterial(run, request, lambda *_: None)
    assert material.chosen is None
    use_search(run, "final")
    assert material.chosen is None, "the plain search is what all others are compared with"
    use_search(run, plan.id)
    assert material.chosen == Setup(backbone="pixels", recipe="whiten")
    trained = create_run(spec(method="pca", dataset=digits.name, split="all", fields={"dimension": 4}), run.root)
    training.work(trained, analyse=False)
    use_search(trained, "final")
    assert material.chosen is None, "a trained search is no refinement of these features"


def test_a_candidate_is_trained_on_all_images_once_and_marked(digits: Dataset, tmp_path: Path) -> None:
    run = features(digits, tmp_path / "runs")
    reports: list[str] = []
    head = candidates.plan_candidate(run, digits, PLM)
    assert head.fields["trains"] == "head"
    assert head.fields["dimension"] == 120, "at most the number of images"
    pca = PLM.model_copy(update={"method": "pca"})
    assert candidates.training_time(run, digits, pca)[0] > 0
    found = candidates.finish_candidate(run, digits, pca, training.work_aside,
                                        lambda _share, step: reports.append(step))
    assert (found.status().state, found.spec().split, found.spec().encoder) == ("done", "all", run.spec().encoder)
    assert found.notes().tags == (TRIAL,)
    assert "evaluation" in reports
    assert candidates.training_time(run, digits, pca) == (0, True)

    def fail(*_: Any) -> Status:
        raise AssertionError("an equal run is finished")

    again = pca.model_copy(update={"recipe": "rerank"})
    assert candidates.finish_candidate(run, digits, again, fail, lambda *_: None) == found


@pytest.mark.slow
def test_a_candidate_whose_time_is_up_is_stopped_and_later_resumed(digits: Dataset, tmp_path: Path) -> None:
    run = features(digits, tmp_path / "runs")

    def late(_share: float, step: str) -> None:
        if step == "training":
            raise UserError("the time is up")

    with pytest.raises(UserError, match="the time is up"):
        candidates.finish_candidate(run, digits, PLM, training.work_aside, late)
    (stopped,) = (other for other in list_runs(run.root) if other != run)
    assert stopped.status().state == "stopped"
    done = candidates.finish_candidate(run, digits, PLM, training.work_aside, lambda *_: None)
    assert (done, done.status().state) == (stopped, "done")


def test_a_candidate_waits_for_a_busy_device_and_is_then_trained(digits: Dataset, tmp_path: Path) -> None:
    run = features(digits, tmp_path / "runs")
    steps, held = list[str](), jobs.device_lock("cpu").acquire()

    def report(_share: float, step: str) -> None:
        if step == WAITING and steps.count(WAITING) == 1:
            held.lock.release()
        steps.append(step)

    pca = PLM.model_copy(update={"method": "pca"})
    found = candidates.finish_candidate(run, digits, pca, training.work_aside, report)
    assert found.status().state == "done"
    assert steps[:2] == [WAITING, WAITING]
    assert "evaluation" in steps


def test_a_race_that_is_stopped_while_a_candidate_waits_ends(digits: Dataset, tmp_path: Path) -> None:
    run = features(digits, tmp_path / "runs")

    def stop(_share: float, step: str) -> None:
        assert step == WAITING
        raise StopRequestedError

    with jobs.device_lock("cpu").acquire(), pytest.raises(StopRequestedError):
        candidates.finish_candidate(run, digits, PLM, training.work_aside, stop)


def test_a_failed_candidate_is_reported(digits: Dataset, tmp_path: Path) -> None:
    run = features(digits, tmp_path / "runs")
    with pytest.raises(UserError, match="out of luck"):
        candidates.finish_candidate(run, digits, PLM, lambda *_: Status(state="failed", message="out of luck"),
                                    lambda *_: None)


def test_missing_features_take_time_and_stored_features_none(digits: Dataset, tmp_path: Path) -> None:
    run = features(digits, tmp_path / "runs")
    recipe = Setup(backbone="pixels", recipe="views").parsed
    assert candidates.feature_time(run, digits, "pixels", None) == (0, True)
    assert candidates.feature_time(run, digits, "efficientnet-lite0", None)[0] > 0
    assert candidates.feature_time(run, digits, "pixels", recipe.find("views"))[0] > 0  # type: ignore[arg-type]


def test_a_race_in_progress_shows_its_parts(digits: Dataset, tmp_path: Path) -> None:
    run = features(digits, tmp_path / "runs")
    analysis = create_analysis(run, SPEC)
    assert analysis == analysis_at(run, SPEC)
    outcome = Outcome(name="Step", setup=PLM, state="not tried", seconds=3)
    analysis.append_part(outcome.model_dump(mode="json"))
    with (analysis.folder / "parts.jsonl").open("a") as file:
        file.write('{"name": "unfinish')  # the worker was killed
    assert race_of(analysis).outcomes == (outcome,)
    analysis.append_part(outcome.model_copy(update={"seconds": 5}).model_dump(mode="json"))
    assert [row.seconds for row in race_of(analysis).outcomes] == [5], "the last line of a search counts"


def test_the_runs_of_a_race_are_not_shown_first(tmp_path: Path) -> None:
    runs = [create_run(spec(seed=seed), tmp_path) for seed in (0, 1)]
    runs[0].write_notes(Notes.make(tags=(TRIAL,)))
    assert first_chosen(runs) == runs[1]
    assert first_chosen(runs[:1]) == runs[0]


@pytest.mark.slow
def test_a_killed_worker_is_continued_by_a_retry(digits: Dataset, tmp_path: Path) -> None:
    run = features(digits, tmp_path / "runs")
    # All candidates fit into this time, on a busy machine too.
    analysis = jobs.analyse(run, SPEC.model_copy(update={"budget": 10.0}), root=run.root)
    while len(analysis.parts()) < 2:
        assert analysis.status().state in LIVE_STATES, analysis.error()
        time.sleep(0.02)
    os.kill(analysis.status().pid or 0, signal.SIGKILL)
    wait_for(analysis, "interrupted")
    before = analysis.parts()
    assert 2 <= len(before) == len(race_of(analysis).outcomes)
    jobs.resume(analysis)
    wait_for(analysis, "done", "failed")
    rows = analysis.parts()
    assert analysis.status().state == "done", analysis.error()
    assert rows[: len(before)] == before
    assert len({str(row["setup"]) for row in rows}) == len(rows) > len(before), "nothing is judged twice"
    assert race_of(analysis).outcomes == tuple(Outcome.model_validate(row) for row in rows)


def test_the_share_of_a_training_in_a_race_counts_all_epochs() -> None:
    statuses = iter([Status(epoch=0, epochs=4), Status(epoch=1, epochs=4)])
    share_of = candidates._Shares(SimpleNamespace(stored_status=lambda: next(statuses)))  # type: ignore[arg-type]
    assert [share_of(share, "training") for share in (0.5, 0.8, 0.4, 0.6)] == [0.125, 0.2, 0.35, 0.4]
    assert share_of(0.3, "embedding") == 0.3
