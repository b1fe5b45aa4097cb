"""Results of a search: rankings, the nearest image by epoch, and downloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import streamlit as st

from pages.parts.base.address import write_address
from pages.parts.components.gallery import Mark, Tile, gallery, mark_of, tile_of
from pages.parts.kit.downloads import Download, share, table_file
from udml_core.exporting import embeddings_file
from udml_core.retrieval import Hit, Retrieval, Which

MARKS: dict[bool | None, Mark] = {True: "hit", False: "miss", None: ""}
Searched = Which | Literal["refined"]
SEARCHED: dict[Searched, str] = {"initial": "before training", "final": "after training", "refined": "refined"}
"""The embeddings that can be searched, in words."""
Rankings = Mapping[Searched, list[Hit]]


def show_rankings(retrieval: Retrieval, rankings: Rankings) -> int | None:
    """Show two rankings side by side.

    Returns:
        The index of the image that was clicked just now.
    """
    clicked = None
    for column, (which, hits) in zip(st.columns(2, gap="large"), rankings.items(), strict=True):
        when = SEARCHED[which]
        with column:
            known = [hit.correct for hit in hits if hit.correct is not None]
            score = f" · {sum(known)} of {len(known)} hits" if known else ""
            st.markdown(f"**{when.capitalize()}**{score}")
            tiles = [Tile(hit.index, retrieval.dataset.caption(hit.index), MARKS[hit.correct],
                          f"{hit.rank}. {hit.shown:.3f}") for hit in hits]
            clicked_here = gallery(retrieval.dataset, tiles, f"The {len(hits)} nearest images, {when}",
                                   f"retrieval-{which}", side=96)
            clicked = clicked_here if clicked_here is not None else clicked
    normalized = all(hit.similarity is not None for hits in rankings.values() for hit in hits)
    number = "cosine similarity" + ("" if normalized else ", or the distance if embeddings do not have unit length")
    number += ", or the score of a re-ranking" if "refined" in rankings else ""
    st.caption(f"The number is the {number}. ✓ with a solid frame: same class as the added images. ✕ with a dashed "
               "frame: another class.")
    return clicked


def show_epochs(retrieval: Retrieval, index: int) -> int | None:
    """Show the nearest image of a query in the fixed sample by epoch.

    Returns:
        The index of the image that was clicked just now.
    """
    shown = st.toggle("Nearest image by epoch", st.query_params.get("epochs") == "1", key="query-epochs")
    write_address("epochs", "1" if shown else "")
    if not shown:
        return None
    with st.spinner("Searching in every epoch …"):
        history = retrieval.history()
    row = history.row(index)
    if row is None:
        st.caption(f"This image is not in the fixed sample of {len(history.indices):,} test images whose embeddings "
                   "are kept for every epoch.")
        return None
    nearest = history.indices[history.nearest[:, row]].tolist()
    tiles = [tile_of(retrieval.dataset, other, mark_of(retrieval.dataset, other, index),
                     f"epoch {epoch}" if epoch else "before training")
             for epoch, other in zip(history.epochs, nearest, strict=True)]
    st.caption(f"The search covers the fixed sample of {len(history.indices):,} test images.")
    return gallery(retrieval.dataset, tiles, "Nearest image by epoch", "retrieval-epochs", side=96)


def share_results(retrieval: Retrieval, rankings: Rankings) -> None:
    """Show a menu with the run's files and the results of the search."""
    hits = [(SEARCHED[which].removesuffix(" training"), hit) for which, ranking in rankings.items() for hit in ranking]
    columns = {"training": np.array([when for when, _ in hits]), "rank": np.array([hit.rank for _, hit in hits]),
               "similarity": np.array([hit.similarity for _, hit in hits], dtype=float),
               "distance": np.array([hit.distance for _, hit in hits])}
    run = retrieval.run
    results = [Download("Results (CSV)", "results.csv", "text/csv", lambda: table_file(
        retrieval.dataset, np.array([hit.index for _, hit in hits]), columns))] if hits else []
    share([*results,
           Download("Embeddings (Parquet)", "embeddings.parquet", "application/vnd.apache.parquet",
                    lambda: embeddings_file(retrieval, "final")),
           Download("Index (faiss)", "index.faiss", "application/octet-stream", run.index_path.read_bytes),
           Download("Model (safetensors)", "embedder.safetensors", "application/octet-stream",
                    run.embedder_path.read_bytes)], "retrieval")
