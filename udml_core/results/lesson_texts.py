"""The texts of the course in every language.

A text stands in English where it is shown: in a field of a lesson such as `title`, in `say("…")` inside code, or in
`said("…")` inside Python. It is
its own key in `assets/lessons/course/de.json` and the like, which hold a translation of each text.
`python -m experiments.make_lessons texts` lists all texts in `en.json` and names missing translations.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from udml_core.base.paths import ASSETS

FOLDER = ASSETS / "lessons" / "course"
LIST = FOLDER / "en.json"
"""All texts of the course, by where they stand."""
FIELDS = ("title", "aim", "claim", "text", "choices", "why", "because", "touch", "see", "label", "words", "fails",
          "takeaway", "ask", "wrong", "stuck", "prerequisites", "term", "meaning", "xLabel", "yLabel")
"""Fields of lessons, figures and the guide whose values are texts."""
_STRING = r'"(?:[^"\\\n]|\\.)*"'
_TEXT = re.compile(rf'\bsay\(\s*({_STRING})|\b(?:{"|".join(FIELDS)}): ({_STRING})'
                   rf'|\b(?:choices|why): (\[\s*{_STRING}(?:,\s*{_STRING})*\s*\])')
_DECIMALS = re.compile(r"(?<![\w.*=:])(\d+)\.(\d+)(?!\w|\.\d)")
"""A number with a decimal point, but not in the name of a recipe or of joined encoders."""
_PERCENT = re.compile(r"(?<=[\d}]) %")
_WORD = re.compile(r"[^\W\d_]{2}")


def texts_of_script(script: str) -> Iterator[str]:
    """Yield the texts of a script in their order."""
    for said, of_field, choices in _TEXT.findall(script):
        yield from filter(_WORD.search, json.loads(choices) if choices else [json.loads(said or of_field)])


def texts_of_content(content: Any, name: str = "") -> Iterator[str]:
    """Yield the texts in the fields of an object, at any depth."""
    if isinstance(content, str) and name in FIELDS:
        yield content
    elif isinstance(content, Mapping):
        for inner, part in content.items():
            yield from texts_of_content(part, inner)
    elif isinstance(content, list):
        for part in content:
            yield from texts_of_content(part, name)


@cache
def translations() -> dict[str, dict[str, str]]:
    """Return, by language, the translation of each English text."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8"))
            for path in sorted(FOLDER.glob("??.json")) if path != LIST}


def translated(text: str, language: str | None) -> str:
    """Return a text in a language, in English if it has no translation; a number and its % stay on one line."""
    return _PERCENT.sub("\N{NO-BREAK SPACE}%", translations().get(language or "", {}).get(text, text))


@dataclass(frozen=True)
class Said:
    """A text of the course whose placeholders have values.

    Attributes:
        text: The text in English, such as "{count} of {all}".
        values: What replaces each placeholder: a name, a number as English writes it, or a text of its own.
    """

    text: str
    values: Mapping[str, str | Said]

    def words(self, language: str | None = None) -> str:
        """Return the text in a language, with its numbers as the language writes them."""
        def written(value: str | Said) -> str:
            if isinstance(value, Said):
                return value.words(language)
            return _DECIMALS.sub(r"\1,\2", value) if language in translations() else value  # English has none

        values = {name: written(value) for name, value in self.values.items()}
        return translated(self.text, language).format_map(values)


def said(text: str, **values: str | int | Said) -> Said:
    """Return a text of the course with values for its placeholders."""
    return Said(text, {name: value if isinstance(value, Said) else str(value) for name, value in values.items()})


def texts_of_module(source: str) -> Iterator[str]:
    """Yield the texts in `said("…")` of a Python module in their order."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "said" and (
                isinstance(node.args[0], ast.Constant)):
            yield str(node.args[0].value)


def texts_script(texts: Iterable[str]) -> str:
    """Return the script that gives texts in all languages to the toolkit of lessons."""
    english = [*dict.fromkeys(texts)]
    languages = {language: [known.get(text, text) for text in english] for language, known in translations().items()}
    content = {"fields": FIELDS, "english": english, "languages": languages}
    return f"const COURSE_TEXTS = {as_script(content)};\n"


def as_script(value: Any) -> str:
    """Return a value as JavaScript that may stand inside an HTML file."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")
