"""Affinity propagation at the paper's n = 9,100, k = 10 against the dense solve, and on 60,000 points at once."""

from __future__ import annotations

import pytest

from experiments.affinity_costs import Array, partition_costs, whole_costs
from experiments.affinity_costs import points as load_points
from udml_core.base.errors import UserError

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def points() -> tuple[Array, Array]:
    try:
        return load_points()
    except UserError as error:
        pytest.skip(str(error))


def test_a_partition_takes_at_most_a_twentieth_of_the_dense_solve(points: tuple[Array, Array]) -> None:
    costs = partition_costs(*points)
    assert costs["error"] < 1e-4
    assert costs["same halves"] >= 99
    assert costs["ratio"] > 20


def test_all_of_fashion_mnist_fits_in_time_and_memory(points: tuple[Array, Array]) -> None:
    costs = whole_costs(*points)
    assert costs["seconds"] < 300
    assert costs["memory, GB"] < 8
