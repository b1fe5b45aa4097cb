"""NML and its baselines at several widths, or a sweep of its bias and margin.

The paper's figures show the same widths.

    python -m experiments.pairs birds100 fashion-mini digits --seeds 3 --out assets/results/nml.json
    python -m experiments.pairs digits --dimensions 32 --variants --out assets/results/nml-digits-variants.json
    python -m experiments.pairs birds100 fashion-mini --sweep --dimensions 64 --out assets/results/nml-sweep.json

The measures are mprec@K for K up to 50 and R@1 on test images of classes seen in training. 15 % of each class of the
training half is held out for validation. Iterative methods keep the epoch with the best validation mprec@10, and stop
after `--patience` epochs without a better one. The learning rate is chosen the same way, for each data set and width,
with the first seed: the search starts at the method's default and moves along a grid while a neighbor is better.
`--variants` compares NML with random initial prototypes, and with batches of 10 pairs and of 1 (the paper's).
PCA is centered, and its embeddings are not normalized. The same command skips the rows that its record contains.
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

from experiments.recording import mean_and_deviation, provenance, record_parser, write_record
from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.data.encoders import DEFAULT_BACKBONE, Encoder, choose_spec
from udml_core.data.features import features_of
from udml_core.data.given.pair_sets import MOST_PAIRS, PairSet
from udml_core.data.splits import make_split
from udml_core.data.training_data import TrainingData, training_data
from udml_core.methods import Embedder, Method, Setting
from udml_core.methods.closed_form import PCA, Frozen
from udml_core.methods.ml_kml import KML, ML
from udml_core.methods.nca_lmnn import LMNN, NCA
from udml_core.methods.nml import NML
from udml_core.numerics.evaluation import mean_precision_at_k, recall_at_k
from udml_core.numerics.sampling import generator, label_pairs

DEPTHS = (1, 2, 5, 10, 20, 30, 40, 50)
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
FEW_ITERATIONS = 5
"""L-BFGS iterations of the row that stops LMNN early."""
BIASES, MARGINS = (0.02, 0.05, 0.1, 0.2, 0.5), (0.005, 0.01, 0.02, 0.05, 0.1)


def main() -> None:
    parser = record_parser(__doc__)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--dimensions", type=int, nargs="+", default=[8, 16, 32, 64, 128],
                        help="widths of the embedding")
    parser.add_argument("--epochs", type=int, default=300, help="largest number of epochs")
    parser.add_argument("--patience", type=int, default=20, help="epochs without a better validation score before the "
                                                                 "training stops")
    parser.add_argument("--variants", action="store_true", help="only NML: batches of 1, 10 and 100 pairs, and random "
                                                                "initial prototypes")
    parser.add_argument("--sweep", action="store_true", help="sweep NML's bias and margin instead of comparing methods")
    parser.add_argument("--without", nargs="+", default=[], help="methods to leave out, such as KML, whose cost grows "
                                                                 "with the number of images")
    options = parser.parse_args()
    results = read_results(options.out, provenance("pairs")["command"])
    for name in options.datasets:
        data = ExperimentData(name, options.patience)
        rows: dict[str, Any] = results.get(data.title, {}).get("rows", {})
        for title, method in candidates(options, data.features.shape[1]):
            if title.split()[0] in options.without or title in rows:
                continue
            # Other batches have the learning rate of batches of 100: it is a rate for each pair, and a search is slow.
            rate = rows[title.split(",")[0]]["fields"]["learning_rate"] if "batch=" in title else None
            tuned = (method if options.sweep else data.tune(method) if rate is None
                     else method.model_copy(update={"learning_rate": rate}))
            runs = [data.measure(tuned, seed) for seed in range(options.seeds)]
            rows[title] = {"fields": tuned.model_dump()} | {
                measure: mean_and_deviation([run[measure] for run in runs]) for measure in runs[0]}
            print(f"{name:14} {title:24} " + "  ".join(f"{key} {rows[title][key][0]:.1f} ±{rows[title][key][1]:.1f}"
                                                       for key in ("mprec@10", "recall@1", "seconds")), flush=True)
            results[data.title] = {"encoder": data.encoder.spec.key, "rows": rows}
            record = provenance("pairs") | {
                "protocol": "classes seen in training; percent; [mean, standard deviation] over the seeds; epochs "
                            "and learning rates selected by mprec@10 on 15 % of the training half, held out; "
                            f"stopped after {options.patience} epochs without a better one",
                "datasets": results}
            write_record(options.out, record)


def read_results(path: Path, command: str) -> dict[str, Any]:
    """Return the finished rows of the same command, by data set."""
    if not path.exists():
        return {}
    record = json.loads(path.read_text(encoding="utf-8"))
    return dict(record["datasets"]) if record["command"] == command else {}


def candidates(options: argparse.Namespace, features: int) -> Iterator[tuple[str, Method]]:
    """Yield the rows of the table with their methods.

    A sweep is a grid at the default learning rate.

    Args:
        options: The command's options.
        features: Number D of features.
    """
    dimensions, epochs = options.dimensions, options.epochs
    if options.variants:
        for width in dimensions:
            yield f"NML d={width}", NML(dimension=width, epochs=epochs)
            yield f"NML d={width}, random start", NML(dimension=width, epochs=epochs, beginning="random")
            for batch in (10, 1):
                yield f"NML d={width}, batch={batch}", NML(dimension=width, epochs=epochs, batch=batch)
        return
    if options.sweep:
        for width, bias, margin in product(dimensions, BIASES, MARGINS):
            if margin <= bias:
                yield f"b = {bias}, m = {margin}" + f", d={width}" * (len(dimensions) > 1), NML(
                    dimension=width, epochs=epochs, bias=bias, margin=margin)
        return
    yield "no projection", Frozen()
    for width in dimensions:
        if width > features:
            yield f"NML d={width}", NML(dimension=width, epochs=epochs)  # only NML may be wider than the features
            continue
        yield f"PCA d={width}", PCA(dimension=width, unit_length=False)  # the textbook's PCA keeps lengths
        yield f"NML d={width}", NML(dimension=width, epochs=epochs)
        yield f"ML d={width}", ML(dimension=width, epochs=epochs)
        yield f"KML d={width}", KML(dimension=width, epochs=epochs)
        yield f"NCA d={width}", NCA(dimension=width)
        yield f"LMNN(s) d={width}", LMNN(dimension=width, variant="square")
        yield f"LMNN(r) d={width}", LMNN(dimension=width)
        yield f"LMNN(r) d={width}, {FEW_ITERATIONS} iterations", LMNN(dimension=width, iterations=FEW_ITERATIONS)


class ExperimentData:
    """A data set with its frozen features.

    Attributes:
        patience: Epochs without a better validation score before the training stops.
    """

    def __init__(self, name: str, patience: int) -> None:
        self.patience = patience
        self.dataset = catalog.load(name)
        self.title = self.dataset.title
        backbone = "pixels" if name == "digits" else DEFAULT_BACKBONE
        self.encoder = Encoder(choose_spec(backbone, self.dataset.native_size, self.dataset.gray))
        self.features = np.array(features_of(self.dataset, self.encoder))

    def tune(self, method: Method) -> Method:
        """Return the method with the learning rate that is best on the held-out images.

        The search climbs: it compares a rate with both its neighbors in the grid and moves to the better one.
        """
        fields = method.model_dump()
        if "learning_rate" not in fields:
            return method
        best = min(range(len(RATES)), key=lambda index: abs(np.log(RATES[index] / fields["learning_rate"])))
        scores: dict[int, float] = {}
        while True:
            near = range(max(best - 1, 0), min(best + 2, len(RATES)))
            for index in near:
                if index not in scores:
                    variant = method.model_copy(update={"learning_rate": RATES[index]})
                    scores[index] = self.measure(variant, 0)["validation"]
            if scores[best] >= max(scores[index] for index in near):
                return method.model_copy(update={"learning_rate": RATES[best]})
            best = max(near, key=scores.__getitem__)

    def measure(self, method: Method, seed: int) -> dict[str, float]:
        """Train, keep the best epoch on the held-out images, and evaluate it.

        The evaluation is on the test half.

        Returns:
            mprec@K, R@1 and the validation score in percent, the epoch that was kept, and the seconds of training.
        """
        labels = self.dataset.labels
        assert labels is not None
        split = make_split(self.dataset, "seen", "validation", seed)
        began, best, kept, kept_epoch = time.monotonic(), -1.0, None, 0
        setting = Setting(seed, torch.device("cpu"), self.encoder)
        for epoch in method.fit(self._training_data(method, split.train, seed), setting):
            score = self._precision(epoch.embedder, split.validation)[10]
            if score > best:
                best, kept, kept_epoch = score, epoch.embedder, epoch.number
            elif epoch.number >= kept_epoch + self.patience:
                break
        seconds = time.monotonic() - began
        assert kept is not None
        recall = recall_at_k(kept.embed_features(self.features[split.test]), labels[split.test], (1,))[1]
        return {f"mprec@{k}": 100 * value for k, value in self._precision(kept, split.test).items()} | {
            "recall@1": 100 * recall, "validation": 100 * best, "epoch": kept_epoch, "seconds": seconds}

    def _precision(self, embedder: Embedder, images: Array) -> dict[int, float]:
        assert self.dataset.labels is not None
        return mean_precision_at_k(embedder.embed_features(self.features[images]), self.dataset.labels[images], DEPTHS)

    def _training_data(self, method: Method, train: Array, seed: int) -> TrainingData:
        assert self.dataset.labels is not None
        drawn = label_pairs(torch.from_numpy(self.dataset.labels[train]), MOST_PAIRS, generator(seed, 0))
        return training_data(self.features, self.dataset.labels, train, method.card.supervision,
                             pairs=PairSet(*(part.numpy() for part in drawn)))


if __name__ == "__main__":
    main()
