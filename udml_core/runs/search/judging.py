"""A session of blind judgments: the next query, the answers of several people, and what they say so far.

Everybody judges the queries of a comparison in one order, which is uniformly random, from its beginning. A judge's
answers are therefore a uniform sample without replacement at every stop, as `share_of` needs it. If a line of the log
is lost, its query is the next that the judge sees, and the answers behind it count once it is answered.

Several people's answers count together for the queries that all of them have judged. These are the queries of the
shortest session, again a beginning of the order. The value of a query is the mean of its answers. It depends on the
query alone, not on who answered first or stopped where, as if it were fixed before the order is drawn, so the
interval holds at every stop for the share that these people would find in all differing queries. Queries that only
some of them have judged have other values, which would mix two shares in one sequence; they count in the results of
their judges alone. Who takes part is a part of the question: leaving out people after seeing their answers would bias
the result, so that everyone in the log counts.

Answers count under the words for the same that were in force, because other words ask another question. Under new words
the order starts again, until the user says that the words mean the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Literal

import numpy as np

from udml_core.data.given.judged_pairs import chosen_meaning
from udml_core.data.given.judgments import ME, Equal, Judgment, JudgmentLog, Shown, judge_name, keep_judgments
from udml_core.exploration.kinds_of_judging import PLAN
from udml_core.numerics.judgments import Share, judgments_left, share_of
from udml_core.runs.search.differing import Comparison

Choice = Literal["left", "right", "both right", "both wrong", "unsure", "equal"]
EQUAL = 0.5
MOST = 100
"""Largest number of judgments in all for which it is worth to go on."""
FEW, ENOUGH = 10, PLAN
"""Numbers of judgments from which their trend is worth a forecast, and from which it may say that more do not help."""
Growth = Literal["less one-sided", "against each other", "not enough"]
"""Why more judgments are needed than before: the answers since then, or all together, are nearer to one half than the
answers before them, or the forecast was too low."""


@dataclass(frozen=True)
class Target:
    """A forecast of the judgments that decide if the answers go on as before.

    Attributes:
        total: Their number in all, rounded up to tens; None if `MOST` of them, or all queries, would not decide.
        known: The number of answers from which this is forecast, a multiple of ten.
        growth: Why it is more than ten answers before; empty if it is not.
    """

    total: int | None
    known: int
    growth: Growth | Literal[""] = ""


@dataclass(frozen=True)
class Agreement:
    """How well several people agree on queries that two of them have judged, over all pairs of people.

    Attributes:
        pairs: Number of pairs of answers to one query.
        same: Pairs in which both prefer the same embedding, or neither.
        opposite: Pairs in which each prefers the other embedding.
    """

    pairs: int
    same: int
    opposite: int


@dataclass(frozen=True)
class Question:
    """A query and the candidates, whose sides are random: two images, or two sets of images, side by side.

    Attributes:
        position: Position of the query in the order of judging.
        query: Index of the query.
        left: Indices of the image or the images on the left.
        right: Indices of the image or the images on the right.
    """

    position: int
    query: int
    left: tuple[int, ...]
    right: tuple[int, ...]


class Judging:
    """One person's session of a comparison, with the stored answers of all.

    Attributes:
        comparison: The comparison.
        judge: Name of the person.
        meaning: What counts as the same, in the user's words; answers under other words are set apart.
    """

    def __init__(self, comparison: Comparison, judge: str = ME) -> None:
        """Resume the session with the answers in the log.

        Args:
            comparison: The comparison.
            judge: Name of the person.

        Raises:
            UserError: The name is too long.
        """
        self.comparison, self.judge = comparison, judge_name(judge)
        self.meaning = chosen_meaning(comparison.dataset)
        self._log = JudgmentLog(comparison.dataset, comparison.key)
        self._read()

    def _read(self) -> None:
        self._answers: dict[str, dict[int, Judgment]] = {}
        self._elsewhere: list[Judgment] = []
        for judgment in self._log.read():
            self._keep(judgment)

    def elsewhere(self) -> dict[str, int]:
        """Count the judgments that do not count under the current words, by the words under which they were given."""
        return dict(Counter(judgment.meaning for judgment in self._elsewhere))

    def keep_elsewhere(self) -> None:
        """Let all judgments of the data set count under the current words, which mean the same.

        Raises:
            UserError: The log cannot be written.
        """
        keep_judgments(self.comparison.dataset, self.meaning)
        self._read()

    def question(self) -> Question | None:
        """Return the first query that the person has not judged; None if all are judged."""
        position = self.count(self.judge)
        return self.question_at(position) if position < len(self.comparison.differing) else None

    def question_at(self, position: int, judge: str | None = None) -> Question:
        """Return the query at a position of the order, with its sides for a judge, by default the session's."""
        left, right = self.comparison.options(position)
        if self.comparison.is_swapped(self.judge if judge is None else judge, position):
            left, right = right, left
        return Question(position, int(self.comparison.differing[position]), left, right)

    def answer(self, question: Question, choice: Choice) -> bool:
        """Store which image or row is better.

        Args:
            question: The question that the person saw.
            choice: The better side.

        Returns:
            Whether the answer counts. A key that is pressed again before the next question is shown does nothing.

        Raises:
            UserError: The log cannot be written.
        """
        if question != self.question():
            return False
        query, options = self.comparison.dataset.names[question.query], self._options(question.position)
        better: Shown | None = None
        equal: Equal | Literal[""] = ""
        match choice:
            case "left" | "right":
                better = self.comparison.shown(question.left if choice == "left" else question.right)
            case "both right" | "both wrong" | "unsure":
                equal = choice
        self.add(Judgment(self.judge, query, options, better, equal, self.meaning))
        return True

    def add(self, judgment: Judgment) -> bool:
        """Store a judgment, which may be another judge's; return whether it is about one of the queries."""
        if self._position(judgment) is None:
            return False
        self._log.add(judgment)
        self._keep(judgment)
        return True

    def undo(self) -> Question | None:
        """Revert the person's last answer and return its question; None if there is none.

        An answer that was reverted never counted: a judge's answer to a query is the last.

        Raises:
            UserError: The log cannot be written.
        """
        answers = self._answers.get(self.judge)
        if not answers:
            return None
        position = next(reversed(answers))
        self._log.revert(self.judge, answers[position].query, self.meaning)
        del answers[position]
        return self.question_at(position)

    def judges(self) -> list[str]:
        """List everyone who has judged a query, the session's person first."""
        return sorted((judge for judge, answers in self._answers.items() if answers),
                      key=lambda judge: (judge != self.judge, judge))

    def people(self) -> list[str]:
        """List everyone whose judgments count, because the first query is among them, the session's person first."""
        return [judge for judge in self.judges() if self.count(judge)]

    def judgments(self, judge: str) -> list[Judgment]:
        """Return a judge's judgments in the order of the queries."""
        return [judgment for _, judgment in sorted(self._answers.get(judge, {}).items())]

    def count(self, judge: str) -> int:
        """Return the number of queries that a judge has judged from the beginning of the order, without a gap."""
        answers, count = self._answers.get(judge, {}), 0
        while count in answers:
            count += 1
        return count

    def values(self, judge: str) -> list[float]:
        """Return a judge's judgments that count, in order: 1 where B is better, 0 where A is, 0.5 for equal."""
        return [self.value(judge, position) for position in range(self.count(judge))]

    def score(self, judge: str) -> Counter[str]:
        """Count a judge's judgments that count: A, B, or why neither is better; `equal` if no reason is known."""
        answers = self._answers.get(judge, {})
        return Counter(answers[position].equal or "equal" if value == EQUAL else "AB"[value > EQUAL]
                       for position, value in enumerate(self.values(judge)))

    def decided(self, judge: str) -> int:
        """Return how many of a judge's judgments say which is better, or that neither is: all but `unsure`."""
        return self.count(judge) - self.score(judge)["unsure"]

    def value(self, judge: str, position: int) -> float:
        """Return a judge's judgment of the query at a position."""
        better = self._answers[judge][position].better
        if better is None:
            return EQUAL
        return float(better == self._options(position)[1])

    def share(self, judge: str) -> Share:
        """Return the share of differing queries in which B is better, by one person's judgments."""
        return share_of(self.values(judge), len(self.comparison.differing))

    def shared_share(self) -> Share:
        """Return the share by everyone's judgments of the queries that all have judged."""
        values = [self.values(judge) for judge in self.people()]
        shared = min(map(len, values), default=0)
        means = np.mean([of_judge[:shared] for of_judge in values], axis=0) if shared else []
        return share_of(list(means), len(self.comparison.differing))

    def agreement(self) -> Agreement:
        """Count over all pairs of people how often both gave the same answer to a query that both have judged."""
        pairs = [(self.value(one, position), self.value(other, position))
                 for one, other in combinations(self.people(), 2)
                 for position in range(min(self.count(one), self.count(other)))]
        return Agreement(len(pairs), sum(one == other for one, other in pairs),
                         sum(abs(one - other) == 1 for one, other in pairs))

    def target(self) -> Target | None:
        """Forecast how many judgments the person's session needs in all; None if there are too few for a trend.

        Whole tens of judgments count: a forecast that moves with each answer would tell which answers fall together.
        The number grows only if the answers are nearer to one half than before, or if it is reached without a decision.
        """
        values = self.values(self.judge)
        return _target(tuple(values[:len(values) // FEW * FEW]), len(self.comparison.differing))

    @property
    def is_hopeless(self) -> bool:
        """Whether enough judgments say that more would not decide in reasonable time."""
        count, target = self.count(self.judge), self.target()
        is_open = count < len(self.comparison.differing) and not self.share(self.judge).is_decided
        return is_open and self.decided(self.judge) >= ENOUGH and target is not None and target.total is None

    def _keep(self, judgment: Judgment) -> None:
        if (position := self._position(judgment)) is None:
            return
        if judgment.meaning != self.meaning:
            self._elsewhere.append(judgment)
        else:
            answers = self._answers.setdefault(judgment.judge, {})
            answers.pop(position, None)
            answers[position] = judgment

    def _position(self, judgment: Judgment) -> int | None:
        """Return the position of a judgment's query; None if its results are others or do not differ now."""
        position = self.comparison.positions.get(judgment.query)
        is_same = position is not None and set(self._options(position)) == set(judgment.images)
        return position if is_same else None

    def _options(self, position: int) -> tuple[Shown, Shown]:
        """Return the images of A and of B for a query, as a judgment stores them."""
        first, second = map(self.comparison.shown, self.comparison.options(position))
        return first, second


@lru_cache(maxsize=256)
def _target(values: tuple[float, ...], total: int) -> Target | None:
    """Return the forecast after whole tens of judgments; see `Judging.target`."""
    target: Target | None = None
    for known in range(FEW, len(values) + 1, FEW):
        needed, before = _needed(values[:known], total), target.total if target else None
        if target is None or _is_at_most(needed, before):
            target = Target(needed, known)
        elif growth := _growth(values[:known], before):
            target = Target(needed, known, growth)
        else:
            target = Target(before, known)
    return target


@lru_cache(maxsize=256)
def _needed(values: tuple[float, ...], total: int) -> int | None:
    """Return how many judgments decide in all, rounded up to tens; None if `MOST`, or all queries, would not."""
    left = judgments_left(values, total, most=MOST - len(values))
    return None if left is None else min(total, -(-(len(values) + left) // FEW) * FEW)


def _is_at_most(first: int | None, second: int | None) -> bool:
    return second is None or (first is not None and first <= second)


def _growth(values: Sequence[float], before: int | None) -> Growth | Literal[""]:
    """Return why judgments need more than was forecast ten answers before; empty without a reason."""
    earlier, since, both = (abs(float(np.mean(of)) - EQUAL) for of in (values[:-FEW], values[-FEW:], values))
    if since < earlier:
        return "less one-sided"
    if both < earlier:
        return "against each other"
    return "not enough" if before is not None and len(values) >= before else ""
