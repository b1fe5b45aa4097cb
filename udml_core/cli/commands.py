"""The command line.

With --json exactly one JSON object goes to stdout; everything else goes to stderr.

torch, faiss and scikit-learn take seconds to load, so each command imports what needs them when it is called.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from udml_core.base.declaration import Options, describe
from udml_core.base.errors import UserError, counted
from udml_core.base.storage import storage_problem
from udml_core.cli.advice import advise
from udml_core.cli.analysing import analyse, analyse_work, analyses, map_work, opinion, refine
from udml_core.cli.curating import audit, exclude, sample
from udml_core.cli.engines import Engine, EngineOptions, requested_engine
from udml_core.cli.exporting import export_run, lessons, mirror_run
from udml_core.cli.galleries import index
from udml_core.cli.judging import judge
from udml_core.cli.naming import names
from udml_core.cli.opening import open_app
from udml_core.cli.opening import remember as remember_dataset
from udml_core.cli.options import (
    Json,
    Root,
    RunName,
    Version,
    call_with_options,
    named_run,
    parse_settings,
    root_of,
)
from udml_core.cli.output import (
    exit_with,
    follow_run,
    print_answer,
    print_levels,
    print_progress,
    print_run,
    summarize_run,
)
from udml_core.cli.querying import query
from udml_core.cli.same import same
from udml_core.cli.sorting import groups, sort
from udml_core.cli.sweeps import sweep, sweeps
from udml_core.cli.tables import table
from udml_core.runs.tasks import ADVICE, LIVE_STATES

if TYPE_CHECKING:
    from udml_core.data.dataset import Dataset
    from udml_core.data.given.pair_sets import PairSet
    from udml_core.runs import Run

MOST_SKIPPED = 20


app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False,
                  help="Metric learning with few labels or none.")


@app.callback()
def program(_version: Version = False) -> None:
    """Train metric learning with few labels or none."""


app.command("app")(open_app)
app.command()(advise)
app.command()(sweep)
app.command()(sweeps)
app.command()(query)
app.command()(judge)
app.command()(same)
app.command()(table)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False)(audit)
app.command()(exclude)
app.command()(sample)
app.command()(groups)
app.command()(names)
app.command()(sort)
app.command()(analyse)
app.command()(refine)
app.command()(opinion)
app.command()(analyses)
app.command(name="analyse-work", hidden=True)(analyse_work)
app.command(name="map-work", hidden=True)(map_work)
app.command(name="export")(export_run)
app.command(name="mirror")(mirror_run)
app.command()(lessons)
app.add_typer(index, name="index", rich_help_panel="Export")
Wait = Annotated[bool, typer.Option(help="Follow the run until it ends.")]
Fields = Annotated[list[str] | None, typer.Option("--set", metavar="FIELD=VALUE",
                                                  help="Set a hyper-parameter; VALUE is JSON.")]
Preset = Annotated[Literal["default", "quick", "best", "paper"], typer.Option("--preset", help=(
    "Start from the default values; from few epochs and views, so that the run takes about a minute (quick); from what "
    "the records in assets/results favor (best); or from all settings that the method's paper prints (paper). Fields "
    "and options that you set yourself replace these; with paper they are listed as departures."))]
Maps = Annotated[bool | None, typer.Option("--maps/--no-maps", show_default=False, help=(
    "Compute UMAP, t-SNE and a grid in the background after the run. Default: yes, unless UDML_MAPS is 0."))]
PANELS = {
    "Start": ("app", "datasets", "methods", "examples", "lessons"),
    "Train": ("train", "sweep", "sweeps", "runs", "stop", "resume", "continue", "work"),
    "Search and compare": ("advise", "query", "evaluate", "refine", "judge", "opinion", "same", "analyse", "analyses",
                           "table"),
    "Curate images": ("audit", "exclude", "sample", "groups", "names", "sort"),
    "Export": ("export", "mirror", "index"),
}
"""The commands as the help lists them, in the order of their use."""
PairsFile = Annotated[Path | None, typer.Option(
    metavar="CSV", help="Learn from these pairs: columns first, second (name or number of an image), same.")]


@app.command()
def datasets(as_json: Json = False,
             remember: Annotated[str | None, typer.Option(
                 help="Add this folder or archive of images, or table of embeddings, to the list; photos#level=2 also "
                      "chooses the level of subfolders that are the classes.")] = None,
             forget: Annotated[Path | None, typer.Option(help="Remove this folder from the list.")] = None,
             levels: Annotated[Path | None, typer.Option(
                 help="List the classes at each level of subfolders of this folder instead. An archive is imported.")
             ] = None) -> None:
    """List the data sets, the embedded one first."""
    from udml_core.data import catalog

    if remember is not None:
        remember_dataset(remember)
    if forget is not None:
        catalog.forget(forget)
    if levels is not None:
        print_levels(catalog.folder_of(catalog.extracted(str(levels), print_progress())), as_json)
        return
    rows = []
    for source in catalog.sources():
        missing = source.missing()
        rows.append({"name": source.name, "title": source.title, "available": missing is None,
                     "images": source.images, "classes": source.classes, "missing": missing})
    print_answer({"datasets": rows}, as_json, lambda: [
        f"{row['name']:16} {row['images'] or '–':>7} images {row['classes'] or '–':>5} classes"
        + ("" if row["available"] else f"   not available: {row['missing']}") for row in rows])


@app.command()
def methods(as_json: Json = False) -> None:
    """List the methods and their hyper-parameters."""
    from udml_core.methods import METHODS

    rows: list[dict[str, Any]] = []
    for method in METHODS:
        card = method.card
        rows.append({"name": card.name, "title": card.title, "paper": card.paper, "summary": card.summary,
                     "idea": card.idea, "supervision": card.supervision, "promise": card.promise,
                     "promise_source": card.source, "fields": _field_rows(method)})
    print_answer({"methods": rows}, as_json, lambda: [
        line for row in rows for line in (f"{row['name']}: {row['summary']}", *(
            f"    {field['name']}={field['default']}  {field['allowed']}. {field['text']}" for field in row["fields"]),
            "")])


def _field_rows(options: type[Options]) -> list[dict[str, Any]]:
    return [{"name": field.name, "type": field.kind.__name__, "default": field.default, "allowed": field.allowed,
             "text": field.text, "symbol": field.shown.symbol, "unit": field.shown.unit} for field in describe(options)]


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False)
def train(context: typer.Context) -> Any:
    """Train a method on a data set.

    An interrupt stops the run; its finished epochs stay.
    """
    from udml_core.runs import RunRequest  # its fields are the options

    return call_with_options(_train, RunRequest, context, without=("fields", "preset"))


def _train(options: dict[str, Any], context: typer.Context, preset: Preset = "default", settings: Fields = None,
           pairs_file: PairsFile = None,
           given_pairs: Annotated[bool, typer.Option("--given-pairs", help="Learn from the pairs given in the app.")
                                  ] = False,
           maps: Maps = None, engine: Engine = "local", engine_options: EngineOptions = None, wait: Wait = True,
           root: Root = None, as_json: Json = False) -> None:
    """Train a method on a data set.

    An interrupt stops the run; its finished epochs stay.
    """
    from udml_core.data import catalog
    from udml_core.data.dataset import skipped_words
    from udml_core.data.given.pair_sets import MOST_PAIRS
    from udml_core.data.splits import caution_of, words_of_split
    from udml_core.runs import RunRequest
    from udml_core.runs.engines import gpus_of
    from udml_core.work import jobs

    on = requested_engine(engine, engine_options)
    # The paper's preset replaces every option that the user does not give.
    chosen = {name: value for name, value in options.items() if _is_given(context, name)}
    request = RunRequest.make(chosen | {"fields": parse_settings(settings or []),
                                        "preset": "paper" if preset == "paper" else "default"})
    dataset = catalog.load(request.dataset, print_progress())
    for skipped in dataset.skipped[:MOST_SKIPPED]:
        typer.echo(f"skipped {skipped.file}: {skipped.reason}", err=True)
    if dataset.skipped:
        typer.echo(f"{counted(len(dataset), 'image')}, {skipped_words(len(dataset), dataset.skipped)}", err=True)
    pairs = _pairs_of(dataset, pairs_file, given_pairs)
    if pairs is not None and request.most_pairs != MOST_PAIRS:
        raise UserError("--pairs limits the pairs drawn from labels, but pairs were given. Remove --pairs.")
    if preset in ("quick", "best"):
        request, words = jobs.apply_suggestion(request, preset, dataset, pairs)
        typer.echo(f"{preset}: {words}", err=True)
    spec = jobs.plan(request, dataset, pairs, gpus_of(on))
    if words := jobs.words_of_dimension(spec, request):
        typer.echo(words, err=True)
    if words := words_of_split(dataset, spec.split, "--split {}"):
        typer.echo(words, err=True)
    if words := jobs.caution_of_processes(spec):
        typer.echo(words, err=True)
    if caution := caution_of(dataset, spec.halves(dataset)):
        typer.echo(caution, err=True)
    if spec.preset == "paper":
        for departure in jobs.departures(spec, dataset):
            typer.echo(f"departure from the paper: {departure}", err=True)
    if pairs is not None:
        inside = pairs.within(spec.halves(dataset).train)
        typer.echo(f"{len(inside)} of {len(pairs)} pairs have both images in the training half", err=True)
    typer.echo(f"planned memory: {jobs.words_of_plan(jobs.memory_of(spec, dataset))}", err=True)
    _follow_new_run(jobs.submit(spec, root_of(root), pairs, maps, on), wait, as_json)


def _is_given(context: typer.Context, name: str) -> bool:
    """Return whether the user gives an option in the current call."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _pairs_of(dataset: Dataset, pairs_file: Path | None, given_pairs: bool) -> PairSet | None:
    """Read the pairs of a file or the pairs given in the app; None without either."""
    from udml_core.data.given.pair_sets import PairLog, read_pairs

    if pairs_file and given_pairs:
        raise UserError("Pairs come either from a file or from the app. Remove --pairs-file or --given-pairs.")
    return read_pairs(pairs_file, dataset) if pairs_file else PairLog(dataset).read() if given_pairs else None


@app.command()
def work(name: RunName, again: Annotated[bool, typer.Option(
        "--again", help="Also execute a run that was stopped, failed or was interrupted.")] = False,
         root: Root = None) -> None:
    """Execute a run in this process, from its last finished epoch to the end.

    `train`, the app and the engines start this. A run of several processes becomes torchrun's agent, which starts
    them and starts them again if one dies.
    """
    from udml_core.methods.shared.distributed import (
        is_shared,
        join_process_group,
        starts_as_first,
        was_restarted,
    )
    from udml_core.runs.engines import read_owner
    from udml_core.work import jobs

    run = named_run(name, root)
    if was_restarted() and run.stored_status().state not in LIVE_STATES:
        return  # the first process had stopped or failed for good
    if again and starts_as_first() and run.status().state not in LIVE_STATES:
        run.clear_failure()
    if run.spec().processes > 1 and not is_shared() and not run.stop_requested() \
            and run.stored_status().state != "done":
        from udml_core.work.workers.elastic import work_together

        status = work_together(run)
    else:
        from udml_core.work.workers import train as worker

        with join_process_group(run.spec().device) as device:
            if device:
                worker.assist(run, device)
                return
            status = worker.work(run)
    if read_owner(run.folder) is None and not is_shared():  # never start the queue on a cluster's machine
        jobs.ensure_dispatcher(run.folder.parent, run.spec().device)  # It may have been killed meanwhile.
        jobs.start_wanted(run.folder.parent)
        jobs.start_maps(run.folder.parent)
    line = " ".join(part for part in (f"{run.id} is {status.state}.", status.message, ADVICE[status.state]) if part)
    if status.state != "done":
        exit_with(line, 1)
    typer.echo(line, err=True)


@app.command(name="ready-work", hidden=True)
def ready_work(root: Path) -> None:
    """Load the libraries of a training, wait for a run and execute it. The app starts this while Lab is open."""
    from udml_core.work import jobs
    from udml_core.work.workers import ready

    os.chdir(root)  # as a worker that was started for a run
    ready.wait_and_work(jobs.dispatch.ready_folder(root), jobs.launch.settings_now(), lambda task: work(str(task)))


@app.command()
def resume(name: RunName, engine: Annotated[Literal["local", "slurm", "submitit-local"] | None, typer.Option(
               show_default=False, help="Continue on this engine. Default: the engine that started the run.")] = None,
           engine_options: EngineOptions = None, wait: Wait = True, root: Root = None, as_json: Json = False) -> None:
    """Resume a run after its last finished epoch."""
    from udml_core.work import jobs

    run = named_run(name, root)
    is_default = engine is None and not engine_options
    jobs.resume(run, None if is_default else requested_engine(engine, engine_options) or "local")
    if wait:
        follow_run(run)
    print_run(run, as_json, must_be_done=wait)


@app.command(name="continue")
def continue_(name: RunName, pairs_file: PairsFile = None,
              given_pairs: Annotated[bool, typer.Option(
                  "--given-pairs", help="Learn from the pairs given in the app that the run has not used.")] = False,
              settings: Fields = None,
              device: Annotated[str, typer.Option(help="auto, cpu or cuda:N.")] = "auto", maps: Maps = None,
              wait: Wait = True, root: Root = None, as_json: Json = False) -> None:
    """Continue a finished run of a method that learns from pairs with new pairs.

    This starts a new run, and the finished run does not change. `epochs` counts the new run's epochs and is 1 by
    default.
    """
    from udml_core.work import jobs

    earlier = named_run(name, root)
    dataset = earlier.dataset(print_progress())
    pairs = _pairs_of(dataset, pairs_file, given_pairs)
    if pairs is None:
        raise UserError("Continuing a run needs further pairs. Name a file with --pairs-file, or use the pairs given "
                        "in the app with --given-pairs.")
    further = earlier.unused_pairs(pairs) if given_pairs else pairs
    spec = jobs.plan_continuation(earlier, dataset, further, parse_settings(settings or []), device)
    target = root_of(root) if earlier.is_example else earlier.root
    _follow_new_run(jobs.submit(spec, target, further, maps), wait, as_json)


@app.command()
def stop(name: RunName, root: Root = None, as_json: Json = False) -> None:
    """Stop a run; its finished epochs stay and it can be resumed."""
    from udml_core.work import jobs

    run = named_run(name, root)
    jobs.stop(run)
    print_run(run, as_json)


@app.command(name="runs")
def list_all(root: Root = None, as_json: Json = False) -> None:
    """List all runs, newest first, then the examples. Resume the queue if the computer was restarted."""
    from udml_core.runs import list_runs
    from udml_core.work import jobs

    jobs.wake(root_of(root))
    ahead = jobs.queue_positions(root_of(root))
    rows = [summarize_run(run, ahead.get(run, 0)) for run in list_runs(root_of(root))]
    print_answer({"runs": rows}, as_json, lambda: [
        f"{row['run']}  {row['state']:11} epoch {row['epoch']}/{row['epochs']}  {row['method']} on {row['dataset']}"
        + (f"  ({row['ahead']} ahead)" if row["state"] == "waiting" and row["engine"] == "local"
           else f"  ({row['engine']}: {row['phase'] or row['message']})" if row["engine"] != "local"
           and row["state"] != "done" else "  (example)" if row["example"] else "") + _verdict_words(row)
        for row in rows]
        or [f"No runs in {root_of(root)}. Start one: udml train --dataset fashion-mini --method rpml"])


def _verdict_words(row: Mapping[str, Any]) -> str:
    """Return the verdict without labels of a run's summary in words; empty without a second opinion."""
    verdicts = row["second opinion"]
    return f"  ({', '.join(f'{question} {said}' for question, said in verdicts.items())})" if verdicts else ""


@app.command()
def examples(hide: Annotated[bool, typer.Option("--hide", help="Leave them out of the list of runs.")] = False,
             show: Annotated[bool, typer.Option("--show", help="List them after your runs again.")] = False,
             root: Root = None, as_json: Json = False) -> None:
    """List the finished runs that come with the app, or hide or show them among your runs."""
    from udml_core.runs import example_runs, hide_examples, show_examples

    if hide and show:
        raise UserError("Examples can be hidden or shown. Remove --hide or --show.")
    if hide or show:
        (hide_examples if hide else show_examples)(root_of(root))
    rows = [summarize_run(run) for run in example_runs()]
    print_answer({"examples": rows}, as_json, lambda: [
        f"{row['run']}  {row['method']} on {row['dataset']}" for row in rows])


@app.command()
def evaluate(name: RunName, again: Annotated[bool, typer.Option(help="Recompute from the embeddings.")] = False,
             exact: Annotated[bool, typer.Option("--exact", help="Recompute with every test image as a query, however "
                                                 "long it takes; of many, a sample is asked at first.")] = False,
             root: Root = None, as_json: Json = False) -> None:
    """Show R@k, MAP@R and clustering measures of the test half in percent, and the verdict without labels.

    The columns are the initial, frozen, PCA and final embeddings. `udml opinion RUN` computes the verdict. Where you
    assigned at least two classes, R@1 and MAP@R among the labeled images follow, with 95 % intervals over queries.
    """
    from udml_core.exploration.assigned import assigned_words
    from udml_core.numerics.evaluation import headline_measures
    from udml_core.runs.analyses import analysis_at
    from udml_core.runs.labeled import measures_of_labeled
    from udml_core.runs.opinions import OF_RUN
    from udml_core.work.jobs.verdicts import said_lines

    run = named_run(name, root)
    status, result = run.status(), run.evaluation()
    if status.state != "done" or result is None:
        raise UserError(f"The run {run.id} is {status.state} and has no evaluation. {ADVICE[status.state]}")
    if again or exact:
        from udml_core.runs.baselines import forget_baselines
        from udml_core.work.workers.evaluate import evaluate_run, load

        result = evaluate_run(run, load(run, print_progress()), print_progress(), exact)
        forget_baselines(run)
    if analysis_at(run, OF_RUN).is_damaged():
        typer.echo("The stored second opinion is damaged and does not count. Compute it again: udml opinion "
                   f"{run.id}", err=True)
    measures = list(dict.fromkeys(measure for row in result.values() for measure in headline_measures(row)))
    verdicts, assigned = summarize_run(run)["second opinion"], measures_of_labeled(run)
    labeled = {} if assigned is None else {"labeled images": {
        **assigned._asdict(), "measures": {key: of._asdict() for key, of in assigned.measures.items()}}}
    width = 2 + max(8, *map(len, result))
    print_answer(result | ({"second opinion": verdicts} if verdicts else {}) | labeled, as_json, lambda: [
        f"{'':28}" + "".join(f"{candidate:>{width}}" for candidate in result),
        *(f"{measure:28}" + "".join(f"{_number(row.get(measure)):>{width}}" for row in result.values())
          for measure in measures), *said_lines(run),
        *([] if assigned is None else [assigned_words(assigned, run.spec().labels == "given").replace("**", "")])])


def sort_commands(program: typer.Typer) -> None:
    """Put the commands into their panels, in the order of `PANELS`."""
    panels = {name: panel for panel, names in PANELS.items() for name in names}

    def name_of(command: Any) -> str:
        return str(command.name or command.callback.__name__)

    for command in program.registered_commands:
        command.rich_help_panel = panels.get(name_of(command))
    order = {name: place for place, name in enumerate(panels)}
    program.registered_commands.sort(key=lambda command: order.get(name_of(command), len(order)))


sort_commands(app)


def main(program: typer.Typer = app) -> NoReturn:
    """Run the command line.

    The exit code is 0 after success, 1 if a run failed, and 2 after bad input, with one message.

    Args:
        program: The commands: `udml`, or another program.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # names may have characters that the terminal's encoding lacks
    try:
        code = program(standalone_mode=False)
    except UserError as error:
        exit_with(str(error))
    except typer.TyperException as error:
        exit_with(error.format_message())
    except (typer.Abort, KeyboardInterrupt):
        exit_with("Interrupted.", 130)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:  # a folder that cannot be written, a full disk
        exit_with(str(storage_problem(error) or error))
    sys.exit(code if isinstance(code, int) else 0)


def _follow_new_run(run: Run, wait: bool, as_json: bool) -> None:
    """Print the new run's id, follow it if requested, and print its summary."""
    typer.echo(f"run {run.id} in {run.folder}", err=True)
    if wait:
        follow_run(run)
    print_run(run, as_json, must_be_done=wait)


def _number(value: Any) -> str:
    return "–" if value is None else f"{value:.2f}"
