"""A query by an image from outside, in the process of a server with a warm engine: the time of each part.

    python -m experiments.query_costs --images 6000

It prints, for EfficientNet-Lite0 at 112 and 224 pixels, the median and the best milliseconds of decoding a photograph
of a bird from its bytes in a process with a limit, as the server does, of preparing it, of the network with the head,
and of the search among so many images.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from udml_core.base import bounded
from udml_core.base.malloc import keep_freed_memory
from udml_core.data import catalog, inference
from udml_core.data.dataset import FileImages, UserImage
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.methods import Embedder
from udml_core.methods.model import Model
from udml_core.numerics.neighbors import build_index, search

SIZES, ROUNDS = (112, 224), 30
READERS = ("udml_core.data.catalog", "pandas", "pyarrow.parquet", "PIL.JpegImagePlugin")
"""What the server's process for files has imported."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=6000, help="images that are searched")
    options = parser.parse_args()
    keep_freed_memory()
    inference.WORTH_SECONDS = 0.0  # a run over these images has converted the network before
    with tempfile.TemporaryDirectory() as folder:
        os.environ["UDML_CACHE"] = folder
        bounded.start(READERS)
        for size in SIZES:
            print(json.dumps({"size": size} | measure(size, options.images)))


def measure(size: int, count: int) -> dict[str, Any]:
    """Return the milliseconds of each part of a query, and of all parts together."""
    dataset = catalog.load("birds100")
    assert isinstance(dataset.images, FileImages)
    encoder = Encoder(choose_spec("efficientnet-lite0", dataset.native_size, dataset.gray, size=size))
    engine = inference.inference_of(encoder, dataset, len(dataset)).engine
    model = Model(Embedder(encoder).eval(), lambda: dataset)
    rows = np.random.default_rng(0).normal(size=(count, encoder.dimension)).astype(np.float32)
    index = build_index(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    images = [UserImage((dataset.images.root / name).read_bytes(), name) for name in dataset.images.files[:ROUNDS + 2]]
    parts: dict[str, list[float]] = {}

    def timed(name: str, call: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        result = call()
        parts.setdefault(name, []).append(1000 * (time.perf_counter() - began))
        return result

    for image in images:
        decoded = timed("decoding", partial(image.reduced, encoder.needed_side))
        pixels = timed("preparing", partial(encoder.prepare, decoded))
        row = timed("network", partial(model.embed_prepared, pixels[None]))
        timed("search", partial(search, index, row, 100))
        timed("all", partial(_answer, model, index, image))
    return {"engine": engine} | {name: {"median": round(median(values[2:]), 1), "best": round(min(values[2:]), 1)}
                                 for name, values in parts.items()}


def _answer(model: Model, index: Any, image: UserImage) -> None:
    search(index, model.embed(image)[None], 100)


if __name__ == "__main__":
    main()
