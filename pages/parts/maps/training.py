"""The state of training at a map's epoch: curves, clusters and similarities."""

from __future__ import annotations

import streamlit as st

from udml_core.exploration.clusters import summary

from ..curves.similarities import similarity_pictures, similarity_words
from ..draw.figures import curve, curve_names
from .coloring import sample_clusters
from .frame import MapFrame

CURVES = ("sample map@r", "loss", "neighbor stability")


def epoch_curves(shown: MapFrame) -> None:
    """Show the clusters of a map's epoch, and the training curves.

    A cursor in the curves marks the epoch. Nothing is computed before the user opens this part.
    """
    if shown.epoch is None:
        return
    part = st.expander("Training curves and clusters at this epoch", icon=":material/show_chart:", key="map-curves",
                       on_change="rerun")
    if not part.open:
        return
    with part:
        _curves_and_clusters(shown, shown.epoch)


def _curves_and_clusters(shown: MapFrame, epoch: int) -> None:
    rows = shown.run.metrics()[0]
    clusters = sample_clusters(shown.run, epoch)
    labels = None if shown.dataset.labels is None else shown.dataset.labels[shown.run.sample_indices()]
    numbers = summary(clusters, labels)
    purity = "" if numbers.purity is None else f", purity {100 * numbers.purity:.1f} %"
    st.markdown(f"**Clusters at this epoch:** {numbers.count} clusters, {numbers.singletons} singletons, coverage "
                f"{100 * numbers.coverage:.1f} % of the sample{purity}.")
    names = [name for name in CURVES if name in curve_names(rows)]
    for column, name in zip(st.columns(len(CURVES)), names, strict=False):
        with column:
            curve(name, {"run": rows}, f"map-{name}", epoch)


def pair_similarities(shown: MapFrame) -> None:
    """Show the similarities of positive and negative pairs at a map's epoch, if any."""
    numbers = shown.run.epoch_numbers()
    named = {"initial": numbers[0], "final": shown.run.kept_epoch()} if numbers else {}
    epoch = named.get(shown.name) if shown.epoch is None else shown.epoch
    if epoch is not None:
        part = st.expander("Similarities of positive and negative pairs", icon=":material/join_inner:",
                           key="map-similarities", on_change="rerun")
        if part.open:
            with part:
                similarity_pictures(shown.run, epoch, "map-near")
                st.caption(similarity_words([shown.run]))
