"""Refine: what the unlabeled images of a gallery know about each other."""

import streamlit as st

from pages.parts.base.analyses import show_analysis_progress
from pages.parts.base.run_picker import pick_run
from pages.parts.base.user_errors import show_user_errors
from pages.parts.refine.applying import show_actions
from pages.parts.refine.cards import choose_recipe
from pages.parts.refine.live import load_live
from pages.parts.refine.measures import show_measures, show_protocol
from pages.parts.refine.query import choose_query, show_query
from udml_core.runs import Run


@st.fragment
@show_user_errors()
def explore(run: Run) -> None:
    """Show the recipe beside everything that depends on it."""
    left, right = st.columns([1, 2.4], gap="large")
    with left:
        st.subheader("Recipe")
        recipe = choose_recipe()
        show_actions(run, recipe)
    with right, show_user_errors():
        live = load_live(run, recipe)
        refined = live.gallery.refine(recipe)
        show_measures(live, refined)
        query = choose_query(live, refined)
        show_query(live, refined, query)
        show_protocol(live, refined)


st.title("Refine")
st.caption("A refinement improves the embedding of a finished run without training and without labels: the unlabeled "
           "test images decide which of them belong together.")
with show_user_errors():
    run = pick_run()
    if run is not None:
        show_analysis_progress(run)
        explore(run)
