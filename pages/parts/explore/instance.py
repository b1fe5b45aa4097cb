"""The strongest competitors of the current image in instance discrimination."""

from __future__ import annotations

import streamlit as st

from udml_core.base.declaration import describe_field
from udml_core.exploration.instances import softmax
from udml_core.methods.pslr import PSLR
from udml_core.methods.shared.instance import InstanceMethod
from udml_core.numerics.explanations import LatentLayer, Uncertainty
from udml_core.runs.search import TRAINED, frame_words

from ..draw.palette import percent
from ..instances.chosen import other_images
from ..maps.uncertainty import noise
from ..shell.epochs import has_record
from ..shell.run_status import hyperparameters
from .workbench import DeepLink, Workbench, explain, link

MOST = 10


def discriminates_instances(bench: Workbench) -> bool:
    """Return whether the run was trained to distinguish every image from all others."""
    return isinstance(bench.run.spec().build_method(), InstanceMethod)


def show_instance(bench: Workbench) -> DeepLink:
    """Show the images with the largest shares of the softmax before and after training."""
    fields = hyperparameters(bench.run)
    temperature = float(fields.get("temperature", describe_field(PSLR, "temperature").default))
    explain("Every image is a class of its own; images with a large share compete with it most.",
            "The share of image j is e^(cos(i, j)/τ) divided by the sum over all other images of the half. The number "
            "of effective competitors is e to the entropy of the shares.")
    latent = has_record(bench.run, LatentLayer)
    for which in TRAINED:
        words = frame_words(which)
        others = other_images(bench.run, bench.focus, which, latent, 0, 0)
        # Without the image's other view only the shares among the competitors have a meaning.
        shares = softmax(others.cosines, -1.0, temperature, 1.0)
        rival = shares.shares / max(1 - shares.own, 1e-12)
        st.markdown(f"**{words.capitalize()}** · {shares.competitors:,.1f} effective competitors of "
                    f"{len(others.indices):,}")
        tiles = [bench.tile(int(index), percent(100 * share)) for index, share
                 in zip(others.indices[:MOST], rival[:MOST].tolist(), strict=False)]
        bench.tiles(tiles, f"Strongest competitors {words}", f"instance-{which}")
    _show_noise(bench)
    st.caption(f"The badge is the share, τ = {temperature:g}. Images of the same class compete as well, because the "
               "loss does not know the classes.")
    return link("instances", bench, picked=bench.focus)


def _show_noise(bench: Workbench) -> None:
    """Show σ of the current image, if the run learned σ and the image is in the training half."""
    if not has_record(bench.run, Uncertainty) or bench.focus not in bench.split.train:
        return
    sigma = noise(bench.run, bench.run.kept_epoch())
    if sigma is not None:
        own = float(sigma[bench.split.train == bench.focus][0])
        st.markdown(f"Uncertainty **σ = {own:.4g}**, lower than that of {percent(100 * float((sigma > own).mean()))} "
                    "of the training images.")
