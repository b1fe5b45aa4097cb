"""The data sets: built-in sets, folders below UDML_DATA, and opened folders."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock

from udml_core.base.errors import UserError, quoted
from udml_core.base.files import replace_text
from udml_core.base.paths import (
    data_folder,
    existing_path,
    given_folder,
    imports_folder,
    is_exposed,
    may_read,
    readable_roots,
)
from udml_core.data.dataset import Dataset, Report
from udml_core.data.sources.archive import extract, image_paths, inner_path, is_archive, new_file, plain_stem
from udml_core.data.sources.cifar10 import Cifar10
from udml_core.data.sources.digits import Digits
from udml_core.data.sources.embeddings import LAYOUT as TABLE_LAYOUT
from udml_core.data.sources.embeddings import EmbeddingTable, table_of, write_table
from udml_core.data.sources.emoji import Emoji
from udml_core.data.sources.fashion_mnist import FashionMini
from udml_core.data.sources.idx import MNIST, FashionMNIST, MNISTTest
from udml_core.data.sources.image_folder import LAYOUT, Folder
from udml_core.data.sources.levels import ClassLevel, check_level, class_levels
from udml_core.data.sources.listing import ENDINGS
from udml_core.data.sources.located import Located
from udml_core.data.sources.metadata import is_table_file
from udml_core.data.sources.official.layout import OfficialLayout
from udml_core.data.sources.opened import LIST, opened_names
from udml_core.data.sources.opening import open_folder, plain_name
from udml_core.data.sources.row_formats import SHARDS, holds_images
from udml_core.data.sources.source import Source
from udml_core.data.sources.table_columns import Choices
from udml_core.data.sources.vector_files import ChoiceError

LONGEST_NAME = 60
"""Longest name of an import, in letters: a file system allows 255 bytes, and a letter takes up to four."""
BIRDS = "Photographs of 100 bird species, 227×227 pixels: natural and fine-grained."


class Birds(Folder):
    """A subset of CUB-200-2011, in birds100/CLASS/*.jpg below UDML_DATA.

    The data are by C. Wah et al., for research use.
    """

    def __init__(self) -> None:
        base = data_folder()
        super().__init__((base or Path("UDML_DATA")) / "birds100", "birds100", "Birds, 100 species")
        self.summary = BIRDS

    def missing(self) -> str | None:
        if data_folder() is None:
            return ("The data set birds100 is read from birds100/CLASS/*.jpg below the folder UDML_DATA, which is not "
                    "set. Set UDML_DATA to the folder of your data sets.")
        return super().missing()


def sources() -> list[Source]:
    """List every known data set, the embedded default first.

    The files of a listed data set may be missing.
    """
    known: list[Source] = [FashionMini(), Digits(), Emoji(), FashionMNIST(), MNIST(), MNISTTest(), Birds(),
                           Cifar10()]
    names = {source.name for source in known}
    base = data_folder()
    if base is not None and os.path.isdir(base):
        for path in sorted(base.iterdir()):
            if os.path.isdir(path) and path.name not in names and not path.name.startswith("."):
                source = open_folder(path, name=path.name)
                # An incomplete official layout is listed, because its message says which files are missing.
                if source.missing() is None or isinstance(source, OfficialLayout):
                    known.append(source)
    for name in remembered_folders():
        with suppress(UserError):  # the folder no longer has the layout to which the option belongs
            known.append(folder_of(name))
    return known + remembered_tables()


def folder_of(name: str) -> Located:
    """Return the data set in the folder that a path names, such as photos or photos#level=2."""
    path = existing_path(name)
    if path is not None and _is_located(path):
        return open_folder(path)
    plain = plain_name(name)
    return open_folder(Path(plain), name[len(plain):])


def _is_located(path: Path) -> bool:
    """Return whether a path is a folder, a file whose rows hold images, or a table that can name images."""
    return os.path.isdir(path) or holds_images(path) or is_table_file(path)


def find(name: str) -> Source:
    """Find a data set by its name, or a folder of images by its path.

    `#level=2` after the name or path chooses the level of subfolders that are the classes; see `Folder`.
    `#label=COLUMN` chooses the labels of a table; see `MetadataFolder`. Official layouts have other options, such as
    `#crop=box`; see `OfficialLayout`.

    Raises:
        UserError: There is no data set or folder of that name.
    """
    if not name.strip():
        raise UserError("The data set must be a name or a folder of images, got nothing.")
    for source in sources():
        if source.name == name:
            return source
    path, table = existing_path(name), table_of(name)
    if table is not None:
        return table
    if path is not None and _is_located(path):
        return open_folder(path)
    plain = plain_name(name)
    if plain != name:
        source = find(plain)
        if isinstance(source, Located):
            title = None if isinstance(source, OfficialLayout) else source.title
            return open_folder(source.origin, name[len(plain):], source.name, title)
        raise UserError(f"Only a folder of images has class levels and options, got {quoted(name)}. Use "
                        f"{quoted(plain)}.")
    if path is not None:
        raise UserError(f"A data set must be a folder of images, a ZIP or TAR archive, a file with images in its rows, "
                        f"or a table of embeddings, but {path} is another file. Expected: {LAYOUT}; or {TABLE_LAYOUT}.")
    limits = f" This server reads only folders in {', '.join(readable_roots())}." if is_exposed() else ""
    raise UserError(f"There is no data set {quoted(name)} and no folder of that name.{limits} "
                    f"Known: {', '.join(source.name for source in sources())}. Expected of a folder: {LAYOUT}.")


def load(name: str, report: Report = lambda _share, _step: None) -> Dataset:
    """Load a data set by name, folder or archive; an archive is imported first.

    Raises:
        UserError: The data set is unknown, its files are missing, or it has no readable images.
    """
    return find(extracted(name, report)).load(report)


def load_version(name: str, fingerprint: str, report: Report = lambda _share, _step: None) -> Dataset:
    """Load a data set as it was when it had a fingerprint, or its present state if that is lost.

    Args:
        name: Name, folder or archive; see `load`.
        fingerprint: The fingerprint.
        report: Receives the progress.

    Raises:
        UserError: See `load`.
    """
    source = find(extracted(name, report))
    return version_of(source, source.load(report), fingerprint)


def version_of(source: Source, now: Dataset, fingerprint: str) -> Dataset:
    """Return a loaded data set as it was when it had a fingerprint, or its present state if that is lost."""
    earlier = None if now.fingerprint == fingerprint else source.version(fingerprint, now)
    return now if earlier is None else earlier


def remembered_folders() -> list[str]:
    """Return the names of the remembered folders that exist and may be read."""
    # Path.is_dir raises on a disconnected disk
    return [name for name in opened_names()
            if any(_is_located(Path(path)) and may_read(Path(path)) for path in (name, plain_name(name)))]


def remembered_tables() -> list[EmbeddingTable]:
    """Return the remembered tables of embeddings that exist and may be read."""
    with suppress(UserError):  # someone edited the list
        return [table for name in opened_names() if (table := table_of(name)) is not None]
    return []


def remember_table(table: EmbeddingTable) -> None:
    """Add a table of embeddings to the list of data sets; it is listed once, with the columns chosen last."""
    _update_folders(lambda known: [*(name for name in known if not _is_name_of(name, table.path)), table.name])


def remember(folder: Path | str) -> Located:
    """Add a folder of images to the list of data sets.

    A folder is listed once, with the class level that was chosen last.

    Args:
        folder: The folder, with or without a class level or another option; see `find`.

    Raises:
        UserError: The folder has no such class level.
    """
    source = folder_of(str(folder))
    if isinstance(source, Folder) and source.level is not None:
        check_level(source.level, source.levels(), source.path)
    _update_folders(lambda known: known if source.name in known else [
        *(name for name in known if not _is_name_of(name, Path(plain_name(source.name)))), source.name])
    return source


def is_path(name: str) -> bool:
    """Return whether a name is the whole path of a file or folder that exists and may be read, with any option."""
    return os.path.isabs(name) and any(existing_path(path) is not None for path in (name, plain_name(name)))


def import_files(name: str, files: Iterable[tuple[str, bytes]]) -> Path:
    """Store uploaded images as a folder and remember it as a data set.

    Args:
        name: Name of the data set.
        files: Relative paths and contents. Folders that contain all files are removed from the paths, so that the
            remaining first-level subfolders are the classes, as in a folder opened by its path.

    Returns:
        The new folder.

    Raises:
        UserError: The name is empty, too long or taken, no file is an image, or the images cannot be written.
    """
    def write(root: Path) -> None:
        for path, content in files:
            inner = inner_path(path, ENDINGS)
            if inner is not None:
                new_file(root, inner).write_bytes(content)
        if not root.exists():
            raise UserError(f"None of the files is an image. Expected: {LAYOUT}.")

    return _import(name, write)


def free_name(name: str) -> str:
    """Return a name that no imported data set has: the name itself, or the name with a number.

    Raises:
        UserError: The name is empty or too long.
    """
    plain = _checked_name(name)
    names = (plain if number == 1 else f"{plain[:LONGEST_NAME - 5]} {number}" for number in count(1))
    return next(free for free in names if not (imports_folder() / free).exists())


def import_archive(name: str, archive: BinaryIO, file: str, report: Report = lambda _share, _step: None) -> Path:
    """Extract a ZIP or TAR archive as a folder and remember it as a data set.

    Args:
        name: Name of the data set.
        archive: The open archive.
        file: Its name in messages.
        report: Receives the finished share.

    Returns:
        The new folder.

    Raises:
        UserError: The name is empty, too long or taken, or the archive is damaged, too large, or has no data set.
    """
    def write(root: Path) -> None:
        root.mkdir(parents=True)
        if _is_shard(archive, file, root):
            return
        tables = extract(archive, file, root, report)
        folder = _common_folder(root)
        source = open_folder(folder)
        problem = source.missing()
        if problem is not None:
            if tables and isinstance(source, Folder):
                more = f" and {len(tables) - 1:,} more" if len(tables) > 1 else ""
                raise UserError(f"The archive {file} has no images, but {quoted(tables[0])}{more}, which can be "
                                "a table of embeddings. Extract the archive, and open the table.")
            raise UserError(problem.replace(str(folder), file))

    return _import(name, write)


def _is_shard(archive: BinaryIO, file: str, root: Path) -> bool:
    """Copy an uploaded TAR archive into a folder if it is a WebDataset shard, which is read as it is."""
    ending = next((ending for ending in SHARDS if file.lower().endswith(ending)), "")
    if not ending:
        return False
    shard = root / f"images{ending}"
    archive.seek(0)
    with shard.open("xb") as target:
        shutil.copyfileobj(archive, target)
    if not holds_images(shard):
        shard.unlink()
        return False
    return True


def archive_levels(path: str) -> list[ClassLevel] | None:
    """Return the levels of an archive that may name the classes; None if a path leads to no readable archive.

    Raises:
        UserError: The archive is damaged, encrypted or too large.
        OSError: It cannot be read.
    """
    archive = existing_path(path)
    if archive is None or not is_archive(archive) or holds_images(archive):
        return None
    with archive.open("rb") as file:
        return class_levels(image_paths(file, archive.name))


def extracted(name: str, report: Report = lambda _share, _step: None) -> str:
    """Import an archive that a name leads to, unless it was imported before.

    Args:
        name: Name of a data set, or the path of a folder or an archive, with or without a class level or an option.
        report: Receives the finished share.

    Returns:
        The path of the imported folder, with the same class level or option; any other name as it is.

    Raises:
        UserError: The archive cannot be imported.
    """
    plain = name if existing_path(name) else plain_name(name)
    path = existing_path(plain)
    if path is None or not is_archive(path) or holds_images(path):
        return name
    imported = f"{plain_stem(path.name)[:LONGEST_NAME - 9]}-{_identity(path)}"
    folder = imports_folder() / _checked_name(imported)
    if not folder.exists():
        try:
            with path.open("rb") as archive:
                import_archive(imported, archive, path.name, report)
        except OSError as error:
            raise UserError(f"The archive {path} could not be read: {error}.") from error
        except UserError:
            if not folder.exists():  # another process may have imported it meanwhile
                raise
    return f"{folder}{name[len(plain):]}"


def _identity(path: Path) -> str:
    """Return 8 letters that change with an archive.

    They depend on its length, its time, and its first and last bytes, where ZIP files have their checksums.
    """
    try:
        status, state = path.stat(), hashlib.sha256()
        with path.open("rb") as file:
            state.update(f"{status.st_size}|{status.st_mtime_ns}".encode() + file.read(2**20))
            file.seek(max(0, status.st_size - 2**20))
            state.update(file.read(2**20))
    except OSError as error:
        raise UserError(f"The archive {path} could not be read: {error}.") from error
    return state.hexdigest()[:8]


def _checked_name(name: str) -> str:
    """Return the name of the folder of an import."""
    plain = re.sub(r"[^\w .-]", "", name).strip(" .")
    if not plain or len(plain) > LONGEST_NAME:
        raise UserError(f"The data set needs a name of 1 to {LONGEST_NAME} letters or digits, got '{name[:80]}'.")
    return plain


def _import(name: str, write: Callable[[Path], None], keep: Callable[[Path], object] | None = None) -> Path:
    """Write a folder aside, remember it by `remember` or `keep`, and publish it; a failure leaves nothing."""
    plain = _checked_name(name)
    folder = imports_folder() / plain
    aside = folder.with_name(f".{plain}.part")
    try:
        imports_folder().mkdir(parents=True, exist_ok=True)
        locks = given_folder() / "import-locks"
        locks.mkdir(exist_ok=True)
        with FileLock(locks / f"{plain}.lock"):  # two processes may import the same archive at once
            if folder.exists():
                raise UserError(f"An imported data set '{plain}' exists already. Choose another name.")
            shutil.rmtree(aside, ignore_errors=True)
            try:
                write(aside)
                # Before the rename: if the process dies between the two, a missing folder is not listed.
                (keep or remember)(folder)
                _common_folder(aside).rename(folder)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise UserError(f"The files could not be stored in {folder}: {error}. Use shorter file names, free some "
                        "space, or set UDML_CACHE to another folder.") from error
    return folder


def import_table(name: str, files: Sequence[tuple[str, bytes]], choices: Choices = Choices()) -> EmbeddingTable:  # noqa: B008
    """Store an uploaded table of embeddings and remember it as a data set, if it can be loaded.

    Args:
        name: Name of the data set.
        files: Names and contents: the vectors, and a CSV or Parquet file with the columns of the rows, if any.
        choices: The columns that the user chose.

    Raises:
        UserError: The name is empty, too long or taken, or the files are no table or cannot be written.
    """
    written: list[str] = []

    def write(root: Path) -> None:
        root.mkdir(parents=True)
        path = write_table(root, _checked_name(name), files)
        try:
            EmbeddingTable(path, choices).load(lambda _share, _step: None)
        except UserError as error:
            problem = f"{error.problem} {error.change}" if isinstance(error, ChoiceError) else str(error)
            raise UserError(_as_uploaded(problem, path, files)) from error
        written.append(path.name)

    folder = _import(name, write, lambda folder: remember_table(
        EmbeddingTable(folder / written[0], choices)))
    return EmbeddingTable(folder / written[0], choices)


def _as_uploaded(problem: str, path: Path, files: Sequence[tuple[str, bytes]]) -> str:
    """Return a message about the files of a table with the names that they had before the upload."""
    for name, _ in files:
        stored = path.with_suffix(Path(name).suffix.lower())
        problem = problem.replace(str(stored), Path(name).name).replace(stored.name, Path(name).name)
    return problem


def _common_folder(root: Path) -> Path:
    """Return the deepest folder that contains all files."""
    while len(entries := list(root.iterdir())) == 1 and entries[0].is_dir():
        (root,) = entries
    return root


def forget(folder: Path) -> None:
    """Remove a folder from the list of data sets and keep its images."""
    path = folder.expanduser().resolve()
    _update_folders(lambda known: [name for name in known if not _is_name_of(name, path)])


def _is_name_of(name: str, path: Path) -> bool:
    """Return whether a name is a path's, with or without a class level, an option or chosen columns."""
    table = table_of(name)
    return str(path) in (name, plain_name(name)) or (table is not None and table.path == path)


def _update_folders(change: Callable[[list[str]], list[str]]) -> None:
    """Change the list under a lock, as several processes may change it at once."""
    path = given_folder() / LIST
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        replace_text(path, json.dumps(change(opened_names())))
