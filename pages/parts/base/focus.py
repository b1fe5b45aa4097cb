"""The current image across pages: a page that is opened without an image shows the image of the page before."""

from __future__ import annotations

import streamlit as st

from pages.parts.base.address import IMAGE, OF_IMAGE, write_address

SUGGESTED = "app-image-suggested"
"""Session key of the image that a page showed by itself."""
DATASET, PAGE, IS_NEW = "app-image-dataset", "app-image-page", "app-image-is-new"
"""Session keys: the fingerprint of the data set whose images the session remembers, the page that was opened last, and
whether the page has not asked for the image since then."""


def note_page() -> None:
    """Note whether another page was opened."""
    page = st.session_state.get("page")
    if st.session_state.get(PAGE) != page:
        st.session_state[PAGE] = page
        st.session_state[IS_NEW] = True


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
    if st.session_state.pop(IS_NEW, False) and parameter is not None:
        write_address(parameter, st.query_params.get(parameter) or current_elsewhere() or "")


def suggest_image(index: int) -> None:
    """Remember the image that a page shows by itself, so that the next pages show it too."""
    st.session_state[SUGGESTED] = str(index)


def current_elsewhere() -> str | None:
    """Return the image that the user made current on any page, else the one that a page showed by itself."""
    image: str | None = st.session_state.get(IMAGE) or st.session_state.get(SUGGESTED)
    return image
