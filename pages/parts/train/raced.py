"""The training that won the race on these images: its settings, and what says that a planned run exists already."""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

from udml_core.data.dataset import Dataset
from udml_core.methods import Method
from udml_core.runs import Run, Spec, list_runs, runs_folder
from udml_core.runs.search import FROZEN
from udml_core.work.jobs.advising import is_trial
from udml_core.work.jobs.concluding import suggested_by_race
from udml_core.work.sweeps.group import key_of

from ..data.using import SEARCH, use_button
from ..shell.run_status import escaped, run_title
from ..shell.views import view_link

EXISTS, LAST = "**This run exists already**{}. Training it again gives the same.", "**Your last training**{}."


def raced_run(dataset: Dataset, method: type[Method]) -> Run | None:
    """Return the training that the newest race suggests, if it is of a method; else None."""
    suggestion = suggested_by_race(dataset, runs_folder())
    training = None if suggestion is None else suggestion.training
    is_same = training is not None and training.setup.method == method.card.name
    return suggestion.run if suggestion is not None and is_same else None


def exists(spec: Spec, raced: Run | None) -> bool:
    """Return whether a planned run equals the training that a race suggests."""
    return raced is not None and key_of(spec) == key_of(raced.spec())


def advises_training(dataset: Dataset) -> bool:
    """Return whether the newest race does not keep the user from a training: it advises one, or there is none."""
    suggestion = suggested_by_race(dataset, runs_folder())
    return suggestion is None or suggestion.is_trained


def trained_before(spec: Spec) -> Run | None:
    """Return the user's newest finished run that equals a planned run; None without one."""
    key = key_of(spec)
    return next((run for run in _finished(spec.dataset)
                 if run.spec().method == spec.method and key_of(run.spec()) == key), None)


def last_training(dataset: Dataset) -> Run | None:
    """Return the newest run that the user trained on a data set and that finished; None without one."""
    return next((run for run in _finished(dataset.name) if run.spec().method != FROZEN and not is_trial(run)), None)


def _finished(dataset: str) -> Iterator[Run]:
    """Yield the user's finished runs on a data set, the newest first."""
    return (run for run in list_runs(runs_folder()) if not run.is_example and run.spec().dataset == dataset
            and run.stored_status().state == "done")


def show_trained_before(run: Run, words: str) -> None:
    """Show a finished run of the user, with the link that shows what it learned and what judges say of it.

    Args:
        run: The run.
        words: `EXISTS` or `LAST`.
    """
    spec = run.spec()
    key = "lab-last" if words == LAST else "lab-trained-before"
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=key):
        st.caption(words.format(f": {escaped(run_title(run))}"), width="content" if words == LAST else "stretch")
        view_link("train", label="Show it", icon=":material/visibility:", width="content",
                  query_params={"dataset": spec.dataset, "method": spec.method, "live": run.id})


def show_existing(dataset: Dataset) -> None:
    """Say that the planned run exists already, from the race, with the button that searches with it.

    Args:
        dataset: The data set.
    """
    suggestion = suggested_by_race(dataset, runs_folder())
    assert suggestion is not None, "a race names the run"
    assert suggestion.training is not None, "and the search with it"
    st.caption(EXISTS.format(f", from the race{': search with it' * suggestion.is_trained}"))
    race = suggestion.conclusion.race if suggestion.is_trained else suggestion.race
    use_button("Search with it", SEARCH, race, suggestion.training, "retrieval",
               "Search with this training as the race judged it. If it refines images, they are prepared first, on the "
               "page Data.", kind="primary" if suggestion.is_trained else "secondary", key="lab-existing",
               dataset=dataset.name)
