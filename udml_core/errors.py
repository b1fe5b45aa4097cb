"""Errors that a person can do something about."""


class UserError(Exception):
    """What was needed, what came, what to do: shown as it is, without a trace."""
