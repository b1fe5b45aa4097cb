"""The command line. With --json exactly one JSON object goes to stdout; everything else goes to stderr."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from udml_core import jobs
from udml_core.analyses import (
    COUNTED,
    Analysis,
    AnalysisSpec,
    Kind,
    Scope,
    find_analysis,
    list_analyses,
    plan_analysis,
)
from udml_core.cli_options import takes_options
from udml_core.data import catalog
from udml_core.data.dataset import Dataset, read_user_image
from udml_core.data.given.pairs import MOST_PAIRS, PairLog, PairSet, read_pairs
from udml_core.data.sources.folder import Folder
from udml_core.data.splits import make_split
from udml_core.declaration import Options, describe
from udml_core.errors import UserError
from udml_core.evaluation import headline_measures
from udml_core.exporting import export
from udml_core.files import jsonable
from udml_core.methods import METHODS
from udml_core.methods.shared.distributed import together
from udml_core.paths import existing_path, runs_folder
from udml_core.retrieval import Gallery, Retrieval
from udml_core.runs import Run, RunRequest, find_run, list_runs
from udml_core.tasks import ADVICE, LIVE_STATES
from udml_core.workers import analyse as analysis_worker
from udml_core.workers import evaluate as evaluation
from udml_core.workers import train as training_worker

LONGEST_NUMBER = 20
MOST_SKIPPED = 20
app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False,
                  help="Metric learning with few labels or none.")
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
Root = Annotated[Path | None, typer.Option("--runs", help="Folder of runs. Default: UDML_RUNS, else ./runs.")]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, the beginning of its id, or its folder.")]
Wait = Annotated[bool, typer.Option(help="Follow the run until it ends.")]
Fields = Annotated[list[str] | None, typer.Option("--set", metavar="FIELD=VALUE",
                                                  help="Set a hyper-parameter; VALUE is JSON.")]
PairsFile = Annotated[Path | None, typer.Option(
    metavar="CSV", help="Learn from these pairs: columns first, second (name or number of an image), same.")]


@app.command()
def datasets(as_json: Json = False,
             remember: Annotated[Path | None, typer.Option(help="Add this folder of images to the list.")] = None,
             forget: Annotated[Path | None, typer.Option(help="Remove this folder from the list.")] = None) -> None:
    """List the data sets, the embedded one first."""
    if remember is not None:
        problem = Folder(remember).missing()
        if problem:
            raise UserError(problem)
        catalog.remember(remember)
    if forget is not None:
        catalog.forget(forget)
    rows = []
    for source in catalog.sources():
        missing = source.missing()
        rows.append({"name": source.name, "title": source.title, "available": missing is None,
                     "images": source.images, "classes": source.classes, "missing": missing})
    _answer({"datasets": rows}, as_json, lambda: [
        f"{row['name']:16} {row['images'] or '–':>7} images {row['classes'] or '–':>5} classes"
        + ("" if row["available"] else f"   not available: {row['missing']}") for row in rows])


@app.command()
def methods(as_json: Json = False) -> None:
    """List the methods and their hyper-parameters."""
    rows: list[dict[str, Any]] = []
    for method in METHODS:
        card = method.card
        rows.append({"name": card.name, "title": card.title, "paper": card.paper, "idea": card.idea,
                     "supervision": card.supervision, "promise": card.promise, "promise_source": card.source,
                     "fields": _field_rows(method)})
    _answer({"methods": rows}, as_json, lambda: [
        line for row in rows for line in (f"{row['name']}: {row['idea']}", *(
            f"    {field['name']}={field['default']}  {field['allowed']}. {field['text']}" for field in row["fields"]),
            "")])


def _field_rows(options: type[Options]) -> list[dict[str, Any]]:
    return [{"name": field.name, "type": field.kind.__name__, "default": field.default, "allowed": field.allowed,
             "text": field.text, "symbol": field.shown.symbol, "unit": field.shown.unit} for field in describe(options)]


@app.command()
@takes_options(RunRequest, without=("fields",))
def train(options: dict[str, Any], settings: Fields = None, pairs_file: PairsFile = None,
          given_pairs: Annotated[bool, typer.Option("--given-pairs", help="Learn from the pairs given in the app.")
                                 ] = False,
          wait: Wait = True, root: Root = None, as_json: Json = False) -> None:
    """Train a method on a data set. An interrupt stops the run; its finished epochs stay."""
    request = RunRequest.make(options | {"fields": _parsed(settings or [])})
    dataset = catalog.load(request.dataset, _progress())
    for skipped in dataset.skipped[:MOST_SKIPPED]:
        typer.echo(f"skipped {skipped.file}: {skipped.reason}", err=True)
    if dataset.skipped:
        typer.echo(f"{len(dataset.skipped)} files skipped, {len(dataset)} images read", err=True)
    pairs = _pairs_of(dataset, pairs_file, given_pairs)
    if pairs is not None and request.most_pairs != MOST_PAIRS:
        raise UserError("--pairs limits the pairs drawn from labels, but pairs were given. Remove --pairs.")
    spec = jobs.plan(request, dataset, pairs)
    if pairs is not None:
        inside = pairs.within(make_split(dataset, spec.split, spec.holds_out, spec.seed).train)
        typer.echo(f"{len(inside)} of {len(pairs)} pairs have both images in the training half", err=True)
    _start(jobs.submit(spec, _root(root), pairs), wait, as_json)


def _pairs_of(dataset: Dataset, pairs_file: Path | None, given_pairs: bool) -> PairSet | None:
    """Read the pairs of a file or those given in the app; None if neither is requested."""
    if pairs_file and given_pairs:
        raise UserError("Pairs come either from a file or from the app. Remove --pairs-file or --given-pairs.")
    return read_pairs(pairs_file, dataset) if pairs_file else PairLog(dataset).read() if given_pairs else None


@app.command()
def work(run: RunName, again: Annotated[bool, typer.Option(
        "--again", help="Also execute a run that was stopped, failed or was interrupted.")] = False,
         root: Root = None) -> None:
    """Execute a run in this process, from its last finished epoch to the end. `train` and the app start this.

    With torchrun, PSLR, ISIF and NCE share every batch between GPUs 0, 1, …: start the run, stop it, then run
    `torchrun … -m udml_core work RUN --again`.
    """
    found = find_run(run, _root(root))
    with together(found.spec().device) as device:
        if device:
            training_worker.assist(found, device)
            return
        if again and found.status().state not in LIVE_STATES:
            found.clear_failure()
        status = training_worker.work(found)
    line = " ".join(part for part in (f"{found.id} is {status.state}.", status.message, ADVICE[status.state]) if part)
    if status.state != "done":
        _exit(line, 1)
    typer.echo(line, err=True)


@app.command()
def resume(run: RunName, wait: Wait = True, root: Root = None, as_json: Json = False) -> None:
    """Resume a run after its last finished epoch."""
    found = find_run(run, _root(root))
    jobs.resume(found)
    if wait:
        _follow(found, found.folder.parent)
    _report_run(found, as_json, must_be_done=wait)


@app.command(name="continue")
def continue_(run: RunName, pairs_file: PairsFile = None,
              given_pairs: Annotated[bool, typer.Option(
                  "--given-pairs", help="Learn from the pairs given in the app that the run has not used.")] = False,
              settings: Fields = None,
              device: Annotated[str, typer.Option(help="auto, cpu or cuda:N.")] = "auto",
              wait: Wait = True, root: Root = None, as_json: Json = False) -> None:
    """Train a finished run of NML, ML or KML further on new pairs, as a new run; the finished run does not change.

    `epochs` counts the new run's epochs and is 1 by default.
    """
    earlier = find_run(run, _root(root))
    dataset = earlier.dataset(_progress())
    pairs = _pairs_of(dataset, pairs_file, given_pairs)
    if pairs is None:
        raise UserError("Continuing a run needs further pairs. Name a file with --pairs-file, or use the pairs given "
                        "in the app with --given-pairs.")
    further = earlier.unused_pairs(pairs) if given_pairs else pairs
    spec = jobs.plan_continuation(earlier, dataset, further, _parsed(settings or []), device)
    _start(jobs.submit(spec, earlier.folder.parent, further), wait, as_json)


@app.command()
def stop(run: RunName, root: Root = None, as_json: Json = False) -> None:
    """Stop a run; its finished epochs stay and it can be resumed."""
    found = find_run(run, _root(root))
    jobs.stop(found)
    _report_run(found, as_json)


@app.command(name="runs")
def list_all(root: Root = None, as_json: Json = False) -> None:
    """List all runs, newest first."""
    rows = [_summary(run) for run in list_runs(_root(root))]
    _answer({"runs": rows}, as_json, lambda: [
        f"{row['run']}  {row['state']:11} epoch {row['epoch']}/{row['epochs']}  {row['method']} on {row['dataset']}"
        + (f"  ({row['ahead']} ahead)" if row["state"] == "waiting" else "") for row in rows]
        or [f"No runs in {_root(root)}. Start one: udml train --dataset fashion-mini --method rpml"])


@app.command()
def evaluate(run: RunName, again: Annotated[bool, typer.Option(help="Recompute from the embeddings.")] = False,
             root: Root = None, as_json: Json = False) -> None:
    """Show recall, MAP@R and clustering measures of the test half in percent: initial, frozen, PCA and final."""
    found = find_run(run, _root(root))
    status = found.status()
    result = found.evaluation()
    if status.state != "done" or result is None:
        raise UserError(f"The run {found.id} is {status.state} and has no evaluation. {ADVICE[status.state]}")
    if again:
        result = evaluation.evaluate_run(found, evaluation.load(found, _progress()), _progress())
    names = list(dict.fromkeys(name for row in result.values() for name in headline_measures(row)))
    shown = {key: {name: row.get(name) for name in names} for key, row in result.items()}
    _answer(result, as_json, lambda: [
        f"{'':28}" + "".join(f"{key:>10}" for key in shown),
        *(f"{name:28}" + "".join(f"{_number(row[name]):>10}" for row in shown.values()) for name in names)])


@app.command()
def query(run: RunName, image: Annotated[str, typer.Argument(help="An image file, or the number of an image of the "
                                                                  "data set.")],
          k: Annotated[int, typer.Option("-k", min=1, max=10_000, help="Number of results.")] = 10,
          gallery: Annotated[Gallery, typer.Option(help="Search the test half or all images.")] = "test",
          root: Root = None, as_json: Json = False) -> None:
    """Find the images most similar to a query image."""
    opened = Retrieval(find_run(run, _root(root)))
    path = existing_path(image)
    if path is not None:
        hits = opened.search_image(read_user_image(path, str(path)), k, "final", gallery)
    elif image.isdecimal() and len(image) < LONGEST_NUMBER:
        hits = opened.search_item(int(image), k, "final", gallery)
    else:
        raise UserError(f"The query must be an image file or the number of an image; '{image[:80]}' is neither.")
    dataset = opened.dataset
    rows: list[dict[str, Any]] = [
        {"rank": hit.rank, "index": hit.index, "image": dataset.names[hit.index], "distance": hit.distance,
         "similarity": hit.similarity, "shown": hit.shown,
         "class": None if dataset.labels is None else dataset.class_names[dataset.labels[hit.index]],
         "correct": hit.correct} for hit in hits]
    _answer({"run": opened.run.id, "query": image, "results": rows}, as_json, lambda: [
        f"{row['rank']:3}  {row['shown']:.4f}  #{row['index']}  {dataset.caption(row['index'])}" for row in rows])


@app.command()
def analyse(run: RunName,
            kind: Annotated[Kind, typer.Option(help="pca, tsne and umap are maps; a grid is snapped from a map.")],
            scope: Annotated[Scope, typer.Option(help="Images; `sample` is the test images kept for every epoch.")
                             ] = "all",
            frames: Annotated[str | None, typer.Option(help="frozen, initial, final or epoch numbers, separated by "
                                                            "commas.")] = None,
            perplexity: Annotated[float | None, typer.Option(help="Perplexity of t-SNE.")] = None,
            neighbors: Annotated[int | None, typer.Option(help="Neighbors of UMAP and the graph.")] = None,
            min_dist: Annotated[float | None, typer.Option(help="Smallest distance of UMAP.")] = None,
            seed: Annotated[int | None, typer.Option(help="Seed of t-SNE and UMAP.")] = None,
            source: Annotated[str | None, typer.Option(help="The map that a grid is snapped from.")] = None,
            frame: Annotated[str | None, typer.Option(help="Frame of that map. Default: the last.")] = None,
            wait: Annotated[bool, typer.Option(help="Follow the analysis until it ends.")] = True,
            root: Root = None, as_json: Json = False) -> None:
    """Compute a map, a graph or a grid of a finished run and keep it. An interrupt stops it."""
    found = find_run(run, _root(root))
    if source is not None:
        map_ = find_analysis(found, source)
        source, frame = map_.id, frame or map_.spec().frames[-1]
    values = {"frames": tuple(frames.split(",")) if frames else None, "perplexity": perplexity,
              "n_neighbors": neighbors, "min_dist": min_dist, "seed": seed, "source": source, "frame": frame}
    spec: AnalysisSpec = plan_analysis(kind=kind, scope=scope,
                                       **{name: value for name, value in values.items() if value is not None})
    analysis = jobs.analyse(found, spec)
    typer.echo(f"analysis {analysis.id} in {analysis.folder}", err=True)
    if wait:
        _follow_analysis(analysis)
    summary = _analysis_summary(analysis)
    _answer(summary, as_json, lambda: [_analysis_line(summary)])
    if wait and summary["state"] != "done":
        _exit(summary["message"] or f"The analysis ended as {summary['state']}.", 1)


@app.command(name="analyse-work", hidden=True)
def analyse_work(folder: Path) -> None:
    """Execute an analysis in this process. `analyse` and the app start this."""
    analysis = Analysis(folder.resolve())
    analysis.spec()  # refuses other folders before anything is written
    status = analysis_worker.work(analysis)
    if status.state == "failed":
        _exit(status.message, 1)


@app.command()
def analyses(run: RunName, root: Root = None, as_json: Json = False) -> None:
    """List the analyses of a run, newest first."""
    found = find_run(run, _root(root))
    rows = [_analysis_summary(analysis) for analysis in list_analyses(found)]
    _answer({"run": found.id, "analyses": rows}, as_json, lambda: [_analysis_line(row) for row in rows] or [
        f"No analyses. Compute one: udml analyse {found.id} --kind tsne"])


@app.command(name="export")
def export_run(run: RunName, folder: Annotated[Path, typer.Argument(metavar="DIR")], root: Root = None,
               as_json: Json = False) -> None:
    """Copy model, embeddings (also as Parquet), index, curves and evaluation to a new folder."""
    files = export(find_run(run, _root(root)), folder)
    _answer({"folder": str(folder), "files": [path.name for path in files]}, as_json,
            lambda: [str(path) for path in files])


def main() -> NoReturn:
    """Run the command line: exit code 0 done, 1 a run failed, 2 bad input with one message."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # names may have characters that the terminal's encoding lacks
    try:
        code = app(standalone_mode=False)
    except UserError as error:
        _exit(str(error))
    except typer.TyperException as error:
        _exit(error.format_message())
    except (typer.Abort, KeyboardInterrupt):
        _exit("Interrupted.", 130)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:  # a folder that cannot be written, a full disk
        _exit(str(error))
    sys.exit(code if isinstance(code, int) else 0)


def _exit(message: str, code: int = 2) -> NoReturn:
    typer.echo(message, err=True)
    sys.exit(code)


def _answer(value: Any, as_json: bool, lines: Callable[[], list[str]]) -> None:
    if as_json:
        typer.echo(json.dumps(jsonable(value)))
    else:
        for line in lines():
            typer.echo(line)


def _summary(run: Run) -> dict[str, Any]:
    spec, status, result = run.spec(), run.status(), run.evaluation()
    ahead = jobs.queue_position(run, run.folder.parent) if status.state == "waiting" else 0
    return {"run": run.id, "folder": str(run.folder), "state": status.state, "message": status.message,
            "epoch": status.epoch, "epochs": status.epochs, "phase": status.phase, "ahead": ahead,
            "method": spec.method, "dataset": spec.dataset, "fields": spec.fields, "seed": spec.seed,
            "evaluation": {name: headline_measures(row) for name, row in result.items()} if result else None}


def _start(run: Run, wait: bool, as_json: bool) -> None:
    """Print the new run, and follow it if requested."""
    typer.echo(f"run {run.id} in {run.folder}", err=True)
    if wait:
        _follow(run, run.folder.parent)
    _report_run(run, as_json, must_be_done=wait)


def _report_run(run: Run, as_json: bool, must_be_done: bool = False) -> None:
    summary = _summary(run)
    _answer(summary, as_json, lambda: [f"{summary['run']}  {summary['state']}  epoch {summary['epoch']}/"
                                       f"{summary['epochs']}  {summary['message']}".rstrip()])
    if must_be_done and summary["state"] != "done":
        _exit(summary["message"] or f"The run ended as {summary['state']}.", 1)


def _analysis_summary(analysis: Analysis) -> dict[str, Any]:
    spec, status = analysis.spec(), analysis.status()
    return {"analysis": analysis.id, "folder": str(analysis.folder), "kind": spec.kind, "state": status.state,
            "phase": status.phase, "message": status.message,
            "asked": spec.model_dump(include=set(COUNTED[spec.kind]))}


def _analysis_line(row: dict[str, Any]) -> str:
    request = ", ".join(f"{name} {', '.join(map(str, value)) if isinstance(value, tuple) else value}"
                        for name, value in row["asked"].items() if name != "content")
    return f"{row['analysis']}  {row['state']:11} {request}  {row['message']}".rstrip()


def _follow_analysis(analysis: Analysis) -> None:
    """Print an analysis's progress on stderr until it ends. An interrupt stops it."""
    report = _progress()
    try:
        while (status := analysis.status()).state in LIVE_STATES:
            if status.state == "running":
                left = status.seconds_left
                report(status.share, status.phase, "" if left is None else f", about {left:.0f} s left")
            time.sleep(0.2)
    except KeyboardInterrupt:
        typer.echo("stopping the analysis", err=True)
        jobs.stop(analysis)


def _follow(run: Run, root: Path) -> None:
    """Print a run's progress on stderr until it ends. An interrupt stops the run."""
    shown, offset = "", 0
    try:
        while True:
            status = run.status()
            rows, offset = run.metrics(offset)
            for row in rows:
                curves = ", ".join(f"{name} {value:.4g}" for name, value in row.items()
                                   if name != "epoch" and isinstance(value, int | float))
                typer.echo(f"epoch {row['epoch']}: {curves}", err=True)
            text = status.phase
            if status.state == "waiting":
                text = f"waiting, {jobs.queue_position(run, root)} ahead"
            if text != shown:
                typer.echo(text, err=True)
                shown = text
            if status.state not in LIVE_STATES:
                return
            time.sleep(0.2)
    except KeyboardInterrupt:
        typer.echo("stopping the run; its finished epochs stay", err=True)
        jobs.stop(run)


def _parsed(settings: list[str]) -> dict[str, Any]:
    """Parse FIELD=VALUE; VALUE is JSON, or text if it is not valid JSON."""
    values: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise UserError(f"--set needs FIELD=VALUE, got '{setting}'.")
        try:
            values[name.strip()] = json.loads(text)
        except ValueError:
            values[name.strip()] = text
    return values


def _progress() -> Callable[..., None]:
    """Return a reporter that prints on stderr at every 10 %."""
    last: dict[str, int] = {}

    def report(share: float, phase: str, more: str = "") -> None:
        tenth = int(share * 10)
        if last.get(phase, -1) < tenth < 10:
            typer.echo(f"{phase}: {10 * tenth} %{more}", err=True)
        last[phase] = tenth

    return report


def _root(root: Path | None) -> Path:
    return root.expanduser().resolve() if root is not None else runs_folder()


def _number(value: Any) -> str:
    return "–" if value is None else f"{value:.2f}"

parse_settings = _parsed
