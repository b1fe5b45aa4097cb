"""WebDataset shards: TAR archives whose members with the same name but another extension are one row."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, cast

from udml_core.base import bounded
from udml_core.base.errors import counted
from udml_core.base.files import parse_json
from udml_core.data.sources.archive import Budget
from udml_core.data.sources.listing import ENDINGS
from udml_core.data.sources.row_file import RowFile, StoredImage
from udml_core.data.sources.table_files import LONGEST_TEXT, check_column

LONGEST_SIDECAR = 2**20
"""Largest length of a file beside an image, in bytes."""
COMPRESSED = (".tar.gz", ".tgz")
"""Endings of shards that gzip compresses, whose images are copied."""
FIRST_MEMBERS = 32
"""Members of a TAR archive that tell whether it is a shard."""


class TarRows(RowFile):
    """A WebDataset shard."""

    TEXTS: ClassVar = ("cls", "txt", "id", "index")
    """Extensions whose content is a column."""

    @property
    def _groups(self) -> list[dict[str, tuple[str, int, int]]]:
        """The name, offset and length of each member, by extension, of the rows with an image."""
        return self._members[0]

    @cached_property
    def _members(self) -> tuple[list[dict[str, tuple[str, int, int]]], bool]:
        """The groups of members, and whether the archive has the mark of its end."""
        groups: dict[str, dict[str, tuple[str, int, int]]] = {}
        budget = Budget(self.path.name, self.path.stat().st_size)
        with _open_tar(self.path) as archive:
            while (member := archive.next()) is not None:
                if self._is_compressed:
                    budget.count_bytes(member.size)
                key, extension = _split_key(member.name)
                if member.isreg() and not member.issparse() and extension:
                    groups.setdefault(key, {})[extension] = member.name, member.offset_data, member.size
                archive.members.clear()  # type: ignore[attr-defined]  # it keeps every header otherwise
            has_end = _has_end(archive)
        return [group for group in groups.values() if _image_of(group)], has_end

    @property
    def flaw(self) -> str:
        return "" if self._members[1] else (
            f"has no mark of its end, so it may be cut short; {counted(self.count, 'image')} of it can be read")

    @property
    def _is_compressed(self) -> bool:
        return self.path.name.endswith(COMPRESSED)

    def _open(self) -> BinaryIO:
        """Open the archive without its compression."""
        return cast(BinaryIO, gzip.open(self.path)) if self._is_compressed else self.path.open("rb")

    @property
    def count(self) -> int:
        return len(self._groups)

    @cached_property
    def names(self) -> list[str]:
        texts = [name for name in self.TEXTS if any(name in group for group in self._groups)]
        return [*texts, *(name for name in dict.fromkeys(name for record in self._records for name in record)
                          if name not in texts)]

    @cached_property
    def _records(self) -> list[dict[str, Any]]:
        """The texts and numbers of each row's JSON member."""
        records = []
        for content in self._contents("json"):
            try:
                record = parse_json(content or b"{}")
            except ValueError:
                record = None
            records.append({name: value for name, value in record.items() if isinstance(value, str | int | float)
                            and len(str(value)) <= LONGEST_TEXT} if isinstance(record, dict) else {})
        return records

    def _contents(self, extension: str) -> Iterator[bytes | None]:
        with self._open() as file:
            for group in self._groups:
                _, offset, length = group.get(extension, ("", 0, 0))
                file.seek(offset)
                yield file.read(length) if 0 < length <= LONGEST_SIDECAR else None

    def read(self, name: str) -> list[Any]:
        if name not in self.TEXTS:
            return [record.get(name) for record in self._records]
        values = [None if content is None else content.decode("utf-8", "replace").strip()[:LONGEST_TEXT] or None
                  for content in self._contents(name)]
        check_column(self.path, name, sum(len(value) for value in values if value), 0)
        return values

    def images(self) -> Iterator[StoredImage]:
        with self._open() as file:
            for group in self._groups:
                name, offset, length = group[_image_of(group)]
                file.seek(offset)
                yield StoredImage(name, file.read(length), None if self._is_compressed else offset)


def _open_tar(path: Path) -> tarfile.TarFile:
    return tarfile.open(path, "r:gz" if path.name.endswith(COMPRESSED) else "r:")


def _has_end(archive: tarfile.TarFile) -> bool:
    """Return whether a block of zeros follows the last member that was read, as writers mark the end."""
    archive.fileobj.seek(archive.offset)
    return archive.fileobj.read(tarfile.BLOCKSIZE) == bytes(tarfile.BLOCKSIZE)


def _split_key(name: str) -> tuple[str, str]:
    """Split the path of a member before the first point of its file name, into the key and the extension."""
    folder, _, file = name.rpartition("/")
    stem, _, extension = file.partition(".")
    return f"{folder}/{stem}", extension.lower()


def _image_of(group: Mapping[str, Any]) -> str:
    """Return the extension of a row's image; empty if it has none."""
    return next((extension for extension in group if f".{extension.rpartition('.')[2]}" in ENDINGS), "")


def is_shard(path: Path, is_beside: bool = False) -> bool:
    """Return whether a TAR archive is a WebDataset shard, whose images have a class or a record beside them.

    Args:
        path: The archive.
        is_beside: Whether it is one of a folder's archives, which are not extracted: images without a class suffice,
            unless folders can be their classes.
    """
    return bounded.call(path.name, _is_shard, path, is_beside)


def _is_shard(path: Path, is_beside: bool) -> bool:
    names = []
    budget = Budget(path.name, path.stat().st_size)
    with _open_tar(path) as archive:
        for member, _ in zip(archive, range(FIRST_MEMBERS), strict=False):
            budget.count_bytes(member.size)
            names.append(member.name)
    keys: dict[str, set[str]] = {}
    for name in names:
        key, extension = _split_key(name)
        keys.setdefault(key, set()).add(extension)
    # Folders of an archive can be its classes, with records beside the photographs.
    return any(_image_of(dict.fromkeys(found)) and ("cls" in found or (
        (is_beside or "json" in found) and "/" not in key.strip("/."))) for key, found in keys.items())
