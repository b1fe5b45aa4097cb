"""Parts of the page Triplets."""
