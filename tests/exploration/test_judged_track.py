"""The jury and the track of a race: who judges, what is ranked, and how times are learned."""

from __future__ import annotations

import numpy as np
import pytest

from tests.numerics.test_second_opinion import noisy, world
from udml_core.base.errors import UserError
from udml_core.exploration.judged_track import JudgedTrack, Pace, rank
from udml_core.exploration.jury import Jury, combined, counted, independent
from udml_core.exploration.race import FROZEN, SHOWN_QUERIES, SHOWN_RESULTS, Outcome, Setup
from udml_core.exploration.race_clock import RaceProgress
from udml_core.exploration.race_measured import Count, Serves
from udml_core.exploration.race_running import Idea, OutOfTimeError, run_race
from udml_core.numerics.changed_groups import changed_groups
from udml_core.numerics.changed_results import Changed, changed_results
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement import Recipe, Refiner
from udml_core.numerics.second_opinion import Interval, Judge, judge_rankings

COUNT = 300
QUERIES = np.arange(0, COUNT, 2)


@pytest.fixture(autouse=True)
def names_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust the names, because the invented encoders of `world` share more neighbors than real ones."""
    monkeypatch.setattr("udml_core.data.judging.unknown_judges", lambda *_: ())


class Stored:
    """Embeddings whose rows are known, and whose seconds are counted by a clock of their own."""

    def __init__(self, rows: dict[str, np.ndarray], expected: float = 10.0, takes: float = 20.0) -> None:
        self.time, self._rows, self._expected, self._takes = 0.0, rows, expected, takes
        self.asked = list[str]()

    def clock(self) -> float:
        return self.time

    def rows(self, setup: Setup) -> np.ndarray:
        self.time += self._takes
        self.asked.append(setup.recipe)
        return self._rows["views" if setup.parsed.find("views") else setup.backbone]

    def seconds(self, setup: Setup) -> float:
        return self._expected if setup.parsed.find("views") or setup.backbone != "net" else 0.0

    def is_measured(self, setup: Setup) -> bool:
        return not self.seconds(setup)

    def run_of(self, setup: Setup) -> str:
        return setup.backbone

    def parts(self, setup: Setup) -> list[np.ndarray]:
        return [self._rows[part] for part in setup.backbone.split("+")] if "+" in setup.backbone else []


def track_of(embeddings: Stored, *judges: str, spent: float = 0.0) -> JudgedTrack:
    features = world(0)[1]
    jury = Jury({name: Judge.of(features) for name in judges}, QUERIES)
    return JudgedTrack(embeddings, jury, COUNT, spent, lambda setup: f"no judge for {setup.backbone}",
                       clock=embeddings.clock)


def test_an_encoder_that_took_part_does_not_judge_and_pixels_never_judge_alone() -> None:
    assert independent(("a", "b", "pixels"), {"a"}) == ("b", "pixels")
    assert independent(("a", "pixels"), {"a"}) == ()
    assert independent(("a", "b"), {"a", "b"}) == ()
    assert independent((), ()) == ()


def test_the_jury_gives_the_second_opinion_of_its_judges() -> None:
    embedding, features = world(1)
    before, after = (nearest(rows, 30, own=QUERIES)[1] for rows in (noisy(embedding, 1.0), embedding))
    judge = Judge.of(features)
    of = Jury({"judge": judge, "net": judge}, QUERIES).compare(before, after, {"net"})
    expected = judge_rankings(judge, QUERIES, before, after)
    assert of.judges == ("judge",)
    for measured, interval in ((of.first, expected.first_results), (of.groups, expected.groups)):
        assert (measured.verdict, measured.difference, measured.low, measured.high) == (
            interval.verdict, interval.difference, interval.low, interval.high)
    with pytest.raises(UserError, match="Every judge took part in one of the searches; got judge"):
        Jury({"judge": judge}, QUERIES).compare(before, after, {"judge"})


@pytest.mark.parametrize("serves", ["first", "groups"])
def test_examples_are_queries_whose_results_differ_with_the_results_of_both_searches(serves: Serves) -> None:
    embedding, _ = world(1)
    track, indices = track_of(Stored({"net": embedding}), "judge"), 5 + 2 * np.arange(COUNT)
    start, setup = Setup(backbone="net"), Setup(backbone="net", recipe="whiten")
    depth = Jury({"judge": Judge.of(world(0)[1])}, QUERIES).depth
    before = nearest(embedding, depth, own=QUERIES)[1].tolist()
    after = Refiner(Recipe.parse("whiten")).fit(embedding).neighbors(depth, QUERIES).indices.tolist()
    examples = track.examples(start, setup, indices, serves)
    assert len(examples) == len({of.query for of in examples}) == SHOWN_QUERIES
    for of in examples:
        row = int(np.flatnonzero(indices[QUERIES] == of.query)[0])
        expected = []
        for own, other in ((before[row], after[row]), (after[row], before[row])):
            ranked = [(image, rank) for rank, image in enumerate(own, 1) if serves == "first" or image not in other]
            expected.append(tuple((int(indices[image]), rank) for image, rank in ranked[:SHOWN_RESULTS]))
        assert [of.before, of.after] == expected
        assert (of.setup, of.serves) == (setup, serves)
        assert of.before[0] != of.after[0], "they differ"
    assert track.examples(start, start, indices, serves) == []


@pytest.mark.parametrize("backbone", ["timm:twin", "net+timm:twin"])
def test_a_judge_that_is_an_encoder_of_a_candidate_under_another_name_does_not_judge_it(backbone: str) -> None:
    embedding, features = world(1)
    turned = features @ np.linalg.qr(np.random.default_rng(0).normal(size=(24, 24)))[0]
    rows = {"net": embedding, "timm:twin": turned, "net+timm:twin": np.hstack([embedding, turned])}
    jury = Jury({"squeezenet": Judge.of(features)}, QUERIES)
    track = JudgedTrack(Stored(rows), jury, COUNT, refusal=lambda setup: f"no judge for {setup.backbone}")
    start, other = Setup(backbone="net"), Setup(backbone=backbone)
    assert track.compare(start, Setup(backbone="net", recipe="whiten")).judges == ("squeezenet",)
    assert track.refuses(start, other) == "", "nothing of it is known yet"
    with pytest.raises(UserError, match="Every judge took part"):
        track.compare(start, other)
    assert track.refuses(start, other) == f"no judge for {backbone}"
    assert track.refuses(start, start) == ""


def test_the_jury_counts_the_queries_whose_first_result_is_better_or_worse() -> None:
    embedding, features = world(1)
    before, after = (nearest(rows, 30, own=QUERIES)[1] for rows in (noisy(embedding, 1.0), embedding))
    judge = Judge.of(features)
    gains = [judge.whitened[query] @ judge.whitened[second] - judge.whitened[query] @ judge.whitened[first]
             for query, first, second in zip(QUERIES, before[:, 0], after[:, 0], strict=True) if first != second]
    of = Jury({"judge": judge}, QUERIES).compare(before, after, ())
    assert of.changed == len(gains) / len(QUERIES)
    assert of.better == pytest.approx(sum(gain > 0 for gain in gains) / len(QUERIES))
    assert of.worse == pytest.approx(sum(gain < 0 for gain in gains) / len(QUERIES))
    assert of.better > of.worse > 0
    few = after.copy()
    few[10:] = before[10:]
    told = Jury({"judge": judge}, QUERIES).compare(before, few, ())
    assert (told.better, told.worse) == (None, None), "too few differ"


def test_the_jury_counts_the_groups_and_stores_what_each_judge_measured() -> None:
    embedding, features = world(1)
    before, after = (nearest(rows, 30, own=QUERIES)[1] for rows in (noisy(embedding, 1.0), embedding))
    judge = Judge.of(features)
    of = Jury({"a": judge, "b": judge}, QUERIES).compare(before, after, ())
    expected, first = changed_groups(judge, QUERIES, before, after), changed_results(judge, QUERIES, before, after)
    assert of.whole == of.count("groups") == Count(
        changed=expected.share, better=expected.share * expected.better, worse=expected.share * (1 - expected.better),
        low=expected.share * expected.low, high=expected.share * expected.high)
    assert of.count("first") == Count(changed=of.changed or 0.0, better=of.better, worse=of.worse,
                                      low=first.share * first.low, high=first.share * first.high)
    assert (of.first.count, of.groups.count) == (of.count("first"), of.count("groups")), "the verdict knows them"
    alone = [measured.model_copy(update={"count": None}) for measured in (of.first, of.groups)]
    assert of.by_judge == dict.fromkeys(("a", "b"), tuple(alone))
    assert of.whole.low is not None
    assert of.whole.low > expected.share / 2, "more groups are better than worse"


def test_counts_of_several_judges_are_averaged_by_their_weights() -> None:
    both = [Changed(0.5, 0.6, 0.5, 0.7), Changed(0.5, 0.8, 0.7, 0.9)]
    assert counted(both, [3.0, 1.0]).model_dump() == pytest.approx({
        "changed": 0.5, "better": 0.325, "worse": 0.175, "low": 0.275, "high": 0.375})
    assert counted([Changed(0.1, 0.6, 0.0, 1.0)], [1.0]) == Count(changed=0.1)


def test_several_judges_vote_and_their_intervals_are_averaged() -> None:
    better, worse = Interval(0.2, 0.3, 0.01), Interval(0.3, 0.28, 0.005)
    of = combined([better, worse], [1.0, 1.0])
    assert of.verdict == "cannot tell"
    assert of.difference == pytest.approx(0.04)
    assert (of.low, of.high) == (pytest.approx((better.low + worse.low) / 2),
                                 pytest.approx((better.high + worse.high) / 2))
    assert combined([better, worse], [3.0, 1.0]).verdict == "better"
    assert combined([better, worse], [3.0, 1.0]).difference == pytest.approx(0.07)


def test_a_group_is_as_large_as_the_smallest_that_a_judge_sees() -> None:
    judges = {name: Judge.of(world(seed)[1]) for name, seed in (("judge", 1), ("net", 2))}
    assert Jury(judges, QUERIES).depth == min(judge.group for judge in judges.values())


def test_a_refined_search_ranks_as_its_refinement_and_a_plain_one_by_its_own_distance() -> None:
    rows = world(2)[0] * np.linspace(0.5, 2, COUNT)[:, None]
    plain, refined = (rank(rows, Recipe.parse(text), bool(text), QUERIES, 30) for text in ("", "whiten+average:k=5"))
    np.testing.assert_array_equal(plain, nearest(rows, 30, own=QUERIES)[1])
    expected = Refiner("whiten+average:k=5").fit(rows).neighbors(30, QUERIES).indices
    np.testing.assert_array_equal(refined, expected)
    unit = rank(rows, Recipe(), True, QUERIES, 30)  # only views
    assert (unit != plain).any(), "a refinement compares by the cosine"


def test_better_embeddings_win_and_embeddings_are_computed_once() -> None:
    embedding = world(0)[0]
    stored = Stored({"net": noisy(embedding, 1.0), "views": embedding})
    track = track_of(stored, "judge", "net")
    start, viewed = Setup(backbone="net"), Setup(backbone="net", recipe="views")
    assert track.compare(start, viewed).first.verdict == "better"
    assert track.compare(viewed, Setup(backbone="net", recipe="views+average:k=3")).judges == ("judge",)
    assert stored.asked == ["", "views"]
    assert track.elapsed() == 40


def test_a_search_without_a_judge_is_refused_with_a_reason() -> None:
    track = track_of(Stored({}), "judge", "pixels")
    own, other = Setup(backbone="net"), Setup(backbone="judge")
    assert track.refuses(own, own) == ""
    assert track.refuses(own, other) == "no judge for judge"


def test_expected_times_follow_what_was_measured_and_the_earlier_attempt_counts() -> None:
    stored = Stored({"net": world(0)[0], "views": world(0)[0], "other": world(0)[0]})
    track = track_of(stored, "judge", spent=7.0)
    start, viewed, other = (Setup(backbone="net"), Setup(backbone="net", recipe="views"),
                            Setup(backbone="other", recipe="views"))
    assert track.elapsed() == 7
    track.compare(start, start)
    before = track.expects(viewed)
    assert 10 < before < 11
    track.compare(start, viewed)
    assert track.expects(viewed) < 1, "its embeddings are there"
    assert track.expects(other) == pytest.approx(before + 10, abs=0.5), "encoding took twice as long as expected"
    assert track.elapsed() == 47


def test_a_time_is_known_after_a_search_and_work_of_its_kind_were_measured() -> None:
    track = track_of(Stored({"net": world(0)[0], "views": world(0)[0]}), "judge")
    start, viewed = Setup(backbone="net"), Setup(backbone="net", recipe="views")
    assert not track.is_measured(start), "no search was measured"
    track.compare(start, start)
    assert track.is_measured(Setup(backbone="net", recipe="whiten"))
    assert not track.is_measured(viewed)
    track.compare(start, viewed)
    assert track.is_measured(Setup(backbone="other", recipe="views")), "encoding was measured"


class Busy:
    """Trainings that are expected to take 20 s each and take longer on a busy machine; each tells its share."""

    def __init__(self, rows: np.ndarray, seconds: dict[str, float], budget: float = 600.0) -> None:
        self.time, self.left = 0.0, list[tuple[str, float, float]]()
        self._rows, self._seconds, self._budget = rows, seconds, budget
        self.progress = RaceProgress(lambda _share, _step: None, self.clock, budget)

    def clock(self) -> float:
        return self.time

    def parts(self, _setup: Setup) -> list[np.ndarray]:
        return []

    def rows(self, setup: Setup) -> np.ndarray:
        if setup.method == FROZEN:
            return self._rows
        for step in range(1, 11):
            self.time += self._seconds[setup.method] / 10
            if self.time > self._budget:
                raise OutOfTimeError("the time is up", step / 10)
            self.progress(step / 10, f"training: {setup.method}")
            self.left.append((setup.method, self.time, self.progress.seconds_left() or 0.0))
        return self._rows

    def seconds(self, setup: Setup) -> float:
        return 0.0 if setup.method == FROZEN else 20.0

    def is_measured(self, _setup: Setup) -> bool:
        return True

    def run_of(self, setup: Setup) -> str:
        return setup.method


def raced(busy: Busy, budget: float = 600.0) -> tuple[JudgedTrack, list[Outcome]]:
    """Run a race of trainings alone, after a search was measured."""
    track = JudgedTrack(busy, Jury({"judge": Judge.of(world(0)[1])}, QUERIES), COUNT, clock=busy.clock,
                        announce=busy.progress.announce)
    start = Setup(backbone="net")
    track.compare(start, start)
    ideas = [Idea(name, lambda best, name=name: best.model_copy(update={"method": name}), trains=True)
             for name in busy._seconds]
    return track, list(run_race(start, ideas, track, "first", budget))


def test_the_time_left_on_a_busy_machine_is_never_less_than_what_is_known() -> None:
    busy = Busy(world(0)[0], dict.fromkeys("abcd", 60.0))
    raced(busy)
    for method, now, left in busy.left:
        if now > 6:  # the first share: the machine is three times as slow as expected
            assert left == pytest.approx(240 - now, abs=3), method


def test_the_time_left_is_at_most_the_rest_of_the_race_and_falls_again_with_the_load() -> None:
    busy = Busy(world(0)[0], {"a": 60.0, "b": 20.0, "c": 20.0}, 90.0)
    raced(busy, 90.0)
    assert all(left <= max(0.0, 90 - now) for _, now, left in busy.left)
    own = [left for method, now, left in busy.left if method == "b" and now > 62]
    assert own == sorted(own, reverse=True)


@pytest.mark.parametrize(("given_up", "expected"), [(True, 200.0), (False, 100.0)])
def test_a_training_that_was_given_up_tells_how_long_others_take(given_up: bool, expected: float) -> None:
    busy = Busy(world(0)[0], {"a": 200.0 if given_up else 100.0}, 150.0)
    track, (outcome,) = raced(busy, 150.0)
    assert outcome.state == ("given up" if given_up else "judged")
    assert track.expects(Setup(backbone="net", method="b")) == pytest.approx(expected, rel=0.11)


def test_a_training_that_was_given_up_without_a_share_took_at_least_its_time() -> None:
    class Silent(Busy):
        def rows(self, setup: Setup) -> np.ndarray:
            if setup.method != FROZEN:
                self.time += self._seconds[setup.method]
                raise OutOfTimeError("the time is up")
            return super().rows(setup)

    track, _ = raced(Silent(world(0)[0], {"a": 90.0}))
    assert track.expects(Setup(backbone="net", method="b")) == pytest.approx(90, abs=1)
    track, _ = raced(Silent(world(0)[0], {"a": 5.0}))
    assert track.expects(Setup(backbone="net", method="b")) == pytest.approx(20, abs=1), "a short try tells nothing"


def test_a_pace_learns_each_kind_of_work_by_itself() -> None:
    pace = Pace()
    assert pace.correct("search", 3.0) == 3.0
    pace.note("search", 1.0, 2.0)
    pace.note("search", 3.0, 4.0)
    assert pace.correct("search", 10.0) == pytest.approx(15.0)
    assert pace.correct("encode", 10.0) == 10.0


def test_a_busy_machine_slows_all_trainings_down_alike() -> None:
    rows = world(0)[0]
    stored = Stored({"net": rows, "other": rows}, expected=10.0, takes=30.0)
    track = track_of(stored, "judge")
    start, plm, distill = (Setup(backbone=name, method=method) for name, method in (
        ("net", "frozen"), ("other", "plm"), ("other", "distill")))
    track.compare(start, start)
    assert track.expects(plm) == pytest.approx(10, abs=0.5)
    track.compare(start, plm)
    assert track.expects(distill) == pytest.approx(30, abs=0.5), "the first training took three times as long"
    assert not track.is_measured(distill), "this method was not measured"
