"""Test-time views: features of flipped and zoomed images.

The features of an image's views are averaged before they are scaled to unit length, so a view with a weak response
counts less. Flips and center crops at test time are standard since Krizhevsky et al., "ImageNet Classification with
Deep Convolutional Neural Networks", NeurIPS 2012.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from udml_core.base.arrays import Array, Integers, blocks
from udml_core.data.dataset import Dataset, Report, reduced
from udml_core.data.encoders import Encoder
from udml_core.data.features import BLOCK, FEW, Work, cached_rows, features_of
from udml_core.data.inference import Rows, inference_of, joined, torch_inference
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
    if view == View():
        return features_of(dataset, encoder, report)

    def make() -> Work:
        chosen = inference_of(encoder, dataset, len(dataset))
        return Work([lambda start, stop: _rows(dataset, encoder, view, range(start, stop), chosen.rows)], chosen.engine)

    return cached_rows(dataset, f"{encoder.spec.key}-{view.key}", (len(dataset), encoder.dimension), make, report,
                       "features of views")


def view_features_of_some(dataset: Dataset, encoder: Encoder, view: View, indices: Sequence[int] | Integers) -> Array:
    """Return a frozen encoder's features (m, d) of one view of a few images; they are not stored."""
    return _rows(dataset, encoder, view, indices, inference_of(encoder, dataset, FEW).rows)


def stored_view_features(dataset: Dataset, encoder: Encoder, view: View, indices: Integers,
                         report: Report = lambda _share, _step: None) -> Array:
    """Return a frozen encoder's features (m, d) of one view of some images (m,), computed on first use."""
    def make() -> Work:
        chosen = inference_of(encoder, dataset, FEW)
        return Work([lambda start, stop: _rows(dataset, encoder, view, indices[start:stop], chosen.rows)],
                    chosen.engine)

    digest = hashlib.sha1(np.ascontiguousarray(indices, np.int64).tobytes(), usedforsecurity=False).hexdigest()[:12]
    return cached_rows(dataset, f"{encoder.spec.key}-{view.key}-{digest}", (len(indices), encoder.dimension), make,
                       report, "changed copies")


def _rows(dataset: Dataset, encoder: Encoder, view: View, indices: Iterable[int], rows: Rows) -> Array:
    return rows(np.stack([view(reduced(dataset.images, int(index), encoder.needed_side), encoder)
                          for index in indices]))


def _computed(dataset: Dataset, encoder: Encoder, view: View, report: Report) -> Array:
    """Return the features (n, d) of one view of every image by an encoder that was trained; they are not stored."""
    found = np.empty((len(dataset), encoder.dimension), np.float32)
    for start in range(0, len(dataset), BLOCK):
        stop = min(start + BLOCK, len(dataset))
        found[start:stop] = _rows(dataset, encoder, view, range(start, stop), torch_inference(encoder).rows)
        report(stop / len(dataset), "features of views")
    return found


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
    total = np.zeros((len(dataset), encoder.dimension), np.float32)
    for number, view in enumerate(views):
        def report_view(share: float, step: str, done: int = number) -> None:
            report((done + share) / len(views), step)

        total += view_features(dataset, encoder, view, report_view) if cached else _computed(
            dataset, encoder, view, report_view)
    return total / len(views)
