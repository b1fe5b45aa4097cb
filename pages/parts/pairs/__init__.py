"""Parts of the page Pairs."""
