"""The wheel's list of packages and files follows the folders."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ASSET = re.compile(r'ASSETS / "([\w.-]+)"')


def test_the_wheel_holds_every_package_of_the_library() -> None:
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "udml_core").rglob("__init__.py")}
    packages = {".".join(folder.parts) for folder in folders}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages | {"udml_core.assets"}


def test_the_wheel_holds_every_asset_that_the_library_names() -> None:
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["udml_core.assets"]
    named = {name for path in (ROOT / "udml_core").rglob("*.py")
             for name in ASSET.findall(path.read_text(encoding="utf-8"))} - {"examples"}  # which come with the app only
    assert {"palette.js", "lessons", "offline.css"} <= named
    assert not [name for name in named
                if not any(fnmatch(name, pattern) or pattern.startswith(f"{name}/") for pattern in patterns)]


def test_every_pinned_requirement_is_named_once() -> None:
    lines = [line.split("#")[0].strip() for name in ("requirements.txt", "requirements-library.txt")
             for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    names = [line.split("==")[0] for line in lines if line and not line.startswith("-r ")]
    assert len(names) == len(set(names))
    assert all("==" in line for line in lines if line and not line.startswith("-r "))


@pytest.mark.slow
def test_the_parts_of_the_pages_import_under_any_name_beside_a_foreign_package_pages(tmp_path: Path) -> None:
    foreign = tmp_path / "pages"
    foreign.mkdir()
    (foreign / "__init__.py").write_text("raise ImportError('a foreign package')\n", encoding="utf-8")
    shutil.copytree(ROOT / "pages", tmp_path / "explorer_pages")
    code = ("import importlib, pkgutil, explorer_pages.parts as parts\n"
            "names = [module.name for module in pkgutil.walk_packages(parts.__path__, 'explorer_pages.parts.')]\n"
            "for name in names: importlib.import_module(name)\n"
            "print(len(names))")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, text=True, capture_output=True,
                          env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100
