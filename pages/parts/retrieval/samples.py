"""Queries to start from: interesting images, failures or images that a text finds, and buttons that step through."""

from __future__ import annotations

import random

import numpy as np
import streamlit as st

from udml_core.base.arrays import Integers
from udml_core.base.errors import counted
from udml_core.data.given.exclusions import excluded_images
from udml_core.exploration.browsing import find_image, find_images
from udml_core.exploration.failures import failed_rows
from udml_core.runs.search import Retrieval, frame_words

from ..draw.gallery import gallery, tile_of
from ..shell.address import write_address
from ..shell.cached import progress_bar
from ..shell.focus import suggest_image
from ..shell.interesting import ANY_CLASS, MOST, Strip, interesting_queries
from ..shell.run_status import escaped
from .query import Mode, PageQuery, current_query, set_query

CLASS_KEY, TEXT = "sample-class", "query-text"
FAILURES, FAILURES_KEY = "failures", "only-failures"
"""The parameter in the address, and the key of the switch."""


def queries_of_class(retrieval: Retrieval) -> Strip:
    """Return the interesting queries of the class that the user chose, with their badges.

    Images that training has not seen come first: only they show what retrieval of new images is worth.
    """
    strip = interesting_queries(retrieval.run, int(st.session_state.get(class_key(retrieval), ANY_CLASS)))
    seen = set(retrieval.split.train.tolist())
    excluded = set(excluded_images(retrieval.dataset).tolist())
    return sorted((query for query in strip if query[0] not in excluded), key=lambda query: query[0] in seen)


def chosen_queries(retrieval: Retrieval) -> Strip:
    """Return the queries of the strip: images that a text finds, else failures if they are wanted, else samples."""
    if (text := st.session_state.get(TEXT, "").strip()) and (found := found_images(retrieval, text)):
        return [(index, "") for index in found[:MOST]]
    if are_failures_wanted(retrieval):
        if failures := failed_queries(retrieval):
            return failures
        st.toast("There are no failures: the nearest image of every test image has its class.",
                 icon=":material/celebration:")
    return queries_of_class(retrieval)


def found_images(retrieval: Retrieval, text: str) -> list[int]:
    """Return the images whose file name contains a text; without any, the first image of a class of this name.

    Images that the user excluded are left out.
    """
    images: list[int] = _kept(retrieval, find_images(retrieval.dataset, None, text)).tolist()
    if images:
        return images
    first = find_image(retrieval.dataset, text)
    return [] if first is None else _kept(retrieval, np.array([first])).tolist()


def _kept(retrieval: Retrieval, images: Integers) -> Integers:
    """Return the images (m,) that the user has not excluded."""
    return images[~np.isin(images, excluded_images(retrieval.dataset))]


def failed_queries(retrieval: Retrieval) -> Strip:
    """Return test images whose nearest test image after training has another class, which is their badge.

    The queries of frequent pairs of classes come first; the class that the user chose restricts them.
    """
    with progress_bar() as report:
        atlas = retrieval.atlas("final", report)
    label = int(st.session_state.get(class_key(retrieval), ANY_CLASS))
    names, rows = retrieval.dataset.class_names, failed_rows(atlas, None if label == ANY_CLASS else label)
    return [(int(atlas.queries[row]), f"→ {names[atlas.nearest_classes[row]]}") for row in rows[:MOST].tolist()]


def are_failures_wanted(retrieval: Retrieval) -> bool:
    """Return whether the strip shows failures only; images without classes have none."""
    return retrieval.dataset.labels is not None and st.query_params.get(FAILURES) == "1"


def find_by_text(retrieval: Retrieval) -> None:
    """Show the box that finds images by their file name; the first one becomes the query, the others the strip."""
    st.text_input("Find an image by its file name", key=TEXT, on_change=_take_first, args=(retrieval,),
                  placeholder="Find by file name", label_visibility="collapsed")
    if (text := st.session_state.get(TEXT, "").strip()) and not (found := found_images(retrieval, text)):
        is_known = bool(len(find_images(retrieval.dataset, None, text)))
        st.caption(f"{'You excluded every image whose' if is_known else 'No'} file name contains "
                   f"\u201c{escaped(text[:60])}\u201d.")
    elif text:
        st.caption(f"{counted(len(found), 'image')} found" + (f", {MOST} shown" if len(found) > MOST else ""))


def _take_first(retrieval: Retrieval) -> None:
    text = st.session_state[TEXT].strip()
    if text and (found := found_images(retrieval, text)):
        set_query(PageQuery((found[0],)))


def _switch_failures() -> None:
    """Show failures only, or all sample queries again; the first image of the strip becomes the query."""
    write_address(FAILURES, "1" if st.session_state[FAILURES_KEY] else "")
    st.session_state[TEXT] = ""
    set_query(PageQuery())


def class_key(retrieval: Retrieval) -> str:
    """Return the key of the widget that chooses the class of the strip."""
    return f"{CLASS_KEY}-{retrieval.dataset.fingerprint[:8]}"


def show_strip(retrieval: Retrieval, query: PageQuery, strip: Strip) -> None:
    """Show queries to choose from in one row."""
    tiles = [tile_of(retrieval.dataset, image, badge=badge) for image, badge in strip]
    gallery(retrieval.dataset, tiles, "Sample queries", f"retrieval-queries-{len(tiles)}", side=64,
            chosen=query.single, strip=True, on_pick=lambda index: pick(query, index))
    if words := badge_words(retrieval, strip):
        st.caption(words)


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
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", width="content", key="query-steps"):
        for key, icon, letter, here_to, words in (
                ("query-previous", "chevron_left", "P", (images, backward), "Previous query of the strip."),
                ("query-random", "casino", "X", None, "A random test image."),
                ("query-next", "chevron_right", "N", (images, forward), "Next query of the strip.")):
            st.button(f":material/{icon}:", key=key, shortcut=letter, disabled=here_to is not None and not images,
                      on_click=_show_random if here_to is None else _show, args=here_to or (retrieval,),
                      help=f"{words} Key {letter}.")


def show_failures_switch(retrieval: Retrieval) -> None:
    """Show the switch that restricts the strip to failures, where there are classes."""
    if retrieval.dataset.labels is not None:
        st.session_state[FAILURES_KEY] = are_failures_wanted(retrieval)
        st.toggle("Only failures", key=FAILURES_KEY, on_change=_switch_failures,
                  help="Shows test images whose nearest test image after training has another class. Below each "
                       "image stands this class.")


def badge_words(retrieval: Retrieval, strip: Strip) -> str:
    """Say what stands below the images of the strip; nothing if nothing does."""
    badges = [badge for _, badge in strip]
    if not any(badges):
        return ""
    if badges[0].startswith("→"):
        return "Below each: the class of its nearest image"
    before = frame_words(retrieval.before, retrieval.run)
    return f"Hits of 10: {before} → after training"


def _show(images: list[int], position: int) -> None:
    set_query(PageQuery((images[position % len(images)],)))


def _show_random(retrieval: Retrieval) -> None:
    label = int(st.session_state.get(class_key(retrieval), ANY_CLASS))
    members = retrieval.dataset.members(None if label == ANY_CLASS else label)
    candidates = _kept(retrieval, np.intersect1d(retrieval.split.test, members))
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
