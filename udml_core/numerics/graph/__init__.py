"""Neighbor graphs: clusters, linear neighborhoods and propagated affinities."""

from typing import TYPE_CHECKING, Any

from udml_core.numerics.graph.authority import AuthorityGraph
from udml_core.numerics.graph.linear_neighborhoods import Through, linear_neighborhoods, linear_neighborhoods_at
from udml_core.numerics.graph.mutual_neighbors import mutual_pairs
from udml_core.numerics.graph.propagation import propagate, propagate_affinities
from udml_core.numerics.graph.random_walk import walk_similarity

if TYPE_CHECKING:
    from udml_core.numerics.graph.authority_shift import AuthorityShift

__all__ = ["AuthorityGraph", "AuthorityShift", "Through", "linear_neighborhoods", "linear_neighborhoods_at",
           "mutual_pairs", "propagate", "propagate_affinities", "walk_similarity"]


def __getattr__(name: str) -> Any:
    """Import the scikit-learn estimator at its first use.

    scikit-learn takes longer to load than the command line.
    """
    if name == "AuthorityShift":
        from udml_core.numerics.graph.authority_shift import AuthorityShift

        return AuthorityShift
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
