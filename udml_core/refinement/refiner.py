"""Refine embeddings by a recipe, scikit-learn style.

    refiner = Refiner("whiten+average:k=10,times=2").fit(gallery)
    refiner.transform(gallery)         # the refined gallery
    refiner.neighbors(10)              # the gallery's own images as queries
    refiner.search(queries, 10)        # queries from outside the gallery
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from udml_core.arrays import Array, Floats, Integers
from udml_core.errors import UserError
from udml_core.refinement.averaging import average_neighbors, expand_queries
from udml_core.refinement.diffusion import DiffusionRanking
from udml_core.refinement.linear import Linear, reduction, unit_rows, whitening
from udml_core.refinement.recipe import Average, Diffuse, Expand, Recipe, Reduce, Rerank, Whiten
from udml_core.refinement.reciprocal import ReciprocalRanking
from udml_core.refinement.search import nearest_unit

Protocol = Literal["inductive", "gallery", "transductive"]
"""Which images the steps have seen: only the training half; also the unlabeled gallery, but not the queries; or the
gallery with the queries in it."""
Report = Callable[[float, str], None]


@dataclass(frozen=True)
class Ranking:
    """The gallery images nearest to each query.

    Attributes:
        indices: Gallery indices (q, k) int64, nearest first; −1 beyond the last ranked image.
        scores: Scores (q, k) float32, larger for nearer images: the cosine similarity, one minus the distance of a
            re-ranking, or the value of a diffusion.
        protocol: Which images the steps have seen.
    """

    indices: Integers
    scores: Floats
    protocol: Protocol


class Refiner:
    """A recipe fitted to an unlabeled gallery.

    No step receives labels. The images that each step has seen are in `seen_`.

    Args:
        recipe: The recipe, or its text.

    Attributes:
        recipe_: The recipe.
        embedding_: Refined unit rows (n, l) float32 of the gallery.
        seen_: For each step its name, and "nothing", "training half" or "gallery".
    """

    def __init__(self, recipe: Recipe | str = "whiten+average:k=10,times=2") -> None:
        self.recipe = recipe

    def fit(self, gallery: Array, training: Array | None = None,
            report: Report = lambda _share, _step: None) -> Self:
        """Fit the steps in their order.

        Args:
            gallery: Embeddings (n, d), n ≥ 2, or features of several views (n, v, d) if the recipe has `views`.
            training: Embeddings (m, d) or (m, v, d) of the training half, on which whitening and reduction are then
                fitted; without them they are fitted on the gallery.
            report: Receives the progress.

        Raises:
            UserError: The arrays do not suit the recipe.
        """
        self.recipe_ = Recipe.parse(self.recipe) if isinstance(self.recipe, str) else self.recipe
        rows = self._start(gallery, "gallery")
        if len(rows) < 2:
            raise UserError(f"A gallery must have at least 2 images; got {len(rows)}. Add images.")
        fitted_on = None if training is None else self._start(training, "training half")
        self._given = gallery
        self._maps: list[Linear] = []
        self._ranker: ReciprocalRanking | DiffusionRanking | None = None
        self._expand: Expand | None = None
        self.seen_: list[tuple[str, str]] = []
        steps = self.recipe_.steps
        last_fit = max((number for number, step in enumerate(steps) if isinstance(step, (Whiten, Reduce))), default=-1)
        for number, step in enumerate(steps):
            report(number / len(steps), step.title.lower())
            on = "gallery" if step.sees == "gallery" or fitted_on is None else "training half"
            self.seen_.append((step.name, "nothing" if step.sees == "nothing" else on))
            match step:
                case Whiten() | Reduce():
                    linear = _fit_linear(step, rows if fitted_on is None else fitted_on)
                    self._maps.append(linear)
                    rows = linear(rows)
                    fitted_on = None if fitted_on is None else linear(fitted_on)
                case Average():
                    rows = average_neighbors(rows, step.k, step.times, step.alpha)
                    if fitted_on is not None and number < last_fit:
                        # A later step is fitted on the training half, which therefore needs the same averages.
                        fitted_on = average_neighbors(fitted_on, step.k, step.times, step.alpha)
                case Expand():
                    self._expand = step
                case Rerank():
                    self._ranker = ReciprocalRanking(rows, **step.model_dump())
                case Diffuse():
                    self._ranker = DiffusionRanking(rows, **step.model_dump())
        self.embedding_ = rows
        report(1.0, "refined")
        return self

    def transform(self, rows: Array) -> Floats:
        """Return refined unit rows (q, l).

        The fitted gallery itself returns `embedding_`. Other rows are queries from outside: they pass through whitening
        and reduction, and are expanded if the recipe has `expand`. Averaging changes gallery images only.

        Args:
            rows: The gallery, or embeddings (q, d) or features of several views (q, v, d).
        """
        if rows is self._given or (rows.shape == self._given.shape and np.array_equal(rows, self._given)):
            return self.embedding_
        return self._queries(self._start(rows, "queries"))

    def fit_transform(self, gallery: Array, training: Array | None = None) -> Floats:
        """Fit, and return the refined gallery (n, l)."""
        return self.fit(gallery, training).embedding_

    def neighbors(self, k: int) -> Ranking:
        """Rank the gallery for each of its own images, without the image itself.

        Query expansion replaces the image by its mean with its k nearest other images; before a re-ranking it applies
        to queries from outside only.
        """
        k = min(k, len(self.embedding_) - 1)
        protocol = self.protocol(inside=True)
        if self._ranker is not None:
            return Ranking(*self._ranker.neighbors(k), protocol)
        if self._expand is None or self._expand.k == 0:
            distances, indices = nearest_unit(self.embedding_, k)
            return Ranking(indices, 1 - distances / 2, protocol)
        queries = average_neighbors(self.embedding_, self._expand.k, 1, self._expand.alpha)
        distances, indices = nearest_unit(self.embedding_, k + 1, queries)
        kept = indices != np.arange(len(indices))[:, None]
        kept[kept.all(axis=1), -1] = False
        return Ranking(indices[kept].reshape(-1, k), 1 - distances[kept].reshape(-1, k) / 2, protocol)

    def search(self, queries: Array, k: int) -> Ranking:
        """Rank the gallery for queries from outside, which change nothing in the gallery.

        Args:
            queries: Embeddings (q, d), or features of several views (q, v, d).
            k: Number of images to return for each query; the whole gallery if it has fewer.
        """
        rows = self._queries(self._start(queries, "queries"))
        k = min(k, len(self.embedding_))
        if self._ranker is not None:
            return Ranking(*self._ranker.search(rows, k), self.protocol(inside=False))
        distances, indices = nearest_unit(self.embedding_, k, rows)
        return Ranking(indices, 1 - distances / 2, self.protocol(inside=False))

    def protocol(self, inside: bool) -> Protocol:
        """Return which images a ranking has seen.

        Args:
            inside: Whether the queries are images of the gallery.
        """
        if all(images != "gallery" for _, images in self.seen_):
            return "inductive"
        return "transductive" if inside else "gallery"

    def _queries(self, rows: Floats) -> Floats:
        for linear in self._maps:
            rows = linear(rows)
        if self._expand is not None:
            rows = expand_queries(rows, self.embedding_, self._expand.k, self._expand.alpha)
        return rows

    def _start(self, rows: Array, name: str) -> Floats:
        """Return unit rows, averaged over the views if there are several."""
        rows = np.asarray(rows)
        expected = 3 if self.recipe_.find("views") else 2
        if rows.ndim != expected:
            shape = "(n, v, d), the features of several views" if expected == 3 else "(n, d)"
            raise UserError(f"The {name} must have the shape {shape}; got {rows.shape}. "
                            + ("Remove `views` from the recipe, or compute the features of the views."
                               if expected == 3 else "Add `views` to the recipe to average the features of views."))
        if not np.isfinite(rows).all():
            raise UserError(f"The {name} must have finite values; got {(~np.isfinite(rows)).sum():,} that are not "
                            "finite. Remove these images.")
        return unit_rows(rows.mean(axis=1, dtype=np.float32) if expected == 3 else rows)


def _fit_linear(step: Whiten | Reduce, rows: Floats) -> Linear:
    if isinstance(step, Reduce):
        return reduction(rows, step.dimension)
    if step.covariance == "neighbors" and len(rows) <= step.k:
        raise UserError(f"`whiten` needs more images than k; got {len(rows)} images and k={step.k}. Lower k.")
    return whitening(rows, step.covariance, step.k, step.shrinkage)
