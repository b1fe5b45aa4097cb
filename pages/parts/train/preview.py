"""A live preview before training: the angles of sample triplets against α, and the clusters at ε."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.parts.base.cached import load_dataset
from pages.parts.components.gallery import gallery, tile_of
from pages.parts.kit.figures import histogram
from udml_core.data.dataset import Dataset
from udml_core.data.features import features_path
from udml_core.data.splits import SplitName
from udml_core.exploration.preview import Sample, draw_sample, preview
from udml_core.exploration.triplets import angle_histogram
from udml_core.files import read_array
from udml_core.runs import Spec

FIELDS = ("alpha", "epsilon", "gamma", "n_neighbors")
SHOWN = 8


def show_preview(spec: Spec, dataset: Dataset) -> None:
    """Show what α and ε mean on the data set; nothing for methods without them."""
    if not all(name in spec.fields for name in FIELDS):
        return
    alpha, epsilon, gamma, k = (spec.fields[name] for name in FIELDS)
    with st.expander("What α and ε mean on these images", icon=":material/visibility:", expanded=True):
        path = features_path(dataset, spec.encoder)
        if not path.exists():
            st.caption("The preview needs the features of these images, which are computed once.")
            st.page_link("pages/data.py", label="Compute them: Browse these images", icon=":material/travel_explore:",
                         query_params={"dataset": dataset.name})
            return
        sample = _sample(str(path), spec.split, spec.seed, int(k), spec.excluded.digest, spec)
        result = preview(sample, float(epsilon), float(gamma), spec.seed)
        left, right = st.columns(2, gap="medium")
        with left:
            if result.shape is None:
                st.info(f"At ε = {epsilon:g} there are no triplets, so this run would stop. "
                        + ("Raise ε." if result.clusters.count == 1 else "Lower ε."), icon=":material/warning:")
            else:
                edges, counts = angle_histogram(result.shape)
                share = 100 * result.violations(float(alpha))
                histogram(edges.tolist(), counts.tolist(), f"{share:.1f} % of sample triplets exceed α = {alpha:g}°",
                          "train-angles", float(alpha))
        with right:
            statistics = result.clusters
            st.markdown(f"**{statistics.count:,} clusters** at ε = {epsilon:g}: {statistics.singletons:,} singletons, "
                        f"largest {int(statistics.sizes.max()):,}")
            if len(result.example):
                gallery(dataset, [tile_of(dataset, int(index)) for index in result.example[:SHOWN]],
                        "Images of one cluster", "train-cluster", 64)
                st.caption(f"A cluster of median size: {len(result.example)} images.")
        st.caption(f"Before training, in the frozen features of {len(sample.indices):,} images of the training half. "
                   "Only triplets beyond α pull and push; ε decides which images count as the same.")


@st.cache_resource(max_entries=4, show_spinner="Preparing the preview …")
def _sample(path: str, split: SplitName, seed: int, k: int, excluded: str, _spec: Spec) -> Sample:  # noqa: ARG001
    train = _spec.halves(load_dataset(_spec.dataset), "last").train
    return draw_sample(read_array(Path(path), mapped=True), train, k, seed)
