"""Errors that a user can resolve, and the words of numbers and lists in messages."""

from collections.abc import Sequence

LONGEST_QUOTE, MOST_LISTED = 200, 20
UNITS = ("bytes", "kB", "MB", "GB", "TB")


class UserError(Exception):
    """An error that a user can resolve; its message is shown without a traceback.

    The message says what went wrong, which value was received and how to fix it.
    """


class InputError(UserError, ValueError, TypeError):
    """An unsuitable argument, such as an array: of the types that users of scikit-learn expect as well."""


def quoted(value: object) -> str:
    """Return a value as messages quote it, with at most `LONGEST_QUOTE` letters."""
    text = repr(value)
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}…"


def capitalized(words: str) -> str:
    """Return words at the beginning of a sentence; they may begin in bold letters of Markdown."""
    begin = len(words) - len(words.lstrip("*"))
    return f"{words[:begin]}{words[begin:begin + 1].upper()}{words[begin + 1:]}"


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence lists them, such as A, B and C."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def first_of(names: Sequence[str]) -> str:
    """Return names as a message shows them, at most `MOST_LISTED` of them; none if there is none."""
    left = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
    return (", ".join(names[:MOST_LISTED]) or "none") + left


def duration(seconds: float) -> str:
    """Return a duration such as 40 s, 3 min or 1 h 5 min."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 image`, `2 images` and `3 classes`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "es" if noun.endswith("s") else "s")


def byte_words(size: float) -> str:
    """Return a number of bytes as 12.3 MB."""
    for unit in UNITS:
        if size < 1000 or unit == UNITS[-1]:
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
