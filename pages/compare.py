"""Compare: two to six runs in one view."""

from collections.abc import Sequence

import streamlit as st

from pages.parts.base.address import choice_from_address, write_address
from pages.parts.base.empty_state import offer_example
from pages.parts.base.user_errors import show_user_errors
from pages.parts.compare.choosing import FEWEST, choose_compared, share_images
from pages.parts.compare.maps import show_maps
from pages.parts.compare.measures import show_measures, show_settings
from pages.parts.compare.queries import show_same_query, show_wins
from pages.parts.curves.run_curves import line_names, show_curves
from udml_core.runs import Run, list_runs, runs_folder

CURVES, QUERY, WINS, MAPS, SETTINGS = "Curves", "Same query", "Who wins?", "Maps", "Settings"
PARTS = (CURVES, QUERY, WINS, MAPS, SETTINGS)
OF_IMAGES = (QUERY, WINS, MAPS)


def choose_part() -> str:
    """Choose what is compared; the address holds the choice."""
    if following := st.session_state.pop("compare-next-part", None):
        st.session_state["compare-part"] = following
    elif "compare-part" not in st.session_state:
        st.session_state["compare-part"] = choice_from_address("part", PARTS, CURVES)
    part: str = st.segmented_control("Compare", PARTS, required=True, key="compare-part",
                                     label_visibility="collapsed") or CURVES
    write_address("part", part, CURVES)
    return part


def compare(runs: Sequence[Run]) -> None:
    """Show the measures of the runs, and the chosen comparison."""
    show_measures(runs)
    part = choose_part()
    names = list(line_names(runs).values())
    if part in OF_IMAGES and not share_images(runs):
        st.info("These runs search different test images. Choose runs on the same data set and split.",
                icon=":material/lightbulb:")
    elif part == QUERY:
        show_same_query(runs, names)
    elif part == WINS:
        show_wins(runs, names)
    elif part == MAPS:
        show_maps(runs, names)
    elif part == SETTINGS:
        show_settings(runs, names)
    else:
        show_curves(runs, "compare")


st.title("Compare")
with show_user_errors():
    finished = [run for run in list_runs(runs_folder()) if run.stored_status().state == "done"]
    if len(finished) < FEWEST:
        st.info("Comparing needs two finished runs. Train a run, then come back.", icon=":material/lightbulb:")
        st.page_link("pages/train.py", label="Train", icon=":material/model_training:")
        offer_example()
    else:
        compared = choose_compared(finished)
        if len(compared) < FEWEST:
            st.info("Choose two to six runs above.", icon=":material/lightbulb:")
        else:
            compare(compared)
