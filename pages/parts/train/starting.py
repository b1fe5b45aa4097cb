"""The button that starts a run, the time that it takes, and what will measure it."""

from __future__ import annotations

import html

import streamlit as st

from udml_core.base.errors import counted, duration
from udml_core.data.dataset import Dataset
from udml_core.data.splits import caution_of, words_of_split
from udml_core.methods import Method
from udml_core.runs import Run, Spec, list_runs, runs_folder
from udml_core.runs.tasks import LIVE_STATES
from udml_core.work import jobs

from ..data.using import Kind
from ..draw.form import option_key
from ..learn.task import note_start
from ..pairs.source import PairChoice
from ..shell.run_status import escaped
from ..shell.user_errors import show_user_errors
from .live import watch
from .start_map import color_by_class

SHOWN_DISK = 5e7  # Bytes of new files below which they are not mentioned.


def show_drawer_button(dataset: Dataset, method: type[Method]) -> None:
    """Show the button that opens the choices on a phone, where they lie in a drawer (see keys.js and app.css)."""
    chosen = html.escape(f"{dataset.title.split(',')[0]} · {method.card.title}")
    st.html(f'<button type="button" class="lab-choose" aria-label="Choices: {chosen}">{chosen}</button>')


def show_start(spec: Spec, dataset: Dataset, pairs: PairChoice, is_watching: bool, hindrance: str = "",
               is_advised: bool = True) -> None:
    """Show the button, and the expected time if all of it was measured on this machine.

    Args:
        spec: The planned run.
        dataset: Its data set.
        pairs: The pairs that it learns from.
        is_watching: Whether the page shows a run that trains, behind which this run would wait.
        hindrance: Why this run would lead to nothing; empty if nothing is known against it.
        is_advised: Whether nothing speaks against it, such as an equal run, which another button searches with.
    """
    expected = jobs.estimate(spec, dataset)
    kind: Kind = "primary" if is_advised and not is_watching else "secondary"
    if st.button("Start training", type=kind, icon=":material/play_arrow:", width="stretch", key="lab-begin",
                 disabled=bool(hindrance), help=hindrance or None):
        with show_user_errors():
            run = jobs.submit(spec, runs_folder(), pairs.given)
            note_start([run])
            watch(run)
            color_by_class()
            st.rerun()
    with st.container(key="lab-begin-notes", gap="xsmall"):  # app.css keeps its height, so that no button moves
        _show_notes(expected, is_watching, hindrance)


def _show_notes(expected: jobs.Estimate, is_watching: bool, hindrance: str) -> None:
    """Show why a run cannot start, or how long it takes and what it waits for; see `show_start`."""
    if hindrance:
        st.caption(f":material/block: {hindrance}")
    elif is_watching:  # the watched run says how long it takes
        st.caption("A further run waits until this one has ended.")
    else:
        busy = ". Other work keeps this machine busy now, so it can take several times as long" * jobs.is_busy()
        whole = expected.seconds + expected.judging_seconds
        st.caption(f"**About {duration(whole)}**, measured here{busy}" if expected.measured else
                   "Its time has not been measured here yet.", help=time_words(expected))
    waiting = sum(run.stored_status().state in LIVE_STATES for run in list_runs(runs_folder()))
    if waiting and not is_watching:
        st.caption(f"Runs waiting or running: {waiting}. A device trains one run at a time.")


def time_words(expected: jobs.Estimate) -> str:
    """Return the parts of the measured time, and the memory and disk space."""
    parts = {"start": expected.start_seconds, "features": expected.feature_seconds,
             "training": expected.training_seconds, "evaluation": expected.evaluation_seconds,
             "first map": expected.follow_seconds, "judges": expected.judging_seconds}
    listed = [f"{name} {duration(seconds)}" for name, seconds in parts.items() if seconds]
    space = f"{expected.memory / 1e9:.1f} GB memory ({jobs.words_of_plan(expected.memory_by_part)})" + (
        f", {expected.disk / 1e9:.1f} GB new files" if expected.disk >= SHOWN_DISK else "")
    if not expected.measured:
        return f"Needs {space}."
    return (f"From the start to the results, by earlier runs on this machine: {', '.join(listed)}. "
            f"Needs {space}.")


def show_cautions(spec: Spec, dataset: Dataset, pairs: PairChoice) -> None:
    """Say what the user should know of the images and pairs before a start."""
    if spec.excluded.count:
        st.caption(f"This run leaves out the {counted(spec.excluded.count, 'image')} that you excluded.")
    if words := words_of_split(dataset, spec.split):
        st.caption(words)
    if caution := caution_of(dataset, spec.halves(dataset)):
        st.caption(f":material/warning: {caution}")
    if pairs.given is not None:
        train = spec.halves(dataset).train
        st.caption(f"{len(pairs.given.within(train)):,} of the {len(pairs.given):,} pairs have both images in the "
                   "training half.")


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
        st.caption(f"Evaluated on {count}." if dataset.labels is not None else f"Judged without labels on {count}.")
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
