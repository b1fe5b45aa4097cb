"""A map as one HTML file that works offline."""

from __future__ import annotations

import base64
import html

from udml_core.base.offline import offline_page
from udml_core.base.paths import ASSETS
from udml_core.data.dataset import Dataset

from ..shell.selection import Selection
from .map_content import Color, Layout, map_header
from .scatter import HTML
from .transport import Message, script_and_style


def map_file(dataset: Dataset, layout: Layout, color: Color, selected: Selection, title: str, caption: str) -> bytes:
    """Export a map as one HTML file that works offline.

    Images, hover, zoom, lasso and legend are part of the file.
    """
    message = Message(self_contained=True)
    header = map_header(message, dataset, layout, color, selected, True) | {
        "label": title, "height": 760, "segments": None, "marks": [], "placed": [], "linked": False, "group": "",
        "camera": None, "cameraKey": "", "grid": None}
    data = base64.b64encode(message.pack(header)).decode()
    script, style = script_and_style("scatter")
    return offline_page(ASSETS / "map.html", TITLE=html.escape(title), CAPTION=html.escape(caption), MAP=HTML,
                        STYLE=style, DATA=data, SCRIPT=script.replace("export default function", "function"))
