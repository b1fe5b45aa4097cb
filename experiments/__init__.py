"""Commands that make the records in `assets/results`."""
