"""No two modules import each other, directly or through a chain, at their head or inside a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Imports = Mapping[str, frozenset[tuple[str, str]]]
"""By module: each imported module and name; the name is empty where the module itself is imported."""


def read_imports(root: Path, *packages: str) -> Imports:
    """Read the imports of all modules, for a lazy face from its stub."""
    imports = dict[str, frozenset[tuple[str, str]]]()
    for path in sorted(path for package in packages for path in (root / package).rglob("*.py*")):
        if path.suffix not in (".py", ".pyi"):
            continue
        parts = path.relative_to(root).with_suffix("").parts
        is_face = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_face else parts)
        found = imports_of(ast.parse(path.read_text("utf-8")), parts[:-1])
        imports[module] = imports.get(module, frozenset()) | frozenset(found)
    return imports


def imports_of(tree: ast.Module, package: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the imports of a module in a package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            source = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((source, alias.name) for alias in node.names)


def definer(imports: Imports, faces: frozenset[str], module: str, name: str) -> str:
    """Return the module that defines a name, which a face may import from it."""
    submodule = f"{module}.{name}"
    if submodule in imports:
        return submodule
    origins = [source for source, imported in imports[module] if imported == name and source in imports]
    return definer(imports, faces, origins[0], name) if origins and module in faces else module


def circle(imports: Imports) -> list[str]:
    """Return a circle of modules, or an empty list."""
    faces = frozenset(source.rpartition(".")[0] for source in imports)
    graph = {module: {definer(imports, faces, source, name) for source, name in named if source in imports} - {module}
             for module, named in imports.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def test_no_modules_import_each_other() -> None:
    imports = read_imports(ROOT, "udml_core", "pages")
    assert len(imports) > 400
    found = circle(imports)
    assert not found, "These modules import each other: " + " → ".join(found)


@pytest.mark.parametrize("second", [
    "from house.first import open_door", "def open_window():\n    from house import open_door",
    "from . import open_door", "from .first import open_door", "import house.first", "import house.third"])
def test_a_circle_is_found_at_the_head_in_a_function_and_through_a_face(second: str, tmp_path: Path) -> None:
    house = tmp_path / "house"
    house.mkdir()
    (house / "__init__.py").write_text("from house.first import open_door\n")
    (house / "first.py").write_text("def open_door():\n    from house.second import open_window\n")
    (house / "third.py").write_text("from house import first\n")
    (house / "second.py").write_text("open_window = print\n")
    assert not circle(read_imports(tmp_path, "house"))
    (house / "second.py").write_text(second)
    assert {"house.first", "house.second"} <= set(circle(read_imports(tmp_path, "house")))
