"""The rows of the benchmark: every method on the same data sets, with one encoder and one budget for each data set.

A method of `METHODS` needs no entry here. `budget_of` gives each method the same number of passes over the training
images, images in a batch and cached views, as far as its fields allow it. MOM and the UHML-like hierarchy draw partners
of each image, so they take two to three times as many steps. Start and all other fields keep their defaults, but last
blocks are trained at the learning rates below. `PAPER_TABLES` holds the papers' tables with which the order of the
methods is compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.campaign_rows import PlannedRow
from udml_core.data.encoders import EncoderSpec, feature_width, image_seconds, late_share
from udml_core.methods import METHODS, Method
from udml_core.methods.shared.pair_method import PAIRS_AN_EPOCH
from udml_core.results.benchmark import PaperTable

RECORD = "benchmark"
BATCH, VIEWS, SEEDS = 128, 4, 3
MOST_STEPS = 100
"""Largest number of conjugate-gradient steps in one epoch of RPML."""
FIXED_SECONDS = 6.0
"""Expected time of loading and evaluation of one seed."""
LAST_RATE, PLM_RATE = 1e-4, 1e-5
"""Learning rate of last blocks, and of PLM and STML there. Methods with few labels and sRPML keep their default."""


@dataclass(frozen=True)
class Track:
    """A data set of the benchmark with its encoder and its budget.

    Attributes:
        dataset: Name of the data set.
        options: Run options of every row.
        backbone: Backbone of the encoder.
        size: Side of the images in pixels.
        images: Number of training images of the split.
        labels: Number of labels that the methods with few labels receive.
        epochs: Passes over the training images.
        dimension: Width of every embedding.
        trains: Trained part of the methods that can train it.
        per_class: Number of training images of every class; None for all images.
        near: The papers' data set that is most like this one.
    """

    dataset: str
    options: str
    backbone: str
    size: int
    images: int
    labels: int
    epochs: int
    dimension: int
    near: str
    trains: str = "head"
    per_class: int | None = None

    @property
    def epoch_steps(self) -> int:
        """The number of steps in one pass over the training images."""
        return math.ceil(self.images / BATCH)

    @property
    def steps(self) -> int:
        """The number of steps of every method that trains in steps."""
        return self.epochs * self.epoch_steps


TRACKS = (
    Track("digits", "@backbone=pixels", "pixels", 8, 901, 50, 10, 32, "MNIST"),
    Track("fashion-mini", "@size=96", "efficientnet-lite0", 96, 3000, 50, 20, 64, "Fashion-MNIST"),
    Track("cifar10", "@size=96", "efficientnet-lite0", 96, 2085, 50, 20, 64, "CIFAR-10", per_class=417),
    Track("birds100", "@size=112", "efficientnet-lite0", 112, 2969, 250, 2, 128, "CUB", trains="last"),
)
"""The data sets, under the zero-shot split: train on the first half of the classes, test on the second."""


@dataclass(frozen=True)
class Compared(PlannedRow):
    """A row of the benchmark.

    Attributes:
        method: Name of the method.
        near: The papers' data set that is most like the row's.
        recipe: Recipe that refines the test half without training; empty for none.
    """

    method: str = "frozen"
    near: str = ""
    recipe: str = ""

    @property
    def is_method(self) -> bool:
        """Whether the row is the method itself: no refinement, no learning rate of 0."""
        return self.name != NO_LEARNING and not self.recipe


RECIPES = {
    "Views, whitening": "views+whiten", "Averages": "whiten+average:k=10,times=2",
    "Re-ranking": "whiten+rerank", "Averages, re-ranking": "whiten+average:k=10,times=2+rerank",
    "Diffusion": "whiten+diffuse"}
"""Refinements of frozen features, with the steps' defaults and no choice on any data."""
NO_LEARNING = "Learning rate 0"


def benchmark_rows(track: Track) -> Iterator[Compared]:
    """Yield the rows of a data set."""
    for method in METHODS:
        fields = budget_of(method, track)
        if method().trained_part != "head" and fields.get("trains") == "all":
            continue  # it trains whole encoders only
        yield _row(track, method.card.title, method, fields)
    control = next(method for method in METHODS if method.card.name == "isif")
    yield _row(track, NO_LEARNING, control, budget_of(control, track) | {"epochs": 1, "learning_rate": 0.0})
    frozen = next(method for method in METHODS if method.card.name == "frozen")
    for name, recipe in RECIPES.items():
        yield _row(track, name, frozen, {}, recipe)


def budget_of(method: type[Method], track: Track) -> dict[str, Any]:
    """Return the fields that give a method the budget of a data set."""
    names, fields = method.model_fields, dict[str, Any]()
    name = method.card.name
    wanted: Mapping[str, Any] = {
        "dimension": track.dimension, "epochs": track.epochs, "batch": BATCH, "kept_views": VIEWS, "views": VIEWS,
        "trains": track.trains, "iterations": track.steps}
    fields |= {field: value for field, value in wanted.items() if field in names}
    if name == "rpml":  # one epoch draws triplets once; its steps are of conjugate gradient on all of them
        fields["steps"] = min(MOST_STEPS, track.epoch_steps)
    elif name == "rotnet":  # every kept crop is cached in four rotations
        fields["kept_views"] = 2
    elif method.card.supervision == "pairs":
        fields["epochs"] = max(1, round(track.steps / math.ceil(PAIRS_AN_EPOCH / BATCH)))
    elif "per_anchor" in names:  # triplets of the labeled images only: as many as there are training images
        fields["per_anchor"] = round(track.images / track.labels)
    if fields.get("trains") == "last":
        fields |= {"batch_norm": "frozen"}
        if method.card.supervision != "few" and name != "srpml":
            fields["learning_rate"] = PLM_RATE if name in ("plm", "stml") else LAST_RATE
    return fields


def _row(track: Track, name: str, method: type[Method], fields: Mapping[str, Any], recipe: str = "") -> Compared:
    settings = " ".join(f"{field}={str(value).lower() if isinstance(value, bool) else value}"
                        for field, value in fields.items())
    text = " ".join(filter(None, (method.card.name, settings, track.options)))
    return Compared(RECORD, track.dataset, name, text, _seconds(method.make(fields), track), SEEDS, track.per_class,
                    method=method.card.name, near=track.near, recipe=recipe)


def _seconds(method: Method, track: Track) -> float:
    """Estimate the time of one seed, without the features."""
    spec = EncoderSpec(backbone=track.backbone, size=track.size)
    share = late_share(spec) if method.trained_part == "last" else 1.0
    width = feature_width(spec)
    assert width is not None, "the width of these encoders is known before loading"
    return FIXED_SECONDS + method.epochs_planned * method.expected_seconds(track.images, width,
                                                                           share * image_seconds(spec))


SSDML_ROWS = ("lrml", "seraph", "isdml", "apllr", "apit", "ssdml")


def _few_labels(table: int, data: str, *values: float) -> PaperTable:
    """Return R@1 of SSDML's table 1 or 2 on a data set."""
    return PaperTable(f"SSDML, table {table}, {data}", data, "recall@1", dict(zip(SSDML_ROWS, values, strict=True)))


PAPER_TABLES = (
    PaperTable("RPML, table 1, CUB", "CUB", "recall@1",
               {"exemplar": 38.2, "nce": 39.2, "deepcluster": 42.9, "mom": 45.3, "isif": 46.2, "srpml": 43.7}),
    PaperTable("PLM, table 1, CUB, 128 dimensions", "CUB", "recall@1",
               {"exemplar": 38.2, "nce": 39.2, "deepcluster": 42.9, "mom": 45.3, "and": 47.3, "isif": 46.2,
                "pslr": 48.1, "stml": 57.7, "plm": 60.6}),
    PaperTable("PLM, table 1, CUB, 512 dimensions", "CUB", "recall@1", {"uhml": 58.9, "stml": 58.6, "plm": 61.7}),
    PaperTable("PSLR, table 1, CIFAR-10", "CIFAR-10", "knn@200",
               {"deepcluster": 67.6, "exemplar": 74.5, "nce": 80.4, "isif": 83.6, "and": 86.3, "pslr": 85.2}),
    PaperTable("PSLR, table 3, CUB", "CUB", "recall@1",
               {"exemplar": 38.2, "nce": 39.2, "deepcluster": 42.9, "mom": 45.3, "and": 47.3, "isif": 46.2,
                "pslr": 48.1}),
    PaperTable("SSDML, table 3, CUB", "CUB", "recall@1",
               {"exemplar": 38.2, "rotnet": 42.5, "nce": 39.2, "deepcluster": 42.9, "ssdml": 44.8}),
    PaperTable("SSDML, table 5, CUB", "CUB", "recall@1", {"triplet": 42.6, "angular": 41.4, "ssdml": 44.8}),
    _few_labels(1, "MNIST", 88.7, 92.5, 92.1, 57.6, 87.6, 93.9),
    _few_labels(1, "Fashion-MNIST", 75.3, 75.9, 74.4, 59.5, 69.4, 77.6),
    _few_labels(1, "CIFAR-10", 40.2, 39.5, 36.4, 24.4, 26.0, 41.4),
    _few_labels(2, "CUB", 34.9, 39.7, 43.7, 25.7, 42.2, 44.8),
)
"""Every method of these tables that this project has. AND has five rounds, as here.

RPML's table 2 is left out, because its triplet loss has all labels, and this project's only few.
"""
