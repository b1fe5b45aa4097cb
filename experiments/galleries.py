"""Build time, memory, search latency and recall of galleries from a thousand to ten million vectors.

The vectors are repeated from the frozen features of a data set: each lies at a random place between an image and one of
its ten nearest images, with Gaussian noise of a fifth of the median distance to the nearest image. Each build, each
search and each neighbor graph is measured in a process of its own; its peak memory includes memory-mapped files.

    python -m experiments.galleries --out assets/results/galleries.json
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from experiments.memory import peak_megabytes
from experiments.recording import provenance, record_parser, write_record
from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.data.encoders import DEFAULT_BACKBONE, Encoder, choose_spec
from udml_core.data.features import features_of
from udml_core.numerics.galleries import StoredGallery, build_gallery
from udml_core.numerics.galleries.gallery import exact_neighbors
from udml_core.numerics.graph import AuthorityGraph
from udml_core.numerics.neighbors import approximate_nearest, nearest
from udml_core.numerics.neighbors.approximate import SAMPLE, recall_of
from udml_core.numerics.refinement.linear import unit_rows

DATASET, IMAGE_SIZE, DIMENSION, NOISE, NEAREST = "birds100", 112, 128, 0.2, 10
SIZES: dict[int, tuple[str, ...]] = {10**3: ("flat",), 10**4: ("flat",), 10**5: ("flat",), 10**6: ("ivf", "ivf-pq"),
                                     10**7: ("ivf-pq",)}
GRAPHS = ((10**5, 50), (10**6, 50))
BLOCK, QUERIES, TIMED = 100_000, 200, 200


def main() -> None:
    parser = record_parser(__doc__, required=False)
    parser.add_argument("--largest", type=int, default=max(SIZES), help="the largest gallery")
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        name, *arguments = options.step
        print(json.dumps({"build": build, "search": search, "graph": graph}[name](*arguments)))
        return
    with tempfile.TemporaryDirectory(dir=options.out.parent) as folder:
        for record in measure(Path(folder), options.largest):  # written after each row, so that an end keeps the rows
            write_record(options.out, record)


def measure(folder: Path, largest: int) -> Iterator[dict[str, Any]]:
    """Measure all galleries and neighbor graphs, and yield the record after each row.

    Files are removed as soon as they are not needed.
    """
    base = features()
    galleries, graphs = dict[str, Any](), dict[str, Any]()
    queries = sample_vectors(base, QUERIES, seed=1)
    np.save(folder / "queries.npy", queries)
    threads = os.environ.get("OMP_NUM_THREADS", os.cpu_count())
    record = provenance("galleries") | {
        "protocol": f"{DIMENSION} principal components of frozen features of {DATASET}, repeated between neighbors "
                    f"with noise; threads: {threads}, on a machine that other programs use, with the given load "
                    f"average; recall@10 of {QUERIES} new queries compared with all float32 vectors; latency of single "
                    "queries; memory: peak of the process, memory-mapped files included",
        "not measured": [f"{size:,} vectors" for size in SIZES if size > largest],
        "datasets": {"Galleries": {"rows": galleries}, "Neighbors and clusters": {"rows": graphs}}}
    path = folder / "vectors.npy"
    for size in (size for size in SIZES if size <= largest):
        np.save(folder / "truth.npy", write_vectors(base, size, path, queries))
        for k in (k for count, k in GRAPHS if count == size):
            graphs[f"{size:,} vectors, k = {k}"] = step("graph", path, k)
            yield record
        for kind in SIZES[size]:
            galleries[f"{size:,} vectors, {kind}"] = (step("build", path, folder / "gallery", kind)
                                                      | step("search", folder / "gallery", folder))
            shutil.rmtree(folder / "gallery")
            yield record
        path.unlink()


def step(name: str, *arguments: object) -> dict[str, float]:
    """Run a measurement in a process of its own."""
    load = os.getloadavg()[0]
    done = subprocess.run([sys.executable, "-m", "experiments.galleries", "--step", name, *map(str, arguments)],
                          stdout=subprocess.PIPE, text=True, check=True)
    row: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    row |= {f"load at the {name}": load}
    print(name, *arguments, row, flush=True)
    return row


def features() -> Array:
    """Return the unit principal components (n, 128) of a data set's frozen features."""
    dataset = catalog.load(DATASET)
    spec = choose_spec(DEFAULT_BACKBONE, IMAGE_SIZE, False, size=IMAGE_SIZE)
    rows = np.asarray(features_of(dataset, Encoder(spec)))
    centered = rows - rows.mean(axis=0)
    return unit_rows(centered @ np.linalg.eigh(centered.T @ centered).eigenvectors[:, -DIMENSION:])


def sample_vectors(base: Array, count: int, seed: int) -> Array:
    """Return unit vectors (count, d) between rows of `base` and their neighbors, with noise."""
    random = np.random.default_rng(seed)
    squared, neighbors = nearest(base, NEAREST)
    spread = NOISE * np.sqrt(np.median(squared[:, 0]) / base.shape[1])
    rows = random.integers(len(base), size=count)
    others = base[neighbors[rows, random.integers(NEAREST, size=count)]]
    share = random.random((count, 1), np.float32)
    noise = spread * random.standard_normal((count, base.shape[1]), np.float32)
    return unit_rows(base[rows] + share * (others - base[rows]) + noise)


def write_vectors(base: Array, size: int, path: Path, queries: Array) -> Array:
    """Write vectors (size, d) float16 in blocks; return the true ten nearest (q, 10) of the queries."""
    written = np.lib.format.open_memmap(path, "w+", np.float16, (size, base.shape[1]))

    def blocks() -> Any:
        for start in range(0, size, BLOCK):
            block = sample_vectors(base, min(BLOCK, size - start), seed=2 + start)
            written[start : start + len(block)] = block
            yield np.arange(start, start + len(block)), written[start : start + len(block)].astype(np.float32)

    truth = exact_neighbors(blocks(), queries, 10)[1]
    written.flush()
    return truth


def build(vectors: str, folder: str, kind: str) -> dict[str, float]:
    """Build a gallery."""
    began = time.monotonic()
    gallery = build_gallery(np.load(vectors, mmap_mode="r"), folder, kind=kind)  # type: ignore[arg-type]
    return {"build, s": time.monotonic() - began, "build memory, GB": peak_memory(),
            "disk, GB": sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e9,
            "probes": gallery.manifest.probes, "lists": gallery.manifest.lists,
            "own recall@10": gallery.manifest.recall.recall if gallery.manifest.recall else 0.0}


def search(folder: str, parent: str) -> dict[str, float]:
    """Search new queries one by one, after a warm-up."""
    gallery, queries, truth = StoredGallery.open(folder), *(np.load(Path(parent) / f"{name}.npy") for name in (
        "queries", "truth"))
    began = time.monotonic()
    gallery.search(queries[:1], 10)
    first = time.monotonic() - began
    seconds, found = [], []
    for query in queries[:TIMED]:
        began = time.perf_counter()
        found.append(gallery.search(query[None], 10)[1][0])
        seconds.append(time.perf_counter() - began)
    return {"first search, ms": 1e3 * first, "latency, ms": 1e3 * float(np.median(seconds)),
            "latency 95 %, ms": 1e3 * float(np.quantile(seconds, 0.95)),
            "search memory, GB": peak_memory(), "recall@10": recall_of(np.stack(found), truth)}


def graph(vectors: str, k: str) -> dict[str, float]:
    """Search the neighbors of all vectors, and form the clusters of authority ascent."""
    points = np.asarray(np.load(vectors, mmap_mode="r"), np.float32)
    steps = list[tuple[float, str]]()
    began = time.monotonic()
    found = approximate_nearest(points, int(k), lambda _share, name: steps.append((time.monotonic() - began, name)))
    seconds, memory = time.monotonic() - began, peak_memory()
    recall = recall_of(found.indices[:SAMPLE], nearest(points, int(k), own=np.arange(SAMPLE))[1])
    began = time.monotonic()
    authority = AuthorityGraph.of_neighbors(found.distances, found.indices)
    del found
    clusters = authority.clusters()
    return {"neighbors, s": seconds, "neighbors memory, GB": memory, f"recall@{k}": recall,
            "graph and clusters, s": time.monotonic() - began, "memory with clusters, GB": peak_memory(),
            "clusters": len(clusters.modes)}


def peak_memory() -> float:
    """Return the peak resident memory of this process in GB."""
    return peak_megabytes() * 1024**2 / 1e9


if __name__ == "__main__":
    main()
