"""Parts of the view Refine."""
