"""Compute an analysis: the only writer of its result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset, Report
from udml_core.data.encoders import Encoder
from udml_core.data.features import features_of
from udml_core.data.judging import encoder_title, judge_features, judge_views
from udml_core.exploration.race import Setup
from udml_core.methods.model import Model
from udml_core.numerics.refinement.recipe import Recipe, Views
from udml_core.runs import Run, list_runs
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
from udml_core.runs.search import FINAL, Frames, view_embeddings
from udml_core.runs.tasks import Status
from udml_core.runs.used import used_search
from udml_core.work.jobs import resolve_device
from udml_core.work.workers import candidates
from udml_core.work.workers.candidates import Trainer
from udml_core.work.workers.evaluate import evaluate_run, load
from udml_core.work.workers.execute import Reporter, execute
from udml_core.work.workers.follow_up import yielding

PREPARING = "preparing the computation"
LEAST = 10
"""Smallest number of images for which neighborhoods, and therefore maps, are meaningful."""


def work(analysis: Analysis, background: bool = False, train: Trainer | None = None) -> Status:
    """Compute an analysis and store its result.

    A failure is recorded in the status, not raised.

    Args:
        analysis: The analysis.
        background: Whether to pause while a run trains.
        train: Executes the runs that the analysis needs.
    """
    def compute_and_store(reporter: Reporter) -> None:
        reporter.change(state="running", started=time.time(), phase="starting", share=0.0)
        report = yielding(analysis, reporter) if background else reporter.share
        analysis.write_result(compute(analysis.run, analysis.spec(), report, train))

    return execute(analysis, compute_and_store)


def keep(run: Run, spec: AnalysisSpec, report: Report, dataset: Dataset | None = None) -> Analysis:
    """Compute and store an analysis in this process, unless it is done; see `compute`.

    The folder is created with the result.
    """
    analysis = analysis_at(run, spec)
    if analysis.is_done():
        return analysis
    return create_analysis(run, spec, state="done", result=compute(run, spec, report, dataset=dataset))


def compute(run: Run, spec: AnalysisSpec, report: Report, train: Trainer | None = None,
            dataset: Dataset | None = None) -> dict[str, Array]:
    """Compute the arrays of a result.

    Args:
        run: The run.
        spec: The request.
        report: Receives the progress.
        train: Executes the runs that the analysis needs.
        dataset: The run's data set; without it, it is loaded.

    Raises:
        UserError: There are too few images, or the data set is missing.
    """
    return spec.build_kind().compute(StoredMaterial(run, spec, report, train, dataset))


class StoredMaterial:
    """The input of an analysis: a run's embeddings, images and frozen features."""

    def __init__(self, run: Run, request: AnalysisSpec, report: Report, train: Trainer | None = None,
                 dataset: Dataset | None = None) -> None:
        self.run = run
        self.report = report
        self.spec = run.spec()
        self._request = request
        self._train = train
        if dataset is not None:
            self.dataset = dataset

    @cached_property
    def dataset(self) -> Dataset:
        dataset = self.run.dataset(self.report)
        self.report(0.0, PREPARING)  # else the phase would say that the folder is being read until the next report
        return dataset

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

    def model(self, frame: str) -> Model:
        """Return the model that embeds new images in a frame."""
        return self.frames.model(frame)

    def view_vectors(self, frame: str, views: Views) -> Array:
        """Return the embeddings (n, d) of all images in a frame, from features averaged over views."""
        return view_embeddings(self.frames.embedder(frame), self.dataset, views, self.report)

    def refinement(self, name: str) -> tuple[str, str]:
        """Return the recipe of a refinement of the run, and the frame that it refines."""
        spec = find_analysis(self.run, name).spec()
        return spec.recipe, spec.frames[0]

    @property
    def backbone(self) -> str:
        """The backbone of the run's encoder."""
        return self.spec.backbone

    def part_features(self) -> list[Array]:
        """Return the features (n, d) of all images by each of several encoders side by side; none for a single one."""
        device = resolve_device("auto")
        return [features_of(self.dataset, Encoder(part).to(device), self.report) for part in self.spec.encoder.parts]

    def judge_features(self, backbone: str) -> Array:
        """Return the features (n, d) of all images by another encoder than the run's, computed on first use."""
        return judge_features(self.dataset, backbone, self._report_of(backbone), resolve_device("auto"))

    def judge_views(self, backbone: str, indices: Array) -> Array | None:
        """Return a judge's features (m, d) of another view of some images; None if it is a table of vectors."""
        return judge_views(self.dataset, backbone, indices, self._report_of(backbone), resolve_device("auto"))

    def _report_of(self, judge: str) -> Report:
        """Return the report of the steps of a judge."""
        return lambda share, step: self.report(share, f"judge {encoder_title(judge)}: {step}")

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.run.id

    @property
    def chosen(self) -> Setup | None:
        """The search that the user chose for these images, if it refines the run's embedding."""
        same = (run for run in list_runs(self.run.root) if run.spec().fingerprint == self.spec.fingerprint)
        used = used_search(same)
        if used is None or used[0].id != self.run.id or used[1] == FINAL:
            return None
        recipe, refined = self.refinement(used[1])
        return Setup(backbone=self.backbone, recipe=str(Recipe.parse(recipe))) if refined == FINAL else None

    def of(self, setup: Setup) -> StoredMaterial:
        """Return the material of the run whose embedding a search refines; train it first unless it is finished.

        Raises:
            UserError: The run is not possible, or was not finished.
        """
        run = candidates.finish_candidate(self.run, self.dataset, setup, self._train, self.report)
        return StoredMaterial(run, self._request, self.report, self._train, self.dataset)

    def training_time(self, setup: Setup) -> tuple[float, bool]:
        """Return the expected seconds until `of` returns, 0 if the run is finished, and whether they are measured."""
        return candidates.training_time(self.run, self.dataset, setup)

    def feature_time(self, backbone: str, views: Views | None = None) -> tuple[float, bool]:
        """Return the expected seconds of features that are not stored, and whether they are measured."""
        return candidates.feature_time(self.run, self.dataset, backbone, views)

    def evaluate_exactly(self) -> Mapping[str, Mapping[str, float]]:
        """Evaluate the run with every test image as a query, store the measures with it, and return them."""
        return evaluate_run(self.run, load(self.run, self.report), self.report, exact=True)

    def append(self, row: Mapping[str, Any]) -> None:
        """Store a finished part of the result, which others can read at once."""
        analysis_at(self.run, self._request).append_part(row)

    def parts(self) -> list[dict[str, Any]]:
        """Return the parts that an earlier attempt has stored."""
        return analysis_at(self.run, self._request).parts()

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
