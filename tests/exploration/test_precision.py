"""Curves of mprec@K over K, and over the width averaged over runs."""

from __future__ import annotations

import numpy as np

from udml_core.exploration.precision import precision_over_depth, precision_over_width


def test_a_curve_ends_at_the_first_missing_k() -> None:
    row = {f"mprec@{k}": 100.0 - k for k in range(1, 51)}
    np.testing.assert_array_equal(precision_over_depth(row), 100.0 - np.arange(1, 51))
    del row["mprec@8"]
    np.testing.assert_array_equal(precision_over_depth(row), 100.0 - np.arange(1, 8))
    assert len(precision_over_depth({"mprec@10": 4.0})) == 0, "an evaluation without mprec@1 has no curve"


def test_runs_that_differ_only_in_width_or_seed_form_one_curve() -> None:
    rows = [{"dimension": width, "mprec@10": value} for width, value in ((32, 5.0), (8, 1.0), (8, 2.0), (16, 7.0))]
    curves = precision_over_width(["a", "a", "a", "b"], rows)
    assert {kind: [part.tolist() for part in curve] for kind, curve in curves.items()} == {
        "a": [[8, 32], [1.5, 5.0]], "b": [[16], [7.0]]}
