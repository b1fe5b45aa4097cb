"""The folder of a run: atomic writes, reading after damage, values that stay."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import torch
from pydantic import Field

from tests.running import spec
from udml_core import __version__
from udml_core.base import files
from udml_core.base.errors import UserError
from udml_core.base.files import replace_text
from udml_core.data.encoders import DEFAULT_BACKBONE, Encoder, choose_spec
from udml_core.methods import Embedder
from udml_core.methods.plm import PLM
from udml_core.methods.registry import declared
from udml_core.methods.rpml import RPML
from udml_core.methods.ssdml import SSDML
from udml_core.numerics.explanations import Clusters, Triplets
from udml_core.runs import Run, Spec, create_run, find_run, list_runs
from udml_core.runs.notes import Notes
from udml_core.runs.tasks import Status
from udml_core.work import jobs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return create_run(spec(), tmp_path / "runs")


class LaterRPML(RPML):
    """RPML as a later version may define it, with another default."""

    alpha: Annotated[float, Field(gt=0, lt=90)] = 30.0


def rewrite_spec(run: Run, without: tuple[str, ...] = (), **values: Any) -> None:
    """Remove and set values of a stored spec."""
    path = run.folder / "spec.json"
    stored = {name: value for name, value in json.loads(path.read_text()).items() if name not in without}
    replace_text(path, json.dumps(stored | values))


def test_a_stored_spec_equals_the_planned_one_and_has_every_value(run: Run) -> None:
    planned = spec()
    assert run.spec() == planned.model_copy(update={"created": run.spec().created})
    assert run.spec() == Spec.model_validate_json((run.folder / "spec.json").read_text())
    assert run.spec().fields == RPML(dimension=16, epochs=2, steps=3).model_dump()
    assert run.spec().changed_fields() == {"dimension": 16, "epochs": 2, "steps": 3}
    assert run.spec().version == __version__
    assert Spec.model_validate(planned.model_dump(exclude={"version"})).version == __version__
    assert run.spec().versions["torch"]


def test_a_spec_of_the_first_version_gets_that_versions_defaults(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run.spec()
    rewrite_spec(run, without=("version", "backbone", "pooling", "size"), fields={"dimension": 16, "epochs": 2})
    monkeypatch.setitem(declared(), "rpml", (__name__, "LaterRPML"))
    assert spec().fields["alpha"] == 30.0
    old = run.spec()
    assert old.version == "0.1.0"
    assert (old.backbone, old.pooling, old.size) == (expected.backbone, expected.pooling, expected.size)
    assert old.fields == RPML(dimension=16, epochs=2, unit_length=True).model_dump()
    assert old.build_method().model_dump()["alpha"] == 45.0


def test_a_spec_of_the_first_version_without_encoder_options_gets_the_encoders_defaults(run: Run) -> None:
    rewrite_spec(run, without=("version", "backbone", "pooling", "size"), encoder={"size": 96})
    old = run.spec()
    assert (old.encoder.backbone, old.encoder.pooling, old.encoder.size) == (DEFAULT_BACKBONE, "mean", 96)
    assert (old.backbone, old.pooling, old.size) == (DEFAULT_BACKBONE, "mean", 96)


def test_a_spec_keeps_its_values_when_a_default_changes_later(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(declared(), "rpml", (__name__, "LaterRPML"))
    assert run.spec().fields["alpha"] == 45.0
    assert run.spec().build_method().model_dump()["alpha"] == 45.0
    assert run.spec().changed_fields()["alpha"] == 45.0
    assert run.spec().version == __version__


@pytest.mark.parametrize("version", [None, "0.2.0"])
def test_a_spec_without_a_later_field_keeps_what_its_version_did(version: str | None, run: Run) -> None:
    values: dict[str, Any] = {} if version is None else {"version": version}
    without = ("version",) if version is None else ()
    rewrite_spec(run, without, method="plm", fields={"dimension": 16, "through": "origin"}, **values)
    assert run.spec().fields["through"] == "origin"
    rewrite_spec(run, method="plm", fields={"dimension": 16}, **values)
    assert run.spec().fields["through"] == "point"
    assert run.spec().fields["whole_view"] is False
    rewrite_spec(run, method="pca", fields={"dimension": 16, "centered": False}, **values)
    assert run.spec().fields == {"dimension": 16, "centered": False, "unit_length": True}
    rewrite_spec(run, method="srpml", fields={"dimension": 16}, **values)
    added = ("crops", "dampening", "mining_space", "unit_length")
    assert [run.spec().fields[name] for name in added] == [False, 0.0, "projection", True]


@pytest.mark.parametrize("version", [None, "0.2.0"])
@pytest.mark.parametrize(("former", "current"), [
    ({"trains": "encoder", "batch_norm": "frozen"}, {"trains": "all", "batch_norm": "statistics"}),
    ({"trains": "head", "batch_norm": "batch"}, {"trains": "head", "batch_norm": "batch"})])
def test_a_spec_of_the_first_format_gets_the_current_names_of_values(
        version: str | None, former: dict[str, str], current: dict[str, str], run: Run) -> None:
    without = ("version", "fields_format") if version is None else ("fields_format",)
    rewrite_spec(run, without, method="isif", fields={"dimension": 16} | former)
    old = run.spec()
    assert {name: old.fields[name] for name in former} == current
    assert {name: old.build_method().model_dump()[name] for name in former} == current
    assert old.fields_format == 2
    rewrite_spec(run, method="isif", fields={"dimension": 16, "batch_norm": "frozen"}, fields_format=2)
    assert run.spec().fields["batch_norm"] == "frozen"


def test_the_former_name_of_a_trained_part_is_read_in_requests() -> None:
    assert PLM.make({"trains": "encoder"}) == PLM(trains="all")
    with pytest.raises(UserError, match=r"PLM.trains must be one of 'head', 'last', 'all', got 'body'"):
        PLM.make({"trains": "body"})


def test_an_ssdml_run_without_the_later_fields_keeps_its_unit_length_and_alternation(run: Run) -> None:
    rewrite_spec(run, method="ssdml", fields={"dimension": 16}, version="0.2.0")
    method = run.spec().build_method().model_dump()
    assert (method["unit_length"], method["alternation"]) == (True, "batch")
    assert SSDML(dimension=16).unit_length is False


@pytest.mark.parametrize("version", [None, "0.2.0"])
def test_a_spec_of_an_unknown_method_or_with_unknown_fields_is_still_listed(version: str | None, run: Run) -> None:
    without = ("version",) if version is None else ()
    values: dict[str, Any] = {} if version is None else {"version": version}
    rewrite_spec(run, without, fields={"dimension": 16, "removed": 3}, **values)
    assert list_runs(run.folder.parent) == [run]
    assert run.spec().changed_fields() == {"dimension": 16, "removed": 3, "unit_length": True}
    with pytest.raises(UserError, match="RPML has no field 'removed'"):
        run.spec().build_method()
    rewrite_spec(run, without, method="forgotten", **values)
    assert list_runs(run.folder.parent) == [run]
    assert run.spec().changed_fields() == {"dimension": 16, "removed": 3}
    with pytest.raises(UserError, match=r"The method must be one of rpml, .* got 'forgotten'"):
        run.spec().build_method()


def test_a_spec_without_few_labels_can_be_read(run: Run) -> None:
    rewrite_spec(run, without=("labels", "labels_per_class", "given_labels"))
    assert run.spec().labels_per_class is None
    assert run.spec().holds_out == run.spec().select


def spec_reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return a list to which every read of a spec from now on is added."""
    reads: list[Path] = []
    read_bytes = Path.read_bytes

    def read(path: Path) -> bytes:
        if path.name == "spec.json":
            reads.append(path)
        return read_bytes(path)

    files._parse_record.cache_clear()
    monkeypatch.setattr(Path, "read_bytes", read)
    return reads


def test_finding_a_run_by_its_id_reads_one_spec_of_three_hundred(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    root = run.folder.parent
    for number in range(299):
        shutil.copytree(run.folder, root / f"20200101-000000-rpml-{number:06x}")
    reads = spec_reads(monkeypatch)
    assert find_run("20200101-000000-rpml-000007", root).id == "20200101-000000-rpml-000007"
    assert reads == [root / "20200101-000000-rpml-000007" / "spec.json"]
    assert find_run(str(run.folder), root) == run
    assert find_run(run.id[:-1], root) == run
    assert reads[1:] == [run.folder / "spec.json"]
    assert len(list_runs(root)) == 300
    assert len(reads) == 300, "each spec is read once"


def test_an_unchanged_status_is_parsed_once_and_a_replaced_one_again(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Path] = []
    monkeypatch.setattr("udml_core.base.files.read_regular", lambda path: reads.append(path) or path.read_bytes())
    run.write_status(Status(state="done", ticket=1.0))
    assert run.stored_status() == run.stored_status() == Status(state="done", ticket=1.0)
    assert len(reads) == 1
    run.write_status(Status(state="done", ticket=2.0))
    assert run.stored_status().ticket == 2.0
    (run.folder / "status.json").unlink()
    assert run.stored_status().state == "interrupted"


def test_a_replaced_spec_is_read_again_and_an_unchanged_one_is_not(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    path = run.folder / "spec.json"
    reads = spec_reads(monkeypatch)
    assert run.spec().seed == run.spec().seed == 0
    assert len(reads) == 1
    before = path.stat()
    replace_text(path, run.spec().model_copy(update={"seed": 1}).model_dump_json(indent=1))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # within the resolution of the file system's clock
    assert path.stat().st_size == before.st_size
    assert run.spec().seed == 1


def test_an_unfinished_line_of_curves_is_read_later_and_does_not_damage_the_next(run: Run) -> None:
    run.append_metrics({"epoch": 0, "loss": float("nan")})
    with (run.folder / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 1, "lo')
    rows, offset = run.metrics()
    assert rows == [{"epoch": 0, "loss": None}]
    run.append_metrics({"epoch": 1, "loss": 0.5})
    assert run.metrics(offset)[0] == [{"epoch": 1, "loss": 0.5}]
    assert [row["epoch"] for row in run.metrics()[0]] == [0, 1]


def test_explanations_are_read_as_the_stored_records(run: Run) -> None:
    clusters = Clusters(torch.tensor([0, 0, 1]), torch.tensor([1, 2]), torch.tensor([1, 1, 2]))
    triplets = Triplets(*(torch.arange(4) for _ in range(3)), *(torch.rand(4) for _ in range(8)))
    run.write_epoch(1, [clusters, triplets], np.ones((2, 3)))
    (run.folder / "epochs" / "0002.part").mkdir()
    assert run.epoch_numbers() == [1]
    records = run.explanations(1)
    assert [type(record) for record in records] == [Clusters, Triplets]
    np.testing.assert_array_equal(records[0].labels, [0, 0, 1])  # type: ignore[union-attr]
    np.testing.assert_array_equal(records[1].weight, triplets.weight.numpy())  # type: ignore[union-attr]


def test_records_with_the_fields_of_another_version_are_ignored(run: Run) -> None:
    run.write_epoch(1, [Clusters(torch.tensor([0]), torch.tensor([0]), torch.tensor([0]))], np.ones((2, 3)))
    names = ("anchor", "positive", "negative", "argument", "weight")  # of a version that did not store distances
    np.savez(run.folder / "epochs" / "0001" / "triplets.npz", **{name: np.zeros(4) for name in names})  # type: ignore[arg-type]
    assert [type(record) for record in run.explanations(1)] == [Clusters]


def test_only_the_lock_shows_that_a_worker_lives(run: Run) -> None:
    run.write_status(Status(state="running", pid=1, ticket=0.0))
    assert run.status().state == "interrupted"
    with run.lock().acquire():
        assert run.is_alive()
        assert run.status().state == "running"
    assert not run.is_alive()


def test_an_unchanged_evaluation_and_notes_are_parsed_once_and_callers_get_their_own_copy(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Path] = []
    monkeypatch.setattr("udml_core.base.files.read_regular", lambda path: reads.append(path) or path.read_bytes())
    run.write_evaluation({"final": {"recall@1": 50.0}})
    run.write_notes(Notes.make("first"))
    for _ in range(3):
        evaluation = run.evaluation()
        assert evaluation == {"final": {"recall@1": 50.0}}
        evaluation["final"]["recall@1"] = 0.0
        assert run.notes().name == "first"
    assert [path.name for path in reads] == ["evaluation.json", "notes.json"]
    run.write_evaluation({"final": {"recall@1": 51.0}})
    run.write_notes(Notes.make("other"))
    assert run.evaluation() == {"final": {"recall@1": 51.0}}
    assert run.notes().name == "other"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"[1]", b'{"final": 5}', b"\xff\xfe"])
def test_a_damaged_evaluation_or_curve_counts_as_missing(run: Run, content: bytes) -> None:
    (run.folder / "evaluation.json").write_bytes(content)
    assert run.evaluation() is None
    (run.folder / "metrics.jsonl").write_bytes(content + b"\n")
    assert run.metrics()[0] == []


@pytest.mark.slow
def test_texts_are_utf_8_with_every_system_encoding(tmp_path: Path) -> None:
    code = ("import sys; from pathlib import Path; from udml_core.runs import Run, Spec, create_run\n"
            "import locale; assert locale.getpreferredencoding(False).lower() != 'utf-8'\n"
            "spec = Spec.model_validate_json(Path(sys.argv[1]).read_text(encoding='utf-8'))\n"
            "run = create_run(spec, Path(sys.argv[2])); run.write_error('ε too large'); print(run.id)\n"
            "assert run.spec().dataset_title == '日本' and run.error() == 'ε too large'\n")
    original = create_run(spec().model_copy(update={"dataset_title": "日本"}), tmp_path / "original")
    words = ["-X", "utf8=0", "-c", f"exec({code!a})", str(original.folder / "spec.json"), str(tmp_path / "runs")]
    done = subprocess.run([sys.executable, *words], env=os.environ | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"},
                          cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert Run(tmp_path / "runs" / done.stdout.strip()).spec() == original.spec()


def test_writers_do_not_create_a_removed_run_again(run: Run) -> None:
    shutil.rmtree(run.folder)
    embedder = Embedder(Encoder(choose_spec("pixels", 8, True)))
    for write in (lambda: run.write_status(Status()), lambda: run.write_epoch(1, [], np.ones((2, 3))),
                  lambda: run.write_checkpoint(1, {}, embedder), lambda: run.write_best(1, {}, embedder),
                  lambda: run.write_sample_indices(np.arange(3)), lambda: run.append_metrics({"epoch": 0}),
                  lambda: run.write_evaluation({})):
        with pytest.raises(FileNotFoundError):
            write()
    assert not run.is_alive()
    assert not run.folder.exists()


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe"])
def test_a_damaged_status_or_spec_gives_a_message(run: Run, content: bytes) -> None:
    (run.folder / "status.json").write_bytes(content)
    assert run.status().state == "interrupted"
    (run.folder / "spec.json").write_text("{}")
    with pytest.raises(UserError, match="must describe a run"):
        run.spec()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"dataset": "digits"}', b"\xff\xfe",
                                     b'{"encoder": 5, "method": [], "fields": {}}', None])
def test_a_run_with_a_damaged_spec_is_missing_in_lists_and_in_the_queue(
        run: Run, content: bytes | None, tmp_path: Path) -> None:
    broken = create_run(spec(), tmp_path / "runs")
    if content is None:  # of a later version
        content = json.dumps(json.loads((broken.folder / "spec.json").read_text()) | {"later": 1}).encode()
    (broken.folder / "spec.json").write_bytes(content)
    (tmp_path / "runs" / "notes.txt").write_text("a file of the user")
    assert list_runs(tmp_path / "runs") == [run]
    assert jobs.queue_position(run, tmp_path / "runs") == 0


def test_runs_are_found_by_id_beginning_of_id_and_folder(run: Run, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    other = create_run(spec(), root)
    assert [listed.id for listed in list_runs(root)] == sorted((run.id, other.id), reverse=True)
    assert find_run(run.id, root) == run
    assert find_run(str(other.folder), tmp_path) == other
    assert find_run(run.id[:-2], root) == run
    for text, message in (("2", r"'2' is the beginning of 2 run ids: .*, \S*\. Give more"),
                          ("nothing", f"No run 'nothing' in {root}")):
        with pytest.raises(UserError, match=message):
            find_run(text, root)


def test_remaining_time_is_estimated_from_the_finished_part() -> None:
    status = Status(state="running", phase="training", epoch=2, epochs=10, share=0.5, epoch_seconds=4.0)
    assert status.seconds_left == pytest.approx(30.0)
    assert Status(state="running", phase="training", epochs=10).seconds_left is None
    first_epoch = Status(state="running", phase="training", epochs=10, share=0.5, phase_started=100.0, heartbeat=102.0)
    assert first_epoch.seconds_left == pytest.approx(38.0)
    features = Status(state="running", phase="features", share=0.25, phase_started=100.0, heartbeat=110.0)
    assert features.seconds_left == pytest.approx(30.0)
    late = features.model_copy(update={"share_started": 0.125})
    assert late.seconds_left == pytest.approx(60.0), "an eighth took ten seconds, whatever was done before"
    first = late.model_copy(update={"share": 0.125, "heartbeat": 100.0})
    assert first.seconds_left is None, "the first report of a phase says nothing of its speed"
    assert features.model_copy(update={"state": "stopped"}).seconds_left is None
    assert features.model_copy(update={"phase": "evaluation"}).seconds_left is None, "its steps take unequal times"
    assert json.loads(status.model_dump_json())["epoch"] == 2


@pytest.mark.parametrize(("select", "kept"), [("last", 3), ("validation", 2), ("recall", 1)])
def test_the_kept_epoch_is_the_last_or_the_one_selected_by_validation(run: Run, select: str, kept: int) -> None:
    spec = run.spec().model_copy(update={"select": select})
    (run.folder / "spec.json").write_text(spec.model_dump_json(), encoding="utf-8")
    for number, (quality, recall) in enumerate(((0.9, 0.9), (0.1, 0.8), (0.5, 0.7), (0.4, 0.8))):
        run.append_metrics({"epoch": number, "validation map@r": quality, "validation recall@1": recall})
        run.write_epoch(number, [], np.zeros((2, 2)))
    assert run.kept_epoch() == kept
