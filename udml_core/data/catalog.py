"""The data sets that can be chosen: those the project knows, those below UDML_DATA, and a person's own folders."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from filelock import FileLock

from udml_core.data.dataset import Dataset, Report
from udml_core.data.sources.cifar10 import Cifar10
from udml_core.data.sources.digits import Digits
from udml_core.data.sources.fashion_mnist import FashionMini
from udml_core.data.sources.folder import LAYOUT, Folder
from udml_core.data.sources.idx import MNIST, FashionMNIST, MNISTTest
from udml_core.data.sources.listing import ENDINGS, is_hidden
from udml_core.data.sources.source import Source
from udml_core.errors import UserError
from udml_core.files import replace_text
from udml_core.paths import data_folder, existing_path, given_folder

LONGEST_NAME = 60
"""Letters of an import's name; a file system allows 255 bytes, and a letter takes up to four."""
BIRDS = "100 species of birds, photographs of 227×227 pixels: fine-grained, real, hard."


class Birds(Folder):
    """A subset of CUB-200-2011 (C. Wah et al., research use), below UDML_DATA as birds100/CLASS/*.jpg."""

    def __init__(self) -> None:
        base = data_folder()
        super().__init__((base or Path("UDML_DATA")) / "birds100", "birds100", "Birds, 100 species")
        self.summary = BIRDS

    def missing(self) -> str | None:
        if data_folder() is None:
            return "birds100 is looked for as birds100/CLASS/*.jpg below the folder UDML_DATA, which is not set."
        return super().missing()


def sources() -> list[Source]:
    """Every known data set, the embedded default first, whether or not it is there."""
    known: list[Source] = [FashionMini(), Digits(), FashionMNIST(), MNIST(), MNISTTest(), Birds(), Cifar10()]
    names = {source.name for source in known}
    base = data_folder()
    if base is not None and os.path.isdir(base):
        for path in sorted(base.iterdir()):
            if os.path.isdir(path) and path.name not in names and not path.name.startswith("."):
                source = Folder(path, path.name)
                if source.missing() is None:
                    known.append(source)
    return known + [Folder(path) for path in remembered_folders()]


def find(name: str) -> Source:
    """A data set by its name, or the folder of images at that path.

    Raises:
        UserError: neither exists.
    """
    if not name.strip():
        raise UserError("A data set's name or a folder of images is needed, got nothing.")
    for source in sources():
        if source.name == name:
            return source
    path = existing_path(name)
    if path is not None and os.path.isdir(path):
        return Folder(path)
    if path is not None:
        raise UserError(f"A data set must be a folder of images, and {path} is a file. Expected: {LAYOUT}.")
    raise UserError(f"There is no data set '{name}' and no folder of that name. "
                    f"Known: {', '.join(source.name for source in sources())}; or a folder: {LAYOUT}.")


def load(name: str, report: Report = lambda _share, _what: None) -> Dataset:
    """Load a data set by name or folder.

    Raises:
        UserError: it is unknown, not there, or has no readable images.
    """
    return find(name).load(report)


def remembered_folders() -> list[Path]:
    """Folders that `remember` was told of and that still exist."""
    return [path for path in _told_of() if os.path.isdir(path)]  # Path.is_dir raises on a disk that went away


def remember(folder: Path) -> None:
    """List a folder of images among the data sets from now on."""
    path = folder.expanduser().resolve()
    _keep(lambda known: known if path in known else [*known, path])


def import_files(name: str, files: Iterable[tuple[str, bytes]]) -> Path:
    """Keep images that came one by one as a folder among what was given, and remember it.

    Args:
        name: what to call the folder.
        files: relative paths and contents. What lies above all of them is cut off, so that the first sub-folders left
            are the classes, as where the folder is given by its path.

    Raises:
        UserError: the name is empty, too long or taken, no file is an image, or they cannot be written.
    """
    plain = re.sub(r"[^\w .-]", "", name).strip(" .")
    if not plain or len(plain) > LONGEST_NAME:
        raise UserError(f"The data set needs a name of 1 to {LONGEST_NAME} letters or digits, got '{name[:80]}'.")
    folder = given_folder() / "imports" / plain
    if folder.exists():
        raise UserError(f"There is an imported data set '{plain}' already. Choose another name.")
    aside = folder.with_name(f".{plain}.part")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        if not sum(_write_image(aside, path, content) for path, content in files):
            raise UserError(f"None of the files is an image. Expected: {LAYOUT}.")
        remember(folder)  # first: one that is not there is not listed, and one that is not listed cannot be found
        _below_all(aside).rename(folder)
    except OSError as error:
        raise UserError(f"The images could not be kept in {folder}: {error}. Give them shorter names, or free some "
                        "space, or name another folder with UDML_CACHE.") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return folder


def _write_image(root: Path, path: str, content: bytes) -> bool:
    """Write what came as an image below a folder, under another name where its own is taken."""
    parts = [part for part in re.split(r"[\\/]", path.replace(":", "_")) if part not in ("..", ".", "")]
    if not parts or any(is_hidden(part) for part in parts) or Path(parts[-1]).suffix.lower() not in ENDINGS:
        return False
    target = root.joinpath(*parts)
    while target.exists():
        target = target.with_stem(f"{target.stem}_")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return True


def _below_all(root: Path) -> Path:
    """The deepest folder that holds all files."""
    while len(entries := list(root.iterdir())) == 1 and entries[0].is_dir():
        (root,) = entries
    return root


def forget(folder: Path) -> None:
    """Take a folder off the list; its images stay where they are."""
    path = folder.expanduser().resolve()
    _keep(lambda known: [one for one in known if one != path])


def _told_of() -> list[Path]:
    """Also those that do not exist now: a disk that is unplugged comes back."""
    try:
        return [Path(text) for text in json.loads((given_folder() / "folders.json").read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        return []


def _keep(change: Callable[[list[Path]], list[Path]]) -> None:
    """Change the list; two programs that change it wait for each other."""
    path = given_folder() / "folders.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        replace_text(path, json.dumps([str(one) for one in change(_told_of())]))
