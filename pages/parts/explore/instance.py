"""The strongest competitors of the current image in instance discrimination."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.base.declaration import describe_field
from udml_core.exploration.instances import softmax
from udml_core.methods.pslr import PSLR
from udml_core.methods.shared.instance import InstanceMethod
from udml_core.numerics.explanations import LatentLayer, Uncertainty
from udml_core.runs import Run
from udml_core.runs.search import TRAINED, Which, frame_words, trained_name

from ..draw.gallery import mark_of
from ..draw.palette import BEFORE, HIT, MISS, percent
from ..draw.slider import field_slider
from ..instances.chosen import other_images
from ..maps.scatter import Ring
from ..maps.uncertainty import noise
from ..shell.epochs import has_record
from ..shell.run_status import hyperparameters
from .workbench import DeepLink, Workbench, explain, in_address, link

MOST, MARKED = 10, 40
"""Most competitors shown as images, and marked on the map."""
LEAST, WIDEST = 3.0, 40.0
"""Pixels of the radius of a ring without a share, and what the whole softmax adds to it."""


def discriminates_instances(bench: Workbench) -> bool:
    """Return whether the run was trained to distinguish every image from all others."""
    return isinstance(bench.run.spec().build_method(), InstanceMethod)


def pick_temperature(run: Run) -> float:
    """Show the slider of τ, at first the run's τ; the address holds its value."""
    return field_slider(describe_field(PSLR, "temperature"), "explore-temperature", _temperature(run),
                        "lower compares with the nearest images only", play=True)


def _temperature(run: Run) -> float:
    return float(hyperparameters(run).get("temperature", describe_field(PSLR, "temperature").default))


def _competitors(bench: Workbench, which: Which, temperature: float) -> tuple[Array, Array, float]:
    """Return the other images, their shares of the softmax, and the number of effective competitors.

    Without the image's other view only the shares among the competitors have a meaning.
    """
    others = other_images(bench.run, bench.focus, which, has_record(bench.run, LatentLayer), 0, 0)
    shares = softmax(others.cosines, -1.0, temperature, 1.0)
    return others.indices, shares.shares / max(1 - shares.own, 1e-12), shares.competitors


def competitor_marks(bench: Workbench, temperature: float) -> list[Ring]:
    """Return rings around the strongest competitors; the area of a ring grows with its share of the softmax."""
    which: Which = "initial" if trained_name(bench.run, bench.frame) == "initial" else "final"
    indices, shares, _ = _competitors(bench, which, temperature)
    colors = {"hit": HIT, "miss": MISS, "": BEFORE}
    rings = [Ring(index, "", (), colors[mark_of(bench.dataset, index, bench.focus)],
                  LEAST + WIDEST * float(np.sqrt(share)))
             for index, share in zip(indices[:MARKED].tolist(), shares[:MARKED].tolist(), strict=True)]
    return [*reversed(rings), Ring(bench.focus, "current")]


def show_instance(bench: Workbench) -> DeepLink:
    """Show the images with the largest shares of the softmax before and after training."""
    temperature = bench.temperature or _temperature(bench.run)
    explain("Every image is a class of its own; images with a large share compete with it most.",
            r"The share of image $j$ is $e^{\cos(i, j)/\tau}$ divided by the sum over all other images of the half. "
            "The number of effective competitors is e to the entropy of the shares.")
    for which in TRAINED:
        words = frame_words(which)
        indices, shares, competitors = _competitors(bench, which, temperature)
        st.markdown(f"**{words.capitalize()}** · {competitors:,.1f} effective competitors of {len(indices):,}")
        tiles = [bench.tile(int(index), percent(100 * share)) for index, share
                 in zip(indices[:MOST], shares[:MOST].tolist(), strict=False)]
        bench.tiles(tiles, f"Strongest competitors {words}", f"instance-{which}")
    _show_noise(bench)
    st.caption(f"The badge and the size of an image's ring on the map are its share, τ = {temperature:g}. Images of "
               "the same class compete as well, because the loss does not know the classes.")
    return link("instances", bench, picked=bench.focus, **in_address("temperature"))


def _show_noise(bench: Workbench) -> None:
    """Show σ of the current image, if the run learned σ and the image is in the training half."""
    if not has_record(bench.run, Uncertainty) or bench.focus not in bench.split.train:
        return
    sigma = noise(bench.run, bench.run.kept_epoch())
    if sigma is not None:
        own = float(sigma[bench.split.train == bench.focus][0])
        st.markdown(f"Uncertainty **σ = {own:.4g}**, lower than that of {percent(100 * float((sigma > own).mean()))} "
                    "of the training images.")
