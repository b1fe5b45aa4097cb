"""The next images of each class to ask about."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from udml_core.base.arrays import Array
from udml_core.exploration.naming import GAMMA, Naming, Reached, reach_of, symmetric_walk
from udml_core.exploration.next_names import FEWEST, MOST, next_proposals
from udml_core.numerics.neighbors import nearest

CENTERS = np.array([[0.0, 0.0], [5.0, 0.0], [40.0, 0.0]])
"""Middles of three classes, of which two are close."""


@pytest.fixture(scope="module")
def naming() -> Naming:
    """Three classes of 30 images, of which five have a label each."""
    random = np.random.default_rng(3)
    points = np.concatenate([center + random.normal(size=(30, 2)) for center in CENTERS])
    codes = np.full(90, -1)
    for code in range(3):
        codes[30 * code : 30 * code + 5] = code
    walk = symmetric_walk(nearest(points.astype(np.float32), 20)[1])
    return Naming(Reached(codes, 3, lambda labeled: reach_of(walk, labeled, GAMMA)), np.zeros((0, 2), int))


def ask(naming: Naming, most: int = MOST) -> dict[int, Array]:
    found = next_proposals(naming, naming.codes < 0, np.full(3, most))
    for proposal in found:
        assert (np.diff(proposal.certainty) <= 0)[: len(proposal.rows) // 2].all(), "the most certain first"
        assert (naming.codes[proposal.rows] < 0).all()
        np.testing.assert_allclose(proposal.certainty, naming.certainties[proposal.rows, proposal.code])
    return {proposal.code: proposal.rows for proposal in found}


def test_the_class_comes_first_whose_labels_are_reached_alone(naming: Naming) -> None:
    found = ask(naming)
    assert next(iter(found)) == 2, "walks from the other classes end at two of them"
    assert all((rows // 30 == code).all() for code, rows in found.items())
    assert [len(rows) for rows in found.values()] == [MOST] * 3


def test_each_class_has_ten_images_at_least_of_which_its_own_come_first(naming: Naming) -> None:
    best = naming.named[0]
    few = replace(naming, rejected=np.array([[row, 0] for row in range(5, 27)]))
    rows = ask(few)[0]
    assert len(rows) == FEWEST
    own = few.named[0][rows] == 0
    assert 3 <= own.sum() < FEWEST
    assert own[: own.sum()].all(), "others fill up behind"
    assert not np.isin(rows, np.arange(5, 27)).any(), "never an image that was rejected"
    assert (best[np.arange(5, 27)] == 0).all()


def test_no_image_is_asked_about_without_labels_or_open_images(naming: Naming) -> None:
    assert next_proposals(naming, np.zeros(90, bool), np.full(3, MOST)) == []
    none = Naming(Reached(np.full(90, -1), 0, naming.reached.reach), np.zeros((0, 2), int))
    assert next_proposals(none, np.ones(90, bool), np.zeros(0, int)) == []


def test_a_certain_class_whose_labels_disagree_comes_later() -> None:
    certainties, shares = np.array([[0.9, 0.1], [0.1, 0.8]]), np.array([[0.5, 0.5], [0.05, 0.95]])
    known = SimpleNamespace(classes=2, certainties=certainties, agreement=lambda rows: shares[rows],
                            named=(np.array([0, 1]), np.array([0.9, 0.8])))
    found = next_proposals(cast(Naming, known), np.ones(2, bool), np.full(2, MOST))
    assert [proposal.code for proposal in found] == [1, 0]
