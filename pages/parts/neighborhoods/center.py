"""The first image of the view Neighborhoods, its nearest images, the second image."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import streamlit as st
from PIL import Image

from udml_core.base.arrays import Array
from udml_core.base.declaration import describe_field
from udml_core.data.dataset import Dataset
from udml_core.exploration import neighborhoods as views
from udml_core.exploration.gallery_content import Mark
from udml_core.methods.plm import PLM
from udml_core.runs import Run
from udml_core.runs.search import Which

from ..draw.gallery import mark_of
from ..retrieval.own_images import OwnImage, embed_image
from ..shell.address import number_from_address, write_address
from ..shell.cached import load_retrieval
from ..shell.interesting import current_image
from ..shell.run_hash import RUN_HASH

NEAREST, DEFAULT_SECOND = 200, 9
"""Number of nearest images, and the rank of the second image at first, counted from 0."""
MOST_CANDIDATES = int(describe_field(PLM, "candidates").slider[1])
OWN_IMAGE = "looked-at"
"""Session key of the own image that is the first image."""


@dataclass(frozen=True)
class Center:
    """The first image with its nearest images in one of a run's embeddings.

    Attributes:
        run: The run.
        dataset: The data set.
        which: The embedding.
        index: Index of the image; −1 for an own image from outside the data set.
        name: The image's name.
        image: The image.
        around: The image and its nearest images, each with its candidates.
    """

    run: Run
    dataset: Dataset
    which: Which
    index: int
    name: str
    image: Image.Image
    around: views.Surroundings

    @property
    def nearest(self) -> Array:
        """Indices of the nearest images, nearest first."""
        return self.around.rows[1:]

    @cached_property
    def same_class(self) -> Array | None:
        """Which nearest images have the image's class; None without a known class."""
        labels = self.dataset.labels
        return None if labels is None or self.index < 0 else labels[self.nearest] == labels[self.index]

    @cached_property
    def metric(self) -> str:
        """Name of the metric that finds the nearest images.

        Unit vectors have the same order by cosine and by distance.
        """
        return "cosine" if self.run.is_normalized(self.which) else "distance"

    def mark(self, index: int) -> Mark:
        """Return whether an image has the same class."""
        return mark_of(self.dataset, index, self.index) if self.index >= 0 else ""


@st.cache_resource(max_entries=16, show_spinner="Searching the nearest images …", hash_funcs=RUN_HASH)
def _surroundings(run: Run, which: Which, image: int | str, _vector: Array | None) -> views.Surroundings:
    """Return an image and its nearest images, each with its candidates.

    Args:
        run: The run.
        which: The embedding.
        image: Index of the image, or the digest of an own image.
        _vector: Embedding (l,) of an own image.
    """
    embedding = run.embeddings(which)
    if isinstance(image, int):
        rows = np.append(image, views.nearest_rows(embedding, image, NEAREST))
        return views.surroundings(embedding, rows, MOST_CANDIDATES)
    assert _vector is not None
    return views.surroundings(embedding, views.nearest_rows(embedding, _vector, NEAREST), MOST_CANDIDATES, _vector)


@st.cache_resource(max_entries=16, show_spinner="Searching the candidates …", hash_funcs=RUN_HASH)
def surroundings_of(run: Run, which: Which, rows: tuple[int, ...]) -> views.Surroundings:
    """Return images of the data set, each with its candidates."""
    return views.surroundings(run.embeddings(which), np.array(rows), MOST_CANDIDATES)


def load_center(run: Run, dataset: Dataset, which: Which) -> Center:
    """Return the first image.

    Returns:
        The session's own image, else the image in the address, else the image that pages show first.
    """
    own: OwnImage | None = st.session_state.get(OWN_IMAGE)
    if own is not None:
        around = _surroundings(run, which, own.digest, embed_image(load_retrieval(run), own, which))
        return Center(run, dataset, which, -1, own.name, own.image, around)
    index = current_image(run, dataset)
    around = _surroundings(run, which, index, None)
    return Center(run, dataset, which, index, dataset.caption(index), dataset.images[index], around)


def second_index(center: Center) -> int:
    """Return the second image's index, from the address, else a nearest image's."""
    default = int(center.nearest[min(DEFAULT_SECOND, len(center.nearest) - 1)])
    second = int(number_from_address("second", default, 0, len(center.dataset) - 1))
    return default if second == center.index else second


def set_images(first: int = -1, second: int = -1) -> None:
    """Make data set images the first and the second image; remove an own image.

    Args:
        first: Index of the first image; −1 keeps the image.
        second: Index of the second image; −1 keeps the image.
    """
    st.session_state.pop(OWN_IMAGE, None)
    for parameter, index in (("picked", first), ("second", second)):
        if index >= 0:
            write_address(parameter, str(index))
