"""The list of mutants: changes within one line of the source that a test must notice."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Mutant:
    """A change within one line.

    Attributes:
        name: Unique name.
        file: Source file, relative to the checkout.
        kind: Kind of the mistake.
        old: Text that occurs exactly once in the file.
        new: Text in place of it.
        tests: Test files, or tests `FILE::NAME`, meant to catch the mutant.
        reason: Why no test can catch it; empty if a test must.
    """

    name: str
    file: str
    kind: str
    old: str
    new: str
    tests: list[str]
    reason: str = ""


def load() -> list[Mutant]:
    """Read the list of mutants."""
    text = Path(__file__).with_name("mutants.toml").read_text(encoding="utf-8")
    return [Mutant(**row) for row in tomllib.loads(text)["mutant"]]
