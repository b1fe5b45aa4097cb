"""The campaign: rows that fit the budget run in order, records grow row by row, and equal rows are reused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments import campaign, zero_shot
from experiments.campaign import Campaign
from experiments.campaign_rows import CPU, GPU, PlannedRow, table
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.encoders import BACKBONES
from udml_core.methods import find_method
from udml_core.results import records
from udml_core.results.records import Finding
from udml_core.runs import RunRequest
from udml_core.work import jobs
from udml_core.work.jobs.presets import find_preset

KINDS: dict[str, Any] = {"birds100": "photographs", "cifar10": "color", "digits": "gray", "fashion-mini": "gray",
                         "fashion-mnist": "gray", "mnist-t10k": "gray"}
SECONDS = table("r", "digits", {"a": ("pca", 100), "b": ("pca dimension=8", 300), "c": ("frozen", 100)}, seeds=1)


@pytest.mark.parametrize("row", [*CPU, *GPU], ids=lambda row: f"{row.record}: {row.name}")
def test_every_declared_row_is_valid(row: PlannedRow) -> None:
    values = zero_shot.parse_row(row.row)
    request = RunRequest.make({"dataset": row.dataset} | values)
    fields, backbone = request.fields, request.backbone
    if request.preset == "paper":
        preset = find_preset(request.method, KINDS[row.dataset])
        assert preset is not None
        fields = preset.field_values() | fields
        backbone = values.get("backbone", preset.option_values()["backbone"])
    find_method(request.method).make(fields)
    assert backbone in BACKBONES
    assert row.seconds > 0
    assert row.seeds >= 1


def test_a_record_has_one_row_of_each_name_on_one_data_set() -> None:
    rows = [*CPU, *GPU]
    assert len({(row.record, row.name) for row in rows}) == len(rows)
    assert len({(row.record, row.dataset, row.per_class) for row in rows}) == len({row.record for row in rows})


def test_a_gpu_begins_with_the_papers_settings() -> None:
    printed = ["@preset=paper" in row.row for row in GPU]
    assert printed == sorted(printed, reverse=True)
    assert {row.record for row in GPU if "@preset=paper" not in row.row} == {"birds100-rates"}
    assert not {row.record for row in GPU} & {row.record for row in CPU}


class Stopwatch(Campaign):
    """A campaign whose rows take a known time and measure nothing."""

    def __init__(self, minutes: float, factor: float = 1.0, **rest: Any) -> None:
        self.now, self.factor, self.done = 0.0, factor, list[str]()
        super().__init__(minutes, "cpu", Path("runs"), rest.pop("out", Path("no-records")), clock=lambda: self.now,
                         **rest)

    def _measure(self, row: PlannedRow, path: Path, stored: dict[str, Any]) -> None:
        if row.name == "broken":
            raise UserError("The data set is missing.")
        self.now += self.factor * row.seconds * row.seeds
        self.done.append(row.name)


def test_a_row_that_does_not_fit_is_left_out_and_later_rows_run() -> None:
    runner = Stopwatch(5)
    missed = runner.run(list(SECONDS))
    assert runner.done == ["a", "c"]
    assert [(row.name, reason) for row, reason in missed] == [("b", "needs about 5.0 minutes, 3.3 are left")]


def test_forced_rows_run_beyond_the_budget() -> None:
    runner = Stopwatch(5, force=True)
    assert runner.run(list(SECONDS)) == []
    assert runner.done == ["a", "b", "c"]


def test_the_pace_of_finished_rows_corrects_the_expected_time() -> None:
    fast = Stopwatch(3, factor=0.1)
    assert fast.run(list(SECONDS)) == []
    slow = Stopwatch(6, factor=2.0)
    assert [row.name for row, _ in slow.run(list(SECONDS))] == ["b", "c"]
    assert slow.done == ["a"]


def test_seeds_count_in_the_expected_time() -> None:
    runner = Stopwatch(5)
    three = table("r", "digits", {"a": ("pca", 101)}, seeds=3)
    assert runner.run(list(three))[0][1] == "needs about 5.0 minutes, 5.0 are left"


def test_a_failed_row_is_reported_and_the_next_one_runs() -> None:
    runner = Stopwatch(10)
    rows = [*table("r", "digits", {"broken": ("pca", 1)}), *SECONDS]
    assert [(row.name, reason) for row, reason in runner.run(rows)] == [("broken", "The data set is missing.")]
    assert runner.done == ["a", "b", "c"]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[PlannedRow, ...]]:
    """The folder of a finished campaign of two small rows."""
    folder = tmp_path_factory.mktemp("campaign")
    rows = table("small", "digits", {"PCA": ("pca dimension=4", 1), "RPML": ("rpml dimension=4 epochs=2 steps=3", 1)},
                 "@backbone=pixels @split=seen", seeds=2)
    assert Campaign(10, "cpu", folder / "runs", folder / "records").run(list(rows)) == []
    return folder, rows


def stored(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "records" / "small.json").read_text(encoding="utf-8"))
    return record


@pytest.mark.slow
def test_a_record_holds_every_row_with_date_versions_and_seeds(measured: tuple[Path, tuple[PlannedRow, ...]]) -> None:
    folder, rows = measured
    record = stored(folder)
    assert list(record["rows"]) == ["PCA", "RPML"]
    assert record["command"].startswith("python -m experiments.campaign --budget 10 --device cpu --record "
                                        "assets/results/small.json")
    for row in rows:
        result = record["rows"][row.name]
        assert (result["row"], result["protocol"]) == (row.row, zero_shot.PROTOCOL)
        assert [run["seed"] for run in result["runs"]] == [0, 1]
        assert {"date", "version", "versions", "device"} <= set(result)
        assert result["comparable"] is False
        assert {"initial", "frozen", "centered pca", "final"} <= set(result["summary"])
        assert {"recall@1", "map@r", "knn@200", "mprec@10"} <= set(result["summary"]["final"])
    shown = records.read(Finding("small", "Small", "", ""), folder / "records")
    assert list(shown.tables[0].rows) == ["RPML"]
    assert "PCA" in shown.tables[0].references
    titles = {title.split(" of ")[0].split(", ")[0] for title in shown.tables[0].references}
    assert titles >= {"Frozen features", "Start"}


@pytest.mark.slow
def test_equal_rows_of_a_record_are_kept(measured: tuple[Path, tuple[PlannedRow, ...]],
                                         capsys: pytest.CaptureFixture[str]) -> None:
    folder, rows = measured
    before = stored(folder)
    assert Campaign(10, "cpu", folder / "runs", folder / "records").run(list(rows)) == []
    assert stored(folder) == before
    assert capsys.readouterr().out.count("in the record already") == 2


def test_a_row_is_measured_again_alone_and_reuses_its_finished_runs(
        measured: tuple[Path, tuple[PlannedRow, ...]]) -> None:
    folder, rows = measured
    before, runs = stored(folder), sorted(path.name for path in (folder / "runs").iterdir())
    assert Campaign(10, "cpu", folder / "runs", folder / "records", again=True).run([rows[1]]) == []
    after = stored(folder)
    assert sorted(path.name for path in (folder / "runs").iterdir()) == runs
    assert after["rows"]["PCA"] == before["rows"]["PCA"]
    assert after["rows"]["RPML"]["summary"] == before["rows"]["RPML"]["summary"]


def test_only_rows_of_this_protocol_and_text_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    now = {"row": "pca", "protocol": zero_shot.PROTOCOL, "runs": [1, 2, 3]}
    path.write_text(json.dumps({"rows": {"now": now, "earlier": now | {"protocol": zero_shot.PROTOCOL - 1},
                                         "first": {"row": "pca", "runs": []}}}), encoding="utf-8")
    assert zero_shot.read_rows(path) == {"now": now}
    assert zero_shot.read_rows(tmp_path / "missing.json") == {}
    assert zero_shot.is_equal(now, "pca", 3)
    assert not zero_shot.is_equal(now, "pca", 4)
    assert not zero_shot.is_equal(now, "pca dimension=8", 3)
    assert not zero_shot.is_equal(None, "pca", 3)


def test_options_of_a_row_reach_the_spec() -> None:
    spec = zero_shot.plan_row(catalog.load("digits"), "rpml alpha=30.0 @backbone=pixels @size=16 @split=seen", 5)
    assert (spec.fields["alpha"], spec.backbone, spec.encoder.size, spec.split, spec.seed) == (
        30.0, "pixels", 16, "seen", 5)


def test_a_row_with_the_papers_settings_lists_its_departures() -> None:
    dataset = catalog.load("fashion-mini")
    spec = zero_shot.plan_row(dataset, "ssdml epochs=5 @preset=paper", 0)
    result = zero_shot.row_result("ssdml", [{"evaluation": {}, "seconds": 1.0}], spec, dataset)
    assert result["departures"] == [
        "epochs: 5 in place of 50 (implementation details: at most 50)",
        "Data: Fashion-MNIST, 6,000 images with 6,000 images of 10 classes is not MNIST or Fashion-MNIST"]
    assert jobs.why_not_comparable(spec, dataset) == result["departures"]


def test_the_first_images_of_every_class_are_a_data_set_of_their_own(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UDML_DATA", raising=False)
    row = PlannedRow("r", "cifar10", "a", "isif", 1, per_class=10)
    with pytest.raises(UserError, match="is not in a folder below UDML_DATA"), campaign.first_images(row, tmp_path):
        pass
