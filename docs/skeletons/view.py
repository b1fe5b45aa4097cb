"""Counts: the training images of each class, as an example of a view."""

import numpy as np
import streamlit as st

from pages.parts.draw.figures import bars
from pages.parts.draw.run_header import run_header
from pages.parts.shell.cached import dataset_of, load_split
from pages.parts.shell.run_picker import pick_run
from pages.parts.shell.user_errors import show_user_errors
from udml_core.runs import Run


def show_counts(run: Run) -> None:
    """Show the number of training images of each class."""
    dataset = dataset_of(run)
    if dataset.labels is None:
        st.info("This data set has no classes.", icon=":material/lightbulb:")
        return
    counts = np.bincount(dataset.labels[load_split(run).train], minlength=len(dataset.class_names))
    bars(dataset.class_names, counts.tolist(), "Training images of each class", "counts-bars")


def draw() -> None:
    """Draw the view."""
    with show_user_errors():
        run = pick_run()
        if run is not None:
            run_header(run)
            show_counts(run)
