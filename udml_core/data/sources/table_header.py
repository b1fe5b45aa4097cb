"""What a table of embeddings has, for the choice of its columns; read by bounded calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from udml_core.base import bounded
from udml_core.data.sources.embeddings import EmbeddingTable, table_aside

ROLES = ("label", "name", "split", "image", "text")
"""What a column of a table can be used for."""


@dataclass(frozen=True)
class Header:
    """What a table has.

    Attributes:
        count: Number of rows.
        width: Number of dimensions.
        columns: Names of the columns.
        usual: The column that each role of `ROLES` has without a choice, empty for none.
    """

    count: int
    width: int
    columns: tuple[str, ...]
    usual: dict[str, str]


def read_header(table: EmbeddingTable) -> Header:
    """Return what a table has.

    Raises:
        UserError: It is missing, cannot be read, or needs too much memory.
    """
    return bounded.call(table.path.name, _header_of, table, extra=table.length())


def read_uploaded_header(files: Sequence[tuple[str, bytes]]) -> Header:
    """Return what uploaded files have, by names and contents; see `read_header`."""
    with table_aside(files) as table:
        return bounded.call(files[0][0], _header_of, table, extra=table.length())


def _header_of(table: EmbeddingTable) -> Header:
    opened = table.header()
    return Header(opened.vectors.count, opened.vectors.width, tuple(opened.columns),
                  {role: opened.find(role, table.choices) or "" for role in ROLES})
