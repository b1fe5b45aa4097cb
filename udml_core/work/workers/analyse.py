"""Compute an analysis: the only writer of its result."""

from __future__ import annotations

import time
from functools import cached_property
from pathlib import Path

import numpy as np

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import Dataset, Report
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import features_of
from udml_core.data.refinement_views import View, view_features_of_some
from udml_core.methods import Embedder
from udml_core.numerics.refinement.recipe import Views
from udml_core.runs import Run
from udml_core.runs.analyses import (
    Analysis,
    AnalysisKind,
    AnalysisSpec,
    OnMap,
    Scope,
    analysis_at,
    create_analysis,
    find_analysis,
)
from udml_core.runs.analyses.kinds.opinion import OF_TABLE
from udml_core.runs.search import Frames, view_embeddings
from udml_core.runs.tasks import Status
from udml_core.work.jobs import resolve_device
from udml_core.work.workers.execute import Reporter, execute
from udml_core.work.workers.follow_up import yielding

OTHER_VIEW = View(zoom=0.85, flip=True)
"""The other view of an image that tells how steady a judge is."""
LEAST = 10
"""Smallest number of images for which neighborhoods, and therefore maps, are meaningful."""


def work(analysis: Analysis, background: bool = False) -> Status:
    """Compute an analysis and store its result.

    A failure is recorded in the status, not raised.

    Args:
        analysis: The analysis.
        background: Whether to pause while a run trains.
    """
    def compute_and_store(reporter: Reporter) -> None:
        reporter.change(state="running", started=time.time(), phase="starting", share=0.0)
        report = yielding(analysis, reporter) if background else reporter.share
        analysis.write_result(compute(analysis.run, analysis.spec(), report))

    return execute(analysis, compute_and_store)


def keep(run: Run, spec: AnalysisSpec, report: Report) -> Analysis:
    """Compute and store an analysis in this process, unless it is done.

    The folder is created with the result.
    """
    analysis = analysis_at(run, spec)
    if analysis.is_done():
        return analysis
    return create_analysis(run, spec, state="done", result=compute(run, spec, report))


def compute(run: Run, spec: AnalysisSpec, report: Report) -> dict[str, Array]:
    """Compute the arrays of a result.

    Raises:
        UserError: There are too few images, or the data set is missing.
    """
    return spec.build_kind().compute(StoredMaterial(run, spec, report))


class StoredMaterial:
    """The input of an analysis: a run's embeddings, images and frozen features."""

    def __init__(self, run: Run, request: AnalysisSpec, report: Report) -> None:
        self.run = run
        self.report = report
        self.spec = run.spec()
        self._request = request

    @cached_property
    def dataset(self) -> Dataset:
        return self.run.dataset(self.report)

    @cached_property
    def frames(self) -> Frames:
        return Frames(self.run, lambda: self.dataset)

    @property
    def images_to_place(self) -> list[Path]:
        """The files of the images that came with the request, in their order."""
        return sorted(analysis_at(self.run, self._request).images_folder.iterdir())

    def indices(self, scope: Scope) -> Array:
        """Return the image indices (m,), ascending, of a scope."""
        match scope:
            case "all":
                indices = np.arange(len(self.run.embeddings("final")))
                if self.spec.excluded.count:
                    indices = np.setdiff1d(indices, self.spec.halves(self.dataset).excluded)
            case "sample":
                indices = self.run.sample_indices()
            case "test" | "train":
                split = self.spec.halves(self.dataset)
                indices = split.test if scope == "test" else split.train
        if len(indices) < LEAST:
            raise UserError(f"Analyses need at least {LEAST} images, and the scope '{scope}' has "
                            f"{len(indices)}. Choose a larger scope, or add images.")
        return indices

    def training_indices(self) -> Array:
        """Return the indices (m,) of the training half; none if the test half has the same images."""
        split = self.spec.halves(self.dataset)
        return split.train if split.name != "all" else np.zeros(0, np.int64)

    def vectors(self, frame: str, indices: Array) -> Array:
        """Return the embeddings (m, d) float32 of images in a frame.

        If the frame is an epoch, return the embeddings of the fixed sample.
        """
        return self.frames.vectors(frame, indices, self.report)

    def embedder(self, frame: str) -> Embedder:
        """Return the embedder that embeds new images in a frame."""
        return self.frames.embedder(frame)

    def view_vectors(self, frame: str, views: Views) -> Array:
        """Return the embeddings (n, d) of all images in a frame, from features averaged over views."""
        return view_embeddings(self.embedder(frame), self.dataset, views, self.report)

    def refinement(self, name: str) -> tuple[str, str]:
        """Return the recipe of a refinement of the run, and the frame that it refines."""
        spec = find_analysis(self.run, name).spec()
        return spec.recipe, spec.frames[0]

    @property
    def backbone(self) -> str:
        """The backbone of the run's encoder."""
        return self.spec.backbone

    def judge_features(self, backbone: str) -> Array:
        """Return the features (n, d) of all images by another encoder than the run's, computed on first use.

        Raises:
            UserError: A table of vectors has another number of rows.
        """
        if backbone.startswith(OF_TABLE):
            vectors = catalog.load(backbone.removeprefix(OF_TABLE)).vectors
            if vectors is None or len(vectors) != len(self.dataset):
                rows = "no vectors" if vectors is None else f"{len(vectors):,} rows"
                raise UserError(f"{backbone} should hold a vector for each of the {len(self.dataset):,} images, in "
                                f"their order; got {rows}.")
            return vectors

        def report(share: float, step: str) -> None:
            self.report(share, f"judge {backbone}: {step}")

        return features_of(self.dataset, self._judge(backbone), report)

    def judge_views(self, backbone: str, indices: Array) -> Array:
        """Return the features (m, d) of `OTHER_VIEW` of some images by another encoder than the run's."""
        return view_features_of_some(self.dataset, self._judge(backbone), OTHER_VIEW, indices)

    def _judge(self, backbone: str) -> Encoder:
        spec = choose_spec(backbone, self.dataset.native_size, self.dataset.gray)
        return Encoder(spec).to(resolve_device("auto"))

    def source(self, kind: OnMap) -> tuple[AnalysisKind, Array, Array, Array]:
        """Return the map that an analysis starts from.

        Returns:
            Map, image indices (m,), and layout (m, 2) and embeddings (m, d) in the frame.
        """
        source = find_analysis(self.run, kind.source)
        projection = source.projection()
        if kind.frame not in projection.frames:
            raise UserError(f"The map {source.id} has the frames {', '.join(projection.frames)}, got "
                            f"'{kind.frame}'. Choose one of its frames.")
        layout = projection.positions[projection.frames.index(kind.frame)]
        return source.spec().build_kind(), projection.indices, layout, self.vectors(kind.frame, projection.indices)
