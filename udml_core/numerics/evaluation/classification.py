"""Accuracies of a nearest-neighbor classifier and of a linear probe."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch.nn.functional import normalize

from udml_core.base.arrays import Array
from udml_core.numerics.evaluation.ranking import row_chunks

COSINE_QUANTUM = 1e-6
"""Resolution of cosines."""
PROBE_STEPS = 200

# Functions import scikit-learn and SciPy at first use, because both slow the start of the command line.


def knn_accuracy(train: Array, train_labels: Array, test: Array, test_labels: Array, k: int = 200,
                 temperature: float = 0.1) -> float:
    """Compute the accuracy of a weighted k-nearest-neighbor classifier.

    The predicted class has the largest Σ e^{s/τ} over the k training points of largest cosine s. Cosines are rounded to
    1e-6. Ties between points go to the lowest index, ties between classes to the lowest class.

    Args:
        train: (n, d).
        train_labels: (n,).
        test: (m, d).
        test_labels: (m,).
        k: Number of voting training points; all if k exceeds n.
        temperature: τ.

    References:
        Z. Wu et al., "Unsupervised Feature Learning via Non-Parametric Instance Discrimination", CVPR 2018.
    """
    if k < 1 or temperature <= 0:
        raise ValueError(f"Weighted kNN needs k ≥ 1 and a temperature above 0, got {k} and {temperature}.")
    names, votes = np.unique(train_labels, return_inverse=True)
    base, queries = (normalize(torch.as_tensor(np.asarray(part, dtype=np.float32)), dim=1) for part in (train, test))
    classes, indices = torch.from_numpy(votes), torch.arange(len(base))
    correct = 0
    for rows in row_chunks(len(queries), len(base)):
        cosine = queries[rows] @ base.T
        keys = (cosine / COSINE_QUANTUM).round_().to(torch.int64).mul_(-len(base)).add_(indices)
        neighbors = torch.topk(keys, min(k, len(base)), dim=1, largest=False).indices
        # Subtracting the largest cosine scales all scores of a row by one factor and prevents an overflow at a small τ.
        weights = torch.exp((cosine.gather(1, neighbors) - cosine.amax(1, keepdim=True)).double() / temperature)
        scores = weights.new_zeros(len(rows), len(names)).scatter_add_(1, classes[neighbors], weights)
        correct += int((names[scores.numpy().argmax(axis=1)] == np.asarray(test_labels)[rows.numpy()]).sum())
    return correct / len(queries)


def linear_accuracy(train: Array, train_labels: Array, test: Array, test_labels: Array) -> float:
    """Compute the accuracy of a linear probe on test points.

    The probe is logistic regression (C = 1) on the training points, standardized per column. With a single training
    class, it predicts this class for every test point.

    Args:
        train: (n, d).
        train_labels: (n,).
        test: (m, d).
        test_labels: (m,).
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if len(np.unique(train_labels)) == 1:
        return float(np.mean(test_labels == train_labels[0]))
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=PROBE_STEPS))
    with warnings.catch_warnings():
        # The accuracy has settled after 200 steps even without full convergence, and small classes are allowed.
        warnings.simplefilter("ignore", UserWarning)
        probe.fit(np.asarray(train, dtype=np.float32), train_labels)
    return float(probe.score(np.asarray(test, dtype=np.float32), test_labels))
