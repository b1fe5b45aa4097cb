"""A step is the encoder's: at most 1.2 times its bare forward and backward pass, and the input keeps ahead of it."""

from __future__ import annotations

import pytest

from experiments.instance_costs import METHODS, costs

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("name", METHODS)
def test_a_step_costs_little_beside_the_encoder_and_the_input_keeps_ahead(name: str) -> None:
    found = costs(name, "resnet18-small", 32, 64, "cpu")
    print(name, found)
    assert found["ratio"] <= 1.2
    assert found["delivered_per_second"] >= 1.2 * found["taken_per_second"]
