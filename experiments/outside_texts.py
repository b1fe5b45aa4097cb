"""Measure how a real browser shows texts from outside, plain and escaped, and which cells a spreadsheet computes."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from pathlib import Path

from playwright.sync_api import Locator, sync_playwright

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
NAMES = ('<a href="https://evil.example">win</a>', "<b>bold</b>", "<sup>high</sup>", "a<br>b", "<i>x</i>",
         '<span style="font-size:11px">s</span>', "&lt;b&gt;", "a < b & c")
"""Names of classes and runs that a chart's legend shows; Plotly reads HTML, and leaves the last as it is."""
CELLS = ("=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(1;1)", "\t=1+1", "plain")
MARKS = "a, img, em, strong, del, code, h1, h2, h3, li, blockquote, hr, b, tspan, .katex, [style*=color], [role=img]"
"""Elements that Markdown or HTML made of a text."""
SCRIPT = """
import json
import plotly.graph_objects as go
import streamlit as st
from pages.parts.draw.figures import draw
from pages.parts.shell.run_status import escaped
for number, text in enumerate(json.loads({texts!r})):
    for kind, shown in {{"raw": text, "escaped": escaped(text)}}.items():
        with st.container(key=f"{{kind}}-{{number}}"):
            st.caption(shown)
for number, name in enumerate(json.loads({names!r})):
    figure = go.Figure(go.Scatter(y=[1, 2], name=name, showlegend=True))
    with st.container(key=f"plain-{{number}}"):
        st.plotly_chart(figure, key=f"plain{{number}}")
    with st.container(key=f"drawn-{{number}}"):
        draw(figure, f"drawn{{number}}", "two points")
st.html("<p class='end'>end</p>")
"""
PATIENCE = 120_000
Shown = dict[str, dict[str, float]]
"""Whether a browser shows each text as it is, by how it is shown: 1 if it does."""


def show_texts() -> tuple[Shown, Shown]:
    """Return how a caption shows the texts, plainly and escaped, and how a chart's legend shows the names."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as player:
        script = Path(folder) / "texts.py"
        script.write_text(SCRIPT.format(texts=json.dumps(TEXTS), names=json.dumps(NAMES)), encoding="utf-8")
        with serving(str(script), dict(os.environ)) as (url, _):
            browser = player.chromium.launch(executable_path=find_browser(), args=FLAGS)
            page = browser.new_page()
            page.goto(url, timeout=PATIENCE)
            page.locator(".end").wait_for(timeout=PATIENCE)
            page.locator(".legendtext").nth(2 * len(NAMES) - 1).wait_for(timeout=PATIENCE)
            captions, legends = ({text: {kind: float(is_as_it_is(page.locator(f".st-key-{kind}-{number}{inner}"), text))
                                         for kind in kinds} for number, text in enumerate(texts)}
                                 for texts, kinds, inner in ((TEXTS, ("raw", "escaped"), ""),
                                                             (NAMES, ("plain", "drawn"), " .legendtext")))
            browser.close()
    return captions, legends


def is_as_it_is(shown: Locator, text: str) -> bool:
    """Return whether an element shows a text without elements that Markdown or HTML made of it."""
    words = (shown.text_content() or "").replace(JOINT, "")
    return " ".join(words.split()) == " ".join(text.split()) and not shown.locator(MARKS).count()


def written_cells() -> dict[str, dict[str, float]]:
    """Return for each cell whether a spreadsheet would compute it, as a plain CSV has it and as the app writes it."""
    plain, guarded = io.StringIO(), io.StringIO()
    csv.writer(plain).writerows([cell] for cell in CELLS)
    write_rows(guarded, [[cell] for cell in CELLS])
    columns = [[row[0] for row in csv.reader(io.StringIO(file.getvalue()))] for file in (plain, guarded)]
    return {before.strip(): {"plain": float(before[0] in "=+-@\t\r"), "guarded": float(after[0] in "=+-@\t\r")}
            for before, after in zip(*columns, strict=True)}
