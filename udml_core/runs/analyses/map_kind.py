"""Maps: what PCA, t-SNE and UMAP share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from udml_core.base.arrays import LARGE, Array
from udml_core.runs.analyses.fields import Frames, Images
from udml_core.runs.analyses.kind import AnalysisKind, Arrays, Material

MOST_JUDGED, JUDGED = 20_000, 2_000
"""Largest number of images whose ranks are all compared for the distortion, and the images of a larger map among which
it is measured, as in the evaluation: the time grows with the square."""
NEIGHBORS = 10
ShareReport = Callable[[float], None]


@dataclass(frozen=True)
class Projection:
    """Maps of the same images, one for each frame, aligned with each other.

    Attributes:
        indices: Image indices (m,) int64, ascending.
        frames: The frames.
        positions: Layouts (f, m, 2) float32.
        neighbors: Rows (f, m, k) int32, 0 … m−1, of the k = 10 nearest neighbors in the embedding, not on the map;
            fewer if there are fewer images, none on a map of more than `LARGE` images.
        trustworthiness: Trustworthiness (f, m) float32; see `udml_core.numerics.evaluation.distortion`. On a map of
            many images it is measured among a sample, and NaN for other images.
        continuity: Continuity (f, m) float32, measured in the same way.
    """

    indices: Array
    frames: tuple[str, ...]
    positions: Array
    neighbors: Array
    trustworthiness: Array
    continuity: Array

    @cached_property
    def bounds(self) -> tuple[float, float, float, float]:
        """The bounding box x0, y0, x1, y1 of all layouts."""
        low, high = self.positions.min(axis=(0, 1)), self.positions.max(axis=(0, 1))
        return float(low[0]), float(low[1]), float(high[0]), float(high[1])


class Map(AnalysisKind):
    """A layout of images in two dimensions for each of some embeddings."""

    noun = "map"
    arrays: ClassVar = {"indices": "int m", "positions": "float f m 2", "neighbors": "int f m k",
                        "trustworthiness": "float f m", "continuity": "float f m"}
    preference: ClassVar[int] = 0
    """Pages show the map with the largest preference first."""

    scope: Images = "all"
    frames: Frames = ("initial", "final")

    @abstractmethod
    def layouts(self, vectors: list[Array], report: ShareReport) -> list[Array]:
        """Compute a layout (m, 2) of each frame's points (m, d)."""

    @abstractmethod
    def place(self, vectors: Array, layout: Array, new: Array) -> Array:
        """Return the positions (q, 2) of new embeddings (q, d) on a layout (m, 2) of embeddings (m, d)."""

    def expected_bytes(self, images: int, width: int, largest: int) -> float:
        """Estimate the embeddings of all frames, and the positions, neighbors and distortion of each image."""
        return len(self.frames) * images * (4.0 * width + 200)

    @staticmethod
    def laid_out(images: int) -> int:
        """Return of how many images a layout is computed; the others are placed by their neighbors."""
        from udml_core.numerics.projection.sampled import SAMPLE

        return images if images <= LARGE else SAMPLE

    def result(self, arrays: Arrays) -> Projection:
        """Return the layouts with their frames."""
        return Projection(frames=self.frames, **arrays)

    def compute(self, material: Material) -> Arrays:
        """Compute the layouts of all frames, with trustworthiness and continuity."""
        from udml_core.numerics.evaluation import distortion, distortion_neighbors
        from udml_core.numerics.neighbors import nearest

        indices = material.indices(self.scope)
        vectors, of_frames = _distinct([material.vectors(frame, indices) for frame in self.frames])
        is_large = len(indices) > LARGE

        def report_layout(share: float) -> None:
            material.report(share, "layout")

        report_layout(0.0)
        if is_large and not self.is_linear:
            from udml_core.numerics.projection.sampled import sampled_layouts

            layouts = sampled_layouts(vectors, self.layouts, report_layout)
        else:
            layouts = self.layouts(vectors, report_layout)
        judged = np.arange(len(indices))
        if len(judged) > MOST_JUDGED:
            judged = np.linspace(0, len(indices) - 1, JUDGED).astype(int)
        trust, continuity = np.full((2, len(layouts), len(indices)), np.nan, np.float32)
        k = distortion_neighbors(len(judged))
        for frame, (points, layout) in enumerate(zip(vectors, layouts, strict=True)):
            def report(share: float, done: int = frame) -> None:
                material.report((done + share) / len(layouts), "comparing the map with the embedding")

            trust[frame, judged], continuity[frame, judged] = distortion(points[judged], layout[judged], k, report)
        # All neighbors of a large map would take long; pages search for the neighbors of one image instead.
        neighbors = [np.zeros((len(points), 0)) if is_large else nearest(points, min(NEIGHBORS, len(indices) - 1))[1]
                     for points in vectors]
        return {"indices": indices, "positions": np.stack(layouts).astype(np.float32)[of_frames],
                "neighbors": np.stack(neighbors).astype(np.int32)[of_frames], "trustworthiness": trust[of_frames],
                "continuity": continuity[of_frames]}


def _distinct(vectors: list[Array]) -> tuple[list[Array], list[int]]:
    """Return the embeddings that differ, and for each given one its place among them.

    A run without training has one embedding before and after it, and so one layout.
    """
    distinct: list[Array] = []
    places = []
    for points in vectors:
        equal = (place for place, other in enumerate(distinct) if np.array_equal(points, other))
        places.append(next(equal, len(distinct)))
        if places[-1] == len(distinct):
            distinct.append(points)
    return distinct, places


def lay_out_in_turn(vectors: list[Array], lay_out: Callable[[Array, Array | None, ShareReport], Array],
                    report: ShareReport) -> list[Array]:
    """Compute the layout of each frame, starting from the previous frame's."""
    layouts: list[Array] = []
    for number, points in enumerate(vectors):
        def report_frame(share: float, done: int = number) -> None:
            report((done + share) / len(vectors))

        layouts.append(lay_out(points, layouts[-1] if layouts else None, report_frame))
        report_frame(1.0)
    return layouts
