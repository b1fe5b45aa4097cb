"""Galleries of the nearest images: along the directions, by s and by the metric."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.exploration import neighborhoods as views
from udml_core.exploration.neighborhoods import Along
from udml_core.numerics.explanations import LinearNeighborhoods

from ..draw.gallery import clicked_tile, gallery, mark_of, tile_of
from ..draw.palette import CLASSES, color_legend
from .center import Center

SHOWN, SIDES = 48, 5
"""Images of a ranking, and images on either side of a direction."""
COUNTED = (10, 50, 200)


def show_directions(center: Center, hoods: LinearNeighborhoods, second: int) -> int | None:
    """Show the images along each direction of the flat.

    Returns:
        The index of the image that was clicked just now.
    """
    st.subheader("What does each direction mean?")
    st.caption(f"The images closest to a direction, {SIDES} on either side of the first image. Badge: the side, and "
               "the share of the squared distance in this direction.",
               help=f"Chosen among the {len(center.nearest)} nearest images. At 100 % an image differs from the first "
                    "image in this direction only. Shares below 5 % are left out.")
    directions = views.along_directions(center.around.centers[1:], center.around.centers[0], hoods.basis[0], SIDES)
    if center.same_class is not None:
        color_legend("current image", *CLASSES)
    return clicked_tile([
        direction_images(center.dataset, center.nearest[along.positions], along, number, "neighborhood", center.index,
                         second) for number, along in enumerate(directions, 1)])


def direction_images(dataset: Dataset, images: Array, along: Along, number: int, key: str, middle: int = -1,
                     chosen: int | None = None) -> int | None:
    """Show images along one direction.

    Args:
        dataset: The data set.
        images: (a,) indices of the images.
        along: Their coordinates and shares.
        number: The direction's number, from 1.
        key: Beginning of the gallery's key.
        middle: Index of the image at the origin; −1 if the origin is not an image of the data set.
        chosen: Index of the framed image.

    Returns:
        The index of the image that was clicked just now.
    """
    st.markdown(f"**Direction {number}**" + ("" if len(images) else ": no nearby image lies in this direction."))
    if not len(images):
        return None
    tiles = [tile_of(dataset, index, mark_of(dataset, index, middle) if middle >= 0 else "",
                     f"{'◂' if value < 0 else '▸'} {100 * share:.1f} %")
             for index, value, share in zip(images.tolist(), along.coordinates, along.shares, strict=True)]
    if middle >= 0:
        tiles.insert(int((along.coordinates < 0).sum()), tile_of(dataset, middle, "query", "first image"))
    return gallery(dataset, tiles, f"Images along direction {number}", f"{key}-direction-{number}", 72, chosen)


def show_rankings(center: Center, similarities: Array, second: int) -> int | None:
    """Show the nearest images by s beside the nearest images by the metric.

    Returns:
        The index of the image that was clicked just now.
    """
    st.subheader(f"The {len(center.nearest)} nearest images by s and by {center.metric}")
    by_s = np.argsort(-similarities, kind="stable")
    left, right = st.columns(2)
    with left:
        badges = [f"{rank + 1} · {similarities[row]:.3f}{_moved(row - rank)}"
                  for rank, row in enumerate(by_s.tolist())]
        clicked_by_s = _show_ranking(center, "By s, along the flats", by_s, badges, "ranking-s", second)
    with right:
        ranks = np.arange(len(by_s))
        clicked_by_metric = _show_ranking(center, f"By {center.metric}", ranks, [f"{rank + 1}" for rank in ranks],
                                          "ranking-plain", second)
    st.caption("Below an image: its rank and, on the left, s. Arrows: how many ranks an image rises or falls compared "
               f"with the order by {center.metric}.")
    if center.same_class is not None:
        color_legend(*CLASSES)
    return clicked_tile([clicked_by_s, clicked_by_metric])


def _moved(ranks: int) -> str:
    return f" ↑{ranks}" if ranks > 0 else f" ↓{-ranks}" if ranks < 0 else ""


def _show_ranking(center: Center, title: str, order: Array, badges: list[str], key: str, second: int) -> int | None:
    score = ""
    if center.same_class is not None:
        counts = tuple(count for count in COUNTED if count <= len(order))
        hits = views.hits_among_first(center.same_class[order], counts)
        score = " · same class: " + ", ".join(f"**{hit}** of {count}" for hit, count in zip(hits, counts, strict=True))
    st.markdown(f"**{title}**{score}")
    shown = center.nearest[order[:SHOWN]].tolist()
    tiles = [tile_of(center.dataset, index, center.mark(index), badge)
             for index, badge in zip(shown, badges, strict=False)]
    return gallery(center.dataset, tiles, title, key, 88, second, 360)
