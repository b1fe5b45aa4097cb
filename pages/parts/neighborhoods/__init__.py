"""Parts of the view Neighborhoods."""
