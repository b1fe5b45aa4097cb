"""Parts of the pages Labels and Labels & affinity."""
