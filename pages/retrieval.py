"""Ask with images, any number of them; the nearest before and after training; and the queries that miss, grouped."""

import random

import numpy as np
import streamlit as st

from pages.parts.base.address import write_address
from pages.parts.base.cached import load_retrieval
from pages.parts.base.run_picker import pick_run
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.gallery import Mark, Tile, clicked_tile, gallery, mark_of, tile_of
from pages.parts.kit.downloads import Download, share, table_file
from pages.parts.retrieval.failures import failures
from pages.parts.retrieval.filters import pick_filter
from pages.parts.retrieval.query import Mode, ask, asked_now, bring_images, chosen_mode, query_of, strip
from udml_core.exporting import embeddings_file
from udml_core.retrieval import Hit, Retrieval, Which

SUGGESTED = 36
ANY = -1
MARKS: dict[bool | None, Mark] = {True: "hit", False: "miss", None: ""}
MOMENTS: dict[Which, str] = {"initial": "before", "final": "after"}
SEARCH, FAILURES = "Search", "Failures"


def suggestions(opened: Retrieval) -> tuple[Mode, int | None]:
    """What a click does, and the image picked of those to ask with: a handful of the test half, of one class if wanted.
    """
    dataset = opened.dataset
    first, left, right = st.columns([3, 3, 1], gap="medium", vertical_alignment="bottom")
    with first:
        mode = chosen_mode()
    present = {int(label) for label in dataset.labels[opened.split.test]} if dataset.labels is not None else set()
    label = left.selectbox("Ask with an image of", [ANY, *sorted(present)], key=f"ask-{dataset.fingerprint[:8]}",
                           format_func=lambda one: "any class" if one == ANY else dataset.class_names[one])
    if right.button("Others", icon=":material/shuffle:", width="stretch", help="Show other images to ask with."):
        st.session_state["shuffle"] = st.session_state.get("shuffle", 0) + 1
    members = np.intersect1d(opened.split.test, dataset.members(None if label == ANY else label)).tolist()
    chosen = random.Random(st.session_state.get("shuffle", 0)).sample(members, min(SUGGESTED, len(members)))
    return mode, gallery(dataset, [tile_of(dataset, index) for index in sorted(chosen)], "Images to ask with",
                         "retrieval-queries", side=72, chosen=asked_now(opened).alone, height=190)


def results(opened: Retrieval, found: dict[str, list[Hit]]) -> int | None:
    """Both rankings; the image that was picked in either."""
    picked = None
    for column, (when, hits) in zip(st.columns(2, gap="large"), found.items(), strict=True):
        with column:
            known = [hit.correct for hit in hits if hit.correct is not None]
            score = f" · {sum(known)} of {len(known)} hits" if known else ""
            st.markdown(f"**{when.capitalize()} training**{score}")
            tiles = [Tile(hit.index, opened.dataset.caption(hit.index), MARKS[hit.correct],
                          f"{hit.rank}. {hit.shown:.3f}") for hit in hits]
            clicked = gallery(opened.dataset, tiles, f"The {len(hits)} nearest images, {when} training",
                              f"retrieval-{when}", side=96)
            picked = clicked if clicked is not None else picked
    return picked


def absent_class(opened: Retrieval, index: int) -> None:
    """Say so where the half that is searched holds no image of the query's class."""
    labels = opened.dataset.labels
    if labels is not None and labels[index] not in labels[opened.split.test]:
        st.caption(f"No test image is of the class {opened.dataset.class_names[labels[index]]}: its images train. "
                   "Search in all images to find them.")


def through_training(opened: Retrieval, index: int) -> int | None:
    """What was nearest to an image of the fixed sample after every epoch."""
    shown = st.toggle("Its nearest after every epoch", st.query_params.get("epochs") == "1", key="query-epochs")
    write_address("epochs", "1" if shown else "")
    if not shown:
        return None
    with st.spinner("Going through the epochs …"):
        history = opened.history()
    row = history.row(index)
    if row is None:
        st.caption(f"This image is not in the fixed sample of {len(history.indices):,} test images that is kept of "
                   "every epoch.")
        return None
    near = history.indices[history.nearest[:, row]].tolist()
    tiles = [tile_of(opened.dataset, other, mark_of(opened.dataset, other, index),
                     f"epoch {epoch}" if epoch else "before training")
             for epoch, other in zip(history.epochs, near, strict=True)]
    st.caption(f"Searched in the fixed sample of {len(history.indices):,} test images.")
    return gallery(opened.dataset, tiles, "The nearest image after every epoch", "retrieval-epochs", side=96)


def downloads(opened: Retrieval, found: dict[str, list[Hit]]) -> None:
    """What the run learnt, and what was found."""
    hits = [(when, hit) for when, some in found.items() for hit in some]
    columns = {"training": np.array([when for when, _ in hits]), "rank": np.array([hit.rank for _, hit in hits]),
               "similarity": np.array([hit.similarity for _, hit in hits], dtype=float),
               "distance": np.array([hit.distance for _, hit in hits])}
    run = opened.run
    listed = [Download("Results as a list", "results.csv", "text/csv", lambda: table_file(
        opened.dataset, np.array([hit.index for _, hit in hits]), columns))] if hits else []
    share([*listed,
           Download("Embeddings (Parquet)", "embeddings.parquet", "application/vnd.apache.parquet",
                    lambda: embeddings_file(opened, "final")),
           Download("Index (faiss)", "index.faiss", "application/octet-stream", run.index_path.read_bytes),
           Download("Model (safetensors)", "embedder.safetensors", "application/octet-stream",
                    run.embedder_path.read_bytes)], "retrieval")


def search(opened: Retrieval) -> None:
    """The query, among what is searched, and both rankings."""
    mode, picked = suggestions(opened)
    clicks = [picked]
    bring_images(opened, mode)
    query = asked_now(opened)
    strip(opened, query)
    if query.brought:
        st.caption("The link to this page cannot carry images of your own: whoever opens it sees the query without "
                   "them.")
    k, where, allowed = pick_filter(opened, [*query.add, *query.subtract])
    found: dict[str, list[Hit]] = {}
    if query.parts("add"):
        with show_user_errors():
            found = {when: opened.search(query_of(opened, query, which), k, which, where, allowed)
                     for which, when in MOMENTS.items()}
    elif len(query):
        st.info("There is nothing to subtract from yet: add an image.", icon=":material/add_photo_alternate:")
    else:
        st.info("Click one of the images above, or bring your own: the nearest ones appear here, before and after "
                "training.", icon=":material/touch_app:")
    if any(found.values()):
        clicks.append(results(opened, found))
        unit = all(hit.similarity is not None for hits in found.values() for hit in hits)
        number = "cosine similarity" + ("" if unit else ", or the distance where embeddings are not of unit length")
        st.caption(f"The number is the {number}. ✓ with a solid frame: same class as what was added to the "
                   "query. ✕ with a dashed frame: another class. Click any image to ask with it.")
        if query.alone is not None:
            st.page_link("pages/neighborhoods.py", label="Why the first hit is similar", icon=":material/hub:",
                         query_params={"run": opened.run.id, "picked": str(query.alone),
                                       "second": str(found[MOMENTS["final"]][0].index)})
            if where == "test":
                absent_class(opened, query.alone)
            clicks.append(through_training(opened, query.alone))
    elif found:
        st.info("No image passes both filters and lies in the half that is searched. Take a filter away, or search in "
                "all images.", icon=":material/filter_alt_off:")
    downloads(opened, found)
    ask_with(opened, clicks, mode)


def ask_with(opened: Retrieval, clicks: list[int | None], mode: Mode) -> None:
    """Make an image that was just picked part of the query, and show what it finds."""
    clicked = clicked_tile(clicks)
    if clicked is not None:
        ask(asked_now(opened).with_image(clicked, mode))
        st.session_state["next-view"] = SEARCH
        st.rerun(scope="fragment")


@st.fragment
def explore(run_id: str) -> None:
    """Both views of a run."""
    if "next-view" in st.session_state:
        st.session_state["view"] = st.session_state.pop("next-view")
    with show_user_errors():
        opened = load_retrieval(run_id)
        searching, failing = st.tabs([SEARCH, FAILURES], key="view", bind="query-params")
        if searching.open:
            with searching:
                search(opened)
        if failing.open:
            with failing, show_user_errors():
                ask_with(opened, [failures(opened)], "alone")


st.title("Retrieval")
with show_user_errors():
    chosen = pick_run()
    if chosen is not None:
        explore(chosen.id)
