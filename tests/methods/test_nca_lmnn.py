"""NCA and LMNN against scikit-learn and a literal loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from tests.methods.test_nml import halves, setting
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.splits import make_split
from udml_core.data.training_data import TrainingData
from udml_core.methods import Epoch, Method
from udml_core.methods.closed_form import PCA
from udml_core.methods.embedder import unit
from udml_core.methods.ml_kml import KML
from udml_core.methods.nca_lmnn import LMNN, NCA, target_neighbors
from udml_core.numerics.evaluation import mean_precision_at_k
from udml_core.numerics.losses.lmnn import large_margin_loss


def labeled_half() -> TrainingData:
    dataset = catalog.load("digits")
    assert dataset.labels is not None
    train = make_split(dataset, "seen").train
    return TrainingData(halves()[0].features[:500], given_labels=torch.from_numpy(dataset.labels[train][:500]))


def fit_epoch(method: Method) -> Epoch:
    (epoch,) = method.fit(labeled_half(), setting())
    return epoch


@pytest.mark.parametrize("entries", [4_000_000, 100])
def test_the_margin_loss_and_its_gradient_equal_a_triple_loop(
        entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udml_core.numerics.losses.lmnn.MAX_ENTRIES", entries)
    random = torch.Generator().manual_seed(0)
    points, labels = torch.randn(24, 6, generator=random, dtype=torch.float64), torch.arange(24) % 3
    weight = torch.randn(6, 4, generator=random, dtype=torch.float64).mul(0.4).requires_grad_()
    targets = torch.from_numpy(target_neighbors(points.numpy(), labels.numpy(), 2)[1])
    z, total, active = points @ weight, torch.zeros((), dtype=torch.float64), 0
    for i in range(24):
        for j in targets[i].tolist():
            to_target = (z[i] - z[j]).square().sum()
            total = total + 0.3 * to_target
            for q in range(24):
                if labels[q] != labels[i]:
                    excess = 1 + to_target - (z[i] - z[q]).square().sum()
                    active += int(excess > 0)
                    total = total + 0.7 * excess.clamp_min(0)
    (total / 24).backward()
    assert 0 < active < 24 * 2 * 16
    value, gradient = large_margin_loss(points, weight.detach(), labels, targets, 0.7)
    assert value == pytest.approx(total.item() / 24)
    torch.testing.assert_close(gradient, weight.grad)


def test_targets_are_the_nearest_images_of_the_class() -> None:
    points, labels = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32), np.arange(40) % 4
    labels[7] = 9
    rows, targets = target_neighbors(points, labels, 3)
    assert rows.tolist() == [row for row in range(40) if row != 7]
    for position, row in enumerate(rows):
        others = [other for other in rows if labels[other] == labels[row] and other != row]
        nearest = sorted(others, key=lambda other: ((points[other] - points[row]) ** 2).sum())[:3]
        assert rows[targets[position]].tolist() == nearest


def test_a_small_class_repeats_its_targets_and_takes_none_from_other_classes() -> None:
    points, labels = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32), np.arange(40) % 4
    labels[[3, 9]] = 9
    targets = target_neighbors(points, labels, 3)[1]
    assert targets[3].tolist() == [9, 9, 9]
    assert targets[9].tolist() == [3, 3, 3]
    others = np.delete(np.arange(40), [3, 9])
    assert all(len(set(targets[row].tolist())) == 3 for row in others)


@pytest.mark.parametrize(("method", "most"), [(NCA(), 20_000), (KML(), 10_000)], ids=lambda value: str(value)[:9])
def test_methods_with_a_matrix_of_all_pairs_estimate_its_memory_and_limit_the_images(method: Method, most: int) -> None:
    method.check(most, 1280)
    with pytest.raises(UserError, match=rf"at most {most:,} images, got {most + 1:,}\."):
        method.check(most + 1, 1280)
    assert method.expected_bytes(most, 1280) > 30 * most**2
    assert method.expected_bytes(most, 1280) > 10 * LMNN().expected_bytes(most, 1280)


def test_nca_equals_scikit_learn_on_the_principal_components() -> None:
    rows, labels = unit(labeled_half().features), labeled_half().labels.numpy()
    embedder = fit_epoch(NCA(dimension=8, iterations=8)).embedder
    components = np.linalg.svd(rows.numpy().astype(np.float64), full_matrices=False)[2].T
    reference = NeighborhoodComponentsAnalysis(8, init="pca", max_iter=8, random_state=0)
    theirs = reference.fit(rows.numpy() @ components, labels).transform(rows.numpy() @ components)
    ours = embedder.embed_features(labeled_half().features.numpy())
    expected, squared = ((embedding[:50, None] - embedding[None, :50]) ** 2 for embedding in (theirs, ours))
    np.testing.assert_allclose(squared.sum(2), expected.sum(2), rtol=0.05, atol=0.05)


@pytest.mark.parametrize("method", [NCA(dimension=16), LMNN(dimension=16), LMNN(dimension=16, variant="square")],
                         ids=["nca", "lmnn(r)", "lmnn(s)"])
def test_a_learned_metric_beats_pca_of_its_dimension_on_the_training_half(method: Method) -> None:
    features, labels = labeled_half().features.numpy(), labeled_half().labels.numpy()
    pca, ours = (mean_precision_at_k(fit_epoch(fitted).embedder.embed_features(features), labels)[10]
                 for fitted in (PCA(dimension=16), method))
    assert ours > pca + 0.01, f"mprec@10 {100 * pca:.1f} and {100 * ours:.1f}"


@pytest.mark.parametrize("labels", [torch.zeros(20, dtype=torch.int64), torch.arange(20)])
def test_labels_without_pairs_of_both_kinds_are_rejected(labels: torch.Tensor) -> None:
    few = TrainingData(halves()[0].features[:20], given_labels=labels)
    with pytest.raises(UserError, match="at least 2 classes and a class of at least 2 images"):
        next(iter(NCA(dimension=4).fit(few, setting())))
