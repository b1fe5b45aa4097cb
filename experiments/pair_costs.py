"""What NML costs: a step and an image beside KML's at several numbers of training images; pairs a second beside
autograd's.

    python -m experiments.pair_costs --out assets/results/nml-costs.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from experiments.zero_shot import made_by
from tests.benchmarks.measure import medians
from udml_core.files import jsonable
from udml_core.losses.kernels import ChiSquared, Linear
from udml_core.losses.pair_hinge import PairHinge
from udml_core.methods.embedder import KernelHead, histograms

WIDTH, DIMENSION, BATCH = 1280, 64, 100
SIZES = (500, 1000, 2000, 4000, 8000, 16000)
SHAPES = ((1280, 32), (1280, 64), (4096, 64))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    record = made_by("pair_costs") | {
        "threads": torch.get_num_threads(), "batch": BATCH,
        "costs": {"protocol": f"median milliseconds, D={WIDTH}, d={DIMENSION}: a step of {BATCH} pairs, where KML has "
                              "its kernel matrix already; and the embedding of one new image",
                  "rows": {str(count): costs(count) for count in SIZES}},
        "pairs a second": [speeds(width, dimension) for width, dimension in SHAPES]}
    given.out.write_text(json.dumps(jsonable(record), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def drawn(images: int, width: int = WIDTH) -> tuple[Tensor, Tensor, Tensor]:
    """Histograms (images, width), pairs of them, and which are the same."""
    random = torch.Generator().manual_seed(0)
    points = histograms(torch.rand(images, width, generator=random).square())
    return points, torch.randint(images, (BATCH, 2), generator=random), torch.arange(BATCH) % 2 == 0


def costs(count: int) -> dict[str, float]:
    """Milliseconds with `count` training images."""
    points, pairs, same = drawn(count)
    rows, dual = points[:DIMENSION] * 0.3, torch.randn(DIMENSION, count) * count**-0.5
    columns, new = torch.rand(count, count), points[:1]
    hinge, linear = PairHinge(ChiSquared(), 0.1, 0.02), PairHinge(Linear(), 1.0, 1.0)
    nonlinear, kernelized = KernelHead(rows, "chi2", 1.0), KernelHead(points, "chi2", 1.0, weight=dual.mT)
    seconds = (medians(31, nml_step=lambda: hinge.gradient(points, rows, pairs, same))  # alone, as each trains
               | medians(31, kml_step=lambda: linear.gradient(columns, dual, pairs, same))
               | medians(31, nml_image=lambda: nonlinear(new), kml_image=lambda: kernelized(new)))
    found = {name: 1000 * value for name, value in seconds.items()}
    print(f"n={count}: " + ", ".join(f"{name} {value:.3f} ms" for name, value in found.items()), flush=True)
    return found


def speeds(width: int, dimension: int) -> dict[str, Any]:
    """Pairs a second in batches, ours and autograd's."""
    points, pairs, same = drawn(3000, width)
    rows, hinge = points[:dimension] * 0.3, PairHinge(ChiSquared(), 0.1, 0.02)
    seconds = medians(7, ours=lambda: hinge.gradient(points, rows, pairs, same),
                      autograd=lambda: by_autograd(points, rows, pairs, same))
    found = {"D": width, "d": dimension} | {name: BATCH / value for name, value in seconds.items()}
    print(f"D={width}, d={dimension}: {found['ours']:,.0f} pairs/s, autograd {found['autograd']:,.0f} "
          f"({found['ours'] / found['autograd']:.1f}×)", flush=True)
    return found


def by_autograd(points: Tensor, rows: Tensor, pairs: Tensor, same: Tensor) -> Tensor:
    """The gradient as one first writes it in PyTorch."""
    free = rows.detach().requires_grad_()

    def embedded(x: Tensor) -> Tensor:
        return (2 * x[:, None] * free / (x[:, None] + free).clamp_min(1e-30)).sum(2)

    squared = (embedded(points[pairs[:, 0]]) - embedded(points[pairs[:, 1]])).square().sum(1)
    (0.02 - torch.where(same, 1.0, -1.0) * (0.1 - squared)).clamp_min(0).mean().backward()
    assert free.grad is not None
    return free.grad


if __name__ == "__main__":
    main()
