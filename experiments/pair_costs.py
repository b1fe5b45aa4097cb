"""Costs of NML.

A training step and an embedded image are compared with KML, and pairs per second with autograd.

    python -m experiments.pair_costs --out assets/results/nml-costs.json
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from experiments.recording import provenance, record_parser, write_record
from tests.benchmarks.measure import medians
from udml_core.methods.embedder import KernelHead, histograms
from udml_core.numerics.losses.kernels import ChiSquared, Linear
from udml_core.numerics.losses.pair_hinge import PairHinge

WIDTH, DIMENSION, BATCH = 1280, 64, 100
SIZES = (500, 1000, 2000, 4000, 8000, 16000)
SHAPES = ((1280, 32), (1280, 64), (4096, 64))


def main() -> None:
    parser = record_parser(__doc__)
    options = parser.parse_args()
    record = provenance("pair_costs") | {
        "threads": torch.get_num_threads(), "batch": BATCH,
        "costs": {"protocol": f"median milliseconds, D = {WIDTH}, d = {DIMENSION}: a step of {BATCH} pairs, without "
                              "computing KML's kernel matrix, and the embedding of one new image",
                  "rows": {str(count): costs(count) for count in SIZES}},
        "pairs a second": [speeds(width, dimension) for width, dimension in SHAPES]}
    write_record(options.out, record)


def draw_data(images: int, width: int = WIDTH) -> tuple[Tensor, Tensor, Tensor]:
    """Draw histograms and pairs of them.

    Returns:
        Histograms (images, width), pairs of rows (BATCH, 2), and whether a pair has the same class (BATCH,).
    """
    random = torch.Generator().manual_seed(0)
    points = histograms(torch.rand(images, width, generator=random).square())
    return points, torch.randint(images, (BATCH, 2), generator=random), torch.arange(BATCH) % 2 == 0


def costs(count: int) -> dict[str, float]:
    """Measure the milliseconds of steps and embeddings with `count` training images."""
    points, pairs, same = draw_data(count)
    rows, dual = points[:DIMENSION] * 0.3, torch.randn(DIMENSION, count) * count**-0.5
    columns, new = torch.rand(count, count), points[:1]
    hinge, linear = PairHinge(ChiSquared(), 0.1, 0.02), PairHinge(Linear(), 1.0, 1.0)
    nonlinear, kernelized = KernelHead(rows, "chi2", 1.0), KernelHead(points, "chi2", 1.0, weight=dual.mT)
    # NML and KML steps are timed separately, because each trains alone.
    seconds = (medians(31, nml_step=lambda: hinge.gradient(points, rows, pairs, same))
               | medians(31, kml_step=lambda: linear.gradient(columns, dual, pairs, same))
               | medians(31, nml_image=lambda: nonlinear(new), kml_image=lambda: kernelized(new)))
    milliseconds = {name: 1000 * value for name, value in seconds.items()}
    print(f"n={count}: " + ", ".join(f"{name} {value:.3f} ms" for name, value in milliseconds.items()), flush=True)
    return milliseconds


def speeds(width: int, dimension: int) -> dict[str, Any]:
    """Measure the pairs per second of the closed-form gradient and of autograd.

    `ours` is the closed-form gradient. Both work in batches.
    """
    points, pairs, same = draw_data(3000, width)
    rows, hinge = points[:dimension] * 0.3, PairHinge(ChiSquared(), 0.1, 0.02)
    seconds = medians(7, ours=lambda: hinge.gradient(points, rows, pairs, same),
                      autograd=lambda: by_autograd(points, rows, pairs, same))
    speed = {"D": width, "d": dimension} | {name: BATCH / value for name, value in seconds.items()}
    print(f"D={width}, d={dimension}: {speed['ours']:,.0f} pairs/s, autograd {speed['autograd']:,.0f} "
          f"({speed['ours'] / speed['autograd']:.1f}×)", flush=True)
    return speed


def by_autograd(points: Tensor, rows: Tensor, pairs: Tensor, same: Tensor) -> Tensor:
    """Compute the gradient by straightforward PyTorch code with autograd."""
    prototypes = rows.detach().requires_grad_()

    def embedded(x: Tensor) -> Tensor:
        return (2 * x[:, None] * prototypes / (x[:, None] + prototypes).clamp_min(1e-30)).sum(2)

    squared = (embedded(points[pairs[:, 0]]) - embedded(points[pairs[:, 1]])).square().sum(1)
    (0.02 - torch.where(same, 1.0, -1.0) * (0.1 - squared)).clamp_min(0).mean().backward()
    assert prototypes.grad is not None
    return prototypes.grad


if __name__ == "__main__":
    main()
