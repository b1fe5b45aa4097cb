"""Runs: `request`, stored `spec`, `folder`, `selection` of epochs, `search`, and `examples`."""

from udml_core.base.paths import runs_folder
from udml_core.runs.examples import (
    are_examples_shown,
    example_runs,
    hide_examples,
    own_copy,
    repeat_request,
    show_examples,
)
from udml_core.runs.finding import find_run, list_runs
from udml_core.runs.folder import Run, create_run
from udml_core.runs.request import RunRequest, form_options
from udml_core.runs.selection import TRAINED_RANK, best_epoch, first_collapsed
from udml_core.runs.spec import ExclusionList, Spec, installed_versions

__all__ = ["TRAINED_RANK", "ExclusionList", "Run", "RunRequest", "Spec", "are_examples_shown", "best_epoch",
           "create_run", "example_runs", "find_run", "first_collapsed", "form_options", "hide_examples",
           "installed_versions", "list_runs", "own_copy", "repeat_request", "runs_folder", "show_examples"]
