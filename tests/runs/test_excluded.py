"""Runs leave out the excluded images: training, sample, evaluation and search; other runs do not change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.running import repeat_request, spec
from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.given.exclusions import digest_of, exclude, undo
from udml_core.data.splits import SPLITS, SplitName, make_split
from udml_core.methods.rpml import RPML
from udml_core.numerics.evaluation import map_at_r, recall_at_k
from udml_core.runs import Run, RunRequest, Spec, create_run
from udml_core.runs.analyses import plan_analysis
from udml_core.runs.command import command_limits
from udml_core.runs.run_comparison import differing_settings, settings_of
from udml_core.runs.search import Query, Retrieval
from udml_core.work import jobs
from udml_core.work.workers import analyse as analysis_worker
from udml_core.work.workers import material
from udml_core.work.workers import train as worker


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    return catalog.load("digits")


def trained(root: Path, method: str = "rpml") -> Run:
    """Execute a run without the analyses that follow it."""
    run = create_run(spec(method), root)
    assert worker.work(run, analyse=False).state == "done"
    return run


def plan(dataset: Dataset, **request: Any) -> Spec:
    return jobs.plan(RunRequest.make({"dataset": dataset.name, "method": "frozen", "backbone": "pixels"} | request),
                     dataset)


@pytest.mark.parametrize("select", ["last", "validation"])
@pytest.mark.parametrize("split", SPLITS)
def test_every_other_image_stays_in_its_part(split: SplitName, select: Any, digits: Dataset) -> None:
    excluded = [0, 5, 6, 100, 1796]
    exclude(digits, excluded)
    before = make_split(digits, split, select, seed=3)
    after = plan(digits, split=split, select=select, seed=3).halves(digits)
    for part in ("train", "test", "validation"):
        expected = [index for index in getattr(before, part).tolist() if index not in excluded]
        assert getattr(after, part).tolist() == expected
    assert after.excluded.tolist() == excluded


def test_the_spec_states_the_list_and_keeps_it_when_the_list_changes(digits: Dataset) -> None:
    assert plan(digits).excluded.count == 0
    exclude(digits, [8, 2])
    planned = plan(digits)
    assert planned.excluded.images == ("digit 2", "digit 8")
    assert (planned.excluded.count, planned.excluded.digest) == (2, digest_of(["digit 2", "digit 8"]))
    assert plan(digits, exclusions="none").excluded.count == 0
    undo(digits)
    stored = Spec.model_validate_json(planned.model_dump_json())
    assert stored == planned
    assert stored.halves(digits).excluded.tolist() == [2, 8]
    assert plan(digits).halves(digits).excluded.tolist() == []


def test_a_list_that_was_changed_in_the_spec_is_refused(digits: Dataset) -> None:
    exclude(digits, [8, 2])
    content = plan(digits).model_dump_json()
    with pytest.raises(ValueError, match="was changed after the run was planned"):
        Spec.model_validate_json(content.replace("digit 8", "digit 9"))


def test_a_list_that_leaves_too_few_images_is_refused_with_the_fix(digits: Dataset) -> None:
    exclude(digits, make_split(digits, "zero-shot").test.tolist())
    with pytest.raises(UserError, match=r"got 9\d\d in the training half and 0 in the test half\. 89\d images of this "
                                        r"data set are excluded: include some again on the page Data under Audit, "
                                        r"Excluded, or with `udml exclude digits --include IMAGE`, or use the split "
                                        r"'all'\."):
        plan(digits, split="zero-shot")
    assert len(plan(digits, split="all").halves(digits).train) > 0
    exclude(digits, range(1, len(digits)))
    with pytest.raises(UserError, match=r"--include IMAGE`\.$"):
        plan(digits, split="all")


@pytest.mark.slow
def test_maps_and_refinements_of_all_images_leave_out_the_excluded(digits: Dataset, tmp_path: Path) -> None:
    exclude(digits, [8, 1000])
    run = trained(tmp_path, method="frozen")
    undo(digits)
    kept = np.setdiff1d(np.arange(len(digits)), [8, 1000])
    for request in ({"kind": "pca", "frames": ("final",)}, {"kind": "refine", "recipe": "average:k=3"}):
        analysis = analysis_worker.keep(run, plan_analysis(scope="all", **request), lambda _share, _step: None)
        np.testing.assert_array_equal(analysis.indices(), kept)
    search = Retrieval(run)
    for gallery, words in (("all", "1,795 of 1,797 images searched (training half included)"),
                           ("test", f"{len(search.split.test):,} of 1,797 images searched (test half)")):
        assert search.describe_searched("final", gallery) == words  # type: ignore[arg-type]
        assert search.describe_searched(analysis.id, gallery) == words  # type: ignore[arg-type]


@pytest.mark.slow
def test_an_interrupted_run_keeps_its_list_when_the_list_changes(
        digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exclude(digits, [8, 2])
    whole, interrupted = (create_run(spec("rpml"), tmp_path / name) for name in ("whole", "interrupted"))
    assert worker.work(whole, analyse=False).state == "done"
    original_fit = RPML.fit

    def fit(self: RPML, data: Any, setting: Any, start: Any = None) -> Any:
        yield next(original_fit(self, data, setting, start))
        raise UserError("interrupted")

    with monkeypatch.context() as patch:
        patch.setattr(RPML, "fit", fit)
        assert worker.work(interrupted, analyse=False).state == "failed"
    assert interrupted.epoch_numbers() == [0, 1]
    undo(digits)
    exclude(digits, range(100, 200))
    interrupted.clear_failure()
    assert worker.work(interrupted, analyse=False).state == "done"
    assert interrupted.epoch_numbers() == [0, 1, 2]
    np.testing.assert_array_equal(interrupted.embeddings("final"), whole.embeddings("final"))
    np.testing.assert_array_equal(interrupted.sample_indices(), whole.sample_indices())


def test_excluded_images_are_neither_trained_on_nor_evaluated_nor_found(
        digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Array] = []
    original_fit = RPML.fit

    def fit(self: RPML, data: Any, setting: Any, start: Any = None) -> Any:
        rows.append(data.features.numpy())
        return original_fit(self, data, setting, start)

    monkeypatch.setattr(RPML, "fit", fit)
    whole = trained(tmp_path)
    halves = make_split(digits, "seen")
    stamp = material.features_path(digits, whole.spec().encoder).stat().st_mtime_ns
    excluded = np.concatenate([halves.train[::5], halves.test[::3]])
    exclude(digits, excluded.tolist())
    run = trained(tmp_path)
    assert material.features_path(digits, run.spec().encoder).stat().st_mtime_ns == stamp  # the features are reused

    train, test = np.setdiff1d(halves.train, excluded), np.setdiff1d(halves.test, excluded)
    features = np.asarray(material.load(run, lambda _share, _step: None).features)
    np.testing.assert_array_equal(rows[1], features[train])
    assert len(rows[0]) == len(halves.train)
    np.testing.assert_array_equal(run.sample_indices(), test)
    final, labels = np.asarray(run.embeddings("final")), np.asarray(digits.labels)
    assert len(final) == len(digits)
    evaluation = run.evaluation()
    assert evaluation is not None
    assert evaluation["final"]["recall@1"] == pytest.approx(100 * recall_at_k(final[test], labels[test])[1])
    assert evaluation["final"]["map@r"] == pytest.approx(100 * map_at_r(final[test], labels[test])[0])
    assert evaluation["final"]["map@r"] != pytest.approx(100 * map_at_r(final[halves.test], labels[halves.test])[0])

    search = Retrieval(run)
    assert not np.isin([hit.index for hit in search.search(Query((int(test[0]),)), 1790, gallery="all")],
                       excluded).any()
    assert Retrieval(whole).split.excluded.tolist() == []


def test_an_image_excluded_after_the_run_is_no_longer_found(digits: Dataset, tmp_path: Path) -> None:
    opened = Retrieval(trained(tmp_path, "frozen"))
    first = opened.search_item(5)[0].index
    assert opened.describe_searched().startswith(f"{len(digits):,} of")
    exclude(digits, [first])
    assert first not in [hit.index for hit in opened.search_item(5)]
    assert opened.describe_searched().startswith(f"{len(digits) - 1:,} of")
    assert first not in opened.kept
    undo(digits)
    assert opened.search_item(5)[0].index == first


def test_comparisons_repetitions_and_commands_state_the_list(digits: Dataset, tmp_path: Path) -> None:
    before = trained(tmp_path, method="frozen")
    exclude(digits, [8, 2])
    after = trained(tmp_path, method="frozen")
    assert differing_settings([settings_of(before), settings_of(after)]) == {
        "excluded": ["no images", f"2 images, list {digest_of(['digit 2', 'digit 8'])[:8]}"]}
    assert repeat_request(before).exclusions == "listed"
    assert command_limits(before.spec()) == ""
    assert "leaves out the images that are excluded at its start" in command_limits(after.spec())
    assert spec("frozen", exclusions="none").halves(digits).excluded.tolist() == []
