"""Search in galleries from a thousand to many millions of vectors."""

from udml_core.galleries.gallery import Gallery
from udml_core.galleries.manifest import Kind, Manifest, Recall

__all__ = ["Gallery", "Kind", "Manifest", "Recall"]
