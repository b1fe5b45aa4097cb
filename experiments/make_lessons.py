"""Compute the data of the lessons in assets/lessons, and list the texts of the course.

    python -m experiments.make_lessons
    python -m experiments.make_lessons epsilon
    python -m experiments.make_lessons texts

Each module of `experiments.lessons` has a function of its own name that computes the data file of this name.
Everything comes from `udml_core` and from data that come with the app, with fixed seeds.
`texts` writes `course/en.json`, brings the translations into its order, and names the texts that lack a translation.
"""

from __future__ import annotations

import argparse
import base64
import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import numpy as np

from experiments import lessons
from experiments.lessons.epsilon import digits
from udml_core.base.arrays import Array
from udml_core.base.files import replace_text
from udml_core.results.lesson_texts import LIST, translations
from udml_core.results.lessons import FOLDER, course_texts

TEXTS = "texts"


def makers() -> dict[str, Callable[[], dict[str, Any]]]:
    """Return, by name of the data file, the function that computes its content."""
    names = [module.name for module in iter_modules(lessons.__path__)]
    return {"digits": digits} | {name: getattr(import_module(f"experiments.lessons.{name}"), name) for name in names}


def encoded(value: Any) -> Any:
    """Return content as JSON takes it: arrays as bytes in base64, floats with six digits."""
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.name, "shape": value.shape, "base64": base64.b64encode(_compact(value)).decode()}
    if isinstance(value, dict):
        return {name: encoded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [encoded(part) for part in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _compact(value: Array) -> bytes:
    if value.dtype.name not in ("float32", "int32", "int16", "uint8"):
        raise TypeError(f"A lesson's array must be float32, int32, int16 or uint8, got {value.dtype}.")
    return np.ascontiguousarray(value).tobytes()


def list_texts() -> None:
    """Write the list of all texts, and the languages in its order; print what is missing or unused."""
    _write_json(LIST, course_texts())
    texts = [*dict.fromkeys(text for place in course_texts().values() for text in place)]
    for language, known in translations().items():
        unused = [text for text in known if text not in texts]
        _write_json(LIST.with_stem(language), {text: known[text] for text in (*texts, *unused) if text in known})
        for text in texts:
            if text not in known:
                print(f"{language}.json lacks: {text}")
        for text in unused:
            print(f"{language}.json translates a text that is not in the course: {text}")
    print(f"{len(texts)} texts, in {', '.join(('en', *translations()))}")


def _write_json(path: Path, value: Any) -> None:
    replace_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def main() -> None:
    """Write the named data files, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = makers()
    parser.add_argument("names", nargs="*", choices=[*known, TEXTS, []], help="data files; all by default")
    for name in parser.parse_args().names or known:
        if name == TEXTS:
            list_texts()
            continue
        text = json.dumps(encoded(known[name]()), separators=(",", ":"), ensure_ascii=False)
        replace_text(FOLDER / f"{name}.json", text + "\n")
        print(f"{name}.json: {len(text) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
