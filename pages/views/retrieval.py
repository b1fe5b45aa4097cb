"""Retrieval: search with images in several embeddings side by side, its failures, and where "the same" ends."""

import streamlit as st

from pages.parts.draw.gallery import image_size
from pages.parts.draw.run_header import run_header
from pages.parts.retrieval.embeddings import choose_embeddings
from pages.parts.retrieval.failures import show_failures
from pages.parts.retrieval.filters import choose_filter, filter_widgets
from pages.parts.retrieval.query import (
    SIGNS,
    PageQuery,
    compose_query,
    receive_query_images,
    set_query,
    show_query,
)
from pages.parts.retrieval.rankings import SIDE, SearchResult, rank_images, share_results, show_epochs, show_rankings
from pages.parts.retrieval.same import show_same
from pages.parts.retrieval.samples import (
    choose_class,
    pick,
    queries_of_class,
    show_steps,
    show_strip,
    shown_query,
)
from pages.parts.shell.cached import load_retrieval
from pages.parts.shell.confirming import link_to_judging
from pages.parts.shell.interesting import Strip
from pages.parts.shell.race_verdict import show_frame_verdict
from pages.parts.shell.run_picker import pick_run
from pages.parts.shell.run_status import escaped
from pages.parts.shell.undo import undo_buttons
from pages.parts.shell.user_errors import show_user_errors
from pages.parts.shell.views import view_link
from udml_core.runs import Run
from udml_core.runs.search import Gallery, Retrieval

SEARCH, FAILURES, SAME = "Search", "Failures", 'Where does "the same" end?'


def search(retrieval: Retrieval) -> None:
    """Show the toolbar, the query and a ranking for each embedding."""
    strip = queries_of_class(retrieval)
    query = shown_query(retrieval, strip)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="retrieval-toolbar"):
        columns = choose_embeddings(retrieval)
        with st.popover("Filters", icon=":material/tune:", key="retrieval-filters"):
            search_filter = choose_filter(retrieval, [*query.add, *query.subtract])
            choose_class(retrieval)
        with st.popover("Compose", icon=":material/add_photo_alternate:", key="retrieval-compose",
                        help="Add and subtract images: the query is the mean of the added minus the mean of the "
                             "subtracted images."):
            compose_query(retrieval, query)
        image_size("image-size", SIDE)
    with st.container(key="retrieval-query"):
        show_query_row(retrieval, query, strip)
    rankings: list[SearchResult] = []
    if query.images("add"):
        rankings = rank_images(columns, query, search_filter)
    elif len(query):
        st.info("The query has only subtracted images. Add an image.", icon=":material/add_photo_alternate:")
    if rankings:
        with st.container(key="retrieval-results"):
            show_rankings(retrieval, rankings, lambda index: pick(query, index))
    for column in columns:
        if column.frame.note:
            st.caption(f"{escaped(column.title)}: {column.frame.note}")
        show_frame_verdict(column.retrieval.run, column.frame.name)
    if rankings and query.single is not None:
        show_single_query(retrieval, query.single, rankings, search_filter.gallery)
    share_results(retrieval, rankings)


def show_query_row(retrieval: Retrieval, query: PageQuery, strip: Strip) -> None:
    """Show the query, the strip of sample queries, and the box for own images."""
    left, middle, right = st.columns([4, 7, 3], gap="small", vertical_alignment="center")
    with left, st.container(horizontal=True, vertical_alignment="center", gap="small"):
        below = show_query(retrieval, query)
    with below, st.container(horizontal=True, gap="small"):
        undo_buttons(retrieval.dataset, "retrieval", tuple(SIGNS), filter_widgets(retrieval), selects=False)
    with middle:
        show_strip(retrieval, query, strip)
        show_steps(retrieval, query, strip)
    if retrieval.spec.encoder.reads_images:
        with right:
            receive_query_images(query)


def show_single_query(retrieval: Retrieval, index: int, rankings: list[SearchResult], gallery: Gallery) -> None:
    """Show links to other pages about the results, and the nearest image by epoch."""
    final = next((ranking.hits for ranking in rankings if ranking.column.name == "final" and ranking.hits), [])
    with st.container(horizontal=True):
        if final:
            view_link("neighborhoods", label="Why is the first result similar?", icon=":material/hub:",
                         query_params={"run": retrieval.run.id, "picked": str(index), "second": str(final[0].index)})
        view_link("refine", label="Refine this embedding without labels", icon=":material/auto_fix_high:",
                     query_params={"run": retrieval.run.id})
        link_to_judging([(column.retrieval.run, column.frame.name)
                         for column in (ranking.column for ranking in rankings)])
    labels, names = retrieval.dataset.labels, retrieval.dataset.class_names
    if gallery == "test" and labels is not None and labels[index] not in labels[retrieval.split.test]:
        st.caption(f"No test image has the class {names[labels[index]]}: all its images are in the training half. "
                   "Search all images to find them.")
    show_epochs(retrieval, index, lambda picked: pick(PageQuery((index,)), picked))


@st.fragment
def explore(run: Run) -> None:
    """Show the search and the failures of a run, and the pairs that tell where "the same" ends."""
    with show_user_errors():
        retrieval = load_retrieval(run)
        search_tab, failures_tab, same_tab = st.tabs([SEARCH, FAILURES, SAME], key="view", bind="query-params")
        if search_tab.open:
            with search_tab:
                search(retrieval)
        if failures_tab.open:
            with failures_tab, show_user_errors():
                show_failures(retrieval, search_with)
        if same_tab.open:
            with same_tab, show_user_errors():
                show_same(retrieval)


def search_with(index: int) -> None:
    """Make an image of the failures the query and show the search."""
    st.session_state["view"] = SEARCH
    set_query(PageQuery((index,)))


def draw() -> None:
    """Draw the view."""
    with show_user_errors():
        run = pick_run()
        if run is not None:
            run_header(run)
            explore(run)
