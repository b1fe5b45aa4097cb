"""The time that is left as readers see it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from udml_core.base.steady import PATIENCE, STEPS, SteadyTime, step_from


@pytest.mark.parametrize(("seconds", "step"), [(0.2, 5), (5, 5), (5.1, 10), (61, 75), (3600, 3600), (3700, 5400)])
def test_a_time_is_shown_by_the_step_that_holds_it(seconds: float, step: float) -> None:
    assert step_from(seconds) == step


def test_an_estimate_that_jumps_raises_the_shown_time_by_one_step_at_most() -> None:
    steady = SteadyTime()
    shown = [steady(float(now), 18.0 if now < 10 else 120.0) for now in range(100)]
    assert shown[9] == shown[10] == 20, "a jump is not shown at once"
    rises = [now for now in range(1, 100) if shown[now] > shown[now - 1]]
    assert all(STEPS.index(shown[now]) == STEPS.index(shown[now - 1]) + 1 for now in rises)
    assert all(later - earlier >= PATIENCE for earlier, later in pairwise(rises))
    assert shown[-1] > 45, "an estimate that stays is followed"
    assert steady.is_late, "what is shown is less than what is expected"
    steady(100.0, 1.2 * shown[-1])
    assert not steady.is_late, "a little more is no delay"


def test_a_time_falls_with_its_estimate() -> None:
    steady = SteadyTime()
    assert [steady(float(now), 60.0 - now) for now in (0, 20, 50, 59)] == [60, 45, 10, 5]
