"""A live preview before training: the angles of sample triplets against α, and the clusters at ε."""

from __future__ import annotations

from concurrent.futures import Future, wait
from threading import Thread

import streamlit as st

from udml_core.base.arrays import Array, Integers
from udml_core.base.declaration import describe
from udml_core.base.errors import counted, duration
from udml_core.base.files import read_array
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import Encoder, image_seconds
from udml_core.data.features import features_of_some, features_path
from udml_core.data.splits import SplitName
from udml_core.exploration.preview import SAMPLE, Preview, Sample, draw_sample, preview
from udml_core.exploration.triplets import angle_histogram
from udml_core.methods import find_method
from udml_core.runs import Spec

from ..draw.figures import histogram
from ..draw.gallery import gallery, tile_of
from ..shell.views import view_link
from ..shell.warming import SCRIPT_THREAD

FIELDS = ("alpha", "epsilon", "gamma", "n_neighbors")
SHOWN = 8
LONGEST_WAIT = 10.0
"""Seconds that missing features of the sample may take to be computed without a click."""
FEW = 0.01
"""Share of the triplets beyond α below which training has hardly anything to correct."""
RECORD, LOST = "rpml-regimes", "lost up to 24 points of MAP@R"
"""The record that varies α, and what it says of angles below 35°."""
PATIENCE = 0.2
"""Seconds that the page waits for the sample; then the form is shown, and the preview follows."""


def show_preview(spec: Spec, dataset: Dataset) -> None:
    """Show what α and ε mean on the data set; nothing for methods without them.

    Args:
        spec: The planned run.
        dataset: Its data set.
    """
    if not all(name in spec.fields for name in FIELDS):
        return
    alpha, epsilon, gamma, k = (spec.fields[name] for name in FIELDS)
    with st.expander("What α and ε mean on these images", icon=":material/visibility:", expanded=True), \
            st.container(key="train-meaning"):
        if not _may_compute(spec, dataset):
            return
        key = (spec.fingerprint, spec.encoder.key, spec.split, spec.seed, int(k), spec.excluded.digest)
        drawn = _draw(*key, spec, dataset)
        if not wait([drawn], PATIENCE).done:
            _show_progress(drawn)
            return
        if drawn.exception():
            _draw.clear(*key, spec, dataset)  # the next run of the page tries again
        sample = drawn.result()
        result = preview(sample, float(epsilon), float(gamma), spec.seed)
        left, right = st.columns(2, gap="medium")
        with left:
            if result.shape is None:
                st.info(f"At ε = {epsilon:g} there are no triplets, so this run would stop. "
                        + ("Raise ε." if result.clusters.count == 1 else "Lower ε."), icon=":material/warning:")
            else:
                edges, counts = angle_histogram(result.shape)
                share = 100 * result.violations(float(alpha))
                histogram(edges.tolist(), counts.tolist(),
                          f"{share:.1f} % of {int(counts.sum()):,} sample triplets exceed α = {alpha:g}°",
                          "train-angles", float(alpha))
        with right:
            statistics = result.clusters
            st.markdown(f"**{counted(statistics.count, 'cluster')}** at ε = {epsilon:g}: "
                        f"{counted(statistics.singletons, 'singleton')}, {int(statistics.sizes.max()):,} images in the "
                        "largest")
            if len(result.example):
                gallery(dataset, [tile_of(dataset, int(index)) for index in result.example[:SHOWN]],
                        "Images of one cluster", "train-cluster", 64)
                st.caption(f"A typical cluster, of median size without the singletons: {len(result.example)} images, "
                           "each with its class.")
        if result.shape is not None and result.violations(float(alpha)) < FEW:
            _warn_of_alpha(result, spec.method)
        st.caption(f"Before training, in the frozen features of {len(sample.indices):,} images of the training half. "
                   "A triplet is an anchor, a positive of the same cluster and a negative of another cluster; training "
                   "corrects triplets beyond α. ε decides which images share a cluster.")


def _warn_of_alpha(result: Preview, method: str) -> None:
    """Say what a bound that no triplet violates means, and what the record says of smaller bounds.

    Args:
        result: The preview, with triplets.
        method: Name of the method.
    """
    field = next(field for field in describe(find_method(method)) if field.name == "alpha")
    angle = result.median_angle(field.slider[2])
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="train-alpha"):
        st.markdown(f":material/warning: Less than {100 * FEW:g} % of the sample triplets exceed α, so the bound "
                    f"corrects nothing: the objective reduces to PCA. The median angle is {angle:g}°, but in "
                    f"the record smaller bounds {LOST} on unseen classes of birds and clothes.", width="stretch")
        view_link("results", label="What was measured", icon=":material/table_chart:", width="content",
                     query_params={"record": RECORD})


def _may_compute(spec: Spec, dataset: Dataset) -> bool:
    """Return whether the features of a sample are stored, quick to compute, or asked for; else offer to compute them.

    Pixels and small images take seconds.
    """
    key = f"train-preview-{dataset.name}-{spec.encoder.key}"
    seconds = image_seconds(spec.encoder) * min(SAMPLE, len(dataset))
    if seconds <= LONGEST_WAIT or st.session_state.get(key) or features_path(dataset, spec.encoder).exists():
        return True
    st.caption(f"The preview needs the features of {min(SAMPLE, len(dataset)):,} images: about {duration(seconds)} on "
               "two CPU cores.")
    st.button("Compute the preview", icon=":material/visibility:", key="train-preview",
              on_click=lambda: st.session_state.update({key: True}))
    return False


@st.fragment(run_every="0.5s")
def _show_progress(drawn: Future[Sample]) -> None:
    """Say that the sample is encoded; the page runs again when it is."""
    if drawn.done():
        st.rerun()
    st.caption(":material/hourglass_top: Encoding a sample of the images …")


@st.cache_resource(max_entries=8, show_spinner=False)
def _draw(fingerprint: str, encoder_key: str, split: SplitName, seed: int, k: int,  # noqa: ARG001 (parts of the key)
          excluded: str, _spec: Spec, _dataset: Dataset) -> Future[Sample]:  # noqa: ARG001
    """Draw a sample in the background, with the stored features or with features that are computed for it alone."""
    drawn: Future[Sample] = Future()

    def features(indices: Integers) -> Array:
        path = features_path(_dataset, _spec.encoder)
        if path.exists():
            return read_array(path, mapped=True)[indices]
        return features_of_some(_dataset, Encoder(_spec.encoder), indices)

    def draw() -> None:
        try:
            drawn.set_result(draw_sample(features, _spec.halves(_dataset, "last").train, k, seed))
        except Exception as error:  # the page shows it
            drawn.set_exception(error)

    # Imports in the background wait for threads of this name, as they do for a running page. Not a daemon: a process
    # that ends while one of them computes with PyTorch is aborted.
    Thread(target=draw, name=f"{SCRIPT_THREAD}: preview").start()
    return drawn
