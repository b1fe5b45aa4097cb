"""What follows a look at the images: the best search, and after decisions about images the search itself."""

from __future__ import annotations

import streamlit as st

from udml_core.data.dataset import Dataset
from udml_core.data.given.exclusions import excluded_images

from ..shell.views import view_link
from .advising import action_of
from .audited import VIEW
from .computed import chosen_encoder, earlier_run
from .ended_race import ICON
from .using import SEARCH


def lead_to_race(dataset: Dataset, is_main: bool = False) -> None:
    """Show the button that leads to the best search.

    Args:
        dataset: The data set.
        is_main: Whether it is the main button of the page.
    """
    st.button(action_of(dataset), icon=ICON, key="advice-open", type="primary" if is_main else "secondary",
              on_click=st.session_state.update,
              args=({VIEW: "advice"},), help="Tries refinements and short training for a few minutes, and keeps what "
                                             "judges prefer. No label is needed.")


def lead_on(dataset: Dataset) -> None:
    """Say how many images are left out, and show what follows; the line has one height before and after decisions."""
    count, run = len(excluded_images(dataset)), earlier_run(dataset, chosen_encoder(dataset))
    st.markdown(f"New runs leave out {count:,} of {len(dataset):,} images. **Next:**" if count else
                f"New runs use all {len(dataset):,} images. **Next:**", width="content")
    lead_to_race(dataset)
    if run is not None:
        view_link("retrieval", label="Search these images", icon=SEARCH, query_params={"run": run.id}, width="content")
