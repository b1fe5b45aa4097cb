"""Layouts, odd folders and archives, 5,000 images, and 200,000 embeddings, as a user brings them.

    python -m experiments.bring --out assets/results/bring.json

Times are seconds of the processor and seconds passed, of one process. The command needs pytest, because it writes the
layouts as the tests do.
"""

from __future__ import annotations

import json
import os
import resource
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image
from pyarrow import parquet
from sklearn.datasets import load_digits

from experiments.bring.odd import ODD, attempt
from experiments.recording import provenance, record_parser
from tests.data import test_official_lists as lists
from tests.data import test_official_packed as packed
from tests.data import test_official_trees as trees
from udml_core.base.files import jsonable
from udml_core.data import catalog
from udml_core.data.sources.official.layout import OfficialLayout
from udml_core.data.splits import make_split
from udml_core.data.thumbnails import make_thumbnail
from udml_core.exploration.quick_map import quick_map
from udml_core.numerics.evaluation import kmeans_clusters, label_purity

LAYOUTS: dict[str, tuple[Callable[[Path], Path], str, tuple[int, int, int, int]]] = {
    "CUB-200-2011": (lists.write_cub, "", (4, 3, 3, 1)),
    "Cars-196, one folder": (lists.write_cars, "", (4, 3, 3, 1)),
    "Cars-196, development kit": (lists.write_cars_devkit, "", (4, 3, 3, 1)),
    "Stanford Online Products": (lists.write_products, "", (7, 5, 3, 4)),
    "In-Shop Clothes Retrieval": (lists.write_in_shop, "", (4, 2, 2, 2)),
    "Oxford Flowers-102": (lists.write_flowers, "", (5, 3, 2, 3)),
    "CIFAR-10, Python": (packed.write_cifar10, "", (12, 10, 10, 2)),
    "CIFAR-10, binary": (packed.write_cifar10_binary, "", (12, 10, 10, 2)),
    "CIFAR-100, Python": (packed.write_cifar100, "", (12, 100, 8, 4)),
    "CIFAR-100, binary": (packed.write_cifar100_binary, "", (12, 100, 8, 4)),
    "STL-10, labeled": (packed.write_stl10, "", (4, 10, 2, 2)),
    "STL-10, all": (packed.write_stl10, "#part=all", (6, 10, 4, 2)),
    "Flickr Material Database": (trees.write_materials, "", (20, 10, 10, 10)),
    "Scene-15": (trees.write_scenes, "", (30, 15, 16, 14)),
    "Leeds Butterflies": (trees.write_butterflies, "", (3, 2, 2, 1)),
    "Omniglot": (trees.write_omniglot, "", (6, 5, 4, 2)),
    "PASCAL VOC 2007": (trees.write_voc, "", (4, 20, 2, 2))}
"""Writer of each layout, its option, and the images, classes, training and test images that its lists name."""
SEEN = ("Oxford", "CIFAR", "STL", "PASCAL")
"""Layouts with an official division of the images; the others divide the classes."""
GALLERY = 600
"""Images of the first gallery."""
CLUSTERS = 50


@contextmanager
def timed(row: dict[str, float], step: str) -> Iterator[None]:
    """Add the seconds passed and the seconds of the processor to a row."""
    passed, used = time.monotonic(), time.process_time()
    yield
    row[f"{step}, seconds passed"] = round(time.monotonic() - passed, 2)
    row[f"{step}, processor seconds"] = round(time.process_time() - used, 2)


def open_layouts(root: Path) -> dict[str, dict[str, float]]:
    """Open each layout, and compare it with what its lists name: 1 for equal, 0 for not."""
    rows = {}
    for title, (write, option, (images, classes, train, test)) in LAYOUTS.items():
        folder = root / title.replace(" ", "-")
        folder.mkdir(parents=True)
        name = f"{write(folder)}{option}"
        dataset, source = catalog.load(name), catalog.find(name)
        split = make_split(dataset, "seen" if title.startswith(SEEN) else "zero-shot")
        rows[title] = {
            "loads": float(isinstance(source, OfficialLayout) and len(dataset.images[0].size) == 2),
            "counts as listed": float((len(dataset), len(dataset.class_names), source.images, source.classes) == (
                images, classes, images, classes)),
            "split as listed": float((len(split.train), len(split.test)) == (train, test))}
    return rows


def open_odd(root: Path) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, str]]]:
    """Open each odd folder, table and archive; return how many ended how, and how each of them ended."""
    rows, cases = {}, {}
    for kind, writers in ODD.items():
        ends = {name: attempt(write, root / kind / str(number)) for number, (name, write) in enumerate(writers.items())}
        rows[kind] = {"tried": float(len(ends))} | {
            outcome: float(sum(end == outcome for end, _ in ends.values()))
            for outcome in ("opened", "refused", "lost", "broken")}
        cases[kind] = {name: f"{end}: {message}" if message else end for name, (end, message) in ends.items()}
        print(kind, rows[kind], flush=True)
    return rows, cases


def drop_images(root: Path, count: int) -> dict[str, float]:
    """Measure an archive of images of 256 pixels from the drop to the thumbnails of the first gallery."""
    random, digits = np.random.default_rng(0), load_digits()
    archive = root / "photos.zip"
    root.mkdir()
    with zipfile.ZipFile(archive, "w") as file:
        for number in range(count):
            digit = Image.fromarray((digits.images[number % 1797] * 15).astype(np.uint8)).resize((256, 256))
            pixels = np.asarray(digit)[:, :, None] * 0.8 + random.integers(0, 50, (256, 256, 3))
            path = root / "image.jpg"
            Image.fromarray(pixels.astype(np.uint8)).save(path, quality=90)
            file.write(path, f"class {digits.target[number % 1797]}/{number}.jpg")
    row: dict[str, float] = {"images": float(count), "megabytes": round(archive.stat().st_size / 1e6, 1)}
    with timed(row, "extract"):
        name = catalog.extracted(str(archive))
    with timed(row, "check every image"):
        dataset = catalog.load(name)
    with timed(row, "thumbnails of the first gallery"):
        for index in range(min(GALLERY, len(dataset))):
            make_thumbnail(dataset.images[index], 96)
    row["seconds passed"] = round(sum(value for step, value in row.items() if step.endswith(", seconds passed")), 2)
    return row


def open_embeddings(root: Path, count: int, width: int) -> dict[str, float]:
    """Measure a Parquet file of embeddings from opening it to a map and clusters."""
    random = np.random.default_rng(0)
    labels = random.integers(0, CLUSTERS, count)
    points = (random.normal(size=(CLUSTERS, width))[labels] + random.normal(size=(count, width))).astype(np.float32)
    root.mkdir()
    path = root / "embeddings.parquet"
    parquet.write_table(pa.table({"label": labels, "embedding": pa.FixedSizeListArray.from_arrays(
        pa.array(points.ravel()), width)}), path)
    row: dict[str, float] = {"rows": float(count), "dimensions": float(width),
                             "megabytes": round(path.stat().st_size / 1e6, 1)}
    with timed(row, "open"):
        dataset = catalog.load(str(path))
    with timed(row, "open again"):
        dataset = catalog.load(str(path))
    assert dataset.vectors is not None
    assert dataset.labels is not None
    with timed(row, "map of principal axes"):
        quick_map(dataset.vectors)
    with timed(row, f"{CLUSTERS} clusters of k-means"):
        clusters = kmeans_clusters(dataset.vectors, CLUSTERS)
    row["purity of the clusters, %"] = round(100 * label_purity(clusters, dataset.labels), 1)
    row["largest memory, megabytes"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3, 0)
    return row


def main() -> None:
    parser = record_parser(__doc__)
    parser.add_argument("--images", type=int, default=5_000, help="images in the dropped archive")
    parser.add_argument("--embeddings", type=int, default=200_000, help="rows of the table of embeddings")
    parser.add_argument("--width", type=int, default=64, help="dimensions of an embedding")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        os.environ["UDML_CACHE"] = str(root / "cache")
        os.environ.pop("UDML_DATA", None)
        tables: dict[str, Any] = {"Layouts of data sets as their authors ship them": open_layouts(root / "layouts")}
        print(json.dumps(tables), flush=True)
        tables["Odd folders, tables and archives"], cases = open_odd(root / "odd")
        embeddings = open_embeddings(root / "table", options.embeddings, options.width)
        print(json.dumps(embeddings), flush=True)
        images = drop_images(root / "drop", options.images)
        print(json.dumps(images), flush=True)
    record = provenance("bring") | {
        "protocol": "one process; fixtures in the layouts of the authors, as the full sets are not available; 1 for "
                    "equal to the lists and 0 for not",
        "load": round(os.getloadavg()[0], 1), "datasets": {title: {"rows": rows} for title, rows in tables.items()}}
    record["datasets"]["From the drop to the first gallery, and from a file to a map and clusters"] = {
        "rows": {"images": images, "embeddings": embeddings}}
    record["cases"] = cases
    options.out.write_text(json.dumps(jsonable(record), indent=1) + "\n")


if __name__ == "__main__":
    main()
