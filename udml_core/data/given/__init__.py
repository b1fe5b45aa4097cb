"""Labels and pairs that users give."""
