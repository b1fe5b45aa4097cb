"""The command that finds the best search of a data set."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from udml_core.cli.options import Json, Root, root_of, takes_options
from udml_core.cli.output import POLL_SECONDS, exit_with, follow_run, print_answer, print_progress, summarize_result
from udml_core.exploration.race_advice import advice_words
from udml_core.exploration.race_words import outcome_words
from udml_core.runs.analyses import Analysis, plan_analysis
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.analyses.kinds.opinion import JUDGES
from udml_core.runs.tasks import LIVE_STATES

if TYPE_CHECKING:
    from udml_core.exploration.race import Outcome


@takes_options(Advice, without=("frames", "judges", "encoders"))
def advise(options: dict[str, Any],
           dataset: Annotated[str, typer.Argument(metavar="DATASET",
                                                  help="The name of a data set, or a folder of images.")],
           backbone: Annotated[str | None, typer.Option(help="The backbone of the frozen features to beat.",
                                                        show_default="efficientnet-lite0")] = None,
           judges: Annotated[str | None, typer.Option(
               help="Encoders that judge, or tables of vectors of the same images, separated by commas.",
               show_default=",".join(JUDGES))] = None,
           encoders: Annotated[str | None, typer.Option(
               help="Other backbones to try, separated by commas.", show_default=",".join(JUDGES))] = None,
           wait: Annotated[bool, typer.Option(help="Follow the race until it ends.")] = True,
           root: Root = None, as_json: Json = False) -> None:
    """Find the best search of a data set without labels.

    Candidates change the frozen features step by step: views, whitening, averages, re-rankings and trained heads.
    Encoders that took no part compare their results. The advice is the simplest candidate that is as good as the
    largest certain gain. An interrupt stops the race; finished candidates stay, and the same command continues it.
    """
    from udml_core.data import catalog
    from udml_core.data.encoders import DEFAULT_BACKBONE
    from udml_core.work import jobs
    from udml_core.work.jobs.advising import start_advice
    from udml_core.work.jobs.follow_ups import withdraw

    lists = {name: tuple(names.split(",")) for name, names in (("judges", judges), ("encoders", encoders)) if names}
    spec = plan_analysis(Advice, **options, **lists)
    loaded = catalog.load(dataset, print_progress())
    encoder, folder = jobs.encoder_of(loaded, backbone or DEFAULT_BACKBONE), root_of(root)
    state = start_advice(loaded, encoder, spec, folder)
    if Path(dataset).is_dir():
        catalog.remember(loaded.name)  # so that the app lists it, as a folder that it imports
    run = state.run
    assert run is not None, "a race has a run"
    typer.echo(f"frozen features: run {run.id} in {run.folder}", err=True)
    if wait and state.analysis is None:
        follow_run(run)
        if run.status().state != "done":
            withdraw(run, "advice")
            exit_with(run.status().message or f"The features ended as {run.status().state}.", 1)
        state = start_advice(loaded, encoder, spec, folder)
    if state.analysis is None:
        print_answer({"run": run.id, "analysis": spec.id}, as_json,
                     lambda: [f"The race {spec.id} follows the features of {run.id}."])
        return
    if wait:
        _follow(state.analysis)
    _print_advice(state.analysis, as_json, wait)


def _follow(analysis: Analysis) -> None:
    """Print a line for each candidate on stderr, and the progress between, until the race ends."""
    from udml_core.data.dataset import step_name
    from udml_core.work import jobs
    from udml_core.work.jobs.raced import race_of

    report, printed = print_progress(), 0
    try:
        while True:
            status, race = analysis.status(), race_of(analysis)
            for outcome in race.outcomes[printed:]:
                typer.echo(outcome_words(outcome, race), err=True)
            printed = len(race.outcomes)
            if status.state not in LIVE_STATES:
                return
            report(status.share, step_name(status.phase or status.state))
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        typer.echo("stopping the race; its finished candidates stay", err=True)
        jobs.stop(analysis)


def _print_advice(analysis: Analysis, as_json: bool, must_be_done: bool) -> None:
    """Print the advice and the commands that use it; end with exit code 1 if the race should be done but is not."""
    from udml_core.work.jobs.concluding import conclusion_of
    from udml_core.work.jobs.raced import race_of

    race, summary, best = race_of(analysis), summarize_result(analysis), None
    if summary["state"] == "done":
        conclusion = conclusion_of(analysis)
        best = conclusion.use
        summary |= {"advice": " ".join(conclusion.sentences), "conclusion": {
            "rests on": conclusion.basis, "use": None if best is None else best.setup.model_dump(),
            "says": conclusion.headline, "how sure": " ".join(conclusion.once(conclusion.counted, conclusion.sure)),
            "next": conclusion.next_step}}
    elif race.is_judged:
        best = race.best
        summary |= {"so far": advice_words(race, is_done=False)}
    commands = [] if best is None else use_commands(best)
    if best is None and summary["state"] == "done":
        commands = [f"udml query {race.run} picture.jpg"]
    summary |= {"commands": commands}
    print_answer(summary, as_json, lambda: [
        summary.get("advice") or f"{analysis.id}  {summary['state']}  {summary['message']}".rstrip(),
        *filter(None, [summary.get("so far"), summary.get("caution")]), *(f"  {command}" for command in commands)])
    if must_be_done and summary["state"] != "done":
        exit_with(summary["message"] or f"The race ended as {summary['state']}.", 1)


def use_commands(outcome: Outcome) -> list[str]:
    """Return the commands that search as a candidate does."""
    from udml_core.work.jobs.advising import refinement_of

    query = ["udml", "query", outcome.run, "picture.jpg"]
    if not outcome.setup.recipe:
        return [shlex.join(query)]
    refine = ["udml", "refine", outcome.run, "--recipe", outcome.setup.recipe]
    return [shlex.join(refine), shlex.join([*query, "--embedding", refinement_of(outcome).id])]
