"""The noise σ that a method has learnt for each training image: as a colour, and the images at both ends."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.parts.base.address import number_from_address, write_address
from pages.parts.base.epochs import epochs_with, load_record
from pages.parts.base.run_status import hyperparameters
from pages.parts.components.gallery import clicked_tile, gallery, tile_of
from pages.parts.components.scatter import Color
from pages.parts.components.slider import live_slider
from udml_core.data.dataset import Dataset
from udml_core.explanations import Uncertainty
from udml_core.exploration.instances import most_certain
from udml_core.runs import Run

ENDS = 24
LABEL = "uncertainty"


def noise(run: Run, epoch: int) -> np.ndarray | None:
    """σ (n,) of the training images after an epoch; None where it was not kept, as before training."""
    record = load_record(run, epoch, Uncertainty)
    return None if record is None else np.asarray(record.sigma)


def noise_epoch(run: Run) -> int:
    """The epoch whose σ is shown where a map does not stand at one; in the address, the kept one at first."""
    epochs = epochs_with(run, Uncertainty)
    wanted = int(number_from_address("sigma", run.kept_epoch()))
    return wanted if wanted in epochs else epochs[-1]


def noise_slider(run: Run) -> None:
    """The cursor through the epochs that kept σ."""
    epochs = epochs_with(run, Uncertainty)
    if len(epochs) > 1:
        epoch = round(live_slider("σ after epoch", epochs[0], epochs[-1], noise_epoch(run), 1, f"sigma-{run.id}",
                                  play=True))
        write_address("sigma", str(epoch), str(run.kept_epoch()))


def certain_and_uncertain(run: Run, dataset: Dataset, indices: np.ndarray, color: Color) -> int | None:
    """The images of a map at both ends of its σ; the one that was just picked."""
    known = np.flatnonzero(np.isfinite(color.values))
    if not len(known):
        st.info("σ is kept of the images that trained, after every epoch, and this map shows none of them at such a "
                "moment. Choose or compute a map of all images or of the training half.", icon=":material/lightbulb:")
        return None
    sigma, positions = color.values[known], indices[known]
    st.subheader("Most and least certain")
    fields = hyperparameters(run)
    blurred = "latent point z" if fields.get("latent", True) else "embedding x, as the run has no latent z,"
    mixed = " Training mixes an image with its neighbors before; here it is alone." if (
        fields.get("graph") == "neighbors") else ""
    st.caption(f"σ is how far an image's {blurred} is blurred, on average over the dimensions, while its length is 1."
               f"{mixed} It runs from {sigma.min():.4g} to {sigma.max():.4g} here, median {np.median(sigma):.4g}; it "
               "starts at 0.05 for all. Where the two ends are close, σ tells little of single images.")
    clicks = []
    for column, word, rows in zip(st.columns(2), ("Most certain", "Least certain"), most_certain(sigma, ENDS),
                                  strict=True):
        with column:
            st.markdown(f"**{word}**")
            tiles = [tile_of(dataset, int(positions[row]), badge=f"{sigma[row]:.4g}") for row in rows]
            clicks.append(gallery(dataset, tiles, f"{word} images", f"{LABEL}-{word.split()[0].lower()}", 72,
                                  height=260))
    return clicked_tile(clicks)
