"""Parts of the pages Map and Grid."""
