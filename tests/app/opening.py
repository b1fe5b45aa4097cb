"""Pages through Streamlit's AppTest, as app.py shows them, and their texts."""

from __future__ import annotations

import functools
import io
from pathlib import Path
from typing import Any

from PIL import Image
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest

from udml_core.data.dataset import UserImage

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("title", "header", "subheader", "markdown", "caption", "info", "warning", "error", "success")

# AppTest scans all installed packages for components in every test, which takes longer than most pages.
manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)

_make_manager = PagesManager.__init__


def _make_navigating_manager(manager: PagesManager, *arguments: Any, **options: Any) -> None:
    """Make a manager as if st.navigation had been called; else AppTest would run a page without app.py."""
    PagesManager.uses_pages_directory = False
    _make_manager(manager, *arguments, **options)


PagesManager.__init__ = _make_navigating_manager  # type: ignore[method-assign]


def opened(page: str, **query: str | list[str]) -> AppTest:
    """Open a view, or a page without views, as a link with these address parameters does."""
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=240)
    test.query_params.update(query)
    return test.run() if page == "home" else switched(test, page)


def offer(test: AppTest) -> Any:
    """Return the button of the audit that excludes many images at once, whose key names these images."""
    return next(button for button in test.button if (button.key or "").startswith("audit-offer-"))


def switched(test: AppTest, page: str) -> AppTest:
    """Open another view or page; the address keeps its other parameters."""
    from pages.parts.shell.views import PARAMETER, address_of, page_of  # not above: app.py finds the right package

    test.query_params.pop(PARAMETER, None)
    test.query_params.update(address_of(page))
    return test.switch_page(f"pages/{page_of(page)}.py").run()


def texts(test: AppTest) -> str:
    """Return all texts on a page, one a line, each with the text behind its "?"."""
    return "\n".join(f"{element.value} {getattr(element.proto, 'help', '')}".rstrip()
                     for kind in KINDS for element in test.get(kind))


def as_file(image: Image.Image, name: str) -> UserImage:
    """Return an image as a file that a browser sends."""
    content = io.BytesIO()
    image.save(content, "PNG")
    return UserImage(content.getvalue(), name)
