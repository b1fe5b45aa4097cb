"""Parts of the page Sweeps."""
