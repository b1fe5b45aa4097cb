"""Search a refined embedding that an analysis has stored with a run."""

from __future__ import annotations

from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from udml_core.analyses import Analysis, Scope, list_analyses
from udml_core.arrays import Array, Floats
from udml_core.data.dataset import Dataset, Report
from udml_core.data.features import embed_pixels
from udml_core.data.splits import make_split
from udml_core.errors import UserError
from udml_core.methods import Embedder
from udml_core.paths import dataset_cache
from udml_core.refinement import Recipe, Refiner, Step
from udml_core.refinement.linear import unit_rows
from udml_core.refinement.recipe import Average, Expand, Views
from udml_core.refinement.views import View, average_features, views_of_step
from udml_core.retrieval import Hit, Query, Retrieval, query_vector
from udml_core.runs import Run


def finished_refinements(run: Run, scope: Scope = "test") -> list[Analysis]:
    """List the finished refinements of a run's final embedding of a half, newest first."""
    return [analysis for analysis in list_analyses(run, "refine") if analysis.is_done()
            and analysis.spec().scope == scope and analysis.spec().frames == ("final",)]


def outside_recipe(recipe: Recipe) -> Recipe:
    """Return the recipe for queries from outside the gallery, without views.

    Averaging changes gallery images only. Without its own query expansion or a re-ranking, a recipe that averages
    therefore expands these queries with the same neighbors and weights.
    """
    steps: tuple[Step, ...] = recipe.without("views").steps
    averages = [step for step in steps if isinstance(step, Average) and step.k > 0]
    if averages and not recipe.find("queries") and not recipe.find("ranking"):
        steps = (*steps, Expand(k=averages[-1].k, alpha=averages[-1].alpha))
    return Recipe(steps)


def are_views_stored(run: Run, step: Views) -> bool:
    """Return whether the features of all views are stored, so that their average takes no pass of the encoder."""
    folder, key = dataset_cache(run.spec().fingerprint), run.spec().encoder.key
    stored = all((folder / f"{key}-{view.key}.npy").exists() for view in views_of_step(step) if view != View())
    return stored and not _is_encoder_trained(run.embedder_path)


@lru_cache(maxsize=64)
def _is_encoder_trained(path: Path) -> bool:
    return Embedder.load(path).trained


def view_embeddings(embedder: Embedder, dataset: Dataset, step: Views,
                    report: Report = lambda _share, _step: None) -> Floats:
    """Return the embeddings (n, l) of all images from features averaged over views.

    Args:
        embedder: The model. The features of its views are stored unless its encoder was trained.
        dataset: The data set.
        step: The views.
        report: Receives the progress.
    """
    views, is_frozen = views_of_step(step), not embedder.trained
    return embedder.apply_head(average_features(dataset, embedder.encoder, views, report, cached=is_frozen))


class RefinedRetrieval:
    """Search among a run's test images in a refined embedding.

    Attributes:
        retrieval: The search of the run.
        recipe: The recipe.
        result: The refinement.
    """

    def __init__(self, retrieval: Retrieval, analysis: Analysis) -> None:
        """Open a finished refinement.

        Raises:
            UserError: The analysis is not a finished refinement.
        """
        self.retrieval = retrieval
        self.recipe = Recipe.parse(analysis.spec().recipe)
        self.result = analysis.refined()

    @cached_property
    def _rows(self) -> Floats:
        """Unit embeddings (n, l) of all images before the steps, averaged over the views if the recipe has them."""
        step = self.recipe.find("views")
        if not isinstance(step, Views):
            return unit_rows(self.retrieval.run.embeddings("final"))
        if not are_views_stored(self.retrieval.run, step):
            raise UserError("A refinement with views can be searched with one test image at a time here, because the "
                            "features of the views are not stored. Choose a test image as the query.")
        return unit_rows(view_embeddings(Embedder.load(self.retrieval.run.embedder_path), self.retrieval.dataset, step))

    @cached_property
    def _refiner(self) -> Refiner:
        """The recipe fitted as in the analysis, for queries from outside."""
        spec = self.retrieval.spec
        split = make_split(self.retrieval.dataset, spec.split, spec.holds_out, spec.seed)
        training = None if split.name == "all" else self._rows[split.train]
        return Refiner(outside_recipe(self.recipe)).fit(self._rows[self.result.indices], training)

    def embed(self, image: Image.Image) -> Floats:
        """Return the unit embedding (l,) of a user's image before the steps, averaged over the views if any."""
        step = self.recipe.find("views")
        if not isinstance(step, Views):
            return unit_rows(self.retrieval.embed(image, "final")[None])[0]
        embedder = Embedder.load(self.retrieval.run.embedder_path)
        views = [view(image.convert("RGB"), embedder.encoder) for view in views_of_step(step)]
        features = embed_pixels(embedder.encoder, np.stack(views)).mean(axis=0, keepdims=True)
        with torch.inference_mode():
            return unit_rows(embedder.head(torch.from_numpy(features)).numpy())[0]

    def search(self, query: Query, k: int = 10, allowed: Array | None = None) -> list[Hit]:
        """Find the k test images nearest to a query, without the query images.

        A single test image has the ranking that the analysis stored. Every other query comes from outside: it is
        refined as the gallery is, and expanded, without changing the gallery.

        Args:
            query: The query; images from outside are unit embeddings (l,), see `embed`.
            k: Number of hits.
            allowed: Mask (n,) of the images that may be retrieved; all test images if None.

        Returns:
            Hits, nearest first; the similarity is the score of the refinement.
        """
        order, scores = self._ranking(query)
        kept = ~np.isin(order, query.indices) & (order >= 0)
        if allowed is not None:
            kept &= allowed[order]
        return [Hit(rank, int(index), float(max(0.0, 2 - 2 * score) ** 0.5), float(score),
                    self.retrieval.is_correct(query, int(index)))
                for rank, (index, score) in enumerate(zip(order[kept][:k], scores[kept][:k], strict=True), 1)]

    def _ranking(self, query: Query) -> tuple[Array, Array]:
        """Rank test images by their indices, with scores."""
        indices = self.result.indices
        if len(query.add) == 1 and not query.subtract and query.indices:
            row = int(np.searchsorted(indices, query.indices[0]))
            if row < len(indices) and indices[row] == query.indices[0]:
                return indices[self.result.neighbors[row]], self.result.scores[row]
        ranking = self._refiner.search(query_vector(query, self._rows, normalized=True)[None], len(indices))
        ranked = ranking.indices[0] >= 0
        return indices[ranking.indices[0][ranked]], ranking.scores[0][ranked]
