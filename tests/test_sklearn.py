"""The methods as scikit-learn transformers: its own checks, pipelines, pairs and going on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from udml_core.methods import (
    KML,
    LMNN,
    LRML,
    METHODS,
    ML,
    NCA,
    NML,
    PCA,
    PLM,
    RPML,
    SRPML,
    SSDML,
    Frozen,
    Method,
    Whiten,
    find_method,
)
from udml_core.sampling import generator, label_pairs
from udml_core.sklearn import MetricLearner

SMALL: list[Method] = [
    NML(dimension=2, epochs=1), NML(dimension=2, epochs=1, negative="split", kernel="hellinger"),
    ML(dimension=1, epochs=1), KML(dimension=1, epochs=1), NCA(dimension=1, iterations=3),
    LMNN(dimension=1, iterations=3), LMNN(dimension=1, iterations=3, variant="square"), PCA(dimension=1), Frozen(),
    Whiten(n_neighbors=1), RPML(dimension=1, epochs=1, steps=1, epsilon=0.5, n_neighbors=5),
    SRPML(dimension=1, epochs=1, steps=1, epsilon=0.5, n_neighbors=5, batch=10),
    LRML(n_neighbors=1), SSDML(dimension=1, epochs=1, steps=1, n_neighbors=2)]


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


@pytest.mark.parametrize("method", [NML(dimension=8, epochs=3), ML(dimension=8, epochs=3)], ids=lambda one: one.card.name)
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


@pytest.mark.parametrize("told", [[1, 0], [1, -1], [1.0, -1.0], [True, False]])
def test_the_same_and_different_may_be_told_as_papers_do(told: list[Any], digits: tuple[Any, Any]) -> None:
    X, y = digits[0][:200], digits[1][:200]
    pairs, same = (one.numpy() for one in label_pairs(torch.from_numpy(y), 200, generator(0, 0)))
    method = ML(dimension=4, epochs=1)
    expected = MetricLearner(method).fit(X, pairs=(pairs, same)).transform(X)
    given = np.where(same, told[0], told[1])
    np.testing.assert_array_equal(MetricLearner(method).fit(X, pairs=(pairs, given)).transform(X), expected)


@pytest.mark.parametrize("method", [PCA(dimension=3), NML(dimension=3, epochs=1),
                                    RPML(dimension=3, epochs=1, steps=1, epsilon=0.9, n_neighbors=5)],
                         ids=lambda one: one.card.name)
def test_it_gives_data_frames_where_they_are_asked_for(method: Method, digits: tuple[Any, Any]) -> None:
    X, y = digits[0][:200], digits[1][:200]
    plain = MetricLearner(method).fit(X, y).transform(X)
    frame = MetricLearner(method).set_output(transform="pandas").fit(X, y).transform(X)
    assert list(frame.columns) == ["metriclearner0", "metriclearner1", "metriclearner2"]
    np.testing.assert_array_equal(frame.to_numpy(), plain)
    with config_context(transform_output="pandas"):
        line = make_pipeline(MinMaxScaler(clip=True), MetricLearner(method)).fit(X, y)
        assert list(line.transform(X).columns) == list(frame.columns)


def test_its_seed_may_come_from_where_scikit_learn_s_do(digits: tuple[Any, Any]) -> None:
    X, y = digits[0][:200], digits[1][:200]

    def embedded(random_state: Any) -> Any:
        return MetricLearner(NML(dimension=3, epochs=1, beginning="random"), random_state).fit(X, y).transform(X)

    np.testing.assert_array_equal(embedded(np.int64(3)), embedded(3))
    np.testing.assert_array_equal(embedded(np.random.RandomState(5)), embedded(np.random.RandomState(5)))
    assert not np.array_equal(embedded(None), embedded(3))


@pytest.mark.parametrize("name", [one.card.name for one in METHODS if one.card.supervision == "few"])
def test_few_labels_are_learnt_from_and_the_rest_is_minus_one(name: str, digits: tuple[Any, Any]) -> None:
    X, y = digits[0][:300], digits[1][:300].copy()
    y[60:] = -1
    fields = {"epochs": 1} | ({"dimension": 8} if name in ("ssdml", "triplet", "angular") else {})
    learner = MetricLearner(find_method(name).make(fields))
    few = learner.fit(X, y).transform(X)
    assert np.isfinite(few).all()
    assert not np.array_equal(few, clone(learner).fit(X, digits[1][:300]).transform(X))


def test_what_does_not_fit_is_said(digits: tuple[Any, Any]) -> None:
    X, y = digits[0][:100], digits[1][:100]
    pairs = (np.array([[0, 1], [2, 3]]), np.array([True, False]))
    for method, given, message in (
            (PLM(), {}, "learns from images"), (PCA(dimension=4), {"pairs": pairs}, "learns from no pairs"),
            (NML(dimension=200), {"y": y}, "Lower the field 'dimension'"),
            (NML(), {"pairs": (pairs[0], pairs[1][:1])}, "arrays of the shapes"),
            (NML(), {"pairs": (pairs[0],)}, "arrays of the shapes"),
            (NML(), {"pairs": (pairs[0] + 0.7, pairs[1])}, "whole numbers, got float64"),
            (NML(), {"pairs": (pairs[0] > 0, pairs[1])}, "whole numbers, got bool"),
            (NML(), {"pairs": (pairs[0] * 0 + 3, pairs[1])}, "two different rows of X, got row 3 twice"),
            (NML(), {"pairs": (pairs[0], [1, 2])}, r"1 and −1, got \[1, 2\]"),
            (NML(), {"pairs": (pairs[0], ["same", "different"])}, r"got \['different', 'same'\]"),
            (LRML(partition=0), {"y": np.full(100, -1)}, "got 0 labels in 0 classes"),
            (NML(), {"pairs": (pairs[0] + 98, pairs[1])}, "rows 0 to 99 of X, got 98 to 101"),
            (NML(), {"pairs": (pairs[0], [True, True])}, "pairs of both kinds"), (NML(), {}, "requires y to be passed"),
            (NML(), {"y": np.arange(100)}, "pairs of both kinds")):
        with pytest.raises(ValueError, match=message):
            MetricLearner(method).fit(X, **given)
    assert not hasattr(MetricLearner(KML()), "partial_fit")
    assert not hasattr(MetricLearner(PCA()), "partial_fit")
