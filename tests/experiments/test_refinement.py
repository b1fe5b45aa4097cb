"""The record of refinement: its features of several encoders, and what its texts state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.refinement import TWO_ZOOMS, VIEWS, viewed
from tests.project.documents import ROOT
from udml_core.data import catalog
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.refinement_views import average_features
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.results.records import FOLDER, findings

INSIDE, OUTSIDE = "gallery seen, with the queries in it", "gallery seen, queries from outside"
BEFORE, CHOICE = "no step has seen the test images", "choice on the training classes"
GOAL = {"recall@1": 87, "map@r": 64}


def test_the_features_of_several_encoders_are_averaged_over_views_and_stand_unwhitened_side_by_side(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path))
    dataset = catalog.load("digits")
    spec = choose_spec("pixels+cnn", 8, True, size=8, whitening="none")
    (zooms,) = TWO_ZOOMS.values()
    assert [(view.zoom, view.flip) for view in zooms] == [(zoom, flip) for zoom in (1, 0.85, 0.7) for flip in (0, 1)]
    views = {"image": VIEWS["image"], "six": zooms}
    features = viewed(dataset, spec, np.arange(0, len(dataset), 2), views)
    for name, of in views.items():
        parts = [unit_rows(average_features(dataset, Encoder(part), of)) for part in spec.parts]
        np.testing.assert_allclose(features[name], np.concatenate(parts, axis=1) / np.sqrt(2), atol=1e-6)
    assert not np.allclose(features["image"], features["six"])


def tables(name: str) -> dict[str, dict[str, Any]]:
    """Return the tables of a record by the end of their titles."""
    datasets = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["datasets"]
    return {title.split(": ", 1)[1]: table["rows"] for title, table in datasets.items()}


def chosen(name: str) -> str:
    """Return the recipe with the largest sum of Recall@1 and MAP@R on the training classes."""
    rows = tables(name)[CHOICE]
    return max(rows, key=lambda recipe: rows[recipe]["recall@1"] + rows[recipe]["map@r"])


def test_the_texts_state_what_two_encoders_reach_with_the_gallery() -> None:
    both, alone = tables("refinement-birds100-both"), tables("refinement-birds100-112")
    recipe = chosen("refinement-birds100-both")
    inside, outside = both[INSIDE][recipe], both[OUTSIDE][recipe]
    assert [part.split(":")[0] for part in recipe.split("+")] == ["average", "rerank"]
    assert all(inside[measure] >= goal for measure, goal in GOAL.items()), "met for images of the gallery"
    assert all(outside[measure][0] < goal for measure, goal in GOAL.items()), "missed for queries from outside"
    single = alone[INSIDE][chosen("refinement-birds100-112")]
    views, white = both[BEFORE]["Frozen features"], both[BEFORE]["Flip and two zooms, whitening"]
    reranked = next(row for name, row in both[INSIDE].items() if name.startswith("rerank"))
    assert max(row["recall@1"] for row in both[INSIDE].values()) == reranked["recall@1"]
    averaged, expanded = (next(row for name, row in both[OUTSIDE].items() if name.startswith("average:")
                               and "rerank" not in name and ("expand" in name) == of) for of in (False, True))
    start = both[BEFORE]["Flip and two zooms, whitening, 600 queries outside"]
    text = " ".join(next(finding.text for finding in findings() if finding.name == "refinement-birds100-both").split())
    for words in (
            f"raise R@1 from {views['recall@1']:.1f} to {white['recall@1']:.1f} and MAP@R from {views['map@r']:.1f} to "
            f"{white['map@r']:.1f}",
            f"reach R@1 {inside['recall@1']:.1f} and MAP@R {inside['map@r']:.1f}**",
            "reaches {:.1f} ± {:.1f} and {:.1f} ± {:.1f}".format(*outside["recall@1"], *outside["map@r"]),
            f"its own choice, {single['recall@1']:.1f} and {single['map@r']:.1f}",
            f"highest R@1, {reranked['recall@1']:.1f}, and MAP@R {reranked['map@r']:.1f}",
            f"from {start['recall@1'][0]:.1f} to {averaged['recall@1'][0]:.1f}; query expansion returns it to "
            f"{expanded['recall@1'][0]:.1f}"):
        assert words in text, words
    guide = " ".join((ROOT / "docs" / "results.md").read_text(encoding="utf-8").split())
    assert (f"**With the unlabeled gallery** both reach R@1 {inside['recall@1']:.1f} and MAP@R {inside['map@r']:.1f} "
            "on birds") in guide
    assert "outside the gallery reach {:.1f} and {:.1f}".format(outside["recall@1"][0], outside["map@r"][0]) in guide
