"""Parts of the page Runs."""
