"""Retrieval: search with images before and after training, and its failures."""

import random

import numpy as np
import streamlit as st

from pages.parts.base.cached import load_retrieval
from pages.parts.base.run_picker import pick_run
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.gallery import clicked_tile, gallery, tile_of
from pages.parts.retrieval.failures import show_failures
from pages.parts.retrieval.filters import Filter, choose_filter
from pages.parts.retrieval.query import (
    Mode,
    PageQuery,
    build_query,
    choose_mode,
    current_query,
    receive_query_images,
    set_query,
    show_query,
)
from pages.parts.retrieval.rankings import Rankings, share_results, show_epochs, show_rankings
from pages.parts.retrieval.refined import choose_refinement, refined_query
from udml_core.refined_retrieval import RefinedRetrieval
from udml_core.retrieval import Gallery, Hit, Retrieval, Which
from udml_core.runs import Run

SAMPLE = 36
ANY_CLASS = -1
SEARCH, FAILURES = "Search", "Failures"


def choose_sample_query(retrieval: Retrieval) -> tuple[Mode, int | None]:
    """Show random test images to search with, of one class or of all.

    Returns:
        What a click does, and the index of the image that was clicked just now.
    """
    dataset = retrieval.dataset
    first, left, right = st.columns([3, 3, 1], gap="medium", vertical_alignment="bottom")
    with first:
        mode = choose_mode()
    present = {int(label) for label in dataset.labels[retrieval.split.test]} if dataset.labels is not None else set()
    label = left.selectbox("Class of the sample images", [ANY_CLASS, *sorted(present)],
                           key=f"ask-{dataset.fingerprint[:8]}",
                           format_func=lambda label: "any class" if label == ANY_CLASS else dataset.class_names[label])
    if right.button("Shuffle", icon=":material/shuffle:", width="stretch", help="Show other sample images."):
        st.session_state["shuffle"] = st.session_state.get("shuffle", 0) + 1
    members = np.intersect1d(retrieval.split.test, dataset.members(None if label == ANY_CLASS else label)).tolist()
    sample = random.Random(st.session_state.get("shuffle", 0)).sample(members, min(SAMPLE, len(members)))
    return mode, gallery(dataset, [tile_of(dataset, index) for index in sorted(sample)], "Sample queries",
                         "retrieval-queries", side=72, chosen=current_query(retrieval).single, height=190)


def search(retrieval: Retrieval) -> None:
    """Show the query, the filters and both rankings."""
    mode, clicked = choose_sample_query(retrieval)
    clicks = [clicked]
    receive_query_images(retrieval, mode)
    query = current_query(retrieval)
    show_query(retrieval, query)
    if query.own:
        st.caption("The link to this page does not include your own images; it shows the query without them.")
    search_filter = choose_filter(retrieval, [*query.add, *query.subtract])
    refined = choose_refinement(retrieval)
    if refined is not None and search_filter.gallery == "all":
        st.caption("The refined embedding has the images of the test half only.")
    rankings: Rankings = {}
    if query.images("add"):
        with show_user_errors():
            rankings = rank_images(retrieval, query, search_filter, refined)
    elif len(query):
        st.info("The query has only subtracted images. Add an image.", icon=":material/add_photo_alternate:")
    else:
        st.info("Click an image above or bring your own. The nearest images, before and after training, appear here.",
                icon=":material/touch_app:")
    if any(rankings.values()):
        clicks.append(show_rankings(retrieval, rankings))
        if query.single is not None:
            clicks.append(show_single_query(retrieval, query.single, rankings, search_filter.gallery))
    elif rankings:
        st.info("No image in the searched half passes both filters. Remove a filter, or search in all images.",
                icon=":material/filter_alt_off:")
    share_results(retrieval, rankings)
    search_with_clicked(retrieval, clicks, mode)


def rank_images(retrieval: Retrieval, query: PageQuery, search_filter: Filter,
                refined: RefinedRetrieval | None) -> Rankings:
    """Search before and after training, or after training and in a refined embedding."""
    def search_run(which: Which) -> list[Hit]:
        return retrieval.search(build_query(retrieval, query, which), search_filter.k, which, search_filter.gallery,
                                search_filter.allowed)

    if refined is None:
        return {"initial": search_run("initial"), "final": search_run("final")}
    return {"final": search_run("final"),
            "refined": refined.search(refined_query(refined, query), search_filter.k, search_filter.allowed)}


def show_single_query(retrieval: Retrieval, index: int, rankings: Rankings, gallery: Gallery) -> int | None:
    """Show a link to the page Neighborhoods, and the nearest image by epoch.

    Returns:
        The index of the image that was clicked just now.
    """
    st.page_link("pages/neighborhoods.py", label="Why is the first hit similar?", icon=":material/hub:",
                 query_params={"run": retrieval.run.id, "picked": str(index),
                               "second": str(rankings["final"][0].index)})
    labels, names = retrieval.dataset.labels, retrieval.dataset.class_names
    if gallery == "test" and labels is not None and labels[index] not in labels[retrieval.split.test]:
        st.caption(f"No test image has the class {names[labels[index]]}: all its images are in the training half. "
                   "Search in all images to find them.")
    return show_epochs(retrieval, index)


def search_with_clicked(retrieval: Retrieval, clicks: list[int | None], mode: Mode) -> None:
    """Make the image that was clicked just now part of the query and show the search."""
    clicked = clicked_tile(clicks)
    if clicked is not None:
        set_query(current_query(retrieval).with_image(clicked, mode))
        st.session_state["next-view"] = SEARCH
        st.rerun(scope="fragment")


@st.fragment
def explore(run: Run) -> None:
    """Show the search and the failures of a run."""
    if "next-view" in st.session_state:
        st.session_state["view"] = st.session_state.pop("next-view")
    with show_user_errors():
        retrieval = load_retrieval(run)
        search_tab, failures_tab = st.tabs([SEARCH, FAILURES], key="view", bind="query-params")
        if search_tab.open:
            with search_tab:
                search(retrieval)
        if failures_tab.open:
            with failures_tab, show_user_errors():
                search_with_clicked(retrieval, [show_failures(retrieval)], "alone")


st.title("Retrieval")
with show_user_errors():
    run = pick_run()
    if run is not None:
        explore(run)
