"""The noise σ that a method learns for each training image.

σ colors the map, and galleries show the images with the least and the most noise.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.exploration.instances import uncertainty_extremes
from udml_core.exploration.map_content import Color
from udml_core.numerics.explanations import Uncertainty
from udml_core.runs import Run

from ..draw.gallery import clicked_tile, gallery, tile_of
from ..draw.slider import live_slider
from ..shell.address import number_from_address, write_address
from ..shell.epochs import epochs_with, load_record
from ..shell.run_status import hyperparameters

ENDS = 24
LABEL = "uncertainty"


def noise(run: Run, epoch: int) -> Array | None:
    """Return σ (n,) of the training images after an epoch.

    Returns:
        σ; None for epochs without σ, such as before training.
    """
    record = load_record(run, epoch, Uncertainty)
    return None if record is None else np.asarray(record.sigma)


def noise_epoch(run: Run) -> int:
    """Return the epoch whose σ a map without an epoch shows.

    Returns:
        The epoch in the address, by default the kept epoch.
    """
    epochs = epochs_with(run, Uncertainty)
    wanted = int(number_from_address("sigma", run.kept_epoch()))
    return wanted if wanted in epochs else epochs[-1]


def noise_slider(run: Run) -> None:
    """Show the slider through the epochs that have σ."""
    epochs = epochs_with(run, Uncertainty)
    if len(epochs) > 1:
        epoch = round(live_slider("σ after epoch", epochs[0], epochs[-1], noise_epoch(run), 1, f"sigma-{run.id}",
                                  play=True))
        write_address("sigma", str(epoch), str(run.kept_epoch()))


def certain_and_uncertain(run: Run, dataset: Dataset, indices: Array, color: Color) -> int | None:
    """Show the images of a map with the smallest and the largest σ.

    Args:
        run: The run.
        dataset: Its data set.
        indices: Data set indices of the map's images, (m,).
        color: The map's colors by σ.

    Returns:
        The data set index of the image that was clicked just now, or None.
    """
    rows = np.flatnonzero(np.isfinite(color.values))
    if not len(rows):
        st.info("σ is stored for training images after every epoch, and this map shows no such image. Choose or "
                "compute a map of all images or of the training half.", icon=":material/lightbulb:")
        return None
    sigma, ids = color.values[rows], indices[rows]
    st.subheader("Most and least certain images")
    fields = hyperparameters(run)
    noisy = "latent point z" if fields.get("latent", True) else "embedding x, as the run has no latent z"
    mixing = ("Training mixes an image with its neighbors before it adds noise; here each image is embedded alone. "
              if fields.get("graph") == "neighbors" else "")
    st.caption(f"σ is the standard deviation of the noise on an image's unit-length {noisy}, averaged over the "
               f"dimensions. {mixing}All σ start at {np.exp(fields.get('first_log_sigma', 0.0)):.2g}; here they range "
               f"from {sigma.min():.4g} to {sigma.max():.4g} with median {np.median(sigma):.4g}. If smallest and "
               "largest are close, σ hardly distinguishes images.")
    clicks = []
    for column, title, ends in zip(st.columns(2), ("Most certain", "Least certain"), uncertainty_extremes(sigma, ENDS),
                                   strict=True):
        with column:
            st.markdown(f"**{title}**")
            tiles = [tile_of(dataset, int(ids[row]), badge=f"{sigma[row]:.4g}") for row in ends]
            clicks.append(gallery(dataset, tiles, f"{title} images", f"{LABEL}-{title.split()[0].lower()}", 72,
                                  height=260))
    return clicked_tile(clicks)
