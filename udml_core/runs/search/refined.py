"""Refined embeddings that analyses have stored with a run, and the search in them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from udml_core.base.arrays import Array, Floats, Integers, rows_of
from udml_core.base.errors import UserError
from udml_core.base.paths import dataset_cache
from udml_core.data.dataset import Dataset, Report
from udml_core.data.refinement_views import View, average_features, views_of_step
from udml_core.exploration.plain_names import new_image_words
from udml_core.methods import Embedder
from udml_core.methods.model import Picture
from udml_core.numerics.refinement import Recipe, Step
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.numerics.refinement.recipe import Average, Expand, Views
from udml_core.results.embedding_words import words_of
from udml_core.runs import Run
from udml_core.runs.analyses import REFINED, Analysis, AnalysisSpec, Refined, Scope, finished_analyses
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.search.frame import Frame, Nearest
from udml_core.runs.search.names import FROZEN
from udml_core.runs.search.query import Query

if TYPE_CHECKING:
    from udml_core.numerics.refinement import Ranking, Refiner


def finished_refinements(run: Run, scope: Scope = "test") -> list[Analysis]:
    """List the finished refinements of a run's final embedding of a half, newest first."""
    return [analysis for analysis in finished_analyses(run, Refinement)
            if analysis.spec().scope == scope and analysis.spec().frames == ("final",)]


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


def describe_refinement(recipe: Recipe, result: Refined, scope: Scope, is_whole: bool = False) -> str:
    """Describe a refinement and what it means for queries from outside.

    Args:
        recipe: The recipe.
        result: The refinement.
        scope: The images that are refined.
        is_whole: Whether the run has no halves, so that its images are not called test images.
    """
    images = {"test": "test images", "train": "training images"}.get("" if is_whole else scope, "images")
    return gallery_words(recipe, len(result.indices), images)


def gallery_words(recipe: Recipe, count: int, images: str, how: str = "") -> str:
    """Return from which images a refinement is computed, and what it means for new images, in a sentence or two.

    Args:
        recipe: The recipe.
        count: Number of refined images.
        images: The images in words.
        how: How they are refined, such as `without labels`; empty to leave it out.
    """
    at_hand = any(step.sees == "gallery" for step in recipe.steps)
    said = ", ".join(filter(None, [f"computed from {count:,} {images}{' that change each other' * at_hand}", how]))
    expanded = f" It is expanded by its nearest {images}." if outside_recipe(recipe).find("queries") else ""
    return f"{said}: {new_image_words(at_hand)}.{expanded}"


def stored_features_path(run: Run) -> Path:
    """Return the path of the frozen features of a run's data set."""
    return dataset_cache(run.spec().fingerprint) / f"{run.spec().encoder.key}.npy"


def are_views_stored(run: Run, step: Views, frame: str = "final") -> bool:
    """Return whether the features of all views are stored, so that their average takes no pass of the encoder.

    Args:
        run: The run.
        step: The views.
        frame: The embedding: `frozen`, `initial` or `final`.
    """
    cache = dataset_cache(run.spec().fingerprint)
    stored = all((cache / f"{source.key}-{view.key}.npy").exists() for source in run.spec().encoder.sources
                 for view in views_of_step(step) if view != View())
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


class RefinedIndex:
    """A search index over the images of a refinement.

    A single image of the refinement has the ranking that the analysis stored, which is recomputed if it holds fewer
    than k candidates. Every other query comes from outside: it is refined as the gallery is, and expanded, without
    changing the gallery.

    Attributes:
        recipe: The recipe.
        start: The embedding that is refined.
        result: The refinement.
        measure: The shown number in words.
        accuracy: Empty, because the search is exact.
    """

    measure, accuracy = "score of the refinement", ""

    def __init__(self, run: Run, spec: AnalysisSpec, result: Refined, dataset: Callable[[], Dataset],
                 start: Callable[[], Frame], training: Array | None = None) -> None:
        """Open a finished refinement.

        Args:
            run: The run.
            spec: The request.
            result: The refinement.
            dataset: Loads the data set.
            start: Opens the embedding that is refined.
            training: Indices (t,) of the images on which whitening and reduction are fitted; the training half if None.
        """
        self.recipe, self.result, self._training = Recipe.parse(spec.recipe), result, training
        self._run, self._spec, self._dataset, self._open_start = run, spec, dataset, start
        (self._name,) = spec.frames

    @cached_property
    def start(self) -> Frame:
        if self._name == FROZEN and not stored_features_path(self._run).exists():
            raise self._missing(words_of(FROZEN).sentence)
        return self._open_start()

    @cached_property
    def _rows(self) -> Floats:
        """Unit embeddings (m, l) of the start's images before the steps, averaged over the views if there are any."""
        step = self.recipe.find("views")
        if not isinstance(step, Views):
            return unit_rows(self.start.rows)
        if not are_views_stored(self._run, step, self._name):
            raise self._missing("features of the views")
        return unit_rows(view_embeddings(self.start.model.embedder, self._dataset(), step))

    def _missing(self, what: str) -> UserError:
        return UserError("This refinement can be searched with one of its own images at a time here, for its "
                         f"{self.result.neighbors.shape[1]} nearest images, because the {what} are not stored. Choose "
                         f"one of the {len(self.result.indices):,} refined images as the query, fewer results or "
                         "fewer filters.")

    def _take(self, images: Array) -> Floats:
        """Return unit embeddings (m, l) of images before the steps.

        Raises:
            UserError: The refined embedding lacks an image.
        """
        rows = rows_of(self.start.indices, images)
        if (rows < 0).any():
            raise UserError(f"Image {min(images[rows < 0])} has no embedding in the frame {self._name}, which this "
                            f"refinement starts from; it has {len(self.start.indices):,} images. Choose one of them as "
                            "the query.")
        return self._rows[rows]

    @cached_property
    def _refiner(self) -> Refiner:
        """The recipe fitted as in the analysis, for queries from outside."""
        return self._fitted(outside_recipe(self.recipe))

    @property
    def embedding(self) -> Floats:
        """Refined unit rows (m, l) of the images, computed at the first use."""
        return self._inside_refiner.embedding_

    @cached_property
    def _inside_refiner(self) -> Refiner:
        """The recipe fitted as in the analysis, for the refined images as queries."""
        recipe = self.recipe.without("views")
        return self._refiner if recipe == outside_recipe(self.recipe) else self._fitted(recipe)

    def _fitted(self, recipe: Recipe) -> Refiner:
        from udml_core.numerics.refinement import Refiner  # loads scikit-learn

        split, training = self._run.spec().halves(self._dataset()), None
        if self._spec.scope == "test" and split.name != "all":
            training = self._take(split.train if self._training is None else self._training)
        return Refiner(recipe).fit(self._take(self.result.indices), training=training)

    def embed(self, image: Picture) -> Floats:
        """Return the unit embedding (l,) of a user's image before the steps, averaged over the views if any.

        Raises:
            UserError: The model of the refined embedding is not stored.
        """
        if self._name.startswith(REFINED):
            raise UserError("Your own images cannot be searched in a refinement of a refinement, which has no model. "
                            "Choose a refinement of the embedding before or after training.")
        step = self.recipe.find("views")
        if not isinstance(step, Views):
            return unit_rows(self.start.index.embed(image)[None])[0]
        return unit_rows(self.start.model.embed(image, views_of_step(step))[None])[0]

    def nearest(self, query: Query, k: int, candidates: Array) -> Nearest:
        """Find the refined images nearest to a query.

        Raises:
            UserError: The refined embedding lacks a query image, or features that the query needs are not stored.
        """
        order, scores = self._ranking(query, k, candidates)
        kept = candidates[order]
        order, scores = order[kept][:k], scores[kept][:k]
        return Nearest(order.tolist(), [float(max(0.0, 2 - 2 * score) ** 0.5) for score in scores],
                       [float(score) for score in scores])

    def nearest_each(self, images: Integers, candidates: Array) -> Integers:
        """Find the nearest candidate (q,) of each image (q,), in the rankings that the analysis stored if they suffice.

        Raises:
            UserError: A stored ranking has no candidate, and features to repeat it are not stored.
        """
        ranked = self.result.neighbors[rows_of(self.result.indices, images)]
        found = self.result.indices[ranked]
        kept = (ranked >= 0) & candidates[found] & (found != images[:, None])
        nearest = found[np.arange(len(images)), kept.argmax(axis=1)]
        for position in np.flatnonzero(~kept.any(axis=1)).tolist():
            image, others = int(images[position]), candidates.copy()
            others[image] = False
            nearest[position] = self.nearest(Query((image,)), 1, others).images[0]
        return nearest

    def neighbors(self, images: Integers, k: int, candidates: Array) -> tuple[Integers, Floats]:
        """Return the neighbors in the rankings that the analysis stored."""
        rows = rows_of(self.result.indices, images)
        ranked, scores = self.result.neighbors[rows, :k], self.result.scores[rows, :k]
        found = self.result.indices[ranked]
        return (np.where((ranked >= 0) & candidates[found], found, -1),
                np.sqrt(np.maximum(0.0, 2 - 2 * scores.astype(np.float64))))

    def _ranking(self, query: Query, k: int, candidates: Array) -> tuple[Array, Array]:
        """Rank the refined images by their indices, with scores."""
        indices = self.result.indices
        if len(query.add) == 1 and not query.subtract and query.indices:
            row = int(rows_of(indices, query.indices[0]))
            if row >= 0:
                order = indices[self.result.neighbors[row]]
                if candidates[order].sum() >= min(k, int(candidates.sum())):
                    return order, self.result.scores[row]
                return self._listed(self._inside_refiner.neighbors(len(indices), np.array([row])))
        return self._listed(self._refiner.search(self._vector(query)[None], len(indices)))

    def _listed(self, ranking: Ranking) -> tuple[Array, Array]:
        """Return the image indices and the scores of a ranking of one query."""
        ranked = ranking.indices[0] >= 0
        return self.result.indices[ranking.indices[0][ranked]], ranking.scores[0][ranked]

    def _vector(self, query: Query) -> Array:
        """Return a query as one unit vector (l,).

        Raises:
            UserError: The refined embedding lacks an image, or the images cancel each other out.
        """
        self._take(np.array(query.indices, dtype=np.int64))
        return query.vector(self._rows, self.start.indices, normalized=True)
