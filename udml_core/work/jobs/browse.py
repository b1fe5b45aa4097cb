"""Browse a data set without training: features and a map, computed in the background.

The features belong to a run of the method `frozen`, so that every page can show them. The map holds the neighbors of
each image, which near-duplicates and outliers are found from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from udml_core.data.dataset import Dataset
from udml_core.data.encoders import EncoderSpec
from udml_core.data.given.exclusions import excluded_names
from udml_core.runs import Run, RunRequest, list_runs
from udml_core.runs.analyses import MAPS, Analysis, list_analyses, plan_analysis
from udml_core.runs.analyses.kinds.pca import PCA
from udml_core.runs.spec import ExclusionList
from udml_core.runs.tasks import LIVE_STATES
from udml_core.work.jobs.analysis_request import analyse
from udml_core.work.jobs.launch import submit
from udml_core.work.jobs.planning import plan

FRAMES = ("final",)


@dataclass(frozen=True)
class DataAnalysis:
    """What is computed for a map or the audit of a data set.

    Attributes:
        run: The run of the frozen features; None if there is none.
        finished: The finished map of all images, or the finished audit; None if there is none.
        task: The analysis that is waiting or running, or the run of the features that it waits for; None if nothing is
            in progress.
    """

    run: Run | None
    finished: Analysis | None = None
    task: Run | Analysis | None = None


def find_browsing(dataset: Dataset, encoder: EncoderSpec, root: Path) -> DataAnalysis:
    """Return what is computed for browsing a data set with an encoder, without the images that are excluded now.

    Features that are computed now count, whatever their run excludes: the next run needs them. A run that has stored
    them, and excludes other images, does not.

    Args:
        dataset: The data set.
        encoder: The frozen encoder.
        root: The folder of runs.
    """
    listed, runs = ExclusionList.of(excluded_names(dataset)), list(feature_runs(dataset, encoder, root))
    same = [run for run in runs if run.spec().excluded.digest == listed.digest]
    done = next((run for run in same if run.status().state == "done"), None)
    live = next((run for run in [*same, *runs] if (status := run.status()).state in LIVE_STATES
                 and (run in same or not status.can_search)), None)
    return DataAnalysis(None, None, live) if done is None else _with_map(done)


def feature_runs(dataset: Dataset, encoder: EncoderSpec, root: Path) -> Iterator[Run]:
    """Yield the runs of an encoder's frozen features of a data set, whatever images they exclude."""
    for run in list_runs(root):
        spec = run.spec()
        if spec.method == "frozen" and spec.fingerprint == dataset.fingerprint and spec.encoder == encoder:
            yield run


def continue_browsing(dataset: Dataset, encoder: EncoderSpec, root: Path) -> DataAnalysis:
    """Start the next step of browsing unless it is finished or in progress: the features, then the map.

    Raises:
        UserError: The step does not fit the data set.
    """
    state = find_browsing(dataset, encoder, root)
    if state.task is not None or state.finished is not None:
        return state
    if state.run is None:
        return DataAnalysis(None, None, submit_features(dataset, encoder, root))
    return DataAnalysis(state.run, None, analyse(state.run, plan_analysis(PCA, frames=FRAMES)))


def submit_features(dataset: Dataset, encoder: EncoderSpec, root: Path) -> Run:
    """Queue the run that computes the features of a data set.

    Raises:
        UserError: The backbone does not fit the data set.
    """
    request = RunRequest(dataset=dataset.name, method="frozen", backbone=encoder.backbone)
    return submit(plan(request, dataset), root)


def _with_map(run: Run) -> DataAnalysis:
    maps = [analysis for analysis in list_analyses(run, *MAPS)
            if analysis.spec().scope == "all" and "final" in analysis.spec().frames]
    done = next((analysis for analysis in maps if analysis.is_done()), None)
    live = next((analysis for analysis in maps if analysis.status().state in LIVE_STATES), None)
    return DataAnalysis(run, done, None if done else live)
