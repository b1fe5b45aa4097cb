"""Pages through Streamlit's AppTest, as app.py shows them, and their texts."""

from __future__ import annotations

import functools
from pathlib import Path

from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("title", "header", "subheader", "markdown", "caption", "info", "warning", "error", "success")

# AppTest scans all installed packages for components in every test, which takes longer than most pages.
manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)


def opened(page: str, **query: str) -> AppTest:
    """Open a page directly, as a link with these address parameters does."""
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=240)
    test.query_params.update(query)
    return (test if page == "home" else test.switch_page(f"pages/{page}.py")).run()


def texts(test: AppTest) -> str:
    """Return all texts on a page, one a line."""
    return "\n".join(str(element.value) for kind in KINDS for element in test.get(kind))
