"""The epoch that judges prefer is kept, without labels: the rule, its start, resuming, and the end of a training."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.running import spec, trained
from tests.runs.test_sample_opinion import of_classes, stored
from udml_core.base.errors import UserError
from udml_core.runs import Run, create_run
from udml_core.runs.opinions import kept_words
from udml_core.runs.selection import best_epoch, preferred_epoch
from udml_core.work.jobs.verdicts import epochs_words
from udml_core.work.workers import train as worker

HARMFUL = {"dimension": 4, "epochs": 5, "steps": 30, "alpha": 10.0}
"""Fields with which RPML on digits is best after its first epoch, as their classes say."""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the features of invented judges from tests that run at the same time."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))


def rows(*gains: float, error: float = 0.01, name: str = "second opinion") -> list[dict[str, Any]]:
    return [{"epoch": epoch, name: gain, f"{name} error": error} for epoch, gain in enumerate(gains)]


@pytest.mark.parametrize(("gains", "kept"), [
    ((0.0, 0.1, 0.2), 2), ((0.0, 0.2, 0.19), 2), ((0.0, 0.2, 0.15), 1), ((0.0, -0.1, -0.2), 0), ((0.0, -0.01, -0.1), 1),
    ((0.0, 0.2, 0.19, 0.1), 2), ((0.1, 0.1, 0.1), 2)])
def test_the_last_epoch_that_is_not_surely_worse_than_the_best_is_kept(gains: tuple[float, ...], kept: int) -> None:
    assert best_epoch(rows(*gains), select="judges") == kept
    of_training = [one | other for one, other in zip(rows(*gains, name="training second opinion"), rows(
        *gains[::-1]), strict=True)]
    assert best_epoch(of_training, select="judges") == kept, "training images decide where they are others"


def test_nothing_is_preferred_unless_every_epoch_was_judged() -> None:
    judged = {row["epoch"]: row for row in rows(0.1, 0.0, -0.1)}
    assert preferred_epoch(judged) == 0
    assert preferred_epoch(judged | {1: {"epoch": 1}}) is None
    assert preferred_epoch(judged | {1: {"epoch": 1, "second opinion": 0.3}}) is None, "without its error"
    assert preferred_epoch({}) is None


def test_the_kept_epoch_is_the_newest_or_stays_so_that_one_model_is_stored() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        gains = rng.normal(size=12) * 0.05
        kept = [best_epoch(rows(*gains[:count]), select="judges") for count in range(1, 13)]
        assert all(now in (before, number) for number, (before, now) in enumerate(itertools.pairwise(kept), 1))


def harmed(root: Path, **options: Any) -> Run:
    return trained(root, split="all", fields=HARMFUL, **options)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines that workers write to the log."""
    lines = list[str]()
    monkeypatch.setattr(worker.log, "info", lambda text, *values: lines.append(text % values))
    return lines


def test_a_training_that_harms_ends_with_the_epoch_that_the_judges_prefer(tmp_path: Path, log: list[str]) -> None:
    with stored(of_classes()):
        run, last = harmed(tmp_path), harmed(tmp_path, select="last")
    assert run.spec().select == "judges", "the default without labels in training, if all images are searched"
    by_epoch = {row["epoch"]: row for row in run.metrics()[0]}
    kept = run.kept_epoch()
    assert kept == preferred_epoch(by_epoch) < last.kept_epoch() == 5
    images = run.sample_indices()
    assert np.allclose(run.embeddings("final")[images], run.epoch_sample(kept), atol=1e-5)
    assert np.allclose(last.embeddings("final")[images], run.epoch_sample(5), atol=1e-5), "only the choice differs"
    assert sum(f"epoch {kept} is kept" in line for line in log) == 1
    before, after = (of.evaluation()["final"]["map@r"] for of in (last, run))
    assert after > before, "the judge of this test knows the classes"


@pytest.mark.slow
def test_the_start_is_kept_if_every_epoch_is_worse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_sample_judge", lambda *_: Falling())
    run = harmed(tmp_path)
    assert run.status().state == "done"
    assert run.kept_epoch() == 0
    assert np.array_equal(run.embeddings("final"), run.embeddings("initial"))
    assert not run.has_best(0, 5), "the start has a file of its own"


class Falling:
    """A judge that finds each embedding worse than the one before."""

    def __init__(self) -> None:
        self.asked = 0

    def differences(self, _embedding: np.ndarray) -> dict[str, float]:
        self.asked += 1
        return {"second opinion": -self.asked, "second opinion error": 0.1, "second opinion first result": 0.0,
                "second opinion first result error": 0.1}


@pytest.mark.slow
def test_without_a_judge_the_last_epoch_is_kept_and_the_log_says_so(tmp_path: Path, log: list[str]) -> None:
    run = harmed(tmp_path)
    assert run.spec().select == "judges"
    assert run.kept_epoch() == 5
    assert any("no judge chooses the epoch: the last epoch is kept" in line for line in log)
    assert np.array_equal(run.embeddings("final"), harmed(tmp_path, select="last").embeddings("final"))


@pytest.mark.slow
@pytest.mark.parametrize("patience", [None, 2])
def test_a_resumed_run_keeps_the_same_epoch_bit_by_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                       patience: int | None) -> None:
    with stored(of_classes()):
        whole = harmed(tmp_path, patience=patience)
        for stopped in range(1, whole.status().epoch + 1):
            run, write = create_run(whole.spec(), tmp_path), Run.write_checkpoint

            def full(self: Run, epoch: int, *rest: Any, end: int = stopped, write: Any = write) -> None:
                if epoch == end:
                    raise OSError(28, "No space")
                write(self, epoch, *rest)

            with monkeypatch.context() as patch:
                patch.setattr(Run, "write_checkpoint", full)
                assert worker.work(run).state == "failed"
            assert worker.work(run).state == "done"
            assert run.kept_epoch() == whole.kept_epoch()
            assert np.array_equal(run.embeddings("final"), whole.embeddings("final"))


def test_a_training_ends_when_the_verdict_has_fallen_for_the_chosen_epochs(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_sample_judge", lambda *_: Falling())
    run = harmed(tmp_path, patience=2)
    assert [row["epoch"] for row in run.metrics()[0]] == [0, 1, 2]
    assert run.status().state == "done"
    assert run.kept_epoch() == 0


@pytest.mark.slow
def test_a_halved_data_set_is_judged_on_its_training_images(tmp_path: Path) -> None:
    with stored(of_classes()):
        run = trained(tmp_path, split="seen", select="judges", fields=HARMFUL)
        plain = trained(tmp_path, split="seen", fields=HARMFUL)
    assert plain.spec().select == "last", "on other images the choice is right about as often as wrong"
    known = run.metrics()[0]
    assert all("training second opinion error" in row for row in known)
    assert all(row["training second opinion"] != row["second opinion"] for row in known[1:])
    assert not any("training second opinion" in row for row in plain.metrics()[0])
    assert run.kept_epoch() == preferred_epoch({row["epoch"]: row for row in known})


def test_judges_choose_only_where_training_sees_no_labels(tmp_path: Path) -> None:
    planned = [spec(method, split="all", fields=fields).select for method, fields in (
        ("rpml", {"dimension": 8}), ("pca", {"dimension": 8}), ("triplet", {}), ("frozen", {}))]
    assert planned == ["judges", "last", "last", "last"]
    assert len(spec(split="seen", select="judges").halves(trained(tmp_path, method="frozen").dataset()).validation) == 0
    for options, words in (({"patience": 2, "select": "last"}, "got 2 with select 'last'"),
                           ({"patience": 2, "select": "judges", "processes": 2}, "got 2 processes")):
        with pytest.raises(UserError, match=words):
            spec("simclr", split="all", fields={"dimension": 8}, **options)  # type: ignore[arg-type]


@pytest.mark.slow
def test_pages_say_which_epoch_is_kept_and_that_the_same_images_chose_it(tmp_path: Path) -> None:
    plain, last = harmed(tmp_path), harmed(tmp_path, select="last")
    with stored(of_classes()):
        run, halved = harmed(tmp_path), trained(tmp_path, split="seen", select="judges", fields=HARMFUL)
    said = f"Kept: epoch {run.kept_epoch()} of 5. A judge without labels finds epoch 5 surely worse"
    assert kept_words(run).startswith(said)
    assert kept_words(plain).startswith("Kept: epoch 5, the last. No encoder that took no part had looked")
    assert kept_words(last) == ""
    assert epochs_words(run) == "A judge also chose the epoch, one of 5, by the same images, which favors it."
    assert [epochs_words(of) for of in (halved, last, plain)] == [""] * 3, "other images chose it, or none did"
