"""Evaluate a run: initial, frozen, centered PCA and final embeddings under one protocol."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
import torch

from udml_core.base.arrays import LARGE, Array, Booleans, Integers, evenly_spaced, some_rows
from udml_core.base.malloc import release_freed_memory
from udml_core.data.dataset import DETAIL, Report
from udml_core.data.splits import fixed_sample
from udml_core.data.training_data import training_data
from udml_core.methods import Embedder, Setting
from udml_core.methods.closed_form import PCA
from udml_core.numerics.evaluation import evaluate, headline_measures, knn_accuracy, linear_accuracy, neighbor_stability
from udml_core.numerics.evaluation.summary import CLUSTERED, ESTIMATED, QUERIED
from udml_core.runs import Run
from udml_core.work.workers.material import Loaded, load

__all__ = ["KNN", "evaluate_run", "load"]
KNN = 200
"""Number of training images that vote on the class of a test image."""
COMPARED, COMPARED_NEIGHBORS = 2000, 10
ASKED_ALL, ASKED = 25_000, 2_000
"""Largest number of test images that are all queries, which takes about a minute, and the number of queries of more."""
LONGEST_EXACT = 60.0
"""Seconds within which all images of more are queries, too, after the sample."""
log = logging.getLogger("udml")


def evaluate_run(run: Run, loaded: Loaded, report: Report, exact: bool = False) -> dict[str, dict[str, float]]:
    """Evaluate on the test half and store the result.

    The candidates are the initial, frozen, centered PCA (of the final dimension) and final embeddings, and the
    method's own. PCA has unit length if the final embedding has, so that both are compared by the same distance.
    Versions before 0.3 stored an uncentered PCA as "pca". Of more than `ASKED_ALL` test images a fixed sample of
    `ASKED` are queries among all of them. If asking all takes at most `LONGEST_EXACT`, by the time that the sample has
    just taken, they follow and replace it. The split `seen` with labels adds k-nearest-neighbor and linear accuracy.

    Args:
        run: A run with stored embeddings.
        loaded: Its data set, features and halves.
        report: Receives the finished share.
        exact: Whether every test image is a query, however long it takes.

    Returns:
        Measures in percent, by candidate and name.
    """
    test = loaded.split.test
    if exact or len(test) <= ASKED_ALL:
        return _evaluate(run, loaded if exact else _with_fewer_voters(loaded), report)
    asked, watch = np.flatnonzero(np.isin(test, fixed_sample(test, ASKED))), _Watch(ASKED, len(test))
    log.info("the evaluation asks %d of %d test images; udml evaluate %s --exact asks all", len(asked), len(test),
             run.id)
    result = _evaluate(run, _with_fewer_voters(loaded), report, asked, watch)
    if "queries" not in result["final"] or watch.expected > LONGEST_EXACT:
        return result
    log.info("asking all %d test images should take %.0f seconds", len(test), watch.expected)
    return _evaluate(run, loaded, lambda share, step: report(share, f"{step}{DETAIL}every image, after the sample"))


class _Watch:
    """The time that asking all test images should take, by the measured parts of an evaluation that asks some.

    Attributes:
        expected: Seconds for all embeddings that were evaluated.
    """

    def __init__(self, asked: int, images: int) -> None:
        self.expected = 0.0
        self._asked, self._images = asked, images
        self._last = 0.0

    def begin(self) -> None:
        """Begin with an embedding."""
        self._last = time.monotonic()

    def observe(self, share: float) -> None:
        """Count the time since the last report: of the queries, the clusters, or measures that are always samples."""
        per_image = self._images / (self._asked if share <= QUERIED else min(self._images, ESTIMATED))
        self._count(per_image if share <= CLUSTERED else 1.0)

    def end(self) -> None:
        """Count what followed the last report, which depends on the queries."""
        self._count(self._images / self._asked)

    def _count(self, times: float) -> None:
        now = time.monotonic()
        self.expected += (now - self._last) * times
        self._last = now


def _evaluate(run: Run, loaded: Loaded, report: Report, asked: Integers | None = None, watch: _Watch | None = None
              ) -> dict[str, dict[str, float]]:
    """Evaluate as `evaluate_run` does.

    Args:
        run: The run.
        loaded: Its data set, features and halves.
        report: Receives the finished share.
        asked: Rows (m,) of the test half that are queries; all if None.
        watch: Measures the time.

    Returns:
        The measures, which are stored.
    """
    watch = watch or _Watch(1, 1)
    dataset, test = loaded.dataset, loaded.split.test
    labels, voters = known_labels(loaded)
    voting = voters if labels is not None and loaded.split.name == "seen" else voters[:0]
    candidates = _candidates(run, loaded)
    space = candidates["frozen"](test)
    result = dict[str, dict[str, float]]()
    of_frozen = dict[str, float]()
    for number, (name, embed_images) in enumerate(candidates.items()):  # one embedding at a time needs memory
        def report_candidate(share: float, done: int = number) -> None:
            watch.observe(share)
            report((done + share) / len(candidates), "evaluation")

        embeddings, of_voters = np.split(embed_images(np.concatenate([test, voting])), [len(test)])
        is_frozen = np.array_equal(embeddings, space)
        embeddings = space if is_frozen else embeddings  # once in memory
        watch.begin()
        row = dict(of_frozen) if is_frozen and of_frozen else evaluate(
            embeddings, None if labels is None else labels[test], space, report_candidate,
            classes=None if dataset.evaluation_classes is None else dataset.evaluation_classes[test],
            queries=official_queries(loaded), asked=asked)
        of_frozen = dict(row) if is_frozen else of_frozen
        if labels is not None and len(voting):
            queried = slice(None) if asked is None else asked
            seen = (of_voters, labels[voting], embeddings[queried], labels[test][queried])
            row |= {f"knn@{KNN}": 100 * knn_accuracy(*seen, k=KNN), "linear probe": 100 * linear_accuracy(*seen)}
        watch.end()
        if name in ("initial", "final"):
            row["neighbors kept from frozen"] = 100 * (1.0 if is_frozen else _kept_neighbors(space, embeddings))
        result[name] = row
        release_freed_memory()
        log.info("%s: %s", name, ", ".join(f"{key} {value:.2f}" for key, value in headline_measures(row).items()))
    run.write_evaluation(result)
    return result


def _with_fewer_voters(loaded: Loaded) -> Loaded:
    """Return the input with a fixed sample of at most `LARGE` training images, which vote and make PCA's directions."""
    split = loaded.split
    if len(split.train) <= LARGE:
        return loaded
    log.info("the evaluation learns from %d of %d training images", LARGE, len(split.train))
    return replace(loaded, split=replace(split, train=fixed_sample(split.train, LARGE)))


def known_labels(loaded: Loaded) -> tuple[Integers | None, Integers]:
    """Return labels for the evaluation, and the training images that vote on the classes of test images.

    If only some training images have a class, as in STL-10, they vote for the others.

    Returns:
        Labels (n,), −1 for images without a class, or None if not every test image has exactly one class; and indices
        of the voters.
    """
    dataset, split = loaded.dataset, loaded.split
    if dataset.labels is not None or dataset.evaluation_classes is None:
        return dataset.labels, split.train if dataset.labels is not None else np.zeros(0, np.int64)
    has_one = dataset.evaluation_classes.sum(axis=1) == 1
    if not has_one[split.test].all():
        return None, np.zeros(0, np.int64)
    return np.where(has_one, dataset.evaluation_classes.argmax(axis=1), -1), split.train[has_one[split.train]]


def official_queries(loaded: Loaded) -> Booleans | None:
    """Return the mask of the authors' queries in the test half; None if the test half is not theirs."""
    dataset, test = loaded.dataset, loaded.split.test
    if dataset.queries is None:
        return None
    if loaded.split.name != "zero-shot":
        log.warning("%s has official queries and a gallery, which are the test half of the split 'zero-shot'; with the "
                    "split '%s' every test image is a query among the others", dataset.title, loaded.split.name)
        return None
    queries = dataset.queries[test]
    return queries if queries.any() and not queries.all() else None


def _candidates(run: Run, loaded: Loaded) -> dict[str, Callable[[Integers], Array]]:
    """Return the embeddings to compare, by name, as functions from indices (b,) of images to embeddings (b, l)."""
    final = run.embeddings("final")
    extra, embedder = run.spec().build_method().extra_candidates, Embedder.load(run.embedder_path)

    def further(name: str, indices: Integers) -> Array:
        embeddings: Array = extra(embedder, torch.from_numpy(np.asarray(final[indices])))[name].numpy()
        return embeddings

    def stored(which: Literal["initial", "final"], indices: Integers) -> Array:
        return np.asarray(run.embeddings(which)[indices])

    candidates: dict[str, Callable[[Integers], Array]] = {
        "initial": partial(stored, "initial"),
        "frozen": lambda indices: Embedder(loaded.encoder).embed_features(loaded.features, indices),
        "centered pca": lambda indices: _centered_pca(loaded, final.shape[1], run.is_normalized("final")
                                                      ).embed_features(loaded.features, indices),
        "final": partial(stored, "final")}
    names = extra(embedder, torch.from_numpy(np.array(final[:1])))
    return candidates | {name: partial(further, name) for name in names}


def _centered_pca(loaded: Loaded, width: int, unit_length: bool) -> Embedder:
    """Return the projection on the principal components of the training half's centered unit features.

    Args:
        loaded: The input of the run.
        width: Dimension of the final embedding; PCA has the largest possible one if this is too large.
        unit_length: Whether the projections are scaled to unit length, as the final embedding is or is not.
    """
    data = training_data(loaded.features, None, loaded.split.train, "none")
    most = min(width, *data.features.shape)
    setting = Setting(0, next(loaded.encoder.buffers()).device, loaded.encoder)
    (epoch,) = PCA(dimension=most, unit_length=unit_length).fit(data, setting)
    return epoch.embedder


def _kept_neighbors(space: Array, embeddings: Array) -> float:
    """Return the mean share of nearest neighbors that two embeddings have in common.

    The share is measured on evenly spaced images.
    """
    chosen = evenly_spaced(len(space), COMPARED)
    return neighbor_stability(some_rows(space, chosen), some_rows(embeddings, chosen),
                              min(COMPARED_NEIGHBORS, len(chosen) - 1))
