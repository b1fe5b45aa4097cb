"""Parts of the view Clusters."""
