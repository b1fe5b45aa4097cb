"""The commands `udml sweep` and `udml sweeps`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments import __file__ as experiments
from tests.cli.test_cli import answer, call
from tests.work.sweeps.test_outcome import finished, run_of
from udml_core.data import catalog
from udml_core.data.speed import record_speed
from udml_core.runs import list_runs, runs_folder
from udml_core.runs.engines import submission
from udml_core.work import sweeps
from udml_core.work.jobs import launch
from udml_core.work.jobs.estimate import encoding_kind, evaluation_kind, follow_kind, record_epoch, start_kind

TEXT = """
data: digits
methods: {pca: {dimension: [4, 8]}}
options: {backbone: pixels, split: seen}
"""


@pytest.fixture(autouse=True)
def _idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no dispatcher, so that all runs wait."""
    monkeypatch.setattr(launch, "ensure_dispatcher", lambda *_: None)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "widths.yaml"
    path.write_text(TEXT)
    return str(path)


def test_a_sweep_from_a_file_to_its_best_combination(capsys: pytest.CaptureFixture[str],
                                                     monkeypatch: pytest.MonkeyPatch, file: str, tmp_path: Path
                                                     ) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))  # other tests measured such runs
    planned = answer(capsys, monkeypatch, "sweep", file, "--plan")
    assert (planned["criterion"], planned["new"], len(planned["runs"])) == ("validation map@r", 2, 2)
    assert planned["expected_seconds"] is None, "no such run was measured here"
    assert 6e8 < planned["expected_memory"] < 7e8
    assert list_runs(runs_folder()) == []
    begun = answer(capsys, monkeypatch, "sweep", file, "--no-wait")
    assert (begun["sweep"], begun["state"], begun["runs"], begun["best"]) == ("widths", "waiting", {"waiting": 2}, {})
    assert answer(capsys, monkeypatch, "sweep", file, "--no-wait")["runs"] == {"waiting": 2}
    (sweep,) = sweeps.list_sweeps(runs_folder())
    for position, (validation, test) in enumerate([(0.7, 10.0), (0.3, 90.0)]):
        finished(run_of(sweep, position), validation, test)
    shown = answer(capsys, monkeypatch, "sweeps", "widths")
    assert shown["state"] == "done"
    assert shown["best"]["digits"]["values"] == {"dimension": 4}
    assert shown["best"]["digits"]["test_map@r"]["mean"] == 10.0
    _, out, _ = call(capsys, monkeypatch, "sweeps", "widths")
    assert " ".join(out.splitlines()[2].split()) == (
        "* 70.00 1 seed pca on digits dimension=4 (test half: MAP@R 10.00)")
    assert answer(capsys, monkeypatch, "sweeps")["sweeps"][0]["runs"] == {"done": 2}


def test_a_plan_says_a_time_only_once_all_of_it_was_measured(capsys: pytest.CaptureFixture[str], tmp_path: Path,
                                                             monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))  # other tests measured their own speeds
    read = sweeps.complete(sweeps.read_sweep(Path(file)))
    planned = [run.spec for run in sweeps.plan_runs(read) if run.spec is not None]
    for spec in planned:
        record_epoch(spec, len(spec.halves(catalog.load("digits")).train), 2.0)
    for kind, seconds in ((encoding_kind, 0.001), (follow_kind, 500.0), (start_kind, 5.0), (evaluation_kind, 50.0)):
        _, out, _ = call(capsys, monkeypatch, "sweep", file, "--plan")
        assert "2 runs, 2 of them new; best by validation map@r" in out, "a part was never measured"
        record_speed(kind(planned[0]), seconds)
    answered = answer(capsys, monkeypatch, "sweep", file, "--plan")
    assert answered["expected_seconds"] == pytest.approx(2 * (2 + 5 + 50) + 1.797), "features once, and no map"
    _, out, _ = call(capsys, monkeypatch, "sweep", file, "--plan")
    assert "2 of them new: about 2 min, measured on this machine; best by" in out
    assert "best by validation map@r; each needs at most 60" in out
    elsewhere = answer(capsys, monkeypatch, "sweep", file, "--plan", "--engine", "slurm")
    assert elsewhere["expected_seconds"] is None, "another machine takes other times"


@pytest.mark.parametrize(("words", "engine", "options", "place"), [
    ([], "local", {}, "the queue of this machine"),
    (["--engine", "submitit-local", "--engine-option", "minutes=30"], "submitit-local", {"minutes": 30},
     "submitit on this machine (minutes=30)"),
    (["--engine", "slurm", "--engine-option", "gpus=1", "--engine-option", "partition=long"], "slurm",
     {"gpus": 1, "partition": "long"}, "Slurm (gpus=1, partition=long)")])
def test_a_plan_says_where_its_runs_go(words: list[str], engine: str, options: dict[str, Any], place: str, file: str,
                                       capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission.shutil, "which", lambda name: f"/bin/{name}")
    planned = answer(capsys, monkeypatch, "sweep", file, "--plan", *words)
    assert (planned["engine"], planned["engine_options"], planned["new"]) == (engine, options, 2)
    _, out, _ = call(capsys, monkeypatch, "sweep", file, "--plan", *words)
    assert out.splitlines()[-1] == f"new runs go to {place}"
    assert list_runs(runs_folder()) == []


@pytest.mark.parametrize(("words", "message"), [
    (["--engine", "slurm"], "The engine 'slurm' needs Slurm's commands, and sbatch is not on the PATH"),
    (["--engine", "submitit-local", "--engine-option", "gpus=1"], "The engine option 'gpus' belongs to the engine"),
    (["--engine-option", "gpus=1"], "--engine-option belongs to the engines 'slurm' and 'submitit-local'")])
def test_a_plan_for_an_engine_that_cannot_start_runs_is_refused(
        words: list[str], message: str, file: str, capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission.shutil, "which", lambda _name: None)
    code, out, error = call(capsys, monkeypatch, "sweep", file, "--plan", *words)
    assert (code, out) == (2, "")
    assert message in error
    monkeypatch.setattr(submission, "find_spec", lambda _name: None)
    _, _, error = call(capsys, monkeypatch, "sweep", file, "--plan", "--engine", "submitit-local")
    assert "needs the package submitit, which is not installed" in error


def test_a_plan_knows_the_gpus_of_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission.shutil, "which", lambda name: f"/bin/{name}")
    file = tmp_path / "gpu.yaml"
    file.write_text(TEXT.replace("backbone: pixels", "device: cuda, backbone: pixels"))
    slurm = ("sweep", str(file), "--plan", "--engine", "slurm")
    assert answer(capsys, monkeypatch, *slurm, "--engine-option", "gpus=1")["new"] == 2
    code, _, error = call(capsys, monkeypatch, *slurm)
    assert (code, "Add --engine-option gpus=1" in error) == (2, True)


def test_stopping_resuming_and_forgetting(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
                                          file: str) -> None:
    answer(capsys, monkeypatch, "sweep", file, "--no-wait")
    assert answer(capsys, monkeypatch, "sweeps", "widths", "--stop")["runs"] == {"stopped": 2}
    code, _, err = call(capsys, monkeypatch, "sweeps", "widths", "--stop")
    assert (code, err) == (0, "0 runs stopped\n")
    assert answer(capsys, monkeypatch, "sweeps", "widths", "--resume", "--no-wait")["runs"] == {"waiting": 2}
    assert answer(capsys, monkeypatch, "sweeps", "widths", "--forget") == {"forgotten": "widths"}
    assert answer(capsys, monkeypatch, "sweeps") == {"sweeps": []}
    assert len(list_runs(runs_folder())) == 2


def test_following_ends_with_an_error_if_a_run_failed(capsys: pytest.CaptureFixture[str],
                                                      monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    answer(capsys, monkeypatch, "sweep", file, "--no-wait")
    for run in list_runs(runs_folder()):
        run.write_status(run.stored_status().model_copy(update={"state": "failed", "message": "no"}))
    code, _, err = call(capsys, monkeypatch, "sweep", file)
    assert code == 1
    assert "The sweep widths is failed: 2 failed. Resume it with `udml sweeps widths --resume`." in err


def test_an_interrupt_stops_the_whole_group(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
                                            file: str) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("udml_core.cli.sweeps.time.sleep", interrupt)
    code, _, err = call(capsys, monkeypatch, "sweep", file)
    assert code == 1
    assert "2 waiting\nstopping all runs of the sweep" in err
    assert {run.status().state for run in list_runs(runs_folder())} == {"stopped"}


@pytest.mark.parametrize(("words", "message"), [
    (("sweep", "missing.yaml"), "could not be read"),
    (("sweep", "{file}", "--budget", "0.011"), "No run fits into the budget"),
    (("sweeps", "nothing"), "No sweep 'nothing'"),
    (("sweeps", "--stop"), "Name the sweep"),
    (("sweeps", "widths", "--stop", "--resume"), "Give one of --stop, --resume and --forget"),
    (("sweeps", "widths", "--failed"), "belong to --resume"),
    (("sweeps", "widths", "--criterion", "test map@r"), "one of 'validation map@r'"),
])
def test_wrong_words_are_explained(words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str],
                                   monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    monkeypatch.setattr("udml_core.work.sweeps.control.seconds_of_runs", lambda specs, _: [60.0] * len(specs))
    code, out, err = call(capsys, monkeypatch, *(word.format(file=file) for word in words))
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_the_example_file_can_be_planned(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    example = Path(experiments).parent / "sweeps" / "digits.yaml"
    planned = answer(capsys, monkeypatch, "sweep", str(example), "--plan")
    assert len(planned["runs"]) == 24
    assert {row["method"] for row in planned["runs"]} == {"rpml", "pca"}
