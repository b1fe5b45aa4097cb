"""Sessions of blind judgments by simulated people: coverage at every stop, order, sides, undo, resuming, files."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chi2

from tests.tiers import fast_first
from udml_core.base.errors import UserError
from udml_core.data.dataset import ArrayImages, Dataset
from udml_core.data.given.judged_pairs import choose_meaning
from udml_core.data.given.log import log_path_of
from udml_core.exploration.race_conclusion import STAYS
from udml_core.runs.search import judgment_files as files
from udml_core.runs.search.differing import Comparison, comparison_key, draw_queries
from udml_core.runs.search.judged_runs import stance_of
from udml_core.runs.search.judging import Agreement, Choice, Judging, Target
from udml_core.runs.search.judging_words import (
    advice_words,
    agreement_words,
    interval_words,
    result_parts,
    result_words,
    score_words,
    waiting_words,
)

TOTAL, MOST = 60, 40
"""Number of differing queries of a simulated comparison, and of judgments in its longest session."""
SESSIONS = 100
MOST_MISSED = 9
"""Five of 100 intervals may miss; at most 9 do in 97 of 100 such tests."""


@pytest.fixture(autouse=True)
def without_pointer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the file by which a moved folder finds its log: writing it takes ten times as long as an answer."""
    monkeypatch.setattr("udml_core.data.given.log._write_pointer", lambda *_: None)


def comparison_of(session: int | str, total: int = TOTAL, swapped: bool = False) -> Comparison:
    """Return a comparison whose queries 0 to total − 1 differ; the image of A for query q is total + q."""
    names = tuple(f"{number:03}.png" for number in range(3 * total))
    pixels = np.broadcast_to(np.zeros((), np.uint8), (3 * total, 2, 2))
    dataset = Dataset("set", "Set", ArrayImages(pixels), None, (), f"{session}-{total}", 2, True, names)
    key = (f"run-{session}:final", f"run-{session}:frozen")
    order = draw_queries(dataset, np.arange(total), comparison_key(key, "test"))
    candidates = np.stack([total + order, 2 * total + order], axis=1)
    return Comparison(dataset, key[::-1] if swapped else key, "test", 3 * total, 2 * total, order,
                      candidates[:, ::-1] if swapped else candidates)


class Person:
    """A simulated person with an answer to every query, who may err and call both equal.

    Most queries with small numbers are better in B and most others in A, so that any order but a random one is unfair.
    """

    def __init__(self, seed: int, share: float, error: float, equal: float = 0.1) -> None:
        rng = np.random.default_rng(seed)
        is_better = np.arange(TOTAL) < share * TOTAL
        is_better ^= rng.random(TOTAL) < error
        self.values = np.where(rng.random(TOTAL) < equal, 0.5, is_better)

    def choose(self, judging: Judging) -> Choice:
        """Return the person's choice about the session's question."""
        question = judging.question()
        assert question is not None
        value = self.values[question.query]
        is_second_left = question.left[0] >= 2 * TOTAL
        return "equal" if value == 0.5 else "left" if is_second_left == (value == 1) else "right"

    def answer(self, judging: Judging) -> None:
        """Answer the session's question."""
        question = judging.question()
        assert question is not None
        assert judging.answer(question, self.choose(judging))


def covers(low: float, high: float, values: Sequence[np.ndarray]) -> bool:
    """Return whether an interval holds the share that people would find in all queries."""
    return bool(low - 1e-3 <= np.mean(values) <= high + 1e-3)


def misses(share: float, error: float, sessions: int) -> int:
    """Return how many sessions of one person miss the share at some stop."""
    missed = 0
    for session in range(sessions):
        judging, person = Judging(comparison_of(f"{share}-{error}-{sessions}-{session}")), Person(session, share, error)
        for _ in range(MOST):
            person.answer(judging)
        at_last = judging.share("me")  # intervals only shrink, so it is within the intervals of all stops before
        missed += not covers(at_last.low, at_last.high, [person.values])
    return missed


@pytest.mark.parametrize(("share", "error", "sessions"), fast_first([
    (0.8, 0.1, 25), (0.8, 0.1, SESSIONS), (0.5, 0.0, SESSIONS), (0.5, 0.3, SESSIONS), (0.2, 0.1, SESSIONS),
    (1.0, 0.2, SESSIONS)]))
def test_the_interval_of_a_session_holds_the_share_at_every_stop(share: float, error: float, sessions: int) -> None:
    assert misses(share, error, sessions) <= MOST_MISSED * sessions / SESSIONS


def test_a_later_stop_lies_within_the_stops_before() -> None:
    judging, person = Judging(comparison_of("stops")), Person(0, 0.7, 0.1)
    stops = [judging.share("me")]
    for _ in range(TOTAL):
        person.answer(judging)
        stops.append(judging.share("me"))
        assert stops[-2].low - 1e-9 <= stops[-1].low <= stops[-1].high <= stops[-2].high + 1e-9
    assert stops[-1].low == pytest.approx(person.values.mean())
    assert judging.question() is None


@pytest.mark.parametrize("sessions", fast_first([8, SESSIONS]))
def test_two_people_who_stop_when_they_please_cover_their_common_share(sessions: int) -> None:
    """They judge in turns of any length, stop at their own decision, and the interval must hold after each answer."""
    missed = 0
    for session in range(sessions):
        rng, comparison = np.random.default_rng(session), comparison_of(f"two-{sessions}-{session}")
        people = {"Ana": Person(session, 0.6, 0.0, 0.0), "Ben": Person(1000 + session, 0.6, 0.4, 0.3)}
        truth, active, failed = [person.values for person in people.values()], list(people), False
        while active:
            judging = Judging(comparison, str(rng.choice(active)))
            for _ in range(rng.integers(1, 15)):
                people[judging.judge].answer(judging)
                if judging.share(judging.judge).is_decided or judging.count(judging.judge) == MOST:
                    active.remove(judging.judge)
                    break
            both = judging.shared_share()
            failed |= len(judging.people()) == 2 and not covers(both.low, both.high, truth)
        missed += failed
    assert missed <= MOST_MISSED * sessions / SESSIONS


def test_several_people_count_as_their_mean_where_all_have_judged() -> None:
    comparison = comparison_of("mean")
    people = {"Ana": Person(1, 0.9, 0.0), "Ben": Person(2, 0.1, 0.0), "Cy": Person(3, 0.5, 0.5)}
    for name, count in (("Ana", 9), ("Ben", 4), ("Cy", 6)):
        judging = Judging(comparison, name)
        for _ in range(count):
            people[name].answer(judging)
    first_four = comparison.differing[:4]
    both = Judging(comparison, "Ben").shared_share()
    assert both.count == 4
    assert both.mean == pytest.approx(np.mean([person.values[first_four] for person in people.values()]))
    assert Judging(comparison, "Ben").people() == ["Ben", "Ana", "Cy"]
    assert Judging(comparison, "Dee").shared_share() == both, "a newcomer without a judgment changes nothing"


def test_agreement_counts_the_queries_that_two_people_have_judged() -> None:
    comparison = comparison_of("agreement")
    assert agreement_words(Judging(comparison, "Ana")) == ""
    for name, sides in (("Ana", "AAB="), ("Ben", "ABB"), ("Cy", "B")):
        judging = Judging(comparison, name)
        for side in sides:
            question = judging.question()
            assert question is not None
            is_left_second = question.left == comparison.options(question.position)[1]
            judging.answer(question, "equal" if side == "=" else "left" if is_left_second == (side == "B") else "right")
        if name == "Ben":
            assert judging.agreement() == Agreement(pairs=3, same=2, opposite=1)
            assert agreement_words(judging) == (
                "Ben and Ana agree on 2 of 3 queries that both judged; on 1 they contradict each other.")
    assert agreement_words(judging) == (
        "The judges agree on 2 of 5 shared answers, over all pairs of 3 people; on 3 they contradict each other.")


@pytest.mark.parametrize("sessions", fast_first([20, SESSIONS]))
def test_slips_that_are_undone_and_sessions_that_are_resumed_keep_the_coverage(sessions: int) -> None:
    missed = 0
    for session in range(sessions):
        rng, comparison = np.random.default_rng(session), comparison_of(f"undo-{sessions}-{session}")
        judging, person = Judging(comparison), Person(session, 0.7, 0.1)
        while judging.count("me") < MOST:
            if rng.random() < 0.2 and (question := judging.question()):
                judging.answer(question, str(rng.choice(["left", "right", "equal"])))  # type: ignore[arg-type]
                assert judging.undo() == judging.question() == question
            if rng.random() < 0.1:
                for _ in range(rng.integers(1, 4)):
                    judging.undo()
            if rng.random() < 0.3:
                judging = Judging(comparison)
            person.answer(judging)
        expected = person.values[comparison.differing[:MOST]].tolist()
        assert judging.values("me") == Judging(comparison).values("me") == expected
        at_last = judging.share("me")
        missed += not covers(at_last.low, at_last.high, [person.values])
    assert missed <= MOST_MISSED * sessions / SESSIONS


def test_every_order_of_the_queries_is_equally_likely() -> None:
    """All 24 orders of 4 queries over 4,800 comparisons; a fair draw stays below the bound in 999 of 1,000 tests."""
    dataset = comparison_of("order").dataset
    drawn = Counter(tuple(draw_queries(dataset, np.arange(4), f"comparison {number}").tolist())
                    for number in range(4_800))
    statistic = sum((drawn[order] - 200) ** 2 / 200 for order in permutations(range(4)))
    assert statistic < chi2.ppf(0.999, 23)


def test_the_order_stays_when_images_are_excluded_or_added() -> None:
    dataset = comparison_of("stays").dataset
    every, some = (draw_queries(dataset, np.arange(0, TOTAL, step), "key") for step in (1, 3))
    assert [query for query in every.tolist() if query % 3 == 0] == some.tolist()
    assert sorted(every.tolist()) == list(range(TOTAL))
    assert draw_queries(dataset, np.arange(TOTAL), "another key").tolist() != every.tolist()


def test_sides_are_fair_and_tell_nothing_about_the_embedding_the_person_or_the_order() -> None:
    total = 2_000
    comparison = comparison_of("sides", total)
    sides = np.array([[comparison.is_swapped(judge, position) for position in range(total)]
                      for judge in ("me", "Ana")], float)
    noise = 4 / np.sqrt(total)
    assert abs(sides[0].mean() - 0.5) < noise / 2
    for first, second in ((sides[0], sides[1]), (sides[0][1:], sides[0][:-1]), (sides[0], comparison.differing),
                          (sides[0], np.arange(total))):
        assert abs(np.corrcoef(first, second)[0, 1]) < noise


def test_each_person_sees_sides_of_their_own_and_a_question_of_another_person_has_that_persons_sides() -> None:
    judging, ana = (Judging(comparison_of("persons"), judge) for judge in ("me", "Ana"))
    own, others = ([of.question_at(position) for position in range(40)] for of in (judging, ana))
    assert [question.query for question in own] == [question.query for question in others]
    assert 5 < sum(question != other for question, other in zip(own, others, strict=True)) < 35
    assert [judging.question_at(position, "Ana") for position in range(40)] == others
    swapped = [question.left == judging.comparison.options(position)[1] for position, question in enumerate(own)]
    assert swapped == [judging.comparison.is_swapped("me", position) for position in range(40)]


def test_a_person_who_always_presses_the_same_key_decides_nothing() -> None:
    decided = 0
    for session in range(20):
        judging = Judging(comparison_of(f"lazy-{session}"))
        while judging.count("me") < MOST and (question := judging.question()):
            judging.answer(question, "left")
        decided += judging.share("me").is_decided
    assert decided <= 2


def test_exchanging_the_embeddings_mirrors_the_result_and_shows_the_same_questions() -> None:
    judging, person = Judging(comparison_of("mirror"), "Ana"), Person(4, 0.8, 0.1)
    for _ in range(20):
        person.answer(judging)
    exchanged = Judging(comparison_of("mirror", swapped=True), "Ana")
    assert exchanged.question() == judging.question()
    assert [exchanged.question_at(position) for position in range(20)] == [
        judging.question_at(position) for position in range(20)]
    share, mirrored = judging.share("Ana"), exchanged.share("Ana")
    assert mirrored.count == 20
    assert mirrored.mean == pytest.approx(1 - share.mean)
    assert (mirrored.low, mirrored.high) == (pytest.approx(1 - share.high), pytest.approx(1 - share.low))
    assert (result_words(share, judging.comparison, ("X", "Y"))
            == result_words(mirrored, exchanged.comparison, ("Y", "X")))


def test_a_key_that_is_pressed_twice_answers_once() -> None:
    judging = Judging(comparison_of("twice"))
    question = judging.question()
    assert question is not None
    assert judging.answer(question, "left")
    assert not judging.answer(question, "right")
    assert not Judging(judging.comparison).answer(question, "right")
    assert judging.count("me") == 1
    assert judging.undo() == question
    assert judging.undo() is None


def test_a_lost_line_is_asked_again_and_later_judgments_wait_for_it() -> None:
    comparison, person = comparison_of("lost"), Person(5, 0.7, 0.0)
    judging = Judging(comparison)
    for _ in range(10):
        person.answer(judging)
    path = log_path_of(comparison.dataset, "judgments")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], lines[3][:25] + b"\n", *lines[4:]]))
    resumed = Judging(comparison)
    question = resumed.question()
    assert question is not None
    assert (resumed.count("me"), question.position) == (3, 3)
    person.answer(resumed)
    assert resumed.count("me") == 10
    assert resumed.values("me") == judging.values("me")


def test_judgments_about_other_images_are_left_out_and_return_with_them() -> None:
    comparison, person = comparison_of("changed"), Person(6, 0.7, 0.0)
    judging = Judging(comparison)
    for _ in range(6):
        person.answer(judging)
    dataset, kept = comparison.dataset, comparison.differing != comparison.differing[2]
    excluded = Comparison(dataset, comparison.names, "test", 3 * TOTAL - 1, 2 * TOTAL - 1, comparison.differing[kept],
                          comparison.candidates[kept])
    expected = judging.values("me")
    assert Judging(excluded).values("me") == expected[:2] + expected[3:]
    others = comparison.candidates.copy()
    others[4, 0] = 0  # another nearest image in A
    changed = Comparison(dataset, comparison.names, "test", 3 * TOTAL, 2 * TOTAL, comparison.differing, others)
    assert Judging(changed).values("me") == expected[:4]
    assert Judging(comparison).values("me") == expected


def test_a_file_brings_another_persons_judgments_once() -> None:
    comparison, judging = comparison_of("file"), Judging(comparison_of("file"), "Ana")
    person = Person(7, 0.8, 0.1)
    for _ in range(8):
        person.answer(judging)
    written = files.write_judgments(judging)
    log_path_of(comparison.dataset, "judgments").unlink()
    here = Judging(comparison, "Ben")
    imported = files.read_judgments(written, "ana.json", here)
    assert (imported.judges, imported.added, imported.known, imported.ignored) == (("Ana",), 8, 0, 0)
    assert Judging(comparison).values("Ana") == here.values("Ana") == judging.values("Ana")
    again = files.read_judgments(written, "ana.json", here)
    assert (again.judges, again.added, again.known) == ((), 0, 8)
    exchanged = files.read_judgments(written, "ana.json", Judging(comparison_of("file", swapped=True)))
    assert exchanged.known == 8


def test_namesakes_with_other_answers_stay_two_people() -> None:
    comparison = comparison_of("namesakes")
    judging = Judging(comparison)
    for _ in range(5):
        Person(8, 1.0, 0.0, 0.0).answer(judging)
    written = files.write_judgments(judging)
    log_path_of(comparison.dataset, "judgments").unlink()
    here = Judging(comparison)
    for _ in range(3):
        Person(8, 0.0, 0.0, 0.0).answer(here)
    assert files.read_judgments(written, "theirs.json", here).judges == ("me (2)",)
    assert here.values("me") == [0, 0, 0]
    assert here.values("me (2)") == [1] * 5
    assert files.read_judgments(written, "theirs.json", here).added == 0


def test_unsuitable_files_are_refused_with_the_fix() -> None:
    judging = Judging(comparison_of("refused"))
    Person(9, 0.5, 0.0).answer(judging)
    good = json.loads(files.write_judgments(judging))
    other = Judging(comparison_of("other"))
    for content, message in (
            (b"\xff", "could not be read"), (b"[]", "has the format 'list'"), (b'{"format": 3}', "has the format 3"),
            (json.dumps(good | {"judgments": [1, {}]}).encode(), "has no judgments"),
            (json.dumps(good | {"gallery": "all"}).encode(), "gallery 'all'"),
            (json.dumps(good | {"judgments": [good["judgments"][0] | {"query": "gone.png"}]}).encode(),
             "None of the 1 judgments")):
        with pytest.raises(UserError, match=message):
            files.read_judgments(content, "file.json", judging)
    with pytest.raises(UserError, match="Choose the embeddings of the file"):
        files.read_judgments(json.dumps(good).encode(), "file.json", other)


def test_the_table_names_the_better_embedding() -> None:
    judging, person = Judging(comparison_of("table"), "Ana"), Person(10, 0.5, 0.0, 0.3)
    for _ in range(12):
        person.answer(judging)
    title, *rows = files.write_table(judging).decode().splitlines()
    assert title == "judge,number,query,image of A,image of B,better"
    assert [row.split(",")[-1] for row in rows] == [{0: "A", 1: "B", 0.5: "equal"}[value]
                                                    for value in judging.values("Ana")]
    query = int(judging.comparison.differing[3])
    assert rows[3].startswith(f"Ana,4,{query:03}.png,{TOTAL + query:03}.png,{2 * TOTAL + query:03}.png,")


def test_the_words_name_the_leader_the_range_and_what_is_left() -> None:
    judging = Judging(comparison_of("words"))
    assert result_words(judging.share("me"), judging.comparison) == "No judgments yet (differing: 50 % of all)"
    assert advice_words(judging) == (
        "Not decided yet: nothing is judged. Judge 20: they decide if one search is far better; a smaller "
        "difference takes 50 or more. Each answer is kept, so you can go on another day.")
    worst = Person(11, 0.0, 0.0, 0.0)
    for _ in range(9):
        worst.answer(judging)
    share = judging.share("me")
    assert result_words(share, judging.comparison) == (
        f"After 9 judgments: A finds the better image in {interval_words(share)} % of the "
        "differing queries, an equal one counted as half (differing: 50 % of all)")
    ruled_out = "Chance is ruled out with 95 % certainty."
    assert advice_words(judging) == f"Decided: you can stop here. 9 of 9 for A. {ruled_out}"
    assert advice_words(judging, is_blind=True) == f"Decided: you can stop here. {ruled_out}"
    what, sure = result_parts(judging, ("plain", "whitened"))
    assert what == "Plain finds the better image more often. You can stop."
    assert sure == "How sure: 9 of 9 for plain; that is too one-sided for chance (95 % certainty)."
    level = Judging(comparison_of("level"))
    while question := level.question():
        level.answer(question, "equal")
    assert advice_words(level) == (
        "All 60 differing queries are judged: both are equally good. 0 of 60 for A, 60 equal.")


def test_the_forecast_is_steady_and_blind_words_do_not_tell_which_answers_fall_together() -> None:
    judging, person = Judging(comparison_of("steady")), Person(12, 0.55, 0.0, 0.3)
    shown = []
    while judging.count("me") < 29 and not judging.share("me").is_decided:
        person.answer(judging)
        shown.append((judging.count("me"), advice_words(judging, is_blind=True), advice_words(judging)))
    assert len(shown) == 29, "the two are nearly level"
    values = judging.values("me")
    first, second, equal = (values.count(value) for value in (0.0, 1.0, 0.5))
    assert f" {second} of 29 for B, {first} for A, {equal} equal." in shown[-1][2]
    assert f" 29 judged, {equal} of them equal." in shown[-1][1]
    forecasts = [re.split(r"\d+(?: of 20)? judged, \d+ of them equal\. ?", blind)[1] for _, blind, _ in shown]
    assert set(forecasts[:19]) == {""}, "one plan of 20, and only the progress until then"
    assert all(f"Not decided yet. {count} of 20 judged, " in what for count, what, _ in shown[:19])
    assert len(set(forecasts[19:])) == 1, "within ten answers the forecast stays"


@pytest.mark.parametrize(("total", "said"), [(TOTAL, f"all {TOTAL} queries would not decide either"),
                                             (600, "more than 100 would be needed")])
def test_level_embeddings_need_more_judgments_than_are_left_which_20_judgments_tell(total: int, said: str) -> None:
    judging = Judging(comparison_of(f"level of {total}", total))
    answer(judging, "AB" * 9 + "A")
    assert advice_words(judging) == "Not decided yet. 19 of 20 judged: 10 of 19 for A, 9 for B."
    answer(judging, "B")
    assert advice_words(judging).startswith(f"20 judgments cannot tell which is better; {said}. You can stop, and ")


HOPELESS = "judgments cannot tell which is better; more than 100 would be needed"


@pytest.mark.parametrize(("choices", "said"), [
    ("ABABABABA=", "Not decided yet. 10 of 20 judged: "),  # too few to stop
    ("ABABABABA=BBBBBB", "Not decided yet. 16 of 20 judged: "),  # as a curator judged, and then read: stop, and keep A
    ("ABABABABA=BBBBBBAB=B", "Not decided yet."),
    ("AB" * 10, f"20 {HOPELESS}. You can stop, and keep A."),
    ("AB" * 10 + "BBA=B", f"25 {HOPELESS}. You can stop; either will do."),
    ("AB" * 10 + "B" * 10, f"30 {HOPELESS}. You can stop; either will do."),
    ("AB" * 10 + "B" * 20, "Not decided yet.")])
def test_stopping_follows_all_answers_and_keeps_no_search_that_is_behind(choices: str, said: str) -> None:
    judging = Judging(comparison_of(f"stop {choices}", 600))
    for better in choices:
        question = judging.question()
        assert question is not None
        is_second_left = question.left == judging.comparison.options(question.position)[1]
        judging.answer(question, "equal" if better == "=" else "left" if is_second_left == (better == "B") else "right")
    assert advice_words(judging).startswith(said)
    assert (stance_of(judging) == "level") == ("stop" in said), "the race's card follows the same rule"


def answer(judging: Judging, choices: str) -> None:
    """Answer for A, for B, or = for neither."""
    for better in choices:
        question = judging.question()
        assert question is not None
        is_second_left = question.left == judging.comparison.options(question.position)[1]
        judging.answer(question, "equal" if better == "=" else "left" if is_second_left == (better == "B") else "right")


@pytest.mark.parametrize(("choices", "total", "growth"), [
    ("BBBABBABB=", 30, ""), ("BBBABBABB=" "BABABAB=BB", 50, "less one-sided"),
    ("=BBAB=B==B" "ABABBBABBB", 30, ""),  # as one-sided as before: the number does not rise
    ("BBBABBABB=" "AABAABAAA=", None, "against each other"), ("ABABABABA=", None, "")])
def test_the_number_of_judgments_in_all_grows_only_for_a_true_reason(choices: str, total: int | None, growth: str
                                                                     ) -> None:
    judging = Judging(comparison_of(f"target {choices}", 600))
    answer(judging, choices)
    assert judging.target() == Target(total, len(choices), growth)  # type: ignore[arg-type]
    assert "That is more than" not in advice_words(judging), "no number was shown before"


@pytest.mark.parametrize("seed", range(4))
def test_the_number_stays_within_ten_answers_and_never_rises_without_a_reason(seed: int) -> None:
    judging, person = Judging(comparison_of(f"stays {seed}")), Person(seed, 0.7, 0.0, 0.1)
    before: Target | None = None
    while judging.count("me") < 60 and not judging.share("me").is_decided:
        person.answer(judging)
        target, values = judging.target(), judging.values("me")
        assert (target is None) == (len(values) < 10)
        if target is None or judging.share("me").is_decided:
            continue
        assert target.total is None or target.total > len(values) - 1
        if before is not None and len(values) % 10:
            assert target == before, "no answer tells which others fall together with it"
        elif before is not None and before.total is not None and (target.total or 101) > before.total:
            earlier, since, both = (abs(np.mean(of) - 0.5) for of in (values[:-10], values[-10:], values))
            assert target.growth == ("less one-sided" if since < earlier else "against each other" if both < earlier
                                     else "not enough")
        before = target


@pytest.mark.parametrize(("choices", "said"), [
    ("BBBABBABB=" "BABABAB=BB", "About 50 judgments in all could decide, if the next answers are like the "
     "first 20."),
    ("BBBABBABB=" "BABABAB=BB" "BAABABABBA", "That is more than after 20, because the answers since then are less "
     "one-sided.")])
def test_the_words_of_a_forecast_follow_twenty_judgments(choices: str, said: str) -> None:
    judging = Judging(comparison_of(f"forecast {choices}", 600))
    answer(judging, choices)
    for more in range(2):
        assert advice_words(judging).endswith(said), "the sentence stays the same"
        answer(judging, "AB"[more])


@pytest.mark.parametrize(("answers", "stops"), [
    ("AAAAB" + 15 * "=", True), ("AAAABAAB" + 12 * "=", True), ("AAAABAABA" + 11 * "=", False),
    ("AAAB" + 15 * "=", False)])
def test_the_two_hardly_differ_where_most_of_twenty_judgments_are_equal(answers: str, stops: bool) -> None:
    judging = Judging(comparison_of("equal", 600))
    answer(judging, answers)
    said = "20 judgments cannot tell which is better; most results were equal. You can stop"
    assert advice_words(judging).startswith(f"{said}, and keep A.") is stops
    assert advice_words(judging, has_plain=True).startswith(f"{said}. {STAYS}") is stops
    blind = advice_words(judging, is_blind=True)
    assert blind.startswith(f"{said}.") is stops
    assert "eep" not in blind, "neither is named before the reveal"


def test_the_counts_come_first_and_the_interval_says_what_it_is_of() -> None:
    judging = Judging(comparison_of("bird photographs", 600))
    answer(judging, "BABB=BA" + 13 * "=")
    what, sure = result_parts(judging, ("plain", "whitened"), has_plain=True)
    assert what == f"20 judgments cannot tell which is better; most results were equal. You can stop. {STAYS}"
    assert sure.startswith("How sure: 4 of 20 for whitened, 2 for plain, 14 equal; with an equal answer as half, the "
                           "share of whitened is ")
    assert result_words(judging.share("me"), judging.comparison, score=score_words(judging, "me")).startswith(
        "After 20 judgments (4 of 20 for B, 2 for A, 14 equal): either may be better: with an equal answer as half")


def test_three_answers_find_neither_better_and_are_counted_apart() -> None:
    judging = Judging(comparison_of("apart"))
    for choice in ("both right", "both wrong", "unsure", "both right", "equal"):
        question = judging.question()
        assert question is not None
        judging.answer(question, choice)  # type: ignore[arg-type]
    again = Judging(judging.comparison)
    assert again.values("me") == [0.5] * 5
    assert again.score("me") == Counter({"both right": 2, "both wrong": 1, "unsure": 1, "equal": 1})
    assert score_words(again, "me") == "0 of 4 for A, 4 equal (both right 2, both wrong 1); 1 not sure"
    assert advice_words(again, is_blind=True) == (
        "Not decided yet. 4 of 20 judged, 4 of them equal (both right 2, both wrong 1); 1 not sure.")
    assert b"both wrong" in files.write_table(again)
    assert [row["equal"] for row in json.loads(files.write_judgments(again))["judgments"][:3]] == [
        "both right", "both wrong", "unsure"]


def test_answers_under_other_words_are_set_apart_until_the_user_says_that_they_mean_the_same() -> None:
    judging = Judging(comparison_of("words for the same"))
    person = Person(3, 0.5, 0.0)
    for _ in range(4):
        person.answer(judging)
    values = judging.values("me")
    choose_meaning(judging.comparison.dataset, "one bird")
    assert Judging(judging.comparison).values("me") == values, "the first words describe the answers before them"
    choose_meaning(judging.comparison.dataset, "one species")
    other = Judging(judging.comparison)
    assert (other.count("me"), other.elsewhere()) == (0, {"one bird": 4})
    assert other.question() == judging.question_at(0), "the order starts again, so that the sample stays uniform"
    person.answer(other)
    assert other.undo() is not None
    assert Judging(judging.comparison).elsewhere() == {"one bird": 4}, "undo reverts an answer under the current words"
    person.answer(other)
    choose_meaning(judging.comparison.dataset, "one bird")
    assert Judging(judging.comparison).values("me") == values
    assert Judging(judging.comparison).elsewhere() == {"one species": 1}
    choose_meaning(judging.comparison.dataset, "one species")
    kept = Judging(judging.comparison)
    kept.keep_elsewhere()
    assert kept.elsewhere() == Judging(judging.comparison).elsewhere() == {}
    assert sorted(kept.values("me")) == sorted(values)
    assert waiting_words({"": 1, "a bird": 2}, "one species") == (
        "Not counted under the words one species: 1 judgment without words and 2 judgments for a bird.")
