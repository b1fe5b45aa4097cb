"""The map of a run, and panels on the current image beside it."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.parts.draw.pictures import picture
from pages.parts.draw.run_header import header_place
from pages.parts.explore.around import show_below, show_menus
from pages.parts.explore.map_view import draw_maps, follow_clicks, show_facts, shown_images
from pages.parts.explore.panels import pick_panel
from pages.parts.explore.settings import apply_settings, pick_settings
from pages.parts.explore.toolbar import choose_map
from pages.parts.explore.workbench import Workbench, interesting_images, show_another
from pages.parts.maps.choosing import announce_maps
from pages.parts.maps.excluding import PARAMETER as EXCLUDED
from pages.parts.maps.images import announce_missing, pick_clicked
from pages.parts.maps.second_map import changed_neighborhoods
from pages.parts.runs.advised import offer_advised
from pages.parts.shell.analyses import show_analysis_progress
from pages.parts.shell.cached import dataset_of, load_retrieval
from pages.parts.shell.growth import link_to_changes
from pages.parts.shell.interesting import current_image
from pages.parts.shell.run_picker import pick_run
from pages.parts.shell.run_status import escaped
from pages.parts.shell.selection import selection
from pages.parts.shell.undo import undo_buttons
from pages.parts.shell.user_errors import fragment, show_user_errors
from udml_core.data.sources.versions import image_to_draw
from udml_core.runs import Run

PANEL_HEIGHT = 500


def show_focus(bench: Workbench) -> None:
    """Show the current image with its name, and buttons that move to another image."""
    left, middle, right = st.container(key="explore-focus").columns([1, 2.6, 2], vertical_alignment="center",
                                                                    gap="small")
    with left:
        picture(image_to_draw(bench.dataset.images, bench.focus), 64, f"Current image: {bench.caption}")
    why = ""
    if load_retrieval(bench.run).is_changed and bench.focus in interesting_images(bench.run)[:1]:
        why = "Typical of the images whose results change through training as they do on average."
    facts = f"  \n:small[{escaped(bench.facts)}]" if bench.facts else ""
    middle.markdown(f"**{escaped(bench.title)}**{facts}", help=why or None)
    with right.container(gap=None):
        # Without tooltips, which would cover the other button.
        for label, icon, step, images in (("Next", ":material/skip_next:", 1, interesting_images(bench.run)),
                                          ("Random", ":material/shuffle:", 0, bench.split.test)):
            st.button(label, icon=icon, key=f"explore-step-{step}", type="tertiary", on_click=show_another,
                      args=(images, bench.focus, step))


@fragment
def explore(run: Run) -> None:
    """Show the map and the panel, which share the current image, the selection and the epoch."""
    # The places come first: reading from a cache leaves an empty element, which must not move what follows.
    header, tools, body, below = header_place(), st.container(), st.container(), st.container()
    dataset = dataset_of(run)
    with tools:
        choice = choose_map(run, header)
    clicked_map = follow_clicks(choice)
    bench = Workbench(run, dataset, current_image(run, dataset), choice.frame)
    with tools:
        bench = replace(bench, **pick_settings(bench, choice))
    choice, marks = apply_settings(bench, choice)
    selected = selection(dataset)
    left, right = body.columns([62, 38] if choice.other is None else [70, 30], gap="small")
    with left:
        draw_maps(bench, choice, marks)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            show_facts(choice)
            undo_buttons(dataset, "explore", parameters=(EXCLUDED,))
            offer_advised(run)
        show_analysis_progress(run)
        announce_missing(dataset, bench.focus, shown_images(choice))
        clicks = [] if choice.other is None else [changed_neighborhoods(choice.shown, choice.other)]
    with right:
        show_focus(bench)
        panel = pick_panel(bench, selected, clicked_map)
        with st.container(height=PANEL_HEIGHT, border=True, gap="xsmall", key="explore-details"), show_user_errors():
            panel.draw(bench)
    with below:
        announce_maps(run, choice.layout.id, f"explore-map-{run.id}")
        clicks += show_below(choice)
        with st.container(horizontal=True, gap="small"):
            show_menus(choice, selected)
    pick_clicked(clicks)


def draw() -> None:
    """Draw the view."""
    with show_user_errors():
        run = pick_run()
        if run is not None:
            link_to_changes(run)
            explore(run)
