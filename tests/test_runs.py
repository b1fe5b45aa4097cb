"""A run's folder: written whole or not at all, readable whatever happened."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.running import spec
from udml_core import jobs
from udml_core.backbones import Encoder, choose_spec
from udml_core.errors import UserError
from udml_core.explanations import Clusters, Triplets
from udml_core.methods import Embedder
from udml_core.runs import Run, Spec, create_run, find_run, list_runs
from udml_core.tasks import Status

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return create_run(spec(), tmp_path / "runs")


def test_a_spec_comes_back_as_it_was_written(run: Run) -> None:
    assert run.spec() == Spec.model_validate_json((run.folder / "spec.json").read_text())
    assert run.spec().build_method().model_dump()["dimension"] == 16
    assert run.spec().versions["torch"]


def test_a_spec_of_before_there_were_few_labels_can_still_be_read(run: Run) -> None:
    path = run.folder / "spec.json"
    old = json.loads(path.read_text())
    for name in ("labels", "labels_per_class", "given_labels"):
        del old[name]
    path.write_text(json.dumps(old))
    assert run.spec().labels_per_class is None
    assert run.spec().holds_out == run.spec().select


def test_half_a_line_of_curves_is_left_for_later_and_does_not_spoil_the_next(run: Run) -> None:
    run.append_metrics({"epoch": 0, "loss": float("nan")})
    with (run.folder / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 1, "lo')
    rows, offset = run.metrics()
    assert rows == [{"epoch": 0, "loss": None}]
    run.append_metrics({"epoch": 1, "loss": 0.5})
    assert run.metrics(offset)[0] == [{"epoch": 1, "loss": 0.5}]
    assert [row["epoch"] for row in run.metrics()[0]] == [0, 1]


def test_explanations_come_back_as_the_records_they_were(run: Run) -> None:
    clusters = Clusters(torch.tensor([0, 0, 1]), torch.tensor([1, 2]), torch.tensor([1, 1, 2]))
    triplets = Triplets(*(torch.arange(4) for _ in range(3)), *(torch.rand(4) for _ in range(8)))
    run.write_epoch(1, [clusters, triplets], np.ones((2, 3)))
    (run.folder / "epochs" / "0002.part").mkdir()
    assert run.epoch_numbers() == [1]
    back = run.explanations(1)
    assert [type(one) for one in back] == [Clusters, Triplets]
    np.testing.assert_array_equal(back[0].labels, [0, 0, 1])  # type: ignore[union-attr]
    np.testing.assert_array_equal(back[1].weight, triplets.weight.numpy())  # type: ignore[union-attr]


def test_a_record_of_a_version_that_kept_other_fields_is_passed_over(run: Run) -> None:
    run.write_epoch(1, [Clusters(torch.tensor([0]), torch.tensor([0]), torch.tensor([0]))], np.ones((2, 3)))
    names = ("anchor", "positive", "negative", "argument", "weight")  # before distances were kept
    np.savez(run.folder / "epochs" / "0001" / "triplets.npz", **{name: np.zeros(4) for name in names})  # type: ignore[arg-type]
    assert [type(one) for one in run.explanations(1)] == [Clusters]


def test_liveness_is_the_lock_and_nothing_else(run: Run) -> None:
    run.write_status(Status(state="running", pid=1, ticket=0.0))
    assert run.status().state == "interrupted"
    with run.lock().acquire():
        assert run.is_alive()
        assert run.status().state == "running"
    assert not run.is_alive()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"[1]", b'{"final": 5}', b"\xff\xfe"])
def test_a_broken_evaluation_or_curve_is_none(run: Run, content: bytes) -> None:
    (run.folder / "evaluation.json").write_bytes(content)
    assert run.evaluation() is None
    (run.folder / "metrics.jsonl").write_bytes(content + b"\n")
    assert run.metrics()[0] == []


def test_texts_are_utf_8_whatever_the_machine_is_set_to(tmp_path: Path) -> None:
    code = ("import sys; from pathlib import Path; from udml_core.runs import Run, Spec, create\n"
            "import locale; assert locale.getpreferredencoding(False).lower() != 'utf-8'\n"
            "spec = Spec.model_validate_json(Path(sys.argv[1]).read_text(encoding='utf-8'))\n"
            "run = create_run(spec, Path(sys.argv[2])); run.write_error('ε too large'); print(run.id)\n"
            "assert run.spec().dataset_title == '日本' and run.error() == 'ε too large'\n")
    given = create_run(spec().model_copy(update={"dataset_title": "日本"}), tmp_path / "given")
    words = ["-X", "utf8=0", "-c", f"exec({code!a})", str(given.folder / "spec.json"), str(tmp_path / "runs")]
    done = subprocess.run([sys.executable, *words], env=os.environ | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"},
                          cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert Run(tmp_path / "runs" / done.stdout.strip()).spec() == given.spec()


def test_a_removed_run_is_not_made_again_by_its_writers(run: Run) -> None:
    shutil.rmtree(run.folder)
    embedder = Embedder(Encoder(choose_spec("pixels", 8, True)))
    for write in (lambda: run.write_status(Status()), lambda: run.write_epoch(1, [], np.ones((2, 3))),
                  lambda: run.write_checkpoint(1, {}, embedder), lambda: run.write_best({}, embedder),
                  lambda: run.write_sample_indices(np.arange(3)), lambda: run.append_metrics({"epoch": 0}),
                  lambda: run.write_evaluation({})):
        with pytest.raises(FileNotFoundError):
            write()
    assert not run.is_alive()
    assert not run.folder.exists()


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe"])
def test_a_broken_status_or_spec_is_told_and_not_raised_as_a_trace(run: Run, content: bytes) -> None:
    (run.folder / "status.json").write_bytes(content)
    assert run.status().state == "interrupted"
    (run.folder / "spec.json").write_text("{}")
    with pytest.raises(UserError, match="must describe a run"):
        run.spec()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"dataset": "digits"}', b"\xff\xfe", None])
def test_a_run_whose_spec_is_broken_spoils_no_list_and_no_queue(
        run: Run, content: bytes | None, tmp_path: Path) -> None:
    broken = create_run(spec(), tmp_path / "runs")
    if content is None:  # written by a later version
        content = json.dumps(json.loads((broken.folder / "spec.json").read_text()) | {"later": 1}).encode()
    (broken.folder / "spec.json").write_bytes(content)
    (tmp_path / "runs" / "notes.txt").write_text("a person's own file")
    assert list_runs(tmp_path / "runs") == [run]
    assert jobs.queue_position(run, tmp_path / "runs") == 0


def test_runs_are_found_by_id_by_its_start_and_by_folder(run: Run, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    other = create_run(spec(), root)
    assert [one.id for one in list_runs(root)] == sorted((run.id, other.id), reverse=True)
    assert find_run(run.id, root) == run
    assert find_run(str(other.folder), tmp_path) == other
    assert find_run(run.id[:-2], root) == run
    for text, message in (("2", "starts 2 runs"), ("nothing", "There is no run 'nothing'")):
        with pytest.raises(UserError, match=message):
            find_run(text, root)


def test_time_left_follows_the_epochs_so_far() -> None:
    status = Status(state="running", phase="training", epoch=2, epochs=10, share=0.5, epoch_seconds=4.0)
    assert status.seconds_left == pytest.approx(30.0)
    assert Status(state="running", phase="training", epochs=10).seconds_left is None
    first = Status(state="running", phase="training", epochs=10, share=0.5, phase_started=100.0, heartbeat=102.0)
    assert first.seconds_left == pytest.approx(38.0)
    features = Status(state="running", phase="features", share=0.25, phase_started=100.0, heartbeat=110.0)
    assert features.seconds_left == pytest.approx(30.0)
    assert features.model_copy(update={"state": "stopped"}).seconds_left is None
    assert json.loads(status.model_dump_json())["epoch"] == 2


@pytest.mark.parametrize(("select", "kept"), [("last", 3), ("validation", 2)])
def test_the_kept_epoch_is_the_last_or_the_one_that_validation_chose(run: Run, select: str, kept: int) -> None:
    spec = run.spec().model_copy(update={"select": select})
    (run.folder / "spec.json").write_text(spec.model_dump_json(), encoding="utf-8")
    for number, quality in enumerate((0.9, 0.1, 0.5, 0.4)):
        run.append_metrics({"epoch": number, "validation map@r": quality})
        run.write_epoch(number, [], np.zeros((2, 2)))
    assert run.kept_epoch() == kept
