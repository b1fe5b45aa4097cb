"""What programs learn about runs and searches over HTTP, as plain values for JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from udml_core.base.errors import UserError
from udml_core.data.dataset import UserImage
from udml_core.runs.finding import list_runs
from udml_core.runs.folder import Run
from udml_core.runs.search.query import Gallery, Query
from udml_core.runs.search.retrieval import Retrieval

EXPOSED_RUNS = "UDML_API"
"""The environment variable with the ids of the runs that programs may search, or patterns of ids."""
NOT_SET = (f"{EXPOSED_RUNS} is not set: start with {EXPOSED_RUNS}='*' udml app to let programs search all runs, or "
           "name the ids of some; see docs/http.md.")
NO_RUNS = (f"No finished run yet: {EXPOSED_RUNS} names the runs that programs may search, and none of them has "
           "finished. Train one in the app, or set the variable; see docs/http.md.")
MOST_HITS = 100
GALLERIES: Mapping[str, Gallery] = {"test": "test", "all": "all"}


class UnknownRunError(UserError):
    """No run of this id is exposed to programs."""

    status = 404


class UnsearchableError(UserError):
    """A run is exposed, but cannot be searched now; the reason may name paths of this computer."""

    status = 409


def _patterns() -> list[str]:
    """Return the ids and the patterns of ids in UDML_API; none if it is not set."""
    return os.environ.get(EXPOSED_RUNS, "").replace(",", " ").split()


def why_no_run() -> str:
    """Return why no run is listed."""
    return NO_RUNS if _patterns() else NOT_SET


def exposed_runs(root: Path) -> list[Run]:
    """List the runs in UDML_API that can be searched, newest first; none if it is not set."""
    patterns = _patterns()
    if not patterns:
        return []
    return [run for run in list_runs(root) if any(fnmatchcase(run.id, pattern) for pattern in patterns)
            and run.status().can_search]


def exposed_run(run_id: str, root: Path) -> Run:
    """Return an exposed run by its id or the beginning of its id.

    Raises:
        UnknownRunError: There is none, or there are several; whether a hidden run has this id is not said.
    """
    runs = [run for run in exposed_runs(root) if run.id.startswith(run_id)]
    exact = [run for run in runs if run.id == run_id]
    if len(exact or runs) == 1:
        return (exact or runs)[0]
    if runs:
        raise UnknownRunError(f"{len(runs)} exposed runs have an id that begins so. Give more of the id. GET /api/runs "
                              "lists the ids.")
    raise UnknownRunError("No exposed run has this id. GET /api/runs lists the ids.")


def run_values(run: Run) -> dict[str, Any]:
    """Return a run as values for JSON."""
    spec = run.spec()
    return {"id": run.id, "method": spec.method, "dataset": spec.dataset_title, "fingerprint": spec.fingerprint}


def open_exposed(run: Run) -> Retrieval:
    """Open a run for search.

    Raises:
        UnsearchableError: Its data set is missing or has changed.
    """
    try:
        return Retrieval(run)
    except UserError as error:
        raise UnsearchableError("This run cannot be searched now. Open it in the app to see the reason.") from error


def search_values(opened: Retrieval, content: bytes, k: int, gallery: str) -> dict[str, Any]:
    """Return the images nearest to the image in a file, as values for JSON.

    Args:
        opened: The run.
        content: The content of the file.
        k: Number of hits.
        gallery: Search all images or the test half.

    Raises:
        UserError: The content is no image, or an argument is out of its range.
    """
    if gallery not in GALLERIES:
        raise UserError(f"gallery must be {' or '.join(GALLERIES)}.")
    if not 1 <= k <= MOST_HITS:
        raise UserError(f"k must be between 1 and {MOST_HITS}, got {k}.")
    vector = opened.embed(UserImage(content, "The body"))
    hits = opened.search(Query((vector,)), k, gallery=GALLERIES[gallery])
    return {"run": opened.run.id, "gallery": gallery, "hits": [
        {"rank": hit.rank, "name": opened.dataset.names[hit.index], "similarity": hit.similarity,
         "distance": hit.distance, "labels": _labels(opened, hit.index)} for hit in hits]}


def _labels(opened: Retrieval, index: int) -> list[str]:
    """Return the names of an image's classes: one, several, or none."""
    dataset = opened.dataset
    if dataset.labels is not None:
        return [dataset.class_names[dataset.labels[index]]]
    classes = dataset.evaluation_classes
    return [] if classes is None else [name for name, has in zip(dataset.class_names, classes[index], strict=True)
                                       if has]
