"""The current image of the view Instances, its random views, and its competitors."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from udml_core.base.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.data.splits import Split
from udml_core.exploration import instances as views
from udml_core.numerics.explanations import LatentLayer
from udml_core.runs import Run
from udml_core.runs.search import TRAINED, Which

from ..shell.cached import dataset_of, load_retrieval, load_split
from ..shell.epochs import load_record
from ..shell.run_hash import RUN_HASH


@dataclass(frozen=True)
class ChosenImage:
    """An image of a run's data set.

    Attributes:
        run: The run.
        dataset: The run's data set.
        split: The run's split.
        index: Index of the image.
        draw: Seed of its two random views and of the batch.
    """

    run: Run
    dataset: Dataset
    split: Split
    index: int
    draw: int

    @property
    def half(self) -> Array:
        """Indices of the images of its half, (h,)."""
        return self.split.train if self.index in self.split.train else self.split.test


@st.cache_resource(max_entries=64, show_spinner="Drawing two views …", hash_funcs=RUN_HASH)
def random_views(run: Run, index: int, draw: int) -> tuple[Array, dict[Which, Array]]:
    """Return two random views of an image and their embeddings.

    Returns:
        The views as the network reads them, (2, c, s, s), and their embeddings before and after training, (2, l).
    """
    retrieval = load_retrieval(run)
    augmentation = retrieval.spec.build_method().augmentation
    pixels = views.two_views(retrieval.prepared(retrieval.dataset.images[index]), augmentation, draw)
    return pixels, {which: retrieval.embed_prepared(pixels, which) for which in TRAINED}


@st.cache_resource(max_entries=64, show_spinner="Comparing with other images …", hash_funcs=RUN_HASH)
def other_images(run: Run, index: int, which: Which, latent: bool, batch: int, draw: int) -> views.RankedImages:
    """Return the other images of an image's half, or of a random batch, by cosine.

    Args:
        run: The run.
        index: Index of the image.
        which: The embedding.
        latent: Whether to compare the latent z in place of the embedding x.
        batch: Size of the batch; 0 for the whole half.
        draw: Seed of the batch.
    """
    half = ChosenImage(run, dataset_of(run), load_split(run), index, draw).half
    among = views.draw_batch(half, index, batch, draw) if batch else half
    return views.rank_others(as_compared(run, run.embeddings(which), which, latent), index, among)


def as_compared(run: Run, rows: Array, which: Which, latent: bool) -> Array:
    """Return the embeddings x, (n, l), or their latent z."""
    epoch = run.kept_epoch() if which == "final" else run.epoch_numbers()[0]
    layer = load_record(run, epoch, LatentLayer) if latent else None
    return rows if layer is None else views.latent_rows(rows, layer.weight)
