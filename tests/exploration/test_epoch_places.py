"""Earlier embeddings drawn on the map after training, compared with a loop."""

from __future__ import annotations

import numpy as np

from udml_core.exploration.epoch_places import place_among_neighbors


def test_a_point_lies_at_the_mean_of_its_neighbors() -> None:
    random = np.random.default_rng(0)
    embedding, layout = random.normal(size=(30, 4)), random.normal(size=(30, 2))
    places, neighbors = place_among_neighbors(embedding, layout, 3)
    for row in range(30):
        order = np.argsort(((embedding - embedding[row]) ** 2).sum(axis=1), kind="stable")
        near = [other for other in order.tolist() if other != row][:3]
        assert neighbors[row].tolist() == near
        np.testing.assert_allclose(places[row], layout[near].mean(axis=0), rtol=1e-5, atol=1e-6)


def test_two_points_change_places() -> None:
    layout = np.array([[0.0, 1.0], [2.0, 3.0]])
    np.testing.assert_array_equal(place_among_neighbors(np.zeros((2, 3)), layout)[0], layout[::-1])
