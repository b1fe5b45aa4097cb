"""The wheel's list of packages and files follows the folders."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ASSET = re.compile(r'ASSETS / "([\w.-]+)"')


def packages_in(name: str) -> set[str]:
    """Return the packages in a folder of the checkout."""
    return {".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / name).rglob("__init__.py")}


def requirements(name: str) -> list[Requirement]:
    """Return the requirements that a file lists, without their hashes."""
    lines = [line.split(" #")[0].strip(" \\") for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    return [Requirement(line) for line in lines if line and not line.startswith(("#", "-"))]


def pins(name: str) -> dict[str, str]:
    """Return the pinned version of each package in a file of requirements."""
    assert all(str(need.specifier).startswith("==") for need in requirements(name))
    return {canonicalize_name(need.name): str(need.specifier)[2:] for need in requirements(name)}


def test_the_wheel_holds_every_package_of_the_library_and_the_app_in_a_folder_of_its_own() -> None:
    app = {"udml_explorer", *(f"udml_explorer.{name}" for name in packages_in("pages"))}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages_in("udml_core") | {"udml_core.assets"} | app
    assert PROJECT["tool"]["setuptools"]["package-dir"] == {"udml_core.assets": "assets", "udml_explorer": "."}


def test_the_wheel_holds_every_asset_but_the_pictures_of_the_documents() -> None:
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["udml_core.assets"]
    packed = {path for pattern in patterns for path in (ROOT / "assets").glob(pattern) if path.is_file()}
    outside = {path.relative_to(ROOT / "assets") for path in (ROOT / "assets").rglob("*") if path.is_file()
               and path not in packed and "__pycache__" not in path.parts}
    assert {path.parts[0] for path in outside} == {"readme"}
    named = {name for folder in ("udml_core", "pages") for path in (ROOT / folder).rglob("*.py")
             for name in ASSET.findall(path.read_text(encoding="utf-8"))}
    assert {"palette.js", "lessons", "offline.css", "examples"} <= named
    assert not [name for name in named if not (ROOT / "assets" / name).exists()]


def test_every_requirement_is_pinned_once_and_satisfies_the_bounds_of_the_wheel() -> None:
    names = [need.name for need in requirements("requirements-dev.txt") + requirements("requirements.txt")]
    assert len(names) == len(set(names))
    pinned = pins("requirements.txt")
    bounds = [Requirement(line) for line in PROJECT["project"]["dependencies"]]
    assert {canonicalize_name(need.name) for need in bounds} == set(pinned)
    extras = [Requirement(line) for lines in PROJECT["project"]["optional-dependencies"].values() for line in lines]
    developed = pinned | pins("requirements-dev.txt")
    for need in bounds + extras:
        assert [bound.operator for bound in need.specifier] == [">="], f"{need}: a wheel pins nothing"
        assert developed[canonicalize_name(need.name)] in need.specifier


def test_the_lock_has_the_pinned_versions_and_a_hash_for_each_package_but_pytorch() -> None:
    pinned, locked = pins("requirements.txt"), pins("requirements.lock")
    del pinned["torch"]
    assert pinned.items() <= locked.items()
    assert not [name for name in locked if name.startswith(("torch", "triton", "nvidia", "cuda"))]
    blocks = re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text(encoding="utf-8").strip())
    assert len(blocks) == len(requirements("requirements.lock")) > 70
    assert all("--hash=sha256:" in block for block in blocks)


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
