"""Cached loaders of data sets, splits and the search of finished runs."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.base.errors import duration
from udml_core.data import catalog
from udml_core.data.dataset import Dataset, Report
from udml_core.data.given.judged_pairs import log_version
from udml_core.data.splits import Select, Split, SplitName
from udml_core.runs import Run, Spec
from udml_core.runs.search import Retrieval
from udml_core.runs.search.same import Threshold, has_plan, same_threshold

from .run_hash import RUN_HASH
from .run_status import escaped_message


def load_dataset(name: str) -> Dataset:
    """Return a data set by name, loaded once.

    A progress bar appears while a folder is read. Its place is taken every time: elements that moved up once the bar is
    gone would be drawn twice for a moment.

    Raises:
        UserError: The data set is not available.
    """
    place = st.empty()
    return _opened().dataset(*_available(name), place)


def dataset_at_hand(name: str) -> Dataset:
    """Return a data set by name, without a place for a progress bar if it is open already.

    Raises:
        UserError: The data set is not available.
    """
    return _opened().known(_available(name)) or load_dataset(name)


def dataset_of(run: Run) -> Dataset:
    """Return the data set of a run; of a folder that has grown since, the images that it had then.

    Raises:
        UserError: The data set is not available, or most of it has changed since the run started.
    """
    spec = run.spec()
    dataset = load_version(spec.dataset, spec.fingerprint)
    run.check_dataset(dataset)
    return dataset


def load_version(name: str, fingerprint: str) -> Dataset:
    """Return a data set as it was when it had a fingerprint, or its present state if that is lost.

    Raises:
        UserError: The data set is not available.
    """
    now = load_dataset(name)
    return now if now.fingerprint == fingerprint else _version(name, fingerprint, now.fingerprint)


@st.cache_resource(max_entries=4, show_spinner=False)
def _version(name: str, fingerprint: str, now: str) -> Dataset:  # noqa: ARG001 (it reads images where they are now)
    return catalog.version_of(catalog.find(name), load_dataset(name), fingerprint)


def signature_of(name: str) -> str:
    """Return the signature of a data set's files, which changes with them; at most five seconds old."""
    return _available(name)[1]


@st.cache_data(ttl="5s", max_entries=32, show_spinner=False)
def _available(name: str) -> tuple[str, str]:
    """Return a data set's full name and the signature of its files.

    The result is cached because scanning a large folder takes a while.
    """
    source = catalog.find(name)
    source.check()
    return source.name, source.signature()


def forget_signature(name: str) -> None:
    """Look at a data set's files again at once, because the app has moved some."""
    _available.clear(name)


class _Opened:
    """The data sets that were opened last, shared by all sessions.

    Streamlit's own cache would repeat every movement of the progress bar whenever a page asks for the data set.
    """

    MOST = 4

    def __init__(self) -> None:
        self._datasets: OrderedDict[tuple[str, str], Dataset] = OrderedDict()
        self._changing, self._opening = threading.Lock(), threading.Lock()

    def dataset(self, name: str, signature: str, place: DeltaGenerator) -> Dataset:
        """Return a data set; another signature opens a changed folder again.

        Args:
            name: Its full name.
            signature: The signature of its files.
            place: Where a progress bar appears.
        """
        key = name, signature
        known = self.known(key)
        if known is None:
            with self._opening:  # The second of two sessions waits for the first.
                known = self.known(key)
                if known is None:
                    known = self._open(key, place)
        return known

    def known(self, key: tuple[str, str]) -> Dataset | None:
        """Return a data set if it is open."""
        with self._changing:
            if key in self._datasets:
                self._datasets.move_to_end(key)
            return self._datasets.get(key)

    def _open(self, key: tuple[str, str], place: DeltaGenerator) -> Dataset:
        with place.container(), progress_bar("Opening the data set …") as report:
            dataset = catalog.load(key[0], report)
        place.empty()  # an empty container would keep its gap
        with self._changing:
            self._datasets[key] = dataset
            while len(self._datasets) > self.MOST:
                self._datasets.popitem(last=False)
        return dataset


@st.cache_resource(show_spinner=False)
def _opened() -> _Opened:
    return _Opened()


@contextmanager
def progress_bar(text: str = "") -> Iterator[Report]:
    """Show a progress bar while something is read or computed; yield the function that moves it.

    Args:
        text: Shown at once; without it the bar appears with the first report.
    """
    bar = st.progress(0.0, escaped_message(text)) if text else st.empty()

    def report(share: float, phase: str) -> None:
        bar.progress(min(1.0, share), escaped_message(f"{phase[:1].upper()}{phase[1:]} …"))

    try:
        yield report
    finally:
        bar.empty()


def with_time(report: Report) -> Report:
    """Return a reporter that adds the time left, at most ten times a second."""
    start, last = time.monotonic(), [0.0]

    def timed(share: float, step: str) -> None:
        now = time.monotonic()
        if now - last[0] > 0.1:
            last[0] = now
            left = (now - start) * (1 - share) / share if share > 0 else None
            report(share, step if left is None else f"{step}, about {duration(left)} left")

    return timed


def load_retrieval(run: Run) -> Retrieval:
    """Return the search of a finished run, opened once.

    Raises:
        UserError: The run is not finished, or its data set is not available.
    """
    spec = run.spec()
    load_version(spec.dataset, spec.fingerprint)  # shows a progress bar
    return _retrieval(run, load_dataset(spec.dataset).fingerprint)


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs=RUN_HASH)
def _retrieval(run: Run, fingerprint: str) -> Retrieval:  # noqa: ARG001 (opened again when the data set changes)
    spec = run.spec()
    return Retrieval(run, load_version(spec.dataset, spec.fingerprint))


@st.cache_data(max_entries=16, show_spinner=False)
def _split(name: str, fingerprint: str, split: SplitName, select: Select, seed: int,  # noqa: ARG001
           excluded: str, _spec: Spec) -> Split:  # noqa: ARG001
    return _spec.halves(load_version(name, fingerprint))


def load_split(run: Run) -> Split:
    """Return the split of a run's data set that the run used.

    Raises:
        UserError: The data set is not available, or has changed since the run started.
    """
    dataset_of(run)
    spec = run.spec()
    return _split(spec.dataset, spec.fingerprint, spec.split, spec.holds_out, spec.seed, spec.excluded.digest,
                  spec)


@st.cache_data(max_entries=64, show_spinner=False, hash_funcs=RUN_HASH)
def _threshold(run: Run, name: str, version: tuple[int, ...], _retrieval: Retrieval) -> Threshold | None:  # noqa: ARG001
    return same_threshold(_retrieval, name)


def known_threshold(retrieval: Retrieval, name: str) -> Threshold | None:
    """Return the end of "the same" in an embedding; None if it is unknown or its pairs were never opened."""
    version = log_version(retrieval.dataset)
    return _threshold(retrieval.run, name, version, retrieval) if version and has_plan(retrieval, name) else None
