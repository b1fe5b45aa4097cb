"""A page through Streamlit's AppTest, as app.py shows it, and all that it says."""

from __future__ import annotations

from pathlib import Path

from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("title", "header", "subheader", "markdown", "caption", "info", "warning", "error", "success")


def opened(page: str, **query: str) -> AppTest:
    """A page with an address."""
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=240)
    for name, value in query.items():
        test.query_params[name] = value
    test.run()
    return test if page == "home" else test.switch_page(f"pages/{page}.py").run()


def texts(test: AppTest) -> str:
    """Everything that is written on a page, a line each."""
    return "\n".join(str(one.value) for kind in KINDS for one in test.get(kind))
