"""Refine embeddings by a recipe, scikit-learn style.

    refiner = Refiner("whiten+average:k=10,times=2").fit(gallery)
    refiner.transform(gallery)         # the refined gallery
    refiner.neighbors(10)              # the gallery's own images as queries
    refiner.search(queries, 10)        # queries from outside the gallery
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_array, validate_data

from udml_core.base.arrays import Array, Floats, Integers
from udml_core.base.errors import InputError, UserError, quoted
from udml_core.numerics.refinement.averaging import average_neighbors, expand_queries, mean_with
from udml_core.numerics.refinement.diffusion import DiffusionRanking
from udml_core.numerics.refinement.linear import LinearMap, SpanMap, reduction, unit_rows, whitening
from udml_core.numerics.refinement.recipe import Average, Diffuse, Expand, Recipe, Reduce, Rerank, Whiten
from udml_core.numerics.refinement.reciprocal import ReciprocalRanking
from udml_core.numerics.refinement.unit_neighbors import nearest_others, nearest_unit

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


class RefinerNotFittedError(UserError, NotFittedError):
    """A refiner without a gallery."""


class Refiner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A recipe fitted to an unlabeled gallery.

    No step receives labels. The images that each step has seen are in `seen_`. As a transformer of scikit-learn, it can
    be cloned and can be a step of a pipeline.

    Args:
        recipe: The recipe, or its text.

    Attributes:
        recipe_: The recipe.
        embedding_: Refined unit rows (n, l) float32 of the gallery.
        seen_: For each step its name, and "nothing", "training half" or "gallery".
        n_features_in_: Width d of the embeddings.
    """

    def __init__(self, recipe: Recipe | str = "whiten+average:k=10,times=2") -> None:
        self.recipe = recipe

    def fit(self, gallery: Array, y: Any = None, *, training: Array | None = None,
            report: Report = lambda _share, _step: None) -> Self:
        """Fit the steps in their order.

        Args:
            gallery: Embeddings (n, d), n ≥ 2, or features of several views (n, v, d) if the recipe has `views`.
            y: Ignored; pipelines pass it.
            training: Embeddings (m, d) or (m, v, d) of the training half, on which whitening and reduction are then
                fitted; without them they are fitted on the gallery.
            report: Receives the progress.

        Raises:
            InputError: There is no such recipe, or the arrays do not suit it.
        """
        try:
            return self._fit(gallery, training, report)
        except UserError as error:
            if type(error) is not UserError:
                raise
            raise InputError(str(error)) from error

    def _fit(self, gallery: Array, training: Array | None, report: Report) -> Self:
        self.recipe_ = Recipe.parse(self.recipe) if isinstance(self.recipe, str) else self.recipe
        if not isinstance(self.recipe_, Recipe):
            raise InputError(f"recipe must be a recipe or its text, such as 'whiten'; got {quoted(self.recipe)}.")
        rows = self._start(gallery, "gallery", None)
        if len(rows) < 2:
            raise InputError(f"A gallery must have at least 2 images; got {len(rows)} (n_samples={len(rows)}). Add "
                             "images.")
        self._places = _places(rows)
        fitted_on = None if training is None else self._start(training, "training half", self.n_features_in_)
        self._maps: list[LinearMap | SpanMap] = []
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

        A row of the gallery returns its row of `embedding_`. Other rows are queries from outside: they pass through
        whitening and reduction, and are expanded if the recipe has `expand`. Averaging changes gallery images only.

        Args:
            rows: The gallery, or embeddings (q, d) or features of several views (q, v, d).

        Raises:
            UserError: The refiner is not fitted, or the rows do not suit the gallery.
        """
        self._check_fitted()
        start = self._start(rows, "queries", self.n_features_in_)
        numbers = _numbers(start)
        known, order = self._places
        found = np.searchsorted(known, numbers).clip(max=len(known) - 1)
        is_own = known[found] == numbers
        refined = np.empty((len(start), self._n_features_out), np.float32)
        refined[is_own] = self.embedding_[order[found[is_own]]]
        if not is_own.all():
            refined[~is_own] = self._queries(start[~is_own])
        return refined

    def fit_transform(self, gallery: Array, y: Any = None, *, training: Array | None = None) -> Floats:
        """Fit, and return the refined gallery (n, l); see `fit` for the arguments."""
        return self.fit(gallery, y, training=training).embedding_

    def neighbors(self, k: int, rows: Integers | None = None) -> Ranking:
        """Rank the gallery for its own images, without the image itself.

        Query expansion replaces the image by its mean with its k nearest other images; before a re-ranking it applies
        to queries from outside only.

        Args:
            k: Number of images to return for each query; the whole gallery if it has fewer.
            rows: Indices (q,) of the images to rank for; all n if None.
        """
        self._check_fitted()
        k = min(k, len(self.embedding_) - 1)
        protocol = self.protocol(inside=True)
        if self._ranker is not None:
            return Ranking(*self._ranker.neighbors(k, rows), protocol)
        if self._expand is None or self._expand.k == 0:
            distances, indices = nearest_others(self.embedding_, k, rows)
            return Ranking(indices, 1 - distances / 2, protocol)
        own = np.arange(len(self.embedding_)) if rows is None else rows
        voters = nearest_others(self.embedding_, min(self._expand.k, len(self.embedding_) - 1), rows)[1]
        queries = mean_with(self.embedding_[own], self.embedding_, voters, self._expand.alpha)
        distances, indices = nearest_others(self.embedding_, k, own, queries)
        return Ranking(indices, 1 - distances / 2, protocol)

    def search(self, queries: Array, k: int) -> Ranking:
        """Rank the gallery for queries from outside, which change nothing in the gallery.

        Args:
            queries: Embeddings (q, d), or features of several views (q, v, d).
            k: Number of images to return for each query; the whole gallery if it has fewer.
        """
        self._check_fitted()
        rows = self._queries(self._start(queries, "queries", self.n_features_in_))
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
        self._check_fitted()
        if all(images != "gallery" for _, images in self.seen_):
            return "inductive"
        return "transductive" if inside else "gallery"

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _queries(self, rows: Floats) -> Floats:
        for linear in self._maps:
            rows = linear(rows)
        if self._expand is not None:
            rows = expand_queries(rows, self.embedding_, self._expand.k, self._expand.alpha)
        return rows

    def _check_fitted(self) -> None:
        if not hasattr(self, "embedding_"):
            raise RefinerNotFittedError(f"This refiner is not fitted; its recipe is '{self.recipe}'. Call `fit` with a "
                                        "gallery first.")

    def _start(self, rows: Any, name: str, width: int | None) -> Floats:
        """Return unit rows, averaged over the views if there are several.

        Args:
            rows: A user's array, or nested lists of numbers.
            name: Its name in messages.
            width: Width d of the gallery, which the rows must have; any if None.
        """
        try:
            checked = check_array(rows, dtype=np.float32, ensure_all_finite=False, ensure_2d=False, allow_nd=True,
                                  ensure_min_samples=0)
        except (TypeError, ValueError) as error:
            raise InputError(f"The {name} must be an array of numbers; got a {type(rows).__name__} that is none: "
                             f"{error}. Give each image a row of the same length.") from None
        expected = 3 if self.recipe_.find("views") else 2
        if checked.ndim != expected:
            shape = "(n, v, d), the features of several views" if expected == 3 else "(n, d)"
            raise InputError(f"The {name} must have the shape {shape}; got {checked.shape}. "
                             + ("Remove `views` from the recipe, or compute the features of the views."
                                if expected == 3 else
                                "Reshape your data, or add `views` to the recipe to average the features of views."))
        found = checked.shape[-1]
        if width is not None and found != width:
            raise InputError(f"The {name} must have the gallery's dimension {width}; got {found}: X has {found} "
                             f"features, but Refiner is expecting {width} features as input. Compute them as the "
                             "gallery was computed.")
        if not np.isfinite(checked).all():
            raise InputError(f"The {name} must have finite values; got {(~np.isfinite(checked)).sum():,} that are NaN "
                             "or infinite. Remove these images.")
        if expected == 3:
            self.n_features_in_ = found
            return unit_rows(checked.mean(axis=1, dtype=np.float32))
        validate_data(self, rows, reset=width is None, skip_check_array=True)  # keeps or compares names of columns
        return unit_rows(checked)


def _numbers(rows: Floats) -> Integers:
    """Return a number for each row, equal for equal rows: copies of a large gallery would double its memory."""
    factors = np.random.default_rng(0).integers(2**64, size=rows.shape[1], dtype=np.uint64) | np.uint64(1)
    bits = np.ascontiguousarray(rows + np.float32(0)).view(np.uint32)  # + 0: −0 equals 0
    return np.concatenate([(part * factors).sum(axis=1) for part in np.array_split(bits, len(bits) // 8192 + 1)])


def _places(rows: Floats) -> tuple[Integers, Integers]:
    """Return the numbers of rows in order, and where each row is."""
    numbers = _numbers(rows)
    order = np.argsort(numbers, kind="stable")
    return numbers[order], order


def _fit_linear(step: Whiten | Reduce, rows: Floats) -> LinearMap | SpanMap:
    if isinstance(step, Reduce):
        return reduction(rows, step.dimension)
    if step.covariance == "neighbors" and len(rows) <= step.k:
        raise UserError(f"`whiten` needs more images than k; got {len(rows)} images and k={step.k}. Lower k.")
    return whitening(rows, step.covariance, step.k, step.shrinkage)
