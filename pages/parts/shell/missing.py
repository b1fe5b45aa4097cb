"""The page at an address that the app does not have, in place of Streamlit's dialog over another page."""

from __future__ import annotations

from collections.abc import Collection

import streamlit as st
from streamlit.navigation.page import Page
from streamlit.runtime.scriptrunner import get_script_run_ctx

from .run_status import escaped
from .views import PAGES

SEEN = "missing-pages"
"""Session key of the wrong addresses that were opened: a later run of the script knows the address by a hash only."""
LONGEST = 60
MISSING = "missing"
"""Name of the view, which no address has."""


def missing_pages(known: Collection[str]) -> list[Page]:
    """Return a page for each wrong address that this session has opened, so that the address stays as it was typed.

    Args:
        known: The addresses of the app's pages.
    """
    context = get_script_run_ctx()
    wanted = "" if context is None else context.pages_manager.intended_page_name or ""
    names: list[str] = st.session_state.setdefault(SEEN, [])
    if wanted and wanted not in known and wanted not in names and "/" not in wanted:
        names.append(wanted)
    return [st.Page(show_missing, title="Page not found", url_path=name, visibility="hidden") for name in names]


def show_missing() -> None:
    """Say that there is no such page, and link to the pages that exist."""
    st.title("Page not found")
    name = str(st.session_state[SEEN][-1])
    shown = name if len(name) <= LONGEST else f"{name[:LONGEST]} …"
    st.markdown(f"There is no page **/{escaped(shown)}** here. Choose a page:")
    with st.container(key="missing-links", gap="xsmall"):
        for page, card in PAGES.items():
            st.page_link(f"pages/{page}.py", label=f"**{card.title}** · {card.help}", icon=f":material/{card.icon}:")
