"""Training on labeled pairs: a new run, or the continuation of a finished run."""

from __future__ import annotations

import streamlit as st

from udml_core.base.declaration import describe_field
from udml_core.data.dataset import Dataset
from udml_core.data.given.pairs import PairSet
from udml_core.methods import find_method
from udml_core.methods.nml import NML
from udml_core.runs import Run
from udml_core.work import jobs

from ..shell.cached import load_split


def link_to_training(run: Run, labeled: PairSet) -> None:
    """Show a link that trains on the labeled pairs with the run's backbone and split."""
    spec, inside = run.spec(), labeled.within(load_split(run).train)
    if not 0 < inside.same.sum() < len(inside):
        st.caption("Training needs at least one similar and one dissimilar pair in the training half.")
        return
    method = find_method(spec.method) if find_method(spec.method).card.supervision == "pairs" else NML
    st.page_link("pages/train.py", label=f"Train {method.card.title} with these pairs",
                 icon=":material/model_training:",
                 query_params={"dataset": spec.dataset, "method": method.card.name, "pairs": "given",
                               "backbone": spec.encoder.backbone, "split": spec.split})


def link_to_continuing(run: Run, dataset: Dataset, labeled: PairSet) -> None:
    """Show a button that continues this run on new pairs.

    The continuation is a new run, which learns from the pairs that this run has not seen.
    """
    unused = run.unused_pairs(labeled)
    inside = unused.within(load_split(run).train)
    same = int(inside.same.sum())
    if not 0 < same < len(inside):
        st.caption("To continue this run, label at least one similar and one dissimilar pair of its training half "
                   f"that it has not learned from. New pairs: {same} similar, {len(inside) - same} dissimilar.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        field = describe_field(find_method(run.spec().method), "epochs")
        epochs = st.number_input("Epochs", int(field.slider[0]), int(field.slider[1]), 1, width=130,
                                 key="giving-epochs",
                                 help=f"{field.text} Here the pairs are the new ones; many epochs on few pairs "
                                      "make the model forget what it learned before.")
        pressed = st.button(f"Continue this run with {len(inside):,} new pairs", icon=":material/resume:",
                            key="giving-continue",
                            help="Starts a new run from the final state of this run, which stays unchanged.")
    if pressed:
        spec = jobs.plan_continuation(run, dataset, unused, {"epochs": epochs})
        continuation = jobs.submit(spec, run.root, unused)
        st.switch_page("pages/runs.py", query_params={"run": continuation.id})
