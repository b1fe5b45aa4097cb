"""Names of judges with special rules, in a file that imports nothing: the command line reads it for its help."""

WEAK = ("pixels",)
"""Judges that need another one beside them: they see color and place, hardly content."""
