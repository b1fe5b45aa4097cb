"""Names of folders and files that every system takes as they are, and that never lead out of their folder."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath

from udml_core.base.spreadsheets import FORMULA

FORBIDDEN = re.compile(r'[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff/\\:*?"<>|]')
"""Signs that some system does not take in a name, and invisible signs."""
RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])( *\..*)?", re.IGNORECASE)
"""Names that Windows keeps for devices."""
MOST_BYTES = 120
"""Longest name in bytes: file systems take 255, encrypted ones 143, and a number may follow."""
LONGEST = 255
"""Longest name in bytes that file systems take."""
EMPTY = "unnamed class"


def safe_name(text: str, suffix: str = "") -> str:
    """Return a name that every system takes.

    Args:
        text: Any text, such as the name of a class.
        suffix: What the name ends in, such as `.jpg`; it is not shortened.
    """
    composed = unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode())
    cleaned = FORBIDDEN.sub("_", composed).strip(" ")
    cleaned = re.sub(r"^\.+", "_", cleaned).rstrip(". ")
    if RESERVED.fullmatch(cleaned + suffix) or FORMULA.match(cleaned + suffix):  # CSV would change a formula
        cleaned = f"_{cleaned}"
    kept = cleaned.encode()[: MOST_BYTES - len(suffix.encode())].decode(errors="ignore").rstrip(". ")
    return (kept or EMPTY) + suffix


def stays_inside(name: str) -> bool:
    """Return whether a name, such as an export of an earlier version gave, is that of a visible file in its folder."""
    return bool(name) and not FORBIDDEN.search(name) and not name.startswith(".") and len(name.encode()) <= LONGEST


def key_of(name: str) -> str:
    """Return what two names have in common that are one name on some system: case and form of letters do not differ."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKD", name).casefold())


class Names:
    """Names in one folder, each given once on every system."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        """Begin with names that are not given.

        Args:
            taken: The names.
        """
        self._taken = {key_of(name) for name in taken}

    def give(self, text: str, suffix: str = "") -> str:
        """Return a safe name that was not given before; a number tells equal names from each other."""
        name, number = safe_name(text, suffix), 1
        while key_of(name) in self._taken:
            number += 1
            name = safe_name(text, f" ({number}){suffix}")
        self._taken.add(key_of(name))
        return name

    def give_file(self, path: str) -> str:
        """Return a safe name for the last part of a path, with its suffix."""
        last = PurePosixPath(path.replace("\\", "/")).name
        stem, dot, ending = last.rpartition(".")
        if not stem or not re.fullmatch(r"[A-Za-z0-9]{1,8}", ending):
            return self.give(last)
        return self.give(stem, dot + ending)
