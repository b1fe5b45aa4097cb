"""Every former page has a place in the table of the documents, and the place and its controls exist."""

from __future__ import annotations

import ast
import re

import pytest

from pages.parts.shell.views import FORMER, PAGES, VIEWS, former_address, page_of, views_of
from tests.project.documents import ROOT

TABLE = (ROOT / "docs/former-pages.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", TABLE, re.M)
SOURCES = [*(ROOT / "pages").rglob("*.py"), ROOT / "udml_core" / "results" / "lesson_page.py"]
TEXTS = {node.value for path in SOURCES for node in ast.walk(ast.parse(path.read_text("utf-8")))
         if isinstance(node, ast.Constant) and isinstance(node.value, str)}
"""Texts of the pages' sources."""


def test_every_former_page_has_a_row() -> None:
    former = {*FORMER, *(name for name in PAGES if name not in ("lab", "search", "label"))}
    assert sorted(name for name, *_ in ROWS) == sorted(former)


@pytest.mark.parametrize(("name", "place", "controls"), ROWS)
def test_a_former_page_opens_its_place_whose_controls_exist(name: str, place: str, controls: str) -> None:
    view = former_address(name, {})[0] if name in FORMER else (views_of(name) or [name])[0]
    title = PAGES[page_of(view)].title
    assert place == (f"{title} · {VIEWS[view].title}" if view in VIEWS else title)
    missing = [control for control in re.findall(r"\*\*(.+?)\*\*", controls) if control not in TEXTS]
    assert not missing
