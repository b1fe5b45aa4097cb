"""Copies of curves, read back with the real TensorBoard and MLflow."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_cli import call
from tests.running import spec
from udml_core.base.errors import UserError
from udml_core.runs import Run, create_run
from udml_core.runs.tasks import Status
from udml_core.work.exporting import mirror


def needs(package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(package) is None, reason=f"needs the extra mirrors: {package} is not installed")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run after its first epoch."""
    run = create_run(spec(), tmp_path / "runs")
    run.append_metrics({"epoch": 0, "sample map@r": 0.1, "loss": float("nan")})
    run.append_metrics({"epoch": 1, "sample map@r": 0.25, "loss": 0.5, "seconds": 3})
    run.write_status(Status(state="running", epoch=1, epochs=2))
    return run


def finish(run: Run) -> None:
    """Write the second epoch and the evaluation."""
    run.append_metrics({"epoch": 2, "sample map@r": 0.375, "loss": 0.25})
    run.write_evaluation({"final": {"recall@1": 81.25, "map@r": 43.5}, "frozen": {"recall@1": 70.0}})
    run.write_status(Status(state="done", epoch=2, epochs=2))


def expected_curve(run: Run, name: str) -> list[tuple[int, float]]:
    rows = run.metrics()[0]
    return [(row["epoch"], row[name]) for row in rows if name in row]


@needs("tensorboard")
def test_tensorboard_has_each_epoch_once_and_the_evaluation(run: Run, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    counts = [mirror(run, "tensorboard", str(tmp_path / "logs"))]
    finish(run)
    counts += [mirror(run, "tensorboard", str(tmp_path / "logs")) for _ in range(2)]
    assert counts == [2, 1, 0]
    events: Any = EventAccumulator(str(tmp_path / "logs" / run.id))
    events.Reload()
    curve = [(event.step, event.value) for event in events.Scalars("sample map@r")]
    assert [step for step, _ in curve] == [epoch for epoch, _ in expected_curve(run, "sample map@r")]
    assert [value for _, value in curve] == pytest.approx([value for _, value in expected_curve(run, "sample map@r")])
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(1, 0.5), (2, 0.25)]
    assert next((event.step, event.value) for event in events.Scalars("evaluation/final/map@r")) == (2, 43.5)
    assert run.spec().fingerprint.encode() in events.Tensors("spec/text_summary")[0].tensor_proto.string_val[0]


@needs("mlflow")
def test_mlflow_has_one_run_with_each_epoch_once(run: Run, tmp_path: Path) -> None:
    from mlflow.tracking import MlflowClient

    uri = str(tmp_path / "mlruns")
    counts = [mirror(run, "mlflow", uri)]
    finish(run)
    counts += [mirror(run, "mlflow", uri) for _ in range(2)]
    assert counts == [2, 1, 0]
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("UDML Explorer")
    (copy,) = client.search_runs([experiment.experiment_id])
    curve = client.get_metric_history(copy.info.run_id, "sample map at r")
    assert [(point.step, point.value) for point in curve] == expected_curve(run, "sample map@r")
    assert (copy.info.run_name, copy.info.status) == (run.id, "FINISHED")
    assert copy.data.params["method"] == "rpml"
    assert copy.data.params["field.epochs"] == "2"
    assert copy.data.metrics["evaluation/final/recall at 1"] == 81.25


@needs("tensorboard")
def test_the_command_copies_and_names_a_place_that_cannot_be_written(
        run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("mirror", str(run.folder), "--to", "tensorboard")
    code, out, _ = call(capsys, monkeypatch, *words, str(tmp_path / "logs"), "--json")
    assert (code, json.loads(out)["epochs"]) == (0, 2)
    (tmp_path / "file").write_text("")
    code, _, err = call(capsys, monkeypatch, *words, str(tmp_path / "file"))
    assert code != 0
    assert f"could not be copied to tensorboard at {tmp_path / 'file'}: " in err


@needs("mlflow")
@pytest.mark.skipif(find_spec("sqlalchemy") is not None, reason="the whole package is installed")
def test_a_database_needs_the_whole_package_and_the_message_says_so(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Install the whole with `pip install mlflow`, or name a folder"):
        mirror(run, "mlflow", f"sqlite:///{tmp_path}/mlflow.db")


def test_a_missing_package_is_named_with_its_installation(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udml_core.work.exporting.mirrors.find_spec", lambda _name: None)
    with pytest.raises(UserError, match="Install it with `pip install mlflow`"):
        mirror(run, "mlflow", "sqlite://")


@pytest.mark.parametrize(("to", "words"), [("tensorboard", "a folder of logs"),
                                           ("mlflow", "a folder or a tracking URI")])
def test_no_place_is_refused_and_nothing_is_written(
        to: Any, words: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for place in ("", "  "):
        with pytest.raises(UserError, match=rf"needs {words}, got nothing.*`udml mirror {run.id} \S+ --to {to}`"):
            mirror(run, to, place)
    assert sorted(tmp_path.rglob("*")) == before
