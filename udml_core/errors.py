"""Errors that a user can resolve."""


class UserError(Exception):
    """An error that a user can resolve; its message is shown without a traceback.

    The message says what went wrong, which value was received and how to fix it.
    """
