"""Parts of the view Pairs."""
