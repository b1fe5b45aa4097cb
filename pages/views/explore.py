"""Explore: one run on one page, with a map and panels linked by one image."""

from __future__ import annotations

import streamlit as st

from pages.parts.draw.pictures import picture
from pages.parts.draw.run_header import header_place, run_header
from pages.parts.explore.map_view import KEY, draw_layout, show_facts, shown_images
from pages.parts.explore.panels import pick_panel
from pages.parts.explore.workbench import Workbench, interesting_images, show_another
from pages.parts.maps.choosing import pick_frame
from pages.parts.maps.coloring import pick_color
from pages.parts.maps.excluding import PARAMETER as EXCLUDED
from pages.parts.maps.images import announce_missing, follow_click
from pages.parts.maps.layouts import pick_any_layout
from pages.parts.shell.analyses import show_analysis_progress
from pages.parts.shell.cached import dataset_of, load_retrieval
from pages.parts.shell.interesting import current_image
from pages.parts.shell.run_picker import pick_run
from pages.parts.shell.selection import selection
from pages.parts.shell.undo import undo_buttons
from pages.parts.shell.user_errors import fragment, show_user_errors
from udml_core.runs import Run
from udml_core.runs.search import frame_words

PANEL_HEIGHT = 650


def show_focus(bench: Workbench) -> None:
    """Show the current image with its name, and buttons that move to another image."""
    left, middle, right = st.container(key="explore-focus").columns([1, 3.4, 1.7], vertical_alignment="center",
                                                                    gap="small")
    with left:
        picture(bench.dataset.images[bench.focus], 64, f"Current image: {bench.caption}")
    half = "Training half." if bench.focus in bench.split.train else "Test half."
    why = ""
    if load_retrieval(bench.run).is_changed and bench.focus in interesting_images(bench.run)[:1]:
        why = " Its neighbors changed most through training."
    middle.markdown(f"**{bench.title}**  \n:small[{bench.file}. {half}{why}]")
    with right.container(gap=None):
        # Without tooltips, which would cover the other button.
        for label, icon, step, images in (("Next", ":material/skip_next:", 1, interesting_images(bench.run)),
                                          ("Random", ":material/shuffle:", 0, bench.split.test)):
            st.button(label, icon=icon, key=f"explore-step-{step}", type="tertiary", on_click=show_another,
                      args=(images, bench.focus, step))


@fragment
def explore(run: Run) -> None:
    """Show the map and the panel, which share the current image, the selection and the epoch."""
    dataset = dataset_of(run)
    header = header_place()
    left, right = st.columns([57, 43], gap="small")
    with left:
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="explore-toolbar"):
            layout = pick_any_layout(run)
            color_place = st.container(width="content")
        with st.container(key="explore-cursor"):  # a line of its own right above the map, whose main control it is
            frame = layout.frames[pick_frame(run, layout.frames, layout.start(run), "Epoch",
                                             f"explore-epoch-{layout.id}", buttons="explore-frame")]
        run_header(run, frame_words(frame, run), header)  # before the map is loaded, so that nothing moves later
        shown = layout.load(run, frame)
        with color_place:
            color = pick_color(shown, "Color", 180, "explore-color")
        clicked_map = follow_click(KEY, shown_images(layout, shown, frame))
        bench = Workbench(run, dataset, current_image(run, dataset), frame)
        selected = selection(dataset)
        draw_layout(bench, layout, shown, color)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            show_facts(layout, shown)
            undo_buttons(dataset, "explore", parameters=(EXCLUDED,))
        announce_missing(dataset, bench.focus, shown_images(layout, shown, frame))
    with right:
        show_focus(bench)
        panel = pick_panel(bench, selected, clicked_map)
        with st.container(height=PANEL_HEIGHT, border=True, gap="xsmall", key="explore-details"), show_user_errors():
            panel.draw(bench)


def draw() -> None:
    """Draw the view."""
    with show_user_errors():
        run = pick_run()
        if run is not None:
            explore(run)
            show_analysis_progress(run)
