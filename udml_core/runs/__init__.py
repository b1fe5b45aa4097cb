"""Runs: `request`, stored `spec`, `folder`, `selection` of epochs, and `search`."""

from udml_core.paths import runs_folder
from udml_core.runs.folder import Run, create_run
from udml_core.runs.request import RunRequest, form_options
from udml_core.runs.search import find_run, list_runs
from udml_core.runs.selection import TRAINED_RANK, best_epoch, first_collapsed
from udml_core.runs.spec import Spec, installed_versions

__all__ = ["TRAINED_RANK", "Run", "RunRequest", "Spec", "best_epoch", "create_run", "find_run", "first_collapsed",
           "form_options", "installed_versions", "list_runs", "runs_folder"]
