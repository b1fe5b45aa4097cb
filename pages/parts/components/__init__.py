"""Browser components."""
