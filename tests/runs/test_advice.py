"""The analysis that finds the best search: its race on a run's images, and what it never reads."""

from __future__ import annotations

import dataclasses
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.numerics.test_second_opinion import noisy, world
from tests.running import spec, write_digits
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import WAITING
from udml_core.exploration import race_running
from udml_core.exploration.race import Outcome, Race, Setup
from udml_core.exploration.race_clock import RaceClock
from udml_core.exploration.race_gaps import find_gaps
from udml_core.exploration.race_words import left_out_lines, outcome_words
from udml_core.numerics.neighbors import nearest
from udml_core.runs import Run, create_run
from udml_core.runs.analyses import analysis_at, create_analysis, plan_analysis
from udml_core.runs.analyses.kinds import advice as kind_module
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.tasks import TRAINING
from udml_core.work.jobs.advising import refinement_of
from udml_core.work.jobs.raced import race_of
from udml_core.work.workers import analyse
from udml_core.work.workers import train as training


class Vectors:
    """A run of which only vectors are known; other runs are trained by noise. Reading its data set fails."""

    backbone = "efficientnet-lite0"

    def __init__(self, vectors: dict[str, np.ndarray], judged_by: np.ndarray, seconds: float = 0.0,
                 name: str = "frozen") -> None:
        self.known, self._judged_by, self._seconds, self.run_id = vectors, judged_by, seconds, name
        self.stored, self.trained, self.phases = list[dict[str, Any]](), list[str](), list[str]()

    def report(self, _share: float, step: str) -> None:
        self.phases.append(step)

    def indices(self, scope: str) -> np.ndarray:
        assert scope == "all"
        return np.arange(len(self._judged_by))

    def vectors(self, frame: str, indices: np.ndarray) -> np.ndarray:
        assert frame == "final"
        return self.known[self.run_id][indices]

    def view_vectors(self, _frame: str, _views: Any) -> np.ndarray:
        return self.known["views"]

    def judge_views(self, backbone: str, indices: np.ndarray) -> np.ndarray:
        return self.judge_features(backbone)[indices]

    def judge_features(self, backbone: str) -> np.ndarray:
        assert backbone != self.backbone, "the run's own encoder never judges"
        self.report(0.5, "features")
        return self._judged_by

    def part_features(self) -> list[np.ndarray]:
        return [self.known[name] for name in self.known if name.startswith("part")]

    chosen: Setup | None = None

    def of(self, setup: Setup) -> Vectors:
        if setup.method not in self.known:
            raise UserError("not on these images")
        self.trained.append(setup.method)
        return Vectors(self.known, self._judged_by, name=setup.method)

    def training_time(self, _setup: Setup) -> tuple[float, bool]:
        return self._seconds, True

    def feature_time(self, _backbone: str, views: Any = None) -> tuple[float, bool]:
        return self._seconds if views is None else 0.0, True

    def append(self, row: dict[str, Any]) -> None:
        self.stored.append(row)

    def parts(self) -> list[dict[str, Any]]:
        return list(self.stored)


def material(**rest: Any) -> Vectors:
    """Return noisy frozen features, better views, and a trained head that is worse."""
    embedding, judged_by = world(0)
    return Vectors({"frozen": noisy(embedding, 1.5), "views": noisy(embedding, 0.5), "plm": noisy(embedding, 4)},
                   judged_by, **rest)


def raced(of: Any, **fields: Any) -> Race:
    kind = Advice(**fields)
    return kind.result(kind.compute(of))


def test_the_images_of_a_kind_are_counted_as_the_search_sees_them_also_among_some_of_the_images() -> None:
    rng = np.random.default_rng(0)
    rows = (np.repeat(rng.normal(size=(20, 32)), 50, axis=0) + 0.3 * rng.normal(size=(1000, 32))).astype(np.float32)
    judged_by = np.repeat(rng.normal(size=(100, 32)), 10, axis=0).astype(np.float32)  # another world
    of = Vectors({"frozen": rows, "views": rows}, judged_by)
    assert 40 <= kind_module._near(of, np.arange(1000)) <= 60
    assert 40 <= kind_module._near(of, np.arange(0, 1000, 2)) <= 60, "of all images, though half are compared"
    race = raced(of, encoders=())
    assert race.near == kind_module._near(of, np.arange(1000)) != race.group


def test_each_outcome_is_stored_at_once_and_the_result_holds_the_same() -> None:
    of = material()
    race = raced(of)
    assert race.with_lines(of.stored) == race
    assert [duel.is_level("first") for duel in race.duels][-1:] == [True]
    assert race.best is not None
    assert race.best.setup == race.duels[-1].simpler, "views and whitening are as good as averages, and simpler"
    names = [outcome.name for outcome in race.outcomes]
    assert names[:3] == ["Several views of each image", "Whitening", "Averaging with 3 neighbors"]
    assert race.outcomes[0].kept
    assert race.best is not None
    assert race.best.setup.recipe.startswith("views")
    of_plm = next(outcome for outcome in race.outcomes if outcome.setup.method == "plm")
    assert (of_plm.state, of_plm.kept, of_plm.run) == ("judged", False, "plm")
    kept = [outcome for outcome in race.outcomes if outcome.kept and outcome.setup.method == "frozen"]
    assert of_plm.setup.recipe == kept[-1].setup.recipe, "the head is tried with the kept steps"
    assert {outcome.reason for outcome in race.outcomes if outcome.setup.method == "deepcluster"} == {
        "not on these images"}
    assert any(phase.startswith("judge looks at the images: SqueezeNet 1.1") for phase in of.phases)
    copies = r"judge looks at changed copies: SqueezeNet 1\.1 · \d+ of \d+ · "
    assert any(re.match(copies, phase) for phase in of.phases)


def test_the_first_step_of_a_judge_says_its_time_or_that_it_was_never_measured() -> None:
    words = kind_module._expected_words
    assert [words(12.0, is_measured=True), words(12.0, is_measured=False), words(0.0, is_measured=True)] == [
        " · about 12 s for this judge", " · how long this takes is not known yet", ""]
    of = material()
    of._seconds = 12.0
    raced(of)
    assert any("judge looks at changed copies: SqueezeNet 1.1 · about 12 s for this judge · 0:" in phase
               for phase in of.phases)


def test_the_phase_names_no_candidate_that_is_listed_already() -> None:
    of = material()
    append, phases = of.append, list[str]()

    def note(row: dict[str, Any]) -> None:
        phases.append(of.phases[-1])
        append(row)

    of.append = note  # type: ignore[method-assign]
    raced(of)
    assert len(phases) == len(of.stored) > 3
    assert all(phase.startswith("choosing the next candidate") for phase in phases)


def test_a_judge_with_the_features_of_the_start_is_left_out_of_the_race_with_its_reason() -> None:
    of, usual = material(), raced(material(), judges=("squeezenet",))
    of.judge_features = lambda name: of.known["frozen"] if name == "timm:twin" else of._judged_by  # type: ignore[method-assign]
    race = raced(of, judges=("squeezenet", "timm:twin"))
    assert list(race.weights) == ["squeezenet"]
    assert [outcome.against_start for outcome in race.outcomes] == [outcome.against_start for outcome in usual.outcomes]
    assert left_out_lines(race)[0].startswith("The judge timm:twin has the features that it would judge")
    with pytest.raises(UserError, match="has the features that it would judge"):
        raced(of, judges=("pixels", "timm:twin"))


def test_another_encoder_needs_a_judge_that_took_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = raced(material())
    assert {outcome.setup.backbone for outcome in usual.outcomes} == {"efficientnet-lite0"}, "no judge is left for it"
    monkeypatch.setattr(kind_module, "ENCODERS", ())
    outcomes = raced(material(), encoders=("squeezenet",)).outcomes
    outcome = next(outcome for outcome in outcomes if outcome.name == "SqueezeNet 1.1")
    assert outcome.state == "not possible"
    assert "took part in EfficientNet-Lite0 or SqueezeNet 1.1, and none judges itself. Install timm" in outcome.reason


def test_two_encoders_side_by_side_are_tried_where_a_third_judges() -> None:
    both = "efficientnet-lite0+squeezenet"
    race = raced(material(), judges=("timm:vit_tiny_patch16_224",))
    outcome = next(outcome for outcome in race.outcomes if outcome.setup.backbone == both)
    assert (outcome.name, outcome.state) == ("EfficientNet-Lite0 + SqueezeNet 1.1", "judged")
    assert outcome.against_start is not None
    assert outcome.against_start.judges == ("timm:vit_tiny_patch16_224",)
    for judges in (("squeezenet",), ("efficientnet-lite0", "squeezenet", "pixels")):
        assert both not in {outcome.setup.backbone for outcome in raced(material(), judges=judges).outcomes}


def test_a_race_of_two_encoders_is_judged_by_neither() -> None:
    of = material()
    of.backbone = "efficientnet-lite0+squeezenet:0.7"
    race = raced(of)
    assert not race.is_judged
    assert race.reason.startswith("Cannot tell: EfficientNet-Lite0 + SqueezeNet 1.1 × 0.7 took part in every search")
    of.known["part 2"] = of._judged_by @ np.random.default_rng(0).normal(size=(of._judged_by.shape[1], 200))
    with pytest.raises(UserError, match="probably the same encoder under another name"):
        raced(of, judges=("timm:squeezenet",))


def test_the_race_stores_how_many_first_results_differ() -> None:
    of = material()
    views = raced(of).outcomes[0]
    before, after = (nearest(of.known[name], 1, own=np.arange(len(of.known[name])))[1]
                     for name in ("frozen", "views"))
    assert views.against_start is not None
    assert views.setup.recipe == "views"
    assert views.against_start.changed == pytest.approx((before != after).mean(), abs=0.02)


def test_the_same_encoder_under_another_name_does_not_judge() -> None:
    of = material()
    head = np.random.default_rng(0).normal(size=(of.known["frozen"].shape[1], 200))
    of._judged_by = of.known["frozen"] @ head
    with pytest.raises(UserError, match="probably the same encoder under another name"):
        raced(of, judges=("timm:efficientnet_lite0.ra_in1k",))
    assert raced(of, judges=("squeezenet",)).is_judged, "a known encoder of another name is trusted"


def test_without_a_judge_the_result_says_what_to_install() -> None:
    for judges in (("efficientnet-lite0",), ("efficientnet-lite0", "pixels")):
        race = raced(material(), judges=judges)
        assert race.outcomes == ()
        assert race.reason.startswith("Cannot tell: EfficientNet-Lite0 took part in every search")


def test_judges_that_do_not_fit_into_the_budget_are_refused_with_their_time() -> None:
    with pytest.raises(UserError, match=r"features of SqueezeNet 1\.1, which judges, take about 50 s, and the budget"):
        raced(material(seconds=50.0), budget=0.5)


def test_a_judge_that_cannot_judge_alone_is_not_named_as_the_one_that_needs_more_time() -> None:
    of = material()
    of.feature_time = lambda name, *_: (2.0 if name == "pixels" else 50.0, True)  # type: ignore[method-assign]
    with pytest.raises(UserError, match=r"features of SqueezeNet 1\.1, which judges, take about 50 s, and the budget"):
        raced(of, budget=0.5)


def test_training_that_does_not_fit_is_not_begun() -> None:
    of = material(seconds=1000.0)
    of.feature_time = lambda *_: (0.0, True)  # type: ignore[method-assign]
    race = raced(of, budget=1.0)
    assert {outcome.state for outcome in race.outcomes if outcome.setup.method != "frozen"} == {"not tried"}
    assert of.trained == []
    assert race.best is not None


def test_judges_that_take_all_the_time_leave_a_fifth_of_it_for_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    now, of = [0.0], material(seconds=0.0)
    monkeypatch.setattr("udml_core.exploration.race_clock.time", SimpleNamespace(monotonic=lambda: now[0]))
    judge_features = of.judge_features

    def slow(name: str) -> np.ndarray:
        now[0] += 400.0
        return judge_features(name)

    of.judge_features = slow  # type: ignore[method-assign]
    of.training_time = lambda _setup: (61.0 * race_running.ROUGH, True)  # type: ignore[method-assign]
    race = raced(of, budget=5.0)
    assert now[0] >= 400, "the judges alone take longer than the race"
    assert {outcome.state for outcome in race.outcomes if "whiten" in outcome.setup.recipe
            and outcome.setup.method == "frozen"} == {"judged"}
    assert {outcome.state for outcome in race.outcomes if outcome.setup.method == "plm"} == {"not tried"}, (
        "a fifth is 60 s, and a late try may take a quarter more")


def test_a_race_that_was_killed_continues_after_its_last_candidate() -> None:
    whole = raced(material())
    of, append = material(), Vectors.append

    def kill_at_four(row: dict[str, Any]) -> None:
        if len(of.stored) == 4:
            raise KeyboardInterrupt
        append(of, row)

    of.append = kill_at_four  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        raced(of)
    before = list(of.stored)
    of.append = lambda row: append(of, row)  # type: ignore[method-assign]
    assert [line["spent"] for line in before] == sorted(line["spent"] for line in before)
    before[-1]["spent"] = 100.0  # the judges took most of it
    of.stored[3] = before[-1]
    of.phases.clear()
    race = raced(of)
    assert of.stored[:4] == before
    assert race.seconds >= 100
    assert all(re.search(r" · 1:[45]\d (of|min so far)", phase) for phase in of.phases), "the clock does not go back"
    assert len(of.stored) == len(whole.outcomes), "nothing is judged twice"
    assert [(outcome.name, outcome.kept) for outcome in race.outcomes] == [
        (outcome.name, outcome.kept) for outcome in whole.outcomes]


def test_a_computation_is_given_up_at_the_end_of_the_budget() -> None:
    of = material()
    now = [4.0]
    telling = kind_module._telling(of, "words", RaceClock(lambda: now[0]), deadline=5.0)  # type: ignore[arg-type]
    telling.report(0.5, "step · 3 images per second")
    counting = kind_module._telling(of, "words", RaceClock(lambda: now[0]), count=200)  # type: ignore[arg-type]
    counting.report(0.5, "step · 3 images per second")
    telling.report(0.25, "training")
    assert of.phases == ["words · 3 images per second", "words · 100 of 200", "words · training 25 %"]
    now[0] = 6.0
    with pytest.raises(UserError, match="time of the race is up"):
        telling.report(0.6, "step")


def test_only_frozen_features_of_all_images_are_raced(tmp_path: Path) -> None:
    for run in (create_run(spec(split="all"), tmp_path), create_run(spec(method="frozen"), tmp_path)):
        with pytest.raises(UserError, match="Advice starts from the frozen features of all images"):
            plan_analysis(Advice).build_kind().check_run(run)
    run = create_run(spec(method="frozen", split="all"), tmp_path)
    plan_analysis(Advice).build_kind().check_run(run)
    for fields, message in (({"judges": ("squeznet",)}, "got 'squeznet'"), ({"encoders": ("vgg",)}, "got 'vgg'")):
        with pytest.raises(UserError, match=message):
            plan_analysis(Advice, **fields).build_kind().check_run(run)


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A finished run of the pixels of 200 digits in class folders."""
    monkeypatch.setattr(race_running, "METHODS", ())
    monkeypatch.setattr(kind_module, "JUDGES", ("efficientnet-lite0",))
    folder = write_digits(tmp_path / "digits", 200)
    run = create_run(spec(method="frozen", split="all", dataset=str(folder)), tmp_path / "runs")
    training.work(run, analyse=False)
    return run


FIELDS: dict[str, Any] = {"serves": "groups", "judges": ("efficientnet-lite0",), "encoders": (), "budget": 60.0}


def in_race(run: Run, **fields: Any) -> Race:
    analysis = create_analysis(run, plan_analysis(Advice, **FIELDS | fields))
    assert analyse.work(analysis, train=training.work_aside).state == "done", analysis.error()
    return race_of(analysis)


def without_times(race: Race) -> list[Outcome]:
    return [outcome.model_copy(update={"seconds": 0.0}) for outcome in race.outcomes]


@pytest.mark.slow
def test_labels_change_nothing(digits: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same race with random labels has the same outcomes, and its winner is what the refinement gives."""
    race = in_race(digits)
    assert race.is_judged
    dataset = catalog.load(digits.spec().dataset)
    poison = np.random.default_rng(0).permutation(np.asarray(dataset.labels))
    assert (poison != dataset.labels).mean() > 0.5
    monkeypatch.setattr(Run, "dataset", lambda *_: dataclasses.replace(dataset, labels=poison))
    analysis_at(digits, plan_analysis(Advice, **FIELDS)).remove()
    assert without_times(in_race(digits)) == without_times(race)
    assert race.best is not None, "averages of neighbors improve the pixels of digits"
    refined: Any = analyse.keep(digits, refinement_of(race.best), lambda *_: None).result()
    assert len(refined.indices) == 200


def test_views_that_take_most_of_the_time_are_given_up_so_that_others_are_tried(monkeypatch: pytest.MonkeyPatch
                                                                               ) -> None:
    of, clock = material(), [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def slow_views(self: Vectors, *_: Any) -> np.ndarray:
        for _ in range(100):
            clock[0] += 1.0
            self.report(0.5, "views")
        return self.known["views"]

    monkeypatch.setattr(Vectors, "view_vectors", slow_views)
    race = raced(of, budget=1.0)
    assert (race.outcomes[0].name, race.outcomes[0].state) == ("Several views of each image", "given up")
    assert race.outcomes[0].seconds < 40
    assert any(phase.startswith("several views of each image · ") for phase in of.phases), "in words for everyone"
    assert race.outcomes[1].state == "judged"


@pytest.mark.parametrize(("needed", "state"), [(200, "not tried"), (50, "judged")])
def test_views_whose_first_seconds_show_that_they_take_long_come_after_the_others(
        needed: int, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of, clock, began = material(), [0.0], list[float]()
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def slow_views(self: Vectors, *_: Any) -> np.ndarray:
        began.append(clock[0])
        for second in range(needed + 1):
            self.report(second / needed, "views")
            clock[0] += 1.0
        return self.known["views"]

    monkeypatch.setattr(Vectors, "view_vectors", slow_views)
    monkeypatch.setattr(Vectors, "feature_time", lambda *of: (10.0 * (len(of) > 2), True))
    race = raced(of, budget=1.0, encoders=())
    assert [outcome.name for outcome in race.outcomes].index("Several views of each image") == 0
    of_views = race.outcomes[0]
    assert of_views.state == state
    others = [outcome for outcome in race.outcomes[1:] if outcome.setup.method == "frozen"]
    assert {outcome.state for outcome in others} == {"judged"}
    assert began[0] < 1
    if state == "judged":
        assert len(began) == 2, "at the end all of the time is theirs"
    else:
        assert (len(began), clock[0] < 10) == (1, True), "seconds are lost, not most of the minute"
        assert of_views.seconds == pytest.approx(needed, rel=0.1)


def test_a_training_whose_first_seconds_show_that_it_does_not_fit_is_given_up_at_once(
        monkeypatch: pytest.MonkeyPatch) -> None:
    of, clock, pace = material(), [0.0], [0.01]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def train_slowly(self: Vectors, setup: Setup) -> Vectors:
        for step in range(101):
            self.report(min(1.0, pace[0] * step), TRAINING)
            clock[0] += 1.0
        return Vectors(self.known, self._judged_by, name="plm")

    monkeypatch.setattr(Vectors, "of", train_slowly)
    race = raced(of, budget=1.0, encoders=())
    first = next(outcome for outcome in race.outcomes if outcome.setup.method != "frozen")
    assert first.state == "given up"
    assert first.seconds < 10, "not at the end of the budget"
    assert 95 < first.needs < 110
    assert "because it would take about" in outcome_words(first, race)
    assert find_gaps(race).needed > 95, "a longer race has room for it"
    pace[0] = 0.02  # a training that takes a little longer than is left is not given up by a rough forecast
    clock[0] = 0.0
    race = raced(material(), budget=1.0, encoders=())
    assert next(outcome for outcome in race.outcomes if outcome.setup.method != "frozen").seconds > 40


def test_time_spent_waiting_for_the_device_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    of, clock = material(), [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    train = Vectors.of

    def wait_and_train(self: Vectors, setup: Setup) -> Vectors:
        for step, seconds in ((WAITING, 500.0), (WAITING, 500.0), ("training", 3.0)):
            self.report(0.0, step)
            clock[0] += seconds
        self.report(1.0, "training")
        return train(self, setup)

    monkeypatch.setattr(Vectors, "of", wait_and_train)
    race = raced(of, budget=1.0)
    trained = [outcome for outcome in race.outcomes if outcome.setup.method != "frozen"]
    assert {outcome.state for outcome in trained} == {"judged", "not possible"}, "none is given up"
    assert max(outcome.seconds for outcome in race.outcomes) < 10
    assert {phase for phase in of.phases if phase.startswith(WAITING)} == {
        phase for phase in of.phases if "another run trains, and this time does not count" in phase} != set()
