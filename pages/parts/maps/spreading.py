"""The colors of spread labels: the class of the label at which random walks from each image most probably end."""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Array, rows_of
from udml_core.base.declaration import describe_field
from udml_core.data.dataset import Dataset
from udml_core.data.given.labels import assigned_classes
from udml_core.exploration import label_spread as views
from udml_core.methods.ssdml import SSDML
from udml_core.runs import Run

from ..shell.label_graph import assigned_now, ends_of, graph_of_run, training_labels
from .content import Color
from .frame import MapFrame

SPREAD = "spread labels"


def has_few_labels(run: Run, dataset: Dataset) -> bool:
    """Return whether there are labels to spread: assigned labels, or the few labels that the method received."""
    return bool(assigned_now(dataset)) or training_labels(run, dataset) is not None


def spread_color(shown: MapFrame, gamma: float | None = None) -> Color:
    """Color by the class that spreads to each image on the graph of the run's final embedding.

    Assigned labels spread; without them, the labels that the method received.

    Args:
        shown: The map.
        gamma: Probability that a walk goes on; SSDML's default if None.
    """
    gamma = float(describe_field(SSDML, "gamma").default) if gamma is None else gamma
    images, _ = graph_of_run(shown.run)
    codes, names = _labels(shown.run, shown.dataset, images)
    ends = ends_of(shown.run, codes, len(names), gamma)
    rows = rows_of(images, shown.projection.indices)
    return Color(SPREAD, np.where(rows >= 0, ends.best[rows], -1), names or ("no class yet",),
                 none="not reached")


def _labels(run: Run, dataset: Dataset, images: Array) -> tuple[Array, tuple[str, ...]]:
    """Return the class codes of the training images, −1 without a label, and the classes."""
    labels = assigned_now(dataset)
    received = None if labels else training_labels(run, dataset)
    if received is not None:
        return received[0][images], received[1]
    names = assigned_classes(dataset)
    return views.label_codes(labels, names, images), names
