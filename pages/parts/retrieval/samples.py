"""Queries to start from: a strip of interesting images, and buttons for the next, the previous and a random one."""

from __future__ import annotations

import random

import numpy as np
import streamlit as st

from udml_core.runs.search import Retrieval

from ..draw.gallery import gallery, tile_of
from ..shell.focus import suggest_image
from ..shell.interesting import ANY_CLASS, Strip, interesting_queries
from .query import Mode, PageQuery, current_query, set_query

CLASS_KEY = "sample-class"


def queries_of_class(retrieval: Retrieval) -> Strip:
    """Return the interesting queries of the class that the user chose, with their badges.

    Images that training has not seen come first: only they show what retrieval of new images is worth.
    """
    strip = interesting_queries(retrieval.run, int(st.session_state.get(class_key(retrieval), ANY_CLASS)))
    seen = set(retrieval.split.train.tolist())
    return sorted(strip, key=lambda query: query[0] in seen)


def class_key(retrieval: Retrieval) -> str:
    """Return the key of the widget that chooses the class of the strip."""
    return f"{CLASS_KEY}-{retrieval.dataset.fingerprint[:8]}"


def show_strip(retrieval: Retrieval, query: PageQuery, strip: Strip) -> None:
    """Show queries to choose from in one row."""
    tiles = [tile_of(retrieval.dataset, image, badge=badge) for image, badge in strip]
    gallery(retrieval.dataset, tiles, "Sample queries", f"retrieval-queries-{len(tiles)}", side=64,
            chosen=query.single, strip=True, on_pick=lambda index: pick(query, index))


def shown_query(retrieval: Retrieval, strip: Strip) -> PageQuery:
    """Return the query of the address and the session, else the most interesting image of the strip."""
    query = current_query(retrieval)
    if len(query) or not strip:
        return query
    suggest_image(strip[0][0])
    return PageQuery((strip[0][0],))


def pick(query: PageQuery, index: int) -> None:
    """Make an image the query or a part of it, as the user chose.

    A callback calls this, so it must not call cached functions: their spinner would replace the page's title.
    """
    mode: Mode = st.session_state.get("query-mode") or "alone"
    set_query(query.with_image(index, mode))


def show_steps(retrieval: Retrieval, query: PageQuery, strip: Strip) -> None:
    """Show the buttons and keys for the previous, a random and the next query."""
    images = [image for image, _ in strip]
    here = images.index(query.single) if query.single in images else None
    backward, forward = (-1, 0) if here is None else (here - 1, here + 1)
    with st.container(horizontal=True, gap="xsmall"):
        st.button("Previous", icon=":material/chevron_left:", key="query-previous", shortcut="P", disabled=not images,
                  on_click=_show, args=(images, backward), help="Previous query of the strip.")
        st.button("Random", icon=":material/casino:", key="query-random", shortcut="X",
                  on_click=_show_random, args=(retrieval,), help="A random test image.")
        st.button("Next", icon=":material/chevron_right:", key="query-next", shortcut="N", disabled=not images,
                  on_click=_show, args=(images, forward), help="Next query of the strip.")
        if any(badge for _, badge in strip):
            st.caption("Badge: hits among the first 10, before → after.", width=145)


def _show(images: list[int], position: int) -> None:
    set_query(PageQuery((images[position % len(images)],)))


def _show_random(retrieval: Retrieval) -> None:
    label = int(st.session_state.get(class_key(retrieval), ANY_CLASS))
    members = retrieval.dataset.members(None if label == ANY_CLASS else label)
    candidates = np.intersect1d(retrieval.split.test, members)
    if len(candidates):
        set_query(PageQuery((int(random.choice(candidates.tolist())),)))


def choose_class(retrieval: Retrieval) -> None:
    """Choose the class of the strip's images and of random queries."""
    dataset = retrieval.dataset
    if dataset.labels is None:
        return
    present = np.unique(dataset.labels[retrieval.split.test]).tolist()
    st.selectbox("Class of the sample queries", [ANY_CLASS, *present], key=class_key(retrieval),
                 format_func=lambda label: "any class" if label == ANY_CLASS else dataset.class_names[label])
