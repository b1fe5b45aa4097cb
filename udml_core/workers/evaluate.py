"""Evaluate a run: initial, frozen, centered PCA and final embeddings under one protocol."""

from __future__ import annotations

import logging

import numpy as np
import torch

from udml_core.arrays import Array
from udml_core.data.dataset import Report
from udml_core.data.training import training_data
from udml_core.evaluation import evaluate, headline_measures, knn_accuracy, linear_accuracy, neighbor_stability
from udml_core.methods import PCA, Embedder, Setting
from udml_core.runs import Run
from udml_core.workers.material import Loaded, load

__all__ = ["KNN", "evaluate_run", "load"]
KNN = 200
"""Number of training images that vote on the class of a test image."""
COMPARED, COMPARED_NEIGHBORS = 2000, 10
log = logging.getLogger("udml")


def evaluate_run(run: Run, loaded: Loaded, report: Report) -> dict[str, dict[str, float]]:
    """Evaluate on the test half and store the result.

    The candidates are the initial, frozen, centered PCA (of the final dimension) and final embeddings, and the
    method's own. Versions before 0.3 stored an uncentered PCA as "pca".
    The split `seen` with labels adds k-nearest-neighbor and linear accuracy.

    Args:
        run: A run with stored embeddings.
        loaded: Its data set, features and halves.
        report: Receives the finished share.

    Returns:
        Measures in percent, by candidate and name.
    """
    train, test, labels = loaded.split.train, loaded.split.test, loaded.dataset.labels
    candidates = _candidates(run, loaded, test)
    of_train = _candidates(run, loaded, train) if loaded.split.name == "seen" and labels is not None else {}
    space = candidates["frozen"]
    result = {}
    for number, (name, embeddings) in enumerate(candidates.items()):
        def report_candidate(share: float, done: int = number) -> None:
            report((done + share) / len(candidates), "evaluation")

        result[name] = evaluate(embeddings, None if labels is None else labels[test], space, report_candidate)
        if labels is not None and name in of_train:
            seen = (of_train[name], labels[train], embeddings, labels[test])
            result[name] |= {f"knn@{KNN}": 100 * knn_accuracy(*seen, k=KNN),
                             "linear probe": 100 * linear_accuracy(*seen)}
        if name in ("initial", "final"):
            result[name]["neighbors kept from frozen"] = 100 * _kept_neighbors(space, embeddings)
        measures = headline_measures(result[name])
        log.info("%s: %s", name, ", ".join(f"{key} {value:.2f}" for key, value in measures.items()))
    run.write_evaluation(result)
    return result


def _candidates(run: Run, loaded: Loaded, indices: Array) -> dict[str, Array]:
    """Return the embeddings to compare, (b, l) each."""
    features, final = loaded.features[indices], np.asarray(run.embeddings("final")[indices])
    candidates = {"initial": np.asarray(run.embeddings("initial")[indices]),
                  "frozen": Embedder(loaded.encoder).embed_features(features),
                  "centered pca": _centered_pca(loaded, final.shape[1], features), "final": final}
    extra = run.spec().build_method().extra_candidates(Embedder.load(run.embedder_path), torch.from_numpy(final))
    return candidates | {name: embeddings.numpy() for name, embeddings in extra.items()}


def _centered_pca(loaded: Loaded, width: int, features: Array) -> Array:
    """Project on the principal components of the training half's centered unit features.

    The dimension is the final embedding's, or the largest possible.
    """
    data = training_data(loaded.features, None, loaded.split.train, "none")
    most = min(width, *data.features.shape)
    setting = Setting(0, next(loaded.encoder.buffers()).device, loaded.encoder)
    (epoch,) = PCA(dimension=most).fit(data, setting)
    return epoch.embedder.embed_features(features)


def _kept_neighbors(space: Array, embeddings: Array) -> float:
    """Return the mean share of nearest neighbors that two embeddings have in common.

    The share is measured on evenly spaced images.
    """
    chosen = np.linspace(0, len(space) - 1, min(COMPARED, len(space))).astype(int)
    return neighbor_stability(space[chosen], embeddings[chosen], min(COMPARED_NEIGHBORS, len(chosen) - 1))
