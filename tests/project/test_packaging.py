"""The wheel's list of packages and files follows the folders."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_wheel_holds_every_package_of_the_library() -> None:
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "udml_core").rglob("__init__.py")}
    packages = {".".join(folder.parts) for folder in folders}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages | {"udml_core.assets"}


def test_every_pinned_requirement_is_named_once() -> None:
    lines = [line.split("#")[0].strip() for name in ("requirements.txt", "requirements-library.txt")
             for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    names = [line.split("==")[0] for line in lines if line and not line.startswith("-r ")]
    assert len(names) == len(set(names))
    assert all("==" in line for line in lines if line and not line.startswith("-r "))
