"""ZIP and TAR archives of images, extracted without trusting them.

Only regular files with the extensions of images, lists and tables are written, and only below the target folder. Links,
devices and hidden files are left out, and what would fill the disk is refused.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, TypeVar

from udml_core.base import bounded
from udml_core.base.errors import UserError, quoted
from udml_core.data.dataset import Report
from udml_core.data.sources.json_tables import JSON_TABLES
from udml_core.data.sources.listing import ENDINGS, is_hidden
from udml_core.data.sources.vector_files import ENDINGS as VECTORS

TABLES = frozenset(VECTORS)
SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
KEPT = ENDINGS | {"", ".txt", ".csv", ".parquet", ".mat", ".bin", ".meta", ".jsonl", ".arrow", *JSON_TABLES}
"""Extensions, and names of lists in JSON, that are extracted. The lists of some official layouts have no extension."""
MOST_FILES = 1_000_000
MOST_BYTES = 2**38
MOST_RATIO = 200
"""Largest size of the extracted files in relation to the archive; photographs stay below 2, lists below 20."""
FREE_BYTES = 2**26
"""Extracted size below which the ratio does not count."""
CHUNK = 2**20
REPORTED = 50
"""Files between two reports of progress, each of which travels between processes."""
Part = TypeVar("Part")
_OPENERS: dict[bytes, Callable[[BinaryIO], io.BufferedIOBase]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file), b"BZh": bz2.BZ2File, b"\xfd7zXZ\x00": lzma.LZMAFile}


def is_archive(path: Path) -> bool:
    """Return whether a path names an archive that can be extracted, by its extension."""
    return path.name.lower().endswith(SUFFIXES) and path.is_file()


def plain_stem(name: str) -> str:
    """Return the name of an archive without its extension."""
    return re.sub(rf"({'|'.join(map(re.escape, sorted(SUFFIXES, key=len, reverse=True)))})$", "", name,
                  flags=re.IGNORECASE)


def inner_path(path: str, endings: frozenset[str]) -> Path | None:
    """Return the path of a file below an import.

    Args:
        path: Any path, such as an upload or an archive names it; it may be absolute or have `..`.
        endings: The extensions, or names, of the files that are imported.

    Returns:
        A relative path without `..`; None for hidden files and other extensions.
    """
    parts = [part for part in re.split(r"[\\/]", path.replace(":", "_").replace("\0", "_"))
             if part not in ("..", ".", "")]
    if not parts or any(is_hidden(part) for part in parts) or not {Path(parts[-1]).suffix.lower(), parts[-1]} & endings:
        return None
    return Path(*parts)


def new_file(root: Path, inner: Path, folders: set[Path] | None = None) -> Path:
    """Return the path of a new file below a folder, which gets another name if its own is taken.

    Args:
        root: The folder.
        inner: The path of the file below it.
        folders: Folders that exist, to which the file's is added.
    """
    target = root / inner
    if folders is None or target.parent not in folders:
        target.parent.mkdir(parents=True, exist_ok=True)
    if folders is not None:
        folders.add(target.parent)
    while target.exists():
        target = target.with_stem(f"{target.stem}_")
    return target


def extract(archive: BinaryIO, name: str, root: Path, report: Report) -> list[str]:
    """Extract an archive into a new folder, by a bounded call.

    Args:
        archive: The open archive, which can be rewound.
        name: Its name in messages.
        root: The folder.
        report: Receives the finished share.

    Returns:
        The paths in the archive that can be tables of embeddings, by their extensions.

    Raises:
        UserError: It is no archive, is damaged or encrypted, or has too many or too large files.
        OSError: A file cannot be written.
    """
    with _as_file(archive) as file:
        return bounded.call(name, _extract, file, name, root, report=report)


def _extract(archive: BinaryIO | Path, name: str, root: Path, *, report: Report) -> list[str]:
    with _opened(archive) as opened:
        return _extract_members(opened, name, root, report)


def _extract_members(archive: BinaryIO, name: str, root: Path, report: Report) -> list[str]:
    size = archive.seek(0, io.SEEK_END)
    budget = Budget(name, size)
    first = _first_bytes(archive)
    members = _zip_members if first.startswith(b"PK") else _tar_members
    written: dict[str, Path] = {}
    tables: list[str] = []
    folders: set[Path] = set()
    for share, path, content in _guarded(members(archive, budget), name):
        if budget.files % REPORTED == 0:
            report(share, f"extracting {name}")
        budget.count_file()
        inner = inner_path(path, KEPT | TABLES)
        if inner is None:
            continue
        ending = inner.suffix.lower()
        if ending in TABLES:
            tables.append(path)
        if not {ending, inner.name} & KEPT:
            continue
        if path in written:  # a TAR to which a newer copy was appended
            written[path].unlink()
        try:
            target = written[path] = new_file(root, inner, folders)
        except (FileExistsError, NotADirectoryError) as error:
            raise UserError(f"{name} has a file and a folder of the same name on the way to {quoted(path)}. Rename one "
                            "of them, and pack the archive again.") from error
        _write(content, target, budget)
    report(1.0, f"extracting {name}")
    return tables


def image_paths(archive: BinaryIO, name: str) -> list[str]:
    """Return the paths of the images in an archive, below the folder that contains all its files, by a bounded call.

    Args:
        archive: The open archive, which can be rewound.
        name: Its name in messages.

    Returns:
        Paths with forward slashes; none if the archive has lists or tables, which can name the classes.

    Raises:
        UserError: It is no archive, or is damaged, encrypted or too large.
    """
    with _as_file(archive) as file:
        return bounded.call(name, _image_paths, file, name)


def _image_paths(archive: BinaryIO | Path, name: str) -> list[str]:
    with _opened(archive) as opened:
        budget = Budget(name, opened.seek(0, io.SEEK_END))
        members = _zip_members if _first_bytes(opened).startswith(b"PK") else _tar_members
        inner = [found for _, path, _ in _guarded(members(opened, budget), name) if (found := inner_path(path, KEPT))]
        opened.seek(0)
    if not inner or any(path.suffix.lower() not in ENDINGS for path in inner):
        return []
    depth = len(Path(os.path.commonpath([path.parent for path in inner])).parts)
    return ["/".join(path.parts[depth:]) for path in inner]


@contextmanager
def _as_file(archive: BinaryIO) -> Iterator[BinaryIO | Path]:
    """Yield a file that a bounded call can open: an upload is written aside; a plain call reads the archive itself."""
    if not bounded.is_on():
        yield archive
        return
    if isinstance(archive, io.BufferedReader):
        yield Path(os.path.abspath(archive.name))
        return
    archive.seek(0)
    with tempfile.NamedTemporaryFile(prefix="udml-archive-") as file:
        shutil.copyfileobj(archive, file, CHUNK)
        file.flush()
        archive.seek(0)
        yield Path(file.name)


@contextmanager
def _opened(archive: BinaryIO | Path) -> Iterator[BinaryIO]:
    """Yield an open archive; only a file that is opened here is closed."""
    if isinstance(archive, Path):
        with archive.open("rb") as file:
            yield file
    else:
        yield archive


def _guarded(parts: Iterator[Part], name: str) -> Iterator[Part]:
    """Yield what is read from an archive, whose damage can raise any exception."""
    try:
        yield from parts
    except UserError:
        raise
    except Exception as error:
        raise _damaged(name, error) from error


class Budget:
    """What an archive may still fill.

    Attributes:
        name: Name of the archive in messages.
        size: Its length in bytes.
    """

    def __init__(self, name: str, size: int) -> None:
        self.name, self.size = name, size
        self.files = self.bytes = 0

    def count_file(self) -> None:
        """Count a file.

        Raises:
            UserError: There are too many.
        """
        self.files += 1
        if self.files > MOST_FILES:
            raise UserError(f"{self.name} has more than {MOST_FILES:,} files. Extract it yourself, and open the "
                            "folder.")

    def count_bytes(self, count: int) -> None:
        """Count extracted bytes.

        Raises:
            UserError: There are too many, or many more than the archive has.
        """
        self.bytes += count
        most = min(MOST_BYTES, max(FREE_BYTES, MOST_RATIO * self.size))
        if self.bytes > most:
            raise UserError(f"{self.name} has {self.size:,} bytes and extracts to more than {most:,}, so it was "
                            "refused. Extract it yourself if you trust it, and open the folder.")


def _write(content: IO[bytes], target: Path, budget: Budget) -> None:
    with target.open("xb") as file:
        for chunk in _guarded(iter(lambda: content.read(CHUNK), b""), budget.name):
            budget.count_bytes(len(chunk))
            file.write(chunk)


def _zip_members(archive: BinaryIO, budget: Budget) -> Iterator[tuple[float, str, IO[bytes]]]:
    """Yield the finished share, the path and the content of each regular file."""
    with zipfile.ZipFile(archive) as opened:
        members = opened.infolist()
        for number, member in enumerate(members):
            kind = stat.S_IFMT(member.external_attr >> 16)
            if member.is_dir() or kind not in (0, stat.S_IFREG):
                continue
            if member.flag_bits & 1:
                raise UserError(f"{budget.name} is encrypted. Extract it yourself, and open the folder.")
            with opened.open(member) as content:
                yield number / len(members), member.filename, content


def _tar_members(archive: BinaryIO, budget: Budget) -> Iterator[tuple[float, str, IO[bytes]]]:
    """Yield the finished share, the path and the content of each regular file."""
    first = _first_bytes(archive)
    opener = next((opener for magic, opener in _OPENERS.items() if first.startswith(magic)), None)
    stream = _Counted(opener(archive) if opener else archive, budget)
    with tarfile.open(fileobj=stream, mode="r|") as opened:  # type: ignore[call-overload]
        for member in opened:
            if member.isreg() and (content := opened.extractfile(member)) is not None:
                yield archive.tell() / max(1, budget.size), member.name, content
        # Behind the end there are only zeros. Other bytes are files behind a damaged header, where the reader takes the
        # archive for complete.
        while chunk := opened.fileobj.read(CHUNK):
            if chunk.strip(b"\0"):
                raise tarfile.ReadError("a header in it is damaged")
    while stream.read(CHUNK):  # the checksum of a compressed archive is behind the last file
        pass
    if stream.last.strip(b"\0"):
        raise tarfile.ReadError("its end is missing")


class _Counted:
    """A stream that counts what is decompressed, also of members that are left out."""

    def __init__(self, stream: io.BufferedIOBase | BinaryIO, budget: Budget) -> None:
        self.stream, self.skimmed = stream, Budget(budget.name, budget.size)
        self.last = b""

    def read(self, size: int = -1) -> bytes:
        content = self.stream.read(size)
        self.last = (self.last + content)[-tarfile.BLOCKSIZE:]
        self.skimmed.count_bytes(len(content))
        return content


def _first_bytes(archive: BinaryIO) -> bytes:
    """Return the bytes that tell the format, and rewind the archive."""
    archive.seek(0)
    first = archive.read(8)
    archive.seek(0)
    return first


def _damaged(name: str, error: Exception) -> UserError:
    return UserError(f"{name} could not be extracted: {str(error) or type(error).__name__}. Expected: an archive with "
                     f"one of the extensions {', '.join(SUFFIXES)}. Download or pack it again.")
