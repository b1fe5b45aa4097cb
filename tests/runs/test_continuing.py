"""Continuing a finished run with further pairs.

A new run starts from the state of the finished run, which stays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import torch
from pydantic import Field

from experiments.hold_fast.small_runs import difference
from tests.running import spec, worked
from udml_core import __version__
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.given.pair_sets import PairSet
from udml_core.data.splits import make_split
from udml_core.methods.ml_kml import KML, ML
from udml_core.methods.nml import NML
from udml_core.methods.registry import declared
from udml_core.methods.shared.pair_method import PairMethod
from udml_core.numerics.explanations import Pairs
from udml_core.numerics.sampling import generator, label_pairs
from udml_core.runs import Run, create_run, list_runs
from udml_core.sklearn import MetricLearner
from udml_core.work import jobs
from udml_core.work.workers import material
from udml_core.work.workers import train as worker

FIELDS = {"dimension": 6, "epochs": 2}


class LaterNML(NML):
    """NML as a later version may define it, with another default."""

    margin: Annotated[float, Field(ge=0, le=10)] = 0.05


def drawn_pairs(seed: int) -> PairSet:
    """Draw pairs of the training half, by image index."""
    dataset = catalog.load("digits")
    assert dataset.labels is not None
    train = make_split(dataset, "seen").train
    pairs, same = label_pairs(torch.from_numpy(dataset.labels[train]), 400, generator(seed, 0))
    return PairSet(train[pairs.numpy()], same.numpy())


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return worked(tmp_path_factory.mktemp("continuing"), method="nml", fields=FIELDS, pairs=drawn_pairs(1))


def continued(run: Run, pairs: PairSet, **fields: Any) -> Run:
    """Create a run that continues another."""
    plan = jobs.plan_continuation(run, run.dataset(), pairs, fields, "cpu")
    return create_run(plan, run.folder.parent, pairs)


@pytest.mark.slow
@pytest.mark.parametrize("method", [NML(**FIELDS), ML(**FIELDS), KML(**FIELDS)], ids=lambda method: method.card.name)  # type: ignore[arg-type]
def test_a_continued_run_equals_partial_fit(method: PairMethod, first: Run, tmp_path: Path) -> None:
    run = first
    if method.card.name != "nml":
        run = worked(tmp_path, method=method.card.name, fields=FIELDS, pairs=drawn_pairs(1))
    files = {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()}
    further = drawn_pairs(2)
    new = continued(run, further)
    assert worker.work(new).state == "done", new.status().message
    assert files == {path: path.read_bytes() for path in files}, "the finished run must not change"
    np.testing.assert_array_equal(new.embeddings("initial"), run.embeddings("final"))
    assert [row["epoch"] for row in new.metrics()[0]] == [0, 1]
    features = np.asarray(material.load(run, lambda *_: None).features)
    train = make_split(run.dataset(), "seen").train
    if method.card.name != "kml":  # its learner has no partial_fit, because a kernel needs the same images again
        learner = MetricLearner(method).fit(features[train], pairs=within(drawn_pairs(1), train))
        learner.partial_fit(features[train], pairs=within(further, train))
        np.testing.assert_array_equal(new.embeddings("final"), learner.transform(features))
    record = next(record for record in new.explanations(1) if isinstance(record, Pairs))
    for which, squared in (("initial", record.before), ("final", record.after)):
        points = new.embeddings(which)[train[record.pairs]]  # type: ignore[arg-type]
        np.testing.assert_allclose(squared, ((points[:, 0] - points[:, 1]) ** 2).sum(1), rtol=2e-2, atol=1e-3)


def within(pairs: PairSet, train: Any) -> tuple[Any, Any]:
    inside = pairs.within(train)
    return inside.pairs, inside.same


@pytest.mark.slow
def test_continuing_a_run_of_the_first_version_keeps_that_versions_defaults(
        first: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = Run(Path(shutil.copytree(first.folder, tmp_path / first.id)))
    stored = json.loads((old.folder / "spec.json").read_text())
    for name in ("version", "backbone", "pooling", "size"):
        del stored[name]
    (old.folder / "spec.json").write_text(json.dumps(stored | {"fields": FIELDS}))
    monkeypatch.setitem(declared(), "nml", (__name__, "LaterNML"))
    assert spec(method="nml", fields=FIELDS).fields["margin"] == 0.05
    new = continued(old, drawn_pairs(2)).spec()
    assert new.fields == first.spec().fields | {"epochs": 1}
    assert new.fields["margin"] == 0.02
    assert new.version == __version__
    assert continued(old, drawn_pairs(2), margin=0.03).spec().fields["margin"] == 0.03


@pytest.mark.slow
def test_an_interrupted_continued_run_ends_bit_equal(first: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    further = drawn_pairs(2)
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
    assert difference(run, whole) is None
    interrupted, expected = (next(record for record in each.explanations(3) if isinstance(record, Pairs))
                             for each in (run, whole))
    np.testing.assert_array_equal(interrupted.before, expected.before)


@pytest.mark.slow
def test_a_continued_run_can_be_continued_and_knows_all_used_pairs(first: Run) -> None:
    second = continued(first, drawn_pairs(2))
    assert worker.work(second).state == "done"
    third = continued(second, drawn_pairs(3))
    assert worker.work(third).state == "done", third.status().message
    np.testing.assert_array_equal(third.embeddings("initial"), second.embeddings("final"))
    draws = [drawn_pairs(seed) for seed in (1, 2, 3, 4)]
    pairs = PairSet(np.concatenate([draw.pairs for draw in draws]), np.concatenate([draw.same for draw in draws]))
    unused = third.unused_pairs(pairs)
    assert set(map(tuple, unused.pairs.tolist())) <= set(map(tuple, draws[3].pairs.tolist()))
    assert len(first.unused_pairs(pairs)) > len(second.unused_pairs(pairs)) > len(unused) > 0


def test_a_continued_run_starts_from_the_kept_epoch_instead_of_the_last(tmp_path: Path) -> None:
    fields = FIELDS | {"epochs": 4, "learning_rate": 1.0}
    selected = worked(tmp_path, method="nml", fields=fields, pairs=drawn_pairs(1), select="validation", seed=1)
    assert selected.kept_epoch() < 4, "this learning rate overshoots; at which epoch depends on the processor"
    new = continued(selected, drawn_pairs(2))
    assert worker.work(new).state == "done", new.status().message
    np.testing.assert_array_equal(new.embeddings("initial"), selected.embeddings("final"))


def test_a_run_without_its_checkpoint_cannot_be_continued(first: Run, tmp_path: Path) -> None:
    run = Run(shutil.copytree(first.folder, tmp_path / first.id))
    plan = jobs.plan_continuation(run, run.dataset(), drawn_pairs(2), {}, "cpu")
    (run.folder / "checkpoint" / "0002" / "state.safetensors").write_bytes(b"cut")
    with pytest.raises(UserError, match="has lost its folder 'checkpoint'"):
        create_run(plan, tmp_path, drawn_pairs(2))
    with pytest.raises(UserError, match="has lost its folder 'checkpoint'"):
        jobs.plan_continuation(run, run.dataset(), drawn_pairs(2), {}, "cpu")


@pytest.mark.parametrize(("fields", "message"), [
    ({"dimension": 8}, "keeps 'dimension' at 6, got 8. Remove it"),
    ({"kernel": "rbf"}, "keeps 'kernel' at chi2, got rbf"),
    ({"margin": 5.0}, "must be at most the bias"), ({"width": 3}, "has no field 'width'")])
def test_fields_that_shape_the_model_cannot_change(fields: dict[str, Any], message: str, first: Run) -> None:
    with pytest.raises(UserError, match=message):
        continued(first, drawn_pairs(2), **fields)


def test_runs_and_pairs_that_do_not_fit_are_rejected(first: Run, tmp_path: Path) -> None:
    dataset, pairs = first.dataset(), drawn_pairs(2)
    only_similar = PairSet(pairs.pairs[pairs.same], pairs.same[pairs.same])
    other = worked(tmp_path, method="frozen")
    unfinished = create_run(spec(method="nml", fields=FIELDS, most_pairs=100), tmp_path)
    for run, further, images, message in (
            (other, pairs, dataset, "Choose a run of NML, ML or KML"),
            (unfinished, pairs, dataset, "Only a finished run can be continued, and .* is waiting"),
            (first, only_similar, dataset, "pairs of both kinds"),
            (first, pairs, catalog.load("fashion-mini"), "has changed since this run was started")):
        with pytest.raises(UserError, match=message):
            jobs.plan_continuation(run, images, further, {})


def test_a_continued_run_without_its_start_state_fails_with_a_message(first: Run) -> None:
    run = continued(first, drawn_pairs(2))
    (run.folder / "start" / "state.safetensors").write_bytes(b"cut")
    status = worker.work(run)
    assert status.state == "failed"
    assert f"the state of {first.id}" in status.message
    assert run.id in [listed.id for listed in list_runs(first.folder.parent)]
