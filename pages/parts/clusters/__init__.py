"""Parts of the page Clusters."""
