"""The two engines of inference on every hub model that the tests compare: agreement, and images a processor second.

    UDML_DATA=FOLDER python -m experiments.agreement --out assets/results/agreement.json

The 19 models of timm and torchvision have random weights, because their own weights are downloaded from hubs; whether a
graph computes what its network computes does not depend on the weights. The two networks that come with the app have
their own weights. The images are 16 birds. Both engines have one thread and alternate.

A second table has the processor seconds of a training step of EfficientNet-Lite0 in float32 and bfloat16.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import torch

import tests.conftest  # noqa: F401 (declares what the import of torchvision needs)
from experiments.recording import provenance, record_parser, write_record
from tests.data.encoders.test_hub import FILE, OPTIONS, TIMM, TORCHVISION, WeightsEnum, models, randomize, timm
from udml_core.base.arrays import Array
from udml_core.base.malloc import keep_freed_memory
from udml_core.data import catalog
from udml_core.data.encoders import Encoder, EncoderSpec, timm_models
from udml_core.data.encoders.encoder import Precision
from udml_core.data.encoders.graphs import Graph, engine_words, network_graph, paired_cosines
from udml_core.data.inference import embed_pixels
from udml_core.methods.shared.training import encode

IMAGES, BATCH, ROUNDS, THREADS = 16, 20, 4, 1
SPEED = ", images a processor second"
OWN_WEIGHTS = {"efficientnet-lite0": 112, "squeezenet": 112}
AUXILIARY = ("googlenet", "inception_v3")
"""Models whose downloaded weights have an auxiliary head."""


def encoders() -> Iterator[tuple[str, Encoder]]:
    """Yield each model with its title."""
    for name, (size, _) in TIMM.items():
        state = randomize(timm.create_model(name, **OPTIONS.get(name, {})), size).state_dict()
        with patch.object(timm_models, "read_weights", lambda _file, state=state: dict(state)):
            yield f"timm:{name}, {size} px", Encoder(EncoderSpec(backbone=f"timm:{name}", size=size, weights=FILE))
    for name, (size, _) in TORCHVISION.items():
        options: dict[str, Any] = {"aux_logits": True, "init_weights": False} if name in AUXILIARY else {}
        state = randomize(models.get_model(name, weights=None, **options), size).state_dict()
        with patch.object(WeightsEnum, "get_state_dict", lambda *_arguments, state=state, **_options: dict(state)):
            yield f"torchvision:{name}, {size} px", Encoder(EncoderSpec(backbone=f"torchvision:{name}", size=size))
    for name, size in OWN_WEIGHTS.items():
        yield f"{name}, {size} px", Encoder(EncoderSpec(backbone=name, size=size))


def measure(encoder: Encoder) -> dict[str, Any]:
    """Return the smallest cosine of both engines, and the images a processor second of each."""
    dataset = catalog.load("birds100")
    some = np.linspace(0, len(dataset) - 1, IMAGES).astype(int)
    images = np.stack([encoder.prepare(dataset.images[int(index)]) for index in some])
    size = encoder.spec.size
    begun = time.process_time()
    graph = Graph(network_graph(encoder.eval(), torch.zeros(2, 3, size, size)))
    converting = time.process_time() - begun
    engines: dict[str, Callable[[], Array]] = {
        f"torch {torch.__version__}": lambda: embed_pixels(encoder, images), engine_words(): lambda: graph(images)}
    torch_rows, graph_rows = (compute() for compute in engines.values())
    speeds: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(ROUNDS):
        for name, compute in engines.items():
            begun = time.process_time()
            compute()
            speeds[name].append(IMAGES / (time.process_time() - begun))
    return {"smallest cosine": float(paired_cosines(torch_rows, graph_rows).min()),
            "mean cosine of different images": _mean_cosine(torch_rows)} | {
        f"{name}{SPEED}": median(values) for name, values in speeds.items()} | {
        "converting, processor seconds": converting}


def step_costs(part: Literal["all", "last"]) -> dict[str, Any]:
    """Measure a forward and a backward pass of a batch in float32 and bfloat16, and compare the features."""
    dataset = catalog.load("birds100")
    encoder = Encoder(EncoderSpec(backbone="efficientnet-lite0", size=OWN_WEIGHTS["efficientnet-lite0"])).eval()
    some = np.linspace(0, len(dataset) - 1, BATCH).astype(int)
    inputs = torch.from_numpy(np.stack([encoder.prepare(dataset.images[int(index)]) for index in some]))
    if part == "last":
        with torch.no_grad():
            inputs = encoder.early(inputs)
    seconds: dict[Precision, list[float]] = {"fp32": [], "bf16": []}
    rows: dict[Precision, Array] = {}
    for _ in range(ROUNDS):
        for precision, measured in seconds.items():
            begun = time.process_time()
            features = encode(encoder, inputs, part, precision)
            encoder.zero_grad(set_to_none=True)
            features.square().sum().backward()
            measured.append(time.process_time() - begun)
            rows[precision] = features.detach().numpy()
    return {f"{name}, processor seconds": median(measured[1:]) for name, measured in seconds.items()} | {
        "ratio": median(seconds["fp32"][1:]) / median(seconds["bf16"][1:]),
        "smallest cosine": float(paired_cosines(rows["fp32"], rows["bf16"]).min())}


def as_table(record: Mapping[str, Any]) -> str:
    """Return agreement and speed of all models as a Markdown table."""
    rows = next(iter(record["datasets"].values()))["rows"]
    speeds = [name for name in next(iter(rows.values())) if name.endswith(SPEED)]
    engines = [name.removesuffix(SPEED) for name in speeds]
    lines = [f"| model | smallest cosine | {engines[0]} | {engines[1]} | ratio |", "|---|---:|---:|---:|---:|"]
    for name, row in rows.items():
        torch_speed, graph_speed = (row[speed] for speed in speeds)
        cosine = int(row["smallest cosine"] * 1e7) / 1e7
        lines.append(f"| {name} | {cosine:.7f} | {torch_speed:.0f} | {graph_speed:.0f} | "
                     f"{graph_speed / torch_speed:.1f} |")
    return "\n".join(lines)


def _mean_cosine(rows: Array) -> float:
    """Return the mean cosine similarity of different rows (n, d), so that a network with equal rows is seen."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = unit @ unit.T
    return float(cosines[~np.eye(len(rows), dtype=bool)].mean())


def main() -> None:
    options = record_parser(__doc__).parse_args()
    keep_freed_memory()
    torch.set_num_threads(THREADS)
    rows = {}
    for title, encoder in encoders():
        rows[title] = measure(encoder)
        print(title, rows[title], flush=True)
    steps: dict[Literal["all", "last"], str] = {"all": "all blocks", "last": "last blocks"}
    costs = {title: step_costs(part) for part, title in steps.items()}
    print(costs, flush=True)
    write_record(options.out, provenance("agreement") | {
        "protocol": f"{IMAGES} birds, the smallest image size of each model in the tests; random weights for models of "
                    f"timm and torchvision; median of {ROUNDS} rounds, {THREADS} thread",
        "datasets": {"Both engines on 16 images": {"rows": rows},
                     f"A training step of {BATCH} images by its precision": {"rows": costs}}})


if __name__ == "__main__":
    main()
