"""The classes and splits of a data set, and its skipped files."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from udml_core.base.errors import UserError, counted
from udml_core.data.dataset import Dataset, skipped_words
from udml_core.data.given.exclusions import excluded_images
from udml_core.data.splits import SPLITS, caution_of, default_split, make_split, words_of_halves, words_of_split

from ..draw.figures import bars
from ..draw.tables import plain_table, table_behind, wrapped_table
from ..shell.run_status import escaped
from ..shell.user_errors import show_user_errors
from .importing import open_import

MOST_BARS = 30
MOST_SKIPPED = 200
SPLIT_WORDS = {"zero-shot": "The classes are divided: a run is tested on classes that it never saw. The papers use "
                            "this split.",
               "seen": "The images are divided: by the given halves, or else a fifth of each class is for testing.",
               "all": "The images are not divided: a run trains and is evaluated on all images, for images without "
                      "labels."}


def show_classes_and_splits(dataset: Dataset) -> None:
    """Show the size of each class and of both halves in each split."""
    rows = []
    for name in SPLITS:
        try:
            split = make_split(dataset, name)
        except UserError:
            continue
        rows.append({"Split": name, "Training half": len(split.train), "Test half": len(split.test),
                     "Meaning": SPLIT_WORDS[name]})
    st.caption("A run trains on the training half and is measured on the test half, which may be smaller. Each split "
               "divides the data set in another way.")
    plain_table(pd.DataFrame(rows))
    if words := words_of_split(dataset, default_split(dataset)):
        st.caption(words)
    if dataset.evaluation_classes is not None:
        st.info(f"{escaped(dataset.title)} {escaped(dataset.without_labels)}. Methods train without labels.",
                icon=":material/label_off:")
    elif dataset.labels is None:
        st.info("These images have no classes. Methods without supervision need none; the evaluation then measures how "
                "well neighborhoods are preserved, not the share of hits.", icon=":material/label_off:")
        return
    sizes = [int(size) for size in dataset.class_sizes]
    if len(sizes) <= MOST_BARS:
        bars(dataset.class_names, sizes, "Images per class", "data-classes")
    else:
        st.write(f"{len(sizes)} classes with {min(sizes):,} to {max(sizes):,} images each.")
    table_behind("Images per class as a table", pd.DataFrame({"Class": dataset.class_names, "Images": sizes}))


@st.cache_data(max_entries=16, show_spinner=False)
def _caution(_dataset: Dataset, fingerprint: str) -> str:  # noqa: ARG001 (it identifies the data set)
    return caution_of(_dataset, make_split(_dataset, default_split(_dataset)))


def show_caution(dataset: Dataset) -> None:
    """Warn of test images that are alone in their class."""
    if caution := _caution(dataset, dataset.fingerprint):
        st.caption(f":material/warning: {caution}")


def _offer_classes(dataset: Dataset) -> None:
    """Offer the columns of the table that can be the classes; nothing if there is none."""
    sizes = dataset.class_columns
    if not sizes:
        return
    with st.popover("Choose classes", icon=":material/label:"):
        column = st.selectbox("Column of the classes", list(sizes), key="data-class-column",
                              format_func=lambda name: f"{name} ({sizes[name]:,} values)")
        if st.button("Use as classes", icon=":material/check:", key="data-use-classes", type="primary"):
            with show_user_errors():
                open_import(dataset.with_classes_from(column))


def show_overview(dataset: Dataset) -> None:
    """Show the numbers of images and classes, and the skipped files, in the row of the caller."""
    classes = counted(len(dataset.class_names), "class") if dataset.class_names else "no classes"
    size = f"usually {dataset.native_size} px" if dataset.vectors is None else (
        f"{dataset.vectors.shape[1]:,} numbers for each image")
    excluded = len(excluded_images(dataset))
    count = f"**{counted(len(dataset) - excluded, 'image')}**" + (f" · {excluded:,} excluded" if excluded else "")
    halves = f" · halves given: {words_of_halves(dataset)}" if dataset.divides_own_images else ""
    st.markdown(f"{count} · {classes}{halves} · {size}", width="content",
                help=None if dataset.vectors is not None else "Pixels of the shorter side. Gray images of at most 16 "
                     "pixels are drawn as smooth strokes; methods see their pixels.")
    _offer_classes(dataset)
    if words := skipped_words(len(dataset), dataset.skipped):
        with st.popover(escaped(words), icon=":material/warning:"):
            show_skipped(dataset, "skipped")


def show_skipped(dataset: Dataset, key: str) -> None:
    """Show the files that could not be read, and the whole reason of each.

    Args:
        dataset: The data set.
        key: The widget's key.
    """
    rows = [(escaped(skipped.file), escaped(skipped.reason)) for skipped in dataset.skipped[:MOST_SKIPPED]]
    wrapped_table(pd.DataFrame(rows, columns=["File", "Reason"]).set_index("File"), key)
    if len(dataset.skipped) > MOST_SKIPPED:
        st.caption(f"The first {MOST_SKIPPED} of {len(dataset.skipped):,} files are shown; `udml audit --json` lists "
                   "all of them.")
