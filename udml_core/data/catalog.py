"""The data sets that can be chosen: those the project knows, those below UDML_DATA, and a person's own folders."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from udml_core.data.dataset import Dataset, Report
from udml_core.data.places import cache_folder, data_folder, existing_path
from udml_core.data.sources.digits import Digits
from udml_core.data.sources.fashion_mnist import FashionMini, FashionMNIST
from udml_core.data.sources.folder import ENDINGS, LAYOUT, Folder
from udml_core.data.sources.source import Source
from udml_core.data.storage import replace_text
from udml_core.errors import UserError

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
    known: list[Source] = [FashionMini(), Digits(), FashionMNIST(), Birds()]
    names = {source.name for source in known}
    base = data_folder()
    if base is not None and base.is_dir():
        for path in sorted(base.iterdir()):
            if path.is_dir() and path.name not in names and not path.name.startswith("."):
                source = Folder(path, path.name)
                if source.images:
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
    if path is not None and path.is_dir():
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
    try:
        paths = [Path(text) for text in json.loads((cache_folder() / "folders.json").read_text())]
    except (OSError, ValueError, TypeError):
        return []
    return [path for path in paths if path.is_dir()]


def remember(folder: Path) -> None:
    """List a folder of images among the data sets from now on."""
    path = folder.expanduser().resolve()
    known = remembered_folders()
    if path not in known:
        replace_text(cache_folder() / "folders.json", json.dumps([str(one) for one in [*known, path]]))


def import_files(name: str, files: Iterable[tuple[str, bytes]]) -> Path:
    """Keep images that came one by one as a folder below the cache, and remember it.

    Args:
        name: what to call the folder.
        files: relative paths, of which at most the last sub-folder is kept as the class, and contents.

    Raises:
        UserError: the name is empty, taken, or no file is an image.
    """
    plain = re.sub(r"[^\w .-]", "", name).strip(" .")
    if not plain:
        raise UserError(f"The data set needs a name of letters or digits, got '{name}'.")
    folder = cache_folder() / "imports" / plain
    if folder.exists():
        raise UserError(f"There is an imported data set '{plain}' already. Choose another name.")
    aside = folder.with_name(f".{plain}.part")
    shutil.rmtree(aside, ignore_errors=True)
    kept = 0
    for path, content in files:
        parts = [part for part in re.split(r"[\\/]", path.replace(":", "_")) if part not in ("..", ".", "")]
        if parts and Path(parts[-1]).suffix.lower() in ENDINGS:
            target = aside.joinpath(*parts[-2:])
            while target.exists():
                target = target.with_stem(f"{target.stem}_")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            kept += 1
    if not kept:
        raise UserError(f"None of the files is an image. Expected: {LAYOUT}.")
    aside.rename(folder)
    remember(folder)
    return folder


def forget(folder: Path) -> None:
    """Take a folder off the list; its images stay where they are."""
    path = folder.expanduser().resolve()
    replace_text(cache_folder() / "folders.json", json.dumps([str(one) for one in remembered_folders() if one != path]))
