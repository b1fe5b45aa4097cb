"""Quality of images: rankings by blur, darkness, brightness, information, shape and size.

Every score is between 0 and 1, and the lowest is the worst. A limit says which images count as findings; the ranking
goes on beyond it, because what is bad in one collection is usual in another.

References:
    Cleanlab, "CleanVision", github.com/cleanlab/cleanvision, whose formulas and limits these are, except for blur and
    size: CleanVision looks at 64 pixels, where many blurred photographs look sharp (see `experiments/blur.py`), and its
    distances between sizes are differences, not ratios.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Booleans, Floats, Integers
from udml_core.data.image_facts import ImageFacts

BLUR_SCALE, INFORMATION_SCALE = 0.01, 0.1
PLAIN_SPREAD = 0.18
"""Scaled spread of the histogram up to which an image may be blurred; a drawing of few colors has sharp edges."""
SIZE_RANGES, ODD_RATIO = 3.0, 2.0
"""Interquartile ranges between a quartile and an odd size, and the least ratio of an odd side to the usual one: of
1,589 birds of mostly one size, good photographs a little smaller are not odd."""


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
    "size": Check("Odd size", 0.5, "how near the sides are to the usual ones on a scale of ratios: 1 is usual, and "
                  "below 0.5 they are less than half or more than double, at least"),
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
    """Return how close sides (n,) are to the usual side on a scale of ratios; 0.5 at the ends of the usual range."""
    logs = np.log(np.maximum(sides, 1))
    low, usual, high = np.percentile(logs, [25, 50, 75])
    width = max(np.log(ODD_RATIO), (high - low) * (0.5 + SIZE_RANGES))
    return np.asarray(0.5 ** (np.abs(logs - usual) / width))


def size_words(facts: ImageFacts, kept: Booleans, images: Integers) -> list[str]:
    """Return than how many images of a mask (n,) each of some images (m,) is smaller or larger."""
    pixels = np.sort(facts.pixels[kept])
    own, usual = facts.pixels[images], np.median(pixels)
    larger = len(pixels) - np.searchsorted(pixels, own, "right")
    shares = np.floor(100 * np.where(own < usual, larger, np.searchsorted(pixels, own)) / len(pixels)).astype(int)
    return ["usual size" if size == usual else f"{'smaller' if size < usual else 'larger'} than {share} %"
            for size, share in zip(own.tolist(), shares.tolist(), strict=True)]


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


def poor_by_check(facts: ImageFacts, kept: Booleans) -> dict[str, Integers]:
    """Return the images below the limit of each check, by its name, the worst first; see `poor_images`."""
    return {check: poor_images(facts, kept, check) for check in CHECKS}


def all_poor(found: Mapping[str, Integers]) -> Integers:
    """Return the images (m,) that checks found, each once, in the order of the checks."""
    images = np.concatenate(list(found.values()))
    return images[np.sort(np.unique(images, return_index=True)[1])]


def reason_words(found: Mapping[str, Integers], images: Integers) -> list[str]:
    """Return the titles of the checks that found each of some images (m,)."""
    has = {CHECKS[check].title: np.isin(images, poor) for check, poor in found.items()}
    return [", ".join(title for title, is_found in has.items() if is_found[row]) for row in range(len(images))]
