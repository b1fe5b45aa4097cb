"""Imports what the pages need before the first visit, so that no visit waits for imports."""

from __future__ import annotations

import contextlib
import gc
import importlib
import pkgutil
import threading
import time

from .. import __name__ as parts
from .. import __path__ as folders
from .views import VIEWS, module_of

HEAVY = ("numpy", "torch", "pandas", "scipy.stats", "sklearn.datasets", "numba", "faiss", "plotly.graph_objects",
         "streamlit.dataframe_util", "udml_core.numerics.projection.tsne")
"""Large packages, each a step of its own, so that a visit never waits for several of them."""
FIRST = (f"{parts}.shell.", f"{parts}.draw.", f"{parts}.home.")
"""Parts of the page that most visits begin with."""
SCRIPT_THREAD = "ScriptRunner"
"""How Streamlit's names of threads that run a page begin."""
PAUSE = 0.05
"""Seconds between two looks at whether a page still runs."""
_step = threading.Lock()


def warm_imports() -> threading.Thread:
    """Start importing everything that pages import, in the background.

    A page that runs goes first: the thread continues once no page runs. A lower priority of the operating system would
    not do: the thread could lose its turn while it holds Python's global lock, and pages would wait for it.

    Returns:
        The thread.
    """
    thread = threading.Thread(target=_import_all, name="udml-warming", daemon=True)
    thread.start()
    return thread


def wait_for_step() -> None:
    """Wait until the module that is being imported in the background, if any, is there.

    Two threads that import packages with circular imports can meet half-initialized modules.
    """
    with _step:
        pass


def _import_all() -> None:
    for name in _names():
        while not _import(name):
            time.sleep(PAUSE)
    # Streamlit collects garbage after each script, which takes 0.2 s for the objects of so many packages. These stay.
    gc.collect()
    gc.freeze()


def _names() -> list[str]:
    """Return the modules to import in order."""
    names = [module.name for module in pkgutil.walk_packages(folders, f"{parts}.")]
    views = [module_of(name) for name in VIEWS]
    return [*HEAVY, *sorted(names, key=lambda name: not name.startswith(FIRST)), *views]


def _import(name: str) -> bool:
    """Import a module unless a page runs; return whether it is done with."""
    with _step:
        if any(thread.name.startswith(SCRIPT_THREAD) for thread in threading.enumerate()):
            return False
        with contextlib.suppress(Exception):  # the page that needs the module shows its error
            importlib.import_module(name)
        return True
