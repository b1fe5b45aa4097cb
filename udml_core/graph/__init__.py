"""Neighbor graphs and what is read off them."""

from udml_core.graph.authority import AuthorityGraph, AuthorityShift
from udml_core.graph.mutual import mutual_pairs

__all__ = ["AuthorityGraph", "AuthorityShift", "mutual_pairs"]
