"""The current image and embedding, which a page that is opened without them takes from the page before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from udml_core.runs import Run
from udml_core.runs.search import trained_name

from .address import IMAGE, LONGEST_NUMBER, OF_IMAGE, write_address

SUGGESTED = "app-image-suggested"
"""Session key of the image that a page showed by itself."""
FRAME = "app-frame"
"""Session key of the id of the run and the name of its embedding that a page showed last."""
DATASET, PAGE, IS_NEW = "app-image-dataset", "app-image-page", "app-image-is-new"
"""Session keys: the fingerprint of the data set whose images the session remembers, the page that was opened last, and
whether the page has not asked for the image since then."""
OWN, BROUGHT = "own", "brought"
"""The parameter of the address with the digests of the own images of a query, and the session key of these images."""
QUERY = ("add", "subtract", "words")
"""The parameters of the other parts of a query."""
FRAME_IS_NEW = "app-frame-is-new"
"""Session key: whether the page has not asked for the embedding since it was opened."""


def note_page() -> None:
    """Note whether another page was opened."""
    page = st.session_state.get("page")
    if st.session_state.get(PAGE) != page:
        st.session_state[PAGE] = page
        st.session_state[IS_NEW] = True
        st.session_state[FRAME_IS_NEW] = True


def choose_image(index: int) -> None:
    """Make an image the current image on a page whose address has no image."""
    st.session_state[IMAGE] = str(index)


def carry_image(fingerprint: str) -> None:
    """Write the remembered image to the address of a page that was just opened, and remember the image of a link.

    Args:
        fingerprint: Fingerprint of the data set that the page shows.
    """
    if st.session_state.get(DATASET) != fingerprint:
        st.session_state.pop(IMAGE, None)
        st.session_state.pop(SUGGESTED, None)
        st.session_state[DATASET] = fingerprint
    parameter = OF_IMAGE.get(st.session_state.get(PAGE, ""))
    if not st.session_state.pop(IS_NEW, False) or parameter is None:
        return
    if st.session_state.get(PAGE) == "retrieval" and _keeps_own_query():
        return
    write_address(parameter, st.query_params.get(parameter) or current_elsewhere() or "")


def _keeps_own_query() -> bool:
    """Return whether Search, just opened, keeps the user's own images, which no remembered image joins.

    A link to another query replaces them.
    """
    if OWN in st.query_params:  # the page was loaded again, with all that belongs to the query
        return True
    if any(st.query_params.get(name) for name in QUERY):
        st.session_state.pop(BROUGHT, None)
    return bool(st.session_state.get(BROUGHT))


def suggest_image(index: int) -> None:
    """Remember the image that a page shows by itself, so that the next pages show it too."""
    st.session_state[SUGGESTED] = str(index)


def current_elsewhere() -> str | None:
    """Return the image that the user made current on any page, else the one that a page showed by itself.

    A link can name anything; what is no index is ignored.
    """
    image: str = st.session_state.get(IMAGE) or st.session_state.get(SUGGESTED, "")
    return image if image.isdecimal() and len(image) < LONGEST_NUMBER else None


def remember_frame(run: Run, frame: str | None) -> None:
    """Remember the embedding that a page shows, so that the next pages show it too.

    Args:
        run: The run.
        frame: "initial", "final", the number of an epoch or another embedding of a map; None for no particular one.
    """
    st.session_state[FRAME] = (run.id, frame)


def carried_frame(run: Run, frames_of: Mapping[str, Sequence[str]]) -> tuple[str, int] | None:
    """Return where the embedding of the page before is shown, once after a page was opened without a link to one.

    Args:
        run: The run.
        frames_of: The embeddings that each layout of the page shows, by the layout's id; the first one is preferred.

    Returns:
        The id of a layout and the position of the embedding in it; None if there is nothing to carry.
    """
    is_new = st.session_state.pop(FRAME_IS_NEW, False)
    of_run, frame = st.session_state.get(FRAME, ("", None))
    if not is_new or of_run != run.id or frame is None or {"map", "frame"} & set(st.query_params):
        return None
    wanted = trained_name(run, frame)
    return next(((layout, position) for layout, frames in frames_of.items() for position, name in enumerate(frames)
                 if trained_name(run, name) == wanted), None)
