"""Search in galleries from a thousand to many millions of vectors, stored in a folder.

    gallery = build_gallery(vectors, "index")
    squared, ids = gallery.search(queries, 10)
    gallery = add_vectors("index", ids, vectors)
    gallery = remove_vectors("index", ids)
"""

from udml_core.numerics.galleries.build import build_gallery
from udml_core.numerics.galleries.changes import add_vectors, rebuild_advice, remove_vectors
from udml_core.numerics.galleries.gallery import StoredGallery

__all__ = ["StoredGallery", "add_vectors", "build_gallery", "rebuild_advice", "remove_vectors"]
