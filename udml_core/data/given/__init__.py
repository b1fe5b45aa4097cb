"""Labels and pairs that users assign."""
