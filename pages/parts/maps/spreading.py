"""The colors of spread labels: the class of the labels near an image, if it is certain enough."""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Array, rows_of
from udml_core.data.dataset import Dataset
from udml_core.data.given.labels import assigned_classes, assigned_now
from udml_core.exploration import label_spread as views
from udml_core.exploration.map_content import Color
from udml_core.exploration.naming import GAMMA
from udml_core.runs import Run
from udml_core.runs.search.naming import name_codes, name_images

from ..shell.label_graph import graph_of_run, reach_in, training_labels
from .frame import MapFrame

SPREAD = "spread labels"


def has_few_labels(run: Run, dataset: Dataset) -> bool:
    """Return whether there are labels to spread: assigned labels, or the few labels that the method received."""
    return bool(assigned_now(dataset)) or training_labels(run, dataset) is not None


def spread_color(shown: MapFrame, gamma: float | None = None) -> Color:
    """Color by the class whose labels reach each image with enough certainty; other images stay gray.

    Assigned labels spread, named as on Label; without them, the labels that the method received.

    Args:
        shown: The map.
        gamma: Probability that a walk goes on; as on Label if None.
    """
    images, _ = graph_of_run(shown.run)
    codes, names = _labels(shown.run, shown.dataset, images)
    reach = reach_in(shown.run, "final", GAMMA if gamma is None else gamma)
    if assigned_now(shown.dataset):
        named = name_images(shown.dataset, images, reach).accepted
    else:
        named = name_codes(codes, len(names), reach)
    rows = rows_of(images, shown.projection.indices)
    return Color(SPREAD, np.where(rows >= 0, named[rows], -1), names or ("no class yet",), none="no name")


def _labels(run: Run, dataset: Dataset, images: Array) -> tuple[Array, tuple[str, ...]]:
    """Return the class codes of the training images, −1 without a label, and the classes."""
    labels = assigned_now(dataset)
    received = None if labels else training_labels(run, dataset)
    if received is not None:
        return received[0][images], received[1]
    names = assigned_classes(dataset)
    return views.label_codes(labels, names, images), names
