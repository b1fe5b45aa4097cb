"""The angles of sample triplets against α, in a picture that follows the slider of α while it moves."""

from __future__ import annotations

from udml_core.exploration.preview import Preview
from udml_core.exploration.triplets import angle_histogram

from ..draw.transport import component

HTML = """<div class="angles"><div class="title"></div>
<svg role="img" viewBox="0 0 300 190"></svg></div>
"""
SLIDER = ('.st-key-lab [class*="st-key-effect-"]:is([class*="-alpha "], [class$="-alpha"]) '
          '[data-testid="stSliderThumbValue"]')
"""Selector of the value that the slider shows while it moves."""
DEGREES = 90


def shares_beyond(result: Preview) -> list[float]:
    """Return the percentage of the triplets beyond each whole degree from 0 to 90."""
    return [100 * result.violations(float(degree)) for degree in range(DEGREES + 1)]


def show_angles(result: Preview, alpha: float) -> None:
    """Show the histogram of the angles.

    Args:
        result: The preview, which has triplets.
        alpha: The bound in degrees.
    """
    assert result.shape is not None
    edges, counts = angle_histogram(result.shape)
    component("angles", HTML)(data={"edges": edges.tolist(), "counts": counts.tolist(), "alpha": alpha,
                                    "shares": shares_beyond(result), "slider": SLIDER}, key="train-angles")
