"""Measure how a real browser shows texts from outside, plain and escaped, and which cells a spreadsheet computes."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from experiments.real_server import FLAGS, find_browser, serving
from udml_core.base.spreadsheets import JOINT, write_rows

REPLACED = ("[win](https://evil.example)", "![cat](https://evil.example/x.png)", "https://evil.example/a",
            "www.evil.example", "me@evil.example", "*stars*", "__bold__", "~~gone~~", "# title", "- item", "1. item",
            "> quote", "`code`", "$x^2$", ":red[alarm]", ":material/delete:", ":streamlit:", ":smile:", "a -> b",
            "a <-> b", "<- a", "a -- b", "3 >= 2", "2 <= 3", "a ~= b", "&lt;b&gt;", "---")
"""Texts in which Streamlit's Markdown replaces something."""
HARMLESS = "<b>bold</b>", " two  spaces"
"""Texts that it shows as they are."""
TEXTS = REPLACED + HARMLESS
"""Names that a stranger can give to a folder, a class or a file."""
CELLS = ("=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(1;1)", "\t=1+1", "plain")
MARKS = "a, img, em, strong, del, code, h1, h2, h3, li, blockquote, hr, b, .katex, [style*=color], [role=img]"
"""Elements that Markdown made of a text."""
SCRIPT = """
import json, sys
import streamlit as st
from pages.parts.shell.run_status import escaped
for number, text in enumerate(json.loads({texts!r})):
    for kind, shown in {{"raw": text, "escaped": escaped(text)}}.items():
        with st.container(key=f"{{kind}}-{{number}}"):
            st.caption(shown)
st.html("<p class='end'>end</p>")
"""
PATIENCE = 120_000


def show_texts() -> dict[str, dict[str, float]]:
    """Return for each text whether a caption shows it as it is, plainly and escaped."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as player:
        script = Path(folder) / "texts.py"
        script.write_text(SCRIPT.format(texts=json.dumps(TEXTS)), encoding="utf-8")
        with serving(str(script), dict(os.environ)) as (url, _):
            browser = player.chromium.launch(executable_path=find_browser(), args=FLAGS)
            page = browser.new_page()
            page.goto(url, timeout=PATIENCE)
            page.locator(".end").wait_for(timeout=PATIENCE)
            rows = {text: {kind: float(is_as_it_is(page, f"{kind}-{number}", text)) for kind in ("raw", "escaped")}
                    for number, text in enumerate(TEXTS)}
            browser.close()
    return rows


def is_as_it_is(page: Page, key: str, text: str) -> bool:
    """Return whether a container shows a text without elements that Markdown made of it."""
    container = page.locator(f".st-key-{key}")
    shown = container.inner_text().replace(JOINT, "")
    return " ".join(shown.split()) == " ".join(text.split()) and not container.locator(MARKS).count()


def written_cells() -> dict[str, dict[str, float]]:
    """Return for each cell whether a spreadsheet would compute it, as a plain CSV has it and as the app writes it."""
    plain, guarded = io.StringIO(), io.StringIO()
    csv.writer(plain).writerows([cell] for cell in CELLS)
    write_rows(guarded, [[cell] for cell in CELLS])
    columns = [[row[0] for row in csv.reader(io.StringIO(file.getvalue()))] for file in (plain, guarded)]
    return {before.strip(): {"plain": float(before[0] in "=+-@\t\r"), "guarded": float(after[0] in "=+-@\t\r")}
            for before, after in zip(*columns, strict=True)}
