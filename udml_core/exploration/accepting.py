"""The certainty from which a name is accepted, so that a chosen share of the names is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import beta
from sklearn.isotonic import IsotonicRegression

from udml_core.base.arrays import Array, Booleans, Floats, Integers
from udml_core.base.errors import counted
from udml_core.exploration.naming import Naming, fold_of

PRECISION = 0.9
"""Share of the accepted names that should be right, unless a user chooses another."""
ENOUGH = 20
"""Number of judged names, or of labeled images that were left out, from which a threshold is calibrated."""
GRID = np.linspace(0.01, 1.0, 100)
"""Certainties that can be the threshold."""
DRAWS = 200
FEWEST = 3
"""Unlabeled images that a certainty must name at least to be the threshold by left-out labels."""
INTERVAL = (0.1, 0.9)
"""Quantiles of the draws that are the ends of the 80 % interval of right names."""
LEAST_LOW = 0.6
"""Least lower end of the interval over draws of labeled classes: with few classes their draws differ much, and then no
name is accepted."""
CAUTIOUS = 0.9
"""Quantile of the estimates at all certainties: a share that is too large names fewer images, none wrongly."""
TOLD_APART, LEAST_KNOWN, MOST_KNOWN = 0.2, 0.25, 0.75
"""Difference between known and unknown images from which their mixture is estimated, and the largest share of known
images above a certainty that is used: below it images of unlabeled classes are accepted, too."""


@dataclass(frozen=True)
class Trials:
    """Labeled images that were named without their own labels.

    Attributes:
        certainty: Certainty (k,) of the name, without the labels of the image's fold.
        is_right: Whether the name was right (k,).
        classes: Class (k,) of the image.
        unknown: Certainty (k,) of the best other class: how certain the name is if the image's class has no label.
    """

    certainty: Floats
    is_right: Booleans
    classes: Integers
    unknown: Floats


def trials_of(naming: Naming, seen: Booleans) -> Trials:
    """Name each labeled image without the labels of its own fold.

    Args:
        naming: The labels.
        seen: Whether a user looked at each image (n,); images that were named in bulk say nothing.

    Returns:
        The trials of classes that have labels in two folds; without them no image of a class can be found again.
    """
    folds = fold_of(np.arange(len(naming.codes)))
    wide = [code for code in range(len(naming.folded)) if len(np.unique(folds[naming.codes == code])) > 1]
    rows = np.flatnonzero(np.isin(naming.codes, wide) & (naming.codes >= 0) & seen)
    best, certainty, unknown = naming.without_own(rows)
    return Trials(certainty, best == naming.codes[rows], naming.codes[rows], unknown)


@dataclass(frozen=True)
class Threshold:
    """The certainty from which names are accepted.

    Attributes:
        least: The certainty; above 1 if no certainty is enough, so that nothing is accepted.
        target: Share of the accepted names that should be right.
        precision: Estimated share of right names, and its 80 % interval; all 0 if nothing is accepted.
        unnamed_class: Estimated share of the unlabeled images whose class has no label; None if it is not known.
        basis: What the estimate rests on: judged names, or labeled images that were left out.
        count: Their number.
        reached: How many of them were at least as certain, and how many of these had the right name.
    """

    least: float
    target: float
    precision: tuple[float, float, float]
    unnamed_class: float | None
    basis: Literal["judged", "left out"]
    count: int
    reached: tuple[int, int] = (0, 0)

    @property
    def words(self) -> str:
        """The threshold in sentences for readers who know nothing of calibration."""
        if self.least > 1:
            return (f"Only the images that you named have a name. {self.failure} Name more images of each class, or "
                    "check proposed names.")
        return f"Names are accepted from a certainty of {100 * self.least:.0f} %. {self.evidence}"

    @property
    def failure(self) -> str:
        """Why no certainty is enough."""
        tested = (f"You checked {counted(self.count, 'name')}." if self.basis == "judged" else
                  f"The app tested itself with {counted(self.count, 'image')} that you named: it hid each name and "
                  "guessed it from the other names.")
        return f"{tested} Too many were wrong: the goal is {100 * self.target:.0f} % right."

    @property
    def evidence(self) -> str:
        """What the threshold rests on, as counts, and what follows for all accepted names."""
        count, right = self.reached
        least = f"{100 * self.least:.0f} %"
        were = ("it was right" if right else "it was wrong") if count == 1 else (
            f"all {right:,} were right" if right == count else f"{right:,} were right")
        told = (f"You checked {counted(count, 'name')} from {least} up, and {were}." if self.basis == "judged" else
                "The app tested itself with the images that you named: it hid each name and guessed it from the other "
                f"names. {counted(count, 'guess')} reached {least}, and {were}.")
        other = "" if self.unnamed_class is None or self.unnamed_class < 0.05 else (
            f" Up to {100 * self.unnamed_class:.0f} % of the other images may show none of your classes.")
        return f"{told}{self._expected}{other}"

    @property
    def _expected(self) -> str:
        """How many of all accepted names are right, as a range; a handful of checks never makes it 100 %."""
        count, right = self.reached
        if not count:
            return ""
        _, low, high = self.precision
        low = min(low, float(beta.ppf(INTERVAL[0], right + 0.5, count - right + 0.5)))
        ends = (f"{100 * low:.0f} to {100 * high:.0f} %" if round(100 * high) < 100 else
                f"at least {min(99, int(100 * low))} %")
        return f" Of all accepted names, {ends} should be right (80 % interval)."


def calibrate(naming: Naming, seen: Booleans, judged: tuple[Floats, Booleans], target: float = PRECISION,
              left_out: Booleans | None = None) -> Threshold | None:
    """Find the lowest certainty whose names are right often enough.

    Args:
        naming: The labels.
        seen: Whether a user looked at each image (n,).
        judged: Certainty (j,) of the names that a user judged, when they were judged, and whether they were right.
        target: Share of the accepted names that should be right.
        left_out: Whether each image (n,) is excluded, and gets no name.

    Returns:
        The threshold, by judged names if there are enough, else by labeled images that are left out; None with too few
        of both.
    """
    rest = naming.named[1][(naming.codes < 0) & (True if left_out is None else ~left_out)]
    if len(judged[0]) >= ENOUGH:
        return _by_judged(rest, *judged, target)
    trials = trials_of(naming, seen)
    if len(trials.certainty) < ENOUGH or len(np.unique(trials.classes)) < 2:  # one class is mistaken for no other
        return None
    return _by_trials(rest, trials, target)


def _by_judged(rest: Floats, certainty: Floats, is_right: Booleans, target: float) -> Threshold:
    """Weigh judged names by how many images have their certainty: the share of right names rises with it."""
    random, curves = np.random.default_rng(0), []
    for draw in range(DRAWS + 1):
        rows = random.integers(0, len(certainty), len(certainty)) if draw else np.arange(len(certainty))
        fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(certainty[rows], is_right[rows])
        right = fitted.predict(rest) if len(rest) else np.zeros(0)
        curves.append(_ratio([right[rest >= least].sum() for least in GRID], [(rest >= least).sum() for least in GRID]))
    return _lowest(np.array(curves), target, None, "judged", certainty, is_right)


def _by_trials(rest: Floats, trials: Trials, target: float) -> Threshold:
    """Mix images of labeled and of other classes as they are mixed among the unlabeled images.

    Each labeled class is left out in turn, which shows how near a class without a label comes. Images that are accepted
    beyond the expected number from labeled classes count as wrong. Draws of classes, not of images, tell what other
    classes would have shown; the median of the draws must reach the target.
    """
    named, draws = tail_shares(rest), _drawn_weights(trials.classes)
    certain, others = (values[:, None] >= GRID for values in (trials.certainty, trials.unknown))
    # As numbers, not as booleans, whose product is ten times as slow.
    high, right, low = (draws @ mask.astype(float) for mask in (certain, certain & trials.is_right[:, None], others))
    shares = unnamed_shares(named, high, low)
    share = shares[:, None]
    unknown = np.maximum(share * low, np.clip(named - (1 - share) * high, 0, share))
    drawn = np.nan_to_num(_ratio((1 - share) * right, (1 - share) * high + unknown))
    drawn[:, named * len(rest) < FEWEST] = 0.0  # from which hardly an image would get a name, whatever is right there
    median, low_end = np.quantile(drawn[1:], (0.5, INTERVAL[0]), axis=0)
    return _lowest(np.array([np.where(low_end >= LEAST_LOW, median, 0.0), *drawn[1:]]), target, float(shares[0]),
                   "left out", trials.certainty, trials.is_right)


def _drawn_weights(classes: Integers) -> Floats:
    """Return weights (DRAWS + 1, k) of trials that sum to 1: equal, then of classes drawn with replacement."""
    random = np.random.default_rng(0)
    names, codes = np.unique(classes, return_inverse=True)
    weights = np.ones((DRAWS + 1, len(codes)))
    for row in weights[1:]:
        drawn = np.bincount(random.integers(0, len(names), len(names)), minlength=len(names))
        row[:] = drawn[codes] * random.exponential(size=len(codes))
    return weights / weights.sum(axis=1, keepdims=True)


def unnamed_shares(mixed: Floats, high: Floats, low: Floats) -> Floats:
    """Estimate the share (d,) of images whose class has no label, by how certain their names are, for each draw.

    Args:
        mixed: Share (100,) of the unlabeled images that have each certainty of the grid.
        high: The same (d, 100) of labeled images without the labels of their fold.
        low: The same (d, 100) of labeled images without their class.
    """
    is_clear = (high - low > TOLD_APART) & (high >= LEAST_KNOWN) & (high <= MOST_KNOWN)
    estimates = np.sort(np.divide(high - mixed, high - low, out=np.full(high.shape, np.inf), where=is_clear), axis=1)
    position = CAUTIOUS * np.maximum(is_clear.sum(axis=1) - 1, 0)
    below = np.floor(position).astype(int)
    ends = np.take_along_axis(estimates, np.stack([below, np.ceil(position).astype(int)], axis=1), axis=1)
    with np.errstate(invalid="ignore"):  # draws without a clear certainty
        values = ends[:, 0] + (position - below) * (ends[:, 1] - ends[:, 0])
    return np.where(is_clear.any(axis=1), np.clip(values, 0, 1), 0.5)


def tail_shares(values: Floats) -> Floats:
    """Return the share of values that are at least as large as each certainty of the grid."""
    ordered = np.sort(values)
    return 1 - np.searchsorted(ordered, GRID, side="left") / max(1, len(ordered))


def _ratio(part: Array | list[float], whole: Array | list[float]) -> Floats:
    return np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=np.asarray(whole) > 0)


def _lowest(curves: Floats, target: float, share: float | None, basis: Literal["judged", "left out"],
            certainty: Floats, is_right: Booleans) -> Threshold:
    """Return the lowest certainty at which the first curve reaches the target; the others give the interval."""
    reached: Integers = np.flatnonzero(np.nan_to_num(curves[0]) >= target)
    if not len(reached):
        return Threshold(1.01, target, (0.0, 0.0, 0.0), share, basis, len(certainty))
    at = int(reached[0])
    drawn = curves[1:, at][~np.isnan(curves[1:, at])]
    low, high = np.quantile(drawn, INTERVAL) if len(drawn) else (0.0, 1.0)
    of_these = certainty >= GRID[at]
    return Threshold(float(GRID[at]), target, (float(curves[0, at]), float(low), float(high)), share, basis,
                     len(certainty), (int(of_these.sum()), int((of_these & is_right).sum())))
