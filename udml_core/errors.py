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
