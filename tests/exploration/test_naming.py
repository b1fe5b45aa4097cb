"""Names that say "none of these" far from the labels, thresholds, and groups."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.base.arrays import Array
from udml_core.data.given.group_changes import GroupChange
from udml_core.exploration import grouping
from udml_core.exploration.accepting import ENOUGH, Threshold, calibrate, tail_shares, trials_of, unnamed_shares
from udml_core.exploration.naming import FOLDS, GAMMA, Naming, fold_of, folded_reach, reach_of, symmetric_walk
from udml_core.numerics.neighbors import nearest

NONE = np.zeros((0, 2), int)
NO_JUDGMENTS = (np.zeros(0), np.zeros(0, bool))


def clouds(classes: int, each: int, spread: float = 1.0, seed: int = 0) -> tuple[Array, Array]:
    """Return points of some classes in 16 dimensions, and their classes."""
    random = np.random.default_rng(seed)
    truth = np.repeat(np.arange(classes), each)
    centers = 3 * random.normal(size=(classes, 16))
    return (centers[truth] + spread * random.normal(size=(len(truth), 16))).astype(np.float32), truth


def named(points: Array, codes: Array, rejected: Array = NONE) -> Naming:
    walk = symmetric_walk(nearest(points, 10)[1])
    reach = folded_reach(codes, int(codes.max()) + 1, lambda labeled: reach_of(walk, labeled, GAMMA))
    return Naming(reach, codes, rejected)


def labeled(truth: Array, classes: int, each: int, seed: int = 0) -> Array:
    """Label some images of the first classes."""
    random, codes = np.random.default_rng(seed), np.full(len(truth), -1)
    for code in range(classes):
        codes[random.choice(np.flatnonzero(truth == code), each, replace=False)] = code
    return codes


def test_reach_solves_the_walk_and_is_its_power_series() -> None:
    points, truth = clouds(3, 10)
    walk = symmetric_walk(nearest(points, 4)[1])
    np.testing.assert_allclose(np.asarray(walk.sum(axis=1)).ravel(), 1)
    ends, step = np.zeros(30), (truth == 0).astype(float)
    for _ in range(400):
        ends += 0.1 * step
        step = 0.9 * (walk @ step)
    np.testing.assert_allclose(reach_of(walk, truth == 0, 0.9), ends, atol=1e-6)


def test_a_single_class_does_not_name_what_is_far_from_it() -> None:
    """Before, with one class every image had it at 100 %."""
    points, truth = clouds(6, 40, 2.5)
    codes = labeled(truth, 1, 4)
    best, certainty = named(points, codes).named
    assert (best[truth != 0] == 0).mean() > 0.9, "walks from most images reach the class"
    assert certainty[(truth == 0) & (codes < 0)].mean() > 5 * certainty[truth != 0].mean()
    assert (named(points, codes).accepted(0.2)[truth != 0] < 0).mean() > 0.9


def test_labeled_images_keep_their_class_at_every_threshold() -> None:
    points, truth = clouds(3, 20)
    codes = labeled(truth, 3, 2)
    naming = named(points, codes)
    assert (naming.accepted(1.01)[codes >= 0] == codes[codes >= 0]).all()
    assert (naming.accepted(1.01)[codes < 0] == -1).all()


def test_a_rejected_class_is_passed_over() -> None:
    points, truth = clouds(2, 20)
    codes = labeled(truth, 2, 3)
    row = int(np.flatnonzero((truth == 0) & (codes < 0))[0])
    assert named(points, codes).named[0][row] == 0
    best, certainty = named(points, codes, np.array([[row, 0]])).named
    assert (best[row], certainty[row] < 0.1) != (0, True)
    assert best[row] != 0


def test_folds_are_fixed_and_even() -> None:
    folds = fold_of(np.arange(10_000))
    assert np.bincount(folds, minlength=FOLDS).min() > 1_800
    np.testing.assert_array_equal(fold_of(np.array([7, 70])), folds[[7, 70]])


def test_a_trial_names_an_image_without_the_labels_of_its_fold() -> None:
    points, truth = clouds(3, 30)
    codes = labeled(truth, 3, 8)
    naming, seen = named(points, codes), np.ones(90, bool)
    rows = np.flatnonzero(codes >= 0)
    row = int(rows[0])
    without = np.where((codes == codes[row]) & (fold_of(np.arange(90)) == fold_of(np.array([row]))), -1, codes)
    removed = named(points, without)
    vars(removed)["_typical"] = naming._typical  # the scale stays that of all labels
    best, certainty = removed.named
    found, values, unknown = naming.without_own(rows)
    assert found[0] == best[row]
    assert values[0] == pytest.approx(certainty[row], rel=1e-3)
    assert unknown[0] < values[0]
    trials = trials_of(naming, seen)
    assert len(trials.certainty) == len(rows)
    assert len(trials_of(naming, codes != 0).certainty) == (codes > 0).sum(), "images named in bulk say nothing"


@pytest.mark.parametrize(("known", "each", "seed", "least"), [
    (8, 6, 1, 0.9), (8, 10, 0, 0.9), (6, 10, 2, 0.4), (4, 8, 2, 0.1), (3, 14, 4, 0.4), (2, 14, 3, 0.2)])
def test_accepted_names_keep_their_promise(known: int, each: int, seed: int, least: float) -> None:
    """Classes without a label are as near as labeled classes are to each other, and the promise holds all the same."""
    points, truth = clouds(8, 60, 1.6, seed)
    codes = labeled(truth, known, each, seed)
    naming = named(points, codes)
    threshold = calibrate(naming, np.ones(len(codes), bool), NO_JUDGMENTS, 0.9)
    assert threshold is not None
    assert threshold.basis == "left out"
    rest = codes < 0
    accepted = naming.accepted(threshold.least)
    of_names = rest & (accepted >= 0)
    precision = (accepted[of_names] == truth[of_names]).mean()
    everything = (naming.named[0][rest] == truth[rest]).mean()
    assert threshold.precision[0] >= 0.9
    assert precision >= 0.9
    assert precision >= threshold.precision[1], "within the interval that is stated"
    if known < 8:
        assert everything < 0.75, "without a threshold many images would have the name of another class"
        assert "may show none of your classes" in threshold.words
    assert of_names.sum() > least * (rest & (truth < known)).sum()
    assert threshold.unnamed_class == pytest.approx((truth[rest] >= known).mean(), abs=0.22)


def test_labeled_classes_that_are_mixed_up_accept_nothing() -> None:
    """Clouds that overlap, half of them without a label: every name would be a guess."""
    points, truth = clouds(12, 40, 6.0, 5)
    codes = labeled(truth, 6, 8, 5)
    naming = named(points, codes)
    threshold = calibrate(naming, np.ones(len(codes), bool), NO_JUDGMENTS, 0.9)
    assert threshold is not None
    assert threshold.least > 1
    assert (naming.accepted(threshold.least)[codes < 0] == -1).all()


def test_too_few_labels_calibrate_nothing() -> None:
    points, truth = clouds(5, 20)
    assert calibrate(named(points, labeled(truth, 5, 1)), np.ones(100, bool), NO_JUDGMENTS) is None


def test_judged_names_decide_before_left_out_labels() -> None:
    points, truth = clouds(3, 40)
    naming = named(points, labeled(truth, 3, 12))
    certainty = np.linspace(0, 1, 2 * ENOUGH)
    threshold = calibrate(naming, np.ones(120, bool), (certainty, certainty > 0.6), 0.9)
    assert threshold is not None
    assert (threshold.basis, threshold.count) == ("judged", 40)
    assert threshold.reached == ((certainty >= threshold.least).sum(), (certainty > 0.6).sum())
    assert f"You checked {threshold.reached[0]} names from {100 * threshold.least:.0f} % up" in threshold.words
    never = calibrate(naming, np.ones(120, bool), (certainty, certainty < 0), 0.9)
    assert never is not None
    assert never.least > 1
    assert "Only the images that you named have a name. You checked 40 names. Too many were wrong" in never.words


@pytest.mark.parametrize(("reached", "interval", "words"), [
    ((12, 12), (1.0, 1.0, 1.0), "You checked 12 names from 65 % up, and all 12 were right. Of all accepted names, at "
                                "least 89 % should be right (80 % interval)."),
    ((40, 37), (0.93, 0.86, 0.97), "You checked 40 names from 65 % up, and 37 were right. Of all accepted names, 86 to "
                                   "97 % should be right (80 % interval)."),
    ((1, 1), (1.0, 1.0, 1.0), "You checked 1 name from 65 % up, and it was right. Of all accepted names, at least 35 % "
                              "should be right (80 % interval).")])
def test_a_handful_of_right_names_is_never_called_100_percent(
        reached: tuple[int, int], interval: tuple[float, float, float], words: str) -> None:
    threshold = Threshold(0.65, 0.9, interval, None, "judged", 50, reached)
    assert threshold.words == f"Names are accepted from a certainty of 65 %. {words}"
    assert "100 %" not in threshold.words


def test_the_share_of_unlabeled_classes_is_that_of_the_mixture() -> None:
    random = np.random.default_rng(0)
    known, unknown = random.beta(6, 2, 4_000), random.beta(1, 8, 4_000)
    for share in (0.0, 0.3, 0.8):
        rest = np.r_[random.beta(1, 8, int(10_000 * share)), random.beta(6, 2, int(10_000 * (1 - share)))]
        estimate = unnamed_shares(tail_shares(rest), tail_shares(known)[None], tail_shares(unknown)[None])
        assert estimate == pytest.approx([share], abs=0.04)
    assert unnamed_shares(tail_shares(rest), np.ones((2, 100)), np.ones((2, 100))).tolist() == [0.5, 0.5], "unclear"


def test_groups_are_wards_and_numbered_by_size() -> None:
    points, truth = clouds(4, 25, 0.3)
    points, truth = points[:90], truth[:90]
    tree = grouping.build_tree(points)
    groups = tree.groups(4)
    assert np.bincount(groups).tolist() == [25, 25, 25, 15]
    assert all(len(np.unique(truth[groups == group])) == 1 for group in range(4))
    assert (tree.groups(1) == 0).all()
    assert len(np.unique(tree.groups(500))) == tree.most == 90
    order = grouping.from_center(points[groups == 3])
    distances = ((points[groups == 3] - points[groups == 3].mean(axis=0)) ** 2).sum(axis=1)[order]
    assert (np.diff(distances) >= 0).all()
    parts = grouping.split_group(points[groups <= 1], 2)
    assert np.bincount(parts).tolist() == [25, 25]


def test_many_images_are_grouped_by_centers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "MOST_LEAVES", 60)
    points, truth = clouds(5, 80, 0.5)
    seen: list[float] = []
    groups = grouping.build_tree(points, lambda share, _step: seen.append(share)).groups(5)
    assert all(len(np.unique(truth[groups == group])) == 1 for group in range(5))
    assert len(seen) > 5
    assert sorted(seen) == seen


def test_proposals_begin_at_the_border_and_leave_out_labels() -> None:
    best, certainty = np.array([0, 0, 1, 1, 1, 0]), np.array([0.9, 0.6, 0.7, 0.95, 0.8, 0.2])
    found = grouping.proposals(best, certainty, np.array([-1, -1, -1, 1, -1, -1]), 0.5)
    assert [(proposal.code, proposal.rows.tolist()) for proposal in found] == [(0, [1, 0]), (1, [2, 4])]
    parts = grouping.remaining_groups(np.array([0, 0, 1, 1, 1, 0]), np.array([1, 0, 1, 1, 0, 0], bool))
    assert [part.tolist() for part in parts] == [[2, 3], [0]]


def test_a_change_by_hand_leaves_the_numbers_of_other_groups() -> None:
    images, groups = np.arange(8), np.array([0, 0, 0, 1, 1, 2, 2, 3])
    whole = GroupChange(np.array([1, 2, 0, 7]), np.zeros(4, int))
    assert grouping.edit_groups(groups, images, [whole]).tolist() == [0, 0, 0, 1, 1, 2, 2, 0]
    some = GroupChange(np.array([0, 1, 7]), np.zeros(3, int))
    assert grouping.edit_groups(groups, images, [some]).tolist() == [3, 3, 0, 1, 1, 2, 2, 3], "0 stays where it was"
    leaving = GroupChange(np.array([0, 1, 2]), np.array([0, 1, 1]))
    assert grouping.edit_groups(groups, images, [leaving, leaving]).tolist() == [0, 4, 4, 1, 1, 2, 2, 3]
    apart = GroupChange(np.array([0, 1, 2]), np.arange(3))
    assert grouping.edit_groups(groups, images, [apart]).tolist() == [0, 4, 5, 1, 1, 2, 2, 3], "a number for each part"


def test_groups_are_changed_by_hand_in_order() -> None:
    images, groups = np.array([3, 5, 7, 9, 11, 13]), np.array([0, 0, 0, 1, 1, 2])
    merged = GroupChange(np.array([9, 11, 13]), np.zeros(3, int))
    split = GroupChange(np.array([3, 5, 7, 9, 99]), np.array([0, 0, 1, 1, 1]))
    assert grouping.edit_groups(groups, images, [merged]).tolist() == [0, 0, 0, 1, 1, 1]
    after = grouping.edit_groups(groups, images, [merged, split])
    assert after.tolist() == [0, 0, 3, 3, 1, 1], "the second change wins where both have an image"
    np.testing.assert_array_equal(grouping.edit_groups(groups, images, []), groups)
