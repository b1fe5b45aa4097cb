"""The benchmark: one budget for all methods, its record, ranks, critical differences and the papers' orders."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from experiments import benchmark as command
from experiments import zero_shot
from experiments.benchmark_rows import (
    BATCH,
    NO_LEARNING,
    PAPER_TABLES,
    RECIPES,
    TRACKS,
    VIEWS,
    Compared,
    Track,
    benchmark_rows,
)
from udml_core.base.arrays import Booleans
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.splits import make_split
from udml_core.methods import METHODS, find_method
from udml_core.results import benchmark
from udml_core.results.benchmark import DataSet, Difference, Entry, PaperTable, SeedRun

ROWS = [(track, row) for track in TRACKS for row in benchmark_rows(track)]
PASSES = [(track, row) for track, row in ROWS if "batch" in find_method(row.method).model_fields
          and row.name != NO_LEARNING and find_method(row.method).card.supervision != "pairs"]
"""Rows of the methods that pass over the training images in batches."""
CLASSIFIERS = ("a", "b", "c", "d")
SCORES = np.array([[0.76, 0.77, 0.78, 0.80], [0.60, 0.59, 0.58, 0.57], [0.94, 0.93, 0.92, 0.93],
                   [1.00, 1.00, 1.00, 1.00], [0.62, 0.66, 0.61, 0.67]])
"""Scores of four classifiers on five data sets, with ties."""
RANKS = [[4, 3, 2, 1], [1, 2, 3, 4], [1, 2.5, 4, 2.5], [2.5, 2.5, 2.5, 2.5], [3, 2, 4, 1]]
"""Their ranks, by hand."""


def fields_of(row: Compared) -> dict[str, Any]:
    fields: dict[str, Any] = zero_shot.parse_row(row.row)["fields"]
    return fields


@pytest.mark.parametrize("track", TRACKS, ids=lambda track: track.dataset)
def test_every_method_and_every_baseline_is_a_row_of_every_data_set(track: Track) -> None:
    names = [row.name for row in benchmark_rows(track)]
    assert len(set(names)) == len(names)
    assert set(names) == {method.card.title for method in METHODS} | {NO_LEARNING} | set(RECIPES)
    assert {"Frozen features", "PCA"} <= set(names)


def test_methods_that_train_in_batches_have_equal_passes_batches_and_views() -> None:
    for track, row in PASSES:
        method = find_method(row.method).make(fields_of(row))
        assert (fields_of(row)["epochs"], fields_of(row)["batch"]) == (track.epochs, BATCH), row.row
        if method.cached_views:
            crops = 2 if row.method == "rotnet" else VIEWS
            rotations = 4 if row.method == "rotnet" else 1
            is_last = row.method == "rotnet" and track.trains == "last"
            assert method.cached_views == crops * rotations + is_last, row.row
    assert len({row.method for _, row in PASSES}) > 10


def test_other_iterative_methods_have_about_as_many_steps() -> None:
    steps = {(track.dataset, row.method): fields_of(row) for track, row in ROWS}
    digits, birds = TRACKS[0], TRACKS[3]
    assert (digits.steps, birds.steps) == (10 * 8, 2 * 24)
    for track in TRACKS:
        rpml = steps[track.dataset, "rpml"]
        assert rpml["epochs"] * rpml["steps"] == track.steps
        assert steps[track.dataset, "lmnn"]["iterations"] == track.steps
        assert steps[track.dataset, "nml"]["epochs"] == max(1, round(track.steps / 79)), "79 steps of 128 pairs"


def test_the_learning_rate_of_zero_learns_nothing_and_is_not_the_method() -> None:
    for _, row in ROWS:
        if row.name == NO_LEARNING:
            assert fields_of(row)["learning_rate"] == 0
            assert command.printed_figures(row) == {}
            assert not row.is_method
    assert sum(row.name == NO_LEARNING for _, row in ROWS) == len(TRACKS)


@pytest.mark.parametrize("track", TRACKS[:2], ids=lambda track: track.dataset)
def test_the_declared_numbers_of_images_and_labels_are_the_data_sets(track: Track) -> None:
    dataset = catalog.load(track.dataset)
    spec = zero_shot.plan_row(dataset, f"ssdml dimension={track.dimension} {track.options}", 0)
    train = make_split(dataset, "zero-shot").train
    assert dataset.labels is not None
    assert (len(train), spec.split, spec.backbone, spec.encoder.size) == (
        track.images, "zero-shot", track.backbone, track.size)
    assert spec.labels_per_class * len(np.unique(dataset.labels[train])) == track.labels


def test_the_papers_tables_name_only_known_methods() -> None:
    assert {name for table in PAPER_TABLES for name in table.figures} <= {method.card.name for method in METHODS}
    assert len({table.title for table in PAPER_TABLES}) == len(PAPER_TABLES)


def test_lines_of_code_leave_out_blank_lines_comments_and_docstrings() -> None:
    source = ('"""Doc.\n\nMore."""\n\nx = 1  # why\n# why\n\n\n'
              'class A:\n    """Doc."""\n    y: int = (\n        2)\n    "of y"\n')
    assert command.lines_of_code(source) == 4


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the record of a small benchmark."""
    folder = tmp_path_factory.mktemp("benchmark")
    run_benchmark(folder)
    return folder


def run_benchmark(folder: Path) -> list[Any]:
    """Measure two rows of two seeds on the digits."""
    wanted = {"Frozen features", "Re-ranking"}
    rows = [replace(row, seeds=2) for row in benchmark_rows(TRACKS[0]) if row.name in wanted]
    return command.BenchmarkCampaign(10, "cpu", folder / "runs", folder).run(list(rows))


@pytest.mark.slow
def test_the_record_has_costs_lines_runs_and_supervision(measured: Path) -> None:
    record = json.loads((measured / "benchmark.json").read_text(encoding="utf-8"))
    digits = record["datasets"]["digits"]
    assert set(digits["rows"]) == {"Frozen features", "Re-ranking"}
    assert record["comparable"] is False
    for name, row in digits["rows"].items():
        assert [run["seed"] for run in row["runs"]] == [0, 1]
        assert all((measured / "runs" / run["run"] / "spec.json").exists() for run in row["runs"])
        assert all(run["costs"]["seconds"] > 0 and run["costs"]["MB"] > 50 for run in row["runs"])
        assert row["supervision"] == "none"
        assert row["sees test images"] == (name == "Re-ranking")
        assert ("lines" in row["summary"]) == (name != "Re-ranking")
        assert all(("hits" in run) == (name != "Re-ranking") for run in row["runs"])
        values = [run["evaluation"]["final"]["map@r"] for run in row["runs"]]
        assert row["summary"]["map@r"] == pytest.approx([np.mean(values), np.std(values, ddof=1)], abs=0.006)
    ranked, frozen = digits["rows"]["Re-ranking"], digits["rows"]["Frozen features"]
    assert ranked["summary"]["map@r"][0] > frozen["summary"]["map@r"][0] + 5
    assert "nmi" not in ranked["summary"], "a ranking has no clusters"
    assert ranked["runs"][0]["run"] == frozen["runs"][0]["run"], "the refinement is stored with the frozen run"


def test_the_record_is_kept_and_finished_runs_keep_their_costs(
        measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = measured / "benchmark.json"
    before = path.read_text(encoding="utf-8")
    assert run_benchmark(measured) == []
    assert capsys.readouterr().out.count("in the record already") == 2
    record = json.loads(before)
    del record["datasets"]["digits"]["rows"]["Re-ranking"]
    del record["datasets"]["digits"]["rows"]["Frozen features"]["runs"][0]["hits"]
    path.write_text(json.dumps(record), encoding="utf-8")
    assert run_benchmark(measured) == []
    assert json.loads(path.read_text(encoding="utf-8"))["datasets"] == json.loads(before)["datasets"]


def test_the_table_reads_the_record(measured: Path) -> None:
    read = benchmark.read(measured / "benchmark.json")
    assert read is not None
    assert read.groups() == ["none", "test images"]
    assert {"recall@1", "map@r", "seconds", "MB", "lines"} <= set(read.measures())
    assert "images" not in read.measures()
    few = read.chosen(["digits", "nothing"], ["none"])
    assert set(few.names()) == {"Frozen features"}
    assert few.scores("nmi")[0] == few.names()
    assert read.scores("nmi")[0] == [name for name in read.names() if name != "Re-ranking"]
    assert benchmark.read(measured / "other.json") is None


def test_the_projects_record_has_declared_rows_whose_means_are_the_seeds() -> None:
    record = json.loads((benchmark.FOLDER / "benchmark.json").read_text(encoding="utf-8"))
    assert record["papers"] == [vars(table) for table in PAPER_TABLES]
    tracks = {track.dataset: track for track in TRACKS}
    assert record["datasets"]
    for dataset, measured in record["datasets"].items():
        declared = {row.name: row for row in benchmark_rows(tracks[dataset])}
        for name, stored in measured["rows"].items():
            row = declared[name]
            assert (stored["row"], stored["recipe"], stored["method"]) == (row.row, row.recipe, row.method)
            assert stored["supervision"] == find_method(row.method).card.supervision
            assert stored["printed"] == command.printed_figures(row)
            assert not stored["comparable"], "a small budget is no paper's"
            assert [run["seed"] for run in stored["runs"]] == [0, 1, 2]
            for run in stored["runs"]:
                if not row.recipe:
                    final = run["evaluation"]["final"]
                    hits = benchmark.unpack_hits(run["hits"], int(final["images"]))
                    assert 100 * hits.mean() == pytest.approx(final["recall@1"], abs=0.006), (dataset, name)
            for measure in ("recall@1", "map@r"):
                values = [run["evaluation"]["final"][measure] for run in stored["runs"]]
                assert stored["summary"][measure] == pytest.approx([np.mean(values), np.std(values, ddof=1)], abs=0.02)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"versions": {}, "datasets": {"a": {}}}'])
def test_a_broken_record_is_reported(content: str, tmp_path: Path) -> None:
    path = tmp_path / "benchmark.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"could not be read.*experiments\.benchmark"):
        benchmark.read(path)


def test_average_ranks_and_friedmans_test_of_a_small_table() -> None:
    assert benchmark.ranks(SCORES).tolist() == RANKS
    found = benchmark.critical_difference(CLASSIFIERS, SCORES)
    assert found is not None
    assert dict(zip(found.names, found.average_ranks, strict=True)) == pytest.approx(
        {"a": 2.3, "b": 2.4, "c": 3.1, "d": 2.2})
    assert found.names == ("d", "a", "b", "c")
    assert found.p == pytest.approx(stats.friedmanchisquare(*SCORES.T).pvalue)
    assert found.critical == pytest.approx(benchmark.nemenyi(4, 5))


def test_the_critical_difference_of_demsars_example() -> None:
    """Demšar, section 3.2.3: four classifiers on 14 data sets."""
    assert benchmark.nemenyi(4, 14) == pytest.approx(1.25, abs=0.005)
    assert benchmark.nemenyi(4, 14, 0.1) == pytest.approx(1.12, abs=0.005)


@pytest.mark.parametrize(("methods", "quantile"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_quantiles_are_those_of_demsars_table_5(methods: int, quantile: float) -> None:
    assert benchmark.nemenyi(methods, 7) == pytest.approx(
        quantile * np.sqrt(methods * (methods + 1) / 42), rel=5e-4)


def test_lower_costs_rank_first_and_ties_share_a_rank() -> None:
    scores = np.array([[3.0, 1.0, 2.0, 1.0]])
    assert benchmark.ranks(scores).tolist() == [[1.0, 3.5, 2.0, 3.5]]
    assert benchmark.ranks(scores, lower_is_better=True).tolist() == [[4.0, 1.5, 3.0, 1.5]]


def test_few_data_sets_cannot_separate_methods() -> None:
    one = benchmark.critical_difference(CLASSIFIERS, SCORES[:1])
    assert one is not None
    assert one.names == ("d", "c", "b", "a")
    assert not one.can_separate
    assert one.groups() == [(0, 3)]
    assert benchmark.critical_difference(CLASSIFIERS[:2], SCORES[:, :2]) is None
    assert benchmark.critical_difference(CLASSIFIERS, SCORES[:0]) is None


def test_lines_join_the_largest_groups_that_are_not_separated() -> None:
    difference = Difference(("a", "b", "c", "d", "e"), (1.0, 1.5, 2.5, 4.0, 6.0), 1.5, 0.01, 9, 0.05)
    assert difference.groups() == [(0, 2), (2, 3)]


def entry(method: str, mean: float, deviation: float, is_method: bool = True, hits: Booleans | None = None) -> Entry:
    """Return an entry whose hits are the same for all methods, so that only the deviations count."""
    hits = np.ones(8, bool) if hits is None else hits
    return Entry(method, method, is_method, row=method, recipe="", supervision="none", sees_test_images=False,
                 summary={"recall@1": (mean, deviation)}, runs=(SeedRun("run", 0, {}, hits),), printed={},
                 comparable=False)


def dataset_of(entries: dict[str, Entry]) -> DataSet:
    return DataSet("x", "X", near="D", budget="", encoder="", entries=entries)


def test_an_order_needs_a_difference_above_the_deviations() -> None:
    table = PaperTable("T", "D", "recall@1", {"a": 40.0, "b": 30.0, "c": 20.0, "d": 10.0})
    entries = {"a": entry("a", 50, 1), "b": entry("b", 48.1, 1), "c": entry("c", 52.1, 1),
               "zero": entry("d", 9, 0, is_method=False)}
    found = {(pair.better, pair.worse): pair.order
             for pair in benchmark.orders(table, dataset_of(entries))}
    assert found == {("a", "b"): "not separated", ("a", "c"): "reversed", ("b", "c"): "reversed",
                     **{(name, "d"): "not measured" for name in "abc"}}
    entries["a"] = entry("a", 50.2, 1)
    pairs = benchmark.orders(table, dataset_of(entries))
    assert Counter(pair.order for pair in pairs)["confirmed"] == 1
    assert pairs[0].measured == pytest.approx(2.1)


@pytest.mark.parametrize(("lost", "order"), [(3, "not separated"), (5, "confirmed")])
def test_an_order_needs_two_standard_errors_of_the_differences_image_by_image(lost: int, order: str) -> None:
    """Of 100 images, the second method misses some that the first one finds; 50 are missed by both."""
    first = np.arange(100) < 50
    second = first & (np.arange(100) >= lost)
    difference = lost / 100
    error = np.sqrt(difference * (1 - difference) / 99)
    assert (difference > 2 * error) == (order == "confirmed"), "the literal formula"
    table = PaperTable("T", "D", "recall@1", {"a": 40.0, "b": 30.0})
    entries = {"a": entry("a", 50, 0, hits=first), "b": entry("b", 50 - lost, 0, hits=second)}
    assert [pair.order for pair in benchmark.orders(table, dataset_of(entries))] == [order]


def test_hits_of_several_seeds_are_averaged_image_by_image() -> None:
    runs = tuple(SeedRun("run", seed, {}, np.array(hits)) for seed, hits in enumerate(
        [[True, False, True], [True, False, False]]))
    assert replace(entry("a", 50, 0), runs=runs).hits.tolist() == [1, 0, 0.5]


def test_packed_hits_are_read_again() -> None:
    hits = np.random.default_rng(0).random(29) < 0.5
    assert benchmark.unpack_hits(benchmark.pack_hits(hits), 29).tolist() == hits.tolist()
    for text, images in ((benchmark.pack_hits(hits), 33), (benchmark.pack_hits(hits), 24), ("é", 8)):
        with pytest.raises(ValueError, match=r"bits for|ASCII"):
            benchmark.unpack_hits(text, images)
