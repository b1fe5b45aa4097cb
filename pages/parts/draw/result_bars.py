"""The result of a run as bars beside the frozen features and PCA."""

from __future__ import annotations

import html
from collections.abc import Mapping

import streamlit as st

from udml_core.numerics.measures import MAIN_MEASURES
from udml_core.runs import Spec
from udml_core.runs.verdict import Evaluation, Standing, images_of, place_words, standing

TESTED: Mapping[str, str] = {"seen": "of the classes that it trained on", "all": "which it also trained on",
                             "zero-shot": "of classes that it never trained on"}
"""The test images of a run, by its split."""
KINDS = {-1: "below", 0: "level", 1: ""}
"""The look of a run's bar, by its side of the baselines."""


def show_bars(title: str, evaluation: Evaluation, spec: Spec, raw: str, more: str = "") -> None:
    """Show each main measure of a run and of what needs no training, as bars of one scale, and its place among them.

    Args:
        title: The title of the method.
        evaluation: The run's evaluation.
        spec: The run's spec.
        raw: Name of what the images are compared by without training.
        more: Further words for the "?" of the line below the bars.
    """
    known = [(measure, standing(evaluation, measure.key)) for measure in MAIN_MEASURES]
    measured = [(measure, values) for measure, values in known if values.after is not None]
    images = images_of(evaluation)
    bars = "".join(bars_of(title, measure.plain_title, values, raw, images) for measure, values in measured)
    st.html(f'<div class="verdict-bars">{bars}</div>')
    st.caption(protocol_of(evaluation, spec),
               help=" ".join([*filter(None, [more]), *(f"{measure.name}: {measure.help}" for measure, _ in measured)]))


def protocol_of(evaluation: Evaluation, spec: Spec) -> str:
    """Say on which images a run was measured, and by how many numbers its search compares them."""
    images = images_of(evaluation)
    count = "Test images" if images is None else f"{images:,.0f} test images"
    width = spec.fields.get("dimension")
    return f"{count} {TESTED[spec.split]}" + (f", by {width} numbers each" if width else "")


def bars_of(title: str, measure: str, values: Standing, raw: str, images: float | None = None) -> str:
    """Return the bars of one measure as HTML; the run's bar comes first, in the color of its side of the baselines.

    Args:
        title: The title of the method.
        measure: Name of the measure, which is a percentage.
        values: The run's value and its baselines.
        raw: Name of what the images are compared by without training.
        images: Number of test images; None if it is not known.
    """
    rows = [(title, values.after, f" own {KINDS[values.side(images)]}".rstrip()), (raw, values.frozen, ""),
            ("PCA, same width", values.pca, "")]
    lines = "".join(
        f'<div class="result-bar{kind}"><span>{html.escape(name)}</span><b>{value:.1f}\N{NO-BREAK SPACE}%</b>'
        f'<i style="width: {max(0.0, min(100.0, value)):.1f}%"></i></div>' for name, value, kind in rows
        if value is not None)
    place = f" {html.escape(place_words(values, raw, images))}" if values.frozen is not None else ""
    return f'<div class="result-bars"><div class="verdict-name"><b>{html.escape(measure)}</b>{place}</div>{lines}</div>'
