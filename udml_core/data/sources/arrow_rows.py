"""Rows with images that pyarrow reads: Parquet, Arrow as `datasets` stores it, and tables of LanceDB."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from udml_core.base.errors import UserError
from udml_core.base.files import parse_json
from udml_core.data.sources.row_file import ROWS, RowFile, StoredImage
from udml_core.data.sources.table_files import check_column, plain_value

IMAGE_COLUMNS = ("image", "img", "picture", "photo", "image_bytes", "bytes", "jpg", "png")
"""Usual names of a column of bytes; a column of bytes and paths, as `datasets` has it, can have any name."""


class ArrowRows(RowFile):
    """A file that pyarrow reads in batches."""

    @cached_property
    @abstractmethod
    def schema(self) -> Any:
        """The schema of pyarrow."""

    @abstractmethod
    def batches(self, column: str) -> Iterator[Any]:
        """Yield a column in batches, as arrays of pyarrow."""

    def offset_of(self, _array: Any, _row: int) -> int | None:
        """Return where the file holds the bytes in a row of an array; None if they are compressed."""
        return None

    @property
    def image_column(self) -> str | None:
        """The column of the images; None if there is none."""
        return next(iter(self.image_columns), None)

    @cached_property
    def image_columns(self) -> list[str]:
        from pyarrow import types

        both = [field.name for field in self.schema if types.is_struct(field.type)
                and {field.type.field(number).name for number in range(field.type.num_fields)} == {"bytes", "path"}]
        plain = [field.name for field in self.schema if field.name.lower() in IMAGE_COLUMNS
                 and (types.is_binary(field.type) or types.is_large_binary(field.type))]
        return both + plain

    def holds_images(self) -> bool:
        return self.image_column is not None

    @property
    def names(self) -> list[str]:
        from pyarrow import types

        usable = (types.is_string, types.is_large_string, types.is_boolean, types.is_integer, types.is_floating,
                  types.is_temporal, types.is_dictionary)
        return [field.name for field in self.schema if any(test(field.type) for test in usable)
                or (field.name in self.class_names and self._is_list(field.name))]

    def _is_list(self, name: str) -> bool:
        from pyarrow import types

        kind = self.schema.field(name).type
        return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))

    @cached_property
    def class_names(self) -> Mapping[str, Sequence[str]]:
        """Names of the classes by column, where `datasets` stores numbers, or lists of numbers."""
        try:
            described = parse_json(self.schema.metadata[b"huggingface"])["info"]["features"]
            features = {name: _element(feature) for name, feature in described.items()}
            return {name: list(map(str, feature["names"])) for name, feature in features.items()
                    if isinstance(feature, dict) and feature.get("_type") == "ClassLabel"}
        except (KeyError, TypeError, ValueError, AttributeError):
            return {}

    @property
    def class_columns(self) -> list[str]:
        return [name for name in self.names if name in self.class_names]

    def read(self, name: str) -> list[Any]:
        words, values, size = self.class_names.get(name), [], 0
        for array in self.batches(name):
            part = [plain_value(value) for value in array.to_pylist()]
            lengths = [len(value) for value in part if isinstance(value, str)]
            size += sum(lengths)
            check_column(self.path, name, size, max(lengths, default=0))
            values += part
        return values if words is None else [_named(value, words) for value in values]

    def paths_alone(self) -> list[str]:
        from pyarrow import types

        name = self.image_column
        if name is None or not types.is_struct(self.schema.field(name).type) or self.has_contents(name):
            return []
        return [str(path) for array in self.batches(name) for path in array.field("path").to_pylist() if path]

    def has_contents(self, name: str) -> bool:
        """Return whether a row of a column of bytes and paths has bytes."""
        return any(array.field("bytes").null_count < len(array) for array in self.batches(name))

    def images(self) -> Iterator[StoredImage]:
        from pyarrow import types

        assert self.image_column is not None
        for array in self.batches(self.image_column):
            is_both = types.is_struct(array.type)
            content = array.field("bytes") if is_both else array
            paths = array.field("path").to_pylist() if is_both else [None] * len(array)
            for row, path in enumerate(paths):
                value = content[row]
                yield StoredImage(path, value.as_py(), self.offset_of(content, row) if value.is_valid else None)


def _element(feature: Any) -> Any:
    """Return the feature of the elements of a list, which `datasets` has written in several ways; else the feature."""
    if isinstance(feature, list) and feature:
        return feature[0]
    return feature.get("feature", feature) if isinstance(feature, dict) else feature


def _named(value: Any, words: Sequence[str]) -> Any:
    """Return the name of a class by its number, or the names of a list; None without a class."""
    if isinstance(value, list):
        return [word for number in value if (word := _named(number, words)) is not None]
    return words[value] if isinstance(value, int) and 0 <= value < len(words) else None


class ParquetRows(ArrowRows):
    """A Parquet file."""

    @cached_property
    def schema(self) -> Any:
        from pyarrow import parquet

        return parquet.read_schema(self.path)

    @property
    def count(self) -> int:
        from pyarrow import parquet

        return int(parquet.read_metadata(self.path).num_rows)

    def has_contents(self, name: str) -> bool:
        from pyarrow import parquet

        file = parquet.read_metadata(self.path)
        stored = [group.column(column) for group in map(file.row_group, range(file.num_row_groups))
                  for column in range(group.num_columns)]
        return any(chunk.statistics is None or chunk.statistics.null_count != chunk.num_values for chunk in stored
                   if chunk.path_in_schema == f"{name}.bytes")

    def batches(self, column: str) -> Iterator[Any]:
        from pyarrow import parquet

        with parquet.ParquetFile(self.path) as file:
            for batch in file.iter_batches(ROWS, columns=[column]):
                yield batch.column(0)


class ArrowFile(ArrowRows):
    """A file of `datasets` in Arrow's stream format, mapped into memory."""

    @cached_property
    def schema(self) -> Any:
        return self._open()[1].schema

    def _open(self) -> tuple[Any, Any]:
        import pyarrow as pa

        content = pa.memory_map(str(self.path)).read_buffer()
        return content, pa.ipc.open_stream(content)

    @cached_property
    def _content(self) -> Any:
        return self._open()[0]

    @property
    def count(self) -> int:
        return sum(batch.num_rows for batch in self._open()[1])

    def batches(self, column: str) -> Iterator[Any]:
        import pyarrow as pa

        for batch in pa.ipc.open_stream(self._content):
            batch.validate(full=True)  # its offsets could lead out of the file
            yield batch.column(self.schema.get_field_index(column))

    def offset_of(self, array: Any, row: int) -> int | None:
        import numpy as np
        from pyarrow import types

        _, offsets, content = array.buffers()
        start = content.address - self._content.address
        if not 0 <= start <= self._content.size - content.size:
            return None
        kind = np.int64 if types.is_large_binary(array.type) else np.int32
        return int(start + np.frombuffer(offsets, kind)[array.offset + row])


class LanceRows(ArrowRows):
    """A table of LanceDB, a folder NAME.lance."""

    @cached_property
    def _table(self) -> Any:
        try:
            import lancedb
        except ImportError as error:
            raise UserError(f"{self.path} is a table of LanceDB, which needs the package lancedb. Install it with "
                            "pip install 'udml-explorer[lance]'.") from error
        return lancedb.connect(self.path.parent).open_table(self.path.stem)

    @cached_property
    def schema(self) -> Any:
        return self._table.schema

    @property
    def count(self) -> int:
        return int(self._table.count_rows())

    def batches(self, column: str) -> Iterator[Any]:
        for start in range(0, self.count, ROWS):
            rows = self._table.take_offsets(list(range(start, min(start + ROWS, self.count)))).select([column])
            yield rows.to_arrow().column(column).combine_chunks()
