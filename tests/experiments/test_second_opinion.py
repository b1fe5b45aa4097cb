"""The record of the second opinion: its rows, and how agreement, regret and false verdicts are counted."""

from __future__ import annotations

from typing import Any

from experiments.second_opinion import judged, name_of, tracks


def comparison(after: float, difference: float, error: float = 0.1) -> dict[str, Any]:
    """Return a comparison with a true MAP@R of 50 before, and a judge's difference."""
    return {"truth": {"map@r": [50.0, after]}, "opinions": {"judge": {"group 60": [difference, error]}}}


def test_agreement_counts_large_differences_and_regret_the_preferred_embedding() -> None:
    rows = [comparison(60, 0.5), comparison(58, 0.9), comparison(49, 0.3), comparison(45, 0.1), comparison(51, -0.4)]
    result = judged(rows, "judge", "group 60", "map@r")
    assert (result["large"], result["agreement"]) == (3, 2)
    assert result["regret"] == 2
    assert (result["better"], result["false better"], result["worse"], result["false worse"]) == (3, 1, 1, 1)


def test_a_judge_that_prefers_the_frozen_features_loses_the_gain_of_the_best() -> None:
    assert judged([comparison(60, -0.5), comparison(55, -0.1)], "judge", "group 60", "map@r")["regret"] == 10


def test_each_encoder_of_a_data_set_is_a_track_of_its_own() -> None:
    names = [name_of(track) for track in tracks()]
    assert len(set(names)) == len(names)
    assert "birds100, squeezenet" in names
    assert "emoji, efficientnet-lite0" in names
    assert {track.trains for track in tracks()} == {"head"}
