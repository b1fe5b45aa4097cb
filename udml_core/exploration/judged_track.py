"""The track of a race: embeddings, rankings, their judges, and the time that each takes on this machine."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np

from udml_core.base.arrays import Array, Integers
from udml_core.exploration.jury import Jury
from udml_core.exploration.race import FROZEN, SHOWN_QUERIES, SHOWN_RESULTS, Example, Results, Setup
from udml_core.exploration.race_clock import TELLING_SHARE
from udml_core.exploration.race_measured import Comparison, Serves
from udml_core.exploration.race_running import OutOfTimeError
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement import Recipe, Refiner
from udml_core.numerics.refinement.recipe import Average, Whiten

KEPT_ROWS, KEPT_RANKINGS = 3, 16
"""Embeddings and rankings that are kept, because the start and the best searches are needed again."""
SEARCH_SPEED = 2e10
"""Multiplications a second of an exact search on one core, before a race has measured any."""
STEP_SEARCHES = {"whiten": 2.0, "rerank": 4.0, "diffuse": 6.0}
"""Expected time of a step in searches of all images; the averages of neighbors count one for each repetition."""
COMPARISONS = 2
"""Comparisons of a candidate: with the best search so far, and with the frozen features."""
ENCODING, TRAINING = "encode", "train"
"""Kinds of work: encoding images, and all trainings together: a busy machine slows down each of them."""
Key = TypeVar("Key")
Value = TypeVar("Value")
LEAST_SECONDS = 0.2
"""Shortest expected time of a candidate."""


class Embeddings(Protocol):
    """The embeddings of the images in a race."""

    def rows(self, setup: Setup) -> Array:
        """Return the embeddings (m, d) that the steps of a recipe after its views refine.

        Raises:
            UserError: They cannot be computed.
        """

    def parts(self, setup: Setup) -> Sequence[Array]:
        """Return the features (m, e) of each of several encoders side by side; none for a single one."""

    def seconds(self, setup: Setup) -> float:
        """Return the expected seconds to compute them; 0 if they are stored."""

    def is_measured(self, setup: Setup) -> bool:
        """Return whether the expected seconds rest on measurements on this machine."""

    def run_of(self, setup: Setup) -> str:
        """Return the id of the run whose embedding they are."""


class Pace:
    """What work of a kind takes on this machine, in comparison with what was expected of it."""

    def __init__(self) -> None:
        self._expected: dict[str, float] = {}
        self._measured: dict[str, float] = {}

    def note(self, kind: str, expected: float, measured: float) -> None:
        """Keep a measurement in seconds."""
        self._expected[kind] = self._expected.get(kind, 0.0) + expected
        self._measured[kind] = self._measured.get(kind, 0.0) + measured

    def knows(self, kind: str) -> bool:
        """Return whether work of a kind was measured."""
        return kind in self._measured

    def correct(self, kind: str, expected: float) -> float:
        """Return expected seconds, corrected by what was measured so far."""
        known = self._expected.get(kind, 0.0)
        return expected * self._measured[kind] / known if known > 0 else expected


class JudgedTrack:
    """A track whose embeddings are compared by a jury."""

    def __init__(self, embeddings: Embeddings, jury: Jury, count: int, spent: float = 0.0,
                 refusal: Callable[[Setup], str] = lambda _setup: "no judge is left",
                 clock: Callable[[], float] = time.monotonic,
                 announce: Callable[[str, float | None, float], None] = lambda _name, _left, _own: None) -> None:
        """Prepare a track.

        Args:
            embeddings: The embeddings of the m images.
            jury: The judges of the same images.
            count: Number m of images.
            spent: Seconds that an earlier attempt at the race took, and that the judges' features took.
            refusal: Returns what to do where no judge is left to compare a search.
            clock: Returns the time in seconds.
            announce: Receives the name of each candidate, the expected seconds until the race ends, if known, and the
                candidate's own.
        """
        self.announce = announce
        self._embeddings, self._jury, self._count, self._refusal = embeddings, jury, count, refusal
        self._clock, self._began, self._pace = clock, clock() - spent, Pace()
        self._rows: OrderedDict[tuple[str, str, str], Array] = OrderedDict()
        self._rankings: OrderedDict[Setup, Integers] = OrderedDict()
        self._width = 1

    def elapsed(self) -> float:
        """Return the seconds since the race began."""
        return self._clock() - self._began

    def refuses(self, best: Setup, setup: Setup) -> str:
        """Return why no judge can compare two searches; empty if one can."""
        return self._refusal(setup) if self._jury.refuses({best.backbone, setup.backbone}) else ""

    def run_of(self, setup: Setup) -> str:
        """Return the id of the run whose embedding a search starts from."""
        return self._embeddings.run_of(setup)

    def expects(self, setup: Setup) -> float:
        """Return the expected seconds of a candidate."""
        searching = self._pace.correct("search", self._search_seconds(setup.parsed))
        judging = self._pace.correct("judge", COMPARISONS) if self._pace.knows("judge") else 0.0
        return max(LEAST_SECONDS, searching + judging) + self._preparing_seconds(setup)

    def is_measured(self, setup: Setup) -> bool:
        """Return whether the expected seconds rest on measurements on this machine."""
        prepared = _key(setup) in self._rows or self._pace.knows(_work(setup)) or self._embeddings.is_measured(setup)
        return prepared and self._pace.knows("search")

    def compare(self, before: Setup, after: Setup) -> Comparison:
        """Compare two searches.

        Raises:
            UserError: The second is not possible.
        """
        rankings, began = (self._ranking(before), self._ranking(after)), self._clock()
        comparison = self._jury.compare(*rankings, {before.backbone, after.backbone})
        self._pace.note("judge", 1.0, self._clock() - began)
        return comparison

    def examples(self, start: Setup, setup: Setup, indices: Integers, serves: Serves) -> list[Example]:
        """Return queries drawn at random among those whose results differ between two searches.

        Args:
            start: The first search.
            setup: The second search.
            indices: Indices (m,) of the images in the data set.
            serves: Whether first results differ and are shown, or whole groups, of which only one search finds them.

        Raises:
            UserError: One is not possible.
        """
        rankings = self._ranking(start), self._ranking(setup)
        before, after = (of[:, :1] if serves == "first" else np.sort(of) for of in rankings)
        drawn = np.random.default_rng(0).permutation(np.flatnonzero((before != after).any(axis=1)))[:SHOWN_QUERIES]

        def shown(row: int, at: int) -> Results:
            """Return the results of a query in one of the rankings."""
            own, other = rankings[at][row], rankings[1 - at][row]
            ranks = np.flatnonzero(~np.isin(own, other)) if serves == "groups" else np.arange(len(own))
            return tuple((int(indices[own[rank]]), int(rank) + 1) for rank in ranks[:SHOWN_RESULTS])

        return [Example(setup=setup, serves=serves, query=int(indices[self._jury.queries[row]]), before=shown(row, 0),
                        after=shown(row, 1)) for row in drawn.tolist()]

    def _preparing_seconds(self, setup: Setup) -> float:
        """Return the expected seconds until the embeddings are there."""
        if _key(setup) in self._rows:
            return 0.0
        kind = _work(setup) if self._pace.knows(_work(setup)) or setup.method == FROZEN else TRAINING
        return self._pace.correct(kind, self._embeddings.seconds(setup))

    def _search_seconds(self, recipe: Recipe) -> float:
        """Return the seconds that an exact search of this many images and the steps take on one core."""
        searches = 1.0 + sum(step.times if isinstance(step, Average) else STEP_SEARCHES.get(step.name, 0.0)
                             for step in recipe.steps)
        whitening = sum(isinstance(step, Whiten) for step in recipe.steps) * 20.0 * self._width**3
        return (searches * self._count**2 * self._width + whitening) / SEARCH_SPEED

    def _prepared(self, setup: Setup) -> Array:
        """Return the embeddings before the steps, computed once."""
        if _key(setup) not in self._rows:
            _keep(self._rows, _key(setup), self._computed(setup), KEPT_ROWS)
        rows = self._rows[_key(setup)]
        self._width = rows.shape[1]
        return rows

    def _computed(self, setup: Setup) -> Array:
        """Return the embeddings before the steps, and learn from the time that they took, even if they are given up."""
        began, expected = self._clock(), self._embeddings.seconds(setup)
        try:
            rows = self._embeddings.rows(setup)
        except OutOfTimeError as error:
            took = self._clock() - began
            known = self._pace.correct(_work(setup), expected)
            self._note(setup, expected, took + error.left if error.left else
                       took / error.share if error.share > TELLING_SHARE else max(took, known))
            raise
        self._note(setup, expected, self._clock() - began)
        self._jury.meet(setup.backbone, [rows, *self._embeddings.parts(setup)])
        return rows

    def _note(self, setup: Setup, expected: float, measured: float) -> None:
        """Keep what embeddings took that were not stored."""
        if expected:
            for kind in {_work(setup), TRAINING if setup.method != FROZEN else ENCODING}:
                self._pace.note(kind, expected, measured)

    def _ranking(self, setup: Setup) -> Integers:
        """Return the rows (q, k) of the results of the queries, computed once."""
        if setup not in self._rankings:
            rows, recipe = self._prepared(setup), setup.parsed.without("views")
            began = self._clock()
            ranking = rank(rows, recipe, setup.recipe != "", self._jury.queries, self._jury.depth)
            _keep(self._rankings, setup, ranking.astype(np.int32), KEPT_RANKINGS)
            self._pace.note("search", self._search_seconds(setup.parsed), self._clock() - began)
        self._rankings.move_to_end(setup)
        return self._rankings[setup]


def rank(rows: Array, recipe: Recipe, is_refined: bool, queries: Integers, depth: int) -> Integers:
    """Return the rows (q, k) of the images nearest to queries, nearest first.

    Args:
        rows: Embeddings (m, d).
        recipe: The steps without views.
        is_refined: Whether rows are compared by their cosine, as refinements do; else by the embedding's own distance.
        queries: Rows (q,) of the queries.
        depth: Number k of results.
    """
    if not is_refined:
        return nearest(rows, depth, own=queries)[1]
    return np.asarray(Refiner(recipe).fit(rows).neighbors(depth, queries).indices)


def _key(setup: Setup) -> tuple[str, str, str]:
    """Return what embeddings before the steps depend on: encoder, head and views."""
    return setup.backbone, setup.method, str(setup.parsed.find("views") or "")


def _work(setup: Setup) -> str:
    """Return the kind of work by which embeddings are computed."""
    return setup.method if setup.method != FROZEN else ENCODING


def _keep(kept: OrderedDict[Key, Value], key: Key, value: Value, most: int) -> None:
    """Keep a value, and forget the value that was used least recently if there are too many."""
    kept[key] = value
    while len(kept) > most:
        kept.popitem(last=False)
