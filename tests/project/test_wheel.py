"""The wheel holds every asset that the library names."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch

from tests.project.documents import ROOT

NAMED = re.compile(r'ASSETS / "([\w.-]+)"')
LEFT_OUT = {"examples"}
"""Folders that the library does without: examples come with the app."""


def test_the_wheel_holds_every_asset_that_the_library_names() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["udml_core.assets"]
    named = {name for path in (ROOT / "udml_core").rglob("*.py")
             for name in NAMED.findall(path.read_text(encoding="utf-8"))} - LEFT_OUT
    assert {"palette.js", "lessons", "offline.css"} <= named
    assert not [name for name in named
                if not any(fnmatch(name, pattern) or pattern.startswith(f"{name}/") for pattern in patterns)]
