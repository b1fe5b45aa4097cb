"""Write the methods into README.md and docs/methods.md from the methods' cards.

    python -m experiments.method_tables
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from udml_core.methods import METHODS
from udml_core.methods.base import Card, Method

ROOT = Path(__file__).resolve().parents[1]
SUPERVISION = {"none": "no labels", "few": "few labels", "pairs": "pairs", "all": "all labels"}
IMPORTS = re.compile(r"(<!-- imports: .*? -->\n).*?(<!-- end of imports -->)", re.DOTALL)
TABLE = re.compile(r"(<!-- methods: .*? -->\n).*?(<!-- end of methods -->)", re.DOTALL)


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    head, *lines = [f"| {' | '.join(cells)} |\n" for cells in (header, *rows)]
    return "".join([head, "|---" * len(header) + "|\n", *lines])


def short_table(cards: list[Card]) -> str:
    """Return a table with a row for each kind of supervision."""
    return table(("learns from", "methods: name and title"), (
        (words, " · ".join(f"`{card.name}` {card.title}" for card in cards if card.supervision == supervision))
        for supervision, words in SUPERVISION.items()))


def sections(cards: list[Card]) -> str:
    """Return a section for each method, below a heading for each kind of supervision."""
    parts = [(f"## Methods that learn from {words}", [card for card in cards if card.supervision == supervision])
             for supervision, words in SUPERVISION.items()]
    return "".join(f"{heading}\n\n" + "".join(f"### {card.title}\n\n`{card.name}` · {card.paper}\n\n{card.summary}\n\n"
                                              for card in own) for heading, own in parts)


def import_lines(methods: Iterable[type[Method]]) -> str:
    """Return a block with the line that imports each method, with its name in commands."""
    lines = [(f"from {method.__module__} import {method.__name__}", method.card.name) for method in methods]
    width = max(len(line) for line, _ in lines)
    return "```python\n" + "".join(f"{line:{width}}  # {name}\n" for line, name in lines) + "```\n"


def documents(methods: Sequence[type[Method]]) -> dict[Path, str]:
    """Return the content of the documents with tables of methods, by path."""
    cards, imports = [method.card for method in methods], import_lines(methods)
    tables = {ROOT / "README.md": short_table(cards), ROOT / "docs" / "methods.md": sections(cards)}
    written = {path: TABLE.sub(lambda marks, text=text: marks[1] + text + marks[2],  # type: ignore[misc]
                               path.read_text(encoding="utf-8")) for path, text in tables.items()}
    return {path: IMPORTS.sub(lambda marks: marks[1] + imports + marks[2], text) for path, text in written.items()}


def main() -> None:
    """Write the tables."""
    for path, text in documents(METHODS).items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
