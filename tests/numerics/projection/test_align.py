"""Procrustes alignment: it recovers a known motion, never scales, and is optimal."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.numerics.projection.align import Motion, procrustes


def motion(angle: float, mirrored: bool, shift: tuple[float, float] = (0.0, 0.0)) -> Motion:
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return Motion(rotation @ np.diag([1.0, -1.0 if mirrored else 1.0]), np.array(shift))


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("angle", [0.0, 0.7, 3.0])
def test_a_known_motion_is_recovered(angle: float, mirrored: bool) -> None:
    layout = np.random.default_rng(0).normal(size=(40, 2))
    true = motion(angle, mirrored, (5.0, -2.0))
    aligned = procrustes(layout, true(layout))
    np.testing.assert_allclose(aligned.rotation, true.rotation, atol=1e-12)
    np.testing.assert_allclose(aligned(layout), true(layout), atol=1e-12)


def test_no_other_motion_is_closer_and_distances_are_kept() -> None:
    random = np.random.default_rng(1)
    moving, fixed = random.normal(size=(30, 2)), 3.0 * random.normal(size=(30, 2))
    aligned = procrustes(moving, fixed)(moving)
    smallest = ((aligned - fixed) ** 2).sum()
    for angle in np.linspace(0, 2 * np.pi, 50):
        for mirrored in (False, True):
            other = motion(angle, mirrored)(moving)
            other += (fixed - other).mean(axis=0)
            assert ((other - fixed) ** 2).sum() >= smallest - 1e-9
    np.testing.assert_allclose(np.linalg.norm(aligned[1:] - aligned[0], axis=1),
                               np.linalg.norm(moving[1:] - moving[0], axis=1))
    np.testing.assert_allclose(aligned.mean(axis=0), fixed.mean(axis=0), atol=1e-12)
