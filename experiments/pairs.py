"""NML beside its baselines at several widths, as in the figures of its paper; or a sweep of its bias and margin.

    python -m experiments.pairs birds100 fashion-mini digits --seeds 3 --out assets/results/nml.json
    python -m experiments.pairs birds100 fashion-mini --sweep --dimensions 64 --out assets/results/nml-sweep.json

mprec@K for K up to 50 and R@1 on the test images of classes that were seen in training. Of the methods that go by
epochs, the epoch is kept that is best (mprec@10) on 15 % of each class of the training images, which no method sees;
so is, for each data set and width with the first seed, their learning rate among three.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.zero_shot import made_by, spread
from udml_core.arrays import Array
from udml_core.backbones import Encoder, choose_spec
from udml_core.data import catalog
from udml_core.data.features import features_of
from udml_core.data.given.pairs import MOST_PAIRS, PairSet
from udml_core.data.splits import make_split
from udml_core.data.training import TrainingData, training_data
from udml_core.evaluation import mean_precision_at_k, recall_at_k
from udml_core.files import jsonable
from udml_core.methods import KML, LMNN, ML, NCA, NML, PCA, Embedder, Frozen, Method, Setting
from udml_core.sampling import generator, label_pairs

DEPTHS = (1, 2, 5, 10, 20, 30, 40, 50)
RATES = {"nml": (0.1, 0.3, 1.0), "ml": (0.003, 0.01, 0.03), "kml": (0.003, 0.01, 0.03)}
BIASES, MARGINS = (0.02, 0.05, 0.1, 0.2, 0.5), (0.005, 0.01, 0.02, 0.05, 0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[8, 16, 32, 64, 128])
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--sweep", action="store_true", help="Bias and margin of NML in place of the methods.")
    parser.add_argument("--without", nargs="+", default=[], help="methods to leave out, such as KML, whose steps grow "
                                                                 "with the images")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    found: dict[str, Any] = {}
    for name in given.datasets:
        given_data = Given(name)
        rows: dict[str, Any] = {}
        for title, method in candidates(given.dimensions, given_data.features.shape[1], given.epochs,
                                        given.sweep):
            if title.split()[0] in given.without:
                continue
            tuned = method if given.sweep else given_data.tuned(method)
            runs = [given_data.measured(tuned, seed) for seed in range(given.seeds)]
            rows[title] = {"fields": tuned.model_dump()} | {
                measure: spread([one[measure] for one in runs]) for measure in runs[0]}
            print(f"{name:14} {title:24} " + "  ".join(f"{key} {rows[title][key][0]:.1f} ±{rows[title][key][1]:.1f}"
                                                       for key in ("mprec@10", "recall@1", "seconds")), flush=True)
            found[given_data.title] = {"encoder": given_data.encoder.spec.key, "rows": rows}
            record = made_by("pairs") | {
                "protocol": "classes seen in training; percent; [mean, standard deviation] over the seeds; epochs "
                            "and learning rates selected by mprec@10 on 15 % of the training images, held out",
                "datasets": found}
            given.out.write_text(json.dumps(jsonable(record), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def candidates(dimensions: list[int], features: int, epochs: int, sweep: bool) -> Iterator[tuple[str, Method]]:
    """Rows of the table and the methods that make them; a sweep is a grid, at the usual learning rate."""
    if sweep:
        for width, bias, margin in product(dimensions, BIASES, MARGINS):
            if margin <= bias:
                yield f"b = {bias}, m = {margin}" + f", d={width}" * (len(dimensions) > 1), NML(
                    dimension=width, epochs=epochs, bias=bias, margin=margin)
        return
    yield "no projection", Frozen()
    for width in dimensions:
        if width > features:
            yield f"NML d={width}", NML(dimension=width, epochs=epochs)  # alone in that it may be wider
            continue
        yield f"PCA d={width}", PCA(dimension=width)
        yield f"NML d={width}", NML(dimension=width, epochs=epochs)
        yield f"ML d={width}", ML(dimension=width, epochs=epochs)
        yield f"KML d={width}", KML(dimension=width, epochs=epochs)
        yield f"NCA d={width}", NCA(dimension=width)
        yield f"LMNN(s) d={width}", LMNN(dimension=width, variant="square")
        yield f"LMNN(r) d={width}", LMNN(dimension=width)


class Given:
    """A data set's frozen features and its halves."""

    def __init__(self, name: str) -> None:
        self.dataset = catalog.load(name)
        self.title = self.dataset.title
        backbone = "pixels" if name == "digits" else "efficientnet-lite0"
        self.encoder = Encoder(choose_spec(backbone, self.dataset.native_size, self.dataset.gray))
        self.features = np.array(features_of(self.dataset, self.encoder))

    def tuned(self, method: Method) -> Method:
        """The method with the learning rate, of those that are tried, that is best on the held-out images."""
        tried = [method.model_copy(update={"learning_rate": rate}) for rate in RATES.get(method.card.name, ())]
        return max(tried, key=lambda one: self.measured(one, 0)["validation"]) if tried else method

    def measured(self, method: Method, seed: int) -> dict[str, float]:
        """Percent on the test half, of the epoch that is best on the held-out images; and the seconds of training."""
        labels = self.dataset.labels
        assert labels is not None
        split = make_split(self.dataset, "seen", "validation", seed)
        began, best, kept, at = time.monotonic(), -1.0, None, 0
        for epoch in method.fit(self._data(method, split.train, seed), Setting(seed, torch.device("cpu"),
                                                                              self.encoder)):
            score = self._precision(epoch.embedder, split.validation)[10]
            if score > best:
                best, kept, at = score, epoch.embedder, epoch.number
        seconds = time.monotonic() - began
        assert kept is not None
        recall = recall_at_k(kept.embed_features(self.features[split.test]), labels[split.test], (1,))[1]
        return {f"mprec@{k}": 100 * value for k, value in self._precision(kept, split.test).items()} | {
            "recall@1": 100 * recall, "validation": 100 * best, "epoch": at, "seconds": seconds}

    def _precision(self, embedder: Embedder, images: Array) -> dict[int, float]:
        assert self.dataset.labels is not None
        return mean_precision_at_k(embedder.embed_features(self.features[images]), self.dataset.labels[images], DEPTHS)

    def _data(self, method: Method, train: Array, seed: int) -> TrainingData:
        assert self.dataset.labels is not None
        drawn = label_pairs(torch.from_numpy(self.dataset.labels[train]), MOST_PAIRS, generator(seed, 0))
        return training_data(self.features, self.dataset.labels, train, method.card.supervision,
                             pairs=PairSet(*(one.numpy() for one in drawn)))


if __name__ == "__main__":
    main()
