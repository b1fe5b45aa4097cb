"""Why the first result is similar to a query that is not a single image of the data set."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.base.errors import UserError, counted
from udml_core.runs.search import Gallery, Query, Retrieval, shared_neighbors

from ..draw.gallery import gallery, tile_of
from ..draw.two_images import two_images
from ..shell.run_status import escaped
from ..shell.views import view_link

NEAREST, FEWEST, SHARE, SHOWN = 20, 3, 10, 12
"""Nearest images that are compared at most and at least, the part 1/10 of a small data set that they are at most, and
the images that are drawn."""


def explain_result(retrieval: Retrieval, query: Query, result: int, searched: Gallery,
                   on_pick: Callable[[int], None], row: DeltaGenerator, single: int | None = None) -> None:
    """Show the query beside its first result, and the nearest images that they share, behind a switch.

    Args:
        retrieval: The search of a run.
        query: The query, as the embedding after training has it.
        result: Index of the first result.
        searched: The images that are searched.
        on_pick: Called with an image that is clicked.
        row: Where the switch stands.
        single: The query's index; None for a query from outside or of several images, whose picture the bar shows.
    """
    if not row.toggle("Why is the first result similar?", key="query-why"):
        return
    if single is not None:
        two_images(retrieval.dataset, (single, result), with_names=True)
    count = max(FEWEST, min(NEAREST, int(retrieval.searched("final", searched).sum()) // SHARE))
    try:
        shared = shared_neighbors(retrieval, query, result, count, gallery=searched)
    except UserError as error:
        st.caption(escaped(str(error)))
        return
    name = escaped(retrieval.dataset.caption(result))
    verdict = ("They lie in the same group of images." if len(shared) > count // 2 else
               "They share few: the first result is the nearest image, but of another group." if shared else
               "They share none: nothing else supports this result.")
    st.markdown(f"The query and **{name}** share {counted(len(shared), 'image')} of the {count} nearest images of "
                f"each. {verdict}")
    if shared:
        tiles = [tile_of(retrieval.dataset, image.image, "", f"{image.of_query} · {image.of_result}")
                 for image in shared[:SHOWN]]
        gallery(retrieval.dataset, tiles, "Nearest images of both", "retrieval-shared", 72, strip=True,
                on_pick=on_pick)
        st.caption("Below each image: its rank for the query · its rank for the first result.")
    if single is not None:
        view_link("neighborhoods", label="Show the formula", icon=":material/function:", width="content",
                  query_params={"run": retrieval.run.id, "picked": str(single), "second": str(result)})
