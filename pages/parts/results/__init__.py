"""Parts of the page Results."""
