"""The methods as scikit-learn transformers: its own checks, pipelines, pairs and going on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from udml_core.methods import KML, LMNN, ML, NCA, NML, PCA, PLM, RPML, SRPML, Frozen, Method, Whiten
from udml_core.sampling import generator, label_pairs
from udml_core.sklearn import MetricLearner

SMALL: list[Method] = [
    NML(dimension=2, epochs=1), NML(dimension=2, epochs=1, negative="split", kernel="hellinger"),
    ML(dimension=1, epochs=1), KML(dimension=1, epochs=1), NCA(dimension=1, iterations=3),
    LMNN(dimension=1, iterations=3), LMNN(dimension=1, iterations=3, variant="square"), PCA(dimension=1), Frozen(),
    Whiten(n_neighbors=1), RPML(dimension=1, epochs=1, steps=1, epsilon=0.5, n_neighbors=5),
    SRPML(dimension=1, epochs=1, steps=1, epsilon=0.5, n_neighbors=5, batch=10)]


@parametrize_with_checks([MetricLearner(method) for method in SMALL])
def test_scikit_learn_s_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any]:
    return load_digits(return_X_y=True)


def test_it_stands_in_a_pipeline_and_a_search(digits: tuple[Any, Any]) -> None:
    X, y = digits
    line = make_pipeline(MinMaxScaler(clip=True), MetricLearner(NML(dimension=16, epochs=3)), KNeighborsClassifier(5))
    line.fit(X[:1000], y[:1000])
    assert line.score(X[1000:], y[1000:]) > 0.85
    searched = GridSearchCV(line, {"metriclearner__method": [NML(dimension=2, epochs=2), NML(dimension=16, epochs=2)]},
                            cv=2).fit(X[:600], y[:600])
    assert searched.best_params_["metriclearner__method"].dimension == 16
    assert list(line[:2].get_feature_names_out()[:2]) == ["metriclearner0", "metriclearner1"]


def test_pairs_of_the_labels_give_what_the_labels_give_and_others_another(digits: tuple[Any, Any]) -> None:
    X, y = digits[0][:400], digits[1][:400]
    pairs = tuple(one.numpy() for one in label_pairs(torch.from_numpy(y), 500_000, generator(0, 0)))
    by_labels = MetricLearner(NML(dimension=8, epochs=2)).fit(X, y).transform(X)
    by_pairs = MetricLearner(NML(dimension=8, epochs=2)).fit(X, pairs=pairs).transform(X)
    np.testing.assert_array_equal(by_labels, by_pairs)
    other = MetricLearner(NML(dimension=8, epochs=2)).fit(X, pairs=(pairs[0][::7], pairs[1][::7])).transform(X)
    assert not np.array_equal(other, by_pairs)


@pytest.mark.parametrize("method", [NML(dimension=8, epochs=3), ML(dimension=8, epochs=3)], ids=lambda one: one.name)
def test_going_on_epoch_by_epoch_is_fitting_and_further_pairs_continue_it(
        method: Method, digits: tuple[Any, Any]) -> None:
    X, y = digits[0][:400], digits[1][:400]
    whole, parts = MetricLearner(method).fit(X, y), MetricLearner(method)
    for _ in range(3):
        parts.partial_fit(X, y)
    np.testing.assert_array_equal(whole.transform(X), parts.transform(X))
    later, classes = digits[0][400:800], digits[1][400:800]
    moved = clone(parts).partial_fit(X, y)
    before = moved.transform(later)
    moved.partial_fit(later, classes)
    assert not np.array_equal(before, moved.transform(later))


def test_what_does_not_fit_is_said(digits: tuple[Any, Any]) -> None:
    X, y = digits[0][:100], digits[1][:100]
    pairs = (np.array([[0, 1], [2, 3]]), np.array([True, False]))
    for method, given, message in (
            (PLM(), {}, "learns from images"), (PCA(dimension=4), {"pairs": pairs}, "learns from no pairs"),
            (NML(dimension=200), {"y": y}, "Lower the field 'dimension'"),
            (NML(), {"pairs": (pairs[0], pairs[1][:1])}, "arrays of the shapes"),
            (NML(), {"pairs": (pairs[0] + 98, pairs[1])}, "rows 0 to 99 of X, got 98 to 101"),
            (NML(), {"pairs": (pairs[0], [True, True])}, "pairs of both kinds"), (NML(), {}, "requires y to be passed"),
            (NML(), {"y": np.arange(100)}, "pairs of both kinds")):
        with pytest.raises(ValueError, match=message):
            MetricLearner(method).fit(X, **given)
    assert not hasattr(MetricLearner(KML()), "partial_fit")
    assert not hasattr(MetricLearner(PCA()), "partial_fit")
