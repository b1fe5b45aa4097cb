"""Curves of many rows: at most five in color, whose names do not overlap."""

from __future__ import annotations

import plotly.graph_objects as go
import pytest

from pages.parts.draw.figures import GRAY
from pages.parts.results import many_curves as module
from pages.parts.results.many_curves import colored_rows, many_curves, spread_apart, whole_curves


def test_the_baselines_and_the_best_rows_have_colors() -> None:
    ends = {"a": 1.0, "b": 2.0, "PCA, centered": 0.5, "c": 3.0, "Frozen features": 0.2, "d": 4.0, "e": 5.0}
    assert colored_rows(ends, False) == ["e", "d", "c", "PCA, centered", "Frozen features"]
    assert colored_rows(ends, True) == ["Frozen features", "PCA, centered", "a", "b", "c"]


def test_two_values_are_no_curve_beside_longer_ones() -> None:
    long, short = [(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)], [(0.0, 1.0), (1.0, 2.0)]
    assert set(whole_curves({"long": long, "short": short})) == {"long"}
    assert set(whole_curves({"short": short, "single": short[:1]})) == {"short"}


def test_names_at_the_ends_lie_apart() -> None:
    assert spread_apart([5.0, 4.9, 4.8, 1.0], 0.5) == [5.0, 4.5, 4.0, 1.0]


def test_other_rows_are_gray_and_named_under_the_pointer(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[go.Figure] = []
    monkeypatch.setattr(module, "draw", lambda figure, *_: drawn.append(figure))
    rows = {f"row {number}": [{"epoch": epoch, "loss": number + 1 / (1 + epoch)} for epoch in range(4)]
            for number in range(14)}
    many_curves("loss", rows, "curves")
    colors = [trace.line.color for trace in drawn[0].data]
    assert sum(color != GRAY for color in colors) == 5
    assert colors[-1] != GRAY, "colors lie above the gray lines"
    assert {note.text for note in drawn[0].layout.annotations} == {f"row {number}" for number in range(5)}
    assert all(trace.hovertemplate.startswith("%{fullData.name}: ") for trace in drawn[0].data)
    assert not drawn[0].layout.showlegend
