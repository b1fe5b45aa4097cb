"""Which pairs are asked about: near the hinge's bends, of both kinds, none twice."""

from __future__ import annotations

import numpy as np

from udml_core.views.pairs import informative_pairs

POINTS = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
SQUARED = ((POINTS[:, None].astype(np.float64) - POINTS[None]) ** 2).sum(axis=2)
ABOVE = np.triu_indices(60, 1)


def test_both_kinds_come_in_turn_the_most_doubtful_first() -> None:
    bias, margin = float(np.median(SQUARED)), 0.5
    pairs, squared = informative_pairs(POINTS, bias, margin, 9)
    np.testing.assert_allclose(squared, SQUARED[pairs[:, 0], pairs[:, 1]], rtol=1e-5)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert (squared < bias).tolist() == [True, False] * 4 + [True]
    every = SQUARED[ABOVE]
    for kind, edge, inside in ((squared < bias, bias - margin, every < bias), (squared >= bias, bias + margin,
                                                                              every >= bias)):
        gaps = np.abs(squared[kind] - edge)
        np.testing.assert_allclose(gaps, np.sort(np.abs(every[inside] - edge))[:kind.sum()], rtol=1e-4, atol=1e-5)


def test_what_is_known_is_not_asked_again() -> None:
    bias = float(np.median(SQUARED))
    seen = np.zeros((0, 2), dtype=np.int64)
    for _ in range(5):
        pairs, _ = informative_pairs(POINTS, bias, 0.1, 8, seen[:, ::-1])
        assert not {tuple(one) for one in pairs} & {tuple(one) for one in seen}
        seen = np.concatenate([seen, pairs])


def test_a_kind_that_is_not_there_is_not_asked_about() -> None:
    pairs, squared = informative_pairs(POINTS, 1e9, 1.0, 10)
    assert len(pairs) == 5
    assert (squared < 1e9).all()
    assert len(informative_pairs(POINTS[:2], 1.0, 0.1, 10)[0]) == 1
    known = np.array([[0, 1]])
    assert len(informative_pairs(POINTS[:2], 1.0, 0.1, 10, known)[0]) == 0
