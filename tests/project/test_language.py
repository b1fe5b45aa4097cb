"""The words of the project: American spelling, standard terms, full sentences.

Every docstring, comment, message, caption and paragraph is checked against phrases that the project does not use.
"""

from __future__ import annotations

import ast
import gc
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PHRASES = [re.compile(rf"\b(?:{phrase})\b") for phrase in (
    # Spelling
    r"learnt", r"\w*colour\w*", r"\w*neighbour(?!hood (?:components|discovery))\w*", r"(?:un)?labelled|labelling",
    r"grey", r"centre[ds]?",
    r"(?:normal|optim|minim|maxim|initial|recogn|summar|organ|visual)is(?:e|es|ed|ing|ation)", r"modell", r"licence",
    r"behaviour", r"favour\w*", r"catalogue", r"sub-folders?",
    # Stand-ins for a subject
    r"whoever", r"whatever (?:it|he|they)", r"those (?:that|which|who|of|it|there)",
    r"(?:what|who) (?:is|was|were) told", r"(?:is|are|was) told", r"told (?:apart|from)", r"comes? by", r"lets? go",
    r"the say of", r"how dear", r"(?:is|are) to be", r"one of them that", r"somebody", r"nobody",
    r"a person|people who", r"where (?:there|it|they) (?:is|are) (?:some|one|none|no|any)",
    r"(?:go|goes|going|went) on (?:with|from|behind)", r"as (?:it|they) (?:is|are|was|were) (?:then|now)",
    r"near ones", r"far ones", r"of which there", r"by itself alone", r"each of these",
    r"what (?:a|the) (?:run|method|person|page|map)\w* (?:is|was|has|did)",
    r"what (?:it|they) (?:is|are|was|were|has|have|did|does)", r"anew", r"in (?:its|their) place",
    r"no other (?:is|image is)", r"taken (?:away|back|off|for)", r"alike",
)]
ANY = re.compile("|".join(phrase.pattern for phrase in PHRASES))
TEXTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")),
         *sorted((ROOT / "assets").rglob("*.md")), ROOT / "assets" / "results" / "findings.toml"]


def phrases_in(text: str) -> list[str]:
    """Return the phrases that occur in a text, in lower case: ignoring case in the pattern is three times slower."""
    lower = text.lower()
    return [match[0] for phrase in PHRASES for match in phrase.finditer(lower)] if ANY.search(lower) else []


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def sentences_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield a Python file's comments and strings, or another text's lines, by number."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(source.splitlines(), 1)
        return
    for number, line in enumerate(source.splitlines(), 1):
        if "#" in line:
            yield number, line[line.index("#"):]
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


NOT_A_VERB = {
    "a", "all", "an", "as", "by", "each", "every", "few", "for", "from", "half", "how", "in", "is", "it",
    "its", "no", "none", "of", "on", "one", "some", "that", "the", "their", "these", "they", "this", "those",
    "to", "two", "what", "when", "where", "whether", "which", "who", "why", "with"}
"""First words of a docstring that is not an imperative sentence."""


def declarative_docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield functions whose docstring does not begin with a verb.

    Properties and tests may begin with a noun."""
    if path.suffix != ".py":
        return
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("test_"):
            continue
        marks = {ast.unparse(mark).split("(")[0].split(".")[-1] for mark in node.decorator_list}
        text = ast.get_docstring(node)
        if text and not marks & {"property", "cached_property", "fixture"}:
            first = text.split(maxsplit=1)[0].strip(".,:;`").lower()
            if first in NOT_A_VERB or text.startswith("Raises"):
                yield node.lineno, f"docstring of {node.name} begins with '{first}', not with a verb"


def complaints(paths: list[Path]) -> list[str]:
    """Return the phrases and docstrings to rewrite, with file and line."""
    found = list[str]()
    for path in paths:
        problems = [(line, phrase) for line, text in sentences_of(path) for phrase in phrases_in(text)]
        found += [f"{path.relative_to(ROOT)}:{line}: {problem}"
                  for line, problem in [*problems, *declarative_docstrings(path)]]
        tree_of.cache_clear()
    return found


def own_files() -> list[Path]:
    """List the project's Python and browser files."""
    listed = subprocess.run(["git", "ls-files", "*.py", "assets/*.js", "docs/*.js"], cwd=ROOT, capture_output=True,
                            text=True, check=True)
    return [ROOT / name for name in listed.stdout.split() if (ROOT / name).exists()]


def test_no_text_uses_a_phrase_of_the_old_dialect() -> None:
    gc.disable()  # syntax trees are many objects, and each collection would visit those of all libraries too
    try:
        found = complaints([path for path in [*own_files(), *TEXTS] if path != Path(__file__)])
    finally:
        gc.enable()
    assert not found, f"{len(found)} phrases to rewrite:\n" + "\n".join(found[:60])


@pytest.mark.parametrize("text", ["The colour of a class", "those that climb together", "What was told", "labelled"])
def test_the_check_finds_a_phrase(text: str) -> None:
    assert phrases_in(text)


if __name__ == "__main__":
    print("\n".join(complaints([ROOT / name for name in sys.argv[1:]])))
