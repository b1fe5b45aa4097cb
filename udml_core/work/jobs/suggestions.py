"""Settings for a quick trial, and settings that the records favor."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from udml_core.data.dataset import Dataset
from udml_core.data.given.pair_sets import PairSet
from udml_core.exploration.race import FROZEN
from udml_core.exploration.race_running import METHODS
from udml_core.methods import Method, find_method
from udml_core.runs import Run, RunRequest
from udml_core.work.jobs.estimate import estimate
from udml_core.work.jobs.links import settings_like
from udml_core.work.jobs.planning import plan
from udml_core.work.jobs.presets import ImageKind, image_kind, show
from udml_core.work.jobs.settings import Settings

Suggestion = Literal["quick", "best"]

BEST = Path(__file__).with_name("best.toml")
QUICK_SECONDS = 60.0
"""Expected time of a quick run."""
QUICK_VIEWS = 2
WATCHED = 10
"""Epochs by default from which a training is worth watching."""


def best_settings(method: type[Method], images: ImageKind) -> Settings:
    """Return the settings that the records favor; without fields if no record varies the method's on such images."""
    entries = (entry for entry in _read()["best"] if entry["method"] == method.card.name and images in entry["images"])
    entry: Mapping[str, Any] = next(entries, {})
    return Settings("best", entry.get("fields", {}), says=entry.get("says") or (
        f"No record varies {method.card.title} on such images with a gain."))


def favored_method(images: ImageKind) -> tuple[str, str]:
    """Return the method that the records favor on such images, and the evidence; empty texts if no record compares."""
    kind = _read()["kind"].get(images, {})
    return kind.get("method", ""), kind.get("says", "")


def first_method(dataset: Dataset, root: Path, example: str = "") -> str:
    """Return the name of the method that the page Lab opens with, which needs no labels.

    It is the method of the best search of the newest race on these images; if that search needs no training, that of
    the training with the largest gain there, if possible one that trains long enough to be watched. Else it is the only
    method that the benchmark supports on every data set, unless the race has tried it already: then the first that
    races try. Without a race, an example on the data set comes first. A link comes before all of them.

    Args:
        dataset: The data set.
        root: The folder of runs.
        example: The method of an example on the data set; empty without one.
    """
    # Both load scipy, which planning does not need.
    from udml_core.results.label_free import SUPPORTED
    from udml_core.work.jobs.concluding import suggested_by_race

    suggestion = suggested_by_race(dataset, root)
    if suggestion is None:
        return example or SUPPORTED
    if suggestion.is_trained:
        return suggestion.method
    race = suggestion.race
    trained = [outcome for outcome in race.judged if outcome.setup.method != FROZEN]
    watched = [outcome for outcome in trained if default_epochs(outcome.setup.method) >= WATCHED] or trained
    if watched:
        return max(watched, key=lambda outcome: race.gain(outcome).difference).setup.method
    is_tried = any(step.name == SUPPORTED for outcome in race.judged for step in outcome.setup.parsed.steps)
    return METHODS[0] if is_tried else SUPPORTED


def default_epochs(method: str) -> int:
    """Return for how many epochs a method trains by default; 0 if it trains none."""
    field = find_method(method).model_fields.get("epochs")
    return 0 if field is None else int(field.default)


def race_settings(run: Run) -> Settings:
    """Return the settings of the training that a race suggests."""
    return replace(settings_like(run.spec(), "photographs"), source="race",
                   says="Settings of the training that did best in the race.")


def quick_settings(method: type[Method], seconds: Callable[[Mapping[str, Any]], float]) -> Settings:
    """Return the fields of a run of about a minute, with its expected time; see `quick_fields`."""
    fields = quick_fields(method, seconds)
    return Settings("quick", fields, says=f"For a first look, not for results; about {seconds(fields):.0f} s are "
                                          "expected.")


def quick_fields(method: type[Method], seconds: Callable[[Mapping[str, Any]], float]) -> dict[str, Any]:
    """Choose fields for a run of about a minute: a head, few views, and as many epochs as fit.

    Args:
        method: The method.
        seconds: Returns the expected seconds of a run with given fields.

    Returns:
        The fields that differ from the defaults. The run takes longer than a minute if a single epoch does.
    """
    known = method.model_fields
    fields: dict[str, Any] = {}
    if "trains" in known and known["trains"].get_default() != "head":
        fields["trains"] = "head"
    for name in ("views", "kept_views"):
        if name in known and known[name].get_default() > QUICK_VIEWS:
            fields[name] = QUICK_VIEWS
    epochs = int(known["epochs"].get_default()) if "epochs" in known else 1
    while epochs > 1 and seconds(fields | {"epochs": epochs}) > QUICK_SECONDS:
        epochs //= 2
    if "epochs" in known and epochs != known["epochs"].get_default():
        fields["epochs"] = epochs
    return fields


def expected_seconds(request: RunRequest, dataset: Dataset, pairs: PairSet | None = None) -> float:
    """Return the expected seconds of a run.

    Raises:
        UserError: An option does not fit; the message names it.
    """
    return estimate(plan(request, dataset, pairs), dataset).seconds


def apply_suggestion(request: RunRequest, suggestion: Suggestion, dataset: Dataset,
                     pairs: PairSet | None = None) -> tuple[RunRequest, str]:
    """Fill in suggested fields where the request does not set them.

    Args:
        request: The request.
        suggestion: Which settings to suggest.
        dataset: The data set that `request.dataset` names.
        pairs: Pairs to learn from in place of pairs drawn from labels.

    Returns:
        The request with the fields, and a sentence that lists them with their reason.

    Raises:
        UserError: An option does not fit; the message names it.
    """
    method = find_method(request.method)
    if suggestion == "best":
        settings = best_settings(method, image_kind(dataset))
    else:
        settings = quick_settings(method, lambda fields: expected_seconds(
            Settings("quick", fields).fill(request), dataset, pairs))
    values = ", ".join(f"{name}={show(value)}" for name, value in settings.fields.items() if name not in request.fields)
    return settings.fill(request), f"{values or 'default values'}. {settings.says}"


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads(BEST.read_text(encoding="utf-8"))
