"""The choice of the data set, and what is dropped when it changes."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import TABLE, Dataset
from udml_core.methods import find_method
from udml_core.runs import RunRequest, form_options, list_runs, runs_folder
from udml_core.work import jobs

from ..shell.cached import load_dataset
from ..shell.run_picker import app_dataset
from ..shell.run_status import escaped
from ..shell.user_errors import show_user_errors
from .method_choice import lacks_labels
from .settings import BOX, KEPT

OWN = ("train-", "several-", "first-", "lab-")
"""Beginnings of the keys of widgets whose values belong to a data set."""
STAYS = ("tool", "run", "method", "task")
"""Parameters that keep their meaning on another data set."""


def choose_dataset() -> Dataset | None:
    """Choose an available data set; a link can also open the folder of an earlier run."""
    titles = {source.name: source.title for source in catalog.sources() if source.missing() is None}
    wanted = st.query_params.get("dataset") or app_dataset(list(titles))
    if wanted not in titles and any(run.spec().dataset == wanted for run in list_runs(runs_folder())):
        with suppress(UserError):
            titles |= {source.name: source.title for source in [catalog.find(wanted)] if source.missing() is None}
    if wanted not in titles:
        st.warning(f"The data set '{escaped(wanted[:200])}' in the link is not available, so another data set is "
                   "shown. Choose a data set, or import its folder on the page Data.", icon=":material/link_off:")
    names = list(titles)
    name = st.selectbox("Data set", names, names.index(wanted) if wanted in titles else 0,
                        format_func=titles.__getitem__)
    with show_user_errors():
        dataset = load_dataset(name)
        if wanted in titles and name != wanted:
            _begin_anew(dataset)
        st.query_params["dataset"] = name
        return dataset
    return None


def _begin_anew(dataset: Dataset) -> None:
    """Drop what belonged to another data set: values, options, the watched run, the view of the map; draw again.

    The method stays if the data set has the labels that it needs.
    """
    kept = {name: st.query_params[name] for name in STAYS if name in st.query_params}
    with suppress(UserError):
        if lacks_labels(find_method(kept.get("method", "")), dataset):
            del kept["method"]
    options = {BOX, KEPT, *form_options(RunRequest), *form_options(RunRequest, "few"),
               *form_options(RunRequest, "pairs")}
    for key in list(st.session_state):
        if str(key) in options or str(key).startswith(OWN):
            del st.session_state[key]
    st.query_params.from_dict({**kept, "dataset": dataset.name})
    st.rerun()


def options_for(dataset: Dataset) -> list[str]:
    """List the options that the form shows; a table of embeddings has none of the options of images."""
    names = form_options(RunRequest)
    if st.query_params.get("backbone") == TABLE or dataset.is_table:
        for name in jobs.IMAGE_OPTIONS:  # a link's options of images mean nothing for a table, and the reverse
            st.query_params.pop(name, None)
    return [name for name in names if not (dataset.is_table and name in jobs.IMAGE_OPTIONS)]
