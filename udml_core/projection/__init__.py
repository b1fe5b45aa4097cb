"""Maps: embeddings laid out in the plane, and layouts snapped to grids of images."""
