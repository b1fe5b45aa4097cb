"""Compute an analysis: the only writer of its result."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np

from udml_core.base.arrays import LARGE, Array
from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset, Report, read_image
from udml_core.data.features import embed_pixels
from udml_core.exploration.audit import audit_of
from udml_core.methods import Embedder
from udml_core.numerics.evaluation import distortion, distortion_neighbors
from udml_core.numerics.graph import AuthorityGraph
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.projection import pca
from udml_core.numerics.projection.grid import seams, snap_to_grid
from udml_core.numerics.refinement import Recipe
from udml_core.numerics.refinement.measures import label_free_measures, retrieval_measures
from udml_core.numerics.refinement.recipe import Views
from udml_core.runs import Run
from udml_core.runs.analyses import Analysis, AnalysisSpec, analysis_at, create_analysis, find_analysis
from udml_core.runs.search import Frames, view_embeddings
from udml_core.runs.tasks import Status
from udml_core.work.workers.execute import Reporter, execute
from udml_core.work.workers.maps import yielding

Arrays = Mapping[str, Array]
LEAST = 10
"""Smallest number of images for which neighborhoods, and therefore maps, are meaningful."""
MOST_JUDGED, JUDGED = 20_000, 2_000
"""Largest number of images whose ranks are all compared for the distortion, and the images of a larger map among which
it is measured, as in the evaluation: the time grows with the square."""
NEIGHBORS = 10
STORED_NEIGHBORS, LARGEST_R = 100, 1000
"""Neighbors of a refinement that are stored, and the largest class for which its rankings are compared by MAP@R."""
log = logging.getLogger("udml")


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


def compute(run: Run, spec: AnalysisSpec, report: Report) -> Arrays:
    """Compute the arrays of a result.

    Raises:
        UserError: There are too few images, or the data set is missing.
    """
    material = Material(run, report)
    match spec.kind:
        case "pca" | "tsne" | "umap":
            return _map(material, spec)
        case "graph":
            return _graph(material, spec)
        case "grid":
            return _grid(material, spec)
        case "placed":
            return _placed(material, spec)
        case "refine":
            return _refine(material, spec)
        case "audit":
            return _audit(material)


class Material:
    """The input of analyses: a run's embeddings, images and frozen features."""

    def __init__(self, run: Run, report: Report) -> None:
        self.run = run
        self.report = report
        self.spec = run.spec()

    @cached_property
    def dataset(self) -> Dataset:
        return self.run.dataset(self.report)

    @cached_property
    def frames(self) -> Frames:
        return Frames(self.run, lambda: self.dataset)

    def indices(self, spec: AnalysisSpec) -> Array:
        """Return the image indices (m,), ascending, of an analysis's scope."""
        match spec.scope:
            case "all":
                indices = np.arange(len(self.run.embeddings("final")))
                if self.spec.excluded.count:
                    indices = np.setdiff1d(indices, self.spec.halves(self.dataset).excluded)
            case "sample":
                indices = self.run.sample_indices()
            case "test" | "train":
                split = self.spec.halves(self.dataset)
                indices = split.test if spec.scope == "test" else split.train
        if len(indices) < LEAST:
            raise UserError(f"Analyses need at least {LEAST} images, and the scope '{spec.scope}' has "
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

    def source(self, spec: AnalysisSpec) -> tuple[AnalysisSpec, Array, Array, Array]:
        """Return the map that an analysis starts from.

        Returns:
            Spec, image indices (m,), and layout (m, 2) and embeddings (m, d) in the frame.
        """
        source = find_analysis(self.run, spec.source)
        projection = source.projection()
        if spec.frame not in projection.frames:
            raise UserError(f"The map {source.id} has the frames {', '.join(projection.frames)}, got "
                            f"'{spec.frame}'. Choose one of its frames.")
        layout = projection.positions[projection.frames.index(spec.frame)]
        return source.spec(), projection.indices, layout, self.vectors(spec.frame, projection.indices)


def _map(material: Material, spec: AnalysisSpec) -> Arrays:
    """Compute the layouts of all frames, with trustworthiness and continuity."""
    indices = material.indices(spec)
    vectors = [material.vectors(frame, indices) for frame in spec.frames]
    is_large = len(indices) > LARGE

    def report_layout(share: float) -> None:
        material.report(share, "layout")

    if is_large and spec.kind != "pca":
        from udml_core.numerics.projection.sampled import sampled_layouts

        layouts = sampled_layouts(vectors, lambda samples, report: _layouts(samples, spec, report), report_layout)
    else:
        layouts = _layouts(vectors, spec, report_layout)
    judged = np.arange(len(indices))
    if len(judged) > MOST_JUDGED:
        judged = np.linspace(0, len(indices) - 1, JUDGED).astype(int)
    trust, continuity = np.full((2, len(layouts), len(indices)), np.nan, np.float32)
    k = distortion_neighbors(len(judged))
    for frame, (points, layout) in enumerate(zip(vectors, layouts, strict=True)):
        def report(share: float, done: int = frame) -> None:
            material.report((done + share) / len(layouts), "distortion")

        trust[frame, judged], continuity[frame, judged] = distortion(points[judged], layout[judged], k, report)
    # All neighbors of a large map would take long; pages search for the neighbors of one image instead.
    neighbors = [np.zeros((len(points), 0)) if is_large else nearest(points, min(NEIGHBORS, len(indices) - 1))[1]
                 for points in vectors]
    return {"indices": indices, "positions": np.stack(layouts).astype(np.float32),
            "neighbors": np.stack(neighbors).astype(np.int32), "trustworthiness": trust, "continuity": continuity}


def _layouts(vectors: list[Array], spec: AnalysisSpec, report: Callable[[float], None]) -> list[Array]:
    """Compute a layout (m, 2) of each frame's points (m, d)."""
    # umap and openTSNE take seconds to import.
    if spec.kind == "umap":
        from udml_core.numerics.projection.umap import umap_layouts

        return umap_layouts(vectors, spec.n_neighbors, spec.min_dist, spec.seed, report)
    if spec.kind == "tsne":
        from udml_core.numerics.projection.tsne import tsne_layout

        return _sequence(vectors, lambda points, previous, report_frame: tsne_layout(
            points, spec.perplexity, spec.seed, previous, report_frame), report)
    return _sequence(vectors, lambda points, previous, _report: pca.pca_layout(points, previous), report)


def _sequence(vectors: list[Array], lay_out: Callable[[Array, Array | None, Callable[[float], None]], Array],
              report: Callable[[float], None]) -> list[Array]:
    """Compute the layout of each frame, starting from the previous frame's."""
    layouts: list[Array] = []
    for number, points in enumerate(vectors):
        def report_frame(share: float, done: int = number) -> None:
            report((done + share) / len(vectors))

        layouts.append(lay_out(points, layouts[-1] if layouts else None, report_frame))
        report_frame(1.0)
    return layouts


def _graph(material: Material, spec: AnalysisSpec) -> Arrays:
    """Compute the graph whose affinities the cluster sliders need."""
    indices = material.indices(spec)
    if spec.n_neighbors >= len(indices):
        raise UserError(f"A graph with {spec.n_neighbors} neighbors needs more than {spec.n_neighbors} images, and the "
                        f"scope '{spec.scope}' has {len(indices)}. Lower n_neighbors to at most {len(indices) - 1}.")
    points = material.vectors(spec.frames[0], indices)
    material.report(0.5, "graph")
    graph = AuthorityGraph.build(points, spec.n_neighbors, report=material.report)
    return {"indices": indices, "authority": graph.authority, "rows": graph.rows, "columns": graph.columns,
            "affinity": graph.affinity}


def _grid(material: Material, spec: AnalysisSpec) -> Arrays:
    """Assign each image of a map to a cell, and measure distances between cells.

    The distances are measured in the embedding, between neighboring cells.
    """
    _, indices, layout, vectors = material.source(spec)
    cells, rows, columns = snap_to_grid(layout, lambda share: material.report(share, "grid"))
    right, down = seams(vectors, cells, rows, columns)
    return {"indices": indices, "cells": cells, "right": right, "down": down}


def _placed(material: Material, spec: AnalysisSpec) -> Arrays:
    """Place new images on a map without changing it."""
    source, indices, layout, vectors = material.source(spec)
    embedder = material.embedder(spec.frame)
    folder = analysis_at(material.run, spec).images_folder
    new = np.concatenate([embed_pixels(embedder, embedder.encoder.prepare(read_image(path))[None])
                          for path in sorted(folder.iterdir())])
    material.report(0.5, "placing")
    neighbors = nearest(vectors, min(NEIGHBORS, len(vectors)), new)[1]
    return {"indices": indices, "positions": _positions(source, vectors, layout, new), "nearest": indices[neighbors]}


def _refine(material: Material, spec: AnalysisSpec) -> Arrays:
    """Refine the embedding of a scope; whitening and reduction are fitted on the training half."""
    from udml_core.numerics.refinement import Refiner  # loads scikit-learn

    recipe = Recipe.parse(spec.recipe)
    indices, (frame,) = material.indices(spec), spec.frames
    training = material.training_indices() if spec.scope == "test" else np.zeros(0, np.int64)
    plain = material.vectors(frame, indices)
    views = recipe.find("views")
    if isinstance(views, Views):
        rows = view_embeddings(material.embedder(frame), material.dataset, views, material.report)
        gallery, fitted_on = rows[indices], rows[training]
    else:
        gallery, fitted_on = plain, material.vectors(frame, training) if len(training) else training
    refiner = Refiner(recipe.without("views"))
    refiner.fit(gallery, training=fitted_on if len(training) else None,
                report=lambda share, step: material.report(share, step))
    dataset = material.dataset
    labels = None if dataset.labels is None else np.asarray(dataset.labels)[indices]
    deepest = 0 if labels is None else int(np.unique(labels, return_counts=True)[1].max()) - 1
    depth = min(max(STORED_NEIGHBORS, min(deepest, LARGEST_R)), len(indices) - 1)
    after, before = refiner.neighbors(depth), nearest(plain, depth)[1]
    measures = [label_free_measures(ranking, before) for ranking in (before, after.indices)]
    if labels is not None and 0 < deepest <= LARGEST_R:
        measures = [values | retrieval_measures(ranking, labels, labels, inside=True)
                    for values, ranking in zip(measures, (before, after.indices), strict=True)]
    kept = min(STORED_NEIGHBORS, depth)
    seen = ([("views", "nothing")] if views else []) + refiner.seen_
    return {"indices": indices, "embedding": refiner.embedding_, "neighbors": after.indices[:, :kept].astype(np.int32),
            "scores": after.scores[:, :kept], "before": before[:, :kept].astype(np.int32),
            "protocol": np.array(after.protocol), "seen": np.array(seen, dtype=str).reshape(-1, 2),
            "names": np.array(list(measures[0])), "values": np.array([list(values.values()) for values in measures])}


def _audit(material: Material) -> Arrays:
    """Compare all images with each other by their frozen features and, where there are images, by hashes."""
    dataset = material.dataset
    return vars(audit_of(dataset, material.vectors("frozen", np.arange(len(dataset))), material.report))


def _positions(source: AnalysisSpec, vectors: Array, layout: Array, new: Array) -> Array:
    """Compute the positions (q, 2) of new embeddings on a layout.

    Args:
        source: The map's spec.
        vectors: Embeddings (m, d) of the map's images.
        layout: Their positions (m, 2).
        new: New embeddings (q, d).
    """
    if source.kind == "umap":
        from udml_core.numerics.projection import umap

        return umap.place(vectors, layout, source.n_neighbors, source.min_dist, source.seed, new)
    if source.kind == "tsne":
        from udml_core.numerics.projection import tsne

        return tsne.place(vectors, layout, source.perplexity, source.seed, new).astype(np.float32)
    return pca.place(vectors, layout, new).astype(np.float32)
