"""PLM's linear neighborhoods and similarity, recomputed as sliders move.

S. Bhatnagar, N. Ahuja, "Piecewise-Linear Manifolds for Deep Metric Learning", sections 3.2–3.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from scipy.spatial.distance import pdist

from udml_core.base.arrays import Array
from udml_core.numerics.evaluation import similarity_correlation
from udml_core.numerics.explanations import LinearNeighborhoods, Proxies
from udml_core.numerics.graph import Through, linear_neighborhoods_at
from udml_core.numerics.losses.piecewise import cross_similarity, decay, similarity, split
from udml_core.numerics.neighbors import nearest


@dataclass(frozen=True)
class Geometry:
    """Values of the sliders.

    Attributes:
        candidates: Number k of nearest neighbors that are tested for a neighborhood.
        flat: Dimension m of a neighborhood's flat.
        threshold: Minimum share T of a member's squared distance that lies in the flat.
        n_alpha: Exponent Nα of the decay across the flat.
        n_beta: Exponent Nβ of the decay along the flat.
        admission: Whether candidates below the threshold are refused.
        through: Whether a flat passes through its image or through the origin of the embedding.
    """

    candidates: int = 10
    flat: int = 3
    threshold: float = 0.9
    n_alpha: float = 4.0
    n_beta: float = 0.5
    admission: bool = True
    through: Through = "point"

    @property
    def untested(self) -> int:
        """Number of nearest candidates that are members without a test.

        A flat contains any m vectors. Through the origin of the embedding, the image is one of them.
        """
        return self.flat - (self.through == "origin")

    def within(self, candidates: int, width: int) -> Geometry:
        """Return the geometry limited to the available candidates and dimensions."""
        k = min(self.candidates, candidates)
        return replace(self, candidates=k, flat=min(self.flat, k, width))


@dataclass(frozen=True)
class Surroundings:
    """Some images of an embedding (n, d) and their candidates.

    The sliders need nothing else.

    Attributes:
        centers: (c, d) embeddings of the images.
        rows: (c,) rows of the images; −1 for an image outside the data set.
        points: (p, d) embeddings of all candidates.
        ids: (p,) rows of all candidates.
        candidates: (c, k) candidates of each image as rows of `points`, nearest first.
    """

    centers: Array
    rows: Array
    points: Array
    ids: Array
    candidates: Array

    def neighborhoods(self, geometry: Geometry) -> LinearNeighborhoods:
        """Return each center's linear neighborhood as arrays.

        Its `neighbors` are rows of the embedding.
        """
        usable = geometry.within(self.candidates.shape[1], self.points.shape[1])
        candidates = self.candidates[:, :usable.candidates]
        with _one_thread():
            hoods = linear_neighborhoods_at(torch.from_numpy(self.centers), torch.from_numpy(self.points),
                                            torch.from_numpy(candidates), usable.flat, usable.threshold,
                                            usable.admission, usable.through)
        arrays = {part.name: getattr(hoods, part.name).numpy() for part in fields(hoods)}
        return LinearNeighborhoods(**arrays | {"neighbors": self.ids[candidates]})


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit torch to one thread.

    The decompositions are small: while a run trains on all cores, several waiting threads took 15 times as long as one.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def nearest_rows(embedding: Array, image: int | Array, count: int) -> Array:
    """Return the rows nearest to an image.

    Args:
        embedding: (n, d) embedding.
        image: A row, which is excluded, or the embedding (d,) of an image outside the data set.
        count: Maximum number of rows.

    Returns:
        (c,) rows, nearest first.
    """
    if not isinstance(image, int):
        return nearest(embedding, min(count, len(embedding)), image[None])[1][0]
    count = min(count, len(embedding) - 1)
    return nearest(embedding, count, own=np.array([image]))[1][0] if count else np.zeros(0, np.int64)


def surroundings(embedding: Array, rows: Array, limit: int = 50, outside: Array | None = None) -> Surroundings:
    """Search the candidates of some images exactly, all at once.

    The search is needed again only if other images are viewed, not if a slider moves.

    Args:
        embedding: (n, d) embedding.
        rows: (c,) rows of the images.
        limit: Maximum number of candidates of each image.
        outside: Embedding (d,) of an image outside the data set; it becomes the first center.
    """
    centers = np.asarray(embedding[rows], dtype=np.float32)
    rows = np.asarray(rows, dtype=np.int64)
    if outside is not None:
        centers, rows = np.concatenate([np.asarray(outside, dtype=np.float32)[None], centers]), np.append(-1, rows)
    width = min(limit, len(embedding) - 1)
    neighbors = nearest(embedding, width, centers, rows)[1] if width else np.zeros((len(centers), 0), np.int64)
    ids, candidates = np.unique(neighbors, return_inverse=True)
    return Surroundings(centers, rows, np.asarray(embedding[ids], dtype=np.float32), ids,
                        candidates.reshape(neighbors.shape))


def similarities(around: Surroundings, hoods: LinearNeighborhoods, geometry: Geometry) -> Array:
    """Return the similarity s (eq. 5) of every center to the first one, (c,)."""
    centers, basis = torch.from_numpy(around.centers), torch.from_numpy(hoods.basis)
    with _one_thread():
        similar = cross_similarity(centers, basis, centers[:1], basis[:1], geometry.n_alpha, geometry.n_beta)
    return similar[:, 0].numpy()


@dataclass(frozen=True)
class Direction:
    """The difference v = y_i − y_j, split by one of the two flats (eq. 2–4).

    Attributes:
        across: Distance o across the flat.
        along: Distance p along the flat.
        alpha: Decay α of the distance across.
        beta: Decay β of the distance along.
    """

    across: float
    along: float
    alpha: float
    beta: float

    @property
    def similarity(self) -> float:
        """s′ (eq. 2)."""
        return self.alpha * self.beta

    @property
    def share(self) -> float:
        """The share of ‖v‖² along the flat; 1 at distance zero."""
        total = self.across**2 + self.along**2
        return self.along**2 / total if total else 1.0


@dataclass(frozen=True)
class Pair:
    """Two images compared.

    Attributes:
        distance: Euclidean distance.
        cosine: Cosine of the embeddings.
        first: The difference, split by the first image's flat.
        other: The difference, split by the other image's flat.
    """

    distance: float
    cosine: float
    first: Direction
    other: Direction

    @property
    def similarity(self) -> float:
        """s (eq. 5)."""
        return (self.first.similarity + self.other.similarity) / 2


def pair(points: Array, basis: Array, geometry: Geometry) -> Pair:
    """Compare two images.

    Args:
        points: (2, d) embeddings.
        basis: (2, d, m) orthonormal directions of their flats.
        geometry: Values of the sliders.
    """
    both = torch.from_numpy(points)
    across, along = split(both, both, torch.from_numpy(basis))
    alpha, beta = decay(across, along, geometry.n_alpha, geometry.n_beta)

    def direction(point: int, center: int) -> Direction:
        return Direction(*(float(part[point, center]) for part in (across, along, alpha, beta)))

    lengths = both.norm(dim=1).prod().clamp_min(1e-12)
    return Pair(float((both[0] - both[1]).norm()), float(both[0] @ both[1] / lengths), direction(1, 0),
                direction(0, 1))


def coordinates(around: Surroundings, hoods: LinearNeighborhoods) -> tuple[Array, Array]:
    """Return the first center's candidates in its flat (k, m), and their distances.

    The distances (k,) are from the flat. Both are of the differences from the center, which the similarity splits (eq.
    2), for every geometry.
    """
    offsets = around.points[around.candidates[0, :hoods.members.shape[1]]].astype(np.float64) - around.centers[0]
    inside = offsets @ hoods.basis[0]
    return inside, np.sqrt(np.maximum((offsets**2).sum(axis=1) - (inside**2).sum(axis=1), 0))


@dataclass(frozen=True)
class Along:
    """Images along one direction of a flat, from its negative to its positive end.

    Attributes:
        positions: (a,) positions of the images in the given points.
        coordinates: (a,) coordinates along the direction.
        shares: (a,) share of each image's squared distance along the direction.
    """

    positions: Array
    coordinates: Array
    shares: Array


def along_directions(points: Array, center: Array, basis: Array, count: int = 4,
                     min_share: float = 0.05) -> list[Along]:
    """Find the images that lie most purely along each direction of a flat.

    Args:
        points: (n, d) embeddings of the images.
        center: (d,) center of the flat.
        basis: (d, m) orthonormal directions of the flat.
        count: Maximum number of images on either side.
        min_share: Minimum share of an image's squared distance along the direction.

    Returns:
        One entry for each of the m directions.
    """
    offsets = np.asarray(points, dtype=np.float64) - center
    inside = offsets @ basis
    shares = inside**2 / np.maximum((offsets**2).sum(axis=1), 1e-12)[:, None]
    directions = []
    for values, share in zip(inside.T, shares.T, strict=True):
        sides = [np.flatnonzero(side & (share >= min_share)) for side in (values < 0, values > 0)]
        chosen = np.concatenate([side[np.argsort(-share[side], kind="stable")][:count] for side in sides])
        chosen = chosen[np.argsort(values[chosen], kind="stable")]
        directions.append(Along(chosen, values[chosen], share[chosen]))
    return directions


def hits_among_first(ordered: Array, counts: tuple[int, ...]) -> tuple[int, ...]:
    """Count the hits among the first images of a ranking.

    Args:
        ordered: (n,) bool, whether the image at each rank is a hit.
        counts: Numbers of images to look at.

    Returns:
        One number of hits for each of `counts`.
    """
    return tuple(int(ordered[:count].sum()) for count in counts)


@dataclass(frozen=True)
class Heat:
    """Similarities of a set of images, compared with their classes.

    A mean is NaN if there are no such pairs.

    Attributes:
        order: (n,) the images, sorted by class.
        values: (n, n) similarities s in that order.
        starts: (c,) first position of each class.
        by_class: (c, c) mean similarity between classes, without self-similarities.
        within: Mean similarity of two images of the same class.
        between: Mean similarity of two images of different classes.
        correlation: Correlation of s with class equality over all pairs.
    """

    order: Array
    values: Array
    starts: Array
    by_class: Array
    within: float
    between: float
    correlation: float


def heat(around: Surroundings, geometry: Geometry, labels: Array) -> Heat:
    """Compute the similarity s among all centers, sorted by their labels (c,)."""
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    basis = torch.from_numpy(around.neighborhoods(geometry).basis[order])
    values = similarity(torch.from_numpy(around.centers[order]), basis, geometry.n_alpha, geometry.n_beta).numpy()
    pairs = np.triu_indices(len(order), 1)
    same, similar = ordered[pairs[0]] == ordered[pairs[1]], values[pairs]
    within, between = (float(similar[part].mean()) if part.any() else np.nan for part in (same, ~same))
    names, starts, codes = np.unique(ordered, return_index=True, return_inverse=True)
    member = np.eye(len(names))[codes]
    off_diagonal = 1 - np.eye(len(order))
    counts = member.T @ off_diagonal @ member
    by_class = np.divide(member.T @ (values * off_diagonal) @ member, counts, out=np.full(counts.shape, np.nan),
                         where=counts > 0)
    return Heat(order, values, starts, by_class, within, between,
                similarity_correlation(values, ordered) if np.isfinite(within + between) else np.nan)


def nearest_to_proxies(proxies: Proxies, embedding: Array, count: int) -> Array:
    """Return the rows (c, k) of an embedding (n, d) nearest to each proxy.

    There are at most `count`, nearest first.
    """
    return nearest(embedding, min(count, len(embedding)), proxies.places)[1]


def proxy_distance(proxies: Proxies) -> float:
    """Return the mean distance between two proxies; 0 if there are fewer than two."""
    return float(pdist(proxies.places).mean()) if len(proxies.places) > 1 else 0.0


def mean_positions(positions: Array, rows: Array) -> Array:
    """Return the mean map position of sets of images.

    A proxy or query that is not on the map is drawn there.

    Args:
        positions: (n, 2) map positions.
        rows: (c, k) rows of each set.

    Returns:
        (c, 2) mean positions.
    """
    return positions[rows].mean(axis=1)


def floor_percent(shares: Array) -> Array:
    """Return shares in percent, rounded down to one decimal.

    Rounding to the nearest could display a value below a threshold as equal to it.
    """
    return np.floor(1000 * np.asarray(shares, np.float64) + 1e-6) / 10


def tested_words(worst: Array, untested: int) -> list[str]:
    """Return the quality that T tests of each candidate in words, rounded down to three decimals.

    Args:
        worst: (k,) smallest quality in the set that each candidate was tested with, nearest candidate first.
        untested: Number of nearest candidates that are members without a test.
    """
    return ["always" if rank < untested else f"{value / 100:.3f}"
            for rank, value in enumerate(floor_percent(worst).tolist())]


def similarity_in_plane(n_alpha: float, n_beta: float, reach: float = 2.0, steps: int = 81) -> tuple[Array, Array]:
    """Compute the similarity around a point in the plane whose flat is the first axis.

    The other point's flat is taken as parallel, so that s = s′.

    Args:
        n_alpha: Exponent Nα of the decay across the flat.
        n_beta: Exponent Nβ of the decay along the flat.
        reach: End of both axes.
        steps: Number of ticks t.

    Returns:
        Ticks (t,) of both axes, and similarities (t, t), one row for each position across the flat.
    """
    ticks = torch.linspace(-reach, reach, steps)
    alpha, beta = decay(ticks.abs()[:, None], ticks.abs()[None], n_alpha, n_beta)
    return ticks.numpy(), (alpha * beta).numpy()
