"""Readers of vectors: .npy, .npz, .parquet and .safetensors, block by block and without unpickling."""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

import numpy as np

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError, quoted
from udml_core.base.files import READ_ERRORS, check_regular
from udml_core.data.sources.table_files import check_column, check_columns, foreign_path, parquet_values

ENDINGS = (".npy", ".npz", ".parquet", ".safetensors")
VECTOR_NAMES = ("embeddings", "embedding", "features", "vectors", "vector", "x")
"""Names of arrays and columns that hold the vectors, most usual first, in lower case."""
MOST_ROWS, MOST_WIDTH, MOST_BYTES = 5_000_000, 16_384, 16_000_000_000
"""Largest number of rows, and of numbers in a row, and largest size as float32."""
HARMLESS_BYTES, MOST_GROWTH = 200_000_000, 200
"""Bytes that vectors of any file may take as float32, and how many times the size of their file beyond them."""
BLOCK_BYTES = 16_000_000
LONGEST_HEADER = 10_000
"""Most bytes of the header of a NumPy array, as in NumPy itself, which however reads a longer one before it refuses."""
MOST_FORTRAN = 2**31
"""Largest array in Fortran order, which is read as a whole, in bytes."""
EXPECTED = ("Expected: a 2-D array of numbers (.npy, .npz, .safetensors), or a column of lists of numbers or one "
            "column of numbers for each dimension (.parquet)")
_NUMBERED = re.compile(r"^(.*?)(\d+)$")


class ChoiceError(UserError):
    """A column or array that does not fit its role, so that the user has to choose another or change the file.

    Attributes:
        problem: What is wrong.
        change: How to change the file. It replaces the choice, which needs a path, where the file is uploaded.
    """

    def __init__(self, problem: str, choice: str, change: str) -> None:
        super().__init__(f"{problem} {choice}")
        self.problem = problem
        self.change = change


@dataclass(frozen=True)
class VectorFile:
    """The vectors in a file, and the columns beside them.

    Attributes:
        count: Number n of rows that the file declares.
        width: Number d of numbers in a row.
        blocks: Returns the rows in blocks (b, d), in order.
        columns: Names of the other columns.
        read: Returns a column as n values: text, numbers, bool or None.
    """

    count: int
    width: int
    blocks: Callable[[], Iterator[Array]]
    columns: tuple[str, ...]
    read: Callable[[str], list[Any]]


def open_vectors(path: Path, wanted: str | None = None) -> VectorFile:
    """Open a file of vectors; its header is read and checked, the vectors are not read yet.

    Args:
        path: The file.
        wanted: Name of the array or column with the vectors; chosen by name and shape if None.

    Raises:
        UserError: The file cannot be read, or does not hold vectors.
    """
    openers = {".npy": _open_npy, ".npz": _open_npz, ".parquet": _open_parquet, ".safetensors": _open_safetensors}
    with reading(path):
        check_regular(path)
        opened = openers[path.suffix.lower()](path, wanted)
        _check_size(path, opened.count, opened.width)
        return opened


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what readers raise for files of another format, and for damaged files, into one message.

    Raises:
        UserError: The file cannot be read.
    """
    import pyarrow as pa
    from safetensors import SafetensorError

    try:
        yield
    except (*READ_ERRORS, pa.ArrowException, SafetensorError) as error:
        if (foreign := foreign_path(path)) is not None:
            raise foreign from error
        reason = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
        # A damaged Parquet file does not say whether its rows hold vectors or images.
        cure = ("It may be cut short: copy or write it again." if path.suffix.lower() == ".parquet" else
                f"{EXPECTED}; write the file again.")
        raise UserError(f"{path} could not be read as {path.suffix}: {reason}. {cure}") from error


def _check_size(path: Path, count: int, width: int) -> None:
    """Check a file's declared size before memory is reserved for it.

    Raises:
        UserError: There are too few or too many rows or numbers.
    """
    if count < 3 or width < 1:
        raise UserError(f"{path} needs at least 3 rows of at least one number, got {count:,} rows of {width:,} "
                        f"numbers. {EXPECTED}.")
    if count > MOST_ROWS or width > MOST_WIDTH or 4 * count * width > MOST_BYTES:
        raise UserError(f"{path} declares {count:,} rows of {width:,} numbers; at most {MOST_ROWS:,} rows, "
                        f"{MOST_WIDTH:,} numbers in a row and {MOST_BYTES / 1e9:g} GB as float32 are read. Take a "
                        "sample of the rows, or reduce them to fewer dimensions.")
    if 4 * count * width > max(HARMLESS_BYTES, MOST_GROWTH * path.stat().st_size):
        raise UserError(f"{path} declares {count:,} rows of {width:,} numbers, {4 * count * width / 1e6:,.0f} MB, in "
                        f"{path.stat().st_size / 1e6:,.2f} MB; at most {MOST_GROWTH:,} times the size of the file is "
                        "read. Different vectors take more: check how the file was written.")


def _check_array(path: Path, name: str, shape: Sequence[int], is_number: bool, dtype: object) -> None:
    """Check that an array is a table of numbers.

    Raises:
        UserError: It is not.
    """
    if str(dtype) == "object":
        raise UserError(f"The array {quoted(name)} in {path} holds Python objects, which are not read because that "
                        "could execute code. Save it as numbers: `np.save(path, np.stack(rows).astype('float32'))`.")
    if not is_number or len(shape) != 2:
        raise UserError(f"The array {quoted(name)} in {path} must be numbers of the shape (rows, dimensions), got "
                        f"{dtype} of the shape {tuple(shape)}. {EXPECTED}.")


def _pick(path: Path, wanted: str | None, candidates: Sequence[str], present: str) -> str:
    """Return the name of the vectors among the candidates.

    Raises:
        UserError: There is none, or more than one without a usual name.
    """
    if wanted:
        if wanted not in candidates:
            raise UserError(f"{path} has no vectors {quoted(wanted)}. Choose one of "
                            f"{', '.join(map(quoted, candidates)) or 'none'}; the file has {present}.")
        return wanted
    usual = sorted((VECTOR_NAMES.index(name.lower()), name) for name in candidates if name.lower() in VECTOR_NAMES)
    if usual:
        return usual[0][1]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise ChoiceError(f"{path} has {len(candidates)} arrays or columns that could be the vectors: "
                          f"{', '.join(map(quoted, candidates[:10]))}.", "Add `#vectors=NAME` to the path.",
                          f"Rename the right one to '{VECTOR_NAMES[0]}'.")
    raise UserError(f"{path} has no vectors; it has {present}. {EXPECTED}.")


def _described(kinds: Mapping[str, str]) -> str:
    """List names with their types for a message, such as ``'label' (string)``."""
    listed = ", ".join(f"{quoted(name)} ({kind})" for name, kind in list(kinds.items())[:10])
    return (listed or "no columns") + (f" and {len(kinds) - 10} more" if len(kinds) > 10 else "")


# NumPy: one array, or a ZIP file of arrays. Both are read as streams, so that no array is in memory at once.

@dataclass(frozen=True)
class _Header:
    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]

    @property
    def is_number(self) -> bool:
        return self.dtype.kind in "fiu"


def _read_header(stream: IO[bytes]) -> _Header:
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"its format version is {version[0]}.{version[1]}, and 1.0 and 2.0 are read")
    field = stream.read(2 if version == (1, 0) else 4)
    length = int.from_bytes(field, "little")
    if length > LONGEST_HEADER:
        raise ValueError(f"its header declares {length:,} bytes, and at most {LONGEST_HEADER:,} are read")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    header = _Header(*read(io.BytesIO(field + stream.read(length))))
    if min(header.shape, default=0) < 0:
        raise ValueError(f"its header declares the shape {header.shape}")
    return header


def _read_rows(stream: IO[bytes]) -> Iterator[Array]:
    """Read an array's rows (b, d) block by block; an array in Fortran order is one block."""
    header = _read_header(stream)
    count, width = header.shape
    size = width * header.dtype.itemsize
    if header.is_fortran and count * size > MOST_FORTRAN:
        raise ValueError(f"it is stored column by column and would fill {count * size:,} bytes of memory at once; "
                         "store it row by row with `np.save(path, np.ascontiguousarray(vectors))`")
    rows = count if header.is_fortran else max(1, BLOCK_BYTES // size)
    for start in range(0, count, rows):
        part = min(rows, count - start)
        content = stream.read(part * size)
        if len(content) < part * size:
            raise ValueError(f"its header declares {count:,} rows, and it ends in row {start + len(content) // size:,}")
        yield np.frombuffer(content, header.dtype).reshape((part, width), order="F" if header.is_fortran else "C")


def _open_npy(path: Path, wanted: str | None) -> VectorFile:
    with path.open("rb") as stream:
        header = _read_header(stream)
    _pick(path, wanted, [path.stem], f"one array, {header.dtype} {header.shape}")
    _check_array(path, path.stem, header.shape, header.is_number, header.dtype)

    def blocks() -> Iterator[Array]:
        with path.open("rb") as stream:
            yield from _read_rows(stream)

    count, width = header.shape
    return VectorFile(count, width, blocks, (), _no_columns)


def _no_columns(name: str) -> list[Any]:
    raise KeyError(name)


def _open_npz(path: Path, wanted: str | None) -> VectorFile:
    headers: dict[str, _Header] = {}
    with ZipFile(path) as file:
        for member in file.namelist():
            if member.endswith(".npy"):
                with file.open(member) as stream:
                    headers[member.removesuffix(".npy")] = _read_header(stream)
    kinds = {name: f"{header.dtype} {header.shape}" for name, header in headers.items()}
    name = _pick_array(path, wanted, {name: len(header.shape) for name, header in headers.items()}, kinds)
    header = headers[name]
    _check_array(path, name, header.shape, header.is_number, header.dtype)

    def blocks() -> Iterator[Array]:
        with ZipFile(path) as file, file.open(f"{name}.npy") as stream:
            yield from _read_rows(stream)

    def read(column: str) -> list[Any]:
        (count,), dtype = headers[column].shape, headers[column].dtype
        if dtype.kind == "O":
            _check_array(path, column, (count,), False, dtype)
        letters = dtype.itemsize // {"U": 4, "S": 1}[dtype.kind] if dtype.kind in "US" else 0
        check_column(path, column, count * dtype.itemsize, letters)
        with np.load(path, allow_pickle=False) as stored:
            values: Array = stored[column]
        return [value.decode(errors="replace") if isinstance(value, bytes) else value for value in values.tolist()]

    columns = tuple(other for other in headers if headers[other].shape == header.shape[:1])
    count, width = header.shape
    return VectorFile(count, width, blocks, columns, read)


def _pick_array(path: Path, wanted: str | None, dimensions: Mapping[str, int], kinds: Mapping[str, str]) -> str:
    """Choose the array with the vectors: of two dimensions, and named as usual or the only one."""
    candidates = [name for name in dimensions if dimensions[name] == 2]
    if not candidates:  # the check of the shape says what is wrong
        candidates = [name for name in dimensions if name.lower() in VECTOR_NAMES or len(dimensions) == 1]
    return _pick(path, wanted, candidates, _described(kinds))


# safetensors: tensors by name, without text.

def _open_safetensors(path: Path, wanted: str | None) -> VectorFile:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:  # NumPy has no bfloat16, PyTorch has
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        shapes = {name: tuple(part.get_shape()) for name, part in slices.items()}
        types = {name: str(part.get_dtype()) for name, part in slices.items()}
    kinds = {name: f"{types[name]} {shape}" for name, shape in shapes.items()}
    name = _pick_array(path, wanted, {name: len(shape) for name, shape in shapes.items()}, kinds)
    _check_array(path, name, shapes[name], types[name] != "BOOL", types[name])
    count, width = shapes[name]

    def blocks() -> Iterator[Array]:
        rows = max(1, BLOCK_BYTES // (4 * width))
        with safe_open(path, framework="pt") as file:
            stored = file.get_slice(name)
            for start in range(0, count, rows):
                yield stored[start : start + rows].float().numpy()

    def read(column: str) -> list[Any]:
        with safe_open(path, framework="pt") as file:
            values: list[Any] = file.get_tensor(column).tolist()
        return values

    columns = tuple(other for other in shapes if shapes[other] == (count,))
    return VectorFile(count, width, blocks, columns, read)


# Parquet: a column of lists, or a column for each dimension.

def _open_parquet(path: Path, wanted: str | None) -> VectorFile:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        schema, count = file.schema_arrow, file.metadata.num_rows
    check_columns(path, schema.names)
    types = {field.name: field.type for field in schema}
    lists = [name for name, kind in types.items() if _is_list_of_numbers(kind)]
    groups = _number_columns(types)
    kinds = {name: str(kind) for name, kind in types.items()}
    name = _pick(path, wanted, lists or list(groups), _described(kinds))
    used = [name] if name in lists else groups[name]
    others = tuple(other for other, kind in types.items() if other not in used and _is_value(kind))

    def tables(columns: Sequence[str], rows: int) -> Iterator[Any]:
        with parquet.ParquetFile(path) as file:
            yield from file.iter_batches(rows, columns=list(columns))

    _check_size(path, count, 1)
    width = len(used) if name not in lists else _list_width(next(tables(used, 1)).column(0))

    def blocks() -> Iterator[Array]:
        start = 0
        for batch in tables(used, max(1, BLOCK_BYTES // (4 * max(1, width)))):
            if name in lists:
                yield _list_rows(path, name, batch.column(0), width, start)
            else:
                yield np.stack([_numbers(batch.column(column)) for column in used], axis=1)
            start += batch.num_rows

    def read(column: str) -> list[Any]:
        return parquet_values(path, column)

    _check_size(path, count, width)
    return VectorFile(count, width, blocks, others, read)


def _is_list_of_numbers(kind: Any) -> bool:
    from pyarrow import types

    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return is_list and (types.is_floating(kind.value_type) or types.is_integer(kind.value_type))


def _is_value(kind: Any) -> bool:
    """Return whether a column can be metadata: text, numbers, bool, dates or times, plain or as a dictionary."""
    from pyarrow import types

    plain = kind.value_type if types.is_dictionary(kind) else kind
    return any(check(plain) for check in (types.is_string, types.is_large_string, types.is_integer, types.is_floating,
                                          types.is_boolean, types.is_date, types.is_time, types.is_timestamp))


def _number_columns(kinds: Mapping[str, Any]) -> dict[str, list[str]]:
    """Group the columns that hold one dimension each, by what the group is called.

    Columns e0, e1, … of numbers are the group `e`. Without such columns, all columns of fractions are one group.
    """
    from pyarrow import types

    numbered: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for name, kind in kinds.items():
        match = _NUMBERED.match(name)
        if match and (types.is_floating(kind) or types.is_integer(kind)):
            numbered[match[1]].append((int(match[2]), name))
    groups = {prefix or "numbers": [name for _, name in sorted(members)] for prefix, members in numbered.items()
              if len(members) > 1}
    if groups:
        longest = max(map(len, groups.values()))
        return {name: members for name, members in groups.items() if len(members) == longest}
    fractions = [name for name, kind in kinds.items() if types.is_floating(kind)]
    return {"numbers": fractions} if len(fractions) > 1 else {}


def _list_width(column: Any) -> int:
    """Return the length of the first list of a column; 0 if it is missing."""
    return len(column[0]) if len(column) and column[0].is_valid else 0


def _list_rows(path: Path, name: str, column: Any, width: int, start: int) -> Array:
    """Return lists of numbers as rows (b, d).

    Args:
        path: The file.
        name: Name of the column.
        column: The lists.
        width: Length that all lists must have.
        start: Row of the first list.

    Raises:
        UserError: A list is missing or has another length.
    """
    from pyarrow import compute

    lengths = compute.fill_null(compute.list_value_length(column), -1).to_numpy(zero_copy_only=False)
    if (lengths != width).any():
        row = int(np.argmax(lengths != width))
        length = f"{lengths[row]:,} numbers" if lengths[row] >= 0 else "no vector"
        raise UserError(f"The vectors in the column {quoted(name)} of {path} must have equal lengths: row 0 has "
                        f"{width:,} numbers, row {start + row:,} has {length}. Remove these rows, or compute their "
                        "vectors again.")
    return _numbers(column.flatten()).reshape(len(column), width)


def _numbers(column: Any) -> Array:
    """Return a column of numbers; missing numbers become NaN."""
    values: Array = column.to_numpy(zero_copy_only=False)
    return values
