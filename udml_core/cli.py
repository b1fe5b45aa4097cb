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
from udml_core.analyses import COUNTED, Analysis, Kind, Scope, find_analysis, list_analyses, plan_analysis
from udml_core.backbones.pooling import Pooling
from udml_core.data import catalog
from udml_core.data.dataset import Dataset, read_given_image
from udml_core.data.given.pairs import MOST_PAIRS, GivenPairs, PairSet, read_pairs
from udml_core.data.label_budget import LabelSource
from udml_core.data.sources.folder import Folder
from udml_core.data.splits import Select, SplitName, make_split
from udml_core.errors import UserError
from udml_core.evaluation import in_short
from udml_core.exporting import export
from udml_core.methods import METHODS, describe
from udml_core.methods.shared.distributed import together
from udml_core.paths import existing_path
from udml_core.retrieval import Gallery, Retrieval
from udml_core.runs import Run, find_run, jsonable, list_runs, runs_folder
from udml_core.tasks import ADVICE, LIVE_STATES
from udml_core.workers import analyse as analyst
from udml_core.workers import train as worker

LONGEST_NUMBER = 20
app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False,
                  help="Metric learning with few labels or none.")
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
Root = Annotated[Path | None, typer.Option("--runs", help="Folder of runs (UDML_RUNS, else ./runs).")]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, the start of one, or its folder.")]


@app.command()
def datasets(as_json: Json = False,
             remember: Annotated[Path | None, typer.Option(help="List this folder of images from now on.")] = None,
             forget: Annotated[Path | None, typer.Option(help="Take this folder off the list.")] = None) -> None:
    """The data sets that can be used, the embedded one first."""
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
        + ("" if row["available"] else f"   not here: {row['missing']}") for row in rows])


@app.command()
def methods(as_json: Json = False) -> None:
    """The methods and their fields."""
    rows: list[dict[str, Any]] = []
    for method in METHODS:
        fields = [{"name": one.name, "type": one.kind.__name__, "default": one.default, "allowed": one.allowed,
                   "text": one.text, "symbol": one.shown.symbol, "unit": one.shown.unit} for one in describe(method)]
        rows.append({"name": method.name, "title": method.title, "paper": method.paper, "idea": method.idea,
                     "supervision": method.supervision, "promise": method.promise,
                     "promise_source": method.promise_source, "fields": fields})
    _answer({"methods": rows}, as_json, lambda: [
        line for row in rows for line in (f"{row['name']}: {row['idea']}", *(
            f"    {one['name']}={one['default']}  {one['allowed']}. {one['text']}" for one in row["fields"]), "")])


@app.command()
def train(dataset: Annotated[str, typer.Option(help="A data set's name, or a folder of images.")],
          method: Annotated[str, typer.Option(help="A method's name.")],
          settings: Annotated[list[str] | None, typer.Option("--set", metavar="FIELD=VALUE",
                                                             help="A field of the method; VALUE as JSON.")] = None,
          backbone: Annotated[str, typer.Option(help="An encoder's name, or timm:NAME.")] = "efficientnet-lite0",
          pooling: Annotated[Pooling, typer.Option()] = "mean",
          size: Annotated[int | None, typer.Option(help="Pixels of the square that images are read at.")] = None,
          split: Annotated[SplitName | None, typer.Option(help="Default: zero-shot with labels, all without.")] = None,
          device: Annotated[str, typer.Option(help="auto, cpu or cuda:N.")] = "auto",
          seed: Annotated[int, typer.Option()] = 0,
          select: Annotated[Select | None, typer.Option(help="Which epoch is kept. Default: validation where labels "
                                                             "were given, else last.")] = None,
          labels: Annotated[LabelSource, typer.Option(help="For methods that learn from few labels: drawn from "
                                                           "the data set's, or given in the app.")] = "drawn",
          labels_per_class: Annotated[int | None, typer.Option(help="How many are drawn. Default: 10; 5 where classes "
                                                                    "are small.")] = None,
          pairs: Annotated[int, typer.Option(help="Most pairs to draw from the labels, of methods that learn from "
                                                  "pairs.")] = MOST_PAIRS,
          pairs_file: Annotated[Path | None, typer.Option(metavar="CSV", help="Learn from these pairs: columns first, "
                                                          "second (an image's name or number), same.")] = None,
          given_pairs: Annotated[bool, typer.Option("--given-pairs", help="Learn from the pairs that were given in the "
                                                    "app.")] = False,
          wait: Annotated[bool, typer.Option(help="Follow the run to its end.")] = True,
          root: Root = None, as_json: Json = False) -> None:
    """Train a method on a data set. An interrupt stops the run; its finished epochs stay."""
    data = catalog.load(dataset, _progress())
    for skipped in data.skipped[:20]:
        typer.echo(f"skipped {skipped.file}: {skipped.reason}", err=True)
    if data.skipped:
        typer.echo(f"{len(data.skipped)} files skipped, {len(data)} images read", err=True)
    given = _pairs_of(data, pairs_file, given_pairs)
    if given is not None and pairs != MOST_PAIRS:
        raise UserError("--pairs tells how many are drawn from labels, and pairs were given. Leave it out.")
    spec = jobs.plan(data, method, _parsed(settings or []), backbone, pooling, size, split, seed,
                     device, select, labels, labels_per_class, pairs, given)
    if given is not None:
        inside = given.within(make_split(data, spec.split, spec.holds_out, spec.seed).train)
        typer.echo(f"{len(inside)} of {len(given)} pairs are of images that train", err=True)
    _start(jobs.submit(spec, _root(root), given), wait, as_json)


def _pairs_of(data: Dataset, pairs_file: Path | None, given_pairs: bool) -> PairSet | None:
    """Those that a file names or that were given in the app; None where neither is asked for."""
    if pairs_file and given_pairs:
        raise UserError("Pairs come from a file or from the app, and both were named. Leave out --pairs-file or "
                        "--given-pairs.")
    return read_pairs(pairs_file, data) if pairs_file else GivenPairs(data).read() if given_pairs else None


@app.command()
def work(run: RunName, again: Annotated[bool, typer.Option(
        "--again", help="Also a run that was stopped, that failed, or whose worker died.")] = False,
         root: Root = None) -> None:
    """Execute a run here, from where it stands to its end. `train` and the app call this.

    With torchrun, PSLR, ISIF and NCE share every batch between several GPUs, those numbered from 0 on: start the run,
    stop it, and go on with `torchrun … -m udml_core work RUN --again`.
    """
    found = find_run(run, _root(root))
    with together(found.spec().device) as helping:
        if helping:
            worker.assist(found, helping)
            return
        if again and found.status().state not in LIVE_STATES:
            found.clear_failure()
        status = worker.work(found)
    said = " ".join(part for part in (f"{found.id} is {status.state}.", status.message, ADVICE[status.state]) if part)
    if status.state != "done":
        _refuse(said, 1)
    typer.echo(said, err=True)


@app.command()
def resume(run: RunName, wait: Annotated[bool, typer.Option(help="Follow the run to its end.")] = True,
           root: Root = None, as_json: Json = False) -> None:
    """Go on with a run behind its last finished epoch."""
    found = find_run(run, _root(root))
    jobs.resume(found)
    if wait:
        _follow(found, found.folder.parent)
    _report_run(found, as_json, must_be_done=wait)


@app.command(name="continue")
def continue_(run: RunName,
              pairs_file: Annotated[Path | None, typer.Option(metavar="CSV", help="The further pairs: columns first, "
                                                              "second (an image's name or number), same.")] = None,
              given_pairs: Annotated[bool, typer.Option("--given-pairs", help="Those given in the app that the run has "
                                                        "not learnt from yet.")] = False,
              settings: Annotated[list[str] | None, typer.Option(
                  "--set", metavar="FIELD=VALUE",
                  help=f"Of {', '.join(jobs.CHANGEABLE)}; epochs is 1 unless told.")] = None,
              device: Annotated[str, typer.Option(help="auto, cpu or cuda:N.")] = "auto",
              wait: Annotated[bool, typer.Option(help="Follow the run to its end.")] = True,
              root: Root = None, as_json: Json = False) -> None:
    """Train on with further pairs where a finished run of NML, ML or KML ended: a new run, and the old one stays."""
    earlier = find_run(run, _root(root))
    data = earlier.dataset(_progress())
    told = _pairs_of(data, pairs_file, given_pairs)
    if told is None:
        raise UserError("A run is continued with further pairs. Name a file of them with --pairs-file, or take those "
                        "given in the app with --given-pairs.")
    further = earlier.further(told) if given_pairs else told
    spec = jobs.plan_continuation(earlier, data, further, _parsed(settings or []), device)
    _start(jobs.submit(spec, earlier.folder.parent, further), wait, as_json)


@app.command()
def stop(run: RunName, root: Root = None, as_json: Json = False) -> None:
    """End a run; its finished epochs stay and it can be resumed."""
    found = find_run(run, _root(root))
    jobs.stop(found)
    _report_run(found, as_json)


@app.command(name="runs")
def list_all(root: Root = None, as_json: Json = False) -> None:
    """All runs, newest first."""
    rows = [_summary(run) for run in list_runs(_root(root))]
    _answer({"runs": rows}, as_json, lambda: [
        f"{row['run']}  {row['state']:11} epoch {row['epoch']}/{row['epochs']}  {row['method']} on {row['dataset']}"
        + (f"  ({row['ahead']} before it)" if row["state"] == "waiting" else "") for row in rows]
        or [f"No runs in {_root(root)} yet. Start one: python -m udml_core train --dataset fashion-mini --method rpml"])


@app.command()
def evaluate(run: RunName, again: Annotated[bool, typer.Option(help="Compute it anew from the embeddings.")] = False,
             root: Root = None, as_json: Json = False) -> None:
    """Initial, frozen, PCA and final on the test half, in percent."""
    found = find_run(run, _root(root))
    status = found.status()
    result = found.evaluation()
    if status.state != "done" or result is None:
        raise UserError(f"The run {found.id} is {status.state} and has no evaluation yet. {ADVICE[status.state]}")
    if again:
        result = worker.evaluate_run(found, worker.load(found, _progress()), _progress())
    names = list(dict.fromkeys(name for row in result.values() for name in in_short(row)))
    shown = {key: {name: row.get(name) for name in names} for key, row in result.items()}
    _answer(result, as_json, lambda: [
        f"{'':28}" + "".join(f"{key:>10}" for key in shown),
        *(f"{name:28}" + "".join(f"{_number(row[name]):>10}" for row in shown.values()) for name in names)])


@app.command()
def query(run: RunName, image: Annotated[str, typer.Argument(help="An image file, or the number of one of the set.")],
          k: Annotated[int, typer.Option("-k", min=1, max=10_000)] = 10,
          gallery: Annotated[Gallery, typer.Option(help="Search the test half, or all images.")] = "test",
          root: Root = None, as_json: Json = False) -> None:
    """The images most similar to one, by what the run learnt."""
    opened = Retrieval(find_run(run, _root(root)))
    path = existing_path(image)
    if path is not None:
        hits = opened.search_image(read_given_image(path, str(path)), k, "final", gallery)
    elif image.isdecimal() and len(image) < LONGEST_NUMBER:
        hits = opened.search_item(int(image), k, "final", gallery)
    else:
        raise UserError(f"The query must be an image file or the number of an image, and there is no '{image[:80]}'.")
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
            kind: Annotated[Kind, typer.Option(help="pca, tsne and umap are maps; grid is snapped from a map.")],
            scope: Annotated[Scope, typer.Option(help="Which images; sample is what is kept for every epoch.")] = "all",
            frames: Annotated[str | None, typer.Option(help="frozen, initial, final or epochs, with commas.")] = None,
            perplexity: Annotated[float | None, typer.Option(help="Of t-SNE.")] = None,
            neighbors: Annotated[int | None, typer.Option(help="Of UMAP and the graph.")] = None,
            min_dist: Annotated[float | None, typer.Option(help="Of UMAP.")] = None,
            seed: Annotated[int | None, typer.Option(help="Of t-SNE and UMAP.")] = None,
            source: Annotated[str | None, typer.Option(help="The map that a grid is snapped from.")] = None,
            frame: Annotated[str | None, typer.Option(help="Which of its frames; else the last.")] = None,
            wait: Annotated[bool, typer.Option(help="Follow it to its end.")] = True,
            root: Root = None, as_json: Json = False) -> None:
    """Compute a map, a graph or a grid of a finished run, and keep it. An interrupt stops it."""
    found = find_run(run, _root(root))
    if source is not None:
        map_ = find_analysis(found, source)
        source, frame = map_.id, frame or map_.spec().frames[-1]
    given = {"frames": tuple(frames.split(",")) if frames else None, "perplexity": perplexity,
             "n_neighbors": neighbors, "min_dist": min_dist, "seed": seed, "source": source, "frame": frame}
    spec = plan_analysis(kind=kind, scope=scope, **{name: value for name, value in given.items() if value is not None})
    analysis = jobs.analyse(found, spec)
    typer.echo(f"analysis {analysis.id} in {analysis.folder}", err=True)
    if wait:
        _follow_analysis(analysis)
    summary = _analysis_summary(analysis)
    _answer(summary, as_json, lambda: [_analysis_line(summary)])
    if wait and summary["state"] != "done":
        _refuse(summary["message"] or f"The analysis ended as {summary['state']}.", 1)


@app.command(name="analyse-work", hidden=True)
def analyse_work(folder: Path) -> None:
    """Execute an analysis here. `analyse` and the app call this."""
    analysis = Analysis(folder.resolve())
    analysis.spec()  # so that nothing is written into a folder that is none
    status = analyst.work(analysis)
    if status.state == "failed":
        _refuse(status.message, 1)


@app.command()
def analyses(run: RunName, root: Root = None, as_json: Json = False) -> None:
    """What was computed about a run, newest first."""
    found = find_run(run, _root(root))
    rows = [_analysis_summary(analysis) for analysis in list_analyses(found)]
    _answer({"run": found.id, "analyses": rows}, as_json, lambda: [_analysis_line(row) for row in rows] or [
        f"None yet. Compute one: python -m udml_core analyse {found.id} --kind tsne"])


@app.command(name="export")
def export_run(run: RunName, folder: Annotated[Path, typer.Argument(metavar="DIR")], root: Root = None,
               as_json: Json = False) -> None:
    """Copy model, embeddings (also as Parquet), index, curves and evaluation into a new folder."""
    files = export(find_run(run, _root(root)), folder)
    _answer({"folder": str(folder), "files": [path.name for path in files]}, as_json,
            lambda: [str(path) for path in files])


def main() -> NoReturn:
    """Run the command line: 0 done, 1 a run failed, 2 bad input with one clear message."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a name that the terminal's alphabet lacks is no reason to fail
    try:
        code = app(standalone_mode=False)
    except UserError as error:
        _refuse(str(error))
    except typer.TyperException as error:
        _refuse(error.format_message())
    except (typer.Abort, KeyboardInterrupt):
        _refuse("Interrupted.", 130)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:  # a folder that cannot be written, a disk that is full
        _refuse(str(error))
    sys.exit(code if isinstance(code, int) else 0)


def _refuse(message: str, code: int = 2) -> NoReturn:
    typer.echo(message, err=True)
    sys.exit(code)


def _answer(value: Any, as_json: bool, lines: Callable[[], list[str]]) -> None:
    if as_json:
        typer.echo(json.dumps(jsonable(value)))
    else:
        for line in lines():
            typer.echo(line)


def _summary(run: Run) -> dict[str, Any]:
    spec, status, evaluation = run.spec(), run.status(), run.evaluation()
    ahead = jobs.place(run, run.folder.parent) if status.state == "waiting" else 0
    return {"run": run.id, "folder": str(run.folder), "state": status.state, "message": status.message,
            "epoch": status.epoch, "epochs": status.epochs, "phase": status.phase, "ahead": ahead,
            "method": spec.method, "dataset": spec.dataset, "fields": spec.fields, "seed": spec.seed,
            "evaluation": {name: in_short(row) for name, row in evaluation.items()} if evaluation else None}


def _start(run: Run, wait: bool, as_json: bool) -> None:
    """Say which run was begun, and follow it to its end where that is asked for."""
    typer.echo(f"run {run.id} in {run.folder}", err=True)
    if wait:
        _follow(run, run.folder.parent)
    _report_run(run, as_json, must_be_done=wait)


def _report_run(run: Run, as_json: bool, must_be_done: bool = False) -> None:
    summary = _summary(run)
    _answer(summary, as_json, lambda: [f"{summary['run']}  {summary['state']}  epoch {summary['epoch']}/"
                                       f"{summary['epochs']}  {summary['message']}".rstrip()])
    if must_be_done and summary["state"] != "done":
        _refuse(summary["message"] or f"The run ended as {summary['state']}.", 1)


def _analysis_summary(analysis: Analysis) -> dict[str, Any]:
    spec, status = analysis.spec(), analysis.status()
    return {"analysis": analysis.id, "folder": str(analysis.folder), "kind": spec.kind, "state": status.state,
            "phase": status.phase, "message": status.message,
            "asked": spec.model_dump(include=set(COUNTED[spec.kind]))}


def _analysis_line(row: dict[str, Any]) -> str:
    asked = ", ".join(f"{name} {', '.join(map(str, value)) if isinstance(value, tuple) else value}"
                      for name, value in row["asked"].items() if name != "content")
    return f"{row['analysis']}  {row['state']:11} {asked}  {row['message']}".rstrip()


def _follow_analysis(analysis: Analysis) -> None:
    """Tell on stderr how an analysis goes on, until it ends. An interrupt stops it."""
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
    """Tell on stderr how the run goes on, until it ends. An interrupt stops the run."""
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
                text = f"waiting, {jobs.place(run, root)} before it"
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
    """FIELD=VALUE pairs, VALUE as JSON or, where it is no JSON, as text."""
    values: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise UserError(f"--set takes FIELD=VALUE, got '{setting}'.")
        try:
            values[name.strip()] = json.loads(text)
        except ValueError:
            values[name.strip()] = text
    return values


def _progress() -> Callable[..., None]:
    """Say on stderr what is going on, a line a tenth."""
    last: dict[str, int] = {}

    def report(share: float, what: str, more: str = "") -> None:
        tenth = int(share * 10)
        if last.get(what, -1) < tenth < 10:
            typer.echo(f"{what}: {10 * tenth} %{more}", err=True)
        last[what] = tenth

    return report


def _root(root: Path | None) -> Path:
    return root.expanduser().resolve() if root is not None else runs_folder()


def _number(value: Any) -> str:
    return "–" if value is None else f"{value:.2f}"
