"""Test-time views: features of flipped and zoomed images.

The features of an image's views are averaged before they are scaled to unit length, so a view with a weak response
counts less. Flips and center crops at test time are standard since Krizhevsky et al., "ImageNet Classification with
Deep Convolutional Neural Networks", NeurIPS 2012.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from PIL import Image

from udml_core.base.arrays import Array, Integers, blocks
from udml_core.data.dataset import Dataset, Report, reduced
from udml_core.data.encoders import Encoder
from udml_core.data.features import BLOCK, FEW, PreparedImages, Work, cached_rows, features_of
from udml_core.data.inference import Inference, inference_of, joined, torch_inference
from udml_core.data.reusing import earlier_file
from udml_core.numerics.refinement.recipe import Views


@dataclass(frozen=True)
class View:
    """One view of an image.

    Attributes:
        zoom: Share of each side that a crop around the center keeps; 1 keeps the whole image.
        flip: Whether the image is mirrored left to right.
    """

    zoom: float = 1.0
    flip: bool = False

    def __call__(self, image: Image.Image, encoder: Encoder) -> Array:
        """Prepare this view of an image for an encoder, (3, s, s) uint8."""
        pixels = encoder.prepare(center_crop(image, self.zoom))
        return pixels[:, :, ::-1] if self.flip else pixels

    @property
    def key(self) -> str:
        """A part of a file name, unique among views."""
        return f"zoom{1000 * self.zoom:.0f}{'-flip' if self.flip else ''}"


def center_crop(image: Image.Image, share: float) -> Image.Image:
    """Keep a share of each side around the center; the whole image if the share is 1."""
    if share == 1:
        return image
    width, height = (max(1, round(share * side)) for side in image.size)
    left, top = (image.width - width) // 2, (image.height - height) // 2
    return image.crop((left, top, left + width, top + height))


class _Reading:
    """Reads each image once for several of its views, which ask for the same block one after the other."""

    def __init__(self, dataset: Dataset, encoder: Encoder, indices: Integers | None = None) -> None:
        self.zooms: list[float] = []
        self._last: tuple[tuple[int, int], Array] | None = None

        def squares(image: Image.Image) -> Array:
            return np.stack([View(zoom)(image, encoder) for zoom in self.zooms])

        self._images = PreparedImages(dataset, encoder, indices=indices, make=squares)

    def add(self, view: View) -> None:
        """Prepare one view more; a mirrored view is prepared with the view that it mirrors."""
        if view.zoom not in self.zooms:
            self.zooms.append(view.zoom)

    def pixels(self, view: View, start: int, stop: int) -> Array:
        """Return a view of a block of images, (b, 3, s, s) uint8."""
        if self._last is None or self._last[0] != (start, stop):
            self._last = (start, stop), self._images[start:stop]
        pixels = self._last[1][:, self.zooms.index(view.zoom)]
        return np.ascontiguousarray(pixels[..., ::-1] if view.flip else pixels)

    def work(self, view: View, chosen: Inference) -> Work:
        """Return how the features of a view are computed."""
        self.add(view)
        return Work([lambda start, stop: chosen.rows(self.pixels(view, start, stop))], chosen.engine)


def view_features(dataset: Dataset, encoder: Encoder, view: View,
                  report: Report = lambda _share, _step: None) -> Array:
    """Return a frozen encoder's features of one view of every image, computed on first use.

    Args:
        dataset: The data set.
        encoder: The frozen encoder; a single one, because the views of several are averaged for each.
        view: The view.
        report: Receives the progress.

    Returns:
        Features (n, d) float32, memory-mapped and read-only.
    """
    return _features_of_views(dataset, encoder, [view], report)[0]


def _features_of_views(dataset: Dataset, encoder: Encoder, views: Sequence[View], report: Report) -> list[Array]:
    """Return a frozen encoder's features of several views of every image; each image is read once for all of them.

    The whole image is the view of the frozen features. In a folder that grew they begin with rows that are stored, so
    that its images are read apart.
    """
    whole = f"{encoder.spec.key}.npy"
    if View() in views and (dataset.is_table or views == [View()] or earlier_file(dataset, whole) is not None):
        rows = features_of(dataset, encoder, report)
        others = [view for view in views if view != View()]
        found = iter(_features_of_views(dataset, encoder, others, report) if others else [])
        return [rows if view == View() else next(found) for view in views]
    reading = _Reading(dataset, encoder)

    def make(view: View) -> Work:
        return reading.work(view, inference_of(encoder, dataset, len(dataset)))

    names = [encoder.spec.key + (f"-{view.key}" if view != View() else "") for view in views]
    return cached_rows(dataset, {name: partial(make, view) for name, view in zip(names, views, strict=True)},
                       (len(dataset), encoder.dimension), report, "features of views")


def view_features_of_some(dataset: Dataset, encoder: Encoder, view: View, indices: Sequence[int] | Integers) -> Array:
    """Return a frozen encoder's features (m, d) of one view of a few images; they are not stored."""
    rows = inference_of(encoder, dataset, FEW).rows
    return rows(np.stack([view(reduced(dataset.images, int(index), encoder.needed_side), encoder)
                          for index in indices]))


def stored_view_features(dataset: Dataset, encoder: Encoder, view: View, indices: Integers,
                         report: Report = lambda _share, _step: None) -> Array:
    """Return a frozen encoder's features (m, d) of one view of some images (m,), computed on first use."""
    def make() -> Work:
        return _Reading(dataset, encoder, indices).work(view, inference_of(encoder, dataset, FEW))

    digest = hashlib.sha1(np.ascontiguousarray(indices, np.int64).tobytes(), usedforsecurity=False).hexdigest()[:12]
    return cached_rows(dataset, {f"{encoder.spec.key}-{view.key}-{digest}": make}, (len(indices), encoder.dimension),
                       report, "changed copies")[0]


def _computed(dataset: Dataset, encoder: Encoder, views: Sequence[View], report: Report) -> Array:
    """Return the sum (n, d) of the features of views of every image by a trained encoder; nothing is stored."""
    total, rows = np.zeros((len(dataset), encoder.dimension), np.float32), torch_inference(encoder).rows
    reading = _Reading(dataset, encoder)
    for view in views:
        reading.add(view)
    for start in range(0, len(dataset), BLOCK):
        stop = min(start + BLOCK, len(dataset))
        for view in views:
            total[start:stop] += rows(reading.pixels(view, start, stop))
        report(stop / len(dataset), "features of views")
    return total


def views_of_step(step: Views) -> list[View]:
    """List the views that a recipe's step averages: the image, its crop, and the mirror images of both."""
    zooms = [1.0] if step.zoom == 1 else [1.0, step.zoom]
    return [View(zoom, flip) for zoom in zooms for flip in ((False, True) if step.flip else (False,))]


def average_features(dataset: Dataset, encoder: Encoder, views: Sequence[View],
                     report: Report = lambda _share, _step: None, cached: bool = True) -> Array:
    """Average the features of several views of every image, before unit length.

    Of several encoders side by side the features of each are averaged before they are joined.

    Args:
        dataset: The data set.
        encoder: The encoder.
        views: At least one view.
        report: Receives the progress.
        cached: Whether the features are stored. They must not be if the encoder was trained: stored features belong to
            the frozen encoder of the same settings.

    Returns:
        Features (n, d) float32.
    """
    if encoder.spec.parts:
        means = [average_features(dataset, part, views, report, cached) for part in encoder.part_encoders]
        return np.concatenate([joined(encoder, [mean[some] for mean in means])
                               for some in blocks(len(dataset), encoder.dimension)])
    if not cached:
        return _computed(dataset, encoder, views, report) / len(views)
    total = np.zeros((len(dataset), encoder.dimension), np.float32)
    for rows in _features_of_views(dataset, encoder, list(views), report):
        total += rows
    return total / len(views)
