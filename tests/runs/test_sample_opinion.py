"""The second opinion of a sample: curves by epoch, and the criterion of sweeps, from stored features only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.numerics.test_second_opinion import noisy, world
from tests.running import spec, trained, worked
from udml_core.data import catalog
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import features_of, features_path
from udml_core.data.splits import fixed_sample
from udml_core.numerics.second_opinion import Judge, second_opinion
from udml_core.runs import Run, create_run
from udml_core.runs.sample_opinion import CURVES, SampleJudge, judge_features
from udml_core.runs.selection import ERROR
from udml_core.work import sweeps
from udml_core.work.workers import train as worker

FIELDS = {"dimension": 16, "epochs": 3, "steps": 2}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the features of invented judges from tests that run at the same time."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))


@contextmanager
def stored(features: np.ndarray, judge: str = "squeezenet") -> Iterator[Path]:
    """Store features of the digits as a judge's, as a second opinion does."""
    dataset = catalog.load("digits")
    path = features_path(dataset, choose_spec(judge, dataset.native_size, dataset.gray))
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, features.astype(np.float32))
    try:
        yield path
    finally:
        path.unlink()


def of_classes() -> np.ndarray:
    """Return features that know the classes of the digits."""
    labels = catalog.load("digits").labels
    assert labels is not None
    return np.eye(10)[labels] + 0.3 * np.random.default_rng(0).normal(size=(len(labels), 10))


def test_the_differences_are_those_of_a_second_opinion_on_the_sample() -> None:
    own, features = world(0)
    frozen = noisy(own, 1.0)
    with stored(np.zeros((1797, 3))):
        assert SampleJudge.of(catalog.load("digits"), "pixels", np.arange(10), frozen[:10]) is None, "too few images"
    dataset = catalog.load("digits")
    sample = np.arange(0, 2 * len(own), 2)
    padded = np.random.default_rng(1).normal(size=(1797, features.shape[1]))
    padded[sample] = features
    with stored(padded):
        judge = SampleJudge.of(dataset, "pixels", sample, frozen)
    assert judge is not None
    found = judge.differences(own)
    expected = second_opinion(Judge.of(padded[sample].astype(np.float32)), frozen, own)
    assert found["second opinion"] == pytest.approx(expected.groups.difference, abs=1e-6)
    assert found["second opinion first result"] == pytest.approx(expected.first_results.difference, abs=1e-6)
    assert found["second opinion"] > 0


def test_only_stored_features_of_another_encoder_judge() -> None:
    dataset = catalog.load("digits")
    assert judge_features(dataset, "pixels") is None
    with stored(of_classes()):
        assert judge_features(dataset, "pixels") is not None
        assert judge_features(dataset, "squeezenet") is None, "an encoder does not judge itself"
    with stored(of_classes()[:100]):
        assert judge_features(dataset, "pixels") is None, "features of other images"
    with stored(of_classes(), "pixels"):
        assert judge_features(dataset, "squeezenet") is None, "pixels do not judge alone"


def test_a_twin_of_the_judged_encoder_does_not_judge_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, images = catalog.load("digits"), np.arange(0, 1797, 3)
    frozen = of_classes()
    with stored(2 * frozen):
        assert SampleJudge.of(dataset, "pixels", images, frozen[images]) is None
        with stored(of_classes()[::-1], "efficientnet-lite0"):
            assert SampleJudge.of(dataset, "pixels", images, frozen[images]) is not None
        with stored(frozen, "pixels"):
            assert judge_features(dataset, "pixels") is None, "which a sweep asks before its runs are trained"
    almost = frozen + 0.05 * np.random.default_rng(2).normal(size=frozen.shape)
    with stored(almost):
        assert SampleJudge.of(dataset, "pixels", images, frozen[images]) is not None, "two known names"
        assert SampleJudge.of(dataset, "timm:other", images, frozen[images]) is None
        monkeypatch.setattr("udml_core.data.judging.unknown_judges", lambda *_: ())
        assert SampleJudge.of(dataset, "timm:other", images, frozen[images]) is not None


def same_results(run: Run, other: Run) -> bool:
    return bool(np.array_equal(run.embeddings("final"), other.embeddings("final")))


def test_a_run_has_the_curves_if_the_features_are_stored_and_learns_the_same(tmp_path: Path) -> None:
    plain = trained(tmp_path, fields=FIELDS)
    assert not set(CURVES) & {name for row in plain.metrics()[0] for name in row}
    with stored(of_classes()):
        run = trained(tmp_path, fields=FIELDS)
    rows = run.metrics()[0]
    assert all(CURVES.keys() <= row.keys() for row in rows)
    assert rows[0]["second opinion"] != rows[-1]["second opinion"]
    assert same_results(plain, run)
    judged = [{name: value for name, value in row.items() if not name.startswith("second")} for row in rows]
    assert all(row[f"{name}{ERROR}"] > 0 for row in rows for name in CURVES)
    assert judged == [{name: value for name, value in row.items() if name != "seconds"} for row in plain.metrics()[0]]


def test_a_resumed_run_has_the_curves_of_an_uninterrupted_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stored(of_classes()):
        whole = trained(tmp_path, fields=FIELDS)
        run = _interrupted(tmp_path, monkeypatch)
        assert worker.work(run).state == "done"
    assert [[row[name] for name in CURVES] for row in run.metrics()[0]] == [
        [row[name] for name in CURVES] for row in whole.metrics()[0]]
    assert same_results(run, whole)


def test_curves_do_not_begin_in_the_middle_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _interrupted(tmp_path, monkeypatch)
    with stored(of_classes()):
        assert worker.work(run).state == "done"
    assert not set(CURVES) & {name for row in run.metrics()[0] for name in row}


def _interrupted(root: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a run that failed after its first epoch."""
    run, write = create_run(spec(fields=FIELDS), root), Run.write_checkpoint

    def full(self: Run, epoch: int, *rest: object) -> None:
        if epoch == 2:
            raise OSError(28, "No space")
        write(self, epoch, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Run, "write_checkpoint", full)
        assert worker.work(run).state == "failed"
    return run


def test_a_judge_that_fails_stops_no_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SampleJudge, "of", lambda *_: 1 / 0)
    assert trained(tmp_path, fields=FIELDS).status().state == "done"


def test_the_criterion_of_a_sweep_is_the_whole_group_on_training_images(tmp_path: Path) -> None:
    """It is missing until the features are stored, and never reads the test half."""
    run = worked(tmp_path)
    dataset, features = run.dataset(), of_classes()
    features_of(dataset, Encoder(run.spec().encoder))
    assert sweeps.score(run, "second opinion") is None
    with stored(features):
        score = sweeps.score(run, "second opinion")
        trained_rows = run.epoch_trained(run.kept_epoch())
        assert trained_rows is not None
        images = fixed_sample(run.spec().halves(dataset).train, len(trained_rows))
        pixels = np.load(features_path(dataset, run.spec().encoder))[images]
        pixels /= np.linalg.norm(pixels, axis=1, keepdims=True)
        expected = second_opinion(Judge.of(features[images].astype(np.float32)), pixels, trained_rows)
    assert score == pytest.approx(expected.groups.difference, abs=1e-6)


def test_a_sweep_without_labels_is_chosen_by_the_second_opinion_if_a_judge_is_stored(
        monkeypatch: pytest.MonkeyPatch) -> None:
    labeled = catalog.load("digits")
    unlabeled = labeled.__class__(**{**vars(labeled), "labels": None})

    def criterion() -> str | None:
        described = sweeps.make_sweep({"data": "digits", "methods": "pca", "options": {"backbone": "pixels"}}, "x")
        return sweeps.complete(described, lambda _name: unlabeled).criterion

    assert criterion() == "effective rank"
    with stored(of_classes()):
        assert criterion() == "second opinion"
