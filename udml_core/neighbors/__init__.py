"""Nearest-neighbor search, exact and approximate; the only package that imports faiss."""

from udml_core.neighbors.approximate import EXACT_UP_TO, approximate_nearest, graph_neighbors
from udml_core.neighbors.exact import build_index, largest_products, nearest, read_index, search, write_index

__all__ = ["EXACT_UP_TO", "approximate_nearest", "build_index", "graph_neighbors", "largest_products", "nearest",
           "read_index", "search", "write_index"]
