"""Start, stop and resume a sweep as a whole. Its runs wait in the queue of their device like all others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.runs import Spec
from udml_core.runs.engines import EngineRequest, gpus_of
from udml_core.runs.tasks import LIVE_STATES
from udml_core.work import jobs
from udml_core.work.sweeps.group import Member, Stored, Sweep, members_of, runs_by_key, sweep_at, write_sweep
from udml_core.work.sweeps.plan import SweepSpec
from udml_core.work.sweeps.prepare import Loader, Planned, complete, fit_budget, plan_runs, seconds_of_runs
from udml_core.work.sweeps.progress import ENDED, spent_seconds


@dataclass(frozen=True)
class Begun:
    """What starting or resuming a sweep did.

    Attributes:
        sweep: The group.
        created: Number of new runs.
        reused: Number of planned runs that existed before.
        resumed: Number of runs that continue.
        skipped: Number of combinations that a method does not allow.
        left_out: Number of runs that do not fit into the budget.
    """

    sweep: Sweep
    created: int = 0
    reused: int = 0
    resumed: int = 0
    skipped: int = 0
    left_out: int = 0

    @property
    def words(self) -> str:
        """The numbers in words."""
        parts = {"new": self.created, "existed before": self.reused, "resumed": self.resumed,
                 "impossible and skipped": self.skipped, "outside the budget": self.left_out}
        return "runs: " + (", ".join(f"{count} {words}" for words, count in parts.items() if count) or "none new")


def start_sweep(spec: SweepSpec, root: Path, load: Loader = catalog.load, engine: EngineRequest | None = None) -> Begun:
    """Store a sweep and queue its runs, without repeating runs that exist; stopped ones are resumed.

    A sweep of the same name is replaced; its runs stay. The group is stored before the first run, so that an
    interrupted start is completed by `resume_sweep`.

    Args:
        spec: The description.
        root: The folder of runs.
        load: Loads a data set by name.
        engine: The engine that starts new runs, also when the sweep is resumed; None for the queue of this machine.

    Raises:
        UserError: A value or a combination is not allowed, or no run fits into the budget.
    """
    load = cache(load)
    spec = complete(spec, load)
    planned = plan_runs(spec, load, gpus_of(engine))
    sweep = sweep_at(spec.name, root)
    stored = Stored(spec=spec, keys=tuple(run.key for run in planned), engine=engine)
    with suppress(UserError):  # the time that a sweep of this name has spent counts for its budget
        stored = stored.model_copy(update={"created": sweep.stored().created})
    members = members_of(stored.keys, [run.request for run in planned], runs_by_key(root))
    chosen = _fitting(stored, planned, members, load)
    if not chosen and all(member.run is None for member in members):
        raise UserError(f"No run fits into the budget of {spec.budget:g} minutes. Raise the budget, or plan shorter "
                        "runs.")
    write_sweep(sweep, stored)
    resumed = _resume(members, failed=False)
    _submit(sweep, chosen, engine)
    existing = sum(member.run is not None for member in members)
    return Begun(sweep, len(chosen), existing, resumed, sum(run.spec is None for run in planned),
                 len(members) - existing - len(chosen))


def resume_sweep(sweep: Sweep, budget: float | None = None, failed: bool = False, load: Loader = catalog.load) -> Begun:
    """Resume the stopped and interrupted runs of a sweep, and create the missing runs that fit into the budget.

    Args:
        sweep: The group.
        budget: Minutes for all runs, in place of the sweep's.
        failed: Whether failed runs are tried again.
        load: Loads a data set by name.

    Raises:
        UserError: A data set has changed since the sweep was planned, or is missing.
    """
    stored = sweep.stored()
    if budget is not None:
        stored = stored.model_copy(update={"spec": stored.spec.model_copy(update={"budget": budget})})
        write_sweep(sweep, stored)
    members = sweep.members()
    resumed = _resume(members, failed)
    missing = sum(member.run is None for member in members)
    if not missing:
        return Begun(sweep, resumed=resumed)
    load = cache(load)
    planned = plan_runs(stored.spec, load, gpus_of(stored.engine))
    if tuple(run.key for run in planned) != stored.keys:
        raise UserError(f"The runs of the sweep '{stored.spec.name}' cannot be completed, because its data set, the "
                        "excluded images or the assigned labels have changed since it was planned. Start it again "
                        "under another name.")
    chosen = _fitting(stored, planned, members, load)
    _submit(sweep, chosen, stored.engine)
    return Begun(sweep, len(chosen), resumed=resumed, left_out=missing - len(chosen))


def stop_sweep(sweep: Sweep) -> int:
    """Stop all waiting and running runs of a sweep; finished epochs stay.

    The waiting runs end first, so that none starts when the running run has stopped.

    Returns:
        The number of stopped runs.

    Raises:
        UserError: A worker could not be stopped.
    """
    live = [member for member in sweep.members() if member.state in LIVE_STATES]
    for member in sorted(live, key=lambda member: member.state == "running"):
        assert member.run is not None
        jobs.stop(member.run)
    return len(live)


def _fitting(stored: Stored, planned: Sequence[Planned], members: Sequence[Member], load: Loader) -> list[Spec]:
    """Return the specs of the missing runs that fit into the rest of the budget, each once.

    Finished runs have spent their time; unfinished runs come before the missing ones with their expected time.
    """
    specs = {run.key: run.spec for run in planned if run.spec is not None}
    missing = [specs[member.key] for member in members if member.run is None]
    if stored.spec.budget is None:
        return missing
    unfinished = [specs[member.key] for member in members if member.state not in (None, *ENDED)]
    expected = seconds_of_runs([*unfinished, *missing], load)
    left = 60 * stored.spec.budget - spent_seconds(members, stored.created) - sum(expected[:len(unfinished)])
    return [missing[position] for position in fit_budget(expected[len(unfinished):], left)]


def _resume(members: Sequence[Member], failed: bool) -> int:
    """Queue the runs again that were stopped or interrupted; return their number."""
    again = ("stopped", "interrupted", "failed") if failed else ("stopped", "interrupted")
    ended = [member.run for member in members if member.run is not None and member.state in again]
    for run in ended:
        jobs.resume(run)
    return len(ended)


def _submit(sweep: Sweep, specs: Sequence[Spec], engine: EngineRequest | None) -> None:
    """Queue new runs, without maps: maps of all runs would take longer than the runs."""
    for spec in specs:
        jobs.submit(spec, sweep.root, maps=False, engine=engine)
