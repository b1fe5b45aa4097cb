"""Duplicates on the page Data: groups with the copy to keep, and pairs at the border for a decision."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import streamlit as st

from udml_core.base.arrays import Floats, Integers
from udml_core.base.errors import byte_words, counted
from udml_core.data.dataset import Dataset
from udml_core.data.given.duplicate_decisions import decide, prefer
from udml_core.data.given.exclusions import exclude
from udml_core.data.image_facts import ImageFacts
from udml_core.exploration.duplicates import Groups, all_but_first

from ..draw.gallery import gallery, pair_gallery, shade, tile_of
from ..draw.two_images import Answering, answer_buttons, two_images
from ..shell.selection import PARAMETER, select, selection
from .excluding import (
    MOST_TILES,
    NONE,
    ShownImages,
    can_undo_any,
    change_list,
    choose,
    list_buttons,
    offer_button,
    select_images,
    undo_last,
)

SKIPPED = "audit-skipped"
SIDE = 168
"""Width of a tile, whose caption has the size and the date of a file."""


def show_groups(dataset: Dataset, groups: Groups, facts: ImageFacts | None, words: str, finding: str) -> None:
    """Show groups of duplicates: a click chooses the copy to keep, and a button excludes the others.

    Args:
        dataset: The data set.
        groups: The groups, in each of which the copy to keep comes first.
        facts: Facts about the images; None if they are not known.
        words: What a group is, after "Each".
        finding: The finding, for the keys of widgets.
    """
    others = all_but_first(groups)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        offer_button(dataset, f"Exclude all but the kept copies ({len(others):,})", others,
                     "Leaves one image of each group to later runs; no file is changed.", is_primary=True)
        selects = st.toggle("Select images", key="audit-selects", help="A click then selects images, to exclude some, "
                                                                       "or to keep several at once.")
        if selects or PARAMETER in st.query_params:
            _selection_buttons(dataset, groups)
        list_buttons(dataset)
    images = np.concatenate(groups)
    badges, mixed = group_badges(dataset, groups, facts)
    classes = f" ✕ marks {mixed} with several classes: look for wrong labels there." if mixed else ""
    rule = "the most pixels, then the most bytes, the sharpest, the oldest" if facts else "the first"
    caption = f"Each {words}. ✓ marks the copy that is kept: {rule}, until you choose another.{classes}"
    if selects:
        select_images(dataset, ShownImages(images, badges, caption), "Groups of duplicates", f"audit-{finding}")
        return
    kept = {int(group[0]) for group in groups}
    shaded = {int(index) for group in groups[1::2] for index in group}
    tiles = [tile_of(dataset, int(index), "keep" if int(index) in kept else "", badge)
             for index, badge in zip(images[:MOST_TILES], badges, strict=False)]
    more = "" if len(images) <= MOST_TILES else f" The first {MOST_TILES} of {len(images):,} are shown."
    gallery(dataset, shade(tiles, shaded), "Groups of duplicates", f"audit-{finding}-keep", SIDE, height=600,
            on_pick=lambda index: choose(dataset, lambda: prefer(dataset, [index])))
    st.caption(f"{caption}{more} Click an image to keep it.")


def group_badges(dataset: Dataset, groups: Groups, facts: ImageFacts | None) -> tuple[list[str], int]:
    """Return the caption of each image of groups, in their order, and the number of groups with several classes."""
    badges, mixed = [], 0
    for number, group in enumerate(groups, 1):
        is_mixed = dataset.labels is not None and len(set(dataset.labels[group])) > 1
        mixed += is_mixed
        for index in group.tolist():
            name = dataset.names[index].rsplit("/", 1)[-1]
            badges.append("\n".join([f"copies {number}{' ✕' * is_mixed}", name, *fact_lines(facts, index)]))
    return badges, mixed


def fact_lines(facts: ImageFacts | None, index: int) -> list[str]:
    """Return the size and the date of an image's file as lines of a caption."""
    if facts is None:
        return []
    size = f"{facts.width[index]} × {facts.height[index]}"
    if not facts.bytes[index]:
        return [size]
    date = time.strftime("%Y-%m-%d", time.localtime(int(facts.time[index])))
    return [f"{size} · {byte_words(int(facts.bytes[index]))}", date]


def _selection_buttons(dataset: Dataset, groups: Groups) -> None:
    """Show what can be done with the selected images of groups."""
    chosen = selection(dataset).ids
    inside = [group[np.isin(group, chosen)] for group in groups]
    pairs = [np.array([(left, right) for left in part for right in group if left != right]).reshape(-1, 2)
             for part, group in zip(inside, groups, strict=True) if len(part)]
    st.button(f"Exclude selected ({len(chosen):,})", icon=":material/block:", key="audit-exclude", shortcut="X",
              disabled=not len(chosen), on_click=change_list, args=(dataset, exclude, chosen))
    st.button("Keep selected", icon=":material/check:", key="audit-keep", shortcut="K", disabled=not pairs,
              on_click=_clear_and_act, args=(dataset, lambda: prefer(dataset, np.concatenate(inside).tolist())),
              help="Keeps these images in place of the others of their groups.")
    st.button("Not duplicates", icon=":material/close:", key="audit-different", shortcut="D", disabled=not pairs,
              on_click=_clear_and_act, args=(dataset, lambda: decide(dataset, np.concatenate(pairs), same=False)),
              help="Takes these images out of their groups; images of equal content stay together.")


def show_border(dataset: Dataset, pairs: Integers, values: Floats, least: float) -> None:
    """Show the pairs at the border of duplicates, the first of them large, and ask whether they are the same.

    Args:
        dataset: The data set.
        pairs: Undecided pairs (p, 2), the closest to the border first.
        values: Their agreements (p,).
        least: The least agreement of duplicates.
    """
    left = [row for row in range(len(pairs)) if _key(pairs[row]) not in st.session_state.get(SKIPPED, set())]
    if not left:
        st.success(f"No pair to decide: none is close to the least agreement of {least:.2f}, or you have decided or "
                   "skipped all of them.", icon=":material/check_circle:")
        answer_buttons("audit-pair", None, partial(undo_last, dataset), can_undo_any(dataset))
        return
    pair = pairs[left[0]]
    st.markdown(f"**Are both copies of one image?** Agreement {values[left[0]]:.2f}; pairs above {least:.2f} count as "
                f"the same until you decide. {counted(len(left), 'pair')} to decide.")
    two_images(dataset, (int(pair[0]), int(pair[1])), with_names=True)
    answer_buttons("audit-pair", Answering(
        _key(pair), lambda same: choose(dataset, lambda: decide(dataset, pair[None], same)), lambda: _skip(pair), "K"),
        partial(undo_last, dataset), can_undo_any(dataset))
    rest = pairs[left]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for word, same in (("the same", True), ("different", False)):
            st.button(f"All {len(rest):,} are {word}", key=f"audit-all-{word}", on_click=choose,
                      args=(dataset, lambda same=same: decide(dataset, rest, same)),
                      help="Decides all pairs that are shown below in one step, which Undo reverts.")
    pair_gallery(dataset, rest, values[left] >= least, [f"{value:.2f}" for value in values[left]],
                 "Pairs to decide", "audit-border", height=420)
    st.caption("Number: how well the details of both images agree, 1 in the same picture. = marks pairs that count as "
               "the same until you decide.")


def _clear_and_act(dataset: Dataset, change: Callable[[], object]) -> None:
    choose(dataset, change)
    select(dataset.fingerprint, NONE)


def _skip(pair: Integers) -> None:
    st.session_state[SKIPPED] = st.session_state.get(SKIPPED, set()) | {_key(pair)}


def _key(pair: Integers) -> tuple[int, int]:
    return int(pair[0]), int(pair[1])
