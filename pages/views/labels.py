"""Labels: assign classes to a few images and see the labels spread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from pages.parts.draw.gallery import selectable_gallery
from pages.parts.draw.palette import CLASS_COLORS, percent
from pages.parts.draw.run_header import run_header
from pages.parts.draw.sections import Section, open_now, open_section, show_sections
from pages.parts.labels.actions import PAGE, clear_selection
from pages.parts.labels.assigned import show_assigned_labels
from pages.parts.labels.assignment import naming_bar, show_selected, show_suggested
from pages.parts.labels.board import MOST_TILES, Board, board_of, tile_to_label
from pages.parts.labels.doubts import say_doubts
from pages.parts.labels.folders import show_folders
from pages.parts.labels.forming import current_groups, offer_groups
from pages.parts.labels.graph_view import gamma_slider
from pages.parts.labels.groups import first_group, follow_group, groups_to_name, open_group, opened_group, show_groups
from pages.parts.labels.proposals import open_class, show_proposals, shown_rows
from pages.parts.maps.frame import UNITS, MapFrame, covering_map, distortion_words
from pages.parts.maps.scatter import Ring, draw_map
from pages.parts.shell.address import choice_from_address, choose_segment, write_address
from pages.parts.shell.analyses import request_analysis, show_analysis_progress
from pages.parts.shell.cached import dataset_of, progress_bar, with_time
from pages.parts.shell.growth import link_to_changes
from pages.parts.shell.label_graph import are_neighbors_near, training_images
from pages.parts.shell.run_picker import pick_run
from pages.parts.shell.run_status import escaped
from pages.parts.shell.selection import select, selection
from pages.parts.shell.user_errors import fragment, show_user_errors
from udml_core.base.arrays import Array, rows_of
from udml_core.base.errors import counted
from udml_core.data.dataset import Dataset
from udml_core.exploration import label_spread as views
from udml_core.exploration.grouping import Proposal
from udml_core.exploration.map_content import Color
from udml_core.exploration.naming import GAMMA
from udml_core.runs import Run
from udml_core.runs.analyses import plan_analysis
from udml_core.runs.analyses.kinds.pca import PCA
from udml_core.runs.search import FROZEN, finished_refinements
from udml_core.work.jobs import are_maps_coming

MOVED = "labels-least-moved"
"""Session key: whether the user moved the threshold, which is calibrated otherwise."""
SECTIONS = "labels-section"
TITLES = {"groups": "Groups", "next": "Label next", "proposals": "Proposed names", "labels": "Labels",
          "folders": "Folders"}
"""The sections by their names in the address."""
MOST_COLORED = 8
"""Groups that the map colors while none is open: the next to name. More colors would be confused."""
COLORS = {"class": "Class", "certainty": "Certainty", "group": "Group"}
DEFAULT_COLOR = "class"
RING = 6.0
"""Radius in pixels of the ring of a labeled image."""
MAP_HEIGHT = "max(430px, 100vh - 350px)"
"""Height of the map as a CSS length: with its legend to the end of the screen, as app.css has it, too."""
NEXT_HEIGHT = 230
"""Height in pixels of the suggested image, or of the selected images."""
LEFT = "labels-section-before"
"""Session key of the section that was open when the page was drawn last."""


def choose_color(section: str) -> str:
    """Choose what colors the map: the groups while they are open, unless the user has chosen."""
    first = "group" if section == "groups" else DEFAULT_COLOR
    return choose_segment("Color", "show", COLORS, first, key=f"labels-color-{first}", label_visibility="collapsed")


def spread_map(board: Board, by: str, suggested: int | None) -> None:
    """Show the map colored by the spread of the labels.

    A click selects or deselects an image.

    Args:
        board: The board.
        by: What colors the map.
        suggested: The image that is suggested to label, which gets a mark; None without.
    """
    shown = covering_map(board.run, board.images)
    if shown is None:
        if are_maps_coming(board.run):
            st.info("The map appears here as soon as it is computed.", icon=":material/hourglass_top:")
        else:
            st.info("This run has no map of its training images. Compute one to see the labels spread.",
                    icon=":material/lightbulb:")
            request_analysis(board.run, plan_analysis(PCA, scope="all", frames=("final",)), "Compute map",
                             "labels-map-new")
        show_analysis_progress(board.run, in_corner=False)
        return
    selected = selection(board.dataset)
    ringed = board.labels if len(board.labels) <= MOST_TILES else {}  # more rings would hide the map
    marks = [*_rings(ringed, board.names), *([] if suggested is None else [Ring(suggested, "next")])]
    clicked = draw_map(board.dataset, shown.layout, _color(board, shown, by), f"Map colored by {COLORS[by].lower()}",
                       "labels-map", marks=marks, height=MAP_HEIGHT, tiles="some", hidden=board.images[board.left_out])
    outside = int((rows_of(board.images, shown.layout.indices) < 0).sum())
    is_spread = bool(outside and board.spreads)
    gray = f" Gray: {outside:,} images outside the training half, where labels do not spread." if is_spread else ""
    rings = "Rings mark labeled images, in the color of their class." if ringed else ""
    st.caption(f"{rings}{gray} Click a point to select it; the lasso selects several.",
               help="Gray images of the training half have no name: their certainty is below the threshold. "
                    f"{distortion_words(shown)} {UNITS}")
    if clicked is not None:
        select(board.dataset.fingerprint, np.setxor1d(selected.ids, [clicked]))
        st.rerun(scope="fragment")


def _rings(labels: dict[int, str], names: Sequence[str]) -> list[Ring]:
    """Return a small ring for each labeled image in the color of its class, with the class and its count beside one."""
    colors = CLASS_COLORS["light"]
    words = {name: f"{name} · {count:,}" for name, count in Counter(labels.values()).items()}
    return [Ring(image, words.pop(name, ""), color=colors[names.index(name) % len(colors)], radius=RING)
            for image, name in labels.items()]


def _color(board: Board, shown: MapFrame, by: str) -> Color:
    """Return the colors of the map's points, none outside the training half."""
    rows = rows_of(board.images, shown.layout.indices)
    if by == "group":
        groups = current_groups(board)  # the legend counts the images that the list of groups counts
        if not len(groups):
            return Color("group", np.full(len(rows), -1), (), none="no group, or a name")
        opened = opened_group(board, groups)  # it stands out
        colored = np.array([int(groups[of[0]]) for of in groups_to_name(board)[:MOST_COLORED]]
                           if opened is None else [opened], int)
        own = np.where((rows >= 0) & (board.named[rows] < 0), groups[rows], -1)
        place = np.full(int(groups.max()) + 2, -1)  # of images without a group, the last
        place[colored] = np.arange(len(colored))
        return Color("group", place[own], tuple(f"group {number + 1}" for number in colored), none="other images")
    if by == "class" or not board.spreads:
        none = "no name, or in the test half" if (rows < 0).any() else "no name"
        return Color("class", np.where(rows >= 0, board.named[rows], -1), board.names or ("no class yet",), none=none)
    percent = 100 * board.certainty
    return Color(by, np.where(rows >= 0, percent[rows], np.nan), unit=" %", none="in the test half", low=0, high=100)


def show_numbers(board: Board) -> None:
    """Show the number of labels and how far they spread."""
    if not board.labels:
        return
    parts = [f"**{counted(len(board.labels), 'label')}**", counted(len(board.classes), "class")]
    if board.spreads:
        parts.append(f"{percent(100 * float((board.named >= 0)[~board.left_out].mean()))} of the images named")
        share_correct = accuracy(board)
        if share_correct is not None:
            parts.append(f"{percent(100 * share_correct)} of the accepted names right")
    st.markdown(" · ".join(parts), help="Images with a label; classes with at least one; the share of training images "
                                        "with a label or an accepted name; and, where the data set has classes, the "
                                        "share of accepted names that are the image's class.")
    _say_next(board)
    outside = len(board.labels) - int((board.codes >= 0).sum())
    if outside:
        st.caption(f"Labels of images outside this run's training half: {outside}. They are saved, but they do not "
                   "spread and are not used in training.")


def _say_next(board: Board) -> None:
    """Say what is known about the names, and what to do next; guesses are offered for a look, after the next group."""
    if not board.spreads:  # the suggested image says what to do
        return
    st.caption(board.names_given.words)
    proven = next((each for each in board.proposals if not board.names_given.are_guesses(each.code)), None)
    if proven is not None:
        st.markdown(f"**Next:** {len(proven.rows):,} more look like *{escaped(board.names[proven.code])}*. Confirm "
                    "them under Proposed names, or name further groups.")
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown("**Next:** name further groups, or label suggested images.", width="content")
        if not len(selection(board.dataset).ids) and len(images := first_group(board)):
            st.button("Next group", icon=":material/arrow_forward:", key="labels-next-group", type="primary",
                      on_click=_open_next_group, args=(board, images), help="Opens the first group without a name.")
    if board.next_names:
        _offer_guesses(board, board.next_names[0])


def _offer_guesses(board: Board, guesses: Proposal) -> None:
    """Say which images are nearest to a class without checked names, and offer a look at them."""
    low, high = round(100 * guesses.certainty.min()), round(100 * guesses.certainty.max())
    count, name = len(guesses.rows), board.names[guesses.code]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"{counted(count, 'image')} {'is' if count == 1 else 'are'} nearest to *{escaped(name)}* "
                    f"({f'{low} to ' if low < high else ''}{high} %).", width="content")
        st.button("Look at it" if count == 1 else "Look at them", icon=":material/visibility:", key="labels-guesses",
                  on_click=_open_proposals, args=(board.dataset, name),
                  help="Opens Proposed names. Too few names of this class are checked, so many may be wrong.")


def _open_next_group(board: Board, images: Array) -> None:
    open_section(SECTIONS, TITLES["groups"])
    st.session_state[LEFT] = "groups"  # the images of the group stay selected
    open_group(board, int(images[0]), images)


def _open_proposals(dataset: Dataset, name: str) -> None:
    open_section(SECTIONS, TITLES["proposals"])
    clear_selection(dataset)
    open_class(name)


def choose_frame(run: Run) -> str:
    """Choose the embedding along whose neighbors names spread: after training, or a refinement of all its images."""
    images = training_images(run)
    refined = {analysis.id: analysis.spec().recipe for scope in ("test", "all", "train")
               for analysis in finished_refinements(run, scope) if np.isin(images, analysis.indices()).all()}
    names = {"final": "After training" if run.spec().method != FROZEN else "Features", **refined}
    frame = st.selectbox("Embedding", list(names), key=f"labels-frame-{run.id}", format_func=names.__getitem__,
                         index=list(names).index(choice_from_address("embedding", names, "final")),
                         help="Groups are formed in it, and names spread along its neighbors; a refinement for whole "
                              "groups forms purer groups.")
    write_address("embedding", frame, "final")
    return frame


def choose_least(board: Board) -> Board:
    """Choose a certainty from which names are accepted; by the checked names until the user moves the slider."""
    if not board.spreads:
        return board
    with progress_bar() as report:
        board.prepare_names(with_time(report))
    with st.spinner("Spreading names …"):
        accepted = board.names_given.least_by_class
    if not st.session_state.get(MOVED):
        st.session_state["labels-least"] = min(100, round(100 * min(accepted.values(), default=1.0)))
        words = f"Names of {counted(len(accepted), 'class')} are accepted" if accepted else (
            "No name is certain enough yet")
    else:
        words = f"Names from a certainty of {st.session_state['labels-least']} %"
    with st.popover(words, icon=":material/verified:"):
        return _least_slider(board)


def _least_slider(board: Board) -> Board:
    least = st.slider("Name images from a certainty of", 0, 100, key="labels-least", format="%d %%",
                      on_change=st.session_state.__setitem__, args=(MOVED, True),
                      help="From 0 to 100 %, for all classes: less certain images stay without a name. Certainty falls "
                           "with the distance to labeled images. Until you move the slider, each class has a certainty "
                           "of its own, by the names that you checked, so that 90 % of its names should be right.")
    if not st.session_state.get(MOVED):
        return board
    st.button("By checked names", icon=":material/restart_alt:", key="labels-calibrate", type="tertiary",
              on_click=st.session_state.pop, args=(MOVED, None),
              help="Accept the names of each class by the names that you checked again.")
    return replace(board, least=least / 100)


def accuracy(board: Board) -> float | None:
    """Return the share of correct names among the accepted names.

    Returns:
        The share; None without classes, or if a label does not have the name of a class.
    """
    if board.dataset.labels is None or not set(board.names) <= set(board.dataset.class_names):
        return None
    return views.share_correct(board.named, board.codes, board.names, board.dataset.labels[board.images],
                           board.dataset.class_names)


def show_next(board: Board) -> None:
    """Show the selected or the suggested image large, and the images to label next."""
    selected = selection(board.dataset)
    if not len(selected.ids) and not board.suggested_images:
        st.success("Every image of the training half has a label or was skipped. Select an image to change its label.",
                   icon=":material/check_circle:")
        return
    with st.container(height=NEXT_HEIGHT, border=False):  # else the images below move at a click
        if len(selected.ids):
            show_selected(board, selected)
        else:
            show_suggested(board, board.suggested_images[0])
    st.caption("A name for one of these images helps most others, the first most. Click an image to select it.",
               help="Random walks from image to similar image, until they reach a label or end, visit these images "
                    "most often. Each is chosen as if the images before it had a label, so that they differ.")
    tiles = [tile_to_label(board, image, f"number {rank}") for rank, image in enumerate(board.suggested_images, 1)]
    selectable_gallery(board.dataset, tiles, "Images to label next", "labels-next", selected, 84, 300)


def drop_selection_of_another_section(dataset: Dataset, section: str) -> None:
    """Clear the selection if the user has opened another section: a name would go to images out of sight."""
    if st.session_state.get(LEFT, section) != section:
        clear_selection(dataset)
    st.session_state[LEFT] = section


def show_out_of_sight(board: Board, section: str) -> None:
    """Show selected images that the open section does not show, which the map or Undo may have selected."""
    selected = selection(board.dataset)
    if section in ("groups", "next") or not len(selected.ids):
        return
    proposed = board.images[shown_rows(board)] if section == "proposals" else board.images[:0]
    if len(np.setdiff1d(selected.ids, proposed)):
        show_selected(board, selected)


def work(board: Board, section: str, suggested: int | None) -> None:
    """Show what is named, and the sections that lead to names."""
    draw = {"groups": show_groups, "next": show_next, "proposals": show_proposals, "labels": show_assigned_labels,
            "folders": show_folders}
    with st.container():  # the tabs below would lose the focus if the number of elements before them changed
        naming_bar(board, selection(board.dataset), suggested)
        show_out_of_sight(board, section)
    show_sections([Section(name, title, partial(draw[name], board)) for name, title in TITLES.items()], SECTIONS)


@fragment
def explore(run: Run) -> None:
    """Show everything that changes with a label, the groups, the certainty or γ."""
    dataset = dataset_of(run)
    left, right = st.columns(2, gap="medium")
    with right:
        bar, picture, below = st.container(horizontal=True, gap="small"), st.container(), st.container()
    color = bar.container(width="content")
    with bar, st.popover("Neighbors", icon=":material/tune:"):
        gamma = gamma_slider("labels-gamma", GAMMA, "default")
        frame = choose_frame(run)
    if not (are_neighbors_near(run, "final") and are_neighbors_near(run, frame)):
        with left:
            offer_groups(run, frame if are_neighbors_near(run, "final") else "final")
        return
    board = board_of(run, dataset, gamma, frame)
    with below:
        board = choose_least(board)
        show_numbers(board)
        say_doubts(board)  # beside the images: above them, it would move them at a click as it comes and goes
    section = open_now(SECTIONS, TITLES)
    drop_selection_of_another_section(dataset, section)
    follow_group(board)
    if section != "proposals":
        st.session_state.pop(PAGE, None)  # what is asked about follows the names that came since
    suggested = next(iter(board.suggested_images), None) if section == "next" else None
    with color:
        by = choose_color(section)
    with left:
        work(board, section, suggested)
    with picture:
        spread_map(board, by, suggested)


def draw() -> None:
    """Draw the view."""
    with show_user_errors():
        run = pick_run("Run whose embedding defines the neighbors")
        if run is not None:
            run_header(run)
            link_to_changes(run)
            explore(run)
