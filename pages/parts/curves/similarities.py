"""Cosines of images to positives and negatives, by epoch, on both halves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.data.splits import fixed_sample
from udml_core.exploration import instances as views
from udml_core.exploration.instances import NEAREST, Similarities
from udml_core.numerics.explanations import LatentLayer
from udml_core.runs import Run

from ..draw.figures import COLORS, GRAY, draw, titled
from ..draw.slider import pick_epoch_cursor
from ..draw.tables import table_behind
from ..shell.cached import dataset_of, load_split
from ..shell.epochs import epoch_at, load_record
from ..shell.run_hash import RUN_HASH
from ..shell.run_status import escaped, run_title
from ..shell.user_errors import fragment

Half = Literal["training half", "test half", "all images"]
MOST_IMAGES = 1000
"""Images of each half that are compared with each other."""
FILLS = ("rgba(0,114,178,0.25)", "rgba(213,94,0,0.25)")


def halves(run: Run) -> tuple[Half, ...]:
    """Return the halves whose embeddings a run keeps for every epoch."""
    if run.spec().split == "all":
        return ("all images",)
    has_trained = run.epoch_trained(run.epoch_numbers()[0]) is not None
    return ("training half", "test half") if has_trained else ("test half",)


@st.cache_data(max_entries=512, show_spinner=False, hash_funcs=RUN_HASH)
def _similarities(run: Run, epoch: int, half: Half, latent: bool) -> Similarities | None:
    """Return the similarities of the embedding x, or of the latent z, after an epoch.

    Returns:
        The similarities; None if the latent z is requested and the epoch keeps no latent layer.
    """
    images, embedding = _sample(run, epoch, half)
    labels = dataset_of(run).labels
    positives = views.same_class(labels[images]) if labels is not None else (
        views.nearest_mask(_sample(run, run.epoch_numbers()[0], half)[1]))
    if latent:
        layer = load_record(run, epoch, LatentLayer)
        if layer is None:
            return None
        embedding = views.latent_rows(embedding, layer.weight)
    return views.pair_similarities(embedding, positives)


def _sample(run: Run, epoch: int, half: Half) -> tuple[Array, Array]:
    """Return the indices of some images of a half, and their embedding after an epoch."""
    if half == "training half":
        trained = run.epoch_trained(epoch)
        assert trained is not None
        return fixed_sample(load_split(run).train, len(trained)), trained
    sample = run.sample_indices()
    rows = np.linspace(0, len(sample) - 1, min(MOST_IMAGES, len(sample))).astype(int)
    return sample[rows], run.epoch_sample(epoch)[rows]


def similarity_pictures(run: Run, epoch: int, key: str) -> None:
    """Show the similarities of x and z after an epoch and before training by half."""
    numbers, shown = run.epoch_numbers(), halves(run)
    first, last = numbers[0], numbers[-1]
    table: dict[str, pd.Series] = {}
    for latent in (False, True):
        by_half = {half: [_similarities(run, number, half, latent) for number in (epoch, first, last)]
                   for half in shown}
        known = [epoch_values for of_half in by_half.values() for epoch_values in of_half if epoch_values is not None]
        if not known:
            continue
        edges = views.common_edges(known)  # All epochs share the axis, so that it stays as the cursor moves.
        for column, (half, (now, start, _)) in zip(st.columns(len(shown)), by_half.items(), strict=True):
            if now is None or start is None:
                continue
            name = f"{half.capitalize()}, z" if latent else half.capitalize() + (", x" if _has_latent(run) else "")
            with column:
                if not (len(now.positive) and len(now.negative)):
                    missing = "another image of its class" if len(now.negative) else "an image of another class"
                    st.info(f"{name}: no image here has {missing} to compare with.", icon=":material/lightbulb:")
                    continue
                _picture(now, start, edges, name, f"{key}-{half}-{latent}", dataset_of(run).labels is not None)
            for word, values in zip(("positives", "negatives"), now.shares(edges), strict=True):
                table[f"{name}: {word}, %"] = pd.Series(values.round(1), index=edges[:-1].round(3))
    if table:
        table_behind("Similarities as a table", pd.DataFrame(table).rename_axis("From cosine").reset_index())


def _has_latent(run: Run) -> bool:
    return load_record(run, run.epoch_numbers()[0], LatentLayer) is not None


def _picture(now: Similarities, start: Similarities, edges: Array, name: str, key: str,
             has_classes: bool) -> None:
    middles = (edges[:-1] + edges[1:]) / 2
    figure = go.Figure()
    for word, before, after, color, fill, dash in zip(("positives", "negatives"), start.shares(edges),
                                                      now.shares(edges), COLORS, FILLS, ("solid", "dash"),
                                                      strict=False):
        figure.add_scatter(x=middles, y=after, name=word, fill="tozeroy", fillcolor=fill, mode="lines",
                           line={"color": color, "dash": dash, "width": 2, "shape": "hvh"})
        figure.add_scatter(x=middles, y=before, name=f"{word}, before", mode="lines", opacity=0.8,
                           line={"color": GRAY, "dash": dash, "width": 1, "shape": "hvh"})
    auc = f": AUC {now.auc:.3f} (before {start.auc:.3f})" if has_classes else ""
    titled(figure, f"{name}{auc}", 280, hovermode="x unified",
           legend={"orientation": "h", "y": -0.28})
    figure.update_xaxes(title=f"cosine, the first bin with all below {edges[1]:.2g}", range=[edges[0], 1])
    figure.update_yaxes(title="% of pairs", rangemode="tozero")
    draw(figure, key, f"{name}: cosines to the positives, mean {now.positive.mean():.3f}, and to the negatives, mean "
         f"{now.negative.mean():.3f}"
         + (f"; AUC {now.auc:.3f}, before training {start.auc:.3f}." if has_classes else "."))


def _has_unit_length(run: Run) -> bool:
    """Return whether the embeddings of a run, which may still be training, have unit length; zero rows may occur."""
    lengths = np.linalg.norm(run.epoch_sample(run.epoch_numbers()[-1]).astype(float), axis=1)
    return bool(((abs(lengths - 1) < 0.01) | (lengths == 0)).all())


def similarity_words(runs: Sequence[Run]) -> str:
    """Return the caption of the similarity charts of one or several runs."""
    run = runs[0]
    has_classes = dataset_of(run).labels is not None
    kind = (f"its {NEAREST} nearest images of the same class (positives) and its {NEAREST} nearest images of other "
            "classes (negatives), as in PSLR, Fig. 6" if has_classes else
            f"the {NEAREST} images that were nearest before training (positives) and the {NEAREST} nearest other "
            "images (negatives), because there are no classes")
    of_half = "" if halves(run) == ("all images",) else " of a half"
    words = (f"Cosines of each image to {kind}, among at most {MOST_IMAGES:,} images{of_half}. "
             + ("AUC is the probability that a positive is nearer than a negative: 0.5 is chance, 1 is perfect "
                "separation. " if has_classes else "") + "Thin gray lines: before training. ")
    if not all(_has_unit_length(shown) for shown in runs):
        words += ("The nearest images are chosen by cosine, although retrieval ranks embeddings without unit length "
                  "by Euclidean distance. ")
    if halves(run) == ("test half",):
        return words + "This run stored no embeddings of the training half; train again to see them."
    if not has_classes:
        return words + ("A lower cosine of the positives means that training pushed former neighbors apart, which may "
                        "be right: these charts do not judge the run.")
    return words + ("All images are in the training half, so the charts do not show how new images would behave."
                    if halves(run) == ("all images",) else
                    "A separation on the training half alone is overfitting.")


@fragment
def explore_similarities(runs: Sequence[Run]) -> None:
    """Show the similarities of one or two runs at an epoch."""
    runs = [run for run in runs if run.epoch_numbers()]
    if not runs:
        return
    has_classes = dataset_of(runs[0]).labels is not None
    st.subheader("Are positives nearer than negatives?" if has_classes else "Do former neighbors stay near?")
    position = pick_epoch_cursor(runs, "similarity")
    for run in runs:
        if len(runs) > 1:
            st.markdown(f"**{escaped(run_title(run))}**")
        similarity_pictures(run, epoch_at(run, position), f"near-{run.id}")
    st.caption(similarity_words(runs))
