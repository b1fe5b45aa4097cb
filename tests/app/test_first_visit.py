"""The first visit: what is imported before it, and the style that is there from its first frame."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import serve
from pages.parts.shell import warming
from tests.app.opening import ROOT


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the modules that are imported in the background."""
    names: list[str] = []
    monkeypatch.setattr(warming, "PAUSE", 0.001)
    monkeypatch.setattr(warming.importlib, "import_module", names.append)
    return names


def test_everything_that_pages_import_is_imported_in_the_background() -> None:
    needed = {node.module for path in [*(ROOT / "pages").glob("*.py"), *(ROOT / "pages" / "views").glob("*.py")]
              for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
              if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pages.")}
    names = warming._names()
    assert needed | {f"pages.views.{path.stem}" for path in (ROOT / "pages" / "views").glob("[!_]*.py")} <= set(names)
    assert len(names) == len(set(names))
    assert not [name for name in names if importlib.util.find_spec(name.split(".")[0]) is None]


def test_the_parts_of_home_come_before_those_of_other_pages() -> None:
    names = warming._names()
    home = [names.index(name) for name in names if name.startswith("pages.parts.home.")]
    assert len(home) > 1
    assert max(home) < names.index("pages.parts.clusters")


def test_a_running_page_goes_first(imported: list[str]) -> None:
    page_ends = threading.Event()
    page = threading.Thread(target=page_ends.wait, name="ScriptRunner.scriptThread")
    page.start()
    thread = warming.warm_imports()
    thread.join(0.1)
    before = list(imported)
    page_ends.set()
    thread.join()
    assert not before
    assert imported[0] == warming.HEAVY[0]
    assert len(imported) > 100


def test_streamlit_names_the_threads_of_pages_as_expected() -> None:
    script = "import threading\nimport streamlit as st\nst.text(threading.current_thread().name)"
    test = AppTest.from_string(script).run()
    assert test.text[0].value.startswith(warming.SCRIPT_THREAD)


def test_a_page_waits_for_the_module_that_is_being_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ends = threading.Event(), threading.Event()

    def import_module(_name: str) -> None:
        begun.set()
        ends.wait()

    monkeypatch.setattr(warming.importlib, "import_module", import_module)
    monkeypatch.setattr(warming, "_names", lambda: ["torch"])
    warming.warm_imports()
    begun.wait()
    page = threading.Thread(target=warming.wait_for_step)
    page.start()
    page.join(0.05)
    assert page.is_alive()
    ends.set()
    page.join(10)
    assert not page.is_alive()


def test_a_module_that_cannot_be_imported_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []

    def import_module(name: str) -> None:
        names.append(name)
        raise ImportError(name)

    monkeypatch.setattr(warming.importlib, "import_module", import_module)
    monkeypatch.setattr(warming, "_names", lambda: ["one", "two"])
    warming.warm_imports().join()
    assert names == ["one", "two"]


def ask(path: str, **headers: str) -> tuple[dict[str, str], bytes]:
    """Return the headers and the body of an answer of the server's middleware before Streamlit's own static files."""
    from streamlit.web.server.starlette.starlette_static_routes import create_streamlit_static_handler

    static = create_streamlit_static_handler(str(ROOT / serve.INDEX.parent), "")
    scope = {"type": "http", "method": "GET", "path": path, "root_path": "", "query_string": b"",
             "asgi": {"spec_version": "2.4"},
             "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]}
    messages: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        messages.append(message)

    with ThreadPoolExecutor(1) as pool:  # a browser of other tests has an event loop in this thread
        pool.submit(asyncio.run, serve.EarlyStyle(static)(scope, None, send)).result()
    answer = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    return answer, b"".join(message.get("body", b"") for message in messages[1:])


@pytest.mark.parametrize("path", ["/", "/explore"])
def test_the_html_page_has_the_style_from_the_start(path: str) -> None:
    headers, body = ask(path, accept="text/html,*/*", accept_encoding="gzip")
    style = (ROOT / "assets" / "app.css").read_text()
    assert f"<style>\n{style}</style>" in body.decode()
    assert int(headers["content-length"]) == len(body)
    assert "etag" not in headers


@pytest.mark.parametrize(("path", "base", "leads_to"), [
    ("/explore", "", ""), ("/", "", ""), ("/explore/deep", "", "../explore-deep"), ("/a/b/c", "", "../../a-b-c"),
    ("//other.host/x", "", "../other.host-x"), ("/a/..%2f", "", "../a-..%252f"), ("/app/explore", "app", ""),
    ("/app/explore/deep", "/app/", "../explore-deep")])
def test_an_address_below_a_page_leads_to_a_flat_one(path: str, base: str, leads_to: str) -> None:
    assert serve.flat_address(path, base) == leads_to


def test_an_address_below_a_page_does_not_stay_white() -> None:
    headers, body = ask("/explore/deep", accept="text/html")
    assert headers["location"] == "../explore-deep"
    assert (body, headers["content-length"]) == (b"", "0")
    assert "location" not in ask("/explore", accept="text/html")[0]


def test_the_html_page_names_the_server() -> None:
    """Otherwise Streamlit looks for it below the page's address first: two requests fail at each visit."""
    head = ask("/explore", accept="text/html")[1].decode().split("</head>")[0]
    assert serve.ADDRESS in head
    assert " async" not in head, "a module runs after the line, because modules wait for the whole page"
    scripts = "".join(path.read_text(encoding="utf-8") for path in (serve.INDEX.parent / "static" / "js").glob("*.js"))
    assert "window.__streamlit" in scripts
    assert "BACKEND_BASE_URL" in scripts, "the name that tells Streamlit where its server is"


def test_the_scripts_of_frequent_elements_come_with_the_page_and_with_all_that_they_import() -> None:
    page = ask("/", accept="text/html")[1].decode()
    linked = re.findall(r'href="\./static/js/([^"]+)"|src="\./static/js/([^"]+)"', page)
    names = [first or second for first, second in linked]
    assert len(names) == len(set(names))
    for frequent in serve.FREQUENT:
        assert any(name.startswith(f"{frequent}.") for name in names), frequent
    added = re.findall(r'js/([^"]+)"', serve.preloads(serve.INDEX.parent))
    needed = {other for name in added for other in serve.IMPORTED.findall(
        (serve.INDEX.parent / "static" / "js" / name).read_text(encoding="utf-8"))}
    assert len(needed) > len(serve.FREQUENT)
    assert needed <= set(names)


def test_a_request_for_a_part_of_the_page_gets_all_of_it() -> None:
    whole = ask("/", accept="text/html")
    assert ask("/", accept="text/html", range="bytes=0-99", if_range='"0"') == whole
    assert ask("/", accept="text/html", range="bytes=0-99") == whole


def test_other_files_pass_unchanged() -> None:
    _, page = ask("/", accept="*/*")
    assert page == serve.INDEX.read_bytes()
    headers, icon = ask("/favicon.png", accept="text/html,*/*")
    assert icon == (serve.INDEX.parent / "favicon.png").read_bytes()
    assert "etag" in headers
