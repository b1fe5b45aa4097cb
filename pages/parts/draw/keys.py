"""Keys of the whole app: search for a page, a run or an image, and a list of all keys."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.navigation.page import Page

from udml_core.exploration.browsing import find_image
from udml_core.runs import Run, list_runs, runs_folder

from ..shell.cached import dataset_of
from ..shell.run_picker import app_run
from ..shell.run_status import run_titles
from ..shell.user_errors import show_user_errors
from .transport import component

MOST_RUNS = 200
ALL_KEYS = {
    "/": "search for a page, a run or an image", "?": "show all keys", "Esc": "close, or clear a selection",
    "Home": "Space plays; ← → move the epoch; ↑ ↓ choose another query",
    "Maps": "arrows move; + − zoom; 0 shows all points; Enter opens the image in the middle; Q searches with it",
    "Galleries": "arrows, Home and End move; Enter chooses the image",
    "Sliders": "arrows move; Page Up and Page Down move farther",
    "U": "undo a selection, filter, query or label; Shift+U does it again",
    "Compare, Judge": "← → choose the better image; ↓ calls both equal",
    "Labels, Pairs, the same": "the letters and digits on the buttons press them",
}
_ROWS = "".join(f"<dt>{html.escape(key)}</dt><dd>{html.escape(text)}</dd>" for key, text in ALL_KEYS.items())
HTML = f"""<div class="keys">
<dialog class="search" aria-label="Search"><label for="wanted">Search for a page, a run or an image</label>
<input id="wanted" role="combobox" aria-expanded="true" aria-controls="results" autocomplete="off"
  placeholder="Page, method, data set, file name, number or class">
<div id="results" class="results" role="listbox" aria-label="Pages, runs and images"></div>
<div class="count" role="status"></div></dialog>
<dialog class="help" aria-label="Keys"><h2>Keys</h2><dl>{_ROWS}</dl>
<button type="button" class="close">Close</button></dialog>
</div>
"""


def listen_to_keys(sections: Mapping[str, Sequence[Page]]) -> None:
    """Listen to the keys of the whole app; open what the user searched for.

    Args:
        sections: The app's pages by section.
    """
    pages = {page.title: page for section in sections.values() for page in section if page.visibility == "visible"}
    runs = [run for run in list_runs(runs_folder()) if run.stored_status().state == "done"][:MOST_RUNS]
    current = next((run for run in runs if run.id == app_run()), next(iter(runs), None))
    data = {"runs": [{"id": run_id, "title": title} for run_id, title in run_titles(runs).items()],
            "pages": [{"title": title, "help": page.help} for title, page in pages.items()],
            "dataset": current.spec().dataset_title if current else ""}
    with st.container(key="app-keys", height=1, border=False):  # Its style, which takes no room, may arrive late.
        result = component("keys", HTML)(data=data, key="app-keys-listener", on_chosen_change=lambda: None)
    chosen = result.chosen
    if chosen and chosen.get("page") in pages:
        st.switch_page(pages[chosen["page"]])
    if chosen and "run" in chosen:
        st.switch_page("pages/retrieval.py", query_params={"run": str(chosen["run"])})
    if chosen and current and "image" in chosen:
        with show_user_errors():
            _open_image(current, str(chosen["image"]))


def _open_image(run: Run, text: str) -> None:
    index = find_image(dataset_of(run), text)
    if index is None:
        st.toast(f"No image of {run.spec().dataset_title} has the number, file name or class '{text[:60]}'.",
                 icon=":material/search_off:")
        return
    st.switch_page("pages/retrieval.py", query_params={"run": run.id, "add": str(index)})
