"""What pages load once and share: data sets and opened runs."""

from __future__ import annotations

import streamlit as st

from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.splits import Select, Split, SplitName, make_split
from udml_core.errors import UserError
from udml_core.retrieval import Retrieval
from udml_core.runs import Run, find_run, runs_folder


def load_dataset(name: str) -> Dataset:
    """A data set by name, loaded once; a bar shows how far a folder is read.

    Raises:
        UserError: it is not there.
    """
    return _dataset(*_present(name))


def dataset_of(run: Run) -> Dataset:
    """The data set that a run began with.

    Raises:
        UserError: it is not there, or has changed since.
    """
    dataset = load_dataset(run.spec().dataset)
    run.check_dataset(dataset)
    return dataset


@st.cache_data(ttl="5s", max_entries=32, show_spinner=False)
def _present(name: str) -> tuple[str, str]:
    """A data set's own name and the state of its files; looking through a large folder takes a while."""
    source = catalog.find(name)
    problem = source.missing()
    if problem:
        raise UserError(problem)
    return source.name, source.signature()


@st.cache_resource(max_entries=4, show_spinner=False)
def _dataset(name: str, signature: str) -> Dataset:  # noqa: ARG001 (a folder that changed is opened again)
    bar = st.progress(0.0, "Opening the data set …")

    def report(share: float, what: str) -> None:
        bar.progress(min(1.0, share), what)

    try:
        return catalog.load(name, report)
    finally:
        bar.empty()


def load_retrieval(run_id: str) -> Retrieval:
    """A finished run's gallery, opened once.

    Raises:
        UserError: the run is not done, or its data set is gone.
    """
    run = find_run(run_id, runs_folder())
    return _retrieval(str(run.folder), load_dataset(run.spec().dataset).fingerprint)


@st.cache_resource(max_entries=4, show_spinner=False)
def _retrieval(folder: str, fingerprint: str) -> Retrieval:  # noqa: ARG001 (a changed data set is opened again)
    run = find_run(folder, runs_folder())
    return Retrieval(run, load_dataset(run.spec().dataset))


@st.cache_data(max_entries=16, show_spinner=False)
def _split(name: str, fingerprint: str, split: SplitName, select: Select, seed: int) -> Split:  # noqa: ARG001
    return make_split(load_dataset(name), split, select, seed)


def load_split(run: Run) -> Split:
    """The halves of a run's data set as the run used them.

    Raises:
        UserError: it is not there, or has changed since.
    """
    dataset_of(run)
    spec = run.spec()
    return _split(spec.dataset, spec.fingerprint, spec.split, spec.holds_out, spec.seed)
