"""Maps: two-dimensional layouts of embeddings, and layouts snapped to image grids."""
