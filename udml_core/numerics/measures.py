"""Every measure that is shown: its name, its unit, what it measures, and which direction is better."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower", "neither"]
HIGHER: Better = "higher"
LOWER: Better = "lower"
NEITHER: Better = "neither"


@dataclass(frozen=True)
class Measure:
    """A measure of an embedding, of an epoch of training, or of what a run costs.

    Attributes:
        key: Its key in evaluations, curves and records.
        name: Its name on pages.
        help: One sentence: what it measures.
        better: Which values are better; `neither` for a count or a value that describes.
        unit: `%` for a percentage, another unit, or nothing.
        digits: Decimals of a value.
        axis: The title of a vertical axis, with the unit; the key if empty.
        plain: The name in words that need no paper; the name if empty.
    """

    key: str
    name: str
    help: str
    better: Better
    unit: str = ""
    digits: int = 1
    axis: str = ""
    plain: str = ""

    @property
    def is_percent(self) -> bool:
        """Whether the measure is a percentage."""
        return self.unit == "%"

    @property
    def title(self) -> str:
        """The name, with % for a percentage: the heading of a column of numbers."""
        return f"{self.name}, %" if self.is_percent else self.name

    @property
    def plain_title(self) -> str:
        """The plain words, and the name behind them: Whole group found · MAP@R."""
        return f"{self.plain} · {self.name}" if self.plain else self.name

    @property
    def plain_axis(self) -> str:
        """The plain words and the name, with % for a percentage: the title of an axis of numbers."""
        return f"{self.plain_title}, %" if self.is_percent else self.plain_title

    @property
    def sentence(self) -> str:
        """The plain words within a sentence, and the name behind them: whole group found (MAP@R)."""
        return f"{self.plain.lower()} ({self.name})" if self.plain else self.name

    @property
    def axis_title(self) -> str:
        """The title of a vertical axis."""
        return self.axis or self.key

    def text(self, value: float | None) -> str:
        """Format a value, such as 85.5 %; a dash if there is none."""
        if value is None or math.isnan(value):
            return "–"
        number = f"{round(value, self.digits) + 0.0:,.{self.digits}f}".replace("-", "−")  # + 0.0: no −0.0
        if self.is_percent and value < 100 <= round(value, self.digits):
            return f"> {100 - 10.0**-self.digits:.{self.digits}f} %"  # less than all is never 100 %
        return f"{number} %" if self.is_percent else number


_RIGHT, _WHOLE = "First result right", "Whole group found"
_RECALL = "Share of queries whose nearest image has the same class, a hit."
_MAP = "How well the ranking puts the R images of the query's class first: mean average precision at R."
_KNN = "Share of images that their 200 nearest training images, weighted by similarity, give the right class."
_RANK = ("A higher rank uses more directions of the embedding. It prefers wide embeddings, so compare equal "
         "dimensions.")
_SAMPLE, _VALIDATION = "on a sample of the test half", "Measured on labeled images{} of the training half that no run "\
                                                       "trains on."


def _recall(k: int) -> str:
    return _RECALL if k == 1 else f"Share of queries with an image of the same class among the {k} nearest images."


def _by_key(measures: Iterable[Measure]) -> dict[str, Measure]:
    return {measure.key: measure for measure in measures}


MEASURES = _by_key([
    *(Measure(f"recall@{k}", f"R@{k}", _recall(k), HIGHER, "%", plain=_RIGHT if k == 1 else "")
      for k in (1, 2, 4, 8, 10, 20, 50, 100, 1000)),
    *(Measure(f"gallery recall@{k}", f"R@{k}, queries to gallery", "Share of the official queries with an image of the "
              f"same class among the {k} nearest images of the official gallery.", HIGHER, "%")
      for k in (1, 10, 20, 30, 40, 50)),
    *(Measure(f"mprec@{k}", f"mprec@{k}", f"Share of an image's {k} nearest images that have its class, averaged over "
              "the images of a class, then over the classes.", HIGHER, "%") for k in range(1, 51)),
    Measure("map@r", "MAP@R", _MAP, HIGHER, "%", plain=_WHOLE),
    Measure("map@r left out", "Queries without MAP@R", "Number of queries that are the only image of their class.",
            NEITHER, digits=0),
    Measure("knn@200", "Weighted kNN, k = 200", _KNN, HIGHER, "%"),
    Measure("linear probe", "Linear probe", "Share of test images that a linear classifier, trained on the embeddings "
            "of the training half, gives the right class.", HIGHER, "%"),
    Measure("nmi", "NMI", "Normalized mutual information of the classes and as many clusters of k-means.", HIGHER, "%"),
    Measure("f", "Pairwise F", "Harmonic mean of precision and recall of the pairs of images that share a cluster of "
            "k-means.", HIGHER, "%"),
    Measure("precision", "Precision", "Share of the pairs of images in one cluster of k-means that share a class.",
            HIGHER, "%"),
    Measure("recall", "Recall", "Share of the pairs of images of one class that share a cluster of k-means.", HIGHER,
            "%"),
    Measure("purity", "Purity", "Share of images that have the most frequent class of their cluster.", HIGHER, "%"),
    Measure("trustworthiness", "Trustworthiness", "How rarely an image that is far in the frozen features becomes a "
            "neighbor in the embedding; 100 % if never.", HIGHER, "%"),
    Measure("continuity", "Continuity", "How rarely a neighbor in the frozen features becomes far in the embedding; "
            "100 % if never.", HIGHER, "%"),
    Measure("effective rank", "Effective rank", f"Of the test images; needs no labels. {_RANK}", HIGHER, "dimensions"),
    Measure("neighbors kept from frozen", "10 nearest neighbors kept from frozen features", "Share of an image's 10 "
            "nearest neighbors that are among its 10 nearest by the frozen features.", NEITHER, "%"),
    *(Measure(key, "Dimension", "Number of dimensions of the embedding.", NEITHER, digits=0)
      for key in ("dimension", "width")),
    Measure("queries", "Queries asked", "Number of test images that are queries; of many, a sample is asked.", NEITHER,
            digits=0),
    *(Measure(f"{key} margin", f"{name} ±", f"Half of the 95 % interval of {name}, because a sample of queries is "
              "asked.", NEITHER, "%") for key, name in (("recall@1", "R@1"), ("map@r", "MAP@R"))),
    Measure("images", "Images searched", "Number of images that are queries, and the gallery of the others.", NEITHER,
            digits=0),
    Measure("reciprocity", "Reciprocity", "Share of an image's 10 nearest neighbors that have the image among their "
            "own 10.", HIGHER, "%"),
    Measure("hubness", "Hubness", "Skewness of how often images are neighbors of others. A high value means hubs: a "
            "few images near very many.", LOWER, digits=2),
    Measure("neighbor stability", "Neighbors kept", "Share of the 10 nearest neighbors that were neighbors before the "
            "refinement.", NEITHER, "%"),
    Measure("seconds", "Seconds", "Time that passed.", LOWER, "s", 0),
    Measure("processor seconds", "Processor seconds", "Time of all processor cores together.", LOWER, "s"),
    Measure("MB", "Peak memory, MB", "Largest memory of the process.", LOWER, "MB"),
    Measure("lines", "Lines of code", "Lines of the method's own file without comments.", LOWER, digits=0)])
"""The measures of evaluations, refinements and records by key; percentages are stored as such."""

_OPINION = ("Mean cosine of an image and {}, in the features of an encoder that took no part, minus that of the frozen "
            "features; needs no labels.")
CURVES = _by_key([
    Measure("loss", "Mean loss", "Mean loss of the batches; its scale depends on the method.", LOWER),
    Measure("mean weight", "Mean weight of a triplet", "Mean weight that pseudo-labels give a triplet, between 0 and "
            "1.", NEITHER, axis="weight"),
    Measure("violating", "Share of violating triplets or pairs", "Share of triplets or pairs that violate the bound or "
            "the margin, so that the loss corrects them.", LOWER, "%", axis="share, %"),
    Measure("sample map@r", f"MAP@R {_SAMPLE}", _MAP, HIGHER, "%", axis="MAP@R, %",
            plain=_WHOLE),
    Measure("sample recall@1", f"R@1 {_SAMPLE}", _RECALL, HIGHER, "%", axis=f"{_RIGHT}, %", plain=_RIGHT),
    Measure("validation map@r", "Validation MAP@R", _VALIDATION.format(" or classes"), HIGHER, "%", axis="MAP@R, %"),
    Measure("validation recall@1", "Validation R@1", _VALIDATION.format(""), HIGHER, "%", axis="R@1, %"),
    Measure("given recall@1", "R@1 among the assigned labels", "Leave-one-out R@1 among the labels that you "
            "assigned.", HIGHER, "%", axis="R@1, %"),
    Measure("second opinion", "Whole group, second opinion", _OPINION.format("the images nearest to it"), HIGHER,
            digits=3, axis="cosine gain", plain="Whole group, judged"),
    Measure("second opinion first result", "First result, second opinion", _OPINION.format("the nearest image"), HIGHER,
            digits=3, axis="cosine gain", plain="First result, judged"),
    Measure("training second opinion", "Whole group of training images, second opinion", _OPINION.format(
        "the training images nearest to it"), HIGHER, digits=3, axis="cosine gain"),
    Measure("judged groups", "Whole group, judged after training", _OPINION.format("the searched images nearest to it"),
            HIGHER, digits=3, axis="cosine gain"),
    Measure("effective rank", "Effective rank", MEASURES["effective rank"].help, HIGHER, "dimensions",
            axis="rank, dimensions"),
    Measure("training effective rank", "Effective rank of training images", f"Of the training images; needs no labels. "
            f"{_RANK}", HIGHER, "dimensions", axis="rank, dimensions"),
    Measure("neighbor stability", "Neighbors kept since the last epoch", "Share of the 10 nearest neighbors that were "
            "neighbors after the epoch before.", NEITHER, "%", axis="share, %"),
    Measure("sample knn@200", f"Weighted kNN accuracy {_SAMPLE}", _KNN, HIGHER, "%", axis="accuracy, %"),
    Measure("positive similarity", "Mean cosine of two views of an image", "Near 1 if views of an image have near "
            "embeddings.", HIGHER, axis="cosine"),
    Measure("mean similarity", "Mean cosine of all pairs of views", "Near 0 if the embeddings are spread over the "
            "sphere, near 1 if they have collapsed.", LOWER, axis="cosine"),
    Measure("latent positive similarity", "Mean cosine of two views of an image, z", "Near 1 if views of an image have "
            "near latent embeddings z.", HIGHER, axis="cosine"),
    Measure("latent mean similarity", "Mean cosine of all pairs of views, z", "Near 0 if the latent embeddings z are "
            "spread over the sphere, near 1 if they have collapsed.", LOWER, axis="cosine"),
    Measure("log sigma", "Mean log σ", "Mean logarithm of the noise that PSLR adds to a latent embedding.", NEITHER,
            axis="log σ"),
    Measure("log normalizer", "log Z of NCE", "Logarithm of the constant that normalizes the scores of NCE.", NEITHER,
            axis="log Z"),
    Measure("mutual pairs", "Mutual pairs", "Number of pairs of training images that are neighbors of each other.",
            NEITHER, digits=0, axis="pairs"),
    Measure("proxy spread", "Mean distance between proxies", "Near 0 if all proxies are the same point.", NEITHER,
            axis="distance"),
    Measure("admitted", "Share of candidates admitted", "Share of a neighborhood's candidates that its linear test "
            "admits.", NEITHER, "%", axis="share, %"),
    Measure("accuracy", "Views classified correctly", "Share of views that the classifier gives the class or cluster "
            "of their image.", HIGHER, "%", axis="accuracy, %"),
    Measure("cluster stability", "NMI of the last two clusterings", "Near 1 if the clusters hardly change any more; −1 "
            "before the second clustering.", NEITHER, axis="NMI"),
    Measure("distance ratio", "Distance to other clusters / within a cluster", "Above 1 if images of other clusters "
            "are farther away than images of the same cluster.", HIGHER, axis="ratio"),
    Measure("anchors", "Share of images with a neighborhood", "Share of training images that form a neighborhood; the "
            "others are instances.", NEITHER, "%", axis="share, %"),
    Measure("teacher similarity", "Mean similarity of a batch to the teacher", "Mean similarity that the teacher gives "
            "two images of a batch.", NEITHER, axis="cosine"),
    Measure("point loss", "Point loss", "Loss of an image and its linear neighborhood.", LOWER),
    Measure("proxy loss", "Proxy loss", "Loss of an image and the proxies.", LOWER),
    Measure("neighborhood loss", "Neighborhood loss", "Loss of an image and its neighbors.", LOWER),
    Measure("regression loss", "Regression loss", "One minus the mean cosine of an embedding and its target.", LOWER),
    Measure("contrastive loss", "Contrastive loss", "Loss of the student against the teacher's similarities.", LOWER),
    Measure("distillation loss", "Distillation loss", "Loss of the narrow embedding against the wide one.", LOWER),
    Measure("latent loss", "Latent loss", "Instance discrimination of the latent embeddings z.", LOWER),
    Measure("reconstruction", "Reconstruction", "Loss of an embedding that is rebuilt from its noisy latent embedding.",
            LOWER),
    Measure("structure", "Structure", "Loss of the graph's edges under noise.", LOWER),
    Measure("divergence", "Divergence", "Divergence of the noisy latent embeddings from a standard normal "
            "distribution.", LOWER),
    Measure("similarity to the memory", "Similarity to the memory", "Mean cosine of an embedding and the stored "
            "embedding of its image.", HIGHER),
    Measure("positive distance", "Positive distance", "Mean squared distance of anchor and positive.", LOWER),
    Measure("negative distance", "Negative distance", "Mean squared distance of the negative to the middle of anchor "
            "and positive.", HIGHER),
    Measure("dissimilar weight", "Dissimilar weight", "Weight of dissimilar pairs that the metric was learned with.",
            NEITHER),
    Measure("metric rank", "Metric rank", "Number of directions in which the learned metric measures distances.",
            NEITHER, digits=0),
    Measure("prior rank", "Prior rank", "Number of directions in which the metric's prior measures distances.",
            NEITHER, digits=0)])
"""The curves of a run by key; percentages are stored as shares from 0 to 1."""

MAIN_MEASURES = (MEASURES["map@r"], MEASURES["recall@1"])
"""The measures that judge a run: of the whole ranking, and of the nearest image."""


def measure_of(key: str) -> Measure:
    """Return a measure of an evaluation or a record; one without an entry goes by its key."""
    return MEASURES.get(key) or _unlisted(key)


def curve_of(key: str) -> Measure:
    """Return a measure of a run's curves; one without an entry goes by its key."""
    return CURVES.get(key) or _unlisted(key)


def _unlisted(key: str) -> Measure:
    return Measure(key, key if "_" in key else key[:1].upper() + key[1:], "", NEITHER)
