"""Parts of the view Instances."""
