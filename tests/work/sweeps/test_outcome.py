"""The best combination: chosen on validation images or without labels, never on the test half."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.running import spec, worked, write_clothes
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.splits import make_split
from udml_core.numerics.evaluation import effective_rank
from udml_core.runs import Run, create_run
from udml_core.runs.tasks import Status
from udml_core.work import sweeps
from udml_core.work.sweeps.group import Stored, Sweep, sweep_at, write_sweep

OPTIONS = {"backbone": "pixels", "split": "seen", "select": "validation"}
ANGLES = (15.0, 30.0, 45.0)


def load(name: str) -> Any:
    return catalog.load(name)


def finished(run: Run, validation: float | None, test: float, seconds: float = 10.0, rank: int = 2) -> None:
    """Write what a finished run leaves: curves, an embedding of training images, and an evaluation."""
    rows = {} if validation is None else {"validation map@r": validation, "sample map@r": test / 100}
    run.append_metrics({"epoch": 0, "effective rank": 1.0})
    run.append_metrics({"epoch": 1, "effective rank": 100.0 * test} | rows)
    sample = np.random.default_rng(0).normal(size=(50, 4)) * (np.arange(4) < rank)
    run.write_epoch(1, [], np.eye(50, 4), sample)
    run.write_evaluation({"final": {"map@r": test}, "frozen": {"map@r": 1.0}})
    run.write_status(Status(state="done", started=1e9, finished=1e9 + seconds))


def group(root: Path, seeds: int = 1, **content: Any) -> Sweep:
    """Store a sweep of angles with its runs, which have not started."""
    described = sweeps.complete(sweeps.make_sweep({
        "data": "digits", "methods": {"rpml": {"alpha": list(ANGLES), "epochs": 2, "steps": 3}},
        "fields": {"dimension": 16}, "options": OPTIONS, "seeds": seeds} | content, "angles"), load)
    planned = sweeps.plan_runs(described, load)
    sweep = sweep_at("angles", root)
    write_sweep(sweep, Stored(spec=described, keys=tuple(run.key for run in planned)))
    for run in planned:
        assert run.spec is not None
        create_run(run.spec, root)
    return sweep


def found(sweep: Sweep, criterion: str = "validation map@r") -> list[sweeps.Combination]:
    return sweeps.combinations(sweep.members(), sweep.spec.varied, criterion)


def run_of(sweep: Sweep, position: int) -> Run:
    run = sweep.members()[position].run
    assert run is not None
    return run


def test_the_winner_is_chosen_on_validation_images_not_on_the_test_half(tmp_path: Path) -> None:
    """The test half would choose 45°, its sample and its effective rank too."""
    sweep = group(tmp_path)
    for position, (validation, test) in enumerate([(0.2, 30.0), (0.6, 10.0), (0.4, 90.0)]):
        finished(run_of(sweep, position), validation, test)
    best = sweeps.best_combinations(found(sweep))["digits"]
    assert best.values == {"alpha": 30.0}
    assert best.score is not None
    assert best.score.mean == pytest.approx(60.0)
    assert best.test is not None
    assert best.test.mean == 10.0


def test_no_criterion_reads_the_test_half(tmp_path: Path) -> None:
    """Everything that a run keeps of its test half is replaced, and no score changes."""
    run = worked(tmp_path, method="rpml", select="validation")
    before = {name: sweeps.score(run, name) for name in sweeps.CRITERIA}
    assert before["validation map@r"] is not None
    assert before["effective rank"] == pytest.approx(effective_rank(run.epoch_trained(run.kept_epoch())))  # type: ignore[arg-type]
    rows = run.metrics()[0]
    (run.folder / "metrics.jsonl").unlink()
    for row in rows:
        run.append_metrics({name: 0.5 if name.startswith("sample") or name == "effective rank" else value
                            for name, value in row.items()})
    for path in run.folder.glob("epochs/[0-9]*/sample.npy"):
        np.save(path, np.zeros_like(np.load(path)))
    run.write_evaluation({"final": {"map@r": 0.0}})
    assert {name: sweeps.score(run, name) for name in sweeps.CRITERIA} == before


def test_the_label_free_criterion_prefers_the_higher_rank_of_training_images(tmp_path: Path) -> None:
    sweep = group(tmp_path)
    for position, rank in enumerate((2, 1, 3)):
        finished(run_of(sweep, position), None, 50.0, rank=rank)
    assert sweeps.best_combinations(found(sweep)) == {}
    assert sweeps.best_combinations(found(sweep, "effective rank"))["digits"].values == {"alpha": 45.0}


def test_the_mean_over_seeds_decides_and_a_lucky_first_seed_does_not(tmp_path: Path) -> None:
    sweep = group(tmp_path, seeds=2)
    scores = {(15.0, 0): 0.5, (15.0, 1): 0.7, (30.0, 0): 0.9, (30.0, 1): 0.1, (45.0, 0): 0.99}
    for position, member in enumerate(sweep.members()):
        at = (member.request.fields["alpha"], member.request.seed)
        if at in scores:
            finished(run_of(sweep, position), scores[at], 50.0)
    best = sweeps.best_combinations(found(sweep))["digits"]
    assert best.values == {"alpha": 15.0}
    assert best.score is not None
    assert best.score.deviation == pytest.approx(np.std([50, 70], ddof=1))
    assert sweeps.best_run(best, "validation map@r").spec().seed == 0, "the lower of two, not the luckier"


def test_a_labeled_sweep_holds_out_images_of_the_training_half(tmp_path: Path) -> None:
    """Whole classes where the test half has other classes, as in the split zero-shot."""
    def selects(**content: Any) -> tuple[str | None, Any]:
        described = sweeps.complete(sweeps.make_sweep({"data": "digits", "methods": "pca"} | content, "x"), load)
        return described.criterion, described.options.get("select")

    assert selects() == ("validation map@r", ("classes",))
    assert selects(options={"split": "seen"}) == ("validation map@r", ("validation",))
    assert selects(criterion="validation recall@1") == ("validation recall@1", ("recall",))
    assert selects(criterion="effective rank") == ("effective rank", None)
    assert selects(options={"select": [None, "validation"]}) == ("validation map@r", ("classes", "validation"))
    assert selects(methods="ssdml", options={"labels": "given"}) == ("given recall@1", None)
    for content, words in (({"options": {"select": "last"}}, "holds out none"),
                           ({"criterion": "given recall@1"}, "labels: given"),
                           ({"criterion": "validation map@r", "options": {"labels": "given"}}, "given recall@1")):
        with pytest.raises(UserError, match=words):
            selects(**content)


def test_held_out_classes_are_not_trained_on() -> None:
    dataset = catalog.load("digits")
    assert dataset.labels is not None
    split = make_split(dataset, "zero-shot", "classes", seed=3)
    parts = [set(dataset.labels[part].tolist()) for part in (split.train, split.validation, split.test)]
    assert [len(part) for part in parts] == [3, 2, 5]
    assert not parts[0] & parts[1]
    assert not (parts[0] | parts[1]) & parts[2]
    whole = make_split(dataset, "zero-shot")
    assert sorted([*split.train, *split.validation]) == whole.train.tolist()
    others = {tuple(make_split(dataset, "zero-shot", "classes", seed=seed).validation[:3]) for seed in range(6)}
    assert len(others) > 1


def test_too_few_classes_to_hold_out_are_refused(tmp_path: Path) -> None:
    folder = write_clothes(tmp_path / "clothes", "aaaabbbbccccdddd")
    with pytest.raises(UserError, match=r"the training half has 2\. Use select 'validation'"):
        spec(dataset=str(folder), split="zero-shot", method="pca", fields={"dimension": 2}, select="classes")
    described = sweeps.make_sweep({"data": str(folder), "methods": "pca"}, "x")
    assert sweeps.complete(described, load).options["select"] == ("validation",)


def test_what_is_within_one_standard_deviation_of_the_best_shares_its_place(tmp_path: Path) -> None:
    sweep = group(tmp_path, seeds=2)
    scores = {15.0: (0.5, 0.7), 30.0: (0.55, 0.75), 45.0: (0.40, 0.42)}
    for position, member in enumerate(sweep.members()):
        finished(run_of(sweep, position), scores[member.request.fields["alpha"]][member.request.seed], 50.0)
    tried = found(sweep)
    assert [combination.values["alpha"] for combination in sweeps.shared_first(tried)] == [30.0, 15.0]
    table = sweeps.paper_table(tried, ["15", "30", "45"], "validation map@r")
    assert table.first("validation map@r") == ["30", "15"]
    assert table.rows["45"]["validation map@r"].by_seed == pytest.approx({0: 40.0, 1: 42.0})
    assert table.rows["45"]["map@r"].mean == 50.0
