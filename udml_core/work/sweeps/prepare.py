"""Plan the runs of a sweep: choose the criterion, check every combination, and fit the budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from udml_core.base.errors import UserError, quoted
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.splits import FEWEST_CLASSES, default_split, make_split
from udml_core.runs import RunRequest, Spec
from udml_core.runs.sample_opinion import judge_features
from udml_core.work import jobs
from udml_core.work.jobs.presets import show
from udml_core.work.sweeps.criteria import HOLDING_OUT
from udml_core.work.sweeps.group import key_of
from udml_core.work.sweeps.plan import SweepSpec, chosen_values, requests_of

Loader = Callable[[str], Dataset]


@dataclass(frozen=True)
class Planned:
    """A checked run of a sweep.

    Attributes:
        request: Its request.
        spec: Its spec; None if the method does not allow the combination and the sweep skips it.
    """

    request: RunRequest
    spec: Spec | None

    @property
    def key(self) -> str:
        """The key of its spec; empty without one."""
        return "" if self.spec is None else key_of(self.spec)


def complete(spec: SweepSpec, load: Loader = catalog.load) -> SweepSpec:
    """Choose what the description leaves open: the criterion, and the images that are held out for it.

    With labels the best combination is chosen on images of the training half that no run trains on: on classes held out
    if the test half has other classes too, else on a share of each class.

    Args:
        spec: The description.
        load: Loads a data set by name.

    Raises:
        UserError: The criterion needs labels or held-out images that the runs do not have.
    """
    datasets = [load(name) for name in spec.data]
    assigned = "given" in _options(spec, "labels")
    criterion = spec.criterion or ("given recall@1" if assigned else "validation map@r" if all(
        dataset.labels is not None for dataset in datasets) else _without_labels(spec, datasets))
    holds_out = criterion in HOLDING_OUT
    options = dict(spec.options)
    for dataset in datasets:
        if holds_out and dataset.labels is None:
            raise UserError(f"The criterion {quoted(criterion)} needs class labels, and {dataset.title} "
                            f"{dataset.without_labels}. Use the criterion 'effective rank', which needs no labels.")
    if holds_out and assigned:
        raise UserError(f"The criterion {quoted(criterion)} needs images held out, and runs with assigned labels hold "
                        "out none. Use the criterion 'given recall@1'.")
    if criterion == "given recall@1" and not (assigned and len(_options(spec, "labels")) == 1):
        raise UserError("The criterion 'given recall@1' needs labels that you assigned. Set the option labels: given.")
    selects = _options(spec, "select")
    if holds_out and (none := next((select for select in ("last", "judges") if select in selects), "")):
        raise UserError(f"The criterion {quoted(criterion)} needs images held out, and select '{none}' holds out none. "
                        "Remove select, or use the criterion 'effective rank'.")
    if holds_out and None in selects:
        tests_others = all(_tests_other_classes(dataset, split) for dataset in datasets
                           for split in _options(spec, "split"))
        default = "recall" if criterion == "validation recall@1" else "classes" if tests_others else "validation"
        options["select"] = tuple(dict.fromkeys(select or default for select in selects))
    return spec.model_copy(update={"criterion": criterion, "options": options})


def _without_labels(spec: SweepSpec, datasets: Sequence[Dataset]) -> str:
    """Return the criterion without labels: the second opinion if the features of a judge are stored for every run."""
    are_judged = all(judge_features(dataset, str(backbone)) is not None for dataset in datasets
                     for backbone in _options(spec, "backbone"))
    return "second opinion" if are_judged else "effective rank"


def _options(spec: SweepSpec, name: str) -> tuple[Any, ...]:
    """Return the choices of an option; its default if the sweep does not set it."""
    choices = spec.options.get(name)
    return choices if isinstance(choices, tuple) else (RunRequest.model_fields[name].get_default(),)


def _tests_other_classes(dataset: Dataset, split: Any) -> bool:
    """Return whether the test half has other classes than the training half, which has enough to hold some out."""
    name = split or default_split(dataset)
    if name != "zero-shot" or dataset.labels is None:
        return False
    return len(set(dataset.labels[make_split(dataset, name).train].tolist())) >= 2 * FEWEST_CLASSES


def plan_runs(spec: SweepSpec, load: Loader = catalog.load, gpus: int | None = None) -> list[Planned]:
    """Plan and check every run, in the order in which they start.

    Args:
        spec: The completed description.
        load: Loads a data set by name.
        gpus: Number of GPUs where the runs will work; by default this machine's.

    Raises:
        UserError: A combination is not allowed and the sweep does not skip it, or no combination is allowed.
    """
    datasets = {name: load(name) for name in spec.data}
    planned, problem = [], ""
    for request in requests_of(spec):
        try:
            planned.append(Planned(request, jobs.plan(request, datasets[request.dataset], gpus=gpus)))
        except UserError as error:
            values = ", ".join(f"{name}={show(value)}" for name, value in chosen_values(request, spec.varied).items())
            problem = f"{request.method} on {request.dataset}{f' with {values}' if values else ''}: {error}"
            if spec.invalid == "refuse":
                raise UserError(f"The sweep plans a run that is not possible. {problem} Change the values, or skip "
                                "such combinations with invalid: skip.") from None
            planned.append(Planned(request, None))
    if all(run.spec is None for run in planned):
        raise UserError(f"No combination of the sweep is possible. {problem}")
    return planned


def seconds_of_runs(specs: Sequence[Spec], load: Loader = catalog.load) -> list[float]:
    """Return the expected seconds of runs that start in this order; features count once."""
    return [seconds for seconds, _ in _expected_times(specs, load)]


def measured_seconds(specs: Sequence[Spec], load: Loader = catalog.load) -> float | None:
    """Return the expected seconds of all runs one after another; None unless all rest on runs of this machine."""
    times = list(_expected_times(specs, load))
    return sum(seconds for seconds, _ in times) if all(is_measured for _, is_measured in times) else None


def _expected_times(specs: Sequence[Spec], load: Loader) -> Iterator[tuple[float, bool]]:
    """Yield the expected seconds of each run from its start to its evaluation, and whether they were measured here."""
    encoded = set()
    for spec in specs:
        expected, features = jobs.estimate(spec, load(spec.dataset)), (spec.fingerprint, spec.encoder.key)
        yield (expected.seconds_without_map - (expected.feature_seconds if features in encoded else 0.0),
               expected.measured)
        encoded.add(features)


def fit_budget(expected: Sequence[float], seconds: float) -> list[int]:
    """Return the positions of the runs that fit into a time, in order; a run that does not fit is passed over."""
    chosen, left = [], seconds
    for position, duration in enumerate(expected):
        if duration <= left:
            chosen.append(position)
            left -= duration
    return chosen
