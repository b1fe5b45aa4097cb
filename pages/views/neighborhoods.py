"""Neighborhoods: linear neighborhoods, and why two images are similar."""

from __future__ import annotations

from functools import cache

import numpy as np
import streamlit as st

from pages.parts.draw.downloads import Download, share, table_file
from pages.parts.draw.pictures import picture
from pages.parts.draw.run_header import header_place, run_header
from pages.parts.draw.sections import Section, open_section, show_sections, slot
from pages.parts.neighborhoods.center import OWN_IMAGE, Center, load_center, second_index, set_images
from pages.parts.neighborhoods.flat import quality_bars, show_flat
from pages.parts.neighborhoods.geometry import choose_geometry
from pages.parts.neighborhoods.heat import show_contours, show_heat
from pages.parts.neighborhoods.members import draw_members, show_candidates, show_strip
from pages.parts.neighborhoods.pair import show_pair
from pages.parts.neighborhoods.proxies import explore_proxies, proxies_of
from pages.parts.neighborhoods.rankings import show_directions, show_rankings
from pages.parts.retrieval.own_images import receive_images
from pages.parts.shell.address import choose_segment, number_from_address, write_address
from pages.parts.shell.cached import dataset_of
from pages.parts.shell.run_picker import pick_run
from pages.parts.shell.run_status import escaped
from pages.parts.shell.user_errors import fragment, show_user_errors
from udml_core.base.arrays import Array
from udml_core.base.errors import counted
from udml_core.exploration import neighborhoods as views
from udml_core.numerics.explanations import LinearNeighborhoods
from udml_core.runs import Run
from udml_core.runs.search import TRAINED, frame_words

SECTIONS, PAIR = "neighborhoods-section", "Why similar?"
CLICK_WORDS = {"second": "make it the second", "first": "make it the first"}


def show_first_image(center: Center) -> None:
    """Show the first image, with a button that removes an own image."""
    picture(center.image, 56, f"First image: {center.name}")
    st.markdown(f"**{escaped(center.name)}**", width="content",
                help="Click a point on the map to choose another image, or bring your own.")
    if center.index < 0:
        st.button("Remove", icon=":material/close:", key="neighborhood-away", on_click=set_images)


def choose_image_and_geometry(run: Run) -> tuple[Center, views.Geometry]:
    """Show the first image and the controls in two rows."""
    toolbar = st.container(horizontal=True, vertical_alignment="center")
    with toolbar:
        first = slot("neighborhood-first")
        which = choose_segment("Embedding", "embedding", TRAINED[::-1], "final", format_func=frame_words,
                               key="neighborhood-embedding", label_visibility="collapsed")
        received = []
        if run.spec().encoder.reads_images:
            with st.popover("Own image", icon=":material/add_photo_alternate:"):
                received = receive_images("neighborhood-paste", 1)
        more = st.popover("More", icon=":material/tune:")
    if received:
        st.session_state[OWN_IMAGE] = received[0]
    center = load_center(run, dataset_of(run), which)
    with first, st.container(horizontal=True, vertical_alignment="center"):
        show_first_image(center)
    geometry = choose_geometry(run, more).within(center.around.candidates.shape[1], center.around.points.shape[1])
    if geometry.flat < number_from_address("flat", geometry.flat):
        st.caption(f"m = {geometry.flat} is used: a flat has at most as many dimensions as there are candidates, and "
                   "as the embedding has.")
    return center, geometry


@fragment
def explore(run: Run) -> None:
    """Show the first image's neighborhood on the map and in space, and the open section."""
    header = header_place()
    center, geometry = choose_image_and_geometry(run)
    run_header(run, frame_words(center.which, run), header)
    hoods = center.around.neighborhoods(geometry)
    second = second_index(center)
    left, right = st.columns(2, gap="medium")
    with left:
        clicked_point = draw_members(center, hoods, second)
    with right:
        count = int(hoods.members[0].sum())
        st.caption(f"**{counted(count, 'member')}**, then pale **{hoods.members.shape[1] - count:,} rejected**, with "
                   "their ranks by distance.")
        clicked_candidate = show_strip(center, hoods, second)
        show_flat(center, hoods)
    click = st.segmented_control("Click an image below to", list(CLICK_WORDS), default="second", required=True,
                                 key="neighborhood-click", format_func=CLICK_WORDS.__getitem__)
    clicked = show_sections(sections_of(center, hoods, geometry, second), SECTIONS, first_section())
    follow_click(center, clicked_point, clicked if clicked_candidate is None else clicked_candidate, click == "first")


def first_section() -> str:
    """Return the section that the address asks for: a second image is compared, a proxy is shown."""
    return next((name for parameter, name in (("second", "pair"), ("proxy", "proxies"))
                 if parameter in st.query_params), "")


def sections_of(center: Center, hoods: LinearNeighborhoods, geometry: views.Geometry,
                second: int) -> list[Section]:
    """Return the sections below the neighborhood."""
    @cache
    def similarities() -> Array:
        return views.similarities(center.around, hoods, geometry)[1:]

    def members() -> int | None:
        clicked = show_candidates(center, hoods, geometry, second)
        quality_bars(hoods, geometry.threshold, geometry.untested)
        return clicked

    def rankings() -> int | None:
        clicked = show_rankings(center, similarities(), second)
        share([Download("Nearest images (CSV)", "neighborhood.csv", "text/csv",
                        lambda: nearest_file(center, similarities()))], "neighborhood")
        return clicked

    sections: list[Section] = [
        Section("members", "Members", members),
        Section("pair", PAIR, lambda: show_pair(center, hoods, geometry, second, similarities())),
        Section("directions", "Directions", lambda: show_directions(center, hoods, second)),
        Section("rankings", "Rankings", rankings), Section("classes", "Classes", lambda: show_heat(center, geometry)),
        Section("plane", "Lines of equal similarity", lambda: show_contours(geometry.n_alpha, geometry.n_beta))]
    if proxies_of(center.run) is not None:
        sections.append(Section("proxies", "Proxies", lambda: explore_proxies(center.run)))
    return sections


def nearest_file(center: Center, similarities: Array) -> bytes:
    """Return the nearest images as CSV."""
    return table_file(center.dataset, center.nearest, {
        "similarity": similarities, f"{center.metric} rank": np.arange(1, len(similarities) + 1)})


def follow_click(center: Center, clicked_point: int | None, clicked_image: int | None, becomes_first: bool) -> None:
    """Make the image that was clicked just now the first or second image."""
    first = clicked_image if clicked_point is None and becomes_first else clicked_point
    if first is not None:
        set_images(first)
        st.rerun(scope="fragment")
    if clicked_image is not None:
        write_address("second", str(clicked_image))
        open_section(SECTIONS, PAIR)
        st.toast(f"The second image is now {escaped(center.dataset.caption(clicked_image))}.",
                 icon=":material/compare_arrows:")
        st.rerun(scope="fragment")


def draw() -> None:
    """Draw the view."""
    with show_user_errors():
        run = pick_run()
        if run is not None:
            explore(run)
