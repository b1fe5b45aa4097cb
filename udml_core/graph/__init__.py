"""Neighbor graphs and what is read off them."""

from udml_core.graph.authority import AuthorityGraph, AuthorityShift
from udml_core.graph.linear_neighborhoods import linear_neighborhoods, linear_neighborhoods_at
from udml_core.graph.mutual_neighbors import mutual_pairs
from udml_core.graph.propagation import Propagation, propagate, propagate_affinities
from udml_core.graph.random_walk import walk_similarity

__all__ = ["AuthorityGraph", "AuthorityShift", "Propagation", "linear_neighborhoods", "linear_neighborhoods_at",
           "mutual_pairs", "propagate", "propagate_affinities", "walk_similarity"]
