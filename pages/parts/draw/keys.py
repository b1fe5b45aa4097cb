"""Keys of the whole app: search for a page, a run or an image, and a list of all keys."""

from __future__ import annotations

import html
from collections.abc import Iterator

import streamlit as st

from udml_core.exploration.browsing import find_image
from udml_core.runs import Run

from ..shell.cached import dataset_of
from ..shell.run_picker import app_run, searchable_runs
from ..shell.run_status import escaped, run_titles
from ..shell.user_errors import show_user_errors
from ..shell.views import PAGES, VIEWS, open_view, views_of
from .transport import component

MOST_RUNS = 200
ALL_KEYS = {
    "/": "search for a page, a run or an image", "?": "show all keys", "Esc": "close, or clear a selection",
    "Home": "Space plays; ← → move the epoch; ↑ ↓ choose another query",
    "Maps": "arrows move; + − zoom; 0 shows all points; Enter opens the image in the middle; Q searches with it",
    "Galleries": "arrows, Home and End move; Enter chooses the image",
    "Sliders": "arrows move; Page Up and Page Down move farther",
    "U": "undo a selection, filter, query or label; Shift+U does it again",
    "Compare, Judge": "← → choose the better image; ↓ both are right; ↑ both are wrong; N not sure",
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


def listen_to_keys() -> None:
    """Listen to the keys of the whole app; open what the user searched for."""
    pages = dict(searched_pages())
    runs = searchable_runs()[:MOST_RUNS]
    current = next((run for run in runs if run.id == app_run()), next(iter(runs), None))
    data = {"runs": [{"id": run_id, "title": title} for run_id, title in run_titles(runs).items()],
            "pages": [{"title": title, "help": text} for title, (_, text) in pages.items()],
            "dataset": current.spec().dataset_title if current else ""}
    with st.container(key="app-keys", height=1, border=False):  # Its style, which takes no room, may arrive late.
        result = component("keys", HTML)(data=data, key="app-keys-listener", on_chosen_change=lambda: None)
    chosen = result.chosen
    if chosen and chosen.get("page") in pages:
        open_view(pages[chosen["page"]][0])
    if chosen and "run" in chosen:
        open_view("retrieval", query_params={"run": str(chosen["run"])})
    if chosen and current and "image" in chosen:
        with show_user_errors():
            _open_image(current, str(chosen["image"]))


def searched_pages() -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the title of each page and view, with its name and a sentence on its use."""
    for page, card in PAGES.items():
        yield card.title, ((views_of(page) or [page])[0], card.help)
        for name in views_of(page)[1:]:
            yield f"{card.title}: {VIEWS[name].title}", (name, VIEWS[name].help)


def _open_image(run: Run, text: str) -> None:
    index = find_image(dataset_of(run), text)
    if index is None:
        st.toast(f"No image of {escaped(run.spec().dataset_title)} has the number, file name or class "
                 f"'{escaped(text[:60])}'.", icon=":material/search_off:")
        return
    open_view("retrieval", query_params={"run": run.id, "add": str(index)})
