"""Compare measures of blur: how many of 20 blurred images rank among the first 20, by CleanVision's score and by ours.

    python -m experiments.blur --messy messy --out assets/results/blur.json

Photographs, drawings and clothes are drawn with a seed; 20 of each are blurred by several standard deviations, which
are pixels of an image of 227 pixels; all are stored as JPEG. The measure was chosen on such images. `--messy` is a
folder of `experiments.messy`, on whose blurred photographs it was not chosen.
"""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageFilter

from experiments.recording import provenance, record_parser, write_record
from udml_core.data import catalog
from udml_core.data.image_facts import ImageFacts, facts_of, measure
from udml_core.exploration.quality import edge_scores, quality_scores, worst_first

SEED, IMAGES, BLURRED, WIDTH = 9, 300, 20, 227
SIGMAS = (0.7, 1.0, 1.5, 3.0, 8.0, 20.0)
"""Of photographs and drawings; clothes have 28 pixels, on which such a blur is none."""
OF_CLOTHES = (5.0, 10.0, 20.0)
MEASURES = {"CleanVision, 64 pixels": edge_scores, "fine relative to coarse detail":
            lambda facts: quality_scores(facts, "blurry")}


def facts_of_images(images: list[Image.Image]) -> ImageFacts:
    """Return the facts about images that have no files."""
    rows = [{"width": image.width, "height": image.height, "bytes": 0, "time": 0, **measure(image)} for image in images]
    return ImageFacts(**{name: np.array([row[name] for row in rows]) for name in rows[0]})


def drawn(name: str, every: int = 1) -> list[Image.Image]:
    """Draw images of a data set."""
    dataset = catalog.load(name)
    rows = np.random.default_rng(SEED).permutation(np.arange(0, len(dataset), every))[:IMAGES]
    return [dataset.images[int(row)] for row in rows]


def stored(image: Image.Image) -> Image.Image:
    """Return an image as a camera stores it: compression adds fine detail to a blurred image."""
    file = BytesIO()
    image.convert("RGB").save(file, "JPEG", quality=75)
    return Image.open(file)


def blurred_first(images: list[Image.Image], sigmas: tuple[float, ...]) -> dict[str, dict[str, int]]:
    """Return for each blur and measure how many of the blurred images are among as many first images.

    A blurred image comes after sharp images of the same score.
    """
    sharp, found = [stored(image) for image in images[BLURRED:]], {}
    for sigma in sigmas:
        blurred = [stored(image.filter(ImageFilter.GaussianBlur(sigma * min(image.size) / WIDTH)))
                   for image in images[:BLURRED]]
        facts, kept = facts_of_images([*sharp, *blurred]), np.ones(len(images), bool)
        found[f"{sigma:g} pixels"] = {name: int((worst_first(score(facts), kept)[:BLURRED] >= len(sharp)).sum())
                                      for name, score in MEASURES.items()}
    return found


def of_messy(folder: Path) -> dict[str, dict[str, int]]:
    """Return how many of five planted blurred photographs are among the first images of a messy folder."""
    dataset = catalog.load(str(folder / "photos"))
    planted = set(json.loads((folder / "key.json").read_text(encoding="utf-8"))["blurred"])
    facts, kept = facts_of(dataset), np.ones(len(dataset), bool)
    return {f"first {most}": {name: sum(dataset.names[row] in planted for row in worst_first(score(facts), kept)[:most])
                              for name, score in MEASURES.items()} for most in (len(planted), 2 * len(planted))}


def main() -> None:
    parser = record_parser(__doc__)
    parser.add_argument("--messy", type=Path, required=True, help="folder of experiments.messy")
    options = parser.parse_args()
    results: dict[str, Any] = {"photographs": blurred_first(drawn("birds100", 2), SIGMAS),
                               "drawings": blurred_first(drawn("emoji"), SIGMAS),
                               "clothes": blurred_first(drawn("fashion-mini"), OF_CLOTHES),
                               "messy folder, five planted": of_messy(options.messy)}
    write_record(options.out, provenance("blur") | {"protocol": (
        f"{IMAGES} images, seed {SEED}, {BLURRED} of them blurred; number of these among the first {BLURRED}."),
        "datasets": {title: {"rows": {row: {name: [float(count), 0.0] for name, count in counts.items()}
                                      for row, counts in rows.items()}} for title, rows in results.items()}})


if __name__ == "__main__":
    main()
