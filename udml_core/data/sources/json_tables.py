"""Lists of images in JSON as columns: metadata.jsonl, FiftyOne's lists, and a Croissant description.

A list of a few megabytes needs many times as much once parsed, so that the server does not parse it: it asks for the
names of columns by bounded calls, and reads the columns in such a call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from udml_core.base import bounded
from udml_core.base.errors import UserError, quoted
from udml_core.base.files import parse_json, read_regular, version_of
from udml_core.base.paths import may_read
from udml_core.data.sources.listing import listed
from udml_core.data.sources.table_columns import are_image_files
from udml_core.data.sources.table_files import HALVES, LONGEST, ColumnFile, check_columns, numbered

FILE = "file_name"
"""The column of the images' paths, by the convention of Hugging Face."""
FIFTYONE, SAMPLES, CROISSANT = "labels.json", "samples.json", ("croissant.json", "metadata.json")
JSON_TABLES = (FIFTYONE, SAMPLES, *CROISSANT)
"""Lists besides metadata.jsonl. Other files can have these names, so a file of another kind has no columns."""
IMAGE_TYPES = ("sc:ImageObject", "https://schema.org/ImageObject")


class _Records:
    """What a list in JSON has, parsed.

    Attributes:
        names: Names of the columns.
        first: Number of the first row in messages; 0 if rows have no lines.
        is_damaged: Whether the file is not JSON, so that it has no columns.
    """

    def __init__(self, path: Path, records: Sequence[Mapping[str, Any]], names: Sequence[str], first: int = 0,
                 patterns: Sequence[str] = (), is_damaged: bool = False) -> None:
        """Take what was parsed.

        Args:
            path: The file.
            records: Values of each row by the name of the column.
            names: Names of the columns.
            first: Number of the first row in messages.
            patterns: Patterns of the images' paths, among which the names in the column `FILE` are found; none if it
                has the paths.
            is_damaged: Whether the file is not JSON.

        Raises:
            UserError: There are too many columns.
        """
        check_columns(path, names)
        self.names, self.first, self.is_damaged = list(names), first, is_damaged
        self._folder, self._records, self._patterns = path.parent, records, patterns

    def read(self, name: str) -> list[Any]:
        """Return the values of a column, in order; None where a row has none."""
        values = [record.get(name) for record in self._records]
        if not self._patterns or name != FILE:
            return values
        find = _finder(self._folder, self._patterns)  # the images can change while the parsed file stays in memory
        return [find(str(value)) for value in values]


@dataclass(frozen=True)
class JsonColumns:
    """The columns of a list in JSON, with what `ColumnFile` has; a process parses the file once for each version.

    Attributes:
        path: The file.
        names: Names of the columns.
        is_damaged: Whether the file is not JSON, so that it has no columns.
        first: Number of the first row in messages; 0 if rows have no lines.
    """

    path: Path
    names: list[str]
    is_damaged: bool
    first: int

    def read(self, name: str) -> list[Any]:
        """Read the values of a column, in order; None where a row has none."""
        return _parsed(self.path, version_of(self.path)).read(name)

    def place(self, row: int) -> str:
        """Return where a row is, as messages name it."""
        return f"line {row + self.first:,}" if self.first else numbered(row)


def open_columns(path: Path) -> ColumnFile | JsonColumns:
    """Open a table of images by its name.

    Raises:
        UserError: The file cannot be read.
        OSError: It does not exist.
    """
    if path.suffix == ".jsonl" or path.name in JSON_TABLES:
        return _opened(path)
    return ColumnFile(path)


def is_damaged(path: Path) -> bool:
    """Return whether a list in JSON, one of `JSON_TABLES`, is not JSON."""
    return _opened(path).is_damaged


def _opened(path: Path) -> JsonColumns:
    outcome = _outcome(path, version_of(path))
    if isinstance(outcome, UserError):
        raise outcome.with_traceback(None)
    return outcome


@lru_cache(maxsize=64)
def _outcome(path: Path, version: tuple[int, int, int]) -> JsonColumns | UserError:
    """Return the columns, or the error: a page asks several times, and a large list takes seconds to fail."""
    try:
        return bounded.call(path.name, _open, path, version)
    except UserError as error:
        return error


def _open(path: Path, version: tuple[int, int, int]) -> JsonColumns:
    records = _parsed(path, version)
    return JsonColumns(path, records.names, records.is_damaged, records.first)


@lru_cache(maxsize=4)
def _parsed(path: Path, _version: tuple[int, int, int]) -> _Records:
    if path.suffix == ".jsonl":
        return _lines(path)
    try:
        content = parse_json(read_regular(path, LONGEST))
    except (OSError, ValueError):
        return _Records(path, (), (), is_damaged=True)
    read = {FIFTYONE: _fiftyone, SAMPLES: _samples}.get(path.name, _croissant)
    columns = read(path, content) if isinstance(content, dict) else None
    return columns or _Records(path, (), ())


def _lines(path: Path) -> _Records:
    """Read an object in each line."""
    records = []
    for number, line in enumerate(read_regular(path, LONGEST).splitlines(), 1):
        try:
            record = parse_json(line)
        except ValueError as error:
            raise UserError(f"Line {number:,} of {path} must be an object in JSON, but could not be read: {error}. "
                            "Correct this line.") from error
        if not isinstance(record, dict):
            raise UserError(f"Line {number:,} of {path} must be an object in JSON, got {quoted(record)}. Correct this "
                            "line.")
        records.append(record)
    return _Records(path, records, list(dict.fromkeys(name for record in records for name in record)), 1)


def _fiftyone(path: Path, content: dict[str, Any]) -> _Records | None:
    """Read FiftyOne's {classes, labels: {name of an image without extension: number or name of its class}}."""
    labels, classes = content.get("labels"), content.get("classes")
    if not isinstance(labels, dict) or not isinstance(classes, list | None):
        return None
    records = [{FILE: name} | _target(target, classes) for name, target in labels.items()]
    has_confidence = any("confidence" in record for record in records)
    return _Records(path, records, [FILE, "label", *(["confidence"] if has_confidence else [])],
                       patterns=["data/*"])


def _samples(path: Path, content: dict[str, Any]) -> _Records | None:
    """Read the samples of a `FiftyOneDataset`: their paths, their classifications, and their tags as halves."""
    samples = content.get("samples")
    if not samples or not isinstance(samples, list) or not all(
            isinstance(_at(sample, "filepath"), str) for sample in samples):
        return None
    fields = list(dict.fromkeys(name for sample in samples for name, value in sample.items()
                                if _at(value, "_cls") == "Classification"))
    records = [{FILE: sample["filepath"]} | {name: _at(sample.get(name), "label") for name in fields}
               for sample in samples]
    if fields and "label" not in fields:  # the usual name of labels is that of the first field, ground_truth
        records = [{"label" if name == fields[0] else name: value for name, value in record.items()}
                   for record in records]
    for record, sample in zip(records, samples, strict=True):
        tags = sample.get("tags")
        record["split"] = next((tag for tag in tags if tag in HALVES), None) if isinstance(tags, list) else None
    named = [name for name in records[0] if name != "split" or all(record["split"] for record in records)]
    return _Records(path, records, named, patterns=["*"])


def _target(target: Any, classes: list[Any] | None) -> dict[str, Any]:
    if isinstance(target, dict):  # with confidences or attributes
        return {**_target(target.get("label"), classes), "confidence": target.get("confidence")}
    is_number = isinstance(target, int) and classes is not None and 0 <= target < len(classes)
    return {"label": classes[target] if is_number and classes is not None else target}


def _finder(folder: Path, patterns: Sequence[str]) -> Callable[[str], str]:
    """Return a function that finds an image below a folder by its path, or by its name if the entry has no folder.

    The path is that from the folder or from a subfolder of it, and an extension may be missing. Where several images
    have the name, none is meant. An image that is not found keeps its name, so that the message about it has the name.
    """
    by_form: list[dict[str, list[str]]] = [{} for _ in range(5)]
    for file, _ in listed(folder):
        if any(fnmatchcase(file, pattern) for pattern in patterns):
            path = PurePosixPath(file)
            inner = PurePosixPath(*path.parts[1:]) if len(path.parts) > 1 else path
            forms = (file, str(inner), str(inner.with_suffix("")), path.name, path.stem)
            for files, form in zip(by_form, forms, strict=True):
                files.setdefault(form, []).append(file)

    def find(name: str) -> str:
        matches = next((files[name] for files in by_form if name in files), [])
        return matches[0] if len(matches) == 1 else name

    return find


def _croissant(path: Path, content: dict[str, Any]) -> _Records | None:
    """Read the first record set whose fields are columns of a local table, one of which names images."""
    parts = {part.get("@id"): part for part in _nodes(content, "distribution")}
    for records in _nodes(content, "recordSet"):
        fields = _nodes(records, "field")
        table = next((table for field in fields if (table := parts.get(_id(field, "source", "fileObject")))), None)
        if table is None:
            continue
        source = ColumnFile(_local(path, str(table.get("contentUrl"))))
        named = _image_column(fields, parts) or _path_column(fields, source)
        if named is None:
            continue
        column, patterns = named
        columns = {str(field.get("name")): str(extract) for field in fields
                   if _id(field, "source", "fileObject") == table.get("@id")
                   and (extract := _at(field, "source", "extract", "column")) is not None and extract != column}
        read = {name: source.read(taken) for name, taken in columns.items()}
        rows = [{FILE: str(file)} | {name: values[row] for name, values in read.items()}
                for row, file in enumerate(source.read(column))]
        return _Records(path, rows, list(dict.fromkeys([FILE, *columns])), patterns=patterns)
    return None


def _image_column(fields: Sequence[dict[str, Any]], parts: Mapping[Any, dict[str, Any]]
                  ) -> tuple[str, list[str]] | None:
    """Return the column that names the images, and the patterns of their paths; None if there is none."""
    for field in fields:
        joined = _at(field, "references", "extract", "column") or _at(field, "references", "field")
        files = parts.get(_id(field, "source", "fileSet"))
        if joined is not None and files is not None:
            includes = files.get("includes", [])
            return str(joined), [includes] if isinstance(includes, str) else list(map(str, includes))
        column = _at(field, "source", "extract", "column")
        if column is not None and field.get("dataType") in IMAGE_TYPES:
            return str(column), ["*"]
    return None


def _path_column(fields: Sequence[dict[str, Any]], source: ColumnFile) -> tuple[str, list[str]] | None:
    """Return the first column of a table whose texts are paths of images, and a pattern of all; None if none is."""
    columns = (str(_at(field, "source", "extract", "column")) for field in fields)
    return next(((column, ["*"]) for column in columns
                 if column in source.names and are_image_files(source.read(column))), None)


def parquet_patterns(folder: Path) -> list[str]:
    """Return the paths of Parquet files, with wildcards, that the Croissant description of a folder names."""
    path = folder / CROISSANT[0]
    return _patterns(path, version_of(path)) if may_read(path) and path.is_file() else []


@lru_cache(maxsize=64)
def _patterns(path: Path, _version: tuple[int, int, int]) -> list[str]:
    try:
        return bounded.call(path.name, _parquet_patterns, path)
    except UserError:
        return []  # opening the description says what is wrong with it


def _parquet_patterns(path: Path) -> list[str]:
    try:
        content = parse_json(read_regular(path, LONGEST))
    except (OSError, ValueError):
        return []
    parts = _nodes(content, "distribution") if isinstance(content, dict) else []
    named = [part.get("includes") or part.get("contentUrl") for part in parts]
    patterns = [pattern for names in named for pattern in (names if isinstance(names, list) else [names])]
    return [pattern for pattern in patterns if isinstance(pattern, str) and pattern.endswith(".parquet")
            and "://" not in pattern and ".." not in PurePosixPath(pattern).parts
            and not PurePosixPath(pattern).is_absolute()]


def _local(path: Path, address: str) -> Path:
    """Return the path of a table below the folder of a description.

    Raises:
        UserError: It is somewhere else.
    """
    inner = PurePosixPath(address)
    table = path.parent / inner
    if "://" in address or ".." in inner.parts or inner.is_absolute() or not may_read(table) or not table.is_file():
        raise UserError(f"{path} names the table {quoted(address)}, which must be a file below its folder: nothing is "
                        "downloaded. Copy it there, and name it by its path from there.")
    return table


def _nodes(content: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the objects of a list in JSON-LD, where a single one needs no list."""
    nodes = content.get(key, content.get(f"cr:{key}", []))
    return [node for node in (nodes if isinstance(nodes, list) else [nodes]) if isinstance(node, dict)]


def _at(node: Any, *keys: str) -> Any:
    """Return what nested objects have; None if one is missing."""
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def _id(node: Any, *keys: str) -> Any:
    found = _at(node, *keys, "@id")
    return found if isinstance(found, str) else None
