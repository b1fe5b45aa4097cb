"""Where "the same" ends in an embedding of a run, by pairs that a user judged.

A judgment belongs to the data set, a threshold to an embedding. The plan of an embedding draws pairs in an order that
depends on the names of the images, so that a pair which another embedding's plan drew before often comes first here
too; only such judgments count. The plan is computed once and kept in the cache.

Known copies of one photograph stay in the population, because a search shows them, but they are no question: they show
the same thing whatever the user calls the same.
"""

from __future__ import annotations

import hashlib
import math
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from udml_core.base.arrays import Array, Booleans, Integers
from udml_core.base.errors import UserError, counted
from udml_core.base.files import read_arrays, replace_arrays
from udml_core.data.dataset import Dataset
from udml_core.data.given.judged_pairs import judged_pairs, wanted_precision
from udml_core.data.given.pair_sets import Answer
from udml_core.numerics.same_pairs import (
    DIFFERENT,
    LEFT_OUT,
    NEIGHBORS,
    OPEN,
    SAME,
    SKIPPED,
    Counts,
    Estimate,
    Plan,
    estimate,
    neighbor_pairs,
    next_pair,
    plan_pairs,
)
from udml_core.runs.search.asked import asked_images
from udml_core.runs.search.copies import known_copies
from udml_core.runs.search.differing import side_name
from udml_core.runs.search.frame import COSINE, DISTANCE, Frame, frame_file
from udml_core.runs.search.query import Hit
from udml_core.runs.search.retrieval import Retrieval

QUERIES = 5_000
"""Largest number of images whose nearest images are the population; of more images, a random part."""
FEWEST = 3
"""Smallest number of images among which there are pairs to judge."""
ENOUGH = 10
"""Number of judged pairs from which an estimate is stated and a precision can be called out of reach."""
MOST = 100
"""Largest number of judgments in all that is forecast; of more, a lower precision is advised."""
DRAWN = 30
"""Number of judged pairs from which a curve is drawn: of fewer, each answer would change its shape."""
WIDE = 0.5
"""Width of the interval at which a curve says nothing: the share of the same may be half, or all."""
MOST_BYTES = 64_000_000
Value = TypeVar("Value", float, Array)


@dataclass(frozen=True)
class Threshold:
    """The end of "the same" in an embedding.

    Attributes:
        measure: What the embedding's results are compared by, in words.
        distance: Largest distance of two images that count as the same.
        target: The precision that was chosen.
        precision: Estimated share of the results within it that show the same thing, and its 95 % interval.
        recall: Estimated share of all same pairs that lie within it, and its 95 % interval.
        judged: Number of judged pairs.
        date: Day of the last judgment, such as 2026-11-25.
        certain: Largest distance at which the whole interval has the chosen precision; None if there is none.
    """

    measure: str
    distance: float
    target: float
    precision: tuple[float, float, float]
    recall: tuple[float, float, float]
    judged: int
    date: str
    certain: float | None

    def holds(self, hit: Hit) -> bool:
        """Return whether a result of a search counts as the same as the query."""
        return hit.distance <= self.distance

    @property
    def similarity(self) -> float | None:
        """The distance as a similarity; None if the embedding has distances alone."""
        return None if self.measure == DISTANCE else similarity_at(self.distance)

    @property
    def place(self) -> str:
        """The threshold in words, such as "above a similarity of 0.830"."""
        return place_words(self.measure, self.distance)

    @property
    def short(self) -> str:
        """The threshold and its precision in words, such as "above a similarity of 0.830, 95 % are (90 to 98 %)"."""
        return f"{self.place}, {percent(self.precision[0])} are ({interval(self.precision)})"

    @property
    def sentence(self) -> str:
        """Precision, recall and the number of judgments in words."""
        return f"{self.words} {counted(self.judged, 'pair')} judged."

    @property
    def words(self) -> str:
        """Precision and recall in words."""
        certain = "" if self.certain is None else (f" With 95 % confidence, at least {percent(self.target)} do "
                                                   f"{place_words(self.measure, self.certain)}.")
        there = "within" if self.measure == DISTANCE else "above"
        shares = "all pairs" if self.recall[1] == 1 else f"{percent(self.recall[0])} of all same pairs"
        error = "" if self.recall[1] == 1 else f" ({interval(self.recall)})"
        return (f"{self.place[0].upper()}{self.place[1:]}, {percent(self.precision[0])} of the results show the same "
                f"thing ({interval(self.precision)}); {shares} are {there} it{error}.{certain}")

    def describe(self) -> dict[str, Any]:
        """Return the threshold as exports and `--json` write it."""
        return {"distance": self.distance, "similarity": self.similarity, "measure": self.measure,
                "target": self.target,
                "precision": dict(zip(("value", "low", "high"), self.precision, strict=True)),
                "recall": dict(zip(("value", "low", "high"), self.recall, strict=True)),
                "judged": self.judged, "date": self.date, "certain_distance": self.certain}


@dataclass(frozen=True, eq=False)
class SamePairs:
    """The pairs to judge for an embedding, with the answers so far.

    Attributes:
        dataset: The data set.
        images: Number of images that are searched.
        measure: What the embedding's results are compared by, in words.
        plan: The drawn pairs.
        given: The answers about pairs of the data set.
        target: The precision that the threshold should have.
        copies: Index (n,) of the first known copy of each image.
        asked: Mask (n,) of the images that questions show; answers about others, given before, count.
        not_asked: Number of searched images that no question shows, because the audit lists them under Quality.
        name: The embedding, RUN:FRAME.
    """

    dataset: Dataset
    images: int
    measure: str
    plan: Plan
    given: dict[tuple[int, int], Answer]
    target: float
    copies: Integers
    asked: Booleans
    not_asked: int
    name: str = ""

    @cached_property
    def _own(self) -> Integers:
        """The user's answer (p,) about each drawn pair."""
        words = {True: SAME, False: DIFFERENT, None: SKIPPED}
        return np.array([words[self.given[pair].same] if pair in self.given else OPEN
                         for pair in map(tuple, self.plan.pairs.tolist())], np.int64)

    @cached_property
    def is_known(self) -> Booleans:
        """Which drawn pairs (p,) are copies of one photograph that the user was not asked about."""
        first, second = self.copies[self.plan.pairs].T
        return np.asarray((first == second) & (self._own == OPEN))

    @cached_property
    def answers(self) -> Integers:
        """The answer (p,) about each drawn pair, as `numerics.same_pairs` counts them; copies are the same."""
        is_asked = self.asked[self.plan.pairs].all(axis=1)
        own = np.where(is_asked | (self._own != OPEN) | (not is_asked.any()), self._own, LEFT_OUT)
        return np.where(self.is_known, SAME, own)

    @property
    def judged(self) -> int:
        """Number of drawn pairs that the user judged, which each answer raises by one."""
        return int((self._own > SKIPPED).sum())

    @cached_property
    def counted(self) -> int:
        """Number of pairs that the user judged and that count, because they are drawn next in their cells."""
        return Counts.of(self.plan, np.where(self.is_known, SKIPPED, self.answers)).total

    @property
    def judged_elsewhere(self) -> int:
        """Number of drawn pairs that the user judged in another embedding."""
        answered = [self.given[pair].of for place, pair in enumerate(map(tuple, self.plan.pairs.tolist()))
                    if self._own[place] > SKIPPED]
        return sum(of not in ("", self.name) for of in answered)

    @property
    def judged_words(self) -> str:
        """The number of judged pairs in words, and how many of them wait for their turn in the random order."""
        waiting, elsewhere = self.judged - self.counted, self.judged_elsewhere
        if not waiting:
            of = "" if not elsewhere else (
                f", {'all' if elsewhere == self.judged else elsewhere} of them in another embedding whose random order "
                "draws the same")
            return f"{counted(self.judged, 'pair')} judged{of}."
        of = counted(waiting, "pair") if waiting == self.judged else f"{counted(self.judged, 'pair')} judged, {waiting}"
        later = "it counts once its turn comes" if waiting == 1 else "they count once their turn comes"
        return f"{of} judged in another embedding: in this one {later}."

    @cached_property
    def estimate(self) -> Estimate:
        return estimate(self.plan, self.answers, self.target)

    @property
    def tells(self) -> bool:
        """Whether enough pairs are judged that a curve of the estimate says something, at its usual width."""
        _, low, high = self.estimate.precision
        return self.counted >= DRAWN and float(np.median(high - low)) <= WIDE

    @property
    def left(self) -> int | None:
        """About how many more judgments give a threshold; None if it cannot be foreseen.

        It is foreseen at whole tens of answers, and between them each answer counts down by one.
        """
        given = [(self.given[pair].time, place) for place, pair in enumerate(map(tuple, self.plan.pairs.tolist()))
                 if self._own[place] > SKIPPED]
        known = len(given) // ENOUGH * ENOUGH
        answers = self.answers.copy()
        answers[[place for _, place in sorted(given)[known:]]] = OPEN
        needed = estimate(self.plan, answers, self.target).needed
        return None if needed is None else max(1, needed + known - len(given))

    @property
    def _is_too_early(self) -> bool:
        """Whether too few pairs are judged to state a figure, and more can be."""
        return self.counted < ENOUGH and bool((self.answers == OPEN).any())

    @cached_property
    def threshold(self) -> Threshold | None:
        """The end of "the same"; None if the judgments do not tell it yet."""
        known = self.estimate
        if known.threshold is None or self._is_too_early:
            return None
        precision, recall = ((float(row[0]), float(row[1]), float(row[2]))
                             for row in (known.precision[:, known.threshold], known.recall[:, known.threshold]))
        latest = max((answer.time for answer in self.given.values()), default=0.0)
        certain = None if known.certain is None else float(known.edges[known.certain])
        return Threshold(self.measure, float(known.edges[known.threshold]), self.target, precision, recall,
                         self.counted, datetime.fromtimestamp(latest, UTC).date().isoformat(), certain)

    @property
    def sentence(self) -> str:
        """What the judgments tell, in words."""
        known, target = self.estimate, percent(self.target)
        judged = self.judged_words
        if self.threshold is not None:
            return f"{self.threshold.words} {judged}"
        if not self.judged:
            return f"No pair is judged yet. After {ENOUGH} judgments, this says about how many are needed in all."
        if self._is_too_early:
            return (f"{self.counted} of {ENOUGH} pairs count for this search so far; after {ENOUGH}, this says how "
                    f"many are needed in all. {judged}")
        if known.is_unreachable:
            return (f"No threshold has a precision of {target}: even of the nearest pairs at most "
                    f"{percent(known.reachable)} show the same thing. Choose a lower precision. "
                    f"{judged}")
        nearest = float(known.chance[0])
        if nearest < self.target and known.needed is None:
            return (f"A precision of {target} is not reached so far: even of the nearest pairs about "
                    f"{percent(nearest)} show the same thing. Choose a lower precision, or judge more pairs. {judged}")
        return f"{self._left_words} {judged}"

    @property
    def _left_words(self) -> str:
        """How many judgments are left until a threshold, in a sentence."""
        target = f"for a precision of {percent(self.target)}"
        if self.next() is None:
            return f"Cannot tell {target}: no pair is left to judge."
        left = self.left
        if left is None:
            return f"Cannot tell yet {target}: no number of judgments can be foreseen."
        needed = -(-(self.judged + left) // ENOUGH) * ENOUGH
        more = f"about {needed - self.judged}" if needed <= MOST else f"more than {MOST - self.judged}"
        lower = "" if needed <= MOST else ", and fewer for a lower precision"
        return f"Cannot tell yet: {more} judgments are left {target}{lower}."

    @property
    def population(self) -> str:
        """What the pairs stand for, in a sentence."""
        image = f"{QUERIES:,} random images" if self.images > QUERIES else f"all {self.images:,} images"
        return (f"The estimate is about the results of searches: each of {image} with its "
                f"{min(NEIGHBORS, self.images - 1)} nearest images.")

    def next(self) -> tuple[int, int] | None:
        """Return the pair to judge next; None if all are judged."""
        position = next_pair(self.plan, self.answers, self.target)
        if position is None:
            return None
        first, second = self.plan.pairs[position].tolist()
        return first, second


def open_same_pairs(retrieval: Retrieval, name: str = "final", target: float | None = None) -> SamePairs:
    """Return the pairs to judge for an embedding; its plan is computed if it is not stored.

    Args:
        retrieval: The search of a run.
        name: The embedding.
        target: The precision that the threshold should have, 0.5 … 1; by default the user's last choice.

    Raises:
        UserError: The run does not have the embedding, or too few images are searched.
    """
    frame, dataset, searched = retrieval.frame(name), retrieval.dataset, retrieval.searched(name)
    plan = _stored_plan(frame)
    if plan is None:
        plan = _compute_plan(frame, searched, dataset)
        with suppress(OSError):  # without room in the cache the plan is computed again next time
            path = _plan_path(frame)
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_arrays(path, {field.name: getattr(plan, field.name) for field in fields(Plan)})
    wanted, asked = wanted_precision(dataset) if target is None else target, asked_images(dataset)
    return SamePairs(dataset, int(searched.sum()), frame.index.measure, plan, judged_pairs(dataset).answers(), wanted,
                     known_copies(dataset, retrieval.run.root), asked, int((searched & ~asked).sum()),
                     side_name(retrieval.run.id, name))


def same_threshold(retrieval: Retrieval, name: str = "final") -> Threshold | None:
    """Return the end of "the same" in an embedding; None if no pair is judged or the judgments do not tell it.

    Raises:
        UserError: The run does not have the embedding.
    """
    if not judged_pairs(retrieval.dataset).answers() or retrieval.searched(name).sum() < FEWEST:
        return None
    return open_same_pairs(retrieval, name).threshold


def has_plan(retrieval: Retrieval, name: str) -> bool:
    """Return whether the plan of an embedding is stored, so that it takes no search of all images."""
    return _plan_path(retrieval.frame(name)).exists()


def similarity_at(distance: Value) -> Value:
    """Return the cosine similarity of unit vectors at a distance, or at several."""
    return 1 - distance**2 / 2


def place_words(measure: str, distance: float) -> str:
    """Say which results are within a distance, such as "above a similarity of 0.830"."""
    if measure == DISTANCE:
        return f"within a distance of {distance:.3f}"
    return f"above a {'similarity' if measure == COSINE else 'score'} of {similarity_at(distance):.3f}"


def percent(share: float) -> str:
    """Return a share in whole percent; less than all is never 100 %."""
    return f"{min(99, round(100 * share)) if share < 1 else 100} %"


def interval(values: tuple[float, float, float]) -> str:
    """Return the interval of a value in whole percent, rounded outward."""
    return f"{math.floor(100 * values[1] + 1e-9)} to {math.ceil(100 * values[2] - 1e-9)} %"


def _compute_plan(frame: Frame, searched: Array, dataset: Dataset) -> Plan:
    images = np.flatnonzero(searched)
    if len(images) < FEWEST:
        raise UserError(f"Pairs can be judged among at least {FEWEST} images, and {frame.words} "
                        f"can search {len(images)}. Choose a search of more images.")
    keys = np.zeros(len(dataset), np.uint64)
    keys[images] = [int.from_bytes(hashlib.blake2b(dataset.names[image].encode(), digest_size=8).digest())
                    for image in images]
    queries = np.sort(images[np.argsort(keys[images], kind="stable")[:QUERIES]])
    return plan_pairs(*neighbor_pairs(queries, *frame.index.neighbors(queries, NEIGHBORS, searched)), keys)


def _stored_plan(frame: Frame) -> Plan | None:
    """Return the plan in the cache; None if it is missing or damaged."""
    path = _plan_path(frame)
    if path.exists():
        with suppress(UserError, TypeError):
            return Plan(**read_arrays(path, MOST_BYTES))
    return None


def _plan_path(frame: Frame) -> Path:
    return frame_file(frame, "same")
