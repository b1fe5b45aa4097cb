"""Parts of the view Compare."""
