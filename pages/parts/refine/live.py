"""The gallery of the view Refine: a run's test images, on which recipes are tried."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, rows_of
from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.exploration import refining
from udml_core.exploration.refining import LiveGallery, RefinedGallery
from udml_core.methods import Embedder
from udml_core.numerics.refinement import Recipe
from udml_core.numerics.refinement.recipe import Views
from udml_core.runs import Run
from udml_core.runs.analyses import DEFAULT_RECIPE
from udml_core.runs.search import are_views_stored, view_embeddings

from ..shell.address import number_from_address, write_address
from ..shell.cached import dataset_of, load_split
from ..shell.run_hash import RUN_HASH

SAMPLING_RECIPE = Recipe.parse(DEFAULT_RECIPE).without("views")
"""The recipe that chooses sample queries: it changes more rankings than the recipe that the page opens with."""
LEAST, SAMPLES = 12, 18


@dataclass(frozen=True)
class Live:
    """A run's test images, prepared for recipes.

    Attributes:
        run: The run.
        dataset: Its data set.
        images: Data set indices (n,) of the gallery's images, ascending.
        total: Number of images in the test half; more than n if the gallery is evenly spaced images of it.
        has_training: Whether whitening and reduction are fitted on the training half.
        has_views: Whether the recipe's views are averaged.
        gallery: Their embeddings.
        samples: Rows of queries that show what whitening and averages do.
    """

    run: Run
    dataset: Dataset
    images: Array
    total: int
    has_training: bool
    has_views: bool
    gallery: LiveGallery
    samples: Array

    @property
    def labels(self) -> Array | None:
        """Class (n,) of each image, if the data set has classes."""
        return labels_of(self.dataset, self.images)

    def row_in_address(self, parameter: str, default: int) -> int:
        """Return the row of the image that the address names, or the default."""
        index = int(number_from_address(parameter, -1))
        row = int(rows_of(self.images, index))
        return default if row < 0 else row

    def write_row(self, parameter: str, row: int) -> None:
        """Make the address name the image of a row."""
        write_address(parameter, str(self.images[row]))


def labels_of(dataset: Dataset, images: Array) -> Array | None:
    """Return the class of each image as numbers from 0, if the data set has classes."""
    return None if dataset.labels is None else np.unique(np.asarray(dataset.labels)[images], return_inverse=True)[1]


def rank_after(live: Live, refined: RefinedGallery, queries: Array, k: int) -> Array:
    """Rank the gallery (q, k) after a recipe; without steps, as before, not by cosine as every recipe begins."""
    return refined.rank(queries, k) if refined.recipe.steps else live.gallery.before.rank(queries)[:, :k]


def load_live(run: Run, recipe: Recipe) -> Live:
    """Return a run's gallery, prepared once, with the views of a recipe if their features are stored.

    Raises:
        UserError: There are too few test images, or the data set is not available.
    """
    dataset_of(run)
    views = recipe.find("views")
    return _live(run, str(views) if isinstance(views, Views) and are_views_stored(run, views) else "")


@st.cache_resource(max_entries=4, show_spinner="Searching neighbors …", hash_funcs=RUN_HASH)
def _live(run: Run, views: str) -> Live:
    """Prepare the gallery, with the views of a recipe's step or without."""
    dataset, split = dataset_of(run), load_split(run)
    if len(split.test) < LEAST:
        raise UserError(f"Refinement needs at least {LEAST} test images, got {len(split.test)}. Add images to the data "
                        "set.")
    stored, has_training = run.embeddings("final"), split.name != "all"
    step = Recipe.parse(views).find("views")
    embeddings = view_embeddings(Embedder.load(run.embedder_path), dataset, step) if isinstance(step, Views) else stored
    images = split.test[refining.rounded_sample(len(split.test), refining.MOST_IMAGES)]
    training = split.train[refining.rounded_sample(len(split.train), refining.MOST_TRAINING)]
    gallery = LiveGallery(stored[images], embeddings[training] if has_training else None,
                          embeddings[images] if views else None)
    if views:
        samples = _live(run, "").samples
    else:
        refined = gallery.refine(SAMPLING_RECIPE)
        samples = refining.choose_queries(refined, labels_of(dataset, images), SAMPLES)
    return Live(run, dataset, images, len(split.test), has_training, bool(views), gallery, samples)
