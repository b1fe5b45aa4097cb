"""Runs on a GPU give the result of the CPU up to rounding, and the same bits each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.running import trained
from udml_core.base.arrays import Array
from udml_core.methods import METHODS, Method
from udml_core.runs import Run

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
CHAOTIC = {"apllr"}
"""Rounding changes these losses in a trained encoder: on a CPU, one thread or two change APLLR's by 14 percent."""
SMALL = {"dimension": 16, "epochs": 2, "iterations": 2, "steps": 2}


def small(method: type[Method], part: str) -> dict[str, Any]:
    """Return the fields of a run of seconds that trains a part of the encoder."""
    values = SMALL | {"trains": part} | ({"batch_norm": "batch"} if part == "all" else {})
    return {name: value for name, value in values.items() if name in method.model_fields}


def finished(root: Path, method: type[Method], device: str, part: str, **options: Any) -> Run:
    """Return a run that trained to its end."""
    run = trained(root, method=method.card.name, fields=small(method, part), device=device, precision="fp32", **options)
    assert run.status().state == "done", run.status().message
    return run


def similarities(run: Run) -> Array:
    """Return the similarities of the first images, which no rotation of the embedding changes."""
    rows = np.asarray(run.embeddings("final")[:300], np.float64)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows @ rows.T


def losses(run: Run) -> list[float]:
    """Return the first loss of each trained epoch."""
    curves, _ = run.metrics()
    return [next(value for name, value in row.items() if name != "epoch") for row in curves[1:]]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.card.name)
def test_a_method_on_a_gpu_agrees_with_the_cpu(method: type[Method], tmp_path: Path) -> None:
    on_gpu, on_cpu = (finished(tmp_path, method, device, "head") for device in ("cuda:0", "cpu"))
    assert losses(on_gpu) == pytest.approx(losses(on_cpu), rel=0.01, abs=1e-4)
    assert np.corrcoef(similarities(on_gpu).ravel(), similarities(on_cpu).ravel())[0, 1] > 0.99


@pytest.mark.parametrize("method", [method for method in METHODS if "trains" in method.model_fields
                                    and method.card.name not in CHAOTIC],
                         ids=lambda method: method.card.name)
def test_an_encoder_on_a_gpu_trains_as_on_the_cpu(method: type[Method], tmp_path: Path) -> None:
    on_gpu, on_cpu = (finished(tmp_path, method, device, "all", backbone="cnn", size=16)
                      for device in ("cuda:0", "cpu"))
    assert losses(on_gpu)[0] == pytest.approx(losses(on_cpu)[0], rel=0.02, abs=1e-3)


@pytest.mark.parametrize("part", ["head", "all"])
def test_a_run_on_a_gpu_repeats_bit_by_bit(part: str, tmp_path: Path) -> None:
    method = next(each for each in METHODS if each.card.name == "isif")
    first, second = (finished(tmp_path, method, "cuda:0", part, backbone="cnn", size=16) for _ in range(2))
    assert np.array_equal(first.embeddings("final"), second.embeddings("final"))
