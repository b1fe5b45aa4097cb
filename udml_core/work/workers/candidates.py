"""Runs that an analysis needs: candidates in a race, trained in the process of the analysis."""

from __future__ import annotations

from collections.abc import Callable

from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset, Report
from udml_core.data.encoder_names import encoders_in
from udml_core.data.encoders import EncoderSpec, choose_spec, feature_width, image_seconds
from udml_core.data.features import features_path
from udml_core.data.refinement_views import View, views_of_step
from udml_core.data.sources.embeddings import table_of
from udml_core.data.speed import measured_speed
from udml_core.exploration.race import FROZEN, Setup
from udml_core.methods import find_method
from udml_core.numerics.refinement.recipe import Views
from udml_core.runs import Run, RunRequest, Spec, create_run
from udml_core.runs.notes import Notes
from udml_core.runs.tasks import TRAINING, Status
from udml_core.work import jobs
from udml_core.work.jobs.advising import TRIAL
from udml_core.work.jobs.estimate import image_kind, view_kind
from udml_core.work.jobs.suggestions import quick_fields
from udml_core.work.sweeps.group import key_of, runs_by_key
from udml_core.work.workers.calibration import calibrate
from udml_core.work.workers.execute import StopRequestedError

Trainer = Callable[[Run, Report], Status]
"""Executes a run in this process and reports its progress; see `train.work_aside`."""
DIMENSION = 512
"""Largest dimension of a head: far fewer lose some of the first results before anything is learned."""
OVERHEAD = 3.0
"""Expected seconds of a run besides features, epochs and a measured evaluation."""


def plan_candidate(run: Run, dataset: Dataset, setup: Setup) -> Spec:
    """Plan the run whose embedding a search refines: a head on few views of all images, or frozen features.

    Args:
        run: The run of the frozen features.
        dataset: Its data set.
        setup: The search.

    Raises:
        UserError: The method or the backbone does not fit the data set.
    """
    own = run.spec()
    request = RunRequest(dataset=dataset.name, method=setup.method, backbone=setup.backbone, split="all",
                         select="last")  # the race judges each candidate once, not each of its epochs
    if encoders_in(own.backbone) <= encoders_in(setup.backbone):  # the same, or another encoder beside it
        request = request.model_copy(update={name: getattr(own, name) for name in ("pooling", "size", "weights")})
    if setup.method != FROZEN:
        method = find_method(setup.method)
        fields = quick_fields(method, lambda _fields: 0.0)  # without measured times, which vary between attempts
        if "dimension" in method.model_fields:
            width = feature_width(jobs.encoder_of(dataset, setup.backbone, request)) or DIMENSION
            fields["dimension"] = min(DIMENSION, width, len(dataset))
        request = request.model_copy(update={"fields": fields})
    return jobs.plan(request, dataset)


def finish_candidate(run: Run, dataset: Dataset, setup: Setup, train: Trainer | None, report: Report) -> Run:
    """Return the finished run of a search; an equal finished run is used again, and an interrupted one resumed.

    While another run holds the device, the training waits for it and reports `WAITING`.

    Args:
        run: The run of the frozen features.
        dataset: Its data set.
        setup: The search.
        train: Executes a run.
        report: Receives the progress.

    Raises:
        UserError: The run failed or was stopped.
    """
    spec = plan_candidate(run, dataset, setup)
    candidate = runs_by_key(run.root).get(key_of(spec))
    if candidate is not None and candidate.status().state == "done":
        return candidate
    if train is None:
        raise UserError(f"{setup.method} must be trained, which only a worker does. Start the analysis by its queue.")
    if candidate is None:
        candidate = create_run(spec, run.root)
        candidate.write_notes(Notes.make(tags=(TRIAL,)))
    candidate.clear_failure()
    problems, share_of = list[UserError](), _Shares(candidate)

    def follow(share: float, step: str) -> None:
        try:
            report(share_of(share, step), step)
        except UserError as error:  # the time is up: the run keeps its finished epochs
            problems.append(error)
            candidate.request_stop()

    status = train(candidate, follow)
    if status.state == "stopped" and not candidate.stop_requested():
        raise StopRequestedError  # a signal to this process, which ends the analysis too
    if status.state != "done":
        report(0.0, "stopping")  # ends the analysis too if it was stopped
        raise problems[0] if problems else UserError(status.message or f"The run {candidate.id} is {status.state}.")
    return candidate


class _Shares:
    """The share of a whole training, whose steps report the share of an epoch."""

    def __init__(self, run: Run) -> None:
        self._run, self._last, self._status = run, 1.0, Status()

    def __call__(self, share: float, step: str) -> float:
        """Return the share of all epochs during the training, and the share of any other step as it is."""
        if step != TRAINING:
            return share
        if share <= self._last:  # another epoch begins
            self._status = self._run.stored_status()
        self._last = share
        return (self._status.epoch + share) / max(1, self._status.epochs)


def training_time(run: Run, dataset: Dataset, setup: Setup) -> tuple[float, bool]:
    """Return the expected time until the run of a search is finished.

    Args:
        run: The run of the frozen features.
        dataset: Its data set.
        setup: The search.

    Returns:
        The seconds, 0 if it is finished, and whether they rest on earlier runs on this machine.

    Raises:
        UserError: The method or the backbone does not fit the data set.
    """
    spec = plan_candidate(run, dataset, setup)
    candidate = runs_by_key(run.root).get(key_of(spec))
    if candidate is not None and candidate.status().state == "done":
        return 0.0, True
    expected = jobs.estimate(spec, dataset)
    return OVERHEAD + expected.seconds, expected.measured


def feature_time(run: Run, dataset: Dataset, backbone: str, views: Views | None) -> tuple[float, bool]:
    """Return the expected time of features that are not stored.

    Args:
        run: The run of the frozen features.
        dataset: Its data set.
        backbone: The backbone.
        views: The views of each image; None for the images themselves.

    Returns:
        The seconds, and whether they rest on measurements on this machine.
    """
    if table_of(backbone) is not None:  # the vectors of a judge that another program computed
        return 0.0, True
    own = run.spec()
    encoder = own.encoder if backbone == own.backbone else choose_spec(backbone, dataset.native_size, dataset.gray)
    times = [_source_time(own, dataset, source, views, encoder == own.encoder) for source in encoder.sources]
    return sum(seconds for seconds, _ in times), all(is_measured for _, is_measured in times)


def _source_time(own: Spec, dataset: Dataset, encoder: EncoderSpec, views: Views | None, is_own: bool
                 ) -> tuple[float, bool]:
    """Return the expected seconds of the features of one encoder that are not stored, and whether they are measured."""
    whole = features_path(dataset, encoder)
    paths = [whole] if views is None else [
        whole if view == View() else whole.with_name(f"{whole.stem}-{view.key}.npy") for view in views_of_step(views)]
    missing = sum(not path.exists() for path in paths)
    if missing:
        calibrate(dataset, encoder, own.device)
    measured = [measured_speed(image_kind(encoder, own.device))]
    if views is not None and is_own:  # from stored images, which are read faster than at first
        measured.insert(0, measured_speed(view_kind(own)))
    known = next(filter(None, measured), None)
    return missing * len(dataset) * (known or image_seconds(encoder)), known is not None or not missing
