"""What authority ascent found: how many clusters, how large, how pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from udml_core.evaluation import label_purity, nmi
from udml_core.explanations import Clusters

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Summary:
    """count: clusters. sizes (c,): images of each. singletons: clusters of one. coverage: the share of images in
    clusters of two or more. purity, nmi: against labels, None without them."""

    count: int
    sizes: Array
    singletons: int
    coverage: float
    purity: float | None
    nmi: float | None


def summary(clusters: Clusters, labels: Array | None = None) -> Summary:
    """The numbers of a clustering of n points, against labels (n,) where there are any."""
    found = np.asarray(clusters.labels)
    sizes = np.bincount(found, minlength=len(clusters.modes))
    alone = int((sizes == 1).sum())
    return Summary(len(sizes), sizes, alone, 1 - alone / len(found),
                   None if labels is None else label_purity(found, labels),
                   None if labels is None else nmi(found, labels))
