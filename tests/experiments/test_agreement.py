"""The record of both engines on 19 models: its table and its text state what was measured."""

from __future__ import annotations

import json
from typing import Any

from experiments.agreement import SPEED, as_table
from tests.data.encoders.test_hub import TIMM, TORCHVISION
from tests.project.documents import ROOT
from udml_core.data.inference import COMPARED, LEAST_COSINE
from udml_core.results.records import FOLDER, findings


def record() -> dict[str, Any]:
    read: dict[str, Any] = json.loads((FOLDER / "agreement.json").read_text(encoding="utf-8"))
    return read


def test_the_table_shows_every_model_that_the_tests_compare() -> None:
    assert as_table(record()) in (ROOT / "docs" / "galleries.md").read_text(encoding="utf-8")
    names = {name.partition(",")[0] for name in record()["datasets"]["Both engines on 16 images"]["rows"]}
    assert names == {*(f"timm:{name}" for name in TIMM), *(f"torchvision:{name}" for name in TORCHVISION),
                     "efficientnet-lite0", "squeezenet"}


def test_the_guide_states_both_speeds_of_the_usual_encoder() -> None:
    row = record()["datasets"]["Both engines on 16 images"]["rows"]["efficientnet-lite0, 112 px"]
    slow, fast = (value for key, value in row.items() if key.endswith(SPEED))
    text = " ".join((ROOT / "docs" / "galleries.md").read_text(encoding="utf-8").split())
    assert f"it handles {slow:.0f} images a processor second, not 84, and ONNX Runtime {fast:.0f}." in text


def test_the_text_states_the_smallest_cosine_the_speeds_and_the_cost_of_bfloat16() -> None:
    text = " ".join(next(finding.text for finding in findings() if finding.name == "agreement").split())
    rows, steps = (table["rows"] for table in record()["datasets"].values())
    ratios = {}
    for name, row in rows.items():
        slow, fast = (value for key, value in row.items() if key.endswith(SPEED))
        ratios[name.partition(",")[0]] = fast / slow
    hubs = [ratio for name, ratio in ratios.items() if ":" in name]
    smallest = min(row["smallest cosine"] for row in rows.values())
    assert smallest > LEAST_COSINE
    said = f"{int(smallest * 1e7) / 1e7:.7f}"
    assert f"all {len(hubs)} models of timm and torchvision**: the smallest cosine is {said}, and" in text
    assert f"{COMPARED} birds" in next(finding.source for finding in findings() if finding.name == "agreement")
    assert f"handles {min(hubs):.1f} to {max(hubs):.1f} times as many images a processor second, " in text
    own = [ratios[name] for name in ("efficientnet-lite0", "squeezenet")]
    assert "{:.1f} times with EfficientNet-Lite0 and {:.1f} times with SqueezeNet".format(*own) in text
    slower = [1 / steps[name]["ratio"] for name in ("all blocks", "last blocks")]
    assert "takes {:.1f} times as long with all blocks and {:.1f} times with the last blocks".format(*slower) in text
