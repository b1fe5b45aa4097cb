"""Lesson 14: two weak encoders, from the record of encoders side by side."""

from __future__ import annotations

import json
from typing import Any

from udml_core.base.paths import ASSETS

ROWS = {"first": "EfficientNet-Lite0, whitened", "second": "SqueezeNet, whitened", "both": "Both, whitened together"}
DATA_SETS = {"Birds, 100 species, 112 px": "birds", "Emoji, 1,214 drawings, 96 px": "drawings",
             "Fashion-MNIST, 6,000 images, 96 px": "clothes"}


def encoders() -> dict[str, Any]:
    """Return the number of queries, and R@1 and MAP@R of both encoders, apart and joined, by data set."""
    record = json.loads((ASSETS / "results" / "side-by-side.json").read_text(encoding="utf-8"))
    return {"record": [{"name": words, "images": record["datasets"][name]["images"]} | {
        key: [record["datasets"][name]["rows"][row][measure] for measure in ("recall@1", "map@r")]
        for key, row in ROWS.items()} for name, words in DATA_SETS.items()]}
