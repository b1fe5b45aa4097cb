"""Queries to start from: a strip of interesting images, and buttons for the next, the previous and a random one."""

from __future__ import annotations

import random

import numpy as np
import streamlit as st

from pages.parts.base.cached import load_retrieval
from pages.parts.base.run_hash import RUN_HASH
from pages.parts.components.gallery import gallery, tile_of
from pages.parts.retrieval.query import Mode, PageQuery, current_query, set_query
from udml_core.exploration.interesting import most_changed
from udml_core.exploration.variety import classes_in_turn
from udml_core.retrieval import Retrieval
from udml_core.runs import Run

IN_STRIP = 40
HITS = 10
ANY_CLASS = -1
CLASS_KEY = "sample-class"


Strip = list[tuple[int, str]]
"""Images and their badges."""


def interesting_queries(retrieval: Retrieval) -> Strip:
    """Return test images of the chosen class whose neighbors changed most through training, with their badges."""
    return _interesting(retrieval.run, int(st.session_state.get(class_key(retrieval), ANY_CLASS)))


def class_key(retrieval: Retrieval) -> str:
    """Return the key of the widget that chooses the class of the strip."""
    return f"{CLASS_KEY}-{retrieval.dataset.fingerprint[:8]}"


@st.cache_data(max_entries=32, show_spinner="Looking for interesting queries …", hash_funcs=RUN_HASH)
def _interesting(run: Run, label: int) -> Strip:
    """Return images of the fixed sample, which every epoch has as well, with hits before and after as badges.

    Every class contributes, and the images with the largest change of hits come first.
    """
    retrieval = load_retrieval(run)
    labels, sample = retrieval.dataset.labels, run.sample_indices()
    if label != ANY_CLASS:
        members = np.intersect1d(retrieval.split.test, retrieval.dataset.members(label))
        sample = members if len(members) > 1 else sample
    known = None if labels is None else labels[sample]
    rows = most_changed(run.embeddings("initial")[sample], run.embeddings("final")[sample],
                        known if label == ANY_CLASS else None)
    if known is not None:
        rows = rows[classes_in_turn(known[rows])]
    images = sample[rows[:IN_STRIP]].tolist()
    if known is None or not retrieval.is_changed:
        return [(image, "") for image in images]
    hits = {image: _hits(retrieval, image) for image in images}
    images.sort(key=lambda image: (-abs(hits[image][1] - hits[image][0]), -hits[image][1]))
    return [(image, f"{hits[image][0]} → {hits[image][1]}") for image in images]


def _hits(retrieval: Retrieval, image: int) -> tuple[int, int]:
    """Return the number of hits among the first ten images before and after training."""
    before, after = (sum(bool(hit.correct) for hit in retrieval.search_item(image, HITS, which))
                     for which in ("initial", "final"))
    return before, after


def show_strip(retrieval: Retrieval, query: PageQuery, strip: Strip) -> None:
    """Show queries to choose from in one row."""
    tiles = [tile_of(retrieval.dataset, image, badge=badge) for image, badge in strip]
    gallery(retrieval.dataset, tiles, "Sample queries", f"retrieval-queries-{len(tiles)}", side=64,
            chosen=query.single, strip=True, on_pick=lambda index: pick(query, index))


def shown_query(retrieval: Retrieval, strip: Strip) -> PageQuery:
    """Return the query of the address and the session, else the most interesting image of the strip."""
    query = current_query(retrieval)
    return query if len(query) else PageQuery(tuple(image for image, _ in strip[:1]))


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
