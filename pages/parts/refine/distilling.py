"""Distillation: a model that needs neither the gallery nor several views at retrieval."""

from __future__ import annotations

import streamlit as st

from udml_core.methods.distill import Distill
from udml_core.runs import Run

RECORD = "birds100-last"


def show_distillation(run: Run) -> None:
    """Explain distillation and its limits, and offer to train it."""
    st.markdown(f"A recipe needs several views of each image, the gallery, or both. **{Distill.card.title}** trains "
                "the encoder so that one view of a new image lies where views, whitening and averages would put it. "
                "The targets come from the training half without labels. It is inductive: it has seen no test image.")
    st.caption("It is this project's own method, not a paper's. Its gain is far smaller than the gain of a recipe with "
               "the gallery; most of it comes from whitening, and more epochs can overfit the training images. The "
               "record on the page Results says what was measured. Check your own data against the frozen features.")
    with st.container(horizontal=True, gap="small"):
        spec = run.spec()
        st.page_link("pages/train.py", label=f"Train it on {spec.dataset_title}", icon=":material/model_training:",
                     width="content", query_params={"dataset": spec.dataset, "method": Distill.card.name})
        st.page_link("pages/results.py", label="What was measured", icon=":material/table_chart:", width="content",
                     query_params={"record": RECORD})
