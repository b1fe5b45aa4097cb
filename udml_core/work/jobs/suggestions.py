"""Settings for a quick trial, and settings that the records favor."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from udml_core.data.dataset import Dataset
from udml_core.data.given.pairs import PairSet
from udml_core.methods import Method, find_method
from udml_core.runs import RunRequest
from udml_core.work.jobs.estimate import estimate
from udml_core.work.jobs.planning import plan
from udml_core.work.jobs.presets import ImageKind, image_kind, show

Suggestion = Literal["quick", "best"]

BEST = Path(__file__).with_name("best.toml")
QUICK_SECONDS = 60.0
"""Expected time of a quick run."""
QUICK_VIEWS = 2


@dataclass(frozen=True)
class Best:
    """What the records favor for a method and a kind of images.

    Attributes:
        fields: Hyper-parameters that differ from the defaults.
        says: The evidence.
        method: The method that the records favor on such images; empty if no record compares methods on them.
        method_says: The evidence for that method.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    says: str = ""
    method: str = ""
    method_says: str = ""


def best_settings(method: str, images: ImageKind) -> Best:
    """Return the settings that the records favor; without fields if no record varies the method's on such images."""
    content = _read()
    kind = content["kind"].get(images, {})
    entries = (entry for entry in content["best"] if entry["method"] == method and images in entry["images"])
    entry: Mapping[str, Any] = next(entries, {})
    return Best(entry.get("fields", {}), entry.get("says", ""), kind.get("method", ""), kind.get("says", ""))


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
    fields: Mapping[str, Any]
    if suggestion == "best":
        best = best_settings(method.card.name, image_kind(dataset))
        fields, reason = best.fields, best.says or (
            f"No record varies {method.card.title} on such images with a gain.")
    else:
        fields = quick_fields(method, lambda fields: expected_seconds(_fill(request, fields), dataset, pairs))
        seconds = expected_seconds(_fill(request, fields), dataset, pairs)
        reason = f"For a first look, not for results; about {seconds:.0f} s are expected."
    filled = {name: value for name, value in fields.items() if name not in request.fields}
    words = ", ".join(f"{name}={show(value)}" for name, value in filled.items()) or "default values"
    return _fill(request, fields), f"{words}. {reason}"


def _fill(request: RunRequest, fields: Mapping[str, Any]) -> RunRequest:
    """Return a request with further fields; the request's own fields stay."""
    chosen = {name: getattr(request, name) for name in request.model_fields_set}
    return RunRequest.make(chosen | {"fields": {**fields, **request.fields}})


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads(BEST.read_text(encoding="utf-8"))
