"""Folders outside of runs, and the folders that an exposed server reads.

A server is exposed if other people can reach it. A path that a browser user names, by typing it or in a link, then
leads only into `readable_roots`; `may_read` alone decides. The command line is not limited.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from pathlib import Path

import platformdirs

_PACKAGE = Path(__file__).resolve().parents[1]
PACKAGE_ROOT = _PACKAGE.parent
"""The folder from which the package is imported."""
ASSETS = _PACKAGE / "assets" if (_PACKAGE / "assets").is_dir() else _PACKAGE.parent / "assets"
"""Embedded data, records and browser code: inside the installed package, or beside it in a checkout."""
APP = PACKAGE_ROOT / "udml_explorer" if ASSETS.parent == _PACKAGE else PACKAGE_ROOT
"""The folder of serve.py, app.py and the pages: a folder of its own beside the installed package, or the checkout."""
EXAMPLES = ASSETS / "examples"
"""Finished runs that come with the app. Nothing is written to them."""


EXPOSED = "UDML_EXPOSED"


def python_path() -> str:
    """Return PYTHONPATH for another process that must import this package."""
    return os.pathsep.join([str(PACKAGE_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


def prefer_package(name: str, root: Path) -> None:
    """Make imports of a package find the one in a folder, whatever else the environment holds under this name.

    Args:
        name: The name.
        root: The folder that contains the package.
    """
    if sys.path[0] != str(root):
        sys.path[:] = [str(root), *(path for path in sys.path if path != str(root))]
    folders = [Path(folder).resolve() for folder in getattr(sys.modules.get(name), "__path__", ())]
    if (root / name).resolve() not in folders:  # another package was imported, or none
        for module in [module for module in sys.modules if module == name or module.startswith(f"{name}.")]:
            del sys.modules[module]


def cache_folder() -> Path:
    """Return the folder of features, prepared images and folder scans.

    It is UDML_CACHE, or the user's cache folder.
    """
    return Path(os.environ.get("UDML_CACHE") or platformdirs.user_cache_dir("udml-explorer", appauthor=False))


def given_folder() -> Path:
    """Return the folder of labels, pairs, imported images and the list of folders.

    It is UDML_CACHE, or the user's data folder. Users gave these data, so nothing in it can be recomputed.
    """
    return Path(os.environ.get("UDML_CACHE") or platformdirs.user_data_dir("udml-explorer", appauthor=False))


def dataset_cache(fingerprint: str) -> Path:
    """Return the folder of everything computed from a data set's images."""
    return cache_folder() / "features" / fingerprint[:24]


def runs_folder() -> Path:
    """Return the folder of runs: UDML_RUNS, or `runs` in the current folder."""
    return Path(os.environ.get("UDML_RUNS") or "runs").resolve()


def data_folder() -> Path | None:
    """Return the folder of further data sets: UDML_DATA, or None if it is not set.

    Each subfolder is a data set.
    """
    value = os.environ.get("UDML_DATA")
    return Path(value) if value else None


def imports_folder() -> Path:
    """Return the folder of images that users uploaded."""
    return given_folder() / "imports"


def is_loopback(address: str | None) -> bool:
    """Return whether a server that listens at an address can be reached from its own computer only.

    Without an address a server listens at all addresses of the computer.
    """
    try:
        return address == "localhost" or ipaddress.ip_address(address or "").is_loopback
    except ValueError:
        return False


def is_exposed() -> bool:
    """Return whether UDML_EXPOSED says that other people can reach this server.

    Behind a proxy the user sets it; `expose` sets it if the server listens at another address than the computer's own.
    """
    return os.environ.get(EXPOSED, "0") not in ("", "0")


def expose(address: str | None) -> bool:
    """Limit this process and the runs that it starts if other people can reach its server; return whether they can.

    Args:
        address: The address at which the server listens; None for all.
    """
    if not is_loopback(address):
        os.environ[EXPOSED] = "1"
    if is_exposed():
        os.environ.setdefault("UDML_RUNS", str(runs_folder()))  # Workers start in another folder.
    return is_exposed()


def readable_roots() -> dict[str, Path]:
    """Return the folders that an exposed server reads, by the words that name them."""
    data = data_folder()
    roots = {} if data is None else {"UDML_DATA": data}
    roots |= {"the runs": runs_folder(), "the uploads": imports_folder(), "the app's own data": ASSETS}
    return {words: resolved for words, root in roots.items() if (resolved := _resolve(root)) is not None}


def may_read(path: Path) -> bool:
    """Return whether a browser user may name a path; links and `..` are followed first."""
    if not is_exposed():
        return True
    resolved = _resolve(path)
    return resolved is not None and any(resolved.is_relative_to(root) for root in readable_roots().values())


def existing_path(text: str) -> Path | None:
    """Return the file or folder that a text names; None if it does not exist or may not be read.

    The text may begin with `~`.
    """
    try:
        path = Path(text).expanduser()
        return path if may_read(path) and path.exists() else None
    except (OSError, ValueError, RuntimeError):  # a name too long or not allowed, a null byte, an unknown user after ~
        return None


def _resolve(path: Path) -> Path | None:
    try:
        return path.expanduser().resolve()
    except (OSError, ValueError, RuntimeError):
        return None
