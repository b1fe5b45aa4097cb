"""Measure encoders side by side: two weak encoders whose errors differ, without labels and without training.

    python -m experiments.side_by_side birds100:112 emoji:96 fashion-mini:96 --out assets/results/side-by-side.json

Every row is inductive: the whitening is fitted on the training half, and each query of the zero-shot test half is
compared with the rest of that half. Nothing depends on a seed. "Weight" multiplies SqueezeNet where each encoder is
whitened alone. The chosen weight has the most mutual neighbors in the training half, without labels. "Step whiten" is
the step of a recipe after the views: it whitens the joint vector of encoders that are not whitened before. The crops of
the six views are chosen on the training classes of the first data set, half of which the whitening is fitted on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.recording import mean_and_deviation, provenance, record_parser, write_record
from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.refinement_views import View, average_features, views_of_step
from udml_core.data.side_by_side import frozen_encoder
from udml_core.data.splits import Split, make_split
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement.linear import unit_rows, whitening
from udml_core.numerics.refinement.ranking_measures import retrieval_measures
from udml_core.numerics.refinement.recipe import Views, Whitening

FIRST, SECOND = "efficientnet-lite0", "squeezenet"
TITLES = {FIRST: "EfficientNet-Lite0", SECOND: "SqueezeNet"}
WEIGHTS = (0.3, 0.5, 0.7, 1.0)
VIEWS = {"": [View()], ", views": views_of_step(Views()),
         ", six views": [View(zoom, flip) for zoom in (1.0, 0.85, 0.7) for flip in (False, True)]}
"""The views by the end of a row's name."""
SHOWN = ("EfficientNet-Lite0", "EfficientNet-Lite0, whitened", "SqueezeNet", "SqueezeNet, whitened",
         "Both, not whitened", "Both, each whitened, weight 0.7", "Both, each whitened, chosen weight",
         "Both, whitened together", "Both, not whitened, step whiten", "Both and raw pixels, whitened together")
"""The rows that the documents show."""
CROPS = ((1.0,), (1.0, 0.7), (1.0, 0.85, 0.7), (1.0, 0.85, 0.7, 0.55), (1.0, 0.7, 0.55), (0.85, 0.7))
"""Sets of crops that are compared on the training classes, each with its mirror images."""
DRAWS = 3
"""Divisions of the training classes into one part for the whitening and one that is measured."""
NEIGHBORS = 10
"""Neighbors of an image among which mutual neighbors are counted."""


@dataclass(frozen=True)
class Material:
    """A data set at an image size.

    Attributes:
        dataset: The data set.
        split: Its zero-shot halves.
        size: Image size in pixels.
    """

    dataset: Dataset
    split: Split
    size: int

    def rows(self, backbone: str, views: Sequence[View], whitened: Whitening = "together") -> Array:
        """Return the features (n, d) of all images by an encoder, or by several with the training half's statistics."""
        spec = choose_spec(backbone, self.dataset.native_size, self.dataset.gray, size=self.size, whitening=whitened)
        encoder: Encoder = frozen_encoder(self.dataset, spec.fitted(self.split.train, self.dataset.fingerprint),
                                          self.split.train)
        return average_features(self.dataset, encoder, views)

    def whiten(self, rows: Array) -> Array:
        """Return features whitened by the training half's mutual neighbors, as the method and the step `whiten` do."""
        unit = unit_rows(rows)
        return whitening(unit[self.split.train])(unit)

    def measures(self, rows: Array) -> dict[str, float]:
        """Return Recall@1 and MAP@R of the test half in percent."""
        test, labels = self.split.test, np.asarray(self.dataset.labels)
        deepest = int(np.bincount(labels[test]).max()) - 1
        ranking = nearest(unit_rows(rows[test]), deepest)[1]
        measured = retrieval_measures(ranking, labels[test], labels[test], inside=True)
        return {name: round(measured[name], 2) for name in ("recall@1", "map@r")}

    def mutual_share(self, rows: Array) -> float:
        """Return the share of the training half's neighbors that are mutual, in percent; it needs no labels."""
        neighbors = nearest(unit_rows(rows[self.split.train]), NEIGHBORS)[1]
        return round(100 * float((neighbors[neighbors] == np.arange(len(neighbors))[:, None, None]).any(-1).mean()), 2)


def main() -> None:
    parser = record_parser(__doc__)
    parser.add_argument("datasets", nargs="+", help="NAME:SIZE, such as birds100:112")
    options = parser.parse_args()
    record: dict[str, Any] = provenance("side_by_side") | {
        "protocol": "zero-shot test half, every image is a query; statistics of the training half only; no labels and "
                    "no training; views are the image, its center crop of 70 % and their mirror images, six views also "
                    "the crop of 85 %; percent",
        "datasets": {}}
    for text in options.datasets:
        name, _, size = text.partition(":")
        dataset = catalog.load(name)
        material = Material(dataset, make_split(dataset, "zero-shot"), int(size))
        rows: dict[str, Mapping[str, float]] = {}
        for row, measures in measure(material):
            rows[row] = measures
            print(f"{name:14}{row:52}{measures}", flush=True)
        record["datasets"][f"{dataset.title}, {size} px"] = {"images": len(material.split.test), "rows": rows}
        if name == options.datasets[0].partition(":")[0]:
            record["datasets"][f"{dataset.title}, {size} px: crops on the training classes, step whiten"] = {
                "images": len(material.split.train), "rows": compare_crops(material)}
        write_record(options.out, record)


def as_table(record: Mapping[str, Any]) -> str:
    """Return the record's main rows as a Markdown table of R@1 / MAP@R, without and with views."""
    tables = {title: of["rows"] for title, of in record["datasets"].items() if "crops on" not in title}
    heads = [f"{title.split(',')[0].lower()}{end}" for title in tables for end in ("", ", views")]
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(heads)]
    for row in SHOWN:
        cells = [f"{measures['recall@1']:.1f} / {measures['map@r']:.1f}" for rows in tables.values()
                 for measures in (rows[row], rows[f"{row}, views"])]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def compare_crops(material: Material) -> dict[str, dict[str, list[float]]]:
    """Return the measures of sets of crops on the training classes, of which half are for the whitening."""
    train, labels = material.split.train, np.asarray(material.dataset.labels)
    rows: dict[str, dict[str, list[float]]] = {}
    for crops in CROPS:
        joint = unit_rows(material.rows(f"{FIRST}+{SECOND}", [View(zoom, flip) for zoom in crops
                                                              for flip in (False, True)], "none"))
        values = []
        for seed in range(DRAWS):
            classes = np.random.default_rng(seed).permutation(np.unique(labels[train]))
            is_fitted = np.isin(labels[train], classes[: len(classes) // 2])
            rest = train[~is_fitted]
            ranking = nearest(unit_rows(whitening(joint[train[is_fitted]])(joint[rest])),
                              int(np.bincount(labels[rest]).max()) - 1)[1]
            values.append(retrieval_measures(ranking, labels[rest], labels[rest], inside=True))
        rows["Crops of " + ", ".join(f"{zoom:.0%}" for zoom in crops)] = {
            name: mean_and_deviation([value[name] for value in values]) for name in ("recall@1", "map@r")}
    return rows


def measure(material: Material) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Yield the rows of a data set."""
    both = f"{FIRST}+{SECOND}"
    for end, views in VIEWS.items():
        for backbone, title in TITLES.items():
            rows = material.rows(backbone, views)
            yield f"{title}{end}", material.measures(rows)
            yield f"{title}, whitened{end}", material.measures(material.whiten(rows))
        plain = material.rows(both, views, "none")
        yield f"Both, not whitened{end}", material.measures(plain)
        yield f"Both, not whitened, step whiten{end}", material.measures(material.whiten(plain))
        weighted = {weight: material.rows(f"{both}:{weight:g}", views, "each") for weight in WEIGHTS}
        for weight, rows in weighted.items():
            yield f"Both, each whitened, weight {weight:g}{end}", material.measures(rows) | {
                "mutual neighbors": material.mutual_share(rows)}
        chosen = max(weighted, key=lambda weight: material.mutual_share(weighted[weight]))
        yield f"Both, each whitened, chosen weight{end}", material.measures(weighted[chosen]) | {"weight": chosen}
        rows = material.rows(both, views)
        yield f"Both, whitened together{end}", material.measures(rows)
        yield f"Both, whitened together, step whiten{end}", material.measures(material.whiten(rows))
        three = material.rows(f"{both}+pixels", views)
        yield f"Both and raw pixels, whitened together{end}", material.measures(three)


if __name__ == "__main__":
    main()
