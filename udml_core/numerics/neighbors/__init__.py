"""Nearest-neighbor search, exact and approximate; the only package that imports faiss."""

from udml_core.numerics.neighbors.approximate import EXACT_UP_TO, approximate_nearest, graph_neighbors
from udml_core.numerics.neighbors.centers import Report, ignore_progress
from udml_core.numerics.neighbors.exact import (
    build_index,
    largest_products,
    nearest,
    read_index,
    search,
    without_own,
    write_index,
)

__all__ = ["EXACT_UP_TO", "Report", "approximate_nearest", "build_index", "graph_neighbors", "ignore_progress",
           "largest_products", "nearest", "read_index", "search", "without_own", "write_index"]
