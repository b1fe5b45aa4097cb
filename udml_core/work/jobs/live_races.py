"""Races for the best search and trainings that run or wait, so that every page can follow them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from udml_core.data.dataset import Dataset
from udml_core.data.encoders import EncoderSpec
from udml_core.exploration.race import FROZEN
from udml_core.runs import Run, list_runs
from udml_core.runs.analyses import Analysis, AnalysisSpec, analysis_at, list_analyses
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.tasks import LIVE_STATES, Status
from udml_core.work.jobs.advising import find_features, is_trial, wanted_advice
from udml_core.work.jobs.raced import kind_of


@dataclass(frozen=True)
class LiveRace:
    """A race that runs or waits.

    Attributes:
        kind: Its choices.
        spec: The request.
        run: The run of the features from which it starts, finished or not.
    """

    kind: Advice
    spec: AnalysisSpec
    run: Run

    @property
    def analysis(self) -> Analysis:
        """The race, which has no folder while it waits for its features."""
        return analysis_at(self.run, self.spec)

    @property
    def started(self) -> float | None:
        """Its start in seconds since 1970; None while it waits."""
        return self.analysis.stored_status().started if self.analysis.has_spec() else None

    def status(self) -> Status:
        """Return the status of the race, or of its features while it waits for them."""
        return self.analysis.status() if self.analysis.has_spec() else self.run.status()

    def goes_on(self) -> bool:
        """Return whether it still runs or waits."""
        if self.analysis.has_spec():
            return self.analysis.status().state in LIVE_STATES
        return wanted_advice(self.run) == self.spec and self.run.status().state in ("done", *LIVE_STATES)


@dataclass(frozen=True)
class LiveTraining:
    """A training that a user started, which runs or waits.

    Attributes:
        run: Its run.
    """

    run: Run

    def status(self) -> Status:
        """Return the status of the training."""
        return self.run.status()

    def goes_on(self) -> bool:
        """Return whether it still runs or waits."""
        return self.status().state in LIVE_STATES


def live_trainings(root: Path) -> list[LiveTraining]:
    """List the trainings that run or wait, the running ones first, without the trials of races."""
    runs = (run for run in list_runs(root) if not run.is_example and run.spec().method != FROZEN)
    live = [LiveTraining(run) for run in runs if run.stored_status().state in LIVE_STATES and not is_trial(run)]
    return sorted((training for training in live if training.goes_on()),
                  key=lambda training: training.status().state == "waiting")


def live_races(root: Path) -> list[LiveRace]:
    """List the races of all data sets that run or wait, the running ones first.

    It looks into every run of frozen features.
    """
    starts = (run for run in list_runs(root) if not run.is_example
              and (run.spec().method, run.spec().split) == (FROZEN, "all"))
    live = [race for run in starts for race in _races_from(run) if race.goes_on()]
    return sorted(live, key=lambda race: race.started is None)


def other_live_races(dataset: Dataset, encoder: EncoderSpec, spec: AnalysisSpec | None, root: Path) -> list[LiveRace]:
    """List the races of the same images that run or wait under other choices, the newest first.

    Args:
        dataset: The data set.
        encoder: The encoder of the frozen features.
        spec: The request that is shown; None if none is.
        root: The folder of runs.
    """
    run = find_features(dataset, encoder, root)
    return [] if run is None else [race for race in _races_from(run) if race.spec != spec]


def _races_from(run: Run) -> Iterator[LiveRace]:
    """Yield the race that waits for a run's features, then the races that started from them, the newest first."""
    wanted = wanted_advice(run)
    if wanted is not None:
        yield LiveRace(kind_of(wanted), wanted, run)
    for analysis in list_analyses(run, Advice):
        if analysis.status().state in LIVE_STATES:
            yield LiveRace(kind_of(analysis.spec()), analysis.spec(), run)
