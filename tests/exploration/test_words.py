"""Groups get the nearest word and say how sure that is; an attribute axis is a difference of cosines."""

import numpy as np
import pytest

from udml_core.base.errors import UserError
from udml_core.exploration.words import attribute_values, name_groups

NONE = np.zeros((0, 2), int)
WORDS = np.eye(3)


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_each_group_gets_the_word_nearest_to_its_mean() -> None:
    rng = np.random.default_rng(0)
    centers = np.array([[1, 0.2, 0], [0, 1, 0.3], [0.1, 0, 1.0]])
    groups = rng.integers(0, 3, 300)
    rows = unit(centers[groups] + 0.1 * rng.normal(size=(300, 3)))
    groups[:20] = -1
    found = name_groups(rows, groups, WORDS, NONE)
    for group, name in found.items():
        cosines = (rows[groups == group] @ WORDS.T).mean(0)
        best, second = np.argsort(-cosines)[:2]
        assert (name.word, name.second) == (best, second) == (group, [1, 2, 0][group])
        assert name.margin == pytest.approx(cosines[best] - cosines[second])
        assert name.is_decided
    assert set(found) == {0, 1, 2}


def test_luck_leaves_a_group_undecided_as_often_as_two_standard_errors_say() -> None:
    rng, decided = np.random.default_rng(1), []
    for _ in range(300):
        rows = unit(np.array([1, 1, 0.0]) + 0.2 * rng.normal(size=(40, 3)))  # between two words
        decided.append(name_groups(rows, np.zeros(40, int), WORDS, NONE)[0].is_decided)
    assert 0.01 < np.mean(decided) < 0.09, "a lead by luck is larger than two errors in about 5 % of the groups"


def test_the_error_falls_with_the_size_and_groups_of_one_image_are_undecided() -> None:
    rng = np.random.default_rng(2)
    rows = unit(np.array([1, 0, 0.0]) + 0.3 * rng.normal(size=(50, 3)))
    found = name_groups(rows, np.repeat([0, 1], [10, 40]), WORDS, NONE)
    assert found[0].error == pytest.approx(2 * found[1].error)
    alone = name_groups(rows[:2], np.array([0, 1]), WORDS, NONE)
    assert not any(name.is_decided for name in alone.values())


def test_a_rejected_word_is_not_proposed_again() -> None:
    rows = unit(np.array([[1, 0.5, 0.1]] * 4) + 0.01 * np.arange(4)[:, None])
    groups = np.zeros(4, int)
    most = np.array([[0, 0], [1, 0], [2, 0]])
    assert name_groups(rows, groups, WORDS, most)[0].word == 1
    assert name_groups(rows, groups, WORDS, most[:2])[0].word == 0, "half of the group is not most of it"
    assert name_groups(rows, groups, WORDS[:2], most) == {}, "no second word is left"


def test_one_word_cannot_be_compared() -> None:
    with pytest.raises(UserError, match="at least 2 words, got 1"):
        name_groups(np.eye(3), np.zeros(3, int), WORDS[:1], NONE)


def test_the_axis_is_a_difference_of_cosines() -> None:
    rows, low, high = unit(np.random.default_rng(3).normal(size=(7, 3))), WORDS[0], WORDS[2]
    np.testing.assert_allclose(attribute_values(rows, low, high), rows[:, 2] - rows[:, 0])
