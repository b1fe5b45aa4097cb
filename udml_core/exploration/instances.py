"""Instance discrimination around one image.

The module covers class similarities, the softmax over instances, views and uncertainty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import logsumexp

from udml_core.base.arrays import Array
from udml_core.data.augmentation import Augmentation
from udml_core.numerics.losses.instance_discrimination import latent
from udml_core.numerics.refinement.linear import unit_rows

NEAREST = 5
"""Number of nearest images of the same class, and of other classes, whose similarity is compared (PSLR Fig. 6)."""
BINS = 40
TAIL = 0.05
"""Share of the similarities that may lie below a histogram's axis; the first bar includes them."""


def latent_rows(embedding: Array, weight: Array) -> Array:
    """Return z = unit(ReLU(x · weight)), (n, l) float32.

    The embeddings x are (n, l), the weight is (l, l).
    """
    rows = torch.from_numpy(np.array(embedding, dtype=np.float32))
    return latent(rows, torch.from_numpy(np.asarray(weight, dtype=np.float32))).numpy()


@dataclass(frozen=True)
class Similarities:
    """Cosines of images to their nearest images.

    Attributes:
        positive: (p,) cosines to the nearest images of the same class.
        negative: (q,) cosines to the nearest images of other classes.
    """

    positive: Array
    negative: Array

    @property
    def auc(self) -> float:
        """The share of (positive, negative) pairs whose positive is larger.

        It is NaN if either side is empty. Ties count as half.
        """
        if not (len(self.positive) and len(self.negative)):
            return float("nan")
        ordered = np.sort(self.negative)
        below = [np.searchsorted(ordered, self.positive, side) for side in ("left", "right")]
        return float(np.mean(below) / len(ordered))

    def shares(self, edges: Array) -> Array:
        """Return histograms in percent of the positives and of the negatives.

        Args:
            edges: (b + 1,) bin edges; the first bin includes everything below it.

        Returns:
            (2, b) percentages.
        """
        return np.stack([100 * np.histogram(cosines.clip(edges[0], edges[-1]), edges)[0] / max(1, len(cosines))
                         for cosines in (self.positive, self.negative)])


def pair_similarities(embedding: Array, own: Array, k: int = NEAREST) -> Similarities:
    """Compute each image's cosines to its k nearest images by class.

    Images of the same class and images of other classes are ranked separately.

    Args:
        embedding: (n, l) of up to a few thousand images.
        own: (n, n) bool, which images count as the same class as a row's image.
        k: Number of nearest images on each side; fewer if there are not enough.
    """
    rows, same = torch.from_numpy(unit_rows(embedding)), torch.from_numpy(own)
    cosine = (rows @ rows.mT).fill_diagonal_(-torch.inf)
    return Similarities(*(_largest(cosine.masked_fill(hidden, -torch.inf), k) for hidden in (~same, same)))


def _largest(values: torch.Tensor, k: int) -> Array:
    """Return the k largest finite values of each row (n, m) in one flat array."""
    top = values.topk(min(k, values.shape[1]), dim=1).values
    return top[top.isfinite()].numpy()


def same_class(labels: Array) -> Array:
    """Return which pairs of images share a label (n,), as (n, n) bool."""
    return np.asarray(labels)[:, None] == labels


def nearest_mask(embedding: Array, k: int = NEAREST) -> Array:
    """Return which images are among the k nearest of each row by cosine, (n, n) bool.

    The mask replaces the classes of data sets that have none.
    """
    rows = unit_rows(embedding)
    cosine = rows @ rows.T
    np.fill_diagonal(cosine, -np.inf)
    is_nearest = np.zeros(cosine.shape, dtype=bool)
    np.put_along_axis(is_nearest, np.argsort(-cosine, axis=1, kind="stable")[:, : min(k, len(rows) - 1)], True, axis=1)
    return is_nearest


def common_edges(compared: list[Similarities]) -> Array:
    """Return common bin edges (41,) for several histograms.

    The last edge is 1; the first is a multiple of 0.05 that 95 % of the cosines exceed.
    """
    lowest = min((float(np.quantile(cosines, TAIL)) for similar in compared
                  for cosines in (similar.positive, similar.negative) if len(cosines)), default=0.0)
    return np.linspace(min(0.95, np.floor(20 * lowest) / 20), 1, BINS + 1)


@dataclass(frozen=True)
class RankedImages:
    """The images that an image is discriminated from, nearest first.

    Attributes:
        indices: (c,) data set indices.
        cosines: (c,) cosines to the image.
    """

    indices: Array
    cosines: Array


def rank_others(embedding: Array, index: int, among: Array) -> RankedImages:
    """Rank images by their cosine to an image.

    Args:
        embedding: (n, l) embedding of all images.
        index: The image; it is excluded from the ranking.
        among: (c,) data set indices of the images to rank.
    """
    positions = np.setdiff1d(among, index)
    cosines = unit_rows(embedding[positions]) @ unit_rows(embedding[index][None])[0]
    order = np.argsort(-cosines, kind="stable")
    return RankedImages(positions[order], cosines[order])


def draw_batch(half: Array, index: int, size: int, seed: int) -> Array:
    """Draw a batch as in training: the image and size − 1 others.

    Args:
        half: (n,) data set indices to draw from.
        index: The image.
        size: Batch size.
        seed: Seed of the draw.

    Returns:
        (size,) data set indices, ascending; fewer if the half is smaller.
    """
    rest = np.setdiff1d(half, index)
    drawn = np.random.default_rng(seed).permutation(rest)[: max(1, size - 1)]
    return np.sort(np.append(drawn, index))


@dataclass(frozen=True)
class Softmax:
    """Shares of the denominator D = e^{s/τ} + η Σ_k e^{s_k/τ} (PSLR eq. 3–4).

    Together they sum to 1.

    Attributes:
        own: Share of the image's other view, which is the probability of a correct match.
        shares: (c,) shares of the other images; a share divided by η is the image's probability.
        competitors: Effective number of competitors, e to the entropy of the others' normalized shares.
    """

    own: float
    shares: Array
    competitors: float


def softmax(cosines: Array, own: float, temperature: float, eta: float) -> Softmax:
    """Compute the adaptable softmax of an image's other view against other images.

    Args:
        cosines: (c,) cosines s_k of the other images.
        own: Cosine s of the image's two views.
        temperature: τ > 0.
        eta: η ≥ 1.
    """
    logits = np.asarray(cosines, dtype=np.float64) / temperature
    log_denominator = np.logaddexp(own / temperature, np.log(eta) + logsumexp(logits))
    normalized = np.exp(logits - logsumexp(logits))
    entropy = -(normalized * np.log(normalized, where=normalized > 0, out=np.zeros_like(normalized))).sum()
    return Softmax(float(np.exp(own / temperature - log_denominator)),
                   np.exp(np.log(eta) + logits - log_denominator), float(np.exp(entropy)))


def view_cosine(pair: Array) -> float:
    """Return the cosine of two rows (2, l)."""
    first, second = unit_rows(pair)
    return float(first @ second)


def two_views(pixels: Array, augmentation: Augmentation, seed: int) -> Array:
    """Draw two random views (2, c, s, s) uint8 of a prepared image (c, s, s) uint8."""
    pair = torch.from_numpy(np.ascontiguousarray(pixels)).expand(2, *pixels.shape)
    views = augmentation(pair, torch.Generator().manual_seed(seed))
    return views.round().clamp(0, 255).to(torch.uint8).numpy()


def uncertainty_extremes(sigma: Array, count: int) -> tuple[Array, Array]:
    """Return the rows with the smallest and with the largest uncertainty.

    Args:
        sigma: (n,) uncertainty σ of each image.
        count: Maximum number of rows on each side.

    Returns:
        Rows by ascending σ, and rows by descending σ.
    """
    order = np.argsort(sigma, kind="stable")
    return order[:count], order[::-1][:count]
