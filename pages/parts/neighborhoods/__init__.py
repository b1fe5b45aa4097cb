"""Parts of the page Neighborhoods."""
