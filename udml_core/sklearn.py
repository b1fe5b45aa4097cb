"""The methods on feature vectors, as a scikit-learn transformer.

```python
from udml_core.methods.closed_form import PCA
from udml_core.methods.ml_kml import ML
from udml_core.methods.nca_lmnn import NCA
from udml_core.methods.nml import NML
from udml_core.sklearn import MetricLearner

MetricLearner(PCA(dimension=32)).fit(X).transform(X)
MetricLearner(NCA(dimension=32)).fit(X, y).transform(X)
MetricLearner(ML(dimension=32)).fit(X, pairs=(pairs, same)).transform(X)
scaled = make_pipeline(MinMaxScaler(clip=True), MetricLearner(NML()), classifier)
GridSearchCV(scaled, {"metriclearner__method__dimension": [8, 32]})
```

NML and KML need values of at least 0, so standardized vectors need `MinMaxScaler(clip=True)` before them, or
`NML(negative="split")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError, quoted
from udml_core.data.encoders import Encoder, EncoderSpec
from udml_core.data.given.pair_sets import MOST_PAIRS, PairSet
from udml_core.data.label_budget import check_labels
from udml_core.data.training_data import TrainingData
from udml_core.methods import Embedder, Epoch, Method, Setting, names_of
from udml_core.numerics.sampling import generator, label_pairs

GivenPairs = tuple[Any, Any]
"""Rows of X (p, 2) int, and whether the pairs are similar (p,): bool, or 1 and 0, or 1 and −1 as in NML's paper."""
FIELD = "method__"
"""How a field of the method is named among the parameters."""
SIMILARITY_CODES = ({0, 1}, {-1, 1})


def _continues(learner: MetricLearner) -> bool:
    return learner.method.continues_on_new_vectors


class MetricLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A method's embedding of vectors (n, D), float32 (n, l).

    Args:
        method: A method that needs neither images nor augmented views. Its fields are parameters: `method__dimension`.
            A dimension or a number of neighbors that is not given is lowered where the data allow less, and an ε that
            is not given is changed where all vectors, or none, would share a cluster.
        random_state: The seed, or a source of seeds that scikit-learn accepts.

    Attributes:
        embedder_: The learned embedder.
        n_features_in_: Width D of the vectors.
    """

    def __init__(self, method: Method, random_state: Any = 0) -> None:
        self.method = method
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, pairs: GivenPairs | None = None) -> Self:
        """Learn from vectors.

        Args:
            X: Vectors (n, D).
            y: Classes (n,); −1 means unlabeled for methods that learn from few labels, as in scikit-learn.
            pairs: Pairs of rows and whether they are similar, for methods that learn from pairs.

        Raises:
            ValueError: Labels or pairs are missing, or the method's fields do not suit the data.
        """
        self._seed = self._draw_seed()
        data = self._training_data(X, y, pairs, reset=True)
        method = _within(self.method, data).suited(data.features)
        return self._train(lambda setting: method.fit(data, setting))

    @available_if(_continues)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, pairs: GivenPairs | None = None) -> Self:
        """Train for one more epoch on these vectors; see `fit` for the arguments."""
        is_trained = hasattr(self, "_state")
        if not is_trained:
            self._seed = self._draw_seed()
        data = self._training_data(X, y, pairs, reset=not is_trained)
        method = _within(self.method, data)
        if is_trained:
            return self._train(lambda setting: method.continue_fit(data, setting, self._state, 1))
        return self._train(lambda setting: method.model_copy(update={"epochs": 1}).fit(data, setting))

    def transform(self, X: Any) -> Array:
        """Return the embeddings (n, l) float32 of vectors (n, D)."""
        check_is_fitted(self, "embedder_")
        return self.embedder_.embed_features(self._checked(X, reset=False))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep`, the method's fields as well, such as `method__dimension`."""
        params: dict[str, Any] = super().get_params(deep=False)
        fields = type(self.method).model_fields if deep and isinstance(self.method, Method) else ()
        return params | {f"{FIELD}{name}": getattr(self.method, name) for name in fields}

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also fields of the method.

        Raises:
            ValueError: A parameter is unknown, or a value is not allowed.
        """
        super().set_params(**{name: value for name, value in params.items() if not name.startswith(FIELD)})
        fields = {name.removeprefix(FIELD): value for name, value in params.items() if name.startswith(FIELD)}
        if fields:
            method = self._checked_method
            with _user_errors_as_value_errors():
                self.method = method.make(method.model_dump(exclude_unset=True) | fields)
        return self

    @property
    def _n_features_out(self) -> int:
        return self.embedder_.embed_features(np.ones((1, self.n_features_in_), np.float32)).shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self._checked_method.positive_only
        tags.target_tags.required = self._checked_method.card.supervision != "none"
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _draw_seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def _train(self, fit: Callable[[Setting], Iterator[Epoch]]) -> Self:
        """Run a fit to its end and keep the embedder and the state."""
        encoder = Encoder(EncoderSpec(backbone="pixels", size=4))  # a placeholder: methods see features only
        with _user_errors_as_value_errors(" X has 1 feature(s)." * (self.n_features_in_ == 1)):
            *_, last = fit(Setting(self._seed, torch.device("cpu"), encoder))
        self.embedder_: Embedder = last.embedder
        self._state = last.state
        return self

    def _training_data(self, X: Any, y: Any, pairs: GivenPairs | None, reset: bool) -> TrainingData:
        """Return the training data with exactly the supervision that the method declares."""
        method = self._checked_method
        if not method.learns_from_vectors:
            raise ValueError(f"{method.card.title} {method.needs_images}, but vectors were given. Choose "
                             f"{names_of(lambda method: method.learns_from_vectors)}.")
        if pairs is not None and method.card.supervision != "pairs":
            raise ValueError(f"{method.card.title} does not learn from pairs, but pairs were given. Remove them, or "
                             f"choose {names_of(lambda method: method.card.supervision == 'pairs')}.")
        if pairs is None and method.card.supervision != "none":
            y = validate_data(self, X, y, dtype=np.float32, reset=reset, ensure_min_samples=2)[1]
        rows = torch.from_numpy(np.array(self._checked(X, reset=reset, least=2)))
        if method.card.supervision == "none":
            return TrainingData(rows)
        labels = None if pairs is not None else _number_classes(y, method.card.supervision == "few")
        if method.card.supervision == "pairs":
            return TrainingData(rows, given_pairs=self._pairs(labels, pairs, len(rows)))
        return TrainingData(rows, given_labels=labels)

    @property
    def _checked_method(self) -> Method:
        if not isinstance(self.method, Method):
            raise TypeError("method must be a method with its fields, such as udml_core.methods.closed_form.PCA(), got "
                            f"{quoted(self.method)}.")
        return self.method

    def _pairs(self, labels: torch.Tensor | None, pairs: GivenPairs | None, count: int) -> PairSet:
        """Return the given pairs, or pairs drawn from the labels, after a check."""
        if labels is not None:
            drawn = label_pairs(labels, MOST_PAIRS, generator(self._seed, 0))
            result = PairSet(*(part.numpy() for part in drawn))
        else:
            assert pairs is not None
            result = _read_pairs(pairs, count)
        with _user_errors_as_value_errors():
            result.check()
        return result

    def _checked(self, X: Any, reset: bool, least: int = 1) -> Array:
        rows = validate_data(self, X, dtype=np.float32, reset=reset, ensure_min_samples=least)
        if self.method.positive_only and rows.min() < 0:
            title = self.method.card.title
            split = "set its field negative='split', " if "negative" in type(self.method).model_fields else ""
            raise ValueError(f"Negative values in data passed to {title}: {title} needs values of at least 0, got "
                             f"{rows.min():g}. Put MinMaxScaler(clip=True) before it, {split}or use PCA or NCA.")
        return rows


def _within(method: Method, data: TrainingData) -> Method:
    """Return the method with a dimension and a number of neighbors that the data allow, where the user gave none."""
    count, width = data.features.shape[0], data.features.shape[-1]
    most = {"dimension": min(count, width), "n_neighbors": count - 1}
    lowered = {name: limit for name, limit in most.items()
               if name in type(method).model_fields and name not in method.model_fields_set
               and getattr(method, name) > limit >= 1}
    return method.model_copy(update=lowered) if lowered else method


def _number_classes(y: Any, few: bool) -> torch.Tensor:
    """Return the classes (n,) as numbers from 0; with few labels, −1 stays.

    Raises:
        ValueError: The labels are continuous, or do not suit few labels.
    """
    if type_of_target(y).startswith("continuous"):
        raise ValueError(f"y must have the class of each row, got the numbers {np.ravel(y)[:3].tolist()}, … . Divide "
                         "them into classes, such as with numpy.digitize.")
    labeled = ~(np.asarray(y) == -1) if few else np.ones(len(y), dtype=bool)
    labels = np.full(len(y), -1)
    labels[labeled] = np.unique(y[labeled], return_inverse=True)[1]
    if few:
        with _user_errors_as_value_errors():
            check_labels(labels)
    return torch.from_numpy(labels)


@contextmanager
def _user_errors_as_value_errors(hint: str = "") -> Iterator[None]:
    """Raise ValueError, which users of scikit-learn expect, in place of UserError, with a hint after its message."""
    try:
        yield
    except UserError as error:
        raise ValueError(f"{error}{hint}") from error


def _read_pairs(pairs: GivenPairs, count: int) -> PairSet:
    """Check given pairs of `count` rows and return them.

    Raises:
        ValueError: The arrays do not describe pairs of rows.
    """
    if not hasattr(pairs, "__len__"):
        raise ValueError("pairs must be two arrays, rows of X (p, 2) and whether the pairs are similar (p,), got "
                         f"{quoted(pairs)}.")
    rows, same = (np.asarray(part) for part in pairs) if len(pairs) == 2 else (np.zeros(0), np.zeros(0))
    if rows.ndim != 2 or rows.shape[1] != 2 or same.shape != (len(rows),):
        raise ValueError("pairs must be rows of X (p, 2) and whether the pairs are similar (p,), got arrays of the "
                         f"shapes {[np.shape(part) for part in pairs]}.")
    if not np.issubdtype(rows.dtype, np.integer):
        raise ValueError(f"pairs must name rows of X by whole numbers, got {rows.dtype}.")
    if len(rows) and not (rows.min() >= 0 and rows.max() < count):
        raise ValueError(f"pairs must name rows 0 to {count - 1} of X, got {rows.min()} to {rows.max()}.")
    if (rows[:, 0] == rows[:, 1]).any():
        row = rows[rows[:, 0] == rows[:, 1]][0, 0]
        raise ValueError(f"A pair must be two different rows of X, got row {row} twice.")
    if same.dtype != bool and not any(set(np.unique(same).tolist()) <= codes for codes in SIMILARITY_CODES):
        raise ValueError("The similarity of pairs must be bool, or 1 and 0, or 1 and −1, got "
                         f"{np.unique(same)[:5].tolist()}.")
    return PairSet(rows.astype(np.int64), same.astype(np.float64) > 0)
