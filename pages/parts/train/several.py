"""Try several values: a sweep over any fields, with the form's values for all others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from udml_core.base.declaration import Described, describe, is_number
from udml_core.base.errors import UserError, duration
from udml_core.data.dataset import Dataset
from udml_core.methods import find_method
from udml_core.runs import RunRequest, Spec, form_options, list_runs, runs_folder
from udml_core.work import jobs, sweeps
from udml_core.work.jobs.presets import show

from ..learn.task import note_start
from ..shell.cached import load_dataset
from ..shell.setting_words import setting_title, value_text
from ..shell.user_errors import show_user_errors
from ..shell.views import open_view

NOT_VARIED = ("seed", "device", "precision", "compile", "weights", "exclusions", "labels", "select", "patience")
"""Options that change the machine or the images rather than the result, or that decide how the best is chosen."""
MOST_SEEDS = 20


def show_several(request: RunRequest, spec: Spec, dataset: Dataset) -> None:
    """Offer to start a run for each of several values of any fields.

    Args:
        request: The request of the form; its values are kept for fields that do not vary.
        spec: Its spec.
        dataset: The data set.
    """
    with st.expander("Try several values", icon=":material/ssid_chart:"):
        fields = _variable(request, dataset)
        chosen = st.multiselect("Fields to vary", list(fields), _first(request, fields),
                                key=f"several-{request.method}", placeholder="Choose fields",
                                format_func=lambda name: setting_title(name, request.method),
                                help="All other fields keep the values of the form.")
        with show_user_errors():
            values = {name: _values(fields[name], getattr(spec, name, spec.fields.get(name)), request.method)
                      for name in chosen}
            start, more = st.container(), st.expander("Seeds, limits and name", icon=":material/tune:")
            with more:
                content = _content(request, values) | _extent()
                name = st.text_input("Name of the sweep", key="several-name", max_chars=80,
                                     placeholder=_title(request, chosen), help="A sweep of the same name is replaced; "
                                                                               "its runs are kept and not repeated.")
            count = sweeps.count_runs(sweeps.make_sweep(content, "sweep"))
            expected = jobs.estimate(spec, dataset)
            if count < 2:
                start.caption("Choose fields to vary, or several seeds.")
                return
            seconds = expected.feature_seconds + count * (expected.seconds_without_map - expected.feature_seconds)
            time = f" Together about {duration(seconds)}, measured here." if expected.measured else ""
            with start:
                if st.button(f"Start {count} runs", icon=":material/play_arrow:", key="several-start", width="stretch"):
                    with st.spinner("Planning and queueing …"):
                        planned = sweeps.make_sweep(content, name.strip() or _title(request, chosen))
                        known = {run.id for run in list_runs(runs_folder())}
                        begun = sweeps.start_sweep(planned, runs_folder(), load_dataset)
                        note_start(run for member in begun.sweep.members()
                                   if (run := member.run) and run.id not in known)
                    open_view("sweeps", query_params={"sweep": begun.sweep.id})
                st.caption(f"Their maps grow side by side.{time}", help=(
                    "One run after the other; runs that exist are not repeated. With labels the best values are chosen "
                    "on images of the training half that no run trains on, without labels by the effective rank; the "
                    "test half chooses nothing."))


def _first(request: RunRequest, fields: Mapping[str, Described]) -> list[str]:
    """Return the first field of the form that is a number, which varies at first."""
    names = find_method(request.method).form_fields()[0]
    return [name for name in names if name in fields and fields[name].kind in (int, float)][:1]


def _variable(request: RunRequest, dataset: Dataset) -> dict[str, Described]:
    """Return the fields of the method and the options of a run that can vary, by name."""
    method = find_method(request.method)
    options = [*form_options(RunRequest, method.card.supervision), *form_options(RunRequest)]
    of_images = jobs.IMAGE_OPTIONS if dataset.is_table else ()
    fields = {field.name: field for field in describe(method)}
    return fields | {field.name: field for field in describe(RunRequest)
                     if field.name in options and field.name not in (*NOT_VARIED, *of_images)}


def _values(field: Described, current: Any, method: str) -> list[Any]:
    """Show the input of a field's values and return them.

    Raises:
        UserError: A value is no number.
    """
    title, key = setting_title(field.name, method), f"several-{method}-{field.name}"
    if field.choices or field.kind is bool:
        choices = list(field.choices) or [True, False]
        return st.multiselect(title, choices, choices, key=key, format_func=value_text) or [current]
    written = st.text_input(f"{title}, separated by commas", ", ".join(map(show, _suggested(field, current))), key=key,
                            help=f"{field.text} Allowed: {field.allowed}.")
    return [_parsed(part.strip(), field) for part in written.split(",") if part.strip()] or [current]


def _parsed(text: str, field: Described) -> Any:
    if field.kind is str:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not is_number(value):
        raise UserError(f"{field.words} must be {field.allowed}, got '{text[:40]}'. Write numbers such as 0.5, with "
                        "commas between them.")
    return value


def _suggested(field: Described, current: Any) -> Sequence[Any]:
    """Return values to begin with: half, the same and twice the current number, or nearer to a bound below that."""
    if not isinstance(current, int | float):
        return [] if current is None else [current]
    low, high, step = field.slider if field.default is not None else (current, current, 1)
    above = 2 * current if 2 * current <= high else (current + high) / 2
    several = [current / 2, current, above]
    step = max(int(field.multiple or 1), 1) if field.kind is int else step
    if not field.shown.logarithmic:
        several = [round(step * round(value / step), 6) for value in several]
    return sorted({int(value) if field.kind is int else value for value in several if low <= value <= high} | {current})


def _extent() -> dict[str, Any]:
    """Show how many seeds and combinations are tried, and in what time."""
    seeds = st.number_input("Seeds", 1, MOST_SEEDS, 1, key="several-seeds",
                            help="Each combination runs with seeds 0, 1, …; several seeds show the spread.")
    draws = st.number_input("Random draws", 1, sweeps.MOST_RUNS, None, key="several-draws",
                            placeholder="all combinations",
                            help="Tries this many combinations, drawn at random. Empty: all of them.")
    budget = st.number_input("Budget in minutes", 1, None, None, key="several-budget", placeholder="no limit",
                             help="Creates only runs that fit into this expected time.")
    search = {"search": "grid"} if draws is None else {"search": "random", "draws": draws}
    return {"seeds": int(seeds), "budget": budget} | search


def _content(request: RunRequest, values: dict[str, list[Any]]) -> dict[str, Any]:
    """Return the content of a sweep's file: the form's values, and several for the chosen fields."""
    known = find_method(request.method).model_fields
    fields = request.fields | {name: several for name, several in values.items() if name in known}
    options = {name: getattr(request, name) for name in sweeps.OPTIONS if name in request.model_fields_set}
    return {"data": request.dataset, "methods": {request.method: fields},
            "options": options | {name: several for name, several in values.items() if name not in known}}


def _title(request: RunRequest, chosen: Sequence[str]) -> str:
    """Return a sweep's name if the user gives none."""
    title = find_method(request.method).card.title
    varied = ", ".join(setting_title(name, request.method).split(" · ")[0] for name in chosen)
    return f"{title} on {request.dataset[-30:]}: {varied or 'seeds'}"[:80]
