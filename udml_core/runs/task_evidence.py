"""What the runs that a reader started from tasks of the course have stored, as the tasks read it.

Only small files are read, each once until it changes, because a page asks for all runs at every step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from udml_core.base.errors import UserError
from udml_core.base.files import read_record, replace_text, version_of
from udml_core.numerics.explanations import Clusters
from udml_core.runs.analyses import KINDS, Analysis, Projection, Refined, finished_analyses
from udml_core.runs.analyses.kinds.opinion import Opinions
from udml_core.runs.examples import POINTS
from udml_core.runs.finding import list_runs
from udml_core.runs.folder import Run

MOST = 300
"""Newest runs that count."""
STARTED_FILE = "task.json"
"""Says, in a run's folder, from which task it was started, and by which reader."""
OPTIONS = ("dataset", "fingerprint", "method", "backbone", "whitening", "size", "split", "seed", "labels",
           "labels_per_class", "select")
"""Options by which tasks tell runs apart."""


class Started(BaseModel):
    """From where a run was started.

    Attributes:
        lesson: The lesson whose task it was started from.
        reader: The random name that the reader's browser made up.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    lesson: str
    reader: str


@dataclass(frozen=True)
class StoredRun:
    """A finished run of a user.

    Attributes:
        run: The run.
    """

    run: Run

    @property
    def id(self) -> str:
        """The id of the run."""
        return self.run.id

    @property
    def created(self) -> float:
        """When the run was started, in seconds since 1970."""
        return self.run.spec().created

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """The options and hyper-parameters of the run by name."""
        settings: Mapping[str, Any] = _at_version(_read_settings, self.run.folder, "spec.json") or {}
        return settings

    def epochs(self) -> Sequence[Mapping[str, Any]]:
        """Return the curves by epoch, epoch 0 first."""
        return _at_version(_read_epochs, self.run.folder, "metrics.jsonl") or []

    def measures(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the evaluation in percent, by embedding and measure."""
        return self.run.evaluation() or {}

    def cluster_sizes(self) -> Sequence[int]:
        """Return the sizes of the pseudo-labels' clusters in the last epoch; none without clusters."""
        return _at_version(_read_cluster_sizes, self.run.folder, "metrics.jsonl") or ()

    def analyses(self, kind: str) -> Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Return settings and findings of the finished analyses of a kind, newest first; damaged ones are left out."""
        found = ((analysis, _at_version(_read_findings, analysis.folder, "result.npz"))
                 for analysis in finished_analyses(self.run, KINDS[kind]))
        return [(analysis.spec().build_kind().model_dump(), findings) for analysis, findings in found if findings]


def note_task(run: Run, lesson: str, reader: str) -> None:
    """Remember from which task a run was started, and by which reader."""
    replace_text(run.folder / STARTED_FILE, Started(lesson=lesson, reader=reader).model_dump_json())


def own_evidence(root: Path, reader: str) -> dict[str, list[StoredRun]]:
    """List the newest finished runs that a reader started from tasks, newest first, by the lesson of the task.

    A run that was started elsewhere, or by another reader, solves nothing, and neither does an example.

    Args:
        root: The folder of runs.
        reader: The name of the reader.
    """
    own = [(run, started.lesson) for run in list_runs(root) if (started := _started(run)) and started.reader == reader
           and not run.is_example and run.id not in POINTS and run.stored_status().state == "done"]
    by_lesson: dict[str, list[StoredRun]] = defaultdict(list)
    for run, lesson in sorted(own, key=lambda pair: pair[0].spec().created, reverse=True)[:MOST]:
        by_lesson[lesson].append(StoredRun(run))
    return by_lesson


def _started(run: Run) -> Started | None:
    """Return from where a run was started; None if it was not started from a task."""
    try:
        return read_record(Started, run.folder / STARTED_FILE)
    except (OSError, ValueError):
        return None


def _at_version(read: Any, folder: Path, file: str) -> Any:
    """Return what was read of a folder, once for each version of one of its files; None if that is missing."""
    try:
        return read(folder, version_of(folder / file))
    except (OSError, UserError):
        return None


@lru_cache(maxsize=1024)
def _read_settings(folder: Path, _version: tuple[int, ...]) -> dict[str, Any]:
    spec = Run(folder).spec()
    return {**{name: getattr(spec, name) for name in OPTIONS}, **spec.fields}


@lru_cache(maxsize=1024)
def _read_epochs(folder: Path, _version: tuple[int, ...]) -> list[dict[str, Any]]:
    return Run(folder).metrics()[0]


@lru_cache(maxsize=1024)
def _read_cluster_sizes(folder: Path, _version: tuple[int, ...]) -> tuple[int, ...]:
    run = Run(folder)
    records = run.explanations(max(run.epoch_numbers(), default=0))
    labels = next((record.labels for record in records if isinstance(record, Clusters)), None)
    return () if labels is None else tuple(np.bincount(labels).tolist())


@lru_cache(maxsize=1024)
def _read_findings(folder: Path, _version: tuple[int, ...]) -> dict[str, Any]:
    """Return the figures of a finished analysis that tasks read."""
    analysis = Analysis(folder)
    match analysis.result():
        case Projection(continuity=continuity):
            return {"continuity": float(np.nanmean(continuity[-1]))}
        case Refined(measures=measures):
            return dict(measures)
        case Opinions() as opinions:
            return analysis.spec().build_kind().findings(lambda: opinions)
        case _:
            return {}
