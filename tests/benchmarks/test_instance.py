"""A training step takes at most 1.2 times the encoder's forward and backward pass, and never waits for its input."""

from __future__ import annotations

import pytest

from experiments.instance_costs import METHODS, costs

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("name", METHODS)
def test_a_step_costs_little_more_than_the_encoder_and_input_is_read_fast_enough(name: str) -> None:
    cost = costs(name, "resnet18-small", 32, 64, "cpu")
    print(name, cost)
    assert cost["ratio"] <= 1.2
    assert cost["delivered_per_second"] >= 1.2 * cost["taken_per_second"]
