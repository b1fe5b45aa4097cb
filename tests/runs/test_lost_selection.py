"""A run that selects an epoch and loses its model: the run trains again and never keeps another model."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from tests.running import worked
from udml_core.methods import Embedder
from udml_core.runs import Run
from udml_core.runs.tasks import Status
from udml_core.work.workers import train as worker

REQUEST = {"method": "triplet", "select": "recall", "fields": {"dimension": 4, "epochs": 4, "learning_rate": 3.0}}


def _empty(name: str) -> Callable[[Path], object]:
    return lambda best: (best / name).write_bytes(b"")


def _swap(best: Path) -> None:
    """Replace the model by the model of the last epoch."""
    shutil.rmtree(best)
    shutil.copytree(best.with_name("0004"), best)


def _forget(name: str) -> Callable[[Path], object]:
    """Remove a line of the curves."""
    def forget(best: Path) -> None:
        path = best.parents[1] / "metrics.jsonl"
        path.write_text("".join(line for line in path.read_text().splitlines(True) if f'"epoch": {name},' not in line))

    return forget


DAMAGES = {"missing": shutil.rmtree, "no embedder": _empty("embedder.safetensors"), "no state": _empty(
    "state.safetensors"), "another epoch": _swap, "no row of the best": _forget("2"), "no start": _forget("0")}


def work_again(run: Run) -> str:
    """Execute a finished run again, as `jobs.resume` does when a result is damaged; return its state."""
    run.write_status(Status())
    return worker.work(run).state


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a finished run that keeps epoch 2 of 4, without its final embedder."""
    run = worked(tmp_path, **REQUEST)
    assert run.kept_epoch() == 2
    assert not np.array_equal(run.embeddings("final"), _embeddings_of(run, "0004"))
    run.embedder_path.unlink()
    return run


def _embeddings_of(run: Run, checkpoint: str) -> np.ndarray:
    embedder = Embedder.load(run.folder / "checkpoint" / checkpoint / "embedder.safetensors")
    return embedder.embed_features(np.asarray(worker.load(run, lambda *_: None).features))


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGES)
def test_a_lost_model_of_the_best_epoch_is_trained_again(name: str, run: Run) -> None:
    whole = np.array(run.embeddings("final"))
    DAMAGES[name](run.best_embedder_path.parent)
    assert work_again(run) == "done"
    np.testing.assert_array_equal(run.embeddings("final"), whole)
    assert run.kept_epoch() == 2
    np.testing.assert_array_equal(_embeddings_of(run, "best"), whole)


@pytest.mark.slow
def test_a_model_that_is_lost_during_training_ends_with_a_sentence_and_comes_back(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, best = np.array(run.embeddings("final")), run.best_embedder_path.parent
    with monkeypatch.context() as patch:
        patch.setattr(worker._Work, "_keep_baselines", lambda *_: shutil.rmtree(best, ignore_errors=True))
        shutil.rmtree(best)
        assert work_again(run) == "failed"
    assert run.status().message == (f"{best} should hold the model of epoch 2, which this run keeps, but could not be "
                                    "read. Resume the run: it trains again.")
    assert work_again(run) == "done"
    np.testing.assert_array_equal(run.embeddings("final"), whole)


@pytest.mark.slow
def test_nothing_is_trained_again_if_the_model_is_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model counts also after a kill between the two renames, and without the number that older runs lack."""
    whole, best, trained = np.array(run.embeddings("final")), run.best_embedder_path.parent, []
    monkeypatch.setattr(Run, "write_checkpoint", lambda *_: trained.append(1))
    best.rename(best.with_suffix(".replaced"))
    assert work_again(run) == "done"
    state = load_file(best / "state.safetensors")
    save_file(state, best / "state.safetensors")
    run.embedder_path.unlink()
    assert work_again(run) == "done"
    np.testing.assert_array_equal(run.embeddings("final"), whole)
    assert not trained
