"""The documents of the project: their files, blocks of code, spans of code and links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[2]
SHORT = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")
DOCUMENTS = [*(ROOT / name for name in SHORT), *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of code.

    Attributes:
        language: The word behind the opening fence.
        code: The code without its indentation.
        before: The text of the document above it.
    """

    language: str
    code: str
    before: str


def blocks(text: str) -> list[Block]:
    """Return the blocks of code in a document."""
    return [Block(match[2], dedent(match[3]), text[:match.start()]) for match in BLOCK.finditer(text)]


def prose(text: str) -> str:
    """Return a document without its blocks of code."""
    return BLOCK.sub("", text)


def spans(text: str) -> list[str]:
    """Return the spans of code in the prose, each on one line."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose(text))]


def links(text: str) -> list[str]:
    """Return the targets of the links in the prose."""
    return re.findall(r"\]\(([^()\s]+)\)", prose(text))


def anchors(text: str) -> set[str]:
    """Return the anchors of a document's headings."""
    titles = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
