"""mprec@K over K and over the width: as kept, averaged over the runs of one kind."""

from __future__ import annotations

import numpy as np

from udml_core.exploration.precision import over_depth, over_width


def test_a_curve_reaches_as_far_as_it_was_kept() -> None:
    row = {f"mprec@{k}": 100.0 - k for k in range(1, 51)}
    np.testing.assert_array_equal(over_depth(row), 100.0 - np.arange(1, 51))
    del row["mprec@8"]
    np.testing.assert_array_equal(over_depth(row), 100.0 - np.arange(1, 8))
    assert len(over_depth({"mprec@10": 4.0})) == 0, "of before there was a curve"


def test_runs_that_differ_in_width_or_seed_are_one_line() -> None:
    rows = [{"dimension": width, "mprec@10": value} for width, value in ((32, 5.0), (8, 1.0), (8, 2.0), (16, 7.0))]
    found = over_width(["a", "a", "a", "b"], rows)
    assert {kind: [part.tolist() for part in curve] for kind, curve in found.items()} == {
        "a": [[8, 32], [1.5, 5.0]], "b": [[16], [7.0]]}
