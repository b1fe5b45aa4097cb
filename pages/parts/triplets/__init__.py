"""Parts of the view Triplets."""
