"""Embeddings in a notebook: a map, a gallery and a query row, linked with each other.

    from udml_core.notebook import explore

    shown = explore(embeddings, images, labels)
    shown
    shown.selection  # the names of the selected images, a pandas index
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from udml_core.base.arrays import Array
from udml_core.base.components import GALLERY_HTML, MAP_HTML, Message, plain_script, script_and_style, unpack_mask
from udml_core.base.errors import UserError, counted, quoted
from udml_core.base.paths import ASSETS
from udml_core.notebook.collection import Collection, collect
from udml_core.notebook.collection_content import (
    MOST_SHOWN,
    AllSheets,
    Hits,
    draw_sheets,
    gallery_message,
    map_message,
    row_message,
)

try:
    import anywidget
    import ipywidgets
    import traitlets
except ImportError as problem:
    raise ImportError("The notebook widgets need the package anywidget: pip install 'udml-explorer[notebook]'"
                      ) from problem

HITS = 12
"""Nearest images in the query row."""
PATIENCE = 1.0
"""Seconds after which reading images shows its progress."""
NAMED = 3
"""Unreadable images that a warning names."""
NONE = np.zeros(0, dtype=np.int64)


def widget_module(name: str, html: str) -> str:
    """Return the JavaScript module of a widget, which shows the component of assets/NAME.js."""
    script, style = script_and_style(name)
    adapter, look = ((ASSETS / f"notebook.{kind}").read_text(encoding="utf-8") for kind in ("js", "css"))
    return (f"{plain_script(script)}{adapter}"
            f"export default {{ render: inNotebook({name}, {json.dumps(html)}, {json.dumps(look + style)}) }};\n")


class _Component(anywidget.AnyWidget):
    """A browser component as a widget.

    Attributes:
        data: Its message.
        files: The large parts of the message by name, each {kind, content}, which travel when they change.
        heading: A line above it.
        selection: The selection that it sent last; see assets/scatter.js.
    """

    data = traitlets.Bytes().tag(sync=True)
    files = traitlets.Dict().tag(sync=True)
    heading = traitlets.Unicode().tag(sync=True)
    selection = traitlets.Dict().tag(sync=True)

    def draw(self, state: dict[str, Any]) -> None:
        """Show another message, which `written` returned."""
        with self.hold_sync():
            for name, value in state.items():
                self.set_trait(name, value)


def written(write: Callable[[Message], bytes], heading: str = "") -> dict[str, Any]:
    """Return the state of a widget that shows what a function writes into a new message.

    Jupyter limits how much an open widget receives a second, so that the state of a new widget is given to its
    constructor.
    """
    files: dict[str, dict[str, Any]] = {}

    def keep(content: bytes, kind: str, name: str) -> str:
        files[name] = {"kind": kind, "content": content}
        return name

    return {"data": write(Message(keep)), "files": files, "heading": heading}


class Map(_Component):
    """The map of a collection, on which images are selected."""

    _esm = widget_module("scatter", MAP_HTML)


class Gallery(_Component):
    """Images in a grid, or in one row after a query."""

    _esm = widget_module("gallery", GALLERY_HTML)


class Explorer(ipywidgets.VBox):
    """A map with a lasso, the nearest images of a query, and a gallery of the selected images.

    A click on an image, wherever it is shown, searches with it.

    Attributes:
        map: The map alone, which can be shown in another cell; so can the query row and the gallery.
        query_row: The query and its nearest images.
        gallery: The selected images.
        selection: The names of the selected images, a pandas index; `observe` calls a function when it changes.
        query: The name of the query; None without one.
        neighbors: The names of the query's nearest images, nearest first, a pandas index.
    """

    selection = traitlets.Any()
    query = traitlets.Any(allow_none=True)
    neighbors = traitlets.Any()

    def __init__(self, collection: Collection, sheets: AllSheets | None) -> None:
        self._collection, self._sheets = collection, sheets
        self._revision, self._selected = 0, NONE
        self._hits: Hits | None = None
        self.map, self.query_row, self.gallery = (
            Map(**self._map_state()), Gallery(**self._query_state()), Gallery(**self._gallery_state()))
        super().__init__([self.map, self.query_row, self.gallery])
        self.selection = self.neighbors = collection.index[NONE]
        for component in self.children:
            component.on_msg(self._clicked)
        self.map.observe(self._lassoed, "selection")

    def _display_(self) -> Any:
        """Return the three widgets as marimo shows them, which has no boxes of ipywidgets."""
        import marimo

        return marimo.vstack([marimo.ui.anywidget(component) for component in self.children])

    def select(self, names: Any) -> None:
        """Select images.

        Args:
            names: Their names in the index.

        Raises:
            UserError: A name is unknown.
        """
        self._adopt(self._rows(names), self._revision + 1)

    def search(self, name: Any) -> None:
        """Search with an image.

        Args:
            name: Its name in the index; the first image of this name.

        Raises:
            UserError: The name is unknown.
        """
        self._find(int(self._rows([name])[0]))

    def _rows(self, names: Any) -> Array:
        names = list(names)
        rows = np.flatnonzero(self._collection.index.isin(names))
        unknown = [name for name in names if name not in self._collection.index]
        if unknown:
            raise UserError(f"No image has the name {quoted(unknown[0])}. The names are the index of the data frame or "
                            f"series, or row numbers without one.")
        return rows

    def _clicked(self, _widget: Any, content: dict[str, Any], _buffers: Any) -> None:
        row = content.get("picked", content.get("searched"))
        if isinstance(row, int) and 0 <= row < len(self._collection):
            self._find(row)

    def _lassoed(self, change: Any) -> None:
        answer = change["new"]
        if answer.get("count") == len(self._collection):
            self._adopt(unpack_mask(str(answer["mask"]), len(self._collection)), int(answer["revision"]))

    def _find(self, query: int) -> None:
        self._hits = Hits(query, *self._collection.nearest(query, HITS))
        index = self._collection.index
        self.query_row.draw(self._query_state())
        self.map.draw(self._map_state())
        self.query, self.neighbors = index[query], index[self._hits.rows]

    def _adopt(self, rows: Array, revision: int) -> None:
        self._selected, self._revision = rows, revision
        self.gallery.draw(self._gallery_state())
        self.map.draw(self._map_state())
        self.selection = self._collection.index[rows]

    def _map_state(self) -> dict[str, Any]:
        return written(lambda message: map_message(message, self._collection, self._sheets, self._selected,
                                                   self._revision, self._hits))

    def _query_state(self) -> dict[str, Any]:
        heading = "Click an image to find the nearest." if self._hits is None else (
            f"Nearest images to {self._collection.name(self._hits.query)}, with rank and Euclidean distance")
        return written(lambda message: row_message(message, self._collection, self._hits, heading), heading)

    def _gallery_state(self) -> dict[str, Any]:
        rows = self._selected if len(self._selected) else np.arange(len(self._collection))
        first = f"the first {MOST_SHOWN} of " if len(rows) > MOST_SHOWN else ""
        shown = f"{first}{counted(len(rows), 'image')}"
        heading = f"Selected: {shown}" if len(self._selected) else (
            f"Nothing selected: {shown}. Shift and drag on the map selects.")
        return written(lambda message: gallery_message(message, self._collection, rows, heading), heading)


def explore(embeddings: Any, images: Any, labels: Any = None, positions: Any = None) -> Explorer:
    """Show embeddings as a map with the images, a query row and a gallery.

    Args:
        embeddings: Vectors (n, d): an array, a tensor, a data frame, or a series or list of n vectors. The index of a
            data frame or series names the images.
        images: A path or a PIL image for each row, or an uint8 array (n, height, width) or (n, height, width, 3).
        labels: A class or a floating-point number for each row; None or NaN for images without.
        positions: Positions (n, 2) on the map, such as a UMAP layout; the two principal axes if None.

    Returns:
        The widget. Its `selection` holds the names of the selected images.

    Raises:
        UserError: An argument has another form, or they differ in length or index, or no image can be read.
    """
    collection = collect(embeddings, images, labels, positions)
    bar = ipywidgets.FloatProgress(description="Images", max=1.0)
    begin, is_shown = time.monotonic(), False

    def report(share: float) -> None:
        nonlocal is_shown
        bar.value = share
        if not is_shown and not _is_marimo() and time.monotonic() - begin > PATIENCE:
            is_shown = True
            _display(bar)

    try:
        explorer = Explorer(collection, draw_sheets(collection, report))
    finally:
        bar.close()
    _warn_of_unread(collection)
    return explorer


def _warn_of_unread(collection: Collection) -> None:
    """Warn of images that are gray because they cannot be read.

    Raises:
        UserError: All are.
    """
    unread = collection.unread
    if len(unread) == len(collection):
        raise UserError(f"None of the {len(collection):,} images can be read. The first: {unread[min(unread)]}")
    if unread:
        some = " ".join(unread[row] for row in sorted(unread)[:NAMED])
        more = f" And {len(unread) - NAMED:,} more." if len(unread) > NAMED else ""
        warnings.warn(f"{counted(len(unread), 'image')} cannot be read and {'is' if len(unread) == 1 else 'are'} gray: "
                      f"{some}{more}", stacklevel=3)


def _is_marimo() -> bool:
    """Return whether a notebook of marimo runs, which shows no bar of ipywidgets."""
    return "marimo" in sys.modules and bool(sys.modules["marimo"].running_in_notebook())


def _display(widget: Any) -> None:
    from IPython.display import display

    display(widget)  # type: ignore[no-untyped-call]
