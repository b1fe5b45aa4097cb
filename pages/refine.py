"""Refine: improve the embedding of a finished run by the neighbors in a gallery, without labels."""

import streamlit as st

from pages.parts.draw.run_header import run_header
from pages.parts.draw.sections import Section, show_sections
from pages.parts.refine.applying import show_actions
from pages.parts.refine.cards import choose_recipe
from pages.parts.refine.distilling import show_distillation
from pages.parts.refine.live import load_live
from pages.parts.refine.query import choose_query, current_query, explain_rank, show_query
from pages.parts.refine.recipe_effect import show_measures, show_protocol, warn_of_fall
from pages.parts.shell.analyses import show_analysis_progress
from pages.parts.shell.run_picker import pick_run
from pages.parts.shell.user_errors import show_user_errors
from udml_core.runs import Run
from udml_core.runs.analyses import REFINED
from udml_core.runs.search import frame_words


@st.fragment
@show_user_errors()
def explore(run: Run) -> None:
    """Show everything that depends on the recipe, and the recipe; on a phone the results come first."""
    results, cards = st.columns([2.4, 1], gap="large")
    with cards:
        recipe = choose_recipe(has_views=run.spec().encoder.reads_images)
        show_actions(run, recipe)
    with results, show_user_errors():
        live = load_live(run, recipe)
        refined = live.gallery.refine(recipe)
        show_measures(live, refined)
        query = current_query(live)
        show_query(live, refined, query)
        choose_query(live, refined, query)
        warn_of_fall(live, refined)
        sections = [Section("votes", "Why this rank?", lambda: explain_rank(live, refined, query)),
                    Section("protocol", "What each step uses", lambda: show_protocol(live, refined))]
        if run.spec().encoder.reads_images:
            sections.append(Section("distill", "Without a gallery: distillation", lambda: show_distillation(run)))
        show_sections(sections, "refine-section")


st.title("Refine", help="A refinement improves the embedding of a finished run without training and without labels: "
                        "images that share neighbors move closer together.")
with show_user_errors():
    run = pick_run()
    if run is not None:
        run_header(run, frame_words(REFINED))
        show_analysis_progress(run)
        explore(run)
