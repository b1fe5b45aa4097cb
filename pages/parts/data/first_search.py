"""Search among the images that are compared already, while the features of the others are computed."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, Integers, evenly_spaced
from udml_core.data.dataset import Dataset
from udml_core.data.features import features_so_far
from udml_core.data.given.exclusions import excluded_images
from udml_core.exploration.browsing import most_similar
from udml_core.runs import Run

from ..draw.gallery import gallery, tile_of
from ..shell.address import write_address
from ..shell.cached import load_dataset
from ..shell.focus import carry_image, choose_image, current_elsewhere, suggest_image
from ..shell.run_hash import RUN_HASH
from ..shell.user_errors import show_user_errors

HITS, SIDE = 12, 128
SAMPLE = 24
"""Images that are shown before one is compared."""
STEPS = 20
"""How often at most the results of a query change while images are added."""


@st.fragment(run_every="4s")
@show_user_errors()
def show_first_search(run: Run) -> None:
    """Show the images most similar to one of the user's choice, as soon as some are compared; a sample before.

    The image stays the query when the page opens with all images.

    Args:
        run: The run whose features are computed.
    """
    dataset = load_dataset(run.spec().dataset)
    found = features_so_far(dataset, run.spec().encoder)
    if found is None:
        _show_sample(dataset)
        return
    (images, rows), step = found, max(1, len(dataset) // STEPS)
    images = np.setdiff1d(images[: max(step, len(images) // step * step)], excluded_images(dataset))
    if len(images) < 2:
        _show_sample(dataset)
        return
    carry_image(dataset.fingerprint)  # forgets an image of another data set
    wanted = current_elsewhere() or ""
    query = int(wanted) if wanted.isdecimal() and int(wanted) in images else int(images[len(images) // 2])
    suggest_image(query)
    st.markdown(f"**Search the first {len(images):,} of {len(dataset):,} images already.** Click an image to search "
                "with it; the others follow.")
    with st.container(horizontal=True, vertical_alignment="top", gap="medium"):
        with st.container(width=SIDE + 40):
            gallery(dataset, [tile_of(dataset, query)], "The query", "first-search-query", SIDE, query, columns=1)
            st.button("Another image", icon=":material/casino:", key="first-search-another",
                      on_click=lambda: _ask(int(np.random.default_rng().choice(images))))
        with st.container():
            hits = _hits(run, len(images), query, rows, images, dataset)
            gallery(dataset, [tile_of(dataset, index) for index in hits.tolist()], "The most similar images so far",
                    "first-search-hits", SIDE, on_pick=_ask)


def _show_sample(dataset: Dataset) -> None:
    """Show some of the images while none is compared yet."""
    st.markdown("**Search begins here as soon as the first images are compared.** Some of your images:")
    sample = np.setdiff1d(evenly_spaced(len(dataset), SAMPLE), excluded_images(dataset))
    gallery(dataset, [tile_of(dataset, index) for index in sample.tolist()], "Some of your images",
            "first-search-sample", SIDE)


def _ask(index: int) -> None:
    """Make an image the query, here and when the page opens with all images."""
    choose_image(index)
    write_address("add", str(index))


@st.cache_data(max_entries=64, show_spinner=False, hash_funcs=RUN_HASH)
def _hits(run: Run, count: int, query: int, _rows: Array, _images: Integers, _dataset: Dataset) -> Integers:  # noqa: ARG001
    return most_similar(_rows, _images, query, HITS)
