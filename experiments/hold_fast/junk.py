"""Random values, tables and files that fit nowhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

TEXTS = ("", " ", "0", "-1", "1e309", "NaN", "null", "true", "²", "٣", "9" * 5000, "x" * 3000, "../../etc/passwd",
         "~root", "/dev/zero", "CON", "<script>alert(1)</script>", "'; DROP TABLE runs; --", "=1+1", "{{7*7}}", "%s%n",
         "a\0b", "a\nb", "\u202egnp.exe", "🏳️‍🌈", "e\u0301", "\ufeff", "\ud800", "[1, 2", "{\"a\": 1}", "1.2.3",
         "--help", "a=b=c", ":::", "hf-hub:a/b", "timm:none", "cuda:99", "whiten+average:k=0", "1..2",
         "~0123456789abcdef")
NUMBERS = (0, -1, 1, 2, 7, 2**31, 2**63, 2**80, -0.0, 0.5, 1e-300, 1e308, float("nan"), float("inf"), -float("inf"),
           True, False)


def junk(random: np.random.Generator, depth: int = 0) -> Any:
    """Return a random value of any type that JSON knows."""
    kind = int(random.integers(6 if depth < 3 else 4))
    if kind < 2:
        return TEXTS[int(random.integers(len(TEXTS)))]
    if kind < 4:
        return None if random.random() < 0.1 else NUMBERS[int(random.integers(len(NUMBERS)))]
    content = [junk(random, depth + 1) for _ in range(int(random.integers(4)))]
    return content if kind == 4 else {str(junk(random, 3)): value for value in content}


def word(value: Any) -> str:
    """Return a value as a word of a command or a name, which can hold any text in UTF-8 without a zero."""
    return str(value)[:3000].replace("\0", "").encode(errors="replace").decode()


def mutated(random: np.random.Generator, text: str) -> str:
    """Return a JSON text in which a value was changed or removed, or that is damaged."""
    if random.random() < 0.2:
        cut = int(random.integers(len(text)))
        return text[:cut] + str(random.choice(["", "\0", "}", "[" * 2000])) + text[cut + int(random.integers(9)):]
    content = json.loads(text)
    for _ in range(int(random.integers(1, 4))):
        level = content
        while isinstance(level, dict) and level:
            key = str(random.choice(list(level)))
            if isinstance(level[key], dict) and level[key] and random.random() < 0.6:
                level = level[key]
                continue
            if random.random() < 0.2:
                del level[key]
            else:
                level[key] = junk(random)
            break
    return json.dumps(content)


def junk_table(random: np.random.Generator, names: Sequence[str]) -> bytes:
    """Return a CSV file: rows of the expected columns with some cells replaced, in some encoding, or damaged."""
    columns = [["first", "second", "same"], ["image", "value"], ["image", "image"], ["first", "second"], []][
        int(random.integers(5))]
    rows = [columns]
    for _ in range(int(random.choice([0, 1, 3, len(names)]))):
        cells: list[Callable[[], str]] = [lambda: str(random.choice(names)), lambda: str(random.integers(len(names))),
                                          lambda: str(random.choice(["same", "different", "1", "0"])),
                                          lambda: str(junk(random))]
        width = max(1, len(columns) + int(random.integers(-1, 2)))
        rows.append([cells[int(random.integers(4))]() for _ in range(width)])
    quote = str(random.choice(["", '"', "'"]))
    text = str(random.choice(["\n", "\r\n", "\r"])).join(
        str(random.choice([",", ",", ",", ";", "\t"])).join(f"{quote}{cell}{quote}" for cell in row) for row in rows)
    content = text.encode(str(random.choice(["utf-8", "utf-8-sig", "utf-16", "latin-1"])), errors="replace")
    if random.random() < 0.2:
        cut = int(random.integers(len(content) + 1))
        content = content[:cut] + random.bytes(int(random.integers(1, 9))) + content[cut:]
    return content
