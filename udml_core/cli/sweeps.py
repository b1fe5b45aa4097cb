"""The commands of sweeps."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from udml_core.base.errors import UserError, byte_words, duration, quoted
from udml_core.cli.engines import Engine, EngineOptions, destination_of, requested_engine
from udml_core.cli.options import Json, Root, root_of
from udml_core.cli.output import POLL_SECONDS, exit_with, print_answer

if TYPE_CHECKING:
    from udml_core.runs.engines import EngineRequest
    from udml_core.work.sweeps import Combination, GroupProgress, Sweep

SHOWN_COMBINATIONS = 20
LONGEST_PAUSE = 5.0
Budget = Annotated[float | None, typer.Option(metavar="MINUTES", min=0.01, show_default=False, help=(
    "Create only runs that fit into this expected time, the first seed of every combination first."))]


def sweep(file: Annotated[Path, typer.Argument(metavar="FILE", help="A YAML file; see below.")],
          budget: Budget = None,
          plan: Annotated[bool, typer.Option("--plan", help="Print the planned runs, with the expected time once "
                                                            "it was measured here, and start nothing.")] = False,
          engine: Engine = "local", engine_options: EngineOptions = None,
          wait: Annotated[bool, typer.Option(help="Follow the runs until they end.")] = True,
          root: Root = None, as_json: Json = False) -> None:
    """Try several values: methods × values × data sets × seeds, as a named group of runs.

    The file has the keys data, methods, fields, options, seeds, search (grid or random), draws, criterion and budget.
    A field has one value, a list, or, in a random search, a range such as {low: 0.001, high: 0.1, logarithmic: true}.
    Runs that exist are not repeated. An interrupt stops the whole group, and the same command resumes it.
    """
    from udml_core.work import sweeps as core

    spec = core.read_sweep(file)
    if budget is not None:
        spec = spec.model_copy(update={"budget": budget})
    request = requested_engine(engine, engine_options)
    if plan:
        _print_plan(spec, root_of(root), request, as_json)
        return
    begun = core.start_sweep(spec, root_of(root), engine=request)
    typer.echo(f"sweep {begun.sweep.id}: {begun.words}", err=True)
    _follow_and_print(begun.sweep, wait, None, as_json)


def sweeps(name: Annotated[str, typer.Argument(metavar="[NAME]", show_default=False,
                                               help="Show this group; without a name, list all.")] = "",
           stop: Annotated[bool, typer.Option("--stop", help="Stop its waiting and running runs.")] = False,
           resume: Annotated[bool, typer.Option("--resume", help="Resume its stopped and interrupted runs, and create "
                                                                 "the missing runs.")] = False,
           failed: Annotated[bool, typer.Option("--failed", help="With --resume: try failed runs again.")] = False,
           forget: Annotated[bool, typer.Option("--forget", help="Remove the group; its runs stay.")] = False,
           budget: Budget = None,
           criterion: Annotated[str | None, typer.Option(help="Choose the best combination by this measure.")] = None,
           wait: Annotated[bool, typer.Option(help="With --resume: follow the runs until they end.")] = True,
           root: Root = None, as_json: Json = False) -> None:
    """List the sweeps, or show, stop, resume or forget one of them."""
    from udml_core.work import sweeps as core

    if stop + resume + forget > 1:
        raise UserError("A sweep can be stopped, resumed or forgotten. Give one of --stop, --resume and --forget.")
    if (failed or budget is not None) and not resume:
        raise UserError("--failed and --budget belong to --resume. Add it, or remove them.")
    if criterion is not None and criterion not in core.CRITERIA:
        raise UserError(f"The criterion must be one of {', '.join(map(repr, core.CRITERIA))}, got {quoted(criterion)}.")
    if not name:
        if stop or resume or forget:
            raise UserError("Name the sweep to stop, resume or forget; `udml sweeps` lists them.")
        _print_list(root_of(root), as_json)
        return
    chosen = core.find_sweep(name, root_of(root))
    if forget:
        core.forget_sweep(chosen)
        print_answer({"forgotten": chosen.id}, as_json, lambda: [f"forgot the sweep {chosen.id}; its runs stay"])
        return
    if stop:
        typer.echo(f"{core.stop_sweep(chosen)} runs stopped", err=True)
    if resume:
        typer.echo(core.resume_sweep(chosen, budget, failed).words, err=True)
    _follow_and_print(chosen, resume and wait, criterion, as_json)


def _print_plan(spec: Any, root: Path, engine: EngineRequest | None, as_json: bool) -> None:
    """Print what a sweep would start, and where."""
    from udml_core.data import catalog
    from udml_core.runs.engines import gpus_of
    from udml_core.work import jobs
    from udml_core.work import sweeps as core

    spec = core.complete(spec)
    planned = core.plan_runs(spec, gpus=gpus_of(engine))
    existing = core.runs_by_key(root)
    rows = [{"method": run.request.method, "dataset": run.request.dataset, "seed": run.request.seed,
             "values": core.chosen_values(run.request, spec.varied), "exists": run.key in existing,
             "possible": run.spec is not None} for run in planned]
    new = [run.spec for run in planned if run.spec is not None and run.key not in existing]
    seconds = core.measured_seconds(new) if new and engine is None else None
    time = "" if seconds is None else f": about {duration(seconds)}, measured on this machine"
    memory = max((max(jobs.memory_of(each, catalog.load(each.dataset)).values()) for each in new), default=0.0)
    space = f"; each needs at most {byte_words(memory)} of memory" if new else ""
    options = {} if engine is None else engine.model_dump(exclude={"engine"}, exclude_defaults=True)
    print_answer({"criterion": spec.criterion, "runs": rows, "new": len(new), "expected_seconds": seconds,
                  "expected_memory": memory,
                  "engine": "local" if engine is None else engine.engine, "engine_options": options}, as_json,
                 lambda: [*(f"{row['method']} on {row['dataset']}, seed {row['seed']}  {_words(row['values'])}"
                            + ("" if row["possible"] else "  (not possible)") + ("  (exists)" if row["exists"] else "")
                            for row in rows),
                          f"{len(rows)} runs, {len(new)} of them new{time}; best by {spec.criterion}{space}",
                          f"new runs go to {destination_of(engine)}"])


def _print_list(root: Path, as_json: bool) -> None:
    from udml_core.work import sweeps as core

    runs = core.runs_by_key(root)
    listed = [(sweep, core.progress_of(sweep.members(runs))) for sweep in core.list_sweeps(root)]
    print_answer({"sweeps": [{"sweep": sweep.id, "name": sweep.spec.name, "state": progress.state,
                              "runs": progress.counts} for sweep, progress in listed]}, as_json, lambda: [
        f"{sweep.id}  {_progress_words(progress)}" for sweep, progress in listed]
        or [f"No sweeps in {root}. Start one: udml sweep sweep.yaml"])


def _follow_and_print(chosen: Sweep, wait: bool, criterion: str | None, as_json: bool) -> None:
    """Follow a group if requested, and print its combinations, the best first."""
    from udml_core.work import sweeps as core

    if wait:
        _follow(chosen)
    by = criterion or chosen.spec.criterion or "effective rank"
    members = chosen.members()
    progress = core.progress_of(members)
    measured = core.combinations(members, chosen.spec.varied, by)
    best = core.best_combinations(measured)
    ordered = sorted(measured, key=lambda combination: -combination.mean_score)
    print_answer({"sweep": chosen.id, "name": chosen.spec.name, "state": progress.state, "runs": progress.counts,
                  "criterion": by, "best": {name: _row(combination, by) for name, combination in best.items()},
                  "combinations": [_row(combination, by) for combination in ordered]}, as_json, lambda: [
        f"{chosen.id}  {_progress_words(progress)}", f"by {by}:",
        *(("* " if combination in best.values() else "  ") + _line(combination, max(2, core.CRITERIA[by].digits))
          for combination in ordered[:SHOWN_COMBINATIONS])])
    if wait and progress.state != "done":
        exit_with(f"The sweep {chosen.id} is {progress.state}: {_progress_words(progress)}. Resume it with "
                  f"`udml sweeps {chosen.id} --resume`.", 1)


def _follow(chosen: Sweep) -> None:
    """Print the progress of a group on stderr until no run waits or runs. An interrupt stops the group."""
    from udml_core.work import sweeps as core

    printed, pause = "", POLL_SECONDS
    try:
        while True:
            progress = core.progress_of(chosen.members())
            if (words := _progress_words(progress)) != printed:
                typer.echo(words, err=True)
                printed, pause = words, POLL_SECONDS
            if not progress.live:
                return
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
    except KeyboardInterrupt:
        typer.echo("stopping all runs of the sweep; finished epochs stay", err=True)
        core.stop_sweep(chosen)


def _row(one: Combination, criterion: str) -> dict[str, Any]:
    from udml_core.work import sweeps as core

    return {"method": one.method, "dataset": one.dataset, "values": one.values, "seeds": len(one.runs),
            "score": None if one.score is None else {"mean": one.score.mean, "deviation": one.score.deviation},
            "test_map@r": None if one.test is None else {"mean": one.test.mean, "deviation": one.test.deviation},
            "runs": [member.run.id for member in one.members if member.run is not None],
            "median_run": core.best_run(one, criterion).id if one.runs else None}


def _line(one: Combination, digits: int) -> str:
    if one.score is None:
        measured = "–"
    else:
        deviation = one.score.deviation
        measured = f"{one.score.mean:.{digits}f}" + ("" if deviation is None else f" ± {deviation:.{digits}f}")
    test = "" if one.test is None else f"  (test half: MAP@R {one.test.mean:.2f})"
    seeds = f"{len(one.runs)} seed" + ("" if len(one.runs) == 1 else "s")
    return f"{measured:>14}  {seeds}  {one.method} on {one.dataset}  {_words(one.values)}{test}"


def _words(values: Any) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def _progress_words(progress: GroupProgress) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in progress.counts.items())
    left = progress.seconds_left
    return counts + (f"; about {left / 60:.1f} minutes left" if left is not None else "")
