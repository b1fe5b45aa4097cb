"""Search one embedding of a run, stored or refined, in the same way."""

from __future__ import annotations

from dataclasses import dataclass

from PIL import Image

from udml_core.base.arrays import Array
from udml_core.runs.analyses import REFINED, find_analysis
from udml_core.runs.search.refined import RefinedRetrieval
from udml_core.runs.search.retrieval import Gallery, Hit, Query, Retrieval


@dataclass(frozen=True)
class EmbeddingSearch:
    """The search in one embedding of a run.

    Attributes:
        retrieval: The search of the run.
        name: `frozen`, `initial`, `final` or the number of an epoch; the id of the analysis for a refinement.
        refined: The refinement; None for an embedding that the run stores.
    """

    retrieval: Retrieval
    name: str
    refined: RefinedRetrieval | None = None

    def embed(self, image: Image.Image) -> Array:
        """Return the embedding (l,) of a user's image.

        Raises:
            UserError: The model of this embedding is not stored.
        """
        return self.retrieval.embed(image, self.name) if self.refined is None else self.refined.embed(image)

    def search(self, query: Query, k: int = 10, gallery: Gallery = "all", allowed: Array | None = None) -> list[Hit]:
        """Find the k images nearest to a query, without the query images; see `Retrieval.search`.

        A refinement has its own images only.
        """
        if self.refined is None:
            return self.retrieval.search(query, k, self.name, gallery, allowed)
        return self.refined.search(query, k, allowed, gallery)

    def searched(self, gallery: Gallery = "all", allowed: Array | None = None) -> Array:
        """Return the mask (n,) of the images that a search covers."""
        if self.refined is None:
            return self.retrieval.searched(self.name, gallery, allowed)
        return self.refined.searched(gallery, allowed)

    def describe_searched(self, gallery: Gallery = "all", allowed: Array | None = None) -> str:
        """Describe what a search covers, such as "2,933 of 5,902 images searched (test half)"."""
        if self.refined is None:
            return self.retrieval.describe_searched(self.name, gallery, allowed)
        return self.refined.describe_searched(gallery, allowed)


def open_search(retrieval: Retrieval, name: str) -> EmbeddingSearch:
    """Open the search in an embedding of a run.

    Args:
        retrieval: The search of the run.
        name: `frozen`, `initial`, `final`, the number of an epoch, or the id of a refinement.

    Raises:
        UserError: The run does not have this embedding.
    """
    if name.startswith(REFINED):
        return EmbeddingSearch(retrieval, name, RefinedRetrieval(retrieval, find_analysis(retrieval.run, name)))
    retrieval.stored(name)
    return EmbeddingSearch(retrieval, name)
