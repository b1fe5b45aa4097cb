"""What a run will be measured on, and whether an example on the same images shares it."""

from __future__ import annotations

import streamlit as st

from udml_core.data.dataset import Dataset
from udml_core.runs import Run, Spec
from udml_core.work import jobs

from ..draw.form import option_key
from ..shell.run_status import escaped


def show_measured(spec: Spec, dataset: Dataset, settings: jobs.Settings, example: Run | None) -> None:
    """Say how many test images measure the run, and whether the same images measure an example.

    Args:
        spec: The planned run.
        dataset: Its data set.
        settings: What the form began with.
        example: An example on the same images; None if there is none.
    """
    count = f"{len(spec.halves(dataset).test):,} test images"
    if example is None:
        st.caption(f"Evaluated on {count}.")
        return
    title = escaped(jobs.example_title(example))
    if jobs.shares_test_images(spec, example, dataset):
        features = "" if spec.encoder == example.spec().encoder else " Their features before training differ."
        st.caption(f"Evaluated on the same {count} as the example {title}, so Compare can show the same queries."
                   f"{features}")
        return
    st.caption(f"Evaluated on {count}. The example {title} has other test images, so Compare cannot show the same "
               "queries.")
    split = example.spec().split
    if spec.split != split:  # else images are excluded
        key = option_key("split", settings.options)
        st.button("Train on the example's split", icon=":material/call_merge:", key="train-shared-split",
                  on_click=lambda: st.session_state.update({key: split}), width="stretch")
