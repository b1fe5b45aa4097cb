"""Does the bound on the angle act in this run, or is the result PCA?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.exploration import triplets as views
from udml_core.methods import Embedder, Head
from udml_core.numerics.explanations import Triplets
from udml_core.runs import Run

from ..shell.cached import dataset_of, load_split
from ..shell.epochs import load_record
from ..shell.run_hash import RUN_HASH
from .stored import StoredTriplets


def show_regime(stored: StoredTriplets, epoch: int) -> None:
    """Say how many triplets violate the run's own α before and after training, and compare the result with PCA.

    Nothing is shown for methods without α, and for runs that trained the encoder.
    """
    method = stored.run.spec().build_method()
    alpha = getattr(method, "alpha", None)
    regime = None if alpha is None else _regime(stored.run, epoch, float(alpha))
    if regime is None:
        return
    text = (f"At this run's α = {alpha:g}°, {100 * regime.before:.1f} % of these triplets violate the bound before "
            f"training and {100 * regime.after:.1f} % after training. The learned subspace keeps "
            f"{100 * regime.variance:.1f} % of the variance that PCA of the same dimension keeps; the overlap of the "
            f"two subspaces is {regime.overlap:.2f} (1 for the same subspace).")
    if getattr(method, "mining", "random") == "violating":
        text += (" The run chose these triplets by mining: triplets that violated the bound when the epoch began come "
                 "first, so the shares do not hold for random triplets.")
    if regime.is_pca:
        text += (" **The bound is inactive**, and the loss falls only through more variance, so the result is close "
                 "to PCA.")
    st.markdown(text)


@st.cache_data(max_entries=8, show_spinner="Comparing with PCA …", hash_funcs=RUN_HASH)
def _regime(run: Run, epoch: int, alpha: float) -> views.Regime | None:
    """Return the comparison; None if a projection or the features are missing."""
    first, learned = (_projection(path) for path in (run.initial_embedder_path, run.embedder_path))
    record = load_record(run, epoch, Triplets)
    rows = views.stored_rows(dataset_of(run), run.spec().encoder, load_split(run).train)
    if first is None or learned is None or rows is None or record is None:
        return None
    triplets = np.stack([record.anchor, record.positive, record.negative])
    return views.regime(rows, triplets, first, learned, alpha)


def _projection(path: Path) -> Array | None:
    """Return the projection (d, l) of a stored embedder.

    None stands for a trained encoder and for a head that is not linear.
    """
    embedder = Embedder.load(path)
    if embedder.trained or not isinstance(embedder.head, Head) or embedder.head.weight is None:
        return None
    return embedder.head.weight.numpy()
