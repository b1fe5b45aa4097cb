"""The gallery of a data set: order and filters."""

from __future__ import annotations

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import counted
from udml_core.data.dataset import Dataset
from udml_core.data.given.exclusions import excluded_images
from udml_core.exploration.browsing import ORDERS, Order, find_images, order_images

from ..draw.gallery import gallery, tile_of
from ..shell.address import choice_from_address, number_from_address, write_address
from .columns import value_widgets
from .computed import NearestByFeatures
from .enlarged import enlarge
from .sampling import choose_sample

ORDER_WORDS: dict[Order, str] = {"index": "Data set order", "class": "Class", "name": "File name",
                                 "outlier": "Outliers first", "duplicate": "Near-duplicates first"}
PART = 6000
"""Images in one scrolling gallery; more are divided into parts."""
HEIGHT = 600
FILLING = 600
"""Images that fill the gallery's height even on a wide screen, so that it is kept while they arrive."""


def show_gallery(dataset: Dataset, nearest: NearestByFeatures | None, toolbar: DeltaGenerator) -> None:
    """Show all images, in an order and with filters; `toolbar` takes the controls."""
    with toolbar:
        with st.popover("Sort and filter", icon=":material/filter_alt:", type="tertiary", width="content"):
            order = _choose_order(dataset, nearest)
            label = _choose_class(dataset)
            text = st.text_input("File name contains", key="find", bind="query-params", max_chars=120,
                                 placeholder="any")
            allowed = value_widgets(dataset)
            left_out = _choose_excluded(dataset)
            side = st.slider("Tile size in pixels", 48, 200, 88, 8, key="data-side", persist_state="session")
        sample_slot = st.container(horizontal=True, vertical_alignment="bottom", gap="small", width="content")
        part_slot = st.container(width="content")
    values = None if nearest is None else nearest.values(order)
    matching = find_images(dataset, label, text)
    matching = matching if allowed is None else matching[allowed[matching]]
    ordered = order_images(dataset, np.setdiff1d(matching, left_out), order, values)
    if not len(ordered):
        st.info("No image matches. Choose another class or other values of a column, or shorten the text.",
                icon=":material/search_off:")
        return
    with sample_slot:
        ordered, words = choose_sample(dataset, nearest, ordered)
    with part_slot:
        shown = _choose_part(ordered)
    with st.container(key="data-full" if len(shown) >= FILLING else "data-few"):
        clicked = gallery(dataset, [tile_of(dataset, int(index), badge=_badge(values, int(index)))
                                    for index in shown], "Images of the data set", "data-gallery", side, height=HEIGHT)
    excluded = f" {counted(len(left_out), 'excluded image')} left out." if len(left_out) else ""
    words = words or f"{len(ordered):,} of {len(dataset):,} images.{excluded}"
    st.caption(f"{words} Click an image to enlarge it; arrow keys move through the gallery.")
    if clicked is not None:
        enlarge(dataset, ordered, clicked)


def _choose_order(dataset: Dataset, nearest: NearestByFeatures | None) -> Order:
    """Choose among the orders that the data set and its features allow."""
    orders: list[Order] = [order for order in ORDERS if (order != "class" or dataset.labels is not None)
                           and (order not in ("outlier", "duplicate") or nearest is not None)]
    first = choice_from_address("sort", orders, "index")
    chosen: Order = st.selectbox("Sort by", orders, orders.index(first), format_func=ORDER_WORDS.__getitem__,
                                 help=None if nearest else "Outliers and near-duplicates need the features.")
    if nearest is not None or "sort" not in st.query_params or chosen != first:
        write_address("sort", chosen, "index")  # a link's order stays in the address until the features are there
    return chosen


def _choose_excluded(dataset: Dataset) -> Integers:
    """Choose whether excluded images are shown, and return the images that the gallery leaves out."""
    excluded = excluded_images(dataset)
    if not len(excluded) or st.toggle(f"Show excluded images ({len(excluded):,})", key="data-excluded"):
        return excluded[:0]
    return excluded


def _choose_class(dataset: Dataset) -> int | None:
    if dataset.labels is None:
        return None
    names = dataset.class_names
    wanted = int(number_from_address("class", -1, 0, len(names) - 1))
    label = st.selectbox("Class", [-1, *range(len(names))], wanted + 1,
                         format_func=lambda label: "all" if label < 0 else names[label])
    write_address("class", str(label), "-1")
    return None if label < 0 else label


def _choose_part(ordered: Integers) -> Integers:
    """Choose a part of many images; all if they fit into one gallery."""
    if len(ordered) <= PART:
        return ordered
    starts = range(0, len(ordered), PART)
    start = st.selectbox("Part", starts, format_func=lambda start: f"{start + 1:,} – "
                                                                   f"{min(start + PART, len(ordered)):,}")
    return ordered[start : start + PART]


def _badge(values: Array | None, index: int) -> str:
    """Return the value that a gallery is ordered by."""
    return "" if values is None or np.isnan(values[index]) else f"{values[index]:.3f}"
