"""Parts of the view Several values."""
