"""Train: choose data set, method and options, see the expected time, start a run."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import streamlit as st

from pages.parts.base.address import choice_from_address, write_address
from pages.parts.base.cached import load_dataset
from pages.parts.base.run_status import duration
from pages.parts.base.user_errors import show_user_errors
from pages.parts.kit.form import method_form, option_form
from pages.parts.labels.few_labels import assigned_now
from pages.parts.pairs.source import PairChoice, pick_pairs
from pages.parts.results.table import measure_words
from udml_core import jobs
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.splits import make_split
from udml_core.errors import UserError
from udml_core.methods import METHODS, Method
from udml_core.runs import RunRequest, Spec, form_options, list_runs, runs_folder
from udml_core.tasks import LIVE_STATES

NEEDS = {"none": "Needs no labels.", "few": "Needs a few labels.", "pairs": "Needs pairs of images.",
         "all": "Needs labels of all images."}
SETTINGS = {"default": "Default values", "paper": "As printed in the paper"}
PROMISES = {"gain": "Expected to improve on its own start", "may fall": "May end below its start"}


def choose_dataset() -> Dataset | None:
    """Choose an available data set; a link can also open the folder of an earlier run."""
    titles = {source.name: source.title for source in catalog.sources() if source.missing() is None}
    wanted = st.query_params.get("dataset", next(iter(titles)))
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


def choose_method() -> type[Method]:
    """Choose a method."""
    by_name = {method.card.name: method for method in METHODS}
    wanted = st.query_params.get("method", METHODS[0].card.name)
    name = st.selectbox("Method", list(by_name), list(by_name).index(wanted) if wanted in by_name else 0,
                        format_func=lambda name: by_name[name].card.title)
    st.query_params["method"] = name
    return by_name[name]


def explain(method: type[Method]) -> None:
    """Show the method's idea, paper and expected effect."""
    card = method.card
    st.markdown(card.idea)
    st.caption(f"{NEEDS[card.supervision]} {PROMISES[card.promise]}: {card.source} {card.paper}")


def choose_settings(method: type[Method], dataset: Dataset) -> jobs.Preset | None:
    """Choose between the default values and the paper's; return the paper's settings if they are chosen."""
    wanted = choice_from_address("preset", SETTINGS, "default")
    name = st.selectbox("Settings", list(SETTINGS), list(SETTINGS).index(wanted), key="preset",
                        format_func=SETTINGS.__getitem__,
                        help="The values to start from. You can change every value below.")
    write_address("preset", name, "default")
    if name != "paper":
        return None
    preset = jobs.find_preset(method.card.name, jobs.image_kind(dataset))
    if preset is None:
        st.info(f"No paper prints settings for {method.card.title}, so the default values are shown.",
                icon=":material/info:")
        return None
    st.caption(f"The paper of {preset.paper} reports {', '.join(map(measure_words, preset.measures))}. Its training "
               "can take days on a CPU; see the expected time below.")
    return preset


def show_departures(spec: Spec, dataset: Dataset) -> None:
    """List how the chosen settings differ from the paper's."""
    texts = jobs.departures(spec, dataset)
    title = f"Departures from the paper: {len(texts)}" if texts else "No departures from the paper"
    with st.expander(title, icon=":material/difference:"):
        st.markdown("\n".join(f"- {text}" for text in texts) or "Every printed setting is as in the paper.")


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
    if supervision not in ("few", "pairs"):
        return {}, PairChoice()
    with st.container(border=True):
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
            st.page_link("pages/labels.py", label="Assign labels", icon=":material/new_label:")
    return values, pairs


def start(spec: Spec, dataset: Dataset, pairs: PairChoice) -> None:
    """Show the expected time, memory and disk space, and the button."""
    expected = jobs.estimate(spec, dataset)
    waiting = sum(run.stored_status().state in LIVE_STATES for run in list_runs(runs_folder()))
    columns = st.columns(4)
    columns[0].metric("Features", duration(expected.feature_seconds) if expected.feature_seconds else "cached")
    columns[1].metric("Training, about", duration(expected.training_seconds))
    columns[2].metric("Memory, about", f"{expected.memory / 1e9:.1f} GB")
    columns[3].metric("New files, about", f"{expected.disk / 1e9:.1f} GB" if expected.disk else "none")
    st.caption("A rough estimate for two CPU cores; a GPU is faster."
               + (f" Runs waiting or running: {waiting}. A device trains one run at a time." if waiting else ""))
    if pairs.given is not None:
        train = make_split(dataset, spec.split, spec.select, spec.seed).train
        st.caption(f"{len(pairs.given.within(train)):,} of the {len(pairs.given):,} pairs have both images in the "
                   "training half.")
    if st.button("Start training", type="primary", icon=":material/play_arrow:"):
        with show_user_errors():
            run = jobs.submit(spec, runs_folder(), pairs.given)
            st.switch_page("pages/runs.py", query_params={"run": run.id})


st.title("Train")
try:
    left, right = st.columns(2, gap="large")
    with left:
        data = choose_dataset()
    with right:
        chosen = choose_method()
    if data is not None:
        explain(chosen)
        preset = choose_settings(chosen, data)
        shown_fields, shown_options = (preset.field_values(), preset.option_values()) if preset else ({}, {})
        with st.container(border=True):
            fields = method_form(chosen, f"train-{chosen.card.name}" + (f"-{preset.images}" if preset else ""),
                                 shown_fields)
        supervised, pair_choice = choose_supervision(chosen, data, shown_options)
        if pair_choice is not None:
            with st.expander("Backbone, split, seed and device", icon=":material/tune:"):
                values = option_form(RunRequest, form_options(RunRequest), first=shown_options)
            with show_user_errors():
                request = RunRequest.make({"dataset": data.name, "method": chosen.card.name, "fields": fields,
                                           "preset": "paper" if preset else "default"} | values | supervised)
                spec = jobs.plan(request, data, pair_choice.given)
                if preset:
                    show_departures(spec, data)
                start(spec, data, pair_choice)
except UserError as error:
    st.error(str(error), icon=":material/error:")
