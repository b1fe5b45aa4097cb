"""An image among all others: how near its own kind is against the rest, the softmax that tells it from them, its random
views, and how certain its place is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import logsumexp

from udml_core.arrays import Array
from udml_core.data.augmentation import Augmentation
from udml_core.losses.instance_discrimination import latent

NEAREST = 5
"""Of its own kind and of the others, to which an image's similarity counts (PSLR Fig. 6)."""
BINS = 40
TAIL = 0.005
"""Of the similarities, how many may lie below a picture's axis; they are counted with its first bar."""


def latent_rows(embedding: Array, weight: Array) -> Array:
    """z = unit(ReLU(x · weight)) of embeddings x (n, l), (n, l) float32; weight (l, l)."""
    rows = torch.from_numpy(np.array(embedding, dtype=np.float32))
    return latent(rows, torch.from_numpy(np.asarray(weight, dtype=np.float32))).numpy()


@dataclass(frozen=True)
class Similarities:
    """Cosines of images to the nearest of their own kind, (p,), and to the nearest of all others, (q,)."""

    positive: Array
    negative: Array

    @property
    def auc(self) -> float:
        """The share of all (positive, negative) in which the positive is larger, ties by half; NaN without one of them.
        """
        if not (len(self.positive) and len(self.negative)):
            return float("nan")
        ordered = np.sort(self.negative)
        below = [np.searchsorted(ordered, self.positive, side) for side in ("left", "right")]
        return float(np.mean(below) / len(ordered))

    def shares(self, edges: Array) -> Array:
        """Of the positives and of the negatives, the percentage between each edge (b + 1,) and the next, (2, b); what
        lies below the first is counted with the first."""
        return np.stack([100 * np.histogram(one.clip(edges[0], edges[-1]), edges)[0] / max(1, len(one))
                         for one in (self.positive, self.negative)])


def similarities(embedding: Array, own: Array, k: int = NEAREST) -> Similarities:
    """Cosines of each image to its k nearest of its own kind and its k nearest others; fewer where there are not so
    many.

    Args:
        embedding: (n, l), some thousand. own: (n, n) bool, which others are of a row's own kind.
    """
    rows, kind = torch.from_numpy(unit_rows(embedding)), torch.from_numpy(own)
    cosine = (rows @ rows.mT).fill_diagonal_(-torch.inf)
    return Similarities(*(_largest(cosine.masked_fill(hidden, -torch.inf), k) for hidden in (~kind, kind)))


def _largest(values: torch.Tensor, k: int) -> Array:
    """The k largest finite values of each row (n, m), all in one list."""
    top = values.topk(min(k, values.shape[1]), dim=1).values
    return top[top.isfinite()].numpy()


def same_class(labels: Array) -> Array:
    """Which images (n,) are of one class, (n, n) bool."""
    return np.asarray(labels)[:, None] == labels


def nearest_of(embedding: Array, k: int = NEAREST) -> Array:
    """Which images are among the k nearest of each row by cosine, (n, n) bool: a kind of its own where there are no
    classes."""
    rows = unit_rows(embedding)
    cosine = rows @ rows.T
    np.fill_diagonal(cosine, -np.inf)
    found = np.zeros(cosine.shape, dtype=bool)
    np.put_along_axis(found, np.argsort(-cosine, axis=1, kind="stable")[:, : min(k, len(rows) - 1)], True, axis=1)
    return found


def common_edges(found: list[Similarities]) -> Array:
    """Edges (41,) of bars up to 1, from a tenth that all but a few similarities lie above."""
    lowest = min((float(np.quantile(part, TAIL)) for one in found for part in (one.positive, one.negative)
                  if len(part)), default=0.0)
    return np.linspace(min(0.9, np.floor(10 * lowest) / 10), 1, BINS + 1)


def unit_rows(embedding: Array) -> Array:
    """Rows (n, l) divided by their length, float32; a zero row stays zero."""
    rows = np.array(embedding, dtype=np.float32)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


@dataclass(frozen=True)
class Others:
    """What an image is to be told from, the nearest first: positions (c,) in the data set and cosines (c,)."""

    positions: Array
    cosines: Array


def others(embedding: Array, index: int, among: Array) -> Others:
    """All of some images (c,) but the asking one, by its cosine to each.

    Args:
        embedding: (n, l) of all images, or of which at least these rows count.
    """
    positions = np.setdiff1d(among, index)
    cosines = unit_rows(embedding[positions]) @ unit_rows(embedding[index][None])[0]
    order = np.argsort(-cosines, kind="stable")
    return Others(positions[order], cosines[order])


def a_batch(half: Array, index: int, size: int, seed: int) -> Array:
    """An image among size − 1 others drawn from a half (n,), as a batch of training has them, ascending."""
    rest = np.setdiff1d(half, index)
    drawn = np.random.default_rng(seed).permutation(rest)[: max(1, size - 1)]
    return np.sort(np.append(drawn, index))


@dataclass(frozen=True)
class Softmax:
    """Of D = e^{s/τ} + η Σ_k e^{s_k/τ} (PSLR eq. 3–4), what the image's own other view holds, and each of the others
    (c,); together 1. P of one of the others is its share divided by η.

    competitors: e to the entropy of the others' shares among themselves: as many equally near ones would weigh so much.
    """

    own: float
    shares: Array
    competitors: float


def softmax(cosines: Array, own: float, temperature: float, eta: float) -> Softmax:
    """How an image's own other view stands against others.

    Args:
        cosines: s_k (c,) of the others. own: s, the cosine of the image's two views. temperature: τ > 0. eta: η ≥ 1.
    """
    logits = np.asarray(cosines, dtype=np.float64) / temperature
    whole = np.logaddexp(own / temperature, np.log(eta) + logsumexp(logits))
    among = np.exp(logits - logsumexp(logits))
    entropy = -(among * np.log(among, where=among > 0, out=np.zeros_like(among))).sum()
    return Softmax(float(np.exp(own / temperature - whole)), np.exp(np.log(eta) + logits - whole),
                   float(np.exp(entropy)))


def agreement(pair: Array) -> float:
    """The cosine of two rows (2, l)."""
    first, second = unit_rows(pair)
    return float(first @ second)


def two_views(pixels: Array, augmentation: Augmentation, seed: int) -> Array:
    """Two random views (2, c, s, s) uint8 of a prepared image (c, s, s) uint8."""
    pair = torch.from_numpy(np.ascontiguousarray(pixels)).expand(2, *pixels.shape)
    views = augmentation(pair, torch.Generator().manual_seed(seed))
    return views.round().clamp(0, 255).to(torch.uint8).numpy()


def most_certain(sigma: Array, count: int) -> tuple[Array, Array]:
    """Rows of the images with the smallest σ (n,), smallest first, and with the largest, largest first, at most
    `count` of each."""
    order = np.argsort(sigma, kind="stable")
    return order[:count], order[::-1][:count]
