"""Was training better than doing nothing? A run's result against frozen features and PCA, in one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from udml_core.numerics.measures import MAIN_MEASURES

Evaluation = Mapping[str, Mapping[str, Any]]
Rank = Literal["above", "between", "below", "baseline", "unknown"]
MAIN_MEASURE = MAIN_MEASURES[0].key


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


@dataclass(frozen=True)
class Verdict:
    """A run's rank among the baselines.

    Attributes:
        rank: Above frozen features and PCA, between them, or below frozen features; `baseline` for the frozen
            features themselves, and `unknown` without a measure.
        sentence: The rank and the measures in a sentence.
    """

    rank: Rank
    sentence: str


def standing(evaluation: Evaluation | None, measure: str = MAIN_MEASURE) -> Standing:
    """Return one measure of an evaluation, as `Run.evaluation` returns it."""
    values = [(evaluation or {}).get(name, {}).get(measure) for name in ("initial", "final", "frozen", "centered pca")]
    return Standing(*(None if value is None else float(value) for value in values))


def verdict(title: str, evaluation: Evaluation | None, is_frozen: bool = False) -> Verdict:
    """Judge a run by MAP@R on the test half.

    Values count as equal if they are equal with one decimal, as they are shown.

    Args:
        title: The subject of the sentence, such as RPML.
        evaluation: The run's evaluation.
        is_frozen: Whether the run's embedding is the frozen features themselves.
    """
    if evaluation is None:
        return Verdict("unknown", f"{title} has no evaluation yet.")
    of = standing(evaluation)
    if of.after is None or of.frozen is None:
        return Verdict("unknown", f"{title} cannot be judged: {MAIN_MEASURES[0].name} needs class labels.")
    if is_frozen:
        return Verdict("baseline", f"Frozen features are the line to beat: {_percent(of.after)} MAP@R.")
    values = f"{_percent(of.after)} against {_percent(of.frozen)}"
    to_frozen = _sign(of.over_frozen)
    if to_frozen < 0:
        return Verdict("below", f"{title} ended below frozen features: {values} MAP@R{_contrast(evaluation, -1)}.")
    if of.pca is None or of.over_pca is None:
        word = "level with" if to_frozen == 0 else "above"
        return Verdict("above" if to_frozen else "between", f"{title} ended {word} frozen features: {values} MAP@R"
                                                            f"{_contrast(evaluation, to_frozen)}.")
    values += f" and {_percent(of.pca)}"
    to_pca = _sign(of.over_pca)
    if to_frozen > 0 and to_pca > 0:
        return Verdict("above", f"{title} ended above frozen features and PCA of the same dimension: {values} MAP@R"
                                f"{_contrast(evaluation, 1)}.")
    words = {-1: "below", 0: "level with", 1: "above"}
    joint = "and" if to_frozen == to_pca else "but"
    return Verdict("between", f"{title} ended {words[to_frozen]} frozen features {joint} {words[to_pca]} PCA of the "
                              f"same dimension: {values} MAP@R{_contrast(evaluation, to_frozen)}.")


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


def _contrast(evaluation: Evaluation, to_frozen: int) -> str:
    """Return the words for an R@1 on the other side of frozen features than MAP@R."""
    recall = standing(evaluation, "recall@1")
    side = _sign(recall.over_frozen)
    if recall.after is None or recall.frozen is None or side * to_frozen >= 0:
        return ""
    word = "above" if side > 0 else "below"
    return f"; its R@1 is {word}, {_percent(recall.after)} against {_percent(recall.frozen)}"


def _difference(value: float | None, other: float | None) -> float | None:
    """Return a difference of two values as they are shown, with one decimal."""
    return None if value is None or other is None else round(round(value, 1) - round(other, 1), 1)


def _sign(difference: float | None) -> int:
    return 0 if not difference else 1 if difference > 0 else -1


def _percent(value: float) -> str:
    return f"{value:.1f} %"
