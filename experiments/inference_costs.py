"""Features of frozen encoders on a CPU: ONNX Runtime beside torch, from files to features.

    python -m experiments.inference_costs --out assets/results/inference.json
    python -m experiments.inference_costs --views 1000

Each measurement is a process of its own, which computes the features of the same images; both engines alternate.
Processor seconds include reading, decoding and resizing, whose share is measured alone. Converting a network is not
included, because it happens once for each encoder; its time stands beside. The second command prints what four views of
so many birds at 224 pixels take, and how much of it is reading.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from experiments.recording import provenance, record_parser, write_record

ENGINES = ("torch", "onnx")
CASES = (("birds100", "efficientnet-lite0", 112), ("birds100", "efficientnet-lite0", 224),
         ("birds100", "squeezenet", 112), ("birds100", "squeezenet", 224),
         ("fashion-mnist", "efficientnet-lite0", 96))
MEASURE = """
import json, sys, time
from functools import partial
from udml_core.base.malloc import keep_freed_memory
keep_freed_memory()
import numpy as np
from udml_core.data import catalog, inference
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import features_of_some
dataset_name, backbone, size, count, engine, out = sys.argv[1:]
dataset = catalog.load(dataset_name)
encoder = Encoder(choose_spec(backbone, dataset.native_size, dataset.gray, size=int(size)))
indices = np.linspace(0, len(dataset) - 1, min(len(dataset), int(count))).astype(int)
inference.WORTH_SECONDS = 0.0 if engine == "onnx" else float("inf")
begun = time.process_time()
chosen = inference.inference_of(encoder, dataset, len(dataset))
converting = time.process_time() - begun
begun = time.process_time()
for index in indices:
    encoder.prepare(dataset.images[int(index)])
reading = time.process_time() - begun
begun, clock = time.process_time(), time.perf_counter()
rows = features_of_some(dataset, encoder, indices)
print(json.dumps({"engine": chosen.engine, "images": len(indices), "processor seconds": time.process_time() - begun,
                  "seconds": time.perf_counter() - clock, "reading": reading, "converting": converting}))
np.save(out, rows)
"""
VIEWS = """
import dataclasses, json, sys, time
from udml_core.base.malloc import keep_freed_memory
keep_freed_memory()
import numpy as np
from udml_core.data import catalog, inference
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.refinement_views import View, average_features, views_of_step
from udml_core.numerics.refinement.recipe import Views
whole = catalog.load("birds100")
some = np.linspace(0, len(whole) - 1, int(sys.argv[1])).astype(int)
class Some:
    def __len__(self):
        return len(some)
    def __getitem__(self, index):
        return whole.images.reduced(int(some[index]), 224)
dataset = dataclasses.replace(whole, images=Some(), digests=(), fingerprint="0" * 64)
encoder = Encoder(choose_spec("efficientnet-lite0", whole.native_size, whole.gray, size=224))
views = views_of_step(Views())
inference.WORTH_SECONDS = 0.0
engine = inference.inference_of(encoder, dataset, len(some)).engine
begun = time.process_time()
for index in range(len(some)):
    image = dataset.images[index]
    for zoom in {view.zoom for view in views}:
        View(zoom)(image, encoder)
reading = time.process_time() - begun
begun, clock = time.process_time(), time.perf_counter()
average_features(dataset, encoder, views)
seconds = time.perf_counter() - clock
print(json.dumps({"engine": engine, "images": len(some), "views": len(views), "images a second": len(some) / seconds,
                  "processor seconds": time.process_time() - begun, "reading, processor seconds": reading}))
"""


def main() -> None:
    parser = record_parser(__doc__, required=False)
    parser.add_argument("--images", type=int, default=6000, help="at most this many images of a data set")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--views", type=int, help="print the costs of four views of so many birds")
    options = parser.parse_args()
    if options.views:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-c", VIEWS, str(options.views)], check=True,
                           env=os.environ | {"UDML_CACHE": folder})
        return
    if options.out is None:
        parser.error("--out must name the file of the record")
    rows = {}
    for dataset, backbone, size in CASES:
        rows[f"{dataset}, {backbone}, {size} px"] = _compare(dataset, backbone, size, options.images, options.rounds)
        write_record(options.out, provenance("inference_costs") | {"datasets": {"Features on a CPU": {"rows": rows}}})


def _compare(dataset: str, backbone: str, size: int, count: int, rounds: int) -> dict[str, Any]:
    """Measure both engines alternately, and return the medians and their agreement."""
    measured: dict[str, list[dict[str, Any]]] = {engine: [] for engine in ENGINES}
    with tempfile.TemporaryDirectory() as folder:
        paths = {engine: Path(folder) / f"{engine}.npy" for engine in ENGINES}
        for _ in range(rounds):
            for engine in ENGINES:
                environment = os.environ | {"UDML_CACHE": str(Path(folder) / engine)}
                done = subprocess.run([sys.executable, "-c", MEASURE, dataset, backbone, str(size), str(count), engine,
                                       str(paths[engine])], capture_output=True, text=True, check=True, env=environment)
                measured[engine].append(json.loads(done.stdout.splitlines()[-1]))
        features = {engine: np.load(path) for engine, path in paths.items()}
    lengths = [np.linalg.norm(features[engine], axis=1) for engine in ENGINES]
    cosines = (features["torch"] * features["onnx"]).sum(axis=1) / (lengths[0] * lengths[1])
    row: dict[str, Any] = {"images": measured["onnx"][0]["images"], "smallest cosine": float(cosines.min()),
                           "reading": median(run["reading"] for run in measured["onnx"]),
                           "converting": max(run["converting"] for run in measured["onnx"])}
    for engine in ENGINES:
        row[measured[engine][0]["engine"]] = {name: [round(run[name], 2) for run in measured[engine]]
                                              for name in ("processor seconds", "seconds")}
    row["ratio"] = (median(run["processor seconds"] for run in measured["torch"])
                    / median(run["processor seconds"] for run in measured["onnx"]))
    return row


if __name__ == "__main__":
    main()
