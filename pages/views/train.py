"""Train: choose data set, method and options, see the expected time, start a run."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import streamlit as st

from pages.parts.draw.form import method_form, option_form, option_key
from pages.parts.pairs.source import PairChoice, pick_pairs
from pages.parts.shell.address import write_address
from pages.parts.shell.cached import load_dataset
from pages.parts.shell.label_graph import assigned_now
from pages.parts.shell.run_picker import app_dataset
from pages.parts.shell.run_status import escaped
from pages.parts.shell.setting_words import with_titles
from pages.parts.shell.user_errors import show_user_errors
from pages.parts.shell.views import open_view, view_link
from pages.parts.train.method_choice import choose_method, explain, explain_missing_labels, lacks_labels
from pages.parts.train.preview import show_preview
from pages.parts.train.settings import (
    begins_with_example,
    choose_settings,
    explain_settings,
    keep_choices,
    offered_example,
    restore_choices,
)
from pages.parts.train.several import show_several
from udml_core.base.errors import UserError, duration
from udml_core.data import catalog
from udml_core.data.dataset import TABLE, Dataset
from udml_core.data.splits import caution_of
from udml_core.methods import Method
from udml_core.runs import Run, RunRequest, Spec, form_options, list_runs, runs_folder
from udml_core.runs.tasks import LIVE_STATES
from udml_core.work import jobs

SHOWN_DISK = 5e7  # Bytes of new files below which they are not mentioned.


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


def choose_dataset() -> Dataset | None:
    """Choose an available data set; a link can also open the folder of an earlier run."""
    titles = {source.name: source.title for source in catalog.sources() if source.missing() is None}
    wanted = st.query_params.get("dataset") or app_dataset(list(titles))
    if wanted not in titles and any(run.spec().dataset == wanted for run in list_runs(runs_folder())):
        with suppress(UserError):
            titles |= {source.name: source.title for source in [catalog.find(wanted)] if source.missing() is None}
    if wanted not in titles:
        st.warning(f"The data set '{wanted[:200]}' in the link is not available, so another data set is shown. Choose "
                   "a data set, or import its folder on the page Data.", icon=":material/link_off:")
    names = list(titles)
    name = st.selectbox("Data set", names, names.index(wanted) if wanted in titles else 0,
                        format_func=titles.__getitem__)
    st.query_params["dataset"] = name
    with show_user_errors():
        return load_dataset(name)
    return None


def options_for(dataset: Dataset) -> list[str]:
    """List the options that the form shows; a table of embeddings has none of the options of images."""
    names = form_options(RunRequest)
    if st.query_params.get("backbone") == TABLE or dataset.is_table:
        for name in jobs.IMAGE_OPTIONS:  # a link's options of images mean nothing for a table, and the reverse
            st.query_params.pop(name, None)
    return [name for name in names if not (dataset.is_table and name in jobs.IMAGE_OPTIONS)]


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
        values = option_form(RunRequest, names, {} if dataset.labels is not None else {"labels": ("given",)}, shown)
        if values.get("labels") == "given":
            values["labels_per_class"] = None
            assigned = assigned_now(dataset)
            st.caption(f"{len(assigned)} images have an assigned label, in {len(set(assigned.values()))} classes. The "
                       "assigned labels of the training half train the method and select the epoch to keep; no other "
                       "label is used.")
            view_link("labels", label="Assign labels", icon=":material/new_label:")
    return values, pairs


def start(spec: Spec, dataset: Dataset, pairs: PairChoice) -> None:
    """Show the expected time, memory and disk space, and the button."""
    expected = jobs.estimate(spec, dataset)
    waiting = sum(run.stored_status().state in LIVE_STATES for run in list_runs(runs_folder()))
    parts = (expected.feature_seconds, expected.training_seconds, expected.evaluation_seconds)
    total = duration(sum(max(1, round(seconds)) for seconds in parts if seconds))  # the sum of what is shown below
    st.markdown(f"**About {total}**, as measured on this machine" if expected.measured else
                f"**Not measured on this machine yet:** roughly {total}, and the time to start and to evaluate the run",
                help="The expected time from the start of the run to its results. It is measured from the last epochs "
                     "of this method on this machine. Before the first run it assumes two CPU cores; a GPU is faster.")
    evaluation = f" · evaluation {duration(expected.evaluation_seconds)}" if expected.evaluation_seconds else ""
    st.caption(f"Features {duration(expected.feature_seconds) if expected.feature_seconds else 'computed already'} · "
               f"training {duration(expected.training_seconds)}{evaluation} · {expected.memory / 1e9:.1f} GB memory"
               + (f" · {expected.disk / 1e9:.1f} GB new files" if expected.disk >= SHOWN_DISK else "")
               + ("" if expected.measured else ". The first run measures the time.")
               + (f" Runs waiting or running: {waiting}. A device trains one run at a time." if waiting else ""))
    if spec.excluded.count:
        st.caption(f"{spec.excluded.count:,} excluded images are neither trained on nor evaluated.")
    if caution := caution_of(dataset, spec.halves(dataset)):
        st.caption(f":material/warning: {caution}")
    if pairs.given is not None:
        train = spec.halves(dataset).train
        st.caption(f"{len(pairs.given.within(train)):,} of the {len(pairs.given):,} pairs have both images in the "
                   "training half.")
    if st.button("Start training", type="primary", icon=":material/play_arrow:", width="stretch"):
        with show_user_errors():
            run = jobs.submit(spec, runs_folder(), pairs.given)
            open_view("runs", query_params={"run": run.id})


def form_key(method: type[Method], settings: jobs.Settings) -> str:
    """Return the prefix of the keys of the hyper-parameters' widgets: other settings make other widgets."""
    key = f"train-{method.card.name}"
    return key if settings.source == "default" else f"{key}-{settings.source}-{jobs.write_fields(settings.fields)}"


def main_form(method: type[Method], settings: jobs.Settings) -> dict[str, Any]:
    """Show the hyper-parameters; the address holds the values that differ from the settings."""
    written = jobs.read_fields(st.query_params.get(jobs.FIELDS, ""), method)
    with st.container(border=True):
        fields = method_form(method, form_key(method, settings), settings.fields, written)
    write_address(jobs.FIELDS, jobs.write_fields(fields))
    return fields


def draw() -> None:
    """Draw the view."""
    try:
        restore_choices()
        failure = st.session_state.pop("train-like-failure", "")
        if failure:
            st.warning(failure, icon=":material/link_off:")
        columns = st.columns(3, gap="medium")
        with columns[0]:
            data = choose_dataset()
        if data is not None:
            example = offered_example(data)
            with columns[1]:
                chosen = choose_method(example.spec().method if example and begins_with_example(example)
                                       else jobs.first_method(data, runs_folder()), data)
            example = offered_example(data, chosen.card.name)
            with columns[2]:
                wanted = choose_settings(example)
            settings = explain_settings(wanted, chosen, data, example)
            left, right = st.columns([5, 2], gap="medium")
            with left:
                top = st.container()
                fields = main_form(chosen, settings)
                preview_slot = st.container()
                with top if lacks_labels(chosen, data) else st.container():  # what to do first comes first
                    supervised, pair_choice = choose_supervision(chosen, data, settings.options)
            with right, st.container(border=True):
                slot = st.container()
                explain(chosen, data)
            if pair_choice is not None:
                with left:
                    with st.expander("Backbone, split, seed and device", icon=":material/tune:"):
                        values = option_form(RunRequest, options_for(data), first=settings.options)
                    notes = st.container()
                with slot, show_user_errors():
                    request = RunRequest.make({"dataset": data.name, "method": chosen.card.name, "fields": fields,
                                               "preset": "paper" if settings.source == "paper" else "default"}
                                              | values | supervised)
                    if settings.source != "paper":  # `plan` fills in the paper's values
                        request = settings.fill(request)
                    spec = jobs.plan(request, data, pair_choice.given)
                    if settings.source == "paper":
                        with notes:
                            show_departures(spec, data)
                    start(spec, data, pair_choice)
                    show_measured(spec, data, settings, example)
                    with preview_slot:
                        show_preview(spec, data)
                    if pair_choice.given is None:
                        with left:
                            show_several(request, spec, data)
            keep_choices()
    except UserError as error:
        st.error(with_titles(str(error)), icon=":material/error:")
