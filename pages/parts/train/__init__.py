"""Parts of the page Lab."""
