"""Methods as scikit-learn transformers: checks, pipelines, pairs and partial fits."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA as REFERENCE
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler, normalize
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.contract.test_odd_folders import smallest_fields
from udml_core.methods import METHODS, Method, find_method
from udml_core.methods.closed_form import PCA, Frozen, Whiten
from udml_core.methods.ml_kml import KML, ML
from udml_core.methods.nca_lmnn import LMNN, NCA
from udml_core.methods.nml import NML
from udml_core.methods.plm import PLM
from udml_core.methods.rpml import RPML, SRPML
from udml_core.methods.seraph import SERAPH
from udml_core.methods.ssdml import SSDML
from udml_core.methods.ssdml_baselines import APIT, APLLR, ISDML, LRML
from udml_core.methods.triplet_angular import Angular, Triplet
from udml_core.numerics.refinement import Refiner
from udml_core.numerics.sampling import generator, label_pairs
from udml_core.sklearn import MetricLearner

FULL: list[Method] = [RPML(dimension=1, epochs=1, steps=1, epsilon=0.5, n_neighbors=5), LRML(n_neighbors=1),
                      NML(dimension=2, epochs=1), LMNN(dimension=1, iterations=3)]
"""One method of each kind of supervision, for all of scikit-learn's checks; most of them test the transformer only,
so these checks are slow."""
OTHERS: list[Method] = [
    NML(dimension=2, epochs=1, negative="split", kernel="hellinger"), ML(dimension=1, epochs=1),
    KML(dimension=1, epochs=1), NCA(dimension=1, iterations=3), LMNN(dimension=1, iterations=3, variant="square"),
    PCA(dimension=1), Frozen(), Whiten(n_neighbors=1),
    SRPML(dimension=1, epochs=1, steps=1, epsilon=0.5, n_neighbors=5, batch=10),
    SSDML(dimension=1, epochs=1, steps=1, n_neighbors=2), SERAPH(n_neighbors=1, steps=2), ISDML(n_neighbors=1),
    LRML(n_neighbors=1), APLLR(n_neighbors=1), APIT(n_neighbors=1), Triplet(dimension=1, epochs=1),
    Angular(dimension=1, epochs=1)]
OTHERS += [method.make(smallest_fields(method)) for method in METHODS if method().learns_from_vectors
           and method not in {type(listed) for listed in FULL + OTHERS}]


@parametrize_with_checks([MetricLearner(RPML()), MetricLearner(SRPML()), Refiner()])
def test_the_estimator_checks_of_scikit_learn_pass(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([MetricLearner(method) for method in (*FULL, SSDML(), LMNN(), NML(), PCA(), Whiten())])
def test_the_estimator_checks_of_scikit_learn_pass_with_labels_and_pairs(estimator: Any, check: Any) -> None:
    check(estimator)


def test_the_estimator_checks_cover_every_kind_of_supervision_and_the_tests_every_method() -> None:
    assert {method.card.supervision for method in FULL} == {method.card.supervision for method in METHODS}
    tested = {type(method) for method in FULL + OTHERS}
    assert tested == {method for method in METHODS if method().learns_from_vectors}


@pytest.mark.parametrize("method", OTHERS, ids=lambda method: method.card.name)
def test_a_method_keeps_the_contract_of_a_transformer(method: Method) -> None:
    """The parts of scikit-learn's checks that depend on the method."""
    random = np.random.default_rng(0)
    X, y = random.random((30, 4)), np.arange(30) % 3
    X[y == 1] += 0.5
    for array in (X, y):
        array.setflags(write=False)
    learner = MetricLearner(method).fit(X, y)
    embeddings = learner.transform(X)
    assert embeddings.dtype == np.float32
    assert len(embeddings) == len(X)
    assert np.isfinite(embeddings).all()
    assert learner.n_features_in_ == 4
    assert len(learner.get_feature_names_out()) == embeddings.shape[1]
    np.testing.assert_allclose(learner.transform(X[:7]), embeddings[:7], atol=1e-5)
    np.testing.assert_array_equal(MetricLearner(method).fit_transform(X, y), embeddings)
    np.testing.assert_array_equal(learner.fit(X, y).transform(X), embeddings)
    np.testing.assert_array_equal(learner.fit(X.tolist(), y.tolist()).transform(X), embeddings)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(learner)).transform(X), embeddings)
    np.testing.assert_allclose(MetricLearner(method).fit(X.astype(np.float32), y).transform(X), embeddings, atol=1e-5)


@pytest.mark.parametrize("method", OTHERS, ids=lambda method: method.card.name)
def test_a_method_embeds_a_single_feature_and_rejects_bad_vectors(method: Method) -> None:
    X, y = np.random.default_rng(0).random((30, 4)), np.arange(30) % 3
    narrow = 3 * X[:10, :1]
    assert len(MetricLearner(method).fit(narrow, y[:10]).transform(narrow)) == 10
    learner = MetricLearner(method).fit(X, y)
    with pytest.raises(ValueError, match="4 features"):
        learner.transform(narrow)
    for bad in (X[:1], np.where(X > 0.9, np.nan, X), np.where(X > 0.9, np.inf, X), X[:, :0], X[0]):
        with pytest.raises(ValueError, match=r"sample|NaN|infinity|feature|1D array|inconsistent"):
            MetricLearner(method).fit(bad, y[: len(bad)])


def test_fields_of_the_method_are_parameters_and_given_ones_are_not_lowered() -> None:
    X, y = np.random.default_rng(0).random((30, 4)), np.arange(30) % 3
    learner = MetricLearner(LMNN())
    assert learner.get_params()["method__dimension"] == LMNN().dimension
    assert learner.fit(X, y).transform(X).shape == (30, 4), "a dimension that is not given is lowered"
    assert clone(learner).set_params(method__dimension=2).fit(X, y).transform(X).shape == (30, 2)
    with pytest.raises(ValueError, match="dimension"):
        learner.set_params(method__dimension=9).fit(X, y)
    for wrong in ({"method__dimension": 0}, {"method__nothing": 1}, {"nothing": 1}):
        with pytest.raises(ValueError, match=r"dimension|nothing"):
            MetricLearner(LMNN()).set_params(**wrong)
    search = GridSearchCV(make_pipeline(MetricLearner(LMNN(iterations=3)), KNeighborsClassifier()),
                          {"metriclearner__method__dimension": np.arange(1, 4, 2)}, cv=2).fit(X, y)
    assert [params["metriclearner__method__dimension"] for params in search.cv_results_["params"]] == [1, 3]
    assert search.best_estimator_[0].method.iterations == 3


def test_a_refiner_keeps_the_names_of_columns() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).random((30, 4)), columns=list("abcd"))
    refiner = Refiner("average:k=3").fit(frame).set_output(transform="pandas")
    assert list(refiner.transform(frame).columns) == ["refiner0", "refiner1", "refiner2", "refiner3"]
    with pytest.raises(ValueError, match="feature names"):
        refiner.transform(frame[list("dcba")])


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any]:
    return load_digits(return_X_y=True)


def test_a_learner_works_in_a_pipeline_and_in_a_grid_search(digits: tuple[Any, Any]) -> None:
    X, y = digits
    pipeline = make_pipeline(MinMaxScaler(clip=True), MetricLearner(NML(dimension=16, epochs=3)),
                             KNeighborsClassifier(5))
    pipeline.fit(X[:1000], y[:1000])
    assert pipeline.score(X[1000:], y[1000:]) > 0.85
    grid = {"metriclearner__method": [NML(dimension=2, epochs=2), NML(dimension=16, epochs=2)]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X[:600], y[:600])
    assert search.best_params_["metriclearner__method"].dimension == 16
    assert all(str(method).startswith("NML(") for method in search.cv_results_["param_metriclearner__method"])
    assert list(pipeline[:2].get_feature_names_out()[:2]) == ["metriclearner0", "metriclearner1"]
    standardized = StandardScaler().fit_transform(X[:600])
    for method, split in ((NML(), "set its field negative='split', "), (KML(), "")):
        title = method.card.title
        message = (f"Negative values in data passed to {title}: {title} needs values of at least 0, got "
                   f"{standardized.min():g}. Put MinMaxScaler(clip=True) before it, {split}or use PCA or NCA.")
        with pytest.raises(ValueError, match=re.escape(message)):
            MetricLearner(method).fit(standardized, y[:600])
    assert pipeline.fit(standardized, y[:600]).score(standardized, y[:600]) > 0.85, "the scaler is the cure"


def test_pairs_from_labels_equal_a_fit_with_labels_and_other_pairs_do_not(digits: tuple[Any, Any]) -> None:
    X, y = digits[0][:400], digits[1][:400]
    pairs = tuple(part.numpy() for part in label_pairs(torch.from_numpy(y), 500_000, generator(0, 0)))
    by_labels = MetricLearner(NML(dimension=8, epochs=2)).fit(X, y).transform(X)
    by_pairs = MetricLearner(NML(dimension=8, epochs=2)).fit(X, pairs=pairs).transform(X)
    np.testing.assert_array_equal(by_labels, by_pairs)
    other = MetricLearner(NML(dimension=8, epochs=2)).fit(X, pairs=(pairs[0][::7], pairs[1][::7])).transform(X)
    assert not np.array_equal(other, by_pairs)


@pytest.mark.parametrize("method", [NML(dimension=8, epochs=3), ML(dimension=8, epochs=3)],
                         ids=lambda method: method.card.name)
def test_partial_fits_equal_one_fit_and_further_pairs_continue_the_model(
        method: Method, digits: tuple[Any, Any]) -> None:
    X, y = digits[0][:400], digits[1][:400]
    whole, parts = MetricLearner(method).fit(X, y), MetricLearner(method)
    for _ in range(3):
        parts.partial_fit(X, y)
    np.testing.assert_array_equal(whole.transform(X), parts.transform(X))
    later, classes = digits[0][400:800], digits[1][400:800]
    continued = clone(parts).partial_fit(X, y)
    before = continued.transform(later)
    continued.partial_fit(later, classes)
    assert not np.array_equal(before, continued.transform(later))


@pytest.mark.parametrize("codes", [[1, 0], [1, -1], [1.0, -1.0], [True, False]])
def test_similarity_may_be_coded_as_bool_as_zero_and_one_or_as_plus_and_minus_one(
        codes: list[Any], digits: tuple[Any, Any]) -> None:
    X, y = digits[0][:200], digits[1][:200]
    pairs, same = (part.numpy() for part in label_pairs(torch.from_numpy(y), 200, generator(0, 0)))
    method = ML(dimension=4, epochs=1)
    expected = MetricLearner(method).fit(X, pairs=(pairs, same)).transform(X)
    coded = np.where(same, codes[0], codes[1])
    np.testing.assert_array_equal(MetricLearner(method).fit(X, pairs=(pairs, coded)).transform(X), expected)


@pytest.mark.parametrize("method", [PCA(dimension=3), NML(dimension=3, epochs=1),
                                    RPML(dimension=3, epochs=1, steps=1, epsilon=0.9, n_neighbors=5)],
                         ids=lambda method: method.card.name)
def test_the_output_is_a_data_frame_if_requested(method: Method, digits: tuple[Any, Any]) -> None:
    X, y = digits[0][:200], digits[1][:200]
    plain = MetricLearner(method).fit(X, y).transform(X)
    frame = MetricLearner(method).set_output(transform="pandas").fit(X, y).transform(X)
    assert list(frame.columns) == ["metriclearner0", "metriclearner1", "metriclearner2"]
    np.testing.assert_array_equal(frame.to_numpy(), plain)
    with config_context(transform_output="pandas"):
        pipeline = make_pipeline(MinMaxScaler(clip=True), MetricLearner(method)).fit(X, y)
        assert list(pipeline.transform(X).columns) == list(frame.columns)


@pytest.mark.parametrize("unit_length", [True, False])
def test_centered_components_equal_those_of_scikit_learn_on_new_vectors(
        unit_length: bool, digits: tuple[Any, Any]) -> None:
    X, new = (normalize(digits[0][part].astype(np.float64)) for part in (slice(200), slice(200, 300)))
    expected = REFERENCE(5, svd_solver="full").fit(X).transform(new)
    expected = normalize(expected) if unit_length else expected
    ours = MetricLearner(PCA(dimension=5, unit_length=unit_length)).fit(3 * X).transform(3 * new)
    np.testing.assert_allclose(ours * np.sign((ours * expected).sum(0)), expected, atol=1e-4)


def test_the_seed_may_come_from_any_source_that_scikit_learn_accepts(digits: tuple[Any, Any]) -> None:
    X, y = digits[0][:200], digits[1][:200]

    def embed(random_state: Any) -> Any:
        return MetricLearner(NML(dimension=3, epochs=1, beginning="random"), random_state).fit(X, y).transform(X)

    np.testing.assert_array_equal(embed(np.int64(3)), embed(3))
    np.testing.assert_array_equal(embed(np.random.RandomState(5)), embed(np.random.RandomState(5)))
    assert not np.array_equal(embed(None), embed(3))


@pytest.mark.parametrize("name", [method.card.name for method in METHODS if method.card.supervision == "few"])
def test_minus_one_marks_unlabeled_rows_for_methods_that_learn_from_few_labels(
        name: str, digits: tuple[Any, Any]) -> None:
    X, y = digits[0][:300], digits[1][:300].copy()
    y[60:] = -1
    fields = {"epochs": 1} | ({"dimension": 8} if name in ("ssdml", "triplet", "angular") else {})
    learner = MetricLearner(find_method(name).make(fields))
    few = learner.fit(X, y).transform(X)
    assert np.isfinite(few).all()
    assert not np.array_equal(few, clone(learner).fit(X, digits[1][:300]).transform(X))


PAIRS = (np.array([[0, 1], [2, 3]]), np.array([True, False]))


@pytest.mark.parametrize(("method", "arguments", "message"), [
    (PLM(), {}, "learns from random views"), (PCA(dimension=4), {"pairs": PAIRS}, "does not learn from pairs"),
    (NML(dimension=200), {"y": np.arange(100) % 10}, "Lower the field 'dimension'"),
    (NML(), {"pairs": (PAIRS[0], PAIRS[1][:1])}, "arrays of the shapes"),
    (NML(), {"pairs": (PAIRS[0],)}, "arrays of the shapes"),
    (NML(), {"pairs": (PAIRS[0] + 0.7, PAIRS[1])}, "whole numbers, got float64"),
    (NML(), {"pairs": (PAIRS[0] > 0, PAIRS[1])}, "whole numbers, got bool"),
    (NML(), {"pairs": (PAIRS[0] * 0 + 3, PAIRS[1])}, "two different rows of X, got row 3 twice"),
    (NML(), {"pairs": (PAIRS[0], [1, 2])}, r"1 and −1, got \[1, 2\]"),
    (NML(), {"pairs": (PAIRS[0], ["same", "different"])}, r"got \['different', 'same'\]"),
    (LRML(partition=0), {"y": np.full(100, -1)}, "0 labels in 0 classes"),
    (NML(), {"pairs": (PAIRS[0] + 98, PAIRS[1])}, "rows 0 to 99 of X, got 98 to 101"),
    (NML(), {"pairs": (PAIRS[0], [True, True])}, "both kinds"), (NML(), {}, "requires y to be passed"),
    (NML(), {"y": np.arange(100)}, "both kinds"), (NML(), {"pairs": 5}, "pairs must be two arrays, .* got 5"),
    (NML(), {"y": np.linspace(0, 1, 100)}, r"class of each row, got the numbers \[0.0, 0.01")])
def test_unsuitable_labels_pairs_and_fields_raise_value_errors(
        method: Method, arguments: dict[str, Any], message: str, digits: tuple[Any, Any]) -> None:
    with pytest.raises(ValueError, match=message):
        MetricLearner(method).fit(digits[0][:100], **arguments)


def test_only_methods_that_continue_on_new_vectors_have_partial_fits() -> None:
    assert not hasattr(MetricLearner(KML()), "partial_fit")
    assert not hasattr(MetricLearner(PCA()), "partial_fit")
    assert hasattr(MetricLearner(ML()), "partial_fit")


def test_only_a_default_epsilon_gives_way_to_small_data() -> None:
    X = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    chosen = RPML(n_neighbors=39, dimension=2).suited(torch.from_numpy(X))
    assert chosen.epsilon > RPML().epsilon
    labels = chosen._clusters(torch.from_numpy(X)).labels
    assert 1 < len(labels.unique()) < 40
    with pytest.raises(ValueError, match="put all 40 images into one cluster"):
        MetricLearner(RPML(n_neighbors=39, dimension=2, epsilon=0.65)).fit(X)
    digits = torch.from_numpy(load_digits().data[:500].astype(np.float32))
    assert RPML().suited(digits).epsilon == RPML().epsilon, "a default that works stays"


def test_what_is_no_method_on_vectors_says_why() -> None:
    X = np.random.default_rng(0).normal(size=(40, 6))
    with pytest.raises(TypeError, match=r"method must be a method with its fields, .* got 'pca'"):
        MetricLearner("pca").fit(X)  # type: ignore[arg-type]
    learner = MetricLearner("pca")  # type: ignore[arg-type]
    for use in (learner.__sklearn_tags__, lambda: learner._repr_html_(),
                lambda: learner.set_params(method__dimension=3)):
        with pytest.raises(TypeError, match="method must be a method with its fields"):
            use()
    with pytest.raises(ValueError, match=r"PLM learns from random views of images, but vectors were given\. Choose"):
        MetricLearner(PLM()).fit(X)
    assert "learns from random views of images" in PLM.card.idea
