"""The methods on plain vectors, as a scikit-learn transformer.

    from udml_core.methods import NML
    from udml_core.sklearn import MetricLearner

    MetricLearner(NML(dimension=32)).fit(X, y).transform(X)
    MetricLearner(NML(dimension=32)).fit(X, pairs=(pairs, same)).transform(X)
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
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from udml_core.arrays import Array
from udml_core.backbones import Encoder, EncoderSpec
from udml_core.data.given.pairs import MOST_PAIRS, PairSet
from udml_core.data.label_budget import check_labels
from udml_core.data.training import TrainingData
from udml_core.errors import UserError
from udml_core.methods import Embedder, Epoch, Method, Setting
from udml_core.sampling import generator, label_pairs

PairLog = tuple[Any, Any]
"""Rows of X (p, 2) int, and whether they are the same (p,): bool, or 1 and 0, or 1 and −1 as in NML's paper."""
KINDS = ({0, 1}, {-1, 1})


def _continues(learner: MetricLearner) -> bool:
    return learner.method.continues_on_new_vectors


class MetricLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A method's embedding of vectors (n, D), float32 (n, l).

    Args:
        method: any that needs neither images nor views of them.
        random_state: the seed, or what scikit-learn draws one from.

    Attributes:
        embedder_: what the method learnt. n_features_in_: D.
    """

    def __init__(self, method: Method, random_state: Any = 0) -> None:
        self.method = method
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, pairs: PairLog | None = None) -> Self:
        """Learn from vectors (n, D), with classes y (n,) or, for methods that learn from them, with pairs. Methods that
        learn from few labels take −1 for unlabeled, as scikit-learn's own do.

        Raises:
            ValueError: the method needs what is missing, or its fields do not suit the data.
        """
        self._seed = self._drawn_seed()
        data = self._data(X, y, pairs, reset=True)
        return self._keep(lambda setting: self.method.fit(data, setting))

    @available_if(_continues)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, pairs: PairLog | None = None) -> Self:
        """One epoch more, on these vectors and their pairs: further pairs continue a trained model."""
        begun = hasattr(self, "_state")
        if not begun:
            self._seed = self._drawn_seed()
        data = self._data(X, y, pairs, reset=not begun)
        method = self.method
        if begun:
            return self._keep(lambda setting: method.continue_fit(data, setting, self._state, 1))
        return self._keep(lambda setting: method.model_copy(update={"epochs": 1}).fit(data, setting))

    def transform(self, X: Any) -> Array:
        """Embeddings (n, l) float32 of vectors (n, D)."""
        check_is_fitted(self, "embedder_")
        return self.embedder_.embed_features(self._checked(X, reset=False))

    @property
    def _n_features_out(self) -> int:
        return self.embedder_.embed_features(np.ones((1, self.n_features_in_), np.float32)).shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.method.positive_only
        tags.target_tags.required = self.method.card.supervision != "none"
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _drawn_seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def _keep(self, fit: Callable[[Setting], Iterator[Epoch]]) -> Self:
        """Run a fit to its end."""
        encoder = Encoder(EncoderSpec(backbone="pixels", size=4))  # vectors have none; methods see features only
        with _told_as_value_error():
            *_, last = fit(Setting(self._seed, torch.device("cpu"), encoder))
        self.embedder_: Embedder = last.embedder
        self._state = last.state
        return self

    def _data(self, X: Any, y: Any, pairs: PairLog | None, reset: bool) -> TrainingData:
        method = self.method
        if not method.learns_from_vectors:
            raise ValueError(f"{method.card.title} learns from images, and vectors were given. Choose another method.")
        if pairs is not None and method.card.supervision != "pairs":
            raise ValueError(f"{method.card.title} learns from no pairs. Leave them out, or choose NML.")
        if pairs is None and method.card.supervision != "none":
            y = validate_data(self, X, y, dtype=np.float32, reset=reset, ensure_min_samples=2)[1]
        rows = torch.from_numpy(np.array(self._checked(X, reset=reset, least=2)))
        if method.card.supervision == "none":
            return TrainingData(rows)
        labels = None if pairs is not None else _numbered(y, method.card.supervision == "few")
        if method.card.supervision == "pairs":
            return TrainingData(rows, given_pairs=self._pairs(labels, pairs, len(rows)))
        return TrainingData(rows, given_labels=labels)

    def _pairs(self, labels: torch.Tensor | None, pairs: PairLog | None, count: int) -> PairSet:
        """Given pairs, checked, or such as the labels make."""
        if labels is not None:
            drawn = label_pairs(labels, MOST_PAIRS, generator(self._seed, 0))
            found = PairSet(*(one.numpy() for one in drawn))
        else:
            assert pairs is not None
            found = _told(pairs, count)
        with _told_as_value_error():
            found.check()
        return found

    def _checked(self, X: Any, reset: bool, least: int = 1) -> Array:
        rows = validate_data(self, X, dtype=np.float32, reset=reset, ensure_min_samples=least)
        if self.method.positive_only:
            check_non_negative(rows, type(self).__name__)
        return rows


def _numbered(y: Any, few: bool) -> torch.Tensor:
    """Classes (n,) as numbers from 0; −1 stays where few labels are learnt from."""
    known = ~(np.asarray(y) == -1) if few else np.ones(len(y), dtype=bool)
    labels = np.full(len(y), -1)
    labels[known] = np.unique(y[known], return_inverse=True)[1]
    if few:
        with _told_as_value_error():
            check_labels(labels)
    return torch.from_numpy(labels)


@contextmanager
def _told_as_value_error() -> Iterator[None]:
    """What users of scikit-learn expect to catch."""
    try:
        yield
    except UserError as error:
        raise ValueError(str(error)) from error


def _told(pairs: PairLog, count: int) -> PairSet:
    """Pairs of `count` rows that somebody gave, checked."""
    rows, same = (np.asarray(one) for one in pairs) if len(pairs) == 2 else (np.zeros(0), np.zeros(0))
    if rows.ndim != 2 or rows.shape[1] != 2 or same.shape != (len(rows),):
        raise ValueError("pairs must be rows of X (p, 2) and whether they are the same (p,), got arrays of the shapes "
                         f"{[np.shape(one) for one in pairs]}.")
    if not np.issubdtype(rows.dtype, np.integer):
        raise ValueError(f"pairs must name rows of X by whole numbers, got {rows.dtype}.")
    if len(rows) and not (rows.min() >= 0 and rows.max() < count):
        raise ValueError(f"pairs must name rows 0 to {count - 1} of X, got {rows.min()} to {rows.max()}.")
    if (rows[:, 0] == rows[:, 1]).any():
        raise ValueError(f"A pair is two different rows of X, got row {rows[rows[:, 0] == rows[:, 1]][0, 0]} twice.")
    if same.dtype != bool and not any(set(np.unique(same).tolist()) <= kinds for kinds in KINDS):
        raise ValueError("Whether pairs are the same must be bool, or 1 and 0, or 1 and −1, got "
                         f"{np.unique(same)[:5].tolist()}.")
    return PairSet(rows.astype(np.int64), same.astype(np.float64) > 0)
