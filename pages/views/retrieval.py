"""Search with images in several embeddings side by side and refined at once; failures; where "the same" ends."""

from contextlib import nullcontext

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.data.first_search import show_first_search
from pages.parts.draw.run_header import run_header
from pages.parts.refine.cards import recipe_in_use
from pages.parts.retrieval.bar import show_query_bar, show_undo
from pages.parts.retrieval.embeddings import choose_embeddings, keep_look
from pages.parts.retrieval.failures import show_failures
from pages.parts.retrieval.filters import Filter, choose_filter, offer_more
from pages.parts.retrieval.query import (
    PageQuery,
    compose_query,
    set_query,
)
from pages.parts.retrieval.rankings import (
    SAME_PICTURE,
    SearchResult,
    query_in,
    rank_images,
    say_unlike,
    share_results,
    show_epochs,
    show_rankings,
)
from pages.parts.retrieval.same import show_same
from pages.parts.retrieval.samples import (
    choose_class,
    chosen_queries,
    pick,
    show_failures_switch,
    show_steps,
    shown_query,
)
from pages.parts.retrieval.shared import explain_result
from pages.parts.retrieval.switches import LIVE, show_switches
from pages.parts.retrieval.used import is_used, show_used
from pages.parts.retrieval.words import word_column
from pages.parts.shell.address import write_address
from pages.parts.shell.awaited import awaited_run
from pages.parts.shell.cached import load_retrieval
from pages.parts.shell.confirming import link_to_judging
from pages.parts.shell.growth import link_to_changes
from pages.parts.shell.race_verdict import show_frames_verdict
from pages.parts.shell.run_picker import pick_run, return_to_used
from pages.parts.shell.run_status import escaped
from pages.parts.shell.user_errors import show_user_errors
from pages.parts.shell.views import view_link
from udml_core.exploration.kinds_of_judging import NAMES
from udml_core.runs import Run
from udml_core.runs.search import Gallery, Retrieval

PART = "retrieval-part-shown"
SEARCH, FAILURES, SAME = "This query", "Failures", NAMES["same"]
FORMER = {'Where does "the same" end?': SAME}
"""Parts by the names that older addresses have."""


def search(retrieval: Retrieval) -> tuple[PageQuery, list[SearchResult], Filter]:
    """Show the query bar, the switches and a ranking for each embedding.

    Returns:
        The query, its rankings, and what the search returns.
    """
    strip = chosen_queries(retrieval)
    query = shown_query(retrieval, strip)
    with st.container(key="retrieval-query"), show_query_bar(retrieval, query, strip):
        show_steps(retrieval, query, strip)
    bar = st.container(horizontal=True, vertical_alignment="center", gap="small", key="retrieval-toolbar")
    steps = bar.container(horizontal=True, vertical_alignment="center", gap="small", key="retrieval-switches")
    with bar:
        if query.words:
            columns = [word_column(retrieval)]
        else:
            with st.popover("Searches", icon=":material/view_column_2:", key="retrieval-searches",
                            help="The searches that stand side by side."):
                columns = choose_embeddings(retrieval)
        with st.popover("Filters", icon=":material/tune:", key="retrieval-filters"):
            search_filter = choose_filter(retrieval, [*query.add, *query.subtract])
            choose_class(retrieval)
            show_failures_switch(retrieval)
        with st.popover("Compose", icon=":material/add_photo_alternate:", key="retrieval-compose",
                        help="Add and subtract images: the query is the mean of the added minus the mean of the "
                             "subtracted images."):
            compose_query(retrieval, query)
        show_undo(retrieval)
    refined = None
    if not query.words:  # words are compared with the features as they are
        with steps, show_user_errors():
            refined = show_switches(retrieval, columns, search_filter.gallery)
        if refined is not None:
            columns.append(refined)
    used = None
    if not query.words:
        with show_user_errors():
            used = show_used(retrieval, columns)
    rankings: list[SearchResult] = []
    if columns and (query.words or query.images("add")):
        waits = "Refining …" if refined is not None else "Comparing your image with all images …" if query.own else ""
        with st.spinner(waits) if waits else nullcontext():
            rankings = rank_images(columns, query, search_filter)
    elif not columns:
        st.info("No search is chosen. Choose one or more under Searches.", icon=":material/view_column_2:")
    elif len(query):
        st.info("The query has only subtracted images. Add an image.", icon=":material/add_photo_alternate:")
    if rankings:
        with st.container(key="retrieval-results"):
            say_unlike(retrieval, query)
            frames = [] if query.words else [(column.retrieval.run, column.frame.name) for column in columns
                                             if used is None or not is_used(column, *used)]
            notes = (f"{escaped(column.title)}: {column.frame.note}" for column in columns if column.frame.note)
            show_rankings(retrieval, rankings, lambda index: pick(query, index), search_filter.words,
                          lambda: show_frames_verdict(frames),
                          is_named=used is not None and len(columns) == 1 and not frames, notes="\n\n".join(notes))
    return query, rankings, search_filter


def show_next(retrieval: Retrieval, query: PageQuery, rankings: list[SearchResult], search_filter: Filter) -> None:
    """Show a row with what one does next, and below it what the row's switches show.

    The row has more results, links to other pages, downloads, and the switches for why the first other image is similar
    and for the nearest image by epoch.
    """
    row = st.container(horizontal=True, vertical_alignment="center", key="retrieval-next")
    with row:
        if rankings:
            offer_more(retrieval.run, search_filter, max(len(ranking.hits) for ranking in rankings))
        recipe = recipe_in_use(retrieval.run)
        asked = {} if query.single is None else {"query": str(query.single)}
        view_link("refine", label="Change these steps" if recipe else "Refine without labels",
                  icon=":material/auto_fix_high:", query_params={"run": retrieval.run.id} | recipe | asked)
        link_to_judging([(ranking.column.retrieval.run, ranking.column.frame.name) for ranking in rankings
                         if ranking.column.name != LIVE])
        share_results(retrieval, rankings)
    final = next((ranking.hits for ranking in rankings if ranking.column.name == "final" and ranking.hits), [])
    if final:
        column = next(ranking.column for ranking in rankings if ranking.column.name == "final")
        other = next((hit for hit in final if not query.own or (hit.similarity or 0.0) < SAME_PICTURE), final[0])
        explain_result(retrieval, query_in(column, query), other.index, search_filter.gallery,
                       lambda index: pick(query, index), row, query.single)
    if query.single is not None:
        show_single_query(retrieval, query.single, search_filter.gallery, row)


def show_single_query(retrieval: Retrieval, index: int, gallery: Gallery, row: DeltaGenerator) -> None:
    """Say if no test image has the query's class, and show the nearest image by epoch."""
    labels, names = retrieval.dataset.labels, retrieval.dataset.class_names
    if gallery == "test" and labels is not None and labels[index] not in labels[retrieval.split.test]:
        st.caption(f"No test image has the class {escaped(names[labels[index]])}: all its images are in the training "
                   "half. Search all images to find them.")
    show_epochs(retrieval, index, lambda picked: pick(PageQuery((index,)), picked), row)


def current_view() -> str:
    """Return the part of the page that the user chose, or that the address names."""
    view = st.query_params.get("view", "")
    view = FORMER.get(view, view)
    return view if view in (FAILURES, SAME) else SEARCH


def choose_view(titles: list[str]) -> None:
    """Show the control that chooses a part of the page; the address holds it."""
    st.session_state[PART] = current_view()
    with st.container(key="retrieval-part"):
        st.segmented_control("Part", titles, key=PART, required=True, label_visibility="collapsed",
                             on_change=lambda: write_address("view", st.session_state[PART], SEARCH))

@st.fragment
def explore(run: Run) -> None:
    """Show the search of one query, or another part: failures, and pairs that tell where "the same" ends."""
    with show_user_errors():
        retrieval = load_retrieval(run)
        # Without classes nothing is a failure; a link to the failures still says so.
        has_failures = (retrieval.dataset.labels is not None or current_view() == FAILURES
                        or retrieval.labeled() is not None)
        titles = [SEARCH, *([FAILURES] if has_failures else []), SAME]
        if "view" in st.query_params:
            write_address("view", current_view(), SEARCH)  # an unknown part leaves the address
        choose_view(titles)
        keep_look(run)
        with show_user_errors():
            show_part(retrieval, current_view())


def show_part(retrieval: Retrieval, title: str) -> None:
    """Show the part that the user chose."""
    if title == FAILURES:
        show_failures(retrieval, search_with)
    elif title == SAME:
        show_same(retrieval)
    else:
        show_next(retrieval, *search(retrieval))


def search_with(index: int) -> None:
    """Make an image of the failures the query and show the search."""
    write_address("view", "")
    set_query(PageQuery((index,)))


def draw() -> None:
    """Draw the view."""
    with show_user_errors():
        return_to_used()
        run = pick_run()
        if run is not None:
            run_header(run)
            link_to_changes(run)
            explore(run)
        elif (awaited := awaited_run()) is not None:
            show_first_search(awaited)
