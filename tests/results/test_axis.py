"""The fence beyond which a value is an outlier, by hand."""

from __future__ import annotations

import pytest

from udml_core.results.axis import ROOM, outer_fence, place_beyond


def test_the_fence_is_three_widths_of_the_middle_half_beyond_it() -> None:
    """Of 10, 11, …, 14 the middle half reaches from 11 to 13."""
    values = [10.0, 11.0, 12.0, 13.0, 14.0]
    assert outer_fence(values) is None, "no value is beyond it"
    assert outer_fence([*values, -20.0]) == pytest.approx(10.25 - 3 * 2.5), "with it from 10.25 to 12.75"
    assert outer_fence([*values, 44.0], lower_is_better=True) == pytest.approx(13.75 + 3 * 2.5)


def test_only_the_worse_side_has_outliers() -> None:
    values = [10.0, 11.0, 12.0, 13.0, 14.0, 90.0]
    assert outer_fence(values) is None, "the best value is not cut off"
    assert outer_fence([-90.0, *values[:-1]], lower_is_better=True) is None


def test_few_or_equal_values_have_no_outlier() -> None:
    assert outer_fence([1.0, 50.0, 51.0, 52.0]) is None
    assert outer_fence([50.0, 50.0, 50.0, 50.0, 50.0, 1.0]) is None


def test_outliers_stand_a_little_beyond_the_other_values() -> None:
    values = [10.0, 12.0, 20.0, -50.0]
    assert place_beyond(values, 0.0) == pytest.approx(10 - 10 * ROOM)
    assert place_beyond([10.0, 12.0, 20.0, 90.0], 40.0, lower_is_better=True) == pytest.approx(20 + 10 * ROOM)
