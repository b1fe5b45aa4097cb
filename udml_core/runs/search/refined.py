"""Search a refined embedding that an analysis has stored with a run."""

from __future__ import annotations

from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from udml_core.base.arrays import Array, Floats, Integers
from udml_core.base.errors import UserError
from udml_core.base.paths import dataset_cache
from udml_core.data.dataset import Dataset, Report
from udml_core.data.features import embed_pixels
from udml_core.data.refinement_views import View, average_features, views_of_step
from udml_core.methods import Embedder
from udml_core.numerics.refinement import Recipe, Step
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.numerics.refinement.recipe import Average, Expand, Views
from udml_core.runs import Run
from udml_core.runs.analyses import REFINED, Analysis, Scope, find_analysis, list_analyses
from udml_core.runs.search.retrieval import (
    FROZEN,
    Gallery,
    Hit,
    Query,
    Retrieval,
    describe_searched,
    query_vector,
    searched_images,
)

if TYPE_CHECKING:
    from udml_core.numerics.refinement import Ranking, Refiner

PARTS: dict[Scope, str] = {"all": "", "test": "test half", "train": "training half",
                           "sample": "fixed sample of the test half"}
"""The images of a refinement in words, by its scope."""


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


def are_views_stored(run: Run, step: Views, frame: str = "final") -> bool:
    """Return whether the features of all views are stored, so that their average takes no pass of the encoder.

    Args:
        run: The run.
        step: The views.
        frame: The embedding: `frozen`, `initial` or `final`.
    """
    folder, key = dataset_cache(run.spec().fingerprint), run.spec().encoder.key
    stored = all((folder / f"{key}-{view.key}.npy").exists() for view in views_of_step(step) if view != View())
    path = run.initial_embedder_path if frame == "initial" else run.embedder_path
    return stored and (frame == FROZEN or not _is_encoder_trained(path))


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
    """Search among the images of a refinement, in its embedding.

    Attributes:
        retrieval: The search of the run.
        recipe: The recipe.
        scope: The images that are refined.
        frame: The embedding that is refined.
        result: The refinement.
    """

    def __init__(self, retrieval: Retrieval, analysis: Analysis) -> None:
        """Open a finished refinement.

        Raises:
            UserError: The analysis is not a finished refinement.
        """
        spec = analysis.spec()
        self.retrieval = retrieval
        self.recipe, self.scope, (self.frame, *_) = Recipe.parse(spec.recipe), spec.scope, spec.frames
        self.result = analysis.refined()

    @cached_property
    def _start(self) -> tuple[Floats, Integers]:
        """Unit embeddings (m, l) before the steps, and the indices (m,) of their images, ascending.

        They cover all images, averaged over the views if the recipe has them; of the frame's own images if it is
        an epoch or a refinement.
        """
        run, step = self.retrieval.run, self.recipe.find("views")
        if self.frame.startswith(REFINED):
            refined = find_analysis(run, self.frame).refined()
            return refined.embedding, refined.indices
        if isinstance(step, Views) and not are_views_stored(run, step, self.frame):
            raise self._missing("features of the views")
        if self.frame == FROZEN and FROZEN not in self.retrieval.stored_embeddings():
            raise self._missing("frozen features")
        stored = self.retrieval.stored(self.frame)
        if not isinstance(step, Views):
            return unit_rows(stored.rows), stored.indices
        embedder = self.retrieval.embedder(self.frame)
        return unit_rows(view_embeddings(embedder, self.retrieval.dataset, step)), stored.indices

    def _missing(self, what: str) -> UserError:
        return UserError("This refinement can be searched with one of its own images at a time here, for its "
                         f"{self.result.neighbors.shape[1]} nearest images, because the {what} are not stored. Choose "
                         f"one of the {len(self.result.indices):,} refined images as the query, fewer results or "
                         "fewer filters.")

    def _rows(self, images: Array) -> Floats:
        """Return unit embeddings (m, l) of images before the steps.

        Raises:
            UserError: The frame lacks an image.
        """
        rows, indices = self._start
        missing = np.setdiff1d(images, indices)
        if len(missing):
            raise UserError(f"Image {missing[0]} has no embedding in the frame {self.frame}, which this refinement "
                            f"starts from; it has {len(indices):,} images. Choose one of them as the query.")
        return rows[np.searchsorted(indices, images)]

    @cached_property
    def _refiner(self) -> Refiner:
        """The recipe fitted as in the analysis, for queries from outside."""
        return self._fitted(outside_recipe(self.recipe))

    @cached_property
    def _inside_refiner(self) -> Refiner:
        """The recipe fitted as in the analysis, for the refined images as queries."""
        recipe = self.recipe.without("views")
        return self._refiner if recipe == outside_recipe(self.recipe) else self._fitted(recipe)

    def _fitted(self, recipe: Recipe) -> Refiner:
        from udml_core.numerics.refinement import Refiner  # loads scikit-learn

        spec, training = self.retrieval.spec, None
        split = spec.halves(self.retrieval.dataset)
        if self.scope == "test" and split.name != "all":
            training = self._rows(split.train)
        return Refiner(recipe).fit(self._rows(self.result.indices), training=training)

    def embed(self, image: Image.Image) -> Floats:
        """Return the unit embedding (l,) of a user's image before the steps, averaged over the views if any.

        Raises:
            UserError: The model of the refined embedding is not stored.
        """
        if self.frame.startswith(REFINED):
            raise UserError("Your own images cannot be searched in a refinement of a refinement, which has no model. "
                            "Choose a refinement of the embedding before or after training.")
        step = self.recipe.find("views")
        if not isinstance(step, Views):
            return unit_rows(self.retrieval.embed(image, self.frame)[None])[0]
        embedder = self.retrieval.embedder(self.frame)
        views = [view(image.convert("RGB"), embedder.encoder) for view in views_of_step(step)]
        features = embed_pixels(embedder.encoder, np.stack(views)).mean(axis=0, keepdims=True)
        return unit_rows(embedder.apply_head(features))[0]

    def search(self, query: Query, k: int = 10, allowed: Array | None = None, gallery: Gallery = "all") -> list[Hit]:
        """Find the k refined images nearest to a query, without the query images.

        A single image of the refinement has the ranking that the analysis stored, which is recomputed if it holds
        fewer than k allowed images. Every other query comes from outside: it is refined as the gallery is, and
        expanded, without changing the gallery.

        Args:
            query: The query; images from outside are unit embeddings (l,), see `embed`.
            k: Number of hits; fewer if the refinement has fewer images.
            allowed: Mask (n,) of the images that may be retrieved; all refined images if None.
            gallery: Search all refined images, or only the test half.

        Returns:
            Hits, nearest first; the similarity is the score of the refinement.
        """
        searched = self.searched(gallery, allowed)
        order, scores = self._ranking(query, k, searched)
        kept = ~np.isin(order, query.indices) & searched[order]
        return [Hit(rank, int(index), float(max(0.0, 2 - 2 * score) ** 0.5), float(score),
                    self.retrieval.is_correct(query, int(index)))
                for rank, (index, score) in enumerate(zip(order[kept][:k], scores[kept][:k], strict=True), 1)]

    def describe_searched(self, gallery: Gallery = "all", allowed: Array | None = None) -> str:
        """Describe what a search covers: the refined images only."""
        part = "" if len(self.result.indices) == len(self.retrieval.dataset) else (
            f"{PARTS[self.scope]}, which the refinement covers")
        searched = self.searched(gallery, allowed)
        return describe_searched(searched, self.retrieval.split, gallery, allowed is not None, part)

    def searched(self, gallery: Gallery, allowed: Array | None) -> Array:
        """Return the mask (n,) of the images that a search covers."""
        return searched_images(self.result.indices, self.retrieval.split, gallery, allowed, len(self.retrieval.dataset))

    def _ranking(self, query: Query, k: int, searched: Array) -> tuple[Array, Array]:
        """Rank the refined images by their indices, with scores.

        Args:
            query: The query.
            k: Number of images that are needed.
            searched: Mask (n,) of the images that count.
        """
        indices = self.result.indices
        if len(query.add) == 1 and not query.subtract and query.indices:
            row = int(np.searchsorted(indices, query.indices[0]))
            if row < len(indices) and indices[row] == query.indices[0]:
                order = indices[self.result.neighbors[row]]
                needed = min(k, int(searched.sum()) - int(searched[query.indices[0]]))
                if searched[order].sum() >= needed:
                    return order, self.result.scores[row]
                return self._listed(self._inside_refiner.neighbors(len(indices), np.array([row])))
        return self._listed(self._refiner.search(self._vector(query)[None], len(indices)))

    def _listed(self, ranking: Ranking) -> tuple[Array, Array]:
        """Return the image indices and the scores of a ranking of one query."""
        indices = self.result.indices
        ranked = ranking.indices[0] >= 0
        return indices[ranking.indices[0][ranked]], ranking.scores[0][ranked]

    def _vector(self, query: Query) -> Array:
        """Return a query as one unit vector (l,).

        Raises:
            UserError: An index is unknown, the frame lacks an image, or the images cancel each other out.
        """
        rows, indices = self._start
        if len(indices) == len(self.retrieval.dataset):
            return query_vector(query, rows, normalized=True)
        self._rows(np.array(query.indices, dtype=np.int64))

        def of_rows(images: tuple[int | Array, ...]) -> tuple[int | Array, ...]:
            return tuple(int(np.searchsorted(indices, image)) if isinstance(image, int) else image for image in images)

        return query_vector(Query(of_rows(query.add), of_rows(query.subtract)), rows, normalized=True)
