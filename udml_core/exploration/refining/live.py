"""A gallery on which recipes are tried: the stages of recipes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from udml_core.base.arrays import Array
from udml_core.exploration.refining.refined_gallery import RefinedGallery
from udml_core.exploration.refining.stages import (
    Stage,
    averaging_weights,
    eigenvectors_of,
    main_components,
    start_stage,
    whitening_of,
)
from udml_core.exploration.refining.unrefined import SAMPLE, UnrefinedGallery
from udml_core.numerics.refinement.linear import LinearMap, reduction, unit_rows
from udml_core.numerics.refinement.recipe import Average, Recipe, Reduce, Step, Whiten

MOST_IMAGES, MOST_TRAINING = 6000, 3000
"""Larger galleries are explored on evenly spaced images; linear steps are fitted on evenly spaced training images."""
WHOLE, WHOLE_CANDIDATES = 2000, 300
"""A gallery of at most so many images keeps its whole embedding, so that the order is the one that Search shows, and so
many neighbor candidates of each image."""
COMPONENTS, CANDIDATES = 256, 100
"""Components of the embedding that a larger gallery keeps, and neighbor candidates of each image."""
KEPT_STAGES = 8
Value = TypeVar("Value")


class LiveGallery:
    """A gallery on which recipes can be tried.

    Attributes:
        before: The gallery in the stored embedding, and the sample of queries.
        start: The gallery before any step.
        kept: Share of the embedding's squared length in the kept components.
    """

    def __init__(self, embedding: Array, training: Array | None = None, viewed: Array | None = None,
                 components: int | None = None, candidates: int | None = None, sample: int = SAMPLE) -> None:
        """Search the candidates and reduce the embedding.

        Args:
            embedding: Embeddings (n, d), n ≥ 3.
            training: Embeddings (t, d) of the training half, on which whitening and reduction are fitted; without them
                they are fitted on the gallery.
            viewed: Embeddings (n, d) of the gallery averaged over views, with which a recipe then begins; `training`
                must be averaged over the same views.
            components: Components to keep; all d if there are fewer, and by default in a small gallery.
            candidates: Candidates of each image; all other images if there are fewer.
            sample: Number of queries on which retrieval is measured.
        """
        self.before = UnrefinedGallery(embedding, sample)
        begin = unit_rows(self.before.embedding if viewed is None else viewed)
        is_small = len(begin) <= WHOLE
        projection, self.kept = main_components(begin, components or (begin.shape[1] if is_small else COMPONENTS))
        candidates = candidates or (WHOLE_CANDIDATES if is_small else CANDIDATES)
        self.start = start_stage(begin, projection, candidates)
        self._training = None if training is None else start_stage(unit_rows(training), projection, candidates)
        self._stages: OrderedDict[str, Stage] = OrderedDict()
        self._spectra: OrderedDict[str, tuple[Array, Array]] = OrderedDict()

    def refine(self, recipe: Recipe) -> RefinedGallery:
        """Apply a recipe without its `views`, which need the images: pass `viewed` embeddings instead.

        Stages of equal beginnings of a recipe are kept, so a slider computes only from its own step on.
        """
        stage = self._stage(tuple(step for step in recipe.steps if step.role == "rows"))
        return RefinedGallery(self.before, recipe, stage)

    def _stage(self, steps: tuple[Step, ...], of_training: bool = False) -> Stage:
        """Return the gallery, or the training half, after some steps."""
        if not steps:
            return self._training if of_training and self._training is not None else self.start
        key = f"{of_training} {Recipe(steps)}"
        return _remember(self._stages, key, lambda: self._apply(steps, of_training))

    def _apply(self, steps: tuple[Step, ...], of_training: bool) -> Stage:
        """Apply the last of some steps to the gallery, or to the training half."""
        *earlier, step = steps
        stage = self._stage(tuple(earlier), of_training)
        match step:
            case Whiten() | Reduce():
                return stage.moved(self._fit(step, tuple(earlier))(stage.rows))
            case Average(k=k) if k > 0:
                for _ in range(step.times):
                    weights = averaging_weights(stage, k, step.alpha)
                    stage = stage.moved(unit_rows(weights @ stage.rows), stage.rows, weights)
        return stage

    def _fit(self, step: Whiten | Reduce, earlier: tuple[Step, ...]) -> LinearMap:
        stage = self._stage(earlier, self._training is not None)
        if isinstance(step, Reduce):
            return reduction(stage.rows, min(step.dimension, *stage.rows.shape))
        key = f"{Recipe(earlier)} {step.covariance} {step.k}"
        values, vectors = _remember(self._spectra, key, lambda: eigenvectors_of(stage, step))
        # The mean variance of all dimensions: the discarded components have hardly any.
        width = self.before.embedding.shape[1] if stage.rows.shape[1] == self.start.rows.shape[1] else len(values)
        return whitening_of(values, vectors, stage.rows, step.shrinkage * len(values) / width)


def _remember(memory: OrderedDict[str, Value], key: str, compute: Callable[[], Value]) -> Value:
    """Return the value of a key; the least recently used values are forgotten."""
    value = memory.pop(key, None)  # in one step, because several sessions of the app share a gallery
    if value is None:
        value = compute()
    memory[key] = value
    while len(memory) > KEPT_STAGES:
        memory.popitem(last=False)
    return value
