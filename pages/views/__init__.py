"""What the pages show: one module for each view, which a page opens by its name."""
