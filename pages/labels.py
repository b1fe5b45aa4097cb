"""Giving labels: pick images, name their class, watch the labels spread, and be told which image to label next."""

from __future__ import annotations

import html
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import streamlit as st

from pages.parts.base.address import choice_from_address, write_address
from pages.parts.base.analyses import request_analysis, rows_of, show_analysis_progress
from pages.parts.base.cached import dataset_of
from pages.parts.base.run_picker import pick_run
from pages.parts.base.run_status import UNSEEN
from pages.parts.base.selection import Selection, select, selection
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.gallery import selectable_gallery, tile_of
from pages.parts.components.scatter import Color, scatter
from pages.parts.kit.downloads import Download, share, table_file
from pages.parts.kit.figures import table_behind
from pages.parts.kit.pictures import picture
from pages.parts.labels.few_labels import assigned_now, ends_of, gamma_slider, graph_of_run
from pages.parts.map.shown_map import UNITS, covering_map, distortion
from udml_core.analyses import plan_analysis
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.data.given.labels import LONGEST_CLASS, classes, give, undo
from udml_core.errors import UserError
from udml_core.exploration import label_spread as views
from udml_core.runs import Run, find_run, runs_folder

USUAL_GAMMA = 0.99
SUGGESTED, LISTED, KEYS, MOST_BUTTONS = 5, 60, 10, 40
KEYS_IN_WORDS = "keys 1–9, and 0 for the tenth, give a class"
COLORS = {"class": "the class that its walks end at", "certainty": "how certain that is"}
TRAILS, PROBLEM, SAID = "labels-trails", "labels-problem", "labels-said"


@dataclass(frozen=True)
class Board:
    """What is labeled so far, on the graph of a run's training images (p,).

    given: class by image position. names: every class that was ever given, so that each keeps its number. codes (p,):
    places in `names`, −1 without a label.
    """

    run: Run
    dataset: Dataset
    images: Array
    neighbors: Array
    given: dict[int, str]
    names: tuple[str, ...]
    codes: Array
    gamma: float

    @cached_property
    def classes(self) -> dict[str, int]:
        """The classes of the labels that stand, and the number of each."""
        standing = set(self.given.values())
        return {name: number for number, name in enumerate(self.names, 1) if name in standing}

    @cached_property
    def buttons(self) -> dict[str, int]:
        """Those of the classes that get a button: which have a key, then which the newest labels name."""
        keyed = [name for name, number in self.classes.items() if number <= KEYS]
        drawn = list(dict.fromkeys([*keyed, *reversed(self.given.values())]))[:MOST_BUTTONS]
        return {name: number for name, number in self.classes.items() if name in drawn}

    @cached_property
    def ends(self) -> views.Ends:
        return ends_of(str(self.run.folder), self.codes, len(self.names), self.gamma)

    @cached_property
    def next(self) -> list[views.Suggestion]:
        """The images to label next."""
        skipped = tuple(image for images in trail_of(self.dataset) for image in images)
        return suggested(str(self.run.folder), self.codes, self.gamma, skipped)

    def image(self, suggestion: views.Suggestion) -> int:
        return int(self.images[suggestion.row])


def board_of(run: Run, dataset: Dataset, gamma: float) -> Board:
    images, neighbors = graph_of_run(run)
    given, names = assigned_now(dataset), classes(dataset)
    return Board(run, dataset, images, neighbors, given, names, views.coded(given, names, images), gamma)


def suggested(folder: str, codes: Array, gamma: float, skipped: tuple[int, ...]) -> list[views.Suggestion]:
    """The images to label next, each with those before it taken as labeled: where the first is given a label, all but
    the last are known already."""
    found: list[views.Suggestion] = []
    for _ in range(SUGGESTED):
        labeled = np.append(np.flatnonzero(codes >= 0), [one.row for one in found]).astype(int)
        found += suggested_after(folder, tuple(np.sort(labeled).tolist()), gamma, skipped)
    return found


@st.cache_data(max_entries=256, show_spinner=False)
def suggested_after(folder: str, labeled: tuple[int, ...], gamma: float,
                    skipped: tuple[int, ...]) -> list[views.Suggestion]:
    """The image to label where these rows have a label, if any is left without those (by position) passed over."""
    images, neighbors = graph_of_run(find_run(folder, runs_folder()))
    return views.suggestions(neighbors, np.isin(np.arange(len(images)), labeled), gamma, 1,
                             np.flatnonzero(np.isin(images, skipped)).tolist())


# What buttons and keys do

def trail_of(dataset: Dataset) -> list[list[int]]:
    """What was done in this session: the images that were passed over, or none for a class that was given."""
    trails: dict[str, list[list[int]]] = st.session_state.setdefault(TRAILS, {})
    return trails.setdefault(dataset.fingerprint, [])


@dataclass(frozen=True)
class Asked:
    """What was to be named when the buttons were drawn. revision: of the selection then; whatever asks about other
    images, a name too, changes it."""

    dataset: Dataset
    images: list[int]
    revision: int

    @property
    def stands(self) -> bool:
        """Whether it is to be named still; a key that was pressed again before other images were shown is not theirs.
        """
        return selection(self.dataset).revision == self.revision


def name_them(asked: Asked, name: str) -> None:
    """Give images a class, and ask about the next."""
    if not asked.stands:
        return
    try:
        kept = give(asked.dataset, asked.images, name)
    except UserError as error:
        st.session_state[PROBLEM] = str(error)
        return
    trail_of(asked.dataset).append([])
    ask_about(asked.dataset, [], f"Kept: {len(asked.images):,} as {kept}.")


def name_as_typed(asked: Asked) -> None:
    name_them(asked, st.session_state["labels-typed"])


def take_back(dataset: Dataset) -> None:
    """Undo what was done last, a class or a passing over, and select its images again, so that they can be named."""
    trail = trail_of(dataset)
    try:
        images = (trail[-1] if trail else []) or undo(dataset)
    except UserError as error:
        st.session_state[PROBLEM] = str(error)
        return
    del trail[-1:]
    ask_about(dataset, images, f"Taken back: {len(images):,} to be named again.")


def pass_over(asked: Asked) -> None:
    """Ask about other images."""
    if asked.stands:
        trail_of(asked.dataset).append(asked.images)
        ask_about(asked.dataset, [], f"Passed over: {len(asked.images):,}.")


def ask_about(dataset: Dataset, images: list[int], said: str) -> None:
    """Select what is to be named next, nothing for the suggested image; said: what was done."""
    st.session_state[SAID] = said
    select(dataset.fingerprint, np.array(images, dtype=np.int64))


# What is drawn

def naming(board: Board, held: Selection) -> None:
    """What is to be named, and the classes as buttons with keys."""
    dataset, chosen = board.dataset, held.ids
    images = chosen.tolist() if len(chosen) else [board.image(one) for one in board.next[:1]]
    if not images:
        st.success("Every image of the training half has a label, or was passed over. Select any to name it anew.",
                   icon=":material/check_circle:")
    else:
        what_to_name(board, chosen, images)
    asked = Asked(dataset, images, held.revision)
    own = [dataset.class_names[dataset.labels[one]] for one in images[:1]] if dataset.labels is not None else []
    with st.container(horizontal=True):
        for name, number in board.buttons.items():
            st.button(name, key=f"labels-class-{number}", shortcut=str(number % 10) if number <= KEYS else None,
                      disabled=not images, on_click=name_them, args=(asked, name))
        for name in own:
            if name not in board.buttons:
                st.button(name, key="labels-class-own", on_click=name_them, args=(asked, name),
                          icon=":material/verified:", help="The class that the data set has for it.")
    without = len(board.classes) - len(board.buttons)
    if without:
        st.caption(f"Buttons for {len(board.buttons)} of {len(board.classes)} classes: those with a key, and those "
                   f"given last. Type the name of any of the other {without}.")
    with st.form("labels-form", clear_on_submit=True, border=False), st.container(
            horizontal=True, vertical_alignment="bottom"):
        st.text_input("Another class", key="labels-typed", max_chars=LONGEST_CLASS,
                      placeholder="type a name, press Enter")
        st.form_submit_button("Name it so", icon=":material/new_label:", disabled=not images, on_click=name_as_typed,
                              args=(asked,))
    with st.container(horizontal=True):
        st.button("Undo", icon=":material/undo:", key="labels-undo", shortcut="U",
                  disabled=not (board.given or trail_of(dataset)), on_click=take_back, args=(dataset,))
        st.button("Pass over", icon=":material/skip_next:", key="labels-skip", shortcut="S", disabled=not images,
                  on_click=pass_over, args=(asked,))
    said = st.session_state.get(SAID, "")
    st.caption(said)
    st.html(f'<div role="status" aria-live="polite" style="{UNSEEN}">{html.escape(said)}</div>')
    problem = st.session_state.pop(PROBLEM, "")
    if problem:
        st.error(problem, icon=":material/error:")


def what_to_name(board: Board, chosen: Array, images: list[int]) -> None:
    """The selected images, or the suggested one with the reason."""
    if len(chosen):
        st.markdown(f"**To be named: {len(images):,} selected** · {KEYS_IN_WORDS}, Esc lets go.")
        selectable_gallery(board.dataset, [tile_of(board.dataset, one, badge=board.given.get(one, ""))
                                          for one in images[:LISTED]], "Images to be named", "labels-chosen",
                          selection(board.dataset), 84, 240)
        return
    how = KEYS_IN_WORDS if board.classes else "type its class; from then on keys give it"
    st.markdown(f"**To be named: the suggested one** · {how}.")
    picture(board.dataset.images[images[0]], 140, f"The image that is suggested: {board.dataset.names[images[0]]}")
    st.caption(reason(board.next[0], len(board.images), bool((board.codes >= 0).any())))


def reason(found: views.Suggestion, count: int, labeled: bool) -> str:
    """Why an image is worth a label, in words."""
    until = "before they end or meet a label" if labeled else "before they end"
    so = "It is typical of those that no label reaches yet." if labeled else "It is typical of many."
    return (f"Why this one: of {count:,} walks, one from each image, no other image is come by as often {until}: "
            f"{found.visits:,.0f} times in all, by some walks again and again. {so}")


def spreading(board: Board) -> None:
    """The map, coloured by where walks end; a click selects."""
    shown = covering_map(board.run, board.images)
    if shown is None:
        st.info("This run has no map of its training images yet. With one the labels are seen to spread.",
                icon=":material/lightbulb:")
        request_analysis(board.run, plan_analysis(kind="pca", scope="all", frames=("final",)), "Make a map", "labels-map-new")
        show_analysis_progress(board.run)
        return
    usual = next(iter(COLORS))
    by = st.segmented_control("Colour", list(COLORS), default=choice_from_address("show", COLORS, usual), required=True,
                              format_func=COLORS.__getitem__, key="labels-color") or usual
    write_address("show", by, usual)
    rows = rows_of(board.images, shown.layout.indices)
    values = board.ends.best if by == "class" else 100 * board.ends.certainty
    missing = -1 if by == "class" else np.nan
    names = (board.names or ("no class yet",)) if by == "class" else ()
    color = Color(by, np.where(rows >= 0, values[rows], missing), names, unit="" if by == "class" else " %",
                  none="no label reaches it, or it does not train", low=0, high=100)
    places = rows_of(shown.layout.indices, np.array(list(board.given), dtype=np.int64))
    marks = [{"row": int(row), "word": "", "lines": []} for row in places[places >= 0]]
    ahead = rows_of(shown.layout.indices, np.array([board.image(one) for one in board.next[:1]], dtype=np.int64))
    marks += [{"row": int(row), "word": "next", "lines": []} for row in ahead]
    held = selection(board.dataset)
    picked = scatter(board.dataset, shown.layout, color, held, f"Map coloured by {COLORS[by]}", "labels-map",
                     marks=marks, height=470)
    distortion(shown)
    st.caption(f"Rings are images with a label. Click a point to select it or to let go of it, lasso some with Shift "
               f"and drag. {UNITS}")
    if picked is not None:
        select(board.dataset.fingerprint, np.setxor1d(held.ids, [picked]))
        st.rerun(scope="fragment")


def numbers(board: Board) -> None:
    """How many labels there are, and how far they spread."""
    trained = int((board.codes >= 0).sum())
    found = [("Labels", f"{len(board.given):,}", "Images with a label."),
             ("Classes", f"{len(board.classes):,}", "Names given so far.")]
    if trained:
        found.append(("Reached", f"{100 * (board.ends.best >= 0).mean():.0f} %",
                      "Images of the training half from which a walk can end at a label."))
        found.append(("Certainty", f"{100 * np.nanmean(board.ends.certainty):.0f} %",
                      "Mean share of the walks to labels that end at the most probable class."))
        right = agreement(board)
        if right is not None:
            found.append(("Right", f"{100 * right:.1f} %", "Unlabeled images whose most probable class is the one that "
                          "the data set has for them."))
    with st.container(horizontal=True):
        for label, value, words in found:
            st.metric(label, value, help=words, width="content")
    if trained < len(board.given):
        st.caption(f"{len(board.given) - trained} of the labels are of images outside this run's training half: they "
                   "are kept, and neither spread nor train here.")


def agreement(board: Board) -> float | None:
    """The share of unlabeled images that walks put into their own class; None where the data set has none."""
    if board.dataset.labels is None:
        return None
    return views.agreement(board.ends, board.codes, board.names, board.dataset.labels[board.images],
                         board.dataset.class_names)


def next_ones(board: Board) -> None:
    """The suggested images."""
    st.subheader("Which to label next")
    st.caption("Walks that meet no label come by these most often, each next one with those before it taken as "
               "labeled, so that they lie apart; the badge counts how often. Click to select.")
    tiles = [tile_of(board.dataset, board.image(one), badge=f"{number}. {one.visits:,.0f}")
             for number, one in enumerate(board.next, 1)]
    selectable_gallery(board.dataset, tiles, "Images to label next", "labels-next", selection(board.dataset), 96, 160)


def given_so_far(board: Board) -> None:
    """The labels by class."""
    st.subheader("Given so far")
    if not board.given:
        st.caption("Nothing yet. Name the suggested image, or select images on the map and name them together.")
        return
    numbered = list(board.classes.items())
    for start in range(0, len(numbered), 3):
        for column, (name, number) in zip(st.columns(3), numbered[start : start + 3], strict=False):
            images = [image for image, label in board.given.items() if label == name]
            with column:
                st.markdown(f"**{number}. {name}** · {len(images):,}")
                selectable_gallery(board.dataset, [tile_of(board.dataset, one) for one in images[:LISTED]],
                                  f"Images of the class {name}", f"labels-given-{number}", selection(board.dataset), 60,
                                  150)
    sizes = pd.Series(list(board.given.values())).value_counts(sort=False)
    table_behind("The labels as a table", pd.DataFrame({"Class": sizes.index, "Labels": sizes.to_numpy()}))


def go_on(board: Board) -> None:
    """To training, and to a file."""
    spec = board.run.spec()
    with st.container(horizontal=True, vertical_alignment="center"):
        if board.given:
            st.page_link("pages/train.py", label=f"Train SSDML with these {len(board.given):,} labels",
                         icon=":material/model_training:", query_params={
                             "dataset": spec.dataset, "method": "ssdml", "labels": "given",
                             "backbone": spec.encoder.backbone, "split": spec.split})
        images = np.array(list(board.given), dtype=np.int64)
        share([Download("Labels as a table", "labels.csv", "text/csv", lambda: table_file(
            board.dataset, images, {"given": np.array(list(board.given.values()), dtype=object)}))], "labels")


@st.fragment
@show_user_errors()
def explore(run_id: str) -> None:
    """Everything that follows a label or the slider."""
    run = find_run(run_id, runs_folder())
    dataset = dataset_of(run)
    gamma = gamma_slider(USUAL_GAMMA, "labels-gamma", "SSDML's default")
    board = board_of(run, dataset, gamma)
    numbers(board)
    left, right = st.columns([2, 3], gap="medium")
    with left:
        naming(board, selection(dataset))
    with right:
        spreading(board)
    next_ones(board)
    given_so_far(board)
    go_on(board)


st.title("Labels")
st.markdown("Name a few images. What you say spreads along the neighbor graph of an embedding, and methods for few "
            "labels can train on it. Every label is kept at once; **U** takes back what was done last.")
with show_user_errors():
    chosen = pick_run("Run whose embedding the labels spread in")
    if chosen is not None:
        explore(chosen.id)
