"""A refinement that is searched at once: no analysis is stored, and only the rankings of queries are computed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NoReturn

import numpy as np

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.exploration.refining.live import MOST_IMAGES, MOST_TRAINING
from udml_core.exploration.refining.unrefined import rounded_sample
from udml_core.numerics.refinement.recipe import Recipe, Views
from udml_core.runs import Run
from udml_core.runs.analyses import Refined, Scope, plan_analysis
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.search.frame import Frame
from udml_core.runs.search.names import OF_ALL, RECIPE
from udml_core.runs.search.refined import RefinedIndex, are_views_stored, gallery_words

FEWEST = 3
"""Test images that a refinement needs at least."""


def refined_frame(name: str, run: Run, dataset: Callable[[], Dataset], start: Callable[[], Frame]) -> Frame:
    """Return the test half or all images of an embedding, refined by a recipe for the queries that are asked.

    The steps are the same as in `Refinement`. Of many images an evenly spaced sample is searched, so that the answer
    takes seconds at most.

    Args:
        name: `recipe:`, for all images `all:`, and the recipe; views only if their features are stored, because they
            take minutes.
        run: The run.
        dataset: Loads its data set.
        start: Opens the embedding after training.

    Raises:
        UserError: The recipe is not possible, or there are too few images.
    """
    text = name.removeprefix(RECIPE)
    scope: Scope = "all" if text.startswith(OF_ALL) else "test"
    recipe = Recipe.parse(text.removeprefix(OF_ALL))
    if not is_at_once(run, recipe):
        raise UserError("A refinement at once needs steps without views, unless the features of the views are stored; "
                        f"got '{recipe}'. Apply the recipe on the page Refine.")
    split = run.spec().halves(dataset())
    searched = split.test if scope == "test" else np.setdiff1d(np.arange(len(dataset())), split.excluded)
    if len(searched) < FEWEST:
        raise UserError(f"A refinement needs at least {FEWEST} images to search; got {len(searched)}. Add images to "
                        "the data set.")
    images = searched[rounded_sample(len(searched), MOST_IMAGES)]
    training = split.train[rounded_sample(len(split.train), MOST_TRAINING)]
    index = RefinedIndex(run, plan_analysis(Refinement, recipe=str(recipe), scope=scope), _without_rankings(images),
                         dataset, start, training)
    words = "images" if scope == "all" or split.name == "all" else "test half"
    if len(images) < len(searched):
        part = f"sample of the {words}"
    else:
        part = "" if words == "images" or len(images) == len(run.embeddings("final")) else words
    return Frame(run, name, np.zeros((len(images), 0), np.float32), images, part, lambda: index,
                 partial(_has_no_model, name),
                 describe_recipe(recipe, len(images), scope == "all" or run.spec().split == "all"))


def is_at_once(run: Run, recipe: Recipe) -> bool:
    """Return whether the embedding after training can be refined at once: with steps, and views that are stored."""
    views = recipe.find("views")
    return bool(recipe.steps) and (not isinstance(views, Views) or are_views_stored(run, views))


def describe_recipe(recipe: Recipe, count: int, is_whole: bool = False) -> str:
    """Describe a refinement at once, and what it means for queries from outside.

    Args:
        recipe: The recipe.
        count: Number of refined images.
        is_whole: Whether all images are refined, so that they are not called test images.
    """
    return gallery_words(recipe, count, "images" if is_whole else "test images", "without labels")


def _without_rankings(images: Array) -> Refined:
    """Return a refinement that stores no ranking, so that each query is ranked when it is asked."""
    rows, numbers = np.zeros((len(images), 0), np.float32), np.zeros((len(images), 0), np.int32)
    return Refined(images, rows, numbers, rows, numbers, "transductive", (), {})


def _has_no_model(name: str) -> NoReturn:
    raise UserError(f"The embedding '{name}' has no model, because it is not stored. Apply the recipe on the page "
                    "Refine.")
