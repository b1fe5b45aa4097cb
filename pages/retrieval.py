"""Query by clicking or uploading; the nearest images before and after training, side by side."""

import random
from typing import get_args

import streamlit as st

from pages.parts.gallery import Mark, Tile, gallery, tile_of
from pages.parts.loading import opened_retrieval, told
from pages.parts.runs import title_of
from udml_core.data.dataset import read_image
from udml_core.retrieval import Gallery, Hit, Retrieval
from udml_core.runs import list_runs, runs_folder

SUGGESTED = 36
GALLERIES: tuple[Gallery, ...] = get_args(Gallery)
MARKS: dict[bool | None, Mark] = {True: "hit", False: "miss", None: ""}


def choose_run() -> str | None:
    """A finished run, kept in the address."""
    done = [run for run in list_runs(runs_folder()) if run.stored_status().state == "done"]
    if not done:
        st.info("Nothing can be searched yet: no run is done. Train one, then come back.", icon=":material/lightbulb:")
        st.page_link("pages/train.py", label="Train", icon=":material/model_training:")
        return None
    titles = {run.id: f"{title_of(run.spec())} · {run.id}" for run in done}
    wanted = st.query_params.get("run", done[0].id)
    chosen = st.selectbox("Run", list(titles), list(titles).index(wanted) if wanted in titles else 0,
                          format_func=lambda one: titles[one])
    if chosen != wanted:
        st.query_params.pop("query", None)
    st.query_params["run"] = chosen
    return chosen


def choose_query(opened: Retrieval) -> int | None:
    """Images to ask with: a random handful of the test half, of one class if wanted."""
    dataset = opened.dataset
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    names = dict(enumerate(dataset.class_names))
    present = {int(label) for label in dataset.labels[opened.split.test]} if dataset.labels is not None else set()
    label = left.selectbox("Ask with an image of", [None, *sorted(present)],
                           format_func=lambda one: "any class" if one is None else names[one])
    if right.button("Others", icon=":material/shuffle:", width="stretch", help="Show other images to ask with."):
        st.session_state["shuffle"] = st.session_state.get("shuffle", 0) + 1
    members = [int(index) for index in opened.split.test
               if label is None or (dataset.labels is not None and dataset.labels[index] == label)]
    chosen = random.Random(st.session_state.get("shuffle", 0)).sample(members, min(SUGGESTED, len(members)))
    now = current(opened)
    return gallery(dataset, [tile_of(dataset, index) for index in sorted(chosen)],
                   "Images to ask with", "retrieval-queries", side=72, chosen=now)


def current(opened: Retrieval) -> int | None:
    """The query in the address, if it is an image of this data set."""
    text = st.query_params.get("query", "")
    return int(text) if text.isdigit() and int(text) < len(opened.dataset) else None


def results(opened: Retrieval, before: list[Hit], after: list[Hit]) -> int | None:
    """Both rankings; the image that was picked in either."""
    picked = None
    for column, title, hits, key in zip(st.columns(2, gap="large"), ("Before training", "After training"),
                                        (before, after), ("before", "after"), strict=True):
        with column:
            known = [hit.correct for hit in hits if hit.correct is not None]
            score = f" · {sum(known)} of {len(known)} hits" if known else ""
            st.markdown(f"**{title}**{score}")
            tiles = [Tile(hit.index, opened.dataset.caption(hit.index), MARKS[hit.correct],
                          f"{hit.rank}. {hit.similarity:.3f}") for hit in hits]
            clicked = gallery(opened.dataset, tiles, f"The {len(hits)} nearest images, {title.lower()}",
                              f"retrieval-{key}", side=96)
            picked = clicked if clicked is not None else picked
    return picked


def ask(opened: Retrieval) -> None:
    """The query on the left, how to search on the right, both rankings below."""
    upload = st.file_uploader("Or ask with an image of your own", type=["jpg", "jpeg", "png", "webp", "bmp"])
    settings = st.columns(2, gap="large")
    k = settings[0].slider("How many", 5, 50, 10, 5)
    where = settings[1].segmented_control("Search in", GALLERIES, default=GALLERIES[0],
                                          format_func=lambda one: {"test": "test half", "all": "all images"}[one])
    searched_in = where or GALLERIES[0]
    query = current(opened)
    if upload is not None:
        try:
            image = read_image(upload)
        except (OSError, ValueError, SyntaxError) as error:
            st.error(f"{upload.name} must be an image, and could not be read: {error}", icon=":material/error:")
            return
        st.image(image, caption=f"Query: {upload.name}", width=140)
        before, after = (opened.search_image(image, k, which, searched_in) for which in ("initial", "final"))
    elif query is not None:
        st.image(opened.dataset.images[query], caption=f"Query: {opened.dataset.caption(query)}", width=140)
        before, after = (opened.search_item(query, k, which, searched_in) for which in ("initial", "final"))
    else:
        st.info("Click one of the images above, or bring your own: the nearest ones appear here, before and after "
                "training.", icon=":material/touch_app:")
        return
    picked = results(opened, before, after)
    st.caption("The number is the cosine similarity. ✓ with a solid frame: same class as the query. "
               "✕ with a dashed frame: another class. Click any image to ask with it.")
    if picked is not None:
        st.query_params["query"] = str(picked)
        st.rerun()


st.title("Retrieval")
with told():
    run_id = choose_run()
    if run_id is not None:
        searched = opened_retrieval(run_id)
        asked = choose_query(searched)
        if asked is not None:
            st.query_params["query"] = str(asked)
            st.rerun()
        ask(searched)
