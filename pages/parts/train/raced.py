"""The training that won the race on these images: its settings, and what says that it exists already."""

from __future__ import annotations

import streamlit as st

from udml_core.data.dataset import Dataset
from udml_core.methods import Method
from udml_core.runs import Run, Spec, runs_folder
from udml_core.work.jobs.concluding import suggested_by_race
from udml_core.work.sweeps.group import key_of

from ..data.using import use_button

EXISTS = "**This run exists already**, from the race. Training it again gives the same."


def raced_run(dataset: Dataset, method: type[Method]) -> Run | None:
    """Return the training on which the best search of the newest race rests, if it is of a method; else None."""
    suggestion = suggested_by_race(dataset, runs_folder())
    return suggestion.run if suggestion is not None and suggestion.method == method.card.name else None


def show_existing(spec: Spec, dataset: Dataset, raced: Run | None) -> None:
    """Say that a planned run exists already if it equals the race's, with the button that searches with it.

    Args:
        spec: The planned run.
        dataset: Its data set.
        raced: The training on which the best search of a race rests; None without one.
    """
    if raced is None or key_of(spec) != key_of(raced.spec()):
        return
    suggestion = suggested_by_race(dataset, runs_folder())
    assert suggestion is not None, "a race names the run"
    assert suggestion.conclusion.use is not None, "its search is the one to use"
    st.caption(EXISTS)
    use_button("Search with it", ":material/image_search:", suggestion.conclusion.race, suggestion.conclusion.use,
               "retrieval", "Search with the best search of the race. If it refines images, they are prepared first, "
               "on the page Data.", key="lab-existing", dataset=dataset.name)
