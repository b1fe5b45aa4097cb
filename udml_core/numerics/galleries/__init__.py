"""Search in galleries from a thousand to many millions of vectors."""

from udml_core.numerics.galleries.gallery import Gallery
from udml_core.numerics.galleries.manifest import Kind, Manifest, Recall

__all__ = ["Gallery", "Kind", "Manifest", "Recall"]
