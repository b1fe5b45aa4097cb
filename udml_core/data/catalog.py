"""The data sets that can be chosen: those the project knows, those below UDML_DATA, and a person's own folders."""

from __future__ import annotations

import json
from pathlib import Path

from udml_core.data.dataset import Dataset, Report
from udml_core.data.places import cache_folder, data_folder
from udml_core.data.sources.digits import Digits
from udml_core.data.sources.fashion_mnist import FashionMini, FashionMNIST
from udml_core.data.sources.folder import LAYOUT, Folder
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
    path = Path(name).expanduser()
    if path.is_dir():
        return Folder(path)
    if path.exists():
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


def forget(folder: Path) -> None:
    """Take a folder off the list; its images stay where they are."""
    path = folder.expanduser().resolve()
    replace_text(cache_folder() / "folders.json", json.dumps([str(one) for one in remembered_folders() if one != path]))
