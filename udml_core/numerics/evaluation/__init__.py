"""The evaluation measures, the same for all methods.

Values are fractions unless stated otherwise. Neighbors are nearest by Euclidean distance; ties go to the lowest index.
"""

from udml_core.numerics.evaluation.classification import knn_accuracy, linear_accuracy
from udml_core.numerics.evaluation.cluster_measures import (
    kmeans_clusters,
    label_purity,
    neighborhood_purity,
    nmi,
    pairwise_f,
    similarity_correlation,
)
from udml_core.numerics.evaluation.ranking import rankings
from udml_core.numerics.evaluation.retrieval_measures import (
    average_precisions,
    map_at_r,
    mean_precision_at_k,
    nearest_is_hit,
    neighbor_stability,
    recall_at_k,
    recall_in_gallery,
)
from udml_core.numerics.evaluation.structure import distortion, distortion_neighbors, effective_rank, trustworthiness
from udml_core.numerics.evaluation.summary import evaluate, headline_measures

__all__ = ["average_precisions", "distortion", "distortion_neighbors", "effective_rank", "evaluate",
           "headline_measures", "kmeans_clusters", "knn_accuracy", "label_purity", "linear_accuracy", "map_at_r",
           "mean_precision_at_k", "nearest_is_hit", "neighbor_stability", "neighborhood_purity", "nmi", "pairwise_f",
           "rankings", "recall_at_k", "recall_in_gallery", "similarity_correlation", "trustworthiness"]
