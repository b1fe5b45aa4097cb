"""Train: choose data set and method on the left, see the images in the middle, start, and watch the run."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.draw.form import first_fields, method_form, option_form
from pages.parts.learn.task import show_task_in_lab
from pages.parts.pairs.source import PairChoice, pick_pairs
from pages.parts.shell.address import write_address
from pages.parts.shell.run_status import escaped_message
from pages.parts.shell.setting_words import with_titles
from pages.parts.shell.user_errors import show_user_errors
from pages.parts.shell.views import view_link
from pages.parts.train.data_choice import choose_dataset
from pages.parts.train.encoder_choice import choose_options
from pages.parts.train.live import leave_ended, middle_and_right, show_run, watched_run
from pages.parts.train.measures import show_expected
from pages.parts.train.method_choice import (
    choose_method,
    explain,
    explain_missing_labels,
    lacks_labels,
    show_raced,
    suggested_method,
)
from pages.parts.train.preview import has_little_to_correct, hindrance_of, show_preview, show_some
from pages.parts.train.raced import (
    EXISTS,
    LAST,
    advises_training,
    exists,
    last_training,
    raced_run,
    show_existing,
    show_trained_before,
    trained_before,
)
from pages.parts.train.settings import (
    choose_settings,
    explain_settings,
    is_changed,
    keep_choices,
    known_runs,
    offered_example,
    restore_choices,
    times_back,
    wanted_settings,
)
from pages.parts.train.several import show_several
from pages.parts.train.slider_words import effect_of
from pages.parts.train.start_map import settle_colors
from pages.parts.train.start_steps import keep_worker_ready, show_steps_ahead
from pages.parts.train.starting import show_cautions, show_drawer_button, show_measured, show_start
from pages.parts.train.tried import tried_alpha
from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.data.given.labels import assigned_now
from udml_core.methods import Method
from udml_core.runs import Run, RunRequest, Spec, form_options
from udml_core.runs.tasks import LIVE_STATES
from udml_core.work import jobs

FIELDS_AT_ONCE = 3
DECIDES_TIME = ("epochs",)
"""Fields that are always shown, because they decide how long a run takes."""


def show_departures(spec: Spec, dataset: Dataset) -> None:
    """List how the chosen settings differ from the paper's."""
    texts = jobs.departures(spec, dataset)
    title = f"Departures from the paper: {len(texts)}" if texts else "No departures from the paper"
    with st.expander(title, icon=":material/difference:"):
        st.markdown("\n".join(f"- {with_titles(text)}" for text in texts)
                    or "Every printed setting is as in the paper.")


def choose_supervision(method: type[Method], dataset: Dataset, first: Mapping[str, Any]
                       ) -> tuple[dict[str, Any], PairChoice | None]:
    """Choose the labels or pairs that the method learns from.

    Args:
        method: The method.
        dataset: The data set.
        first: Values to show first in place of the defaults.

    Returns:
        The options, and the pairs; None in place of the pairs, with instructions on the page, if none are given yet.
    """
    supervision = method.card.supervision
    if supervision == "none" or (supervision == "all" and dataset.labels is not None):
        return {}, PairChoice()
    with st.container(border=True):
        if supervision != "pairs" and lacks_labels(method, dataset):
            explain_missing_labels(method, dataset)
            return {}, None
        pairs = pick_pairs(dataset) if supervision == "pairs" else PairChoice()
        if pairs is None or pairs.given is not None:
            return {}, pairs
        names = form_options(RunRequest, supervision)
        shown = {name: value for name, value in first.items() if name != "labels"}
        values = option_form(RunRequest, names, {} if dataset.labels is not None else {"labels": ("given",)}, shown,
                             in_row=1)
        if values.get("labels") == "given":
            values["labels_per_class"] = None
            assigned = assigned_now(dataset)
            st.caption(f"{len(assigned)} images have an assigned label, in {len(set(assigned.values()))} classes. The "
                       "assigned labels of the training half train the method and select the epoch to keep; no other "
                       "label is used.")
            view_link("labels", label="Assign labels", icon=":material/new_label:")
    return values, pairs


def learns_a_head(method: type[Method], settings: jobs.Settings, fields: Mapping[str, Any]) -> bool:
    """Return whether the method could train an encoder, but by its values trains a head on fixed features alone."""
    field = method.model_fields.get("trains")
    default = None if field is None else field.default
    return {"trains": default, **settings.fields, **fields}["trains"] == "head"


def form_key(method: type[Method], settings: jobs.Settings) -> str:
    """Return the prefix of the keys of the hyper-parameters' widgets: other settings make other widgets."""
    key = f"train-{method.card.name}"
    begun = "" if settings == jobs.Settings() else f"-{settings.source}-{jobs.write_fields(settings.fields)}"
    return f"{key}{begun}{f'-{times_back()}' if times_back() else ''}"


def main_form(method: type[Method], settings: jobs.Settings) -> dict[str, Any]:
    """Show the hyper-parameters; the address holds the values that differ from the settings."""
    written = jobs.read_fields(st.query_params.get(jobs.FIELDS, ""), method)
    shown = first_fields(method, FIELDS_AT_ONCE, DECIDES_TIME)
    fields = method_form(method, form_key(method, settings), settings.fields, written, shown, 1, effect_of)
    write_address(jobs.FIELDS, jobs.write_fields(fields))
    return fields


def planned(method: type[Method], dataset: Dataset, settings: jobs.Settings, values: Mapping[str, Any],
            pairs: PairChoice) -> tuple[RunRequest, Spec]:
    """Return the request of the form and its checked spec.

    Args:
        method: The method.
        dataset: The data set.
        settings: What the form began with.
        values: The chosen fields, under `fields`, and options.
        pairs: The pairs to learn from.

    Raises:
        UserError: An option does not fit; the message names it.
    """
    request = RunRequest.make({"dataset": dataset.name, "method": method.card.name,
                               "preset": "paper" if settings.source == "paper" else "default"} | dict(values))
    if settings.source != "paper":  # `plan` fills in the paper's values
        request = settings.fill(request)
    return request, jobs.plan(request, dataset, pairs.given)


def show_images(dataset: Dataset, place: DeltaGenerator, words: str) -> None:
    """Show images in place of a map that the choices do not allow yet."""
    with place:
        st.caption(words)
        show_some(dataset, np.arange(len(dataset)), "Images of the data set")


def show_form(dataset: Dataset, rest: DeltaGenerator, watched: Run | None) -> None:
    """Show the choices in the current place, and the picture that follows them in `rest`.

    Args:
        dataset: The data set.
        rest: The place of the picture and the measures.
        watched: The run that the page shows in place of the preview; None without a run.
    """
    # The suggestion depends on the images alone: the page that writes its values to the address suggests the same.
    suggested = suggested_method(dataset)
    method = choose_method(suggested, dataset, leave_ended)
    example = offered_example(dataset, method.card.name)
    raced = raced_run(dataset, method)
    known = known_runs(raced, example)
    wanted = wanted_settings(known, method.card.name, advises_training(dataset))
    box, top = st.container(), st.container()
    start, details = st.container(key="lab-start"), st.container()
    with details, st.expander("About these values", icon=":material/info:"):
        settings = explain_settings(wanted, method, dataset, known)
        more = st.container()
    above = rest.container(key="lab-above")  # also beside a run, so that the map below does not move
    last = None if watched is not None else last_training(dataset)
    if watched is None:  # beside a run, its own verdict says how it stands beside the search in use
        with above:
            show_raced(dataset)
            if last is not None:
                show_trained_before(last, LAST)
    with top:
        fields = main_form(method, settings)
        supervised, pairs = choose_supervision(method, dataset, settings.options)
    with rest:
        if watched is not None:
            show_run(watched, method)
        else:
            with st.container():  # as the fragment of a run has: the map of both stands in the same place and stays
                center, right = middle_and_right()
            with right:
                show_steps_ahead()
                show_expected(last, example, method.card.name)
                pictures = st.container()
                st.markdown("**The method**")
                explain(method, dataset, learns_a_head(method, settings, fields))
    if pairs is None:
        with box:
            choose_settings(wanted, known, method.card.name, settings, is_changed(fields))
        if watched is None:
            show_images(dataset, center, "The map follows once the method has what it learns from.")
        return
    with details, st.expander("Backbone, split, seed and device", icon=":material/tune:"):
        values = choose_options(dataset, settings.options)
    with box:
        choose_settings(wanted, known, method.card.name, settings, is_changed(fields))
    with start:
        show_drawer_button(dataset, method)
    is_planned = False
    with start, show_user_errors():
        request, spec = planned(method, dataset, settings, {"fields": fields} | values | supervised, pairs)
        is_planned = True
        before = None
        if is_repeated := exists(spec, raced):
            show_existing(dataset)
        elif watched is None and (before := trained_before(spec)) is not None:
            show_trained_before(before, EXISTS)
        tried = tried_alpha(spec, example, f"{form_key(method, settings)}-alpha", dataset.labels is not None)
        is_advised = not (is_repeated or before) and advises_training(dataset) and (
            not has_little_to_correct(spec, dataset, tried))
        show_start(spec, dataset, pairs, watched is not None and watched.status().state in LIVE_STATES,
                   hindrance_of(spec, dataset), is_advised)
        with more:
            show_cautions(spec, dataset, pairs)
            show_measured(spec, dataset, settings, example)
        with details:
            if settings.source == "paper":
                show_departures(spec, dataset)
            if pairs.given is None:
                show_several(request, spec, dataset)
        if watched is None:
            with center, show_user_errors():
                show_preview(spec, dataset, center, pictures, tried)
    if watched is None and not is_planned:
        show_images(dataset, center, "These values do not fit, as the message on the left says. The map follows once "
                                     "they do.")


def draw() -> None:
    """Draw the view."""
    try:
        restore_choices()
        settle_colors()
        failure = st.session_state.pop("train-like-failure", "")
        if failure:
            st.warning(escaped_message(failure), icon=":material/link_off:")
        show_task_in_lab()
        with st.container(key="lab"):
            left, right = st.columns([3, 9], gap="medium")
            rest = right.container(key="lab-rest")
        with left:
            dataset = choose_dataset()
            if dataset is not None:
                show_form(dataset, rest, watched_run())
                keep_choices()
        if dataset is not None:
            keep_worker_ready()
    except UserError as error:
        st.error(escaped_message(with_titles(str(error))), icon=":material/error:")
