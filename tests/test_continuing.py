"""A finished run goes on with further pairs: a new run that starts where it ended, and the finished one stays."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.running import spec, worked
from tests.test_survival import assert_same
from udml_core import jobs
from udml_core.data import catalog
from udml_core.data.given.pairs import PairSet
from udml_core.data.splits import make_split
from udml_core.errors import UserError
from udml_core.explanations import Pairs
from udml_core.methods import KML, ML, NML, PairMethod
from udml_core.runs import Run, create_run, list_runs
from udml_core.sampling import generator, label_pairs
from udml_core.sklearn import MetricLearner
from udml_core.workers import material
from udml_core.workers import train as worker

FIELDS = {"dimension": 6, "epochs": 2}


def of_labels(seed: int) -> PairSet:
    """Pairs of the training half, by position in the data set."""
    dataset = catalog.load("digits")
    assert dataset.labels is not None
    train = make_split(dataset, "seen").train
    pairs, same = label_pairs(torch.from_numpy(dataset.labels[train]), 400, generator(seed, 0))
    return PairSet(train[pairs.numpy()], same.numpy())


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return worked(tmp_path_factory.mktemp("continuing"), method="nml", fields=FIELDS, pairs=of_labels(1))


def continued(run: Run, pairs: PairSet, **fields: Any) -> Run:
    plan = jobs.plan_continuation(run, run.dataset(), pairs, fields, "cpu")
    return create_run(plan, run.folder.parent, pairs)


@pytest.mark.parametrize("method", [NML(**FIELDS), ML(**FIELDS), KML(**FIELDS)], ids=lambda one: one.card.name)  # type: ignore[arg-type]
def test_it_equals_the_partial_fit_of_a_learner(method: PairMethod, first: Run, tmp_path: Path) -> None:
    run = first if method.card.name == "nml" else worked(tmp_path, method=method.card.name, fields=FIELDS, pairs=of_labels(1))
    files = {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()}
    further = of_labels(2)
    new = continued(run, further)
    assert worker.work(new).state == "done", new.status().message
    assert files == {path: path.read_bytes() for path in files}, "the finished run stays as it was"
    np.testing.assert_array_equal(new.embeddings("initial"), run.embeddings("final"))
    assert [row["epoch"] for row in new.metrics()[0]] == [0, 1]
    features = np.asarray(material.load(run, lambda *_: None).features)
    train = make_split(run.dataset(), "seen").train
    if method.card.name != "kml":  # whose learner has no partial_fit, as it takes the same images only
        learner = MetricLearner(method).fit(features[train], pairs=within(of_labels(1), train))
        learner.partial_fit(features[train], pairs=within(further, train))
        np.testing.assert_array_equal(new.embeddings("final"), learner.transform(features))
    record = next(one for one in new.explanations(1) if isinstance(one, Pairs))
    for which, squared in (("initial", record.before), ("final", record.after)):
        places = new.embeddings(which)[train[record.pairs]]  # type: ignore[arg-type]
        np.testing.assert_allclose(squared, ((places[:, 0] - places[:, 1]) ** 2).sum(1), rtol=2e-2, atol=1e-3)


def within(pairs: PairSet, train: Any) -> tuple[Any, Any]:
    inside = pairs.within(train)
    return inside.pairs, inside.same


def test_one_that_died_between_two_epochs_ends_as_one_that_was_left_alone(
        first: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    further = of_labels(2)
    whole, run = (continued(first, further, epochs=3) for _ in range(2))
    assert worker.work(whole).state == "done"
    write = Run.write_checkpoint

    def fail_in_the_second(self: Run, number: int, *rest: Any) -> None:
        if number == 2:
            raise ValueError("killed")
        write(self, number, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "write_checkpoint", fail_in_the_second)
        assert worker.work(run).state == "failed"
    assert worker.work(run).state == "done", run.status().message
    assert_same(run, whole)
    mine, other = (next(one for one in each.explanations(3) if isinstance(one, Pairs)) for each in (run, whole))
    np.testing.assert_array_equal(mine.before, other.before)


def test_it_can_be_continued_again_and_knows_what_was_learnt_before_it(first: Run) -> None:
    second = continued(first, of_labels(2))
    assert worker.work(second).state == "done"
    third = continued(second, of_labels(3))
    assert worker.work(third).state == "done", third.status().message
    np.testing.assert_array_equal(third.embeddings("initial"), second.embeddings("final"))
    every = [of_labels(seed) for seed in (1, 2, 3, 4)]
    told = PairSet(np.concatenate([one.pairs for one in every]), np.concatenate([one.same for one in every]))
    new = third.unused_pairs(told)
    assert set(map(tuple, new.pairs.tolist())) <= set(map(tuple, every[3].pairs.tolist()))
    assert len(first.unused_pairs(told)) > len(second.unused_pairs(told)) > len(new) > 0


def test_it_starts_from_the_epoch_that_was_kept_where_a_later_one_was_worse(tmp_path: Path) -> None:
    fields = FIELDS | {"epochs": 4, "learning_rate": 1.0}
    chosen = worked(tmp_path, method="nml", fields=fields, pairs=of_labels(1), select="validation", seed=1)
    assert chosen.kept_epoch() == 3, "this rate overshoots in the fourth"
    new = continued(chosen, of_labels(2))
    assert worker.work(new).state == "done", new.status().message
    np.testing.assert_array_equal(new.embeddings("initial"), chosen.embeddings("final"))


def test_a_run_whose_kept_state_was_lost_says_so(first: Run, tmp_path: Path) -> None:
    run = Run(shutil.copytree(first.folder, tmp_path / first.id))
    plan = jobs.plan_continuation(run, run.dataset(), of_labels(2), {}, "cpu")
    (run.folder / "checkpoint" / "0002" / "state.safetensors").write_bytes(b"cut")
    with pytest.raises(UserError, match="has lost its folder 'checkpoint'"):
        create_run(plan, tmp_path, of_labels(2))
    with pytest.raises(UserError, match="has lost its folder 'checkpoint'"):
        jobs.plan_continuation(run, run.dataset(), of_labels(2), {}, "cpu")


@pytest.mark.parametrize(("fields", "message"), [
    ({"dimension": 8}, "keeps the dimension that it starts with, 6, got 8. Leave it out"),
    ({"kernel": "rbf"}, "keeps the kernel that it starts with, chi2, got rbf"),
    ({"margin": 5.0}, "must be at most the bias"), ({"width": 3}, "has no field 'width'")])
def test_fields_that_shape_what_is_learnt_are_kept(fields: dict[str, Any], message: str, first: Run) -> None:
    with pytest.raises(UserError, match=message):
        continued(first, of_labels(2), **fields)


def test_what_cannot_be_continued_is_refused(first: Run, tmp_path: Path) -> None:
    dataset, pairs = first.dataset(), of_labels(2)
    of_one_kind = PairSet(pairs.pairs[pairs.same], pairs.same[pairs.same])
    other = worked(tmp_path, method="frozen")
    unfinished = create_run(spec(method="nml", fields=FIELDS, most_pairs=100), tmp_path)
    for run, given, images, message in (
            (other, pairs, dataset, "Only NML, ML and KML"), (unfinished, pairs, dataset, "Only a finished run"),
            (first, of_one_kind, dataset, "pairs of both kinds"),
            (first, pairs, catalog.load("fashion-mini"), "has changed since this run was started")):
        with pytest.raises(UserError, match=message):
            jobs.plan_continuation(run, images, given, {})


def test_without_the_state_that_it_starts_from_it_says_so(first: Run) -> None:
    run = continued(first, of_labels(2))
    (run.folder / "start" / "state.safetensors").write_bytes(b"cut")
    status = worker.work(run)
    assert status.state == "failed"
    assert f"the state of {first.id}" in status.message
    assert run.id in [one.id for one in list_runs(first.folder.parent)]
