"""What a page without content shows: a drawing, a sentence, and the example that shows the page best."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence

import streamlit as st

from udml_core.base.paths import ASSETS
from udml_core.runs import Run, example_runs, runs_folder, show_examples
from udml_core.runs.examples import SHOWCASE

from .run_status import title_of
from .views import open_view

IMPROVING, CLOTHES, DRAWINGS = ("20261122-120000-rpml-digits", "20261122-120100-plm-clothes",
                                "20261122-120200-isif-emoji")
LABELED, PAIRED = "20261122-120300-ssdml-digits", "20261122-120400-nml-digits"
BEST = {"explore": IMPROVING, "clusters": IMPROVING, "triplets": IMPROVING, "retrieval": SHOWCASE,
        "instances": DRAWINGS, "refine": CLOTHES, "neighborhoods": CLOTHES, "labels": LABELED, "affinity": LABELED,
        "pairs": PAIRED, "pair_labels": PAIRED}
# The examples by page. Pages that show a method's records need an example that has them: clusters and triplets of
# RPML, proxies of PLM, affinities of SSDML, prototypes and pairs of NML. Search opens with the showcase.


PICTURES = {"retrieval": "rows", "refine": "rows", "compare": "bars", "runs": "bars", "labels": "labels",
            "affinity": "labels", "pairs": "pairs", "pair_labels": "pairs"}
"""The drawing of each view; the others show a map."""


def show_empty(words: str, drawing: str = "") -> None:
    """Show a drawing of what will be here, above a sentence that says what is missing.

    Args:
        words: The sentence, in Markdown.
        drawing: Name of a file in assets/drawings; the current view's own if empty.
    """
    name = drawing or PICTURES.get(st.session_state.get("page", ""), "map")
    with st.container(horizontal_alignment="center", key=f"empty-{name}", gap="small"):
        st.html(f'<img class="drawing" alt="" src="{_drawing(name)}">', width="content")
        st.markdown(words, text_alignment="center", width="content")


@st.cache_resource(show_spinner=False)
def _drawing(name: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode((ASSETS / "drawings" / f"{name}.svg").read_bytes()).decode()


def offer_lab() -> None:
    """Show the button that opens Lab, the only action of a page that needs a run."""
    with st.container(horizontal_alignment="center"):
        if st.button("Open Lab", type="primary", icon=":material/science:", key="open-lab"):
            open_view("train")


def best_example(page: str, examples: Sequence[Run], fits: Callable[[Run], bool] = lambda _run: True) -> Run | None:
    """Return the example that shows a page best.

    Args:
        page: The page's name in the address.
        examples: The examples to choose from.
        fits: Whether the page can show a run.

    Returns:
        The example; the first that fits if the page has none of its own, and None if none fits.
    """
    fitting = [run for run in examples if fits(run)]
    return next((run for run in fitting if run.id == BEST.get(page)), fitting[0] if fitting else None)


def offer_example(fits: Callable[[Run], bool] = lambda _run: True, primary: bool = False) -> bool:
    """Show a button that opens the example that shows the current page best; hidden examples are listed again.

    Args:
        fits: Whether the page can show a run.
        primary: Whether the button is the only action of an empty page.

    Returns:
        Whether there is such an example.
    """
    example = best_example(st.session_state.get("page", ""), example_runs(), fits)
    if example is None:
        return False
    with st.container(horizontal_alignment="center" if primary else "left"):
        opens = st.button(f"Open the example {title_of(example.spec())}", icon=":material/play_circle:",
                          key="open-example", type="primary" if primary else "secondary",
                          help="A finished run that comes with the app.")
    if opens:
        show_examples(runs_folder())
        st.query_params["run"] = example.id
        st.rerun()
    return True
