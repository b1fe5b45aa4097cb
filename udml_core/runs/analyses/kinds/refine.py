"""A refinement: an embedding improved by what the unlabeled images know about each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import AfterValidator, Field

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.numerics.refinement.recipe import Recipe, Views
from udml_core.runs.analyses.fields import Frames, Images
from udml_core.runs.analyses.kind import Arrays, Material, OfOneFrame

if TYPE_CHECKING:
    from udml_core.numerics.refinement import Refiner
    from udml_core.runs import Run

DEFAULT_RECIPE = "views+whiten+average:k=20,times=2,alpha=3"
STORED_NEIGHBORS, LARGEST_R = 100, 1000
"""Neighbors that are stored, and the largest class for which the rankings are compared by MAP@R."""
BYTES_A_NEIGHBOR = 50
"""Memory of each compared neighbor, before and after."""


@dataclass(frozen=True)
class Refined:
    """A refined embedding, with the neighbors before and after.

    Attributes:
        indices: Image indices (m,) int64, ascending: the gallery, whose images are also the queries.
        embedding: Refined unit rows (m, l) float32.
        neighbors: Rows (m, k) int32, 0 … m−1, of the nearest images after refinement, nearest first.
        scores: Scores (m, k) float32 of the neighbors, larger for nearer images.
        before: Rows (m, k) int32 of the nearest images before refinement.
        protocol: Which images the steps have seen: inductive or transductive.
        seen: For each step, its name and the images that it has seen: nothing, training half or gallery.
        measures: Values before and after by measure, in percent except for hubness. Reciprocity, hubness and neighbor
            stability always; Recall@1 and MAP@R where the images have labels.
    """

    indices: Array
    embedding: Array
    neighbors: Array
    scores: Array
    before: Array
    protocol: str
    seen: tuple[tuple[str, str], ...]
    measures: Mapping[str, tuple[float, float]]


def _written_plainly(text: str) -> str:
    """Return a recipe without spaces and default values, so that equal recipes have one id."""
    try:
        return str(Recipe.parse(text))
    except UserError as error:
        raise ValueError(str(error)) from error


class Refinement(OfOneFrame):
    """A refinement of one embedding by the steps of a recipe."""

    name = "refine"
    title = "Refinement"
    noun = "refinement"
    text = "refine improves the embedding by what the unlabeled images know about each other"
    order = 7
    arrays: ClassVar = {"indices": "int m", "embedding": "float m l", "neighbors": "int m k", "scores": "float m k",
                        "before": "int m k", "protocol": "text", "seen": "text s 2", "names": "text t",
                        "values": "float 2 t"}
    settings = "{recipe}"
    differences: ClassVar = {"recipe": "{}"}

    scope: Images = "test"
    frames: Frames = ("final",)
    recipe: Annotated[str, Field(max_length=500), AfterValidator(_written_plainly)] = DEFAULT_RECIPE
    """The steps of a refinement in their order, such as views+whiten+average:k=20,times=2."""

    def check_run(self, run: Run) -> None:
        """Reject views of a table of embeddings."""
        from udml_core.data.encoders import check_reads_images

        if Recipe.parse(self.recipe).find("views"):
            check_reads_images(run.spec().encoder, "The step 'views' of a refinement", "Leave the step out")

    def expected_bytes(self, images: int, width: int, largest: int) -> float:
        """Add the neighbors of each image, before and after."""
        return super().expected_bytes(images, width, largest) + BYTES_A_NEIGHBOR * images * _depth(images, largest)

    def compute(self, material: Material) -> Arrays:
        """Refine the embedding of a scope; whitening and reduction are fitted on the training half."""
        from udml_core.numerics.neighbors import nearest
        from udml_core.numerics.refinement.ranking_measures import label_free_measures, retrieval_measures

        recipe = Recipe.parse(self.recipe)
        indices, (frame,) = material.indices(self.scope), self.frames
        plain = material.vectors(frame, indices)
        refiner = fit_refiner(material, recipe, frame, indices, self.scope)
        dataset = material.dataset
        labels = None if dataset.labels is None else np.asarray(dataset.labels)[indices]
        deepest = 0 if labels is None else int(np.unique(labels, return_counts=True)[1].max()) - 1
        depth = _depth(len(indices), deepest + 1)
        after, before = refiner.neighbors(depth), nearest(plain, depth)[1]
        measures = [label_free_measures(ranking, before) for ranking in (before, after.indices)]
        if labels is not None and 0 < deepest <= LARGEST_R:
            measures = [values | retrieval_measures(ranking, labels, labels, inside=True)
                        for values, ranking in zip(measures, (before, after.indices), strict=True)]
        kept = min(STORED_NEIGHBORS, depth)
        seen = ([("views", "nothing")] if recipe.find("views") else []) + refiner.seen_
        return {"indices": indices, "embedding": refiner.embedding_,
                "neighbors": after.indices[:, :kept].astype(np.int32), "scores": after.scores[:, :kept],
                "before": before[:, :kept].astype(np.int32), "protocol": np.array(after.protocol),
                "seen": np.array(seen, dtype=str).reshape(-1, 2), "names": np.array(list(measures[0])),
                "values": np.array([list(values.values()) for values in measures])}

    def result(self, arrays: Arrays) -> Refined:
        """Return the refined embedding with its measures by name."""
        names, values = arrays.pop("names").tolist(), arrays.pop("values").tolist()
        measures = {name: (before, after) for name, before, after in zip(names, *values, strict=True)}
        seen = tuple((name, images) for name, images in arrays.pop("seen").tolist())
        return Refined(measures=measures, seen=seen, protocol=str(arrays.pop("protocol")), **arrays)

    def findings(self, read: Callable[[], Any]) -> dict[str, Any]:
        """Return what the steps have seen, and the measures before and after."""
        result: Refined = read()
        return {"protocol": result.protocol, "seen": dict(result.seen),
                "measures": {name: {"before": before, "after": after}
                             for name, (before, after) in result.measures.items()}}

    @staticmethod
    def lines(findings: Mapping[str, Any]) -> list[str]:
        """Return the protocol and each measure in a line."""
        return [findings["protocol"], *(f"{name}: {values['before']:.1f} → {values['after']:.1f}"
                                        for name, values in findings["measures"].items())]


def _depth(images: int, largest: int) -> int:
    """Return the number of neighbors that are compared of each image: more than are stored only for MAP@R.

    Args:
        images: Number of images.
        largest: Size of the largest class; 0 or 1 without labels.
    """
    return min(max(STORED_NEIGHBORS, largest - 1 if largest - 1 <= LARGEST_R else 0), images - 1)


def fit_refiner(material: Material, recipe: Recipe, frame: str, indices: Array, scope: Images) -> Refiner:
    """Fit a recipe to images in a frame; whitening and reduction are fitted on the training half.

    Args:
        material: The run.
        recipe: The recipe; its step `views` averages features of views first.
        frame: The embedding to refine.
        indices: Indices (m,) of the images.
        scope: The images' scope; only the test half leaves images to fit on.
    """
    from udml_core.numerics.refinement import Refiner

    training = material.training_indices() if scope == "test" else np.zeros(0, np.int64)
    views = recipe.find("views")
    if isinstance(views, Views):
        rows = material.view_vectors(frame, views)
        gallery, fitted_on = rows[indices], rows[training]
    else:
        gallery, fitted_on = material.vectors(frame, indices), (
            material.vectors(frame, training) if len(training) else training)
    refiner = Refiner(recipe.without("views"))
    refiner.fit(gallery, training=fitted_on if len(training) else None,
                report=lambda share, step: material.report(share, step))
    return refiner
