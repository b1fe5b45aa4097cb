"""The commands that compute with finished runs: maps, graphs, refinements and second opinions."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from udml_core.cli.options import Json, Root, RunName, named_run, root_of, takes_options
from udml_core.cli.output import (
    analysis_line,
    exit_with,
    follow_analysis,
    print_answer,
    summarize_analysis,
    summarize_result,
)
from udml_core.numerics.refinement.recipe import Recipe
from udml_core.runs.analyses import (
    DEFAULT_RECIPE,
    Analysis,
    AnalysisSpec,
    Scope,
    analysis_at,
    find_analysis,
    list_analyses,
    plan_analysis,
)
from udml_core.runs.analyses.kinds.opinion import JUDGES, SecondOpinion
from udml_core.runs.analyses.kinds.refine import Refinement

if TYPE_CHECKING:
    from udml_core.data.dataset import Report
    from udml_core.runs import Run
    from udml_core.runs.tasks import Status


@takes_options(AnalysisSpec, without=("frames", "names", "content", "recipe", "judges", "encoders"), only_given=True)
def analyse(options: dict[str, Any], name: RunName,
            frames: Annotated[str | None, typer.Option(help="frozen, initial, final, epoch numbers or ids of "
                                                            "refinements, separated by commas.")] = None,
            wait: Annotated[bool, typer.Option(help="Follow the analysis until it ends.")] = True,
            root: Root = None, as_json: Json = False) -> None:
    """Compute a map, a graph or a grid of a finished run and store it.

    An interrupt stops the computation. The frame of a grid is the map's last by default.
    """
    run = named_run(name, root)
    if "source" in options:
        source = find_analysis(run, options["source"])
        options = {"frame": source.spec().frames[-1]} | options | {"source": source.id}
    if frames:
        options["frames"] = tuple(frames.split(","))
    _compute_analysis(run, plan_analysis(**options), wait, root, as_json)


def refine(name: RunName,
           recipe: Annotated[str | None, typer.Option(
               help=f"The steps in their order: views, whiten, average, reduce, expand, rerank, diffuse. Default: "
                    f"{DEFAULT_RECIPE}, without views for a table of embeddings.", show_default=False)] = None,
           scope: Annotated[Scope, typer.Option(help="The images to refine. Whitening is fitted on the training half "
                                                     "for the scopes test and train.")] = "test",
           frame: Annotated[str, typer.Option(help="The embedding: frozen, initial or final.")] = "final",
           wait: Annotated[bool, typer.Option(help="Follow the analysis until it ends.")] = True,
           root: Root = None, as_json: Json = False) -> None:
    """Refine a finished run's embedding without labels and store it with the run.

    A recipe names steps and their options: views+whiten+average:k=20,times=2.
    """
    run = named_run(name, root)
    if recipe is None:
        default = Recipe.parse(DEFAULT_RECIPE)
        recipe = str(default if run.spec().encoder.reads_images else default.without("views"))
    spec = plan_analysis(Refinement, recipe=recipe, scope=scope, frames=(frame,))
    if caution := Recipe.parse(spec.recipe).caution():
        typer.echo(caution, err=True)
    _compute_analysis(run, spec, wait, root, as_json)


def opinion(name: RunName,
            frames: Annotated[str, typer.Option(help="The embeddings, separated by commas: frozen, initial, final, or "
                                                     "ids of refinements of the scope. Each is compared with the "
                                                     "first.")] = "frozen,final",
            judges: Annotated[str, typer.Option(help="Encoders that judge, separated by commas. The run's own is left "
                                                     "out.")] = ",".join(JUDGES),
            scope: Annotated[Scope, typer.Option(help="The images that are compared.")] = "test",
            wait: Annotated[bool, typer.Option(help="Follow the analysis until it ends.")] = True,
            root: Root = None, as_json: Json = False) -> None:
    """Compare embeddings of a finished run without labels, by encoders that took no part in it.

    "First result" is the similarity of a query and its nearest image, in the judge's whitened features; "whole group"
    the mean similarity of a query and as many images as a typical group has, in features averaged over neighbors.
    Judges with three quarters of all weight must agree.
    """
    spec = plan_analysis(SecondOpinion, scope=scope, frames=tuple(frames.split(",")),
                         judges=tuple(judges.split(",")))
    _compute_analysis(named_run(name, root), spec, wait, root, as_json)


def _compute_analysis(run: Run, spec: AnalysisSpec, wait: bool, root: Path | None, as_json: bool) -> None:
    """Start an analysis, follow it if `wait` is set, and print its summary."""
    from udml_core.work import jobs

    if analysis_at(run, spec).is_damaged():
        typer.echo(f"The stored result of {spec.id} is damaged; it is computed again.", err=True)
    analysis = jobs.analyse(run, spec, root=root_of(root))
    typer.echo(f"analysis {analysis.id} in {analysis.folder}", err=True)
    if wait:
        follow_analysis(analysis)
    summary = summarize_result(analysis)
    found = spec.build_kind().lines(summary) if summary["state"] == "done" else []
    print_answer(summary, as_json, lambda: [analysis_line(summary), *(f"  {line}" for line in found)])
    if wait and summary["state"] != "done":
        exit_with(summary["message"] or f"The analysis ended as {summary['state']}.", 1)


def analyse_work(folder: Path, background: bool = False) -> None:
    """Execute an analysis in this process. `analyse` and the app start this; in the background it yields to runs."""
    from udml_core.work.workers import analyse as worker

    analysis = Analysis(folder.resolve())
    analysis.spec()  # rejects other folders before anything is written
    status = worker.work(analysis, background, _train_aside)
    if status.state == "failed":
        exit_with(status.message, 1)


def _train_aside(run: Run, report: Report) -> Status:
    from udml_core.work.workers import train  # few analyses train

    return train.work_aside(run, report)


def map_work(folder: Path) -> None:
    """Compute the maps that runs in a folder want. A run's worker starts this when it has finished."""
    from udml_core.work.workers import follow_up

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    follow_up.work(folder.resolve())


def analyses(name: RunName, root: Root = None, as_json: Json = False) -> None:
    """List the analyses of a run, newest first."""
    run = named_run(name, root)
    rows = [summarize_analysis(analysis) for analysis in list_analyses(run)]
    print_answer({"run": run.id, "analyses": rows}, as_json, lambda: [analysis_line(row) for row in rows] or [
        f"No analyses. Compute one: udml analyse {run.id} --kind tsne"])
