"""Quality of images: rankings by blur, darkness, brightness, information, shape and size.

Every score is between 0 and 1, and the lowest is the worst. A limit says which images count as findings; the ranking
goes on beyond it, because what is bad in one collection is usual in another.

References:
    Cleanlab, "CleanVision", github.com/cleanlab/cleanvision, whose formulas and limits these are, except for blur:
    CleanVision looks at 64 pixels, where many blurred photographs look sharp; see `experiments/blur.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Booleans, Floats, Integers
from udml_core.data.image_facts import ImageFacts

BLUR_SCALE, INFORMATION_SCALE = 0.01, 0.1
PLAIN_SPREAD = 0.18
"""Scaled spread of the histogram up to which an image may be blurred; a drawing of few colors has sharp edges."""
SIZE_RANGES = 3.0
"""Interquartile ranges between a quartile and an odd size."""
JUST_ODD = 0.499
"""Largest score of a size that differs where most images have one size."""


@dataclass(frozen=True)
class Check:
    """A check of quality.

    Attributes:
        title: Its name on pages.
        limit: Score below which an image counts as a finding.
        text: What the score is.
    """

    title: str
    limit: float
    text: str


CHECKS = {
    "blurry": Check("Blurry", 0.2, "fine detail of the sharpest part, from 0 (smooth) to 1 (crisp)"),
    "dark": Check("Dark", 0.32, "brightness of the brightest parts, from 0 (black) to 1 (white)"),
    "bright": Check("Bright", 0.05, "darkness of the darkest parts, from 0 (white) to 1 (black)"),
    "information": Check("Low information", 0.3, "variety of the colors, from 0 (one plain color) to 1"),
    "aspect": Check("Odd aspect ratio", 0.35, "shorter side divided by the longer, 1 for a square"),
    "size": Check("Odd size", 0.5, "how near the size is to the usual size: 1 is usual, below 0.5 is odd"),
}


def quality_scores(facts: ImageFacts, check: str) -> Floats:
    """Return the scores (n,) of a check, 0 … 1; the lowest is the worst.

    Args:
        facts: Facts about all images.
        check: A name in `CHECKS`.
    """
    match check:
        case "blurry":
            scores = np.where(np.isnan(facts.detail), edge_scores(facts), np.minimum(facts.detail, 1.0))
        case "dark":
            scores = facts.dark
        case "bright":
            scores = 1 - facts.light
        case "information":
            scores = np.minimum(INFORMATION_SCALE * facts.entropy, 1.0)
        case "aspect":
            scores = np.minimum(facts.width, facts.height) / np.maximum(facts.width, facts.height)
        case _:
            scores = _size_scores(np.sqrt(facts.pixels))
    return np.asarray(scores, np.float64)


def edge_scores(facts: ImageFacts) -> Floats:
    """Return CleanVision's scores of blur (n,), for facts of earlier versions and as a reference."""
    blur, spread = (1 - np.exp(-BLUR_SCALE * values) for values in (facts.edges, facts.spread))
    return np.minimum(blur + np.where(spread <= PLAIN_SPREAD, 0.0, spread), 1.0)


def _size_scores(sides: Floats) -> Floats:
    """Return how close sides (n,) are to the middle of the usual range; 0.5 at its ends."""
    low, high = np.percentile(sides, [25, 75])
    middle, width = (low + high) / 2, (high - low) * (1 + 2 * SIZE_RANGES)
    if not width:  # most images have one size, and every other size is odd
        distance = np.minimum(np.abs(sides - middle) / middle, 1.0)
        return np.where(distance == 0, 1.0, np.minimum(JUST_ODD, 1 - distance))
    return 1 - np.minimum(np.abs(sides - middle) / width, 1.0)


def worst_first(scores: Floats, kept: Booleans) -> Integers:
    """Return the images of a mask (n,), the lowest score first."""
    images = np.flatnonzero(kept)
    return images[np.argsort(scores[images], kind="stable")]


def poor_images(facts: ImageFacts, kept: Booleans, check: str, limit: float | None = None) -> Integers:
    """Return the images below the limit of a check, the worst first.

    Args:
        facts: Facts about all images.
        kept: Mask (n,) of the images that are not excluded.
        check: A name in `CHECKS`.
        limit: The limit; by default the check's own.
    """
    scores = quality_scores(facts, check)
    ranked = worst_first(scores, kept)
    return ranked[scores[ranked] < (CHECKS[check].limit if limit is None else limit)]
