"""The command line that starts an equal run."""

from __future__ import annotations

import json
import shlex
from typing import Any

from udml_core.base.declaration import Described, describe
from udml_core.runs.request import RunRequest
from udml_core.runs.spec import Spec

PROGRAM = ("python", "-m", "udml_core")
NOT_OPTIONS = ("dataset", "method", "fields")


def command_of(spec: Spec, program: tuple[str, ...] = PROGRAM) -> str:
    """Return the command that starts a run with an equal spec, on one line.

    Options and hyper-parameters at their default are left out. A preset replaces whatever is left out, so with the
    preset `paper` all are written. A run that continues another is continued again.
    """
    words = [*program, "train", "--dataset", spec.dataset, "--method", spec.method]
    whole = spec.preset != "default"
    if spec.starts_from is not None:
        words = [*program, "continue", spec.starts_from, "--device", spec.device]
    else:
        for field in describe(RunRequest):
            if field.name not in NOT_OPTIONS:
                words += _option(field, getattr(spec, field.name), whole)
    if spec.pairs == "given":
        words.append("--given-pairs")
    fields = spec.fields if whole or spec.starts_from is not None else spec.changed_fields()
    for name, value in fields.items():
        words += ["--set", f"{name}={json.dumps(value, ensure_ascii=False)}"]
    return shlex.join(words)


def command_limits(spec: Spec) -> str:
    """Return why the command may start another run than this one; empty if it cannot."""
    if spec.pairs == "given":
        return "The command uses the pairs given in the app at its start, not the pairs stored with this run."
    if spec.excluded.count:
        return "The command leaves out the images that are excluded at its start, not the list stored with this run."
    if spec.labels == "given":
        return "The command uses the labels assigned in the app at its start, not the labels stored with this run."
    return ""


def _option(field: Described, value: Any, whole: bool) -> list[str]:
    """Return the words of an option; none for a default that no preset replaces."""
    if value is None or (value == field.default and not whole):
        return []
    if field.name == "most_pairs" and value == field.default:  # not allowed with given pairs, and no preset sets it
        return []
    name = field.shown.options[0] if field.shown.options else "--" + field.name.replace("_", "-")
    if isinstance(value, bool):
        return [name if value else name.replace("--", "--no-", 1)]
    return [name, str(value)]
