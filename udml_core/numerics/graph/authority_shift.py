"""Authority ascent shift as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from udml_core.numerics.graph.authority import AuthorityGraph


class AuthorityShift(ClusterMixin, BaseEstimator):
    """Clustering by authority ascent on a kNN graph.

    The data determine the number of clusters.

    Args:
        n_neighbors: k of the graph.
        epsilon: ε. An edge can lead to a parent if its relevancy exceeds ε. A lower value merges clusters, a higher
            value splits them.
        gamma: γ, how much a steep rise in authority lowers relevancy.
        rescaled: Multiply ω by n inside ψ; without it γ hardly matters.

    Attributes:
        labels_: (n,) int64, the cluster of each point.
        modes_: (c,) int64, the root of each cluster.
        parents_: (n,) int64, the next point on each ascent path; see `udml_core.numerics.explanations.Clusters`.
        graph_: The `AuthorityGraph`; `graph_.clusters(epsilon, gamma)` forms the clusters again at other values.

    References:
        Cho and Lee, CVPR 2012; RPML eq. 3–4. The papers leave affinity, σ and symmetrization open. Here
        W = exp(−d²/2σ²) with one σ, the median neighbor distance, and max(W, Wᵀ), so ω is exactly degree / Σ degree.
    """

    def __init__(self, n_neighbors: int = 50, epsilon: float = 0.65, gamma: float = 100.0,
                 rescaled: bool = False) -> None:
        self.n_neighbors = n_neighbors
        self.epsilon = epsilon
        self.gamma = gamma
        self.rescaled = rescaled

    def fit(self, X: Any, y: Any = None) -> AuthorityShift:
        """Build the graph of the points X (n, d) and cluster it.

        Raises:
            ValueError: There are fewer than n_neighbors + 1 points.
        """
        points = validate_data(self, X, dtype=np.float32, ensure_min_samples=2)
        self.graph_ = AuthorityGraph.build(points, self.n_neighbors, self.rescaled)
        clusters = self.graph_.clusters(self.epsilon, self.gamma)
        self.labels_, self.modes_, self.parents_ = clusters.labels, clusters.modes, clusters.parents
        return self
