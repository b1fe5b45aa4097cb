"""A table of embeddings with a million rows, and its way through the app."""

from experiments.million.table import write_table

__all__ = ["write_table"]
