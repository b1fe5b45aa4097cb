"""Neighbors of the current image: without training, and in the embedding that the map shows."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from udml_core.base.arrays import rows_of
from udml_core.base.errors import listed
from udml_core.exploration.neighborhoods import nearest_rows
from udml_core.runs.analyses import REFINED
from udml_core.runs.search import FROZEN, epoch_of, frame_words

from ..data.using import chosen_frame
from ..shell.cached import load_retrieval
from ..shell.epoch_images import epoch_images
from ..shell.pools import among
from .workbench import DeepLink, Workbench, explain, link

COUNT = 10


@dataclass(frozen=True)
class NearestImages:
    """The nearest images of the current image in one embedding.

    Attributes:
        embedding: The name of the embedding.
        images: Their data set indices, nearest first.
        hits: Whether each has the class of the current image; None without classes.
        searched: Among which images, in words.
        number: By which number they are ordered.
    """

    embedding: str
    images: list[int]
    hits: list[bool] | None
    searched: str
    number: str = "distance"

    @property
    def words(self) -> str:
        """The embedding, the hits among the neighbors, and which images were searched, as Search says it."""
        hits = "" if self.hits is None else f"{sum(self.hits)} of {len(self.hits)} hits "
        return f"**{self.embedding.capitalize()}** · {hits}{self.searched}"


def show_neighbors(bench: Workbench) -> DeepLink:
    """Show the ten nearest images without training and in the map's embedding."""
    in_epochs = epoch_of(bench.frame) is not None and (epoch_images(bench.run).indices == bench.focus).any()
    frames = [*([] if in_epochs else _refined_in_use(bench)), *_compared(bench, in_epochs)]
    is_missing = epoch_of(bench.frame) not in (None, bench.run.kept_epoch()) and not in_epochs
    stored = len(epoch_images(bench.run).indices) if in_epochs or is_missing else 0
    explain("Similar images should be near each other." if bench.dataset.labels is None else
            "Images of the same class should be near each other.",
            r"Neighbors have the smallest distance $\|x_i - x_j\|$ to the current image in an embedding, or with unit "
            r"length the largest cosine similarity $x_i^\top x_j$. The badge is the image's rank.")
    if is_missing:
        st.caption(f"The embedding of {bench.frame_words} is stored for {stored:,} images, and the current image is "
                   "not among them. Click an image on the map to see its neighbors in that epoch.")
    rankings = [(_epoch_ranking if in_epochs else _ranking)(bench, name) for name in dict.fromkeys(frames)]
    for position, ranking in enumerate(rankings):
        st.markdown(ranking.words)
        tiles = [bench.tile(index, str(rank)) for rank, index in enumerate(ranking.images, 1)]
        bench.tiles(tiles, f"The {len(tiles)} nearest images, {ranking.embedding}", f"neighbors-{position}")
    where = "the images stored for every epoch (Search looks through all)" if in_epochs else "all images"
    by = listed([*dict.fromkeys(ranking.number for ranking in rankings)])
    if any(name.startswith(REFINED) for name in frames):
        where += ", after the refinement in the images that it covers"
    scales = " Distances of different embeddings have different scales." if len(rankings) > 1 else ""
    st.caption(f"Nearest first by {by}, searched in {where}.{scales}")
    return link("retrieval", bench, add=bench.focus, gallery="all")


def _compared(bench: Workbench, in_epochs: bool) -> list[str]:
    """Return the embeddings of the rows; both search the same images at every epoch.

    Args:
        bench: The workbench.
        in_epochs: Whether the current image is searched among the images that every epoch has.
    """
    retrieval = load_retrieval(bench.run)
    after = str(bench.run.kept_epoch()) if in_epochs else "final"
    before = "0" if in_epochs and retrieval.before == "initial" else retrieval.before
    is_other = epoch_of(bench.frame) is not None and not in_epochs
    shown = after if is_other or bench.frame == before else bench.frame
    return [before, shown] if retrieval.is_changed else [shown]  # else there is nothing to compare


def _refined_in_use(bench: Workbench) -> list[str]:
    """Return the refinement with which the user searches the images of the run; nothing if it is another search."""
    frame = chosen_frame(bench.run)
    return [frame] if frame is not None and frame.startswith(REFINED) else []


def _ranking(bench: Workbench, frame: str) -> NearestImages:
    """Search all images in an embedding, or the test half in a refined one."""
    retrieval = load_retrieval(bench.run)
    hits = retrieval.search_item(bench.focus, COUNT, frame)
    searched = among(int(retrieval.searched(frame).sum()), retrieval.split, len(bench.dataset))
    is_refined = frame.startswith(REFINED) and bench.run.spec().method == FROZEN
    words = "the refined search" if is_refined else frame_words(frame, bench.run)
    return NearestImages(words, [hit.index for hit in hits],
                         None if any(hit.correct is None for hit in hits) else [bool(hit.correct) for hit in hits],
                         searched, "distance" if any(hit.similarity is None for hit in hits) else "cosine similarity")


def _epoch_ranking(bench: Workbench, frame: str) -> NearestImages:
    """Search the images that every epoch has, in the embedding of one epoch or in the frozen features."""
    images, epoch = epoch_images(bench.run), epoch_of(frame)
    indices = images.indices
    points = load_retrieval(bench.run).frame(frame).rows[indices] if epoch is None else images.embedding(epoch)
    row = int(rows_of(indices, bench.focus))
    rows = nearest_rows(points, row, COUNT)
    labels = bench.dataset.labels
    return NearestImages(frame_words(frame, bench.run), indices[rows].tolist(),
                         None if labels is None else (labels[indices[rows]] == labels[bench.focus]).tolist(),
                         f"among {len(indices):,} of {len(bench.dataset):,}")
