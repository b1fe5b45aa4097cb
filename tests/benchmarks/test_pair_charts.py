"""The paper's figures from a record: one line for each method in both figures."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from experiments.pair_charts import NO_PROJECTION, chart, curves
from experiments.pairs import DEPTHS


def row(best: float) -> dict[str, list[float]]:
    return {f"mprec@{k}": [best - k / 2, 0.1] for k in DEPTHS}


ROWS = {NO_PROJECTION: row(80), "NML d=8": row(85), "ML d=8": row(70), "NML d=64": row(90), "ML d=64": row(88)}


def test_every_method_has_one_curve_over_k_and_one_over_the_width() -> None:
    over_depth, over_width = curves(ROWS, 64)
    assert over_depth["NML"] == [(k, 90 - k / 2) for k in DEPTHS]
    assert over_width == {"NML": [(8, 80.0), (64, 85.0)], "ML": [(8, 65.0), (64, 83.0)],
                          NO_PROJECTION: [(8, 75.0), (64, 75.0)]}


def test_the_figures_are_drawn_to_scale() -> None:
    drawn = ElementTree.fromstring(chart("Birds & trees", ROWS, 64))
    lines = [[tuple(map(float, point.split(","))) for point in line.get("points", "").split()]
             for line in drawn.iter("{http://www.w3.org/2000/svg}polyline")]
    assert [len(line) for line in lines] == [len(DEPTHS)] * 3 + [2] * 3
    nml, ml, no_projection = lines[3:]
    assert nml[0][0] == ml[0][0] == no_projection[0][0]
    assert nml[0][1] - nml[1][1] == pytest.approx((85 - 80) * (no_projection[1][1] - nml[1][1]) / (85 - 75), abs=0.2)
    assert len({line.get("stroke-dasharray") + line.get("stroke") for line in  # type: ignore[operator]
                drawn.iter("{http://www.w3.org/2000/svg}polyline")}) == 3
