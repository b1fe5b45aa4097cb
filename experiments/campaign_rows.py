"""The rows of the campaign, in order of importance.

A table is a record of rows METHOD FIELD=VALUE … @OPTION=VALUE on one data set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class PlannedRow:
    """A row to measure.

    Attributes:
        record: File name of its record without `.json`.
        dataset: Name of the data set.
        name: Title of the row.
        row: METHOD FIELD=VALUE … @OPTION=VALUE.
        seconds: Expected time of one seed, without the features: on a GPU for rows of `GPU`, else on two CPU cores.
        seeds: Number of seeds.
        per_class: Number of training images of every class; None for all images.
        printed: The paper's figures by measure.
    """

    record: str
    dataset: str
    name: str
    row: str
    seconds: float
    seeds: int = 3
    per_class: int | None = None
    printed: Mapping[str, float] = field(default_factory=dict)


def table(record: str, dataset: str, rows: Mapping[str, tuple[str, float]], common: str = "", seeds: int = 3,
          per_class: int | None = None, printed: Mapping[str, Mapping[str, float]] | None = None, longer: float = 1.0,
          ) -> tuple[PlannedRow, ...]:
    """Return the rows of a record.

    Args:
        record: File name without `.json`.
        dataset: Name of the data set.
        rows: By title, the row and the expected seconds of one seed.
        common: Fields and options of every row.
        seeds: Number of seeds.
        per_class: Number of training images of every class; None for all images.
        printed: The paper's figures, by title and measure.
        longer: Factor of the expected seconds.
    """
    return tuple(PlannedRow(record, dataset, name, f"{row} {common}".strip(), longer * seconds, seeds, per_class,
                         (printed or {}).get(name, {})) for name, (row, seconds) in rows.items())


HEADS = {
    "RPML": ("rpml", 60), "RPML, unit length": ("rpml unit_length=true", 60),
    "RPML, start PCA": ("rpml beginning=pca", 50), "RPML, α = 15°": ("rpml alpha=15.0", 60),
    "PLM": ("plm", 160), "PLM, through the origin": ("plm through=origin", 160), "PSLR": ("pslr", 25),
    "PSLR, no divergence": ("pslr divergence=false", 20),
    "PSLR, scale of 0.2": ("pslr scale=mixed first_log_sigma=-3.0", 25),
    "ISIF": ("isif", 20),
    "ISIF, one-sided": ("isif one_sided=true", 20), "NCE": ("nce", 20), "NPSoftmax": ("nce softmax=full", 20),
    "Whitening": ("whiten", 25)}
"""Linear heads without labels, on frozen features."""

ABLATION = {
    f"{name}, {reading}": (f"plm through={through}{fields}", 65)
    for through, reading in (("origin", "through the origin"), ("point", "through the point"))
    for name, fields in (("Full", ""), ("No admission", " admission=false"),
                         ("Binary similarity", " similarity=binary"),
                         ("Both", " admission=false similarity=binary"))}
"""PLM's table 3 under both readings of the admission rule."""

LAST = {
    "Learning rate 0": ("isif trains=last epochs=1 learning_rate=0.0 batch_norm=frozen", 150),
    "Learning rate 0, batch statistics": ("isif trains=last epochs=1 learning_rate=0.0 batch_norm=batch", 150),
    "ISIF": ("isif trains=last epochs=2 batch_norm=frozen learning_rate=0.0001", 250),
    "PLM": ("plm trains=last epochs=2 batch_norm=frozen learning_rate=0.00001", 350),
    "Distilled refinement": ("distill", 250), "sRPML, all blocks": ("srpml epochs=3", 450)}
"""The encoder: its last blocks on cached activations, or all blocks."""

COMPARED = {
    "PCA": ("pca", 10), "ISIF": ("isif", 15), "Exemplar": ("exemplar", 15), "DeepCluster": ("deepcluster", 20),
    "RotNet": ("rotnet", 25), "SimCLR": ("simclr", 20), "SupCon, all labels": ("supcon", 20)}
"""Methods that the papers' tables compare with, and the modern pair, as heads beside ISIF."""

COMPARED_LAST = {
    name: (f"{row} trains=last epochs=2 batch_norm=frozen learning_rate=0.0001", seconds)
    for name, row, seconds in (
        ("Exemplar", "exemplar", 200), ("DeepCluster", "deepcluster", 200), ("RotNet", "rotnet", 400),
        ("SimCLR", "simclr", 250), ("SupCon, all labels", "supcon", 250))}

MINED = {
    "AND": ("and", 20), "MOM": ("mom", 40), "STML": ("stml", 40), "UHML-like hierarchy": ("uhml", 40)}
"""Methods of the papers' tables that learn from neighborhoods, mined triplets, a teacher and hierarchical clusters."""

MINED_LAST = {name: (f"{row} trains=last epochs=2 batch_norm=frozen learning_rate={rate}", seconds)
              for name, row, rate, seconds in (("AND", "and", 0.0001, 200), ("MOM", "mom", 0.0001, 400),
                                               ("STML", "stml", 0.00001, 350),
                                               ("UHML-like hierarchy", "uhml", 0.0001, 200))}
"""The same with the encoder's last blocks, as ISIF in `LAST`."""

LAST_LONG = {
    "ISIF, 20 epochs": ("isif trains=last epochs=20 batch_norm=frozen learning_rate=0.0001", 750),
    "PLM, 20 epochs": ("plm trains=last epochs=20 batch_norm=frozen learning_rate=0.00001", 950),
    "Distilled refinement, 20 epochs": ("distill epochs=20", 600)}
"""The same rates for as many epochs as `ALL`."""

ALL = {
    "Learning rate 0": ("plm trains=all batch_norm=frozen epochs=1 learning_rate=0.0", 120),
    "Learning rate 0, batch statistics": ("plm trains=all batch_norm=batch epochs=1 learning_rate=0.0", 120),
    "PLM, batch statistics": ("plm trains=all batch_norm=batch epochs=20", 1200),
    "PLM": ("plm trains=all batch_norm=frozen epochs=20", 1200),
    "ISIF": ("isif trains=all batch_norm=frozen epochs=20 learning_rate=0.0001", 1000),
    "sRPML": ("srpml batch_norm=frozen epochs=20", 1200),
    "PLM, SqueezeNet": ("plm trains=all epochs=20 @backbone=squeezenet", 1200)}
"""Every block of the encoder on small images, twenty epochs. SqueezeNet has no batch normalization."""

RATES = {
    f"{title}, rate {rate:g}, {statistics} statistics":
        (f"{method} trains=all epochs=20 batch_norm={statistics} learning_rate={rate}", 30)
    for title, method, rates in (("ISIF", "isif", (0.0001, 0.001, 0.01, 0.03)),
                                 ("PLM", "plm", (1e-6, 1e-5, 1e-4, 1e-3)), ("STML", "stml", (1e-6, 1e-5, 1e-4, 1e-3)),
                                 ("SupCon, all labels", "supcon", (0.0001, 0.001, 0.01, 0.03)))
    for rate in rates for statistics in ("frozen", "batch")}
"""Why methods fall below their start: rates and statistics, with true labels as the control."""

LOW_DIMENSION = {
    f"RPML, {width} dimensions, α = {alpha}°": (f"rpml dimension={width} alpha={alpha}.0", 12)
    for width in (4, 8, 16) for alpha in (15, 30, 45)}
"""Where the bound acts: few dimensions, smaller angles."""

CURVES = {"NCE": ("nce", 130), "NCE, Z of each batch": ("nce normalizer_memory=0.0", 130),
          "PSLR": ("pslr", 320), "ISIF": ("isif", 230)}
"""PSLR's table 1, from scratch."""
CURVES_PRINTED = {"PSLR": {"knn@200": 85.2}, "ISIF": {"knn@200": 83.6}, "NCE": {"knn@200": 80.4}}

FEW_LABELS = {"SSDML": ("ssdml", 240), "SSDML, mean loss": ("ssdml scale=mean", 240), "Deep-LRML": ("lrml", 70),
              "Deep-SERAPH": ("seraph", 80), "Deep-ISDML": ("isdml", 70), "Deep-APLLR": ("apllr", 70),
              "Deep-APIT": ("apit", 150), "Triplet": ("triplet", 40), "Angular": ("angular", 40)}
"""SSDML's tables 1 and 5."""

RATE_ZERO = {"SSDML, encoder's rate 0": ("ssdml scale=mean learning_rate=0.0", 240),
             "Triplet, learning rate 0": ("triplet learning_rate=0.0", 40)}
"""The encoder as it starts: SSDML learns the projection only, the triplet loss nothing."""

PAIRS = {"NML": ("nml", 130), "ML": ("ml", 45), "NCA": ("nca", 70), "LMNN(s)": ("lmnn variant=square", 35),
         "LMNN(r)": ("lmnn", 35), "PCA": ("pca unit_length=false", 10)}
"""NML's figures at 32 dimensions."""

CPU: tuple[PlannedRow, ...] = (
    *table("birds100-heads", "birds100", HEADS, "@size=112"),
    *table("digits-low-dimension", "digits", LOW_DIMENSION, "@backbone=pixels @split=seen"),
    *table("birds100-last", "birds100", LAST, "@size=112", seeds=3),
    *table("birds100-last", "birds100", COMPARED_LAST, "@size=112", seeds=3),
    *table("digits-compared", "digits", COMPARED, "dimension=32 @backbone=pixels"),
    *table("birds100-last", "birds100", LAST_LONG, "@size=112", seeds=1),
    *table("fashion-mini-heads", "fashion-mini", HEADS),
    *table("fashion-mini-heads", "fashion-mini", MINED),
    *table("birds100-last", "birds100", MINED_LAST, "@size=112"),
    *table("digits-compared", "digits", MINED, "dimension=32 @backbone=pixels"),
    *table("birds100-all", "birds100", ALL, "@size=64", seeds=1),
    *table("birds100-plm-ablation", "birds100", ABLATION, "@size=112"),
    *table("cifar10-curves-cnn", "cifar10", CURVES, "epochs=10 @preset=paper @backbone=cnn", seeds=1, per_class=500,
           printed=CURVES_PRINTED),
    *table("fashion-mini-ssdml", "fashion-mini", FEW_LABELS, "epochs=5 @preset=paper"),
    *table("digits-pairs", "digits", PAIRS, "dimension=32 @backbone=pixels @split=seen @select=validation"),
    *table("birds100-pairs", "birds100", PAIRS, "dimension=32 @size=112 @split=seen @select=validation"),
    *table("fashion-mini-pairs", "fashion-mini", PAIRS, "dimension=32 @split=seen @select=validation"),
    *table("digits-ssdml", "digits", FEW_LABELS | RATE_ZERO, "epochs=20 @preset=paper", longer=4),
)
"""Small tables for two cores."""

GPU: tuple[PlannedRow, ...] = (
    *table("birds100-paper", "birds100",
           {"PLM": ("plm", 1200), "ISIF": ("isif", 900), "PSLR": ("pslr", 900), "NCE": ("nce", 500),
            "sRPML": ("srpml", 900), "RPML": ("rpml", 60), "SSDML": ("ssdml", 9000)}, "@preset=paper", seeds=1),
    *table("cifar10-paper", "cifar10", {"PSLR": ("pslr", 3000), "ISIF": ("isif", 3000), "NCE": ("nce", 1500)},
           "@preset=paper", seeds=1, printed=CURVES_PRINTED),
    *table("fashion-mnist-paper", "fashion-mnist", FEW_LABELS, "@preset=paper", seeds=1, longer=10),
    *table("mnist-t10k-paper", "mnist-t10k", FEW_LABELS, "@preset=paper", seeds=1, longer=10),
    *table("birds100-rates", "birds100", RATES, "@size=112", seeds=1),
)
"""The papers' own settings, then why methods fall. The seconds are rough: the pace of finished rows corrects them."""
