"""The clusters of a run's neighbor graph at the values of the sliders."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import streamlit as st

from udml_core.base.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.exploration import clusters as views
from udml_core.numerics.explanations import Clusters
from udml_core.runs import Run

from ..shell.analyses import load_indices, load_result
from ..shell.cached import dataset_of
from ..shell.run_hash import RUN_HASH


@dataclass(frozen=True)
class Clustering:
    """The clusters of a run's training images at one ε and γ.

    Attributes:
        run: The run.
        graph_id: The id of the analysis that holds the neighbor graph.
        rescaled: Whether ω is multiplied by the number of images.
        epsilon: ε, the minimum relevancy of an edge.
        gamma: γ, the penalty of steep edges.
    """

    run: Run
    graph_id: str
    rescaled: bool
    epsilon: float
    gamma: float

    @cached_property
    def dataset(self) -> Dataset:
        """The run's data set."""
        return dataset_of(self.run)

    @cached_property
    def indices(self) -> Array:
        """Data set indices of the graph's images, (n,)."""
        return load_indices(self.run, self.graph_id)

    @cached_property
    def labels(self) -> Array | None:
        """Labels of the graph's images, (n,); None without classes."""
        return None if self.dataset.labels is None else self.dataset.labels[self.indices]

    @cached_property
    def graph(self) -> views.Graph:
        """The neighbor graph."""
        return load_graph(self.run, self.graph_id, self.rescaled)

    @cached_property
    def clusters(self) -> Clusters:
        """The clusters."""
        return self.graph.clusters(self.epsilon, self.gamma)

    @cached_property
    def summary(self) -> views.Summary:
        """Numbers that describe the clusters; they are counted once for all visitors."""
        return _summary_at(self.run, self.graph_id, self.rescaled, self.epsilon, self.gamma, self)

    @property
    def modes(self) -> Array:
        """Data set indices of the clusters' modes, (c,)."""
        return self.indices[self.clusters.modes]


def load_graph(run: Run, graph_id: str, rescaled: bool) -> views.Graph:
    """Load a run's neighbor graph.

    Args:
        run: The run.
        graph_id: The id of the analysis that holds the graph.
        rescaled: Whether to multiply the paper's ω by the number of images.
    """
    graph = load_result(run, graph_id)
    assert isinstance(graph, views.Graph)
    return _rescaled_graph(run, graph_id) if rescaled else graph


@st.cache_resource(max_entries=1024, show_spinner=False, hash_funcs=RUN_HASH)
def _summary_at(run: Run, graph_id: str, rescaled: bool, epsilon: float, gamma: float,  # noqa: ARG001
                _clustering: Clustering) -> views.Summary:
    return views.cluster_summary(_clustering.clusters, _clustering.labels)


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs=RUN_HASH)
def _rescaled_graph(run: Run, graph_id: str) -> views.Graph:
    return views.rescale_authority(load_graph(run, graph_id, False))
