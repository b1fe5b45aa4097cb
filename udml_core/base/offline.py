"""HTML files that work without a server, made from a template in assets."""

from __future__ import annotations

import re
from pathlib import Path

from udml_core.base.paths import ASSETS


def offline_page(template: Path, **parts: str) -> bytes:
    """Fill a template whose places are written {{NAME}}; {{THEME}} is the look of all exported files."""
    parts["THEME"] = (ASSETS / "offline.css").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template.read_text(encoding="utf-8")).encode()
