"""Text from outside, which no page may read as Markdown: names of data sets, classes, images, runs, and addresses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from google.protobuf.message import Message
from PIL import Image
from playwright.sync_api import BrowserContext
from streamlit.testing.v1 import AppTest

from experiments.hold_fast.sockets import run_alone
from experiments.outside_texts import HARMLESS, NAMES, show_texts
from pages.parts.data.auditing import _shown
from pages.parts.explore import panels
from pages.parts.shell.run_status import escaped, escaped_message
from tests.app.conftest import App
from tests.app.opening import opened
from tests.app.test_pages import SHOWN
from tests.running import worked
from tests.tiers import fast_first
from udml_core.data import catalog
from udml_core.data.given import labels
from udml_core.data.sources.levels import ClassLevel
from udml_core.exploration.audit import Findings
from udml_core.runs import Run
from udml_core.runs.notes import Notes

MARK = "*Q*[z](u)&lt;"
"""Text that Markdown would read."""
METHODS = {"rpml": {"dimension": 4, "epochs": 2, "epsilon": 0.9}, "plm": {"dimension": 4, "epochs": 1},
           "ssdml": {"epochs": 1}, "nml": {"epochs": 2}, "pslr": {"dimension": 4, "epochs": 1}, "frozen": {}}
PLAIN = {"Html", "IFrame", "Code", "Json", "BidiComponent", "ComponentInstance", "ArrowData", "Text"}
"""Kinds of elements that do not read Markdown; `st.html` has a test of its own. Charts read HTML: see `chart_texts`."""
PLAIN_FIELDS = {"alt", "options", "raw_value", "raw_values", "placeholder", "value", "columns", "id", "element_id",
                "default", "arrow_data", "data", "url", "form_id"}
"""Fields of other elements that do not read it either, as a real browser shows."""
LABELED = {"Radio", "ButtonGroup"}
"""Kinds of elements whose options are labels, which read it; boxes show theirs plainly."""
PANELS = [{"panel": name} for name in panels.PANELS]
VIEWS = [{"view": name} for name in ("gallery", "advice", "audit", "classes")]


PARTS = {"explore": PANELS, "data": VIEWS}
"""Further parameters of addresses, each of which shows other texts."""


@pytest.fixture(scope="module")
def heap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of images whose every name is marked."""
    folder = tmp_path_factory.mktemp("outside") / f"heap {MARK}"
    rng = np.random.default_rng(0)
    for label in range(6):
        for number in range(8):
            path = folder / f"c{label}{MARK}" / f" i{number}{MARK}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = rng.integers(0, 60, (12, 12))
            pixels[label:label + 6, number % 5:number % 5 + 5] += 150
            Image.fromarray(pixels.astype(np.uint8)).save(path)
    return folder


@pytest.fixture(scope="module")
def marked(heap: Path, places: Path) -> dict[str, Run]:
    """A finished run of each of the methods, with a marked name, note and tag."""
    dataset = catalog.load(str(heap))
    catalog.remember(str(heap))  # the page Data shows only folders that were opened
    labels.assign(dataset, range(0, 24, 2), f"own{MARK}")
    labels.assign(dataset, range(24, 48, 2), f"other{MARK}")
    runs = {}
    for method, fields in METHODS.items():
        run = worked(places / "runs", dataset=dataset.name, method=method, split="all", fields=fields)
        run.write_notes(Notes(name=f"name{MARK}", note=f"note{MARK}", tags=(f"tag{MARK}",)))
        runs[method] = run
    return runs


def read_as_markdown(message: Message, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts of an element that Streamlit may read as Markdown, each after its place."""
    for field, value in message.ListFields():
        if field.name in PLAIN_FIELDS and not (field.name == "options" and type(message).__name__ in LABELED):
            continue
        for each in value if field.is_repeated else [value]:
            if isinstance(each, Message):
                yield from read_as_markdown(each, f"{path}.{field.name}")
            elif isinstance(each, str):
                yield f"{path}.{field.name}", each


def raw_texts(test: AppTest, mark: str = MARK) -> list[str]:
    """Return the texts of a page that have the mark unescaped where Streamlit may read Markdown."""
    assert not test.exception, test.exception[0].message
    elements = [element.proto for element in test._tree if isinstance(getattr(element, "proto", None), Message)]
    return [f"{type(element).__name__}{place}: {text[:200]}" for element in elements
            if type(element).__name__ not in PLAIN
            for place, text in (chart_texts if type(element).__name__ == "PlotlyChart" else read_as_markdown)(element)
            if mark in text]


def chart_texts(chart: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts of a chart, all of which Plotly reads as HTML, each after its place."""
    def texts(value: Any, place: str) -> Iterator[tuple[str, str]]:
        if isinstance(value, str):
            yield place, value
        elif isinstance(value, dict | list):
            for key, part in value.items() if isinstance(value, dict) else enumerate(value):
                yield from texts(part, f"{place}.{key}")

    yield from texts(json.loads(chart.spec), "")


@pytest.mark.usefixtures("own_places")
@pytest.mark.parametrize("method", fast_first(METHODS))
def test_no_page_reads_a_name_as_markdown(method: str, marked: dict[str, Run], heap: Path) -> None:
    found = [f"{page} {further}: {text}" for page in SHOWN for further in PARTS.get(page, [{}])
             for text in raw_texts(opened(page, run=marked[method].id, dataset=str(heap), **further))]
    assert found == []


def test_the_finding_of_small_classes_has_no_name_as_markdown(heap: Path) -> None:
    shown = _shown("classes", catalog.load(str(heap)), cast(Findings, SimpleNamespace(small_classes={0: 8})))
    assert escaped(f"c0{MARK}") in shown.caption
    assert len(shown.images) == 8


def test_no_label_of_a_choice_is_read_as_markdown() -> None:
    levels = [ClassLevel(number, {f"c{MARK}": 4, "d": 2}, 0) for number in (1, 2)]
    page = AppTest.from_function(ask_level, kwargs={"levels": levels}).run()
    assert raw_texts(page) == []
    assert len(page.radio) == 1


def ask_level(levels):  # type: ignore[no-untyped-def]
    from pages.parts.data.importing import _ask_level

    _ask_level(levels, "x")


ADDRESSES = ("dataset", "run", "method", "recipe", "selected", "map", "embedding", "query", "add", "record", "lesson",
             "with", "view", "split", "classes", "tool", "panel", "part", "measure", "uses")
"""Parameters of addresses whose value is a text."""


@pytest.mark.usefixtures("own_places")
@pytest.mark.parametrize("page", fast_first(sorted(SHOWN, key=lambda page: page not in ("data", "train", "refine")), 3))
def test_no_page_reads_an_address_as_markdown(page: str, marked: dict[str, Run]) -> None:
    found = raw_texts(opened(page, **dict.fromkeys(ADDRESSES, MARK)))
    found += raw_texts(opened(page, **dict.fromkeys(ADDRESSES, MARK) | {"run": marked["rpml"].id}))
    assert found == []


@pytest.mark.parametrize(("text", "shown"), [
    ("*a* [b](c)", r"\*a\* \[b\](c)"), (" *a*\n b ", r"\*a\* b"), ("5\u00a0 %", "5\u00a0 %"),
    ("$x$ :red[y]", r"\$x\$ \:red\[y\]"),
    ("plain.png", "plain.png"), ("&lt;i&gt;", r"\&lt;i\&gt;"), ("- list", r"\- list"), ("12. one", r"12\. one"),
    ("1) one", r"1\) one"), ("===", r"\==="), ("+ a - b = 1.", r"\+ a - b = 1."), ("b12.", "b12."),
    (":material/delete:", "\\:\u2060material/delete\\:"), (":streamlit:", "\\:\u2060streamlit\\:"),
    ("a -> b", "a \u2060-\\> b"), ("a <-> b", "a \u2060\\<-\\> b"), ("a -- b", "a \u2060-- b"),
    ("a->b --c", "a-\\>b --c"),
    ("3 >= 2 ~= <=", "3 \u2060\\>= 2 \u2060\\~= \u2060\\<=")])
def test_signs_are_escaped_and_spaces_around_vanish(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_code_in_a_message_stays_code() -> None:
    assert escaped_message("Run `pip install x_y` for *a* ") == r"Run `pip install x_y` for \*a\* "
    assert escaped_message("a ` b *c*") == r"a \` b \*c\*"
    assert escaped_message("- `a` b") == r"\- `a` b"
    assert escaped_message("``*c*``") == r"\`\`\*c\*\`\`"


@pytest.mark.browser
@pytest.mark.slow
def test_a_browser_shows_each_text_as_it_is() -> None:
    """Streamlit also replaces names of icons and arrows, which no sign of Markdown marks; Plotly reads HTML."""
    captions, legends = run_alone(asyncio.to_thread(show_texts))
    assert [text for text, row in captions.items() if not row["escaped"]] == []
    assert [text for text, row in captions.items() if row["raw"]] == list(HARMLESS)
    assert [text for text, row in legends.items() if not row["drawn"]] == []
    assert [text for text, row in legends.items() if row["plain"]] == list(NAMES[-1:])


@pytest.mark.browser
@pytest.mark.slow
def test_no_text_from_outside_becomes_a_link_or_an_image(app: App, window: BrowserContext) -> None:
    """In a real browser, where addresses become links even without Markdown's signs."""
    hostile = "![i](http://evil.example/a.png) http://evil.example www.evil.example a@evil.example"
    page = window.new_page()
    page.goto(f"/data?dataset={hostile}")
    page.get_by_text("in the link is not listed here").wait_for()
    links: Any = page.eval_on_selector_all("a[href*=evil], img[src*=evil]", "all => all.map(each => each.outerHTML)")
    assert links == []
    page.close()
