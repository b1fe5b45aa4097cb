"""The settings that the form of the page Lab begins with, such as an example's, the paper's or a link's."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.methods import Method, find_method
from udml_core.runs import Run, RunRequest, find_run, form_options, runs_folder
from udml_core.work import jobs
from udml_core.work.jobs.presets import ImageKind

from ..draw.form import option_key
from ..shell.address import choice_from_address, write_address
from ..shell.cached import load_dataset
from ..shell.run_status import escaped
from ..shell.setting_words import setting_words
from ..shell.views import view_link

SETTINGS = {"race": "As in the race", "example": "As in the example", "default": "Default values",
            "quick": "Quick, about a minute", "best": "Best in the records", "paper": "As printed in the paper"}
CHANGED = "Changed"
"""What the box says when the form's values differ from the settings that it began with."""
BEGUN_WITH = {"race": "the values of the race", "example": "the example's values", "default": "the default values",
              "quick": "the quick values", "best": "the best values in the records", "paper": "the paper's values"}
BACKS = "train-backs"
"""Session key of the number of times that the form went back to its settings."""
WITH_OPTIONS = ("race", "example", "paper")
"""Settings that also replace options of a run."""
OF_RUNS = ("race", "example")
"""Settings of a run on the same images."""
KnownRuns = Mapping[str, Run]
"""The runs on the same images whose settings are offered, by the name of the settings, the first choice first."""
BOX = "preset"
KEPT = "train-kept"
RESTORED, SUGGESTED = "train-restored", "train-suggested"
"""Session keys: whether the address holds the last visit's choices, and by data set the method suggested then."""
CHOICES = ("dataset", "method", "preset", jobs.FIELDS)


def restore_choices() -> None:
    """Fill the address from the run that `like` names, or from the choices of the last visit."""
    query = st.query_params
    if "like" in query:
        query.from_dict({BOX: "default", **_link_like(query["like"])})
        st.rerun()
    if not any(name in query for name in CHOICES) and st.session_state.get(KEPT):
        query.from_dict({**st.session_state[KEPT], **query.to_dict()})
        st.session_state[RESTORED] = True
        st.rerun()


def keep_choices() -> None:
    """Keep the address's choices for the next visit in this session."""
    names = {*CHOICES, *form_options(RunRequest), *(name for kind in ("few", "pairs")
                                                    for name in form_options(RunRequest, kind))}
    st.session_state[KEPT] = {name: value for name, value in st.query_params.items() if name in names}


def follow_suggestion(first: str, fingerprint: str) -> None:
    """Take the method that is suggested now if the last visit kept the one suggested then, such as before a race.

    Args:
        first: Name of the method that is suggested.
        fingerprint: Of the data set.
    """
    suggested, query = st.session_state.setdefault(SUGGESTED, {}), st.query_params
    before = suggested.get(fingerprint, first)
    suggested[fingerprint] = first
    if st.session_state.pop(RESTORED, False) and query.get("method") == before != first and jobs.FIELDS not in query:
        query["method"] = first
        query.pop(BOX, None)


def _link_like(text: str) -> dict[str, str]:
    """Return the address of a run's settings; without one, the address keeps nothing and a message says so."""
    try:
        spec = find_run(text, runs_folder()).spec()
        images: ImageKind = "photographs"
        with suppress(UserError):
            images = jobs.image_kind(load_dataset(spec.dataset))
        return jobs.link_of(spec, images)
    except UserError as error:
        st.session_state["train-like-failure"] = f"The link's run could not be used: {error}"
        return {}


def known_runs(raced: Run | None, example: Run | None) -> KnownRuns:
    """Return the runs whose settings are offered: of a race before an example."""
    return {name: run for name, run in zip(OF_RUNS, (raced, example), strict=True) if run is not None}


def offered_example(dataset: Dataset, method: str = "") -> Run | None:
    """Return an example on the data set's images, if possible of a method; None if there is none."""
    return jobs.find_example(dataset, runs_folder(), method)


def wanted_settings(known: KnownRuns, method: str, is_advised: bool) -> str:
    """Return the name of the settings to begin with, which the address decides.

    If it states no values, these are a race's that advises a training, else an example's, else the default values: a
    training of a race that advises none was short, and exists already.

    Args:
        known: The runs on the same images whose settings are offered.
        method: The method.
        is_advised: Whether the newest race does not keep the user from a training.
    """
    stated = {jobs.FIELDS, *jobs.OPTIONS} - {"labels", "labels_per_class"}
    first = "default" if any(name in st.query_params for name in stated) else next(
        (name for name in known if is_advised or name != "race"), "default")
    wanted = choice_from_address(BOX, _titles(known, method), first)
    st.session_state[BOX] = wanted  # also after another data set was chosen
    return wanted


def _titles(known: KnownRuns, method: str) -> dict[str, str]:
    """Return the settings that are offered; a run of the method with a known result takes the place of a quick one."""
    is_known = any(run.spec().method == method for run in known.values())
    return {name: title for name, title in SETTINGS.items()
            if name in known or (name not in OF_RUNS and not (is_known and name == "quick"))}


def is_changed(fields: Mapping[str, Any]) -> bool:
    """Return whether values differ from the settings that the form begins with.

    Args:
        fields: The hyper-parameters that differ from these settings; the address holds the options that differ.
    """
    return bool(fields) or any(name in st.query_params for name in jobs.OPTIONS)


def choose_settings(wanted: str, known: KnownRuns, method: str, settings: jobs.Settings, changed: bool) -> None:
    """Choose the settings to begin with; with a run on the same images, the address always names them.

    Args:
        wanted: The name of the settings that the form begins with.
        known: The runs on the same images whose settings are offered.
        method: The method.
        settings: The values of these settings.
        changed: Whether the form's values differ from them, which the box then says.
    """
    titles = _titles(known, method)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        st.selectbox("Settings", list(titles), key=BOX, on_change=_take_settings,
                     format_func=lambda name: CHANGED if changed and name == wanted else titles[name],
                     help="The values to start from. You can change every value below.")
        # Always there, so that the sliders below stay under the pointer when a value changes.
        st.button(":material/undo:", key="train-back", on_click=_go_back, args=(settings,), disabled=not changed,
                  help=f"Back to {BEGUN_WITH[wanted]}.")
    write_address(BOX, wanted, "" if known else "default")


def _go_back(settings: jobs.Settings) -> None:
    """Drop the values that differ from the settings."""
    forget_fields()
    st.session_state[BACKS] = times_back() + 1
    for name in [name for name in jobs.OPTIONS if name in st.query_params]:
        del st.query_params[name]
        default = RunRequest.model_fields[name].get_default()
        st.session_state[option_key(name, settings.options)] = settings.options.get(name, default)


def times_back() -> int:
    """Return how often the form went back to its settings: each time it shows new widgets with their values."""
    return int(st.session_state.get(BACKS, 0))


def explain_settings(name: str, method: type[Method], dataset: Dataset, known: KnownRuns) -> jobs.Settings:
    """Say what the chosen settings are, and return them."""
    match name:
        case "race":
            return _of_run(jobs.race_settings(known[name]))
        case "example":
            return _of_run(jobs.example_settings(known[name], method))
        case "paper":
            return _paper(method, dataset)
        case "quick":
            return _possible(_quick(method, dataset), method, dataset)
        case "best":
            return _possible(_best(method, dataset), method, dataset)
    return _possible(jobs.Settings(), method, dataset)


def _possible(settings: jobs.Settings, method: type[Method], dataset: Dataset) -> jobs.Settings:
    """Return settings with the dimension that a run gets where a few images or short features span less."""
    if "dimension" in settings.fields or "dimension" not in method.model_fields:
        return settings
    try:
        stated = jobs.read_options({name: st.query_params[name] for name in jobs.OPTIONS if name in st.query_params})
        request = settings.fill(RunRequest.make({**stated, "dataset": dataset.name, "method": method.card.name}))
        spec = jobs.plan(request, dataset)
    except UserError:  # the form explains what does not fit
        return settings
    dimension, usual = spec.fields["dimension"], method.model_fields["dimension"].get_default()
    if not jobs.words_of_dimension(spec, request):
        return settings
    st.caption(f"The dimension begins at {dimension}, not at the default of {usual}, because the training images and "
               "their features span no more.")
    return replace(settings, fields={**settings.fields, "dimension": dimension})


def _take_settings(name: str = "") -> None:
    """Write other settings to the address, and drop values that belong to the settings before.

    Args:
        name: The settings; by default the choice in the box.
    """
    name = name or st.session_state[BOX]
    if {name, st.query_params.get(BOX)} & set(WITH_OPTIONS):
        for option in jobs.OPTIONS:
            st.query_params.pop(option, None)
    forget_fields()
    st.query_params[BOX] = name


def forget_fields() -> None:
    """Drop the address's hyper-parameters, which belong to other settings."""
    st.query_params.pop(jobs.FIELDS, None)


def _of_run(settings: jobs.Settings) -> jobs.Settings:
    """Say which run the settings are of, with the button that takes the default values."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(escaped(settings.says), width="content")
        st.button("Use the default values", key="train-defaults", type="tertiary", icon=":material/restart_alt:",
                  on_click=_take_settings, args=("default",))
    return settings


def _paper(method: type[Method], dataset: Dataset) -> jobs.Settings:
    preset = jobs.find_preset(method.card.name, jobs.image_kind(dataset))
    if preset is None:
        st.info(f"No paper prints settings for {method.card.title}, so the default values are shown.",
                icon=":material/info:")
        return jobs.Settings()
    settings = preset.settings()
    st.caption(settings.says)
    return settings


def _quick(method: type[Method], dataset: Dataset) -> jobs.Settings:
    options = {name: st.query_params[name] for name in ("backbone", "pooling", "split") if name in st.query_params}

    written = jobs.read_fields(st.query_params.get(jobs.FIELDS, ""), method)

    def seconds(fields: Mapping[str, Any]) -> float:
        request = RunRequest.make(options | {"dataset": dataset.name, "method": method.card.name,
                                             "fields": {**written, **fields}})
        return jobs.expected_seconds(request, dataset)

    try:
        settings = jobs.quick_settings(method, seconds)
        is_long = seconds(settings.fields) > 1.5 * jobs.QUICK_SECONDS
    except UserError:  # the form explains what does not fit
        return jobs.Settings("quick")
    st.caption(_listed(settings, method) + (" Fewer epochs do not make it shorter." if is_long else ""))
    return settings


def _best(method: type[Method], dataset: Dataset) -> jobs.Settings:
    images = jobs.image_kind(dataset)
    settings = jobs.best_settings(method, images)
    favored, evidence = jobs.favored_method(images)
    st.caption(f"{_listed(settings, method)} {evidence}".rstrip())
    if favored and favored != method.card.name:
        view_link("train", label=f"Use {find_method(favored).card.title}",
                     icon=":material/swap_horiz:", query_params={"dataset": dataset.name, "method": favored,
                                                                 "preset": "best"})
    return settings


def _listed(settings: jobs.Settings, method: type[Method]) -> str:
    """Return the fields of settings, and the reason for them."""
    values = ", ".join(setting_words(name, value, method.card.name) for name, value in settings.fields.items())
    return f"{values or 'Default values'}. {settings.says}"
