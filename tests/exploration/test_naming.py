"""Names that say "none of these" far from the labels, thresholds, and groups."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_digits

from udml_core.base.arrays import Array
from udml_core.data.given.group_changes import GroupChange
from udml_core.exploration import grouping
from udml_core.exploration.accepting import FEWEST, Acceptance, calibrate
from udml_core.exploration.naming import (
    AT_ONCE,
    FOLDS,
    GAMMA,
    KeptReach,
    Naming,
    Reached,
    _certainty,
    fold_of,
    reach_of,
    symmetric_walk,
)
from udml_core.numerics.neighbors import nearest

NONE = np.zeros((0, 2), int)


def clouds(classes: int, each: int, spread: float = 1.0, seed: int = 0) -> tuple[Array, Array]:
    """Return points of some classes in 16 dimensions, and their classes."""
    random = np.random.default_rng(seed)
    truth = np.repeat(np.arange(classes), each)
    centers = 3 * random.normal(size=(classes, 16))
    return (centers[truth] + spread * random.normal(size=(len(truth), 16))).astype(np.float32), truth


def named(points: Array, codes: Array, rejected: Array = NONE) -> Naming:
    walk = symmetric_walk(nearest(points, 10)[1])
    reach = Reached(codes, int(codes.max()) + 1, lambda labeled: reach_of(walk, labeled, GAMMA))
    return Naming(reach, rejected)


def labeled(truth: Array, classes: int, each: int, seed: int = 0) -> Array:
    """Label some images of the first classes."""
    random, codes = np.random.default_rng(seed), np.full(len(truth), -1)
    for code in range(classes):
        codes[random.choice(np.flatnonzero(truth == code), each, replace=False)] = code
    return codes


def test_reach_solves_the_walk_and_is_its_power_series() -> None:
    points, truth = clouds(3, 10)
    walk = symmetric_walk(nearest(points, 4)[1])
    np.testing.assert_allclose(np.asarray(walk.steps.sum(axis=1)).ravel(), 1)
    ends, step = np.zeros(30), (truth == 0).astype(float)
    for _ in range(400):
        ends += 0.1 * step
        step = 0.9 * (walk.steps @ step)
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


def test_a_checked_name_counts_without_the_labels_of_its_fold() -> None:
    points, truth = clouds(3, 30, 2.5)
    codes = labeled(truth, 3, 8)
    naming = named(points, codes)
    row, other = int(np.flatnonzero(codes >= 0)[0]), int(np.flatnonzero(codes < 0)[0])
    without = np.where((codes == codes[row]) & (fold_of(np.arange(90)) == fold_of(np.array([row]))), -1, codes)
    removed = named(points, without)
    vars(removed)["_typical"] = naming._typical  # the scale stays that of all labels
    best, certainty = removed.named
    found = naming.certainty_without_own(np.array([row, other, row]), np.array([best[row], truth[other], 1]))
    assert codes[row] == best[row] == 0, "its own class, by the others of it"
    assert found[0] == pytest.approx(certainty[row], rel=1e-3)
    assert found[1] == pytest.approx(naming.named[1][other], rel=1e-6), "an image without a label has no own fold"
    assert 0 < found[2] < found[0], "another class keeps all its labels"


def checking(points: Array, truth: Array, known: Array, codes: Array, rounds: int, batch: int = 16
             ) -> list[tuple[Array, Array]]:
    """Check proposed names as a user does, and return the accepted classes and the labels after each batch."""
    walk = symmetric_walk(nearest(points, 20)[1])
    rows, proposed, rejected, states = np.zeros(0, int), np.zeros(0, int), NONE, []
    solved: dict[bytes, Array] = {}

    def reach(marked: Array) -> Array:
        if marked.tobytes() not in solved:
            solved[marked.tobytes()] = reach_of(walk, marked, GAMMA)
        return solved[marked.tobytes()]

    for _ in range(rounds):
        naming = Naming(Reached(codes, len(known), reach), rejected)
        least = calibrate(naming, rows, proposed).least
        states.append((naming.accepted(least), codes))
        best, certainty = naming.named
        guesses = np.sort(certainty[(codes < 0) & ~naming.reaches(least)])[-24:].min()
        found = grouping.proposals(np.where(naming.reaches(np.minimum(least, guesses)), best, -1), certainty, codes)
        if not found:
            break
        code, shown = found[0].code, found[0].rows[:batch]
        is_right = truth[shown] == known[code]
        rows, proposed = np.append(rows, shown), np.append(proposed, np.full(len(shown), code))
        rejected = np.append(rejected, np.stack([shown[~is_right], np.full((~is_right).sum(), code)], 1), axis=0)
        codes = codes.copy()
        codes[shown[is_right]] = code
    return states


@pytest.mark.parametrize(("noise", "least"), [(0.0, 1_000), (6.0, 30)])
def test_accepted_names_of_real_digits_keep_their_promise_among_classes_without_a_label(noise: float, least: int
                                                                                          ) -> None:
    """Half of the digits and more have no label, and with noise many neighbors show another digit."""
    digits, right, count, before = load_digits(), 0, 0, 0
    for seed in range(3):
        random = np.random.default_rng(seed)
        points = (digits.data + noise * random.normal(size=digits.data.shape)).astype(np.float32)
        known, codes = random.permutation(10)[:3 + seed], np.full(len(points), -1)
        for code, digit in enumerate(known):
            codes[random.choice(np.flatnonzero(digits.target == digit), 8, replace=False)] = code
        states = checking(points, digits.target, known, codes, 8)
        before += int(((states[0][0] >= 0) & (states[0][1] < 0)).sum())
        for accepted, labels in states[1:]:
            of_names = (accepted >= 0) & (labels < 0)
            right += int((known[accepted[of_names]] == digits.target[of_names]).sum())
            count += int(of_names.sum())
    assert before == 0, "without checks nothing is accepted"
    assert count > least, "the promise is not kept by accepting nothing"
    assert right >= 0.9 * count, (right, count)


def checked(certainty: Array, is_right: Array, classes: int = 1, codes: Array | None = None) -> Acceptance:
    """Calibrate from checked names with these certainties, of one class unless others are given."""
    rows, codes = np.arange(len(certainty)), np.zeros(len(certainty), int) if codes is None else codes
    naming = SimpleNamespace(classes=classes, codes=np.where(is_right, codes, -1),
                             certainty_without_own=lambda rows, _codes: certainty[rows])
    return calibrate(naming, rows, codes, 0.9)  # type: ignore[arg-type]


@pytest.mark.parametrize(("right", "wrong", "accepts"), [
    (FEWEST - 1, 0, False), (FEWEST, 0, True), (19, 1, False), (29, 1, True), (60, 5, False), (90, 5, True)])
def test_a_class_accepts_names_after_enough_right_checks_with_a_margin_for_their_number(
        right: int, wrong: int, accepts: bool) -> None:
    """With k of n right and Jeffreys' prior, the share is below 90 % with a probability of at most 20 %."""
    is_right = np.arange(right + wrong) >= wrong  # the least certain are wrong
    found = checked(np.linspace(0.2, 0.8, right + wrong), is_right)
    expected = stats.beta.cdf(0.9, right + 0.5, wrong + 0.5) <= 0.2 and right + wrong >= FEWEST
    assert (found.least[0] <= 0.2 + 1e-9, expected) == (accepts, accepts)


def test_names_are_accepted_down_to_the_lowest_checked_certainty_that_holds_and_no_further() -> None:
    certainty = np.linspace(0.9, 0.1, 40)
    assert checked(certainty, np.ones(40, bool)).least[0] == pytest.approx(0.1), "nothing below was checked"
    half = checked(certainty, certainty > 0.5)
    assert 0.4 < half.least[0] <= certainty[certainty > 0.5].min() + 1e-9
    never = checked(certainty, np.zeros(40, bool))
    assert never.least[0] > 1
    assert "You checked 40 proposed names, and 40 were wrong, too many" in never.words(["gull"])


def test_a_class_without_checks_accepts_nothing_and_another_class_does_not_vouch_for_it() -> None:
    certainty, codes = np.linspace(0.9, 0.5, 30), np.repeat([0, 1], [20, 10])
    found = checked(certainty, codes == 0, 3, codes)
    assert (found.least <= 1).tolist() == [True, False, False]
    assert found.words(["gull", "tern", "auk"]) == (
        "Similar images are named gull too: you checked 20 such names, and all were right. At least 90 % of these "
        "names should be right.")


@pytest.mark.parametrize(("counts", "words"), [
    ((), "Check 10 proposed names of a class: if nearly all are right, similar images get the name by themselves."),
    ((3, 8), "Check 2 more names of the class that you checked most: if nearly all are right, similar images get the "
             "name by themselves.")])
def test_what_is_missing_is_said(counts: tuple[int, ...], words: str) -> None:
    codes = np.repeat(np.arange(len(counts)), counts)
    found = checked(np.full(len(codes), 0.5), np.ones(len(codes), bool), 2, codes)
    assert found.words(["a", "b"]) == f"Only the images that you named have a name. {words}"


def test_many_classes_are_counted() -> None:
    codes = np.repeat(np.arange(5), 10)
    found = checked(np.full(50, 0.5), np.ones(50, bool), 5, codes)
    assert found.words(list("abcde")).startswith("Similar images are named a, b, c and 2 more classes too: you checked "
                                                 "50 such names")


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
    best, certainty = np.array([0, 0, 1, 1, 1, -1]), np.array([0.9, 0.6, 0.7, 0.95, 0.8, 0.2])
    found = grouping.proposals(best, certainty, np.array([-1, -1, -1, 1, -1, -1]))
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


def test_later_images_follow_the_changes_of_their_groups_and_leave_the_numbers() -> None:
    images, groups = np.arange(9), np.array([0, 0, 0, 1, 1, 2, 2, 0, 2])
    is_later = images >= 7
    merged = GroupChange(np.array([0, 1, 2, 3, 4]), np.zeros(5, int))
    assert grouping.edit_groups(groups, images, [merged]).tolist() == [1, 1, 1, 1, 1, 2, 2, 0, 2]
    assert grouping.edit_groups(groups, images, [merged], is_later).tolist() == [0, 0, 0, 0, 0, 2, 2, 0, 2]
    split = GroupChange(np.array([0, 1, 2]), np.array([1, 0, 0]))
    assert grouping.edit_groups(groups, images, [split], is_later).tolist() == [3, 0, 0, 1, 1, 2, 2, 0, 2]
    moved = GroupChange(np.array([3, 4, 5]), np.zeros(3, int))
    assert grouping.edit_groups(groups, images, [moved], is_later).tolist() == [0, 0, 0, 1, 1, 1, 2, 0, 2], \
        "an earlier image was left there on purpose"


def test_groups_are_changed_by_hand_in_order() -> None:
    images, groups = np.array([3, 5, 7, 9, 11, 13]), np.array([0, 0, 0, 1, 1, 2])
    merged = GroupChange(np.array([9, 11, 13]), np.zeros(3, int))
    split = GroupChange(np.array([3, 5, 7, 9, 99]), np.array([0, 0, 1, 1, 1]))
    assert grouping.edit_groups(groups, images, [merged]).tolist() == [0, 0, 0, 1, 1, 1]
    after = grouping.edit_groups(groups, images, [merged, split])
    assert after.tolist() == [0, 0, 3, 3, 1, 1], "the second change wins where both have an image"
    np.testing.assert_array_equal(grouping.edit_groups(groups, images, []), groups)


def test_walks_of_many_classes_are_solved_together_once_and_said_if_they_take_long(
        monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32)
    walk = symmetric_walk(nearest(points, 8)[1])
    sets = np.zeros((AT_ONCE + 3, 300), bool)
    for number, each in enumerate(sets):
        each[number * 7: number * 7 + 1 + number % 4] = True
    solved: list[int] = []

    def solve(labeled: np.ndarray) -> np.ndarray:
        solved.append(len(np.atleast_2d(labeled)))
        return reach_of(walk, labeled, GAMMA)

    kept, said = KeptReach(solve, 100), []
    kept(sets[0])
    kept.prepare(sets, lambda share, step: said.append((share, step)))
    assert (solved, said) == ([1, AT_ONCE, 2], [])
    for each in sets:
        np.testing.assert_allclose(kept(each), reach_of(walk, each, GAMMA), atol=1e-12)
    kept.prepare(sets, lambda share, step: said.append((share, step)))
    assert (solved, said) == ([1, AT_ONCE, 2], []), "nothing is solved twice"
    monkeypatch.setattr("udml_core.exploration.naming.LONG", 300)
    KeptReach(solve, 100).prepare(sets, lambda share, step: said.append((round(share, 2), step)))
    assert said == [(0.0, "spreading 19 names"), (0.84, "spreading 19 names")]


def test_a_density_that_rounds_below_zero_is_no_certainty() -> None:
    assert _certainty(np.array([-1e-9, 0.0, 1.0]), np.array([0.0, 1.0, 1.0])).tolist() == [0.0, 0.0, 0.75]
