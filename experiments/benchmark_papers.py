"""The papers' tables with which the benchmark compares the order of the methods."""

from __future__ import annotations

from udml_core.results.benchmark import PaperTable

SSDML_ROWS = ("lrml", "seraph", "isdml", "apllr", "apit", "ssdml")


def _few_labels(table: int, data: str, *values: float) -> PaperTable:
    """Return R@1 of SSDML's table 1 or 2 on a data set."""
    return PaperTable(f"SSDML, table {table}, {data}", data, "recall@1", dict(zip(SSDML_ROWS, values, strict=True)))


PAPER_TABLES = (
    PaperTable("RPML, table 1, CUB", "CUB", "recall@1",
               {"exemplar": 38.2, "nce": 39.2, "deepcluster": 42.9, "mom": 45.3, "isif": 46.2, "srpml": 43.7}),
    PaperTable("PLM, table 1, CUB, 128 dimensions", "CUB", "recall@1",
               {"exemplar": 38.2, "nce": 39.2, "deepcluster": 42.9, "mom": 45.3, "and": 47.3, "isif": 46.2,
                "pslr": 48.1, "stml": 57.7, "plm": 60.6}),
    PaperTable("PLM, table 1, CUB, 512 dimensions", "CUB", "recall@1", {"uhml": 58.9, "stml": 58.6, "plm": 61.7}),
    PaperTable("PSLR, table 1, CIFAR-10", "CIFAR-10", "knn@200",
               {"deepcluster": 67.6, "exemplar": 74.5, "nce": 80.4, "isif": 83.6, "and": 86.3, "pslr": 85.2}),
    PaperTable("PSLR, table 3, CUB", "CUB", "recall@1",
               {"exemplar": 38.2, "nce": 39.2, "deepcluster": 42.9, "mom": 45.3, "and": 47.3, "isif": 46.2,
                "pslr": 48.1}),
    PaperTable("SSDML, table 3, CUB", "CUB", "recall@1",
               {"exemplar": 38.2, "rotnet": 42.5, "nce": 39.2, "deepcluster": 42.9, "ssdml": 44.8}),
    PaperTable("SSDML, table 5, CUB", "CUB", "recall@1", {"triplet": 42.6, "angular": 41.4, "ssdml": 44.8}),
    _few_labels(1, "MNIST", 88.7, 92.5, 92.1, 57.6, 87.6, 93.9),
    _few_labels(1, "Fashion-MNIST", 75.3, 75.9, 74.4, 59.5, 69.4, 77.6),
    _few_labels(1, "CIFAR-10", 40.2, 39.5, 36.4, 24.4, 26.0, 41.4),
    _few_labels(2, "CUB", 34.9, 39.7, 43.7, 25.7, 42.2, 44.8),
)
"""Every method of these tables that this project has. AND has five rounds, as here.

RPML's table 2 is left out, because its triplet loss has all labels, and this project's only few.
"""
