"""Maps: choosing a layout, coloring and drawing its points, and what a page shows around them."""
