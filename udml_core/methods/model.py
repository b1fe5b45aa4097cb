"""The model of an embedding, for images from outside the data set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
from PIL import Image

from udml_core.base.arrays import Array
from udml_core.data.dataset import Dataset, UserImage
from udml_core.data.features import FEW
from udml_core.data.inference import Inference, inference_of
from udml_core.data.refinement_views import View
from udml_core.methods.embedder import Embedder

Picture: TypeAlias = Image.Image | UserImage
"""An image from outside. Give large photographs as `UserImage`, which is decoded as small as stored images are."""
WHOLE = (View(),)


class Model:
    """Embeds images from outside as the data set's own images were: decoded as small, and by the same engine.

    Attributes:
        embedder: The encoder and the head.
    """

    def __init__(self, embedder: Embedder, dataset: Callable[[], Dataset]) -> None:
        """Refer to an embedder.

        Args:
            embedder: The embedder.
            dataset: Loads the data set, on which the engine was chosen.
        """
        self.embedder, self._dataset = embedder, dataset

    @cached_property
    def _inference(self) -> Inference:
        return inference_of(self.embedder.encoder, self._dataset(), FEW)

    def embed(self, image: Picture, views: Sequence[View] = WHOLE) -> Array:
        """Return the embedding (l,) of an image from outside, from the mean features of its views."""
        encoder = self.embedder.encoder
        read = image.reduced(encoder.needed_side) if isinstance(image, UserImage) else image.convert("RGB")
        mean = self._inference.mean_row(np.stack([view(read, encoder) for view in views]))
        row: Array = self.embedder.apply_head(mean)[0]
        return row

    def embed_prepared(self, pixels: Array) -> Array:
        """Return the embeddings (b, l) of prepared images (b, 3, s, s)."""
        return self.embedder.apply_head(self._inference.rows(pixels))
