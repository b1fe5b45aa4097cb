"""Colors of classes differ from each other, also for readers with deuteranopia, and from hit, miss and query."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from pages.parts.draw.palette import CLASS_COLORS, HIT, MISS, QUERY
from udml_core.base.arrays import Array

FIRST, ALL, DEUTERANOPIA, MARKS = 18.0, 15.0, 9.0, 14.0
"""Least CIEDE2000 distance of the first 10 colors, of all 20, of the first 8 with deuteranopia, and from marks."""
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
                [0.0193339, 0.1191920, 0.9503041]])
SIMULATED = np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                      [-0.011820, 0.042940, 0.968881]])
"""Deuteranopia in linear RGB, of Machado, Oliveira & Fernandes (2009)."""


def linear(color: str) -> Array:
    parts = np.array([int(color[at:at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(light: Array) -> Array:
    """Return CIELAB of linear RGB under D65."""
    ratios = XYZ @ light / XYZ.sum(axis=1)
    x, y, z = np.where(ratios > (6 / 29) ** 3, np.cbrt(ratios), ratios / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def ciede2000(first: Array, second: Array) -> float:
    """Compute the color difference of Sharma, Wu & Dalal (2005), whose letters this follows."""
    chroma = np.mean([np.hypot(*color[1:]) for color in (first, second)])
    stretch = 1.5 - 0.5 * np.sqrt(chroma ** 7 / (chroma ** 7 + 25.0 ** 7))
    (l1, c1, h1), (l2, c2, h2) = (
        (color[0], np.hypot(stretch * color[1], color[2]), np.degrees(np.arctan2(color[2], stretch * color[1])) % 360)
        for color in (first, second))
    turn = (h2 - h1 + 180) % 360 - 180
    h = (h1 + turn / 2) % 360
    lightness, c = (l1 + l2) / 2, (c1 + c2) / 2
    weights = ((-0.17, 1, 30), (0.24, 2, 0), (0.32, 3, -6), (-0.20, 4, 63))
    t = 1 + sum(weight * np.cos(np.radians(times * h - shift)) for weight, times, shift in weights)
    rotation = (-2 * np.sqrt(c ** 7 / (c ** 7 + 25.0 ** 7)) * np.sin(np.radians(60 * np.exp(-((h - 275) / 25) ** 2))))
    d_l = (l2 - l1) / (1 + 0.015 * (lightness - 50) ** 2 / np.sqrt(20 + (lightness - 50) ** 2))
    d_c = (c2 - c1) / (1 + 0.045 * c)
    d_h = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2)) / (1 + 0.015 * c * t)
    return float(np.sqrt(d_l ** 2 + d_c ** 2 + d_h ** 2 + rotation * d_c * d_h))


def difference(first: str, second: str) -> float:
    return ciede2000(lab(linear(first)), lab(linear(second)))


@pytest.mark.parametrize(("first", "second", "expected"), [
    ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425), ((50, 2.5, 0), (50, 0, -2.5), 4.3065),
    ((50, 2.5, 0), (73, 25, -18), 27.1492), ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082)])
def test_differences_agree_with_the_printed_ones(first: tuple[float, ...], second: tuple[float, ...],
                                                 expected: float) -> None:
    assert ciede2000(np.array(first), np.array(second)) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colors_of_classes_differ(theme: str) -> None:
    colors = CLASS_COLORS[theme]
    assert len(colors) == 20
    assert min(difference(*pair) for pair in combinations(colors[:10], 2)) >= FIRST
    assert min(difference(*pair) for pair in combinations(colors, 2)) >= ALL


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colors_of_classes_differ_with_deuteranopia(theme: str) -> None:
    seen = [lab(np.clip(SIMULATED @ linear(color), 0, 1)) for color in CLASS_COLORS[theme][:8]]
    assert min(ciede2000(*pair) for pair in combinations(seen, 2)) >= DEUTERANOPIA


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_class_has_the_color_of_a_hit_a_miss_or_the_query(theme: str) -> None:
    assert min(difference(color, mark) for color in CLASS_COLORS[theme] for mark in (HIT, MISS, QUERY)) >= MARKS
