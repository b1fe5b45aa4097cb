"""The command line as users and scripts call it.

Most tests call it in this process; three start a real one, for exit codes, streams and encodings.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stderr
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from PIL import Image
from pydantic import Field
from typer.testing import CliRunner

import udml_core
from tests.running import wait_for, worked, write_digits
from tests.runs.test_opinions import BETTER, UNCLEAR, damage, keep_opinion
from udml_core.base.declaration import Shown
from udml_core.base.errors import UserError, byte_words
from udml_core.base.started import program_words
from udml_core.cli import commands as cli
from udml_core.cli.options import named_run, takes_options
from udml_core.cli.output import memory_lines, summarize_run
from udml_core.data import catalog
from udml_core.data.given.pair_sets import PairLog
from udml_core.data.splits import make_split
from udml_core.methods import METHODS
from udml_core.methods.rpml import RPML
from udml_core.runs import Run, RunRequest, create_run
from udml_core.runs.analyses import Analysis, AnalysisSpec, plan_analysis
from udml_core.runs.baselines import read_baselines, write_baselines
from udml_core.runs.tasks import Status
from udml_core.work import jobs
from udml_core.work.jobs import dispatch
from udml_core.work.workers import analyse as analysis_worker
from udml_core.work.workers import train as training_worker

ROOT = Path(__file__).resolve().parents[2]


def in_own_process(*words: str) -> subprocess.CompletedProcess[str]:
    """Call the command line in a process of its own."""
    return subprocess.run([sys.executable, "-m", "udml_core", *words], cwd=ROOT, env=os.environ, capture_output=True,
                          text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return worked(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Submitted tasks are not executed."""
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda *_: None)


@pytest.fixture
def workers_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Execution of submitted tasks in this process, with a log in their folder."""
    def execute(task: Run | Analysis, _engine: object = None) -> None:
        with task.log_path.open("a") as log, redirect_stderr(log):
            training_worker.work(task) if isinstance(task, Run) else analysis_worker.work(task)

    monkeypatch.setattr("udml_core.work.jobs.launch.launch", execute)


def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, str, str]:
    """Return exit code, stdout and stderr of a command in this process."""
    monkeypatch.setattr(sys, "argv", ["udml", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    captured = capsys.readouterr()
    code = ended.value.code
    return code if isinstance(code, int) else 1, captured.out, captured.err


def answer(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> Any:
    """Return the object that a successful command prints with --json."""
    code, out, err = call(capsys, monkeypatch, *words, "--json")
    assert code == 0, err
    assert out.count("\n") == 1
    return json.loads(out)


def test_training_a_folder_prints_one_object_on_stdout_and_its_progress_on_stderr(
        tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_digits(tmp_path / "images", 120)
    (folder / "class 0" / "broken.png").write_bytes(b"nothing")
    done = in_own_process("train", "--dataset", str(folder), "--backbone", "pixels", "--method", "rpml",
                          "--set", "epochs=2", "--set", "dimension=8", "--set", "n_neighbors=8", "--set", "epsilon=0.4",
                          "--seed", "3", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    result = json.loads(done.stdout)
    assert result["state"] == "done"
    changed = {"epochs": 2, "dimension": 8, "n_neighbors": 8, "epsilon": 0.4}
    assert result["fields"] == RPML(**changed).model_dump()  # type: ignore[arg-type]
    assert "skipped class 0/broken.png: not an image" in done.stderr
    assert "120 images, 1 file cannot be read" in done.stderr
    assert "epoch 2: loss" in done.stderr
    parts = result["memory"]
    measured, planned = (byte_words(parts["features"][name]) for name in ("measured", "planned"))
    assert f"planned memory: features {planned}, training " in done.stderr
    assert list(parts) == ["features", "training", "index", "evaluation", "first map"]
    assert min(min(part.values()) for part in parts.values()) > 1e8
    run = named_run(result["run"], None)
    assert memory_lines(summarize_run(run)["memory"])[0].startswith(
        f"  memory, measured (and planned): features {measured} ({planned}), training ")
    assert [row["run"] for row in answer(capsys, monkeypatch, "runs")["runs"]] == [result["run"]]


@pytest.mark.usefixtures("workers_in_this_process")
def test_a_failed_run_exits_with_1_and_its_message(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = call(capsys, monkeypatch, "train", "--dataset", "digits", "--backbone", "pixels",
                          "--method", "rpml", "--set", "epsilon=1", "--set", "dimension=8", "--json")
    assert code == 1
    assert json.loads(out)["state"] == "failed"
    assert "Lower the field 'epsilon'" in err
    assert "Traceback" not in err


def test_a_worker_that_dies_leaves_its_error_its_log_and_the_command_to_resume(
        tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    died: list[Run] = []

    def start_worker(_words: list[str], log_path: Path, _settings: dict[str, str]) -> subprocess.Popen[bytes]:
        code = "print('Traceback (most recent call last):'); print('ImportError: libGL.so.1 is missing')"
        with log_path.open("wb") as log:
            return subprocess.Popen([sys.executable, "-c", code], stdout=log)

    def launch(run: Run, _engine: object = None) -> None:
        died.append(run)
        dispatch.execute(run.folder, "cpu", run.status().ticket)

    monkeypatch.setattr(dispatch, "start_worker", start_worker)
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", launch)
    code, _, err = call(capsys, monkeypatch, "train", "--dataset", "digits", "--backbone", "pixels", "--method", "pca",
                        "--set", "dimension=8", "--runs", str(tmp_path / "other runs"))
    (run,) = died
    assert code == 1
    program = shlex.join(program_words())
    assert err.splitlines()[-4:] == [
        dispatch.NEVER_STARTED, "Error: ImportError: libGL.so.1 is missing", f"Log: {run.log_path}",
        f"To resume: {program} resume {run.id} --runs '{tmp_path}/other runs'"]


def test_the_help_has_every_command_in_a_panel_in_the_order_of_use() -> None:
    shown = [str(command.name or command.callback.__name__)  # type: ignore[union-attr]
             for command in cli.app.registered_commands if not command.hidden]
    listed = [name for names in cli.PANELS.values() for name in names]
    assert [*shown, "index"] == listed
    printed = CliRunner().invoke(cli.app, ["--help"], terminal_width=100).output
    assert [line.split("─ ")[1].split(" ─")[0] for line in printed.splitlines() if line.startswith("╭─")] == [
        "Options", *cli.PANELS]


def test_the_version_is_printed(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(capsys, monkeypatch, "--version")[:2] == (0, f"udml {udml_core.__version__}\n")


def test_bad_input_in_its_own_process_exits_with_2_and_leaves_stdout_empty(tmp_path: Path) -> None:
    done = in_own_process("datasets", "--remember", str(tmp_path), "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "has no images" in done.stderr


@pytest.mark.usefixtures("no_workers")
def test_given_halves_are_used_and_named(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for half, count in (("train", 80), ("test", 40)):
        write_digits(tmp_path / half, count)
    words = ("train", "--dataset", str(tmp_path), "--backbone", "pixels", "--method", "pca", "--set", "dimension=8",
             "--no-wait", "--json")
    code, out, err = call(capsys, monkeypatch, *words)
    assert (code, Run(Path(json.loads(out)["folder"])).spec().split) == (0, "seen")
    assert "'seen' uses the given halves (80 train, 40 test); --split zero-shot divides the classes" in err
    assert "does not use the given halves (80 train, 40 test); --split seen does." in call(
        capsys, monkeypatch, *words, "--split", "zero-shot")[2]


@pytest.mark.usefixtures("no_workers")
def test_presets_of_the_command_line_fill_the_fields_that_are_not_set(capsys: Any, monkeypatch: pytest.MonkeyPatch
                                                                      ) -> None:
    words = ("train", "--dataset", "digits", "--backbone", "pixels", "--method", "rpml", "--split", "seen", "--no-wait",
             "--preset", "best", "--set", "alpha=30", "--set", "dimension=16")
    code, out, err = call(capsys, monkeypatch, *words, "--json")
    spec = Run(Path(json.loads(out)["folder"])).spec()
    assert (code, spec.preset, spec.fields["beginning"], spec.fields["alpha"]) == (0, "default", "pca", 30.0)
    assert "best: beginning=pca. From the principal components" in err


HEAVY = ("torch", "faiss", "sklearn", "pandas", "scipy", "pyarrow", "umap", "numba", "openTSNE", "udml_core.methods")


def test_the_help_loads_no_numerical_library() -> None:
    code = ("import sys; sys.argv = ['udml', '--help']\n"
            "from udml_core.__main__ import main\n"
            "try: main()\n"
            f"finally: print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "Train a method on a data set." in done.stdout
    assert done.stderr == "[]\n"


class LaterRequest(RunRequest):
    """Run options with a further field."""

    warmup: Annotated[int, Field(ge=0, le=20), Shown(unit="epochs")] = 3
    """Epochs with a rising learning rate."""

    shuffle: bool = True
    """Whether each epoch has its own order."""


def test_a_declared_field_becomes_an_option_with_range_help_default_and_validation() -> None:
    received: list[dict[str, Any]] = []
    app = typer.Typer(rich_markup_mode=None)

    @app.command()
    @takes_options(LaterRequest, without=("fields",))
    def train(options: dict[str, Any], as_json: cli.Json = False) -> None:
        """Train."""
        received.append(LaterRequest.make(options).model_dump() | {"json": as_json})

    runner = CliRunner()
    text = " ".join(runner.invoke(app, ["--help"]).stdout.split())
    assert "--warmup" in text
    assert "Epochs with a rising learning rate. Allowed: a whole number between 0 and 20 epochs. [default: 3]" in text
    assert "--no-shuffle" in text
    required = ["--dataset", "digits", "--method", "rpml"]
    assert runner.invoke(app, required).exit_code == 0
    assert runner.invoke(app, [*required, "--warmup", "5", "--no-shuffle", "--json"]).exit_code == 0
    chosen = [(values["warmup"], values["shuffle"], values["json"]) for values in received]
    assert chosen == [(3, True, False), (5, False, True)]
    failed = runner.invoke(app, [*required, "--warmup", "21"]).exception
    assert isinstance(failed, UserError)
    assert str(failed) == "warmup must be a whole number between 0 and 20 epochs, got 21."


def test_train_has_an_option_for_every_run_option(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = call(capsys, monkeypatch, "train", "--help")
    assert code == 0
    assert "train [OPTIONS]" in out
    names = {"most_pairs": "--pairs", "select": "--keep"} | {
        name: f"--{name.replace('_', '-')}" for name in RunRequest.model_fields
        if name not in ("fields", "most_pairs", "select")}
    assert "--select,--keep" in out
    assert not [option for option in names.values() if f"{option} " not in out]
    text = " ".join(out.replace("│", " ").split())
    assert "Seed of all random draws. Allowed: a whole number between 0 and 2,147,483,647. [default: 0]" in text


def test_options_can_be_limited_to_the_values_that_a_user_gives() -> None:
    received: list[dict[str, Any]] = []
    app = typer.Typer(rich_markup_mode=None)

    @app.command()
    @takes_options(AnalysisSpec, without=("frames", "names", "content"), only_given=True)
    def analyse(options: dict[str, Any]) -> None:
        received.append(options)

    runner = CliRunner()
    assert runner.invoke(app, ["--kind", "graph"]).exit_code == 0
    assert runner.invoke(app, ["--kind", "umap", "--neighbors", "9", "--min-dist", "0.2", "--seed", "3"]).exit_code == 0
    assert runner.invoke(app, []).exit_code != 0
    assert received == [{"kind": "graph"}, {"kind": "umap", "n_neighbors": 9, "min_dist": 0.2, "seed": 3}]
    assert [plan_analysis(**options).n_neighbors for options in received] == [50, 9]


def test_data_sets_begin_with_the_embedded_one(capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = answer(capsys, monkeypatch, "datasets")["datasets"]
    assert rows[0] == {"name": "fashion-mini", "title": "Fashion-MNIST, 6,000 images", "available": True,
                       "images": 6000, "classes": 10, "missing": None}
    assert {"digits", "fashion-mnist", "birds100"} <= {row["name"] for row in rows}
    folder = write_digits(tmp_path / "mine")
    rows = answer(capsys, monkeypatch, "datasets", "--remember", str(folder))["datasets"]
    assert next(row for row in rows if row["name"] == str(folder))["images"] == 60
    levels = answer(capsys, monkeypatch, "datasets", "--levels", str(folder))["levels"]
    assert [(row["level"], len(row["sizes"]), row["loose"], row["classes"]) for row in levels] == [(1, 10, 0, True)]
    assert len(answer(capsys, monkeypatch, "datasets", "--forget", str(folder))["datasets"]) == len(rows) - 1
    archive = shutil.make_archive(str(tmp_path / "zipped"), "zip", tmp_path, "mine")
    assert answer(capsys, monkeypatch, "datasets", "--levels", archive)["levels"][0]["level"] == 1


def test_methods_are_listed_with_their_fields(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    methods = answer(capsys, monkeypatch, "methods")["methods"]
    assert [method["name"] for method in methods] == [method.card.name for method in METHODS]
    alpha = methods[0]["fields"][0]
    assert (alpha["name"], alpha["default"], alpha["symbol"]) == ("alpha", 45.0, "α")


def test_evaluate_query_and_export_accept_the_folder_of_a_run(
        capsys: Any, monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> None:
    stored = answer(capsys, monkeypatch, "evaluate", str(run.folder))
    assert set(stored) == {"initial", "frozen", "centered pca", "final"}
    assert {"recall@1", "recall@2", "recall@4", "recall@8", "nmi", "map@r"} <= set(stored["final"])
    assert 50 < stored["final"]["recall@1"] <= 100
    assert answer(capsys, monkeypatch, "evaluate", str(run.folder), "--again") == stored
    code, out, _ = call(capsys, monkeypatch, "evaluate", str(run.folder))
    assert re.split(r"\s{2,}", out.splitlines()[0].strip()) == list(stored), "the headings stand apart"
    assert code == 0
    assert "recall@1" in out
    result = answer(capsys, monkeypatch, "query", str(run.folder), "17", "-k", "4")
    assert [hit["rank"] for hit in result["results"]] == [1, 2, 3, 4]
    assert result["searched"] == "1,797 of 1,797 images searched (training half included)"
    by_name = answer(capsys, monkeypatch, "query", str(run.folder), run.dataset().names[17], "-k", "4")
    assert by_name["results"] == result["results"], "a name is a query like its number"
    code, out, err = call(capsys, monkeypatch, "query", str(run.folder), "17", "--gallery", "test")
    assert (code, len(out.splitlines())) == (0, 10)
    assert "of 1,797 images searched (test half)" in err
    initial = answer(capsys, monkeypatch, "query", str(run.folder), "17", "-k", "4", "--embedding", "initial")
    assert initial["results"] != result["results"]
    image = write_digits(tmp_path / "single", 1, by_class=False) / "000.png"
    own = answer(capsys, monkeypatch, "query", str(run.folder), str(image))
    assert (len(own["results"]), own["unlike"], result["unlike"]) == (10, None, None)
    Image.new("RGB", (40, 40), "red").save(tmp_path / "red.png")
    unlike = answer(capsys, monkeypatch, "query", str(run.folder), str(tmp_path / "red.png"))["unlike"]
    assert unlike["share"] >= 0.99
    assert unlike["words"] in call(capsys, monkeypatch, "query", str(run.folder), str(tmp_path / "red.png"))[2]
    exported = answer(capsys, monkeypatch, "export", str(run.folder), str(tmp_path / "out"))
    assert "embedder.safetensors" in exported["files"]


@pytest.mark.slow
def test_an_analysis_is_computed_in_the_background_and_its_progress_is_shown(
        capsys: Any, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    words = ("analyse", str(run.folder), "--kind", "tsne", "--scope", "test", "--frames", "frozen,final",
             "--perplexity", "10", "--json")
    code, out, err = call(capsys, monkeypatch, *words)
    assert (code, out.count("\n")) == (0, 1), err
    assert "layout: " in err
    analysis = json.loads(out)
    assert analysis["state"] == "done"
    assert analysis["asked"] == {"scope": "test", "frames": ["frozen", "final"], "perplexity": 10.0, "seed": 0}
    assert answer(capsys, monkeypatch, *words[:-1]) == analysis


@pytest.mark.slow
@pytest.mark.usefixtures("workers_in_this_process")
def test_analyses_are_listed_and_a_failed_one_exits_with_1(
        capsys: Any, monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> None:
    copied = Run(Path(shutil.copytree(run.folder, tmp_path / run.id)))
    (source,) = (analysis for analysis in answer(capsys, monkeypatch, "analyses", str(copied.folder))["analyses"]
                 if analysis["kind"] == "pca")
    grid = answer(capsys, monkeypatch, "analyse", str(copied.folder), "--kind", "grid", "--source", source["analysis"])
    assert grid["asked"] == {"source": source["analysis"], "frame": "final"}
    listed = answer(capsys, monkeypatch, "analyses", str(copied.folder))["analyses"]
    assert listed[0] == grid
    assert {"graph", "pca"} <= {analysis["kind"] for analysis in listed}
    code, out, err = call(capsys, monkeypatch, "analyse", str(copied.folder), "--kind", "tsne", "--scope", "test",
                          "--perplexity", "300", "--json")
    assert (code, json.loads(out)["state"]) == (1, "failed")
    assert "perplexity" in err


@pytest.mark.usefixtures("no_workers")
def test_a_run_learns_from_the_pairs_of_a_file_or_of_the_app_or_from_drawn_pairs(
        capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ("train", "--dataset", "digits", "--backbone", "pixels", "--method", "nml", "--split", "seen", "--no-wait",
             "--set", "dimension=4", "--set", "epochs=1")
    path = tmp_path / "pairs.csv"
    train = make_split(catalog.load("digits"), "seen").train
    path.write_text(f"first,second,same\n{train[0]},{train[9]},same\n{train[3]},{train[4]},different\n")
    from_file = Run(Path(answer(capsys, monkeypatch, *words, "--pairs-file", str(path))["folder"]))
    assert from_file.spec().pairs == "given"
    assert from_file.pairs().pairs.tolist() == [[train[0], train[9]], [train[3], train[4]]]
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    code, _, err = call(capsys, monkeypatch, *words, "--given-pairs")
    assert (code, "got 0" in err) == (2, True)
    log = PairLog(catalog.load("digits"))
    for first, second, same in ((train[0], train[1], True), (train[2], train[3], False)):
        log.add(int(first), int(second), same)
    from_app = Run(Path(answer(capsys, monkeypatch, *words, "--given-pairs")["folder"]))
    log.undo()
    assert from_app.pairs().same.tolist() == [True, False]
    drawn = Run(Path(answer(capsys, monkeypatch, *words, "--pairs", "500")["folder"]))
    assert (drawn.spec().pairs, drawn.spec().most_pairs) == ("labels", 500)


@pytest.mark.usefixtures("no_workers")
def test_a_run_is_continued_with_the_pairs_that_it_has_not_used(
        capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    train = make_split(catalog.load("digits"), "seen").train.tolist()
    first = worked(tmp_path / "runs", method="nml", fields={"dimension": 4, "epochs": 1}, most_pairs=100)
    path = tmp_path / "further.csv"
    path.write_text(f"first,second,same\n{train[0]},{train[9]},same\n{train[3]},{train[4]},different\n")
    words = ("continue", first.id, "--no-wait")
    second = Run(Path(answer(capsys, monkeypatch, *words, "--pairs-file", str(path), "--set", "epochs=3")["folder"]))
    assert second.spec().starts_from == first.id
    assert second.spec().fields == first.spec().fields | {"epochs": 3}
    assert second.pairs().pairs.tolist() == [[train[0], train[9]], [train[3], train[4]]]
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    log = PairLog(catalog.load("digits"))
    for row, other, same in ((0, 9, True), (1, 2, True), (4, 5, False)):
        log.add(train[row], train[other], same)
    second.write_status(first.status())
    code, _, err = call(capsys, monkeypatch, "continue", second.id, "--given-pairs", "--no-wait")
    assert (code, "has lost its folder 'checkpoint'" in err) == (2, True)
    third = Run(Path(answer(capsys, monkeypatch, *words, "--given-pairs")["folder"]))
    assert (third.spec().fields["epochs"], len(third.pairs())) == (1, 3)


BAD: list[tuple[list[str], str]] = [
    (["train", "--dataset", "nowhere", "--method", "rpml"], "There is no data set 'nowhere'"),
    (["train", "--dataset", "digits", "--method", "nothing"], "The method must be one of rpml, srpml"),
    (["train", "--dataset", "digits", "--method", "rpml", "--set", "alpha=120"],
     "RPML.alpha must be between 0 and 90 degrees (0 and 90 excluded), got 120."),
    (["train", "--dataset", "digits", "--method", "rpml", "--set", "alpha"], "--set needs FIELD=VALUE, got 'alpha'"),
    (["train", "--dataset", "digits", "--method", "rpml", "--set", "beta=1"], "RPML has no field 'beta'"),
    (["train", "--dataset", "digits", "--method", "rpml", "--set", "weight=heavy"], "got 'heavy'"),
    (["train", "--dataset", "digits", "--method", "rpml", "--backbone", "nothing"], "The backbone must be one of"),
    (["train", "--dataset", "digits", "--method", "rpml", "--split", "half"], "half"),
    (["train", "--dataset", "digits", "--method", "whiten", "--labels-per-class", "5"], "and whiten does not"),
    (["train", "--dataset", "digits", "--method", "ssdml", "--backbone", "pixels", "--labels-per-class", "0"],
     "labels_per_class must be a whole number"),
    (["train", "--dataset", "digits", "--method", "ssdml", "--backbone", "pixels", "--labels-per-class", "999"],
     "must be between 1 and 183, the size of the largest class of the training half, got 999"),
    (["train", "--dataset", "digits", "--method", "rpml", "--seed", "-1"],
     "seed must be a whole number between 0 and 2,147,483,647, got -1."),
    (["train", "--dataset", "digits", "--method", "ssdml", "--labels", "invented"], "invented"),
    (["train", "--dataset", "digits", "--method", "rpml", "--device", "tpu"], "must be auto, cpu, cuda:N or"),
    (["train", "--dataset", "digits", "--method", "rpml", "--size", "3000"], "between 4 and 1024 pixels, got 3000"),
    (["train", "--dataset", "digits"], "--method"),
    (["train", "--dataset", "digits", "--method", "nml", "--pairs", "1"], "between 2 and 500,000, got 1"),
    (["train", "--dataset", "digits", "--method", "nml", "--pairs-file", "FILE"], "columns first, second and same"),
    (["train", "--dataset", "digits", "--method", "nml", "--pairs-file", "nowhere.csv"], "could not be read"),
    (["train", "--dataset", "digits", "--method", "nml", "--pairs-file", "x", "--given-pairs"], "Remove --pairs-file"),
    (["train", "--dataset", "digits", "--method", "nml", "--given-pairs", "--pairs", "9"], "drawn from labels"),
    (["train", "--dataset", "FLAT", "--method", "nca"], "NCA learns from class labels"),
    (["train", "--dataset", "digits", "--method", "rpml", "--backbone", "pixels", "--set", "dimension=128"],
     "the features' dimension 64"),
    (["train", "--dataset", "FLAT", "--method", "pca", "--set", "dimension=128"],
     "at most 8 dimensions (8 images of 1280-d features)"),
    (["train", "--dataset", "digits", "--method", "frozen", "--backbone", "squeezenet", "--size", "8"],
     "between 15 and 1024 pixels, got 8"),
    (["train", "--dataset", "FLAT", "--method", "pca", "--split", "zero-shot"], "zero-shot split needs at least 2"),
    (["train", "--dataset", "EMPTY", "--method", "pca"], "has no images. Expected: folder/CLASS/image.jpg"),
    (["train", "--dataset", "FILE", "--method", "pca"], "must be a folder of images"),
    (["train", "--dataset", "~unknown-user", "--method", "pca"], "There is no data set '~unknown-user'"),
    (["train", "--dataset", "digits", "--method", "pca", "--set", "dimension=NaN"], "got nan"),
    (["train", "--dataset", "digits", "--method", "frozen", "--backbone", "pixels", "--runs", "BELOW"],
     "Choose another folder with --runs or UDML_RUNS"),
    (["evaluate", "nothing"], "No run 'nothing' in"),
    (["evaluate", "~unknown-user"], "No run '~unknown-user' in"),
    (["resume", "RUN"], "is done; there is nothing to resume"),
    (["continue", "RUN", "--pairs-file", "x", "--given-pairs"], "Remove --pairs-file or"),
    (["continue", "RUN"], "Name a file with --pairs-file"),
    (["continue", "RUN", "--given-pairs"], "Choose a run of NML, ML or KML"),
    (["continue", "nothing", "--given-pairs"], "No run 'nothing' in"),
    (["query", "RUN", "FILE"], "must be an image in one of the formats"),
    (["query", "RUN", "3", "--embedding", "last"], "has no embedding 'last'. Choose one of"),
    (["query", "RUN", "nothing.png"], "got 'nothing.png'"),
    (["query", "RUN", "²"], "got '²'"),
    (["query", "RUN", "9" * 5000], "got '9999"),
    (["train", "--dataset", "digits", "--method", "pca", "--device", "cuda:²"], "must be auto, cpu, cuda:N or"),
    (["query", "RUN", "99999"], "between 0 and 1796, got 99999"),
    (["query", "RUN", "3", "-k", "0"], "-k"),
    (["query", "RUN", "~unknown-user"], "got '~unknown-user'"),
    (["query", "RUN", "EMPTY"], "must be an image file, but is a folder, a named pipe or a device"),
    (["export", "RUN", "FLAT"], "new or empty folder"),
    (["export", "RUN", "FILE"], "new or empty folder"),
    (["export", "RUN", "BELOW"], "could not be written to"),
    (["datasets", "--remember", "EMPTY"], "has no images"),
    (["analyse", "RUN", "--kind", "sne"], "sne"),
    (["analyse", "RUN", "--kind", "tsne", "--perplexity", "1"], "greater than or equal to 2, got 1.0"),
    (["analyse", "RUN", "--kind", "pca", "--frames", "last"], "frames: "),
    (["analyse", "RUN", "--kind", "pca", "--frames", "0"], "epochs are stored for the sample only"),
    (["analyse", "RUN", "--kind", "grid"], "the kind 'grid' needs a map"),
    (["analyse", "RUN", "--kind", "grid", "--source", "umap"], "has no analysis 'umap'"),
    (["analyse", "nothing", "--kind", "pca"], "No run 'nothing' in"),
    (["analyses", "nothing"], "No run 'nothing' in"),
    (["analyse-work", "EMPTY"], "must describe an analysis"),
    (["nonsense"], "nonsense"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=[" ".join(words)[:60] for words, _ in BAD])
def test_bad_input_exits_with_2_and_one_message(
        words: list[str], message: str, capsys: Any, monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> None:
    paths = {"RUN": run.folder, "FLAT": tmp_path / "flat", "EMPTY": tmp_path / "empty", "FILE": tmp_path / "file.png",
             "BELOW": tmp_path / "file.png" / "below"}
    write_digits(tmp_path / "flat", 8, by_class=False)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.png").write_text("no image")
    code, out, err = call(capsys, monkeypatch, *(str(paths.get(word, word)) for word in words))
    assert code == 2
    assert out == ""
    assert message in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) <= 2


@pytest.mark.slow
def test_a_run_is_started_stopped_and_resumed(
        capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started = answer(capsys, monkeypatch, "train", "--dataset", "digits", "--backbone", "pixels", "--method", "rpml",
                     "--set", "epochs=25", "--set", "dimension=8", "--split", "seen", "--no-wait")
    assert started["state"] in ("waiting", "running")
    wait_for(Run(Path(started["folder"])), "running")
    with pytest.raises(UserError, match="already"):
        jobs.resume(Run(Path(started["folder"])))
    stopped = answer(capsys, monkeypatch, "stop", started["run"])
    assert stopped["state"] == "stopped"
    code, out, err = call(capsys, monkeypatch, "evaluate", started["run"], "--json")
    assert (code, out) == (2, "")
    assert "is stopped and has no evaluation. Resume it" in err
    resumed = answer(capsys, monkeypatch, "resume", started["run"])
    assert (resumed["state"], resumed["epoch"]) == ("done", 25)
    assert resumed["evaluation"]["final"]["recall@1"] > 50


def test_work_prints_the_state_of_the_run(
        capsys: Any, monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> None:
    code, _, err = call(capsys, monkeypatch, "work", str(run.folder))
    assert (code, "is done" in err) == (0, True)
    assert answer(capsys, monkeypatch, "stop", str(run.folder))["state"] == "done"
    waiting = create_run(run.spec(), tmp_path / "runs")
    assert answer(capsys, monkeypatch, "stop", waiting.id)["state"] == "stopped"
    code, _, err = call(capsys, monkeypatch, "work", waiting.id)
    assert (code, "is stopped. Stopped. Resume it to continue" in err) == (1, True)


def test_the_verdict_without_labels_is_printed_with_what_labels_say(
        capsys: Any, monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> None:
    copied = Run(shutil.copytree(run.folder, tmp_path / "runs" / run.id))
    root = ("--runs", str(copied.root))
    assert answer(capsys, monkeypatch, "runs", *root)["runs"][0]["second opinion"] is None
    evaluation = copied.evaluation()
    assert evaluation is not None
    evaluation["frozen"] |= {"recall@1": evaluation["final"]["recall@1"] + 1.2, "map@r": evaluation["final"]["map@r"]}
    copied.write_evaluation(evaluation)
    keep_opinion(copied, BETTER, UNCLEAR)
    said = {"first result": "better", "whole group": "cannot tell"}
    assert answer(capsys, monkeypatch, "runs", *root)["runs"][0]["second opinion"] == said
    assert answer(capsys, monkeypatch, "evaluate", str(copied.folder))["second opinion"] == said
    _, out, _ = call(capsys, monkeypatch, "runs", *root)
    assert "(first result better, whole group cannot tell)" in out
    _, out, _ = call(capsys, monkeypatch, "evaluate", str(copied.folder))
    assert "took no part in this run. The labels say otherwise: R@1 falls by 1.2 points." in out
    damage(copied, b"garbage")
    code, out, err = call(capsys, monkeypatch, "evaluate", str(copied.folder))
    assert (code, "took no part" in out) == (0, False)
    assert f"The stored second opinion is damaged and does not count. Compute it again: udml opinion {copied.id}" in err


def test_a_run_of_a_missing_device_is_evaluated_but_not_trained(
        capsys: Any, monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> None:
    copied = Run(shutil.copytree(run.folder, tmp_path / "copied"))
    (copied.folder / "spec.json").write_text(copied.spec().model_copy(update={"device": "cuda:7"}).model_dump_json())
    write_baselines(copied, {"frozen": {"sample recall@1": 0.5}})
    assert answer(capsys, monkeypatch, "evaluate", str(copied.folder), "--again") == run.evaluation()
    assert read_baselines(copied) is None, "the lines to beat are computed again, too"
    copied.write_status(Status(state="stopped"))
    code, _, err = call(capsys, monkeypatch, "work", str(copied.folder))
    assert (code, "The device 'cuda:7' does not exist" in copied.status().message) == (1, True)
    assert copied.status().message in err


@pytest.mark.parametrize("content", [None, b"", b"cut"])
def test_a_run_without_its_index_can_be_searched(
        content: bytes | None, capsys: Any, monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> None:
    copied = Run(shutil.copytree(run.folder, tmp_path / "copied"))
    whole = copied.index_path.read_bytes()
    expected = answer(capsys, monkeypatch, "query", str(run.folder), "17")["results"]
    copied.index_path.unlink()
    if content is not None:
        copied.index_path.write_bytes(content and whole[:1000])
    assert answer(capsys, monkeypatch, "query", str(copied.folder), "17")["results"] == expected


def test_a_cache_that_cannot_be_written_gives_a_message(
        capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "file"))
    folder = write_digits(tmp_path / "images", 20)
    code, out, err = call(capsys, monkeypatch, "train", "--dataset", str(folder), "--method", "pca", "--json")
    assert (code, out) == (2, "")
    assert "Not a directory" in err
    assert "Traceback" not in err


def test_names_that_the_terminal_cannot_show_are_replaced(tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "日本", 4)
    words = ["-X", "utf8=0", "-m", "udml_core", "datasets", "--remember", str(folder)]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, env=os.environ | {
        "PYTHONIOENCODING": "cp1252:strict", "UDML_CACHE": str(tmp_path / "cache")}, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "??").encode() in done.stdout


def test_without_a_command_the_commands_are_listed(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = call(capsys, monkeypatch)
    assert code in (0, 2)
    assert "train" in out + err


@pytest.mark.usefixtures("workers_in_this_process")
def test_a_refinement_prints_its_protocol_and_measures(
        capsys: Any, monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> None:
    copied = Run(Path(shutil.copytree(run.folder, tmp_path / run.id)))
    words = ("refine", str(copied.folder), "--recipe", "whiten + average:k=10,times=2")
    summary = answer(capsys, monkeypatch, *words)
    assert summary["asked"] == {"scope": "test", "frames": ["final"], "recipe": "whiten+average:times=2"}
    assert summary["protocol"] == "transductive"
    assert summary["seen"] == {"whiten": "training half", "average": "gallery"}
    assert summary["measures"]["neighbor stability"]["before"] == 100.0
    code, out, err = call(capsys, monkeypatch, *words)
    assert code == 0
    assert "Add '+expand' for such queries" in err
    assert f"recall@1: {summary['measures']['recall@1']['before']:.1f} → " in out
    code, _, err = call(capsys, monkeypatch, "refine", str(copied.folder), "--recipe", "whitten")
    assert code == 2
    assert "got 'whitten'" in err
