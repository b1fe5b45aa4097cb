"""Parts of the page Instances."""
