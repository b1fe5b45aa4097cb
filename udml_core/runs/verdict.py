"""Was training better than doing nothing? A run's result against frozen features and PCA, in one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from udml_core.base.errors import capitalized
from udml_core.numerics.measures import MAIN_MEASURES

Evaluation = Mapping[str, Mapping[str, Any]]
Rank = Literal["above", "between", "below", "baseline", "unknown"]
MAIN_MEASURE = MAIN_MEASURES[0].key
MEASURED = ("recall@1", "map@r")
"""The measure from labels that each question of judges stands for: the first result, and the whole group."""
STILL = 1.0
"""Percentage points below which training has hardly changed a measure."""
SIDES = {-1: "below", 0: "level with", 1: "above"}
"""The place of a value beside a baseline, by the sign of their difference."""
CERTAIN = 1.96
"""Standard errors on either side of a difference within which 95 % of the values lie that chance alone gives."""


@dataclass(frozen=True)
class Standing:
    """One measure of a run in percent; None where it was not measured.

    Attributes:
        before: Before training.
        after: After training.
        frozen: Of the frozen features.
        pca: Of centered PCA of the same dimension.
    """

    before: float | None
    after: float | None
    frozen: float | None
    pca: float | None

    @property
    def gain(self) -> float | None:
        """Difference to before training in percentage points."""
        return _difference(self.after, self.before)

    @property
    def over_frozen(self) -> float | None:
        """Difference to frozen features in percentage points."""
        return _difference(self.after, self.frozen)

    @property
    def over_pca(self) -> float | None:
        """Difference to PCA of the same dimension in percentage points."""
        return _difference(self.after, self.pca)

    @property
    def over_best(self) -> float | None:
        """Difference to the better of frozen features and PCA in percentage points."""
        measured = [value for value in (self.frozen, self.pca) if value is not None]
        return _difference(self.after, max(measured, default=None))

    def side(self, images: float | None) -> int:
        """Return 1 if the run is clearly above every baseline, -1 if clearly below one, and 0 if chance may decide.

        Args:
            images: Number of images that were measured; None if it is not known, where chance is left out.
        """
        return side_of(self.after, [value for value in (self.frozen, self.pca) if value is not None], images)


@dataclass(frozen=True)
class Verdict:
    """A run's rank among the baselines.

    Attributes:
        rank: Above frozen features and PCA, between them, or below frozen features; `baseline` for the frozen
            features themselves, and `unknown` without a measure.
        sentence: The rank by MAP@R and the place of R@1, with the measures, in a sentence.
    """

    rank: Rank
    sentence: str


def standing(evaluation: Evaluation | None, measure: str = MAIN_MEASURE) -> Standing:
    """Return one measure of an evaluation, as `Run.evaluation` returns it."""
    values = [(evaluation or {}).get(name, {}).get(measure) for name in ("initial", "final", "frozen", "centered pca")]
    return Standing(*(None if value is None else float(value) for value in values))


def images_of(evaluation: Evaluation | None) -> float | None:
    """Return the number of images that an evaluation measured; None if it does not say."""
    count: float | None = (evaluation or {}).get("final", {}).get("images")
    return count


def has_labels(evaluation: Evaluation | None) -> bool:
    """Return whether an evaluation has a measure from labels that judges a run."""
    return any(standing(evaluation, measure).after is not None for measure in MEASURED)


def verdict(title: str, evaluation: Evaluation | None, is_frozen: bool = False,
            raw: str = "frozen features") -> Verdict:
    """Judge a run by MAP@R on the test half, and say where its R@1 lies.

    Values count as equal if they are equal with one decimal, as they are shown.

    Args:
        title: The subject of the sentence, such as RPML.
        evaluation: The run's evaluation.
        is_frozen: Whether the run's embedding is the frozen features themselves.
        raw: What the images are compared by without training.
    """
    if evaluation is None:
        return Verdict("unknown", f"{title} has no evaluation yet.")
    of = standing(evaluation)
    if of.after is None or of.frozen is None:
        return Verdict("unknown", f"{title} cannot be judged: {MAIN_MEASURES[0].name} needs class labels.")
    if is_frozen:
        return Verdict("baseline", f"{capitalized(raw)} are the line to beat: the whole group found is "
                                   f"{_percent(of.after)}.")
    rank, place, values = _place(of, raw)
    nearest = standing(evaluation, "recall@1")
    return Verdict(rank, f"{title} ended {place} in the whole group found: {values}{_nearest_words(nearest, raw)}.")


def still_words(evaluation: Evaluation | None) -> str:
    """Say that training changed nothing worth the name; empty if it did, or if nothing was measured before it.

    Args:
        evaluation: The run's evaluation.
    """
    measured = [(measure.plain.lower(), standing(evaluation, measure.key)) for measure in MAIN_MEASURES]
    gains = [of.gain for _, of in measured]
    if any(gain is None or abs(gain) >= STILL for gain in gains):
        return ""
    values = ", ".join(f"{name} {of.before:.1f} → {of.after:.1f}\N{NO-BREAK SPACE}%" for name, of in measured)
    is_equal = all(f"{of.before:.1f}" == f"{of.after:.1f}" for _, of in measured)
    return f"{'No change' if is_equal else 'Hardly any change'} by training: {values}."


def place_words(of: Standing, raw: str, images: float | None = None) -> str:
    """Return the place of a measure among the baselines in words, such as "above frozen features but below PCA".

    Args:
        of: The measure, and that of the frozen features.
        raw: What the images are compared by without training.
        images: Number of images that were measured, by which differences within chance count as level; None to count
            every difference.
    """
    to_frozen, to_pca = (SIDES[_side(of.after, value, images)] for value in (of.frozen, of.pca))
    if of.pca is None:
        return f"{to_frozen} {raw}"
    return f"{to_frozen} {raw} {'and' if to_frozen == to_pca else f'but {to_pca}'} PCA"


def _place(of: Standing, raw: str) -> tuple[Rank, str, str]:
    """Return the rank of a measure, its place among the baselines in words, and the values that are compared."""
    values = f"{_percent(of.after)} against {_percent(of.frozen)}"
    to_frozen = _sign(of.over_frozen)
    if to_frozen < 0:
        return "below", f"below {raw}", values
    if of.pca is not None:
        values += f" and {_percent(of.pca)}"
    is_above = to_frozen > 0 and (of.pca is None or _sign(of.over_pca) > 0)
    return "above" if is_above else "between", place_words(of, raw), values


def best_runs(measured: Iterable[tuple[str, object, float | None]]) -> set[str]:
    """Return the ids of the best runs.

    Args:
        measured: Id, key and measure of each run. Only runs of equal keys, such as data set and split, are compared;
            a single run has no rival and does not win.
    """
    groups: dict[object, list[tuple[float, str]]] = {}
    for run_id, key, value in measured:
        if value is not None:
            groups.setdefault(key, []).append((value, run_id))
    return {run_id for rivals in groups.values() if len(rivals) > 1
            for value, run_id in rivals if value == max(rivals)[0]}


def _nearest_words(of: Standing, raw: str) -> str:
    """Return where R@1 lies among the baselines, because it may contradict MAP@R; empty if it was not measured."""
    if of.after is None or of.frozen is None:
        return ""
    place = place_words(of, raw).replace(f"{raw} and PCA", "both")
    values = " and ".join(_percent(value) for value in (of.frozen, of.pca) if value is not None)
    return f"; first result right: {place}, {_percent(of.after)} against {values}"


def _difference(value: float | None, other: float | None) -> float | None:
    """Return a difference of two values as they are shown, with one decimal."""
    return None if value is None or other is None else round(round(value, 1) - round(other, 1), 1)


def side_of(value: float | None, baselines: Iterable[float], images: float | None) -> int:
    """Return 1 if a value is clearly above every baseline, -1 if clearly below one, and 0 if chance may decide.

    Args:
        value: A share in percent; None if it was not measured.
        baselines: Shares in percent.
        images: Number of images that were measured; None if it is not known, where chance is left out.
    """
    return min((_side(value, other, images) for other in baselines), default=1)


def _side(value: float | None, other: float | None, images: float | None) -> int:
    """Return the sign of a difference of two percentages; 0 if it is within chance.

    The shares count as measured on different images. The same images vary less together, so a difference that counts is
    real more often than 95 %.
    """
    difference = _difference(value, other)
    if difference is None or not images:
        return _sign(difference)
    variance = sum(part * (100 - part) for part in (value, other) if part is not None) / images
    return _sign(difference) if abs(difference) > CERTAIN * variance ** 0.5 else 0


def _sign(difference: float | None) -> int:
    return 0 if not difference else 1 if difference > 0 else -1


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}\N{NO-BREAK SPACE}%"  # no line begins with the sign
