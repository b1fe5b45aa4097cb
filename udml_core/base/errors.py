"""Errors that a user can resolve."""

LONGEST_QUOTE = 200


class UserError(Exception):
    """An error that a user can resolve; its message is shown without a traceback.

    The message says what went wrong, which value was received and how to fix it.
    """


def quoted(value: object) -> str:
    """Return a value as messages quote it, with at most `LONGEST_QUOTE` letters."""
    text = repr(value)
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}…"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 image`, `2 images` and `3 classes`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "es" if noun.endswith("s") else "s")
