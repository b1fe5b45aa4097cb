"""Parts of the page Refine."""
