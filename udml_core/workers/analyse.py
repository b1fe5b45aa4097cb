"""Executes an analysis. The only writer of its result."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np

from udml_core.analyses import Analysis, AnalysisSpec, analysis_at, create_analysis, find_analysis
from udml_core.arrays import Array
from udml_core.backbones import Encoder
from udml_core.data.dataset import Dataset, Report, read_image
from udml_core.data.features import embed_pixels, features_of
from udml_core.data.splits import make_split
from udml_core.errors import UserError
from udml_core.evaluation import distortion, distortion_neighbors
from udml_core.graph import AuthorityGraph
from udml_core.methods import Embedder
from udml_core.neighbors import nearest
from udml_core.projection import pca
from udml_core.projection.grid import seams, snapped
from udml_core.runs import Run
from udml_core.tasks import Status
from udml_core.workers.execute import Reporter, execute

Arrays = Mapping[str, Array]
LEAST = 10
"""Images below which a neighborhood, and so a map, says nothing."""
NEIGHBORS = 10
log = logging.getLogger("udml")


def work(analysis: Analysis) -> Status:
    """Compute an analysis from its spec. Its failure is written down, not raised."""
    def do(reporter: Reporter) -> None:
        reporter.change(state="running", started=time.time(), phase="starting", share=0.0)
        analysis.write_result(compute(analysis.run, analysis.spec(), reporter.share))

    return execute(analysis, do)


def keep(run: Run, spec: AnalysisSpec, report: Report) -> Analysis:
    """Compute an analysis here and now where it is not there yet; its folder is made once there is a result."""
    analysis = analysis_at(run, spec)
    return analysis if analysis.is_done() else create_analysis(run, spec, state="done",
                                                               result=compute(run, spec, report))


def compute(run: Run, spec: AnalysisSpec, report: Report) -> Arrays:
    """The arrays of a result.

    Raises:
        UserError: there are too few images for what is asked, or the data set is gone.
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


class Material:
    """What analyses are made from: a run's embeddings and, where they are needed, its images and frozen features."""

    def __init__(self, run: Run, report: Report) -> None:
        self.run = run
        self.report = report
        self.spec = run.spec()

    @cached_property
    def dataset(self) -> Dataset:
        return self.run.dataset(self.report)

    def indices(self, spec: AnalysisSpec) -> Array:
        """Data set positions (m,), ascending, of the images in an analysis's scope."""
        match spec.scope:
            case "all":
                found = np.arange(len(self.run.embeddings("final")))
            case "sample":
                found = self.run.sample_indices()
            case "test" | "train":
                given = self.spec
                split = make_split(self.dataset, given.split, given.holds_out, given.seed)
                found = split.test if spec.scope == "test" else split.train
        if len(found) < LEAST:
            raise UserError(f"Neighborhoods need at least {LEAST} images, and the scope '{spec.scope}' has "
                            f"{len(found)}. Choose a larger scope, or more images.")
        return found

    def vectors(self, frame: str, indices: Array) -> Array:
        """Unit embeddings (m, d) float32 of images by position, in a frame; of the sample where it is an epoch."""
        match frame:
            case "frozen":
                encoder = Encoder(self.spec.encoder)
                features = features_of(self.dataset, encoder, self.report)
                return Embedder(encoder).embed_features(features[indices])
            case "initial" | "final":
                return np.asarray(self.run.embeddings(frame)[indices])
            case _:
                if int(frame) not in self.run.epoch_numbers():
                    raise UserError(f"The run {self.run.id} has the epochs 0 to {self.run.epoch_numbers()[-1]}, and "
                                    f"epoch {frame} was asked for.")
                return self.run.epoch_sample(int(frame))

    def embedder(self, frame: str) -> Embedder:
        """What embeds new images as they are in a frame."""
        match frame:
            case "frozen":
                return Embedder(Encoder(self.spec.encoder)).eval()
            case "initial":
                return Embedder.load(self.run.initial_embedder_path)
            case "final":
                return Embedder.load(self.run.embedder_path)
            case _:
                raise UserError(f"New images are embedded as frozen, initial or final; of epoch {frame} only the "
                                "sample's embedding is kept. Choose a map of one of the three.")

    def source(self, spec: AnalysisSpec) -> tuple[AnalysisSpec, Array, Array, Array]:
        """The map that an analysis starts from: its spec, data set positions, layout and vectors in the frame."""
        source = find_analysis(self.run, spec.source)
        projection = source.projection()
        if spec.frame not in projection.frames:
            raise UserError(f"The map {source.id} has the frames {', '.join(projection.frames)}, and "
                            f"'{spec.frame}' was asked for.")
        layout = projection.positions[projection.frames.index(spec.frame)]
        return source.spec(), projection.indices, layout, self.vectors(spec.frame, projection.indices)


def _map(material: Material, spec: AnalysisSpec) -> Arrays:
    """Every frame laid out, and what its map does not show faithfully."""
    indices = material.indices(spec)
    vectors = [material.vectors(frame, indices) for frame in spec.frames]
    layouts = _layouts(vectors, spec, lambda share: material.report(share, "layout"))
    trust, continuity = np.empty((2, len(layouts), len(indices)), np.float32)
    k = distortion_neighbors(len(indices))
    for frame, (points, layout) in enumerate(zip(vectors, layouts, strict=True)):
        def tell(share: float, before: int = frame) -> None:
            material.report((before + share) / len(layouts), "distortion")

        trust[frame], continuity[frame] = distortion(points, layout, k, tell)
    near = [nearest(points, min(NEIGHBORS, len(indices) - 1))[1] for points in vectors]
    return {"indices": indices, "positions": np.stack(layouts).astype(np.float32),
            "neighbors": np.stack(near).astype(np.int32), "trustworthiness": trust, "continuity": continuity}


def _layouts(vectors: list[Array], spec: AnalysisSpec, report: Callable[[float], None]) -> list[Array]:
    """A layout (m, 2) for each frame's points (m, d). What takes seconds to import is imported where it is needed."""
    if spec.kind == "umap":
        from udml_core.projection.umap import umap_layouts

        return umap_layouts(vectors, spec.n_neighbors, spec.min_dist, spec.seed, report)
    if spec.kind == "tsne":
        from udml_core.projection.tsne import tsne_layout

        return _one_by_one(vectors, lambda points, before, tell: tsne_layout(
            points, spec.perplexity, spec.seed, before, tell), report)
    return _one_by_one(vectors, lambda points, before, _tell: pca.pca_layout(points, before), report)


def _one_by_one(vectors: list[Array], lay_out: Callable[[Array, Array | None, Callable[[float], None]], Array],
                report: Callable[[float], None]) -> list[Array]:
    """Each frame laid out from the one before it."""
    layouts: list[Array] = []
    for number, points in enumerate(vectors):
        def tell(share: float, before: int = number) -> None:
            report((before + share) / len(vectors))

        layouts.append(lay_out(points, layouts[-1] if layouts else None, tell))
        tell(1.0)
    return layouts


def _graph(material: Material, spec: AnalysisSpec) -> Arrays:
    """The affinities from which clusters are re-formed."""
    indices = material.indices(spec)
    if spec.n_neighbors >= len(indices):
        raise UserError(f"A graph of {spec.n_neighbors} neighbors needs more images than that, and the scope "
                        f"'{spec.scope}' has {len(indices)}. Lower n_neighbors to at most {len(indices) - 1}.")
    points = material.vectors(spec.frames[0], indices)
    material.report(0.5, "graph")
    graph = AuthorityGraph.build(points, spec.n_neighbors)
    return {"indices": indices, "authority": graph.authority, "rows": graph.rows, "columns": graph.columns,
            "affinity": graph.affinity}


def _grid(material: Material, spec: AnalysisSpec) -> Arrays:
    """A map's images in cells, and how far neighbors are from each other in truth."""
    _, indices, layout, vectors = material.source(spec)
    cells, rows, columns = snapped(layout, lambda share: material.report(share, "grid"))
    right, down = seams(vectors, cells, rows, columns)
    return {"indices": indices, "cells": cells, "right": right, "down": down}


def _placed(material: Material, spec: AnalysisSpec) -> Arrays:
    """New images on a map that stays as it is."""
    source, indices, layout, vectors = material.source(spec)
    embedder = material.embedder(spec.frame)
    folder = analysis_at(material.run, spec).images_folder
    new = np.concatenate([embed_pixels(embedder, embedder.encoder.prepare(read_image(path))[None])
                          for path in sorted(folder.iterdir())])
    material.report(0.5, "placing")
    near = nearest(vectors, min(NEIGHBORS, len(vectors)), new)[1]
    return {"indices": indices, "positions": _places(source, vectors, layout, new), "nearest": indices[near]}


def _places(source: AnalysisSpec, vectors: Array, layout: Array, new: Array) -> Array:
    if source.kind == "umap":
        from udml_core.projection import umap

        return umap.place(vectors, layout, source.n_neighbors, source.min_dist, source.seed, new)
    if source.kind == "tsne":
        from udml_core.projection import tsne

        return tsne.place(vectors, layout, source.perplexity, source.seed, new).astype(np.float32)
    return pca.place(vectors, layout, new).astype(np.float32)
