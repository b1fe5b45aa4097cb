"""Why two images are similar: linear neighborhoods of an embedding, re-formed as sliders move.

S. Bhatnagar, N. Ahuja, "Piecewise-Linear Manifolds for Deep Metric Learning", sections 3.2–3.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from scipy.spatial.distance import pdist

from udml_core.arrays import Array
from udml_core.evaluation import similarity_correlation
from udml_core.explanations import LinearNeighborhoods, Proxies
from udml_core.graph import linear_neighborhoods_at
from udml_core.losses.piecewise import cross_similarity, decay, similarity, split
from udml_core.neighbors import nearest


@dataclass(frozen=True)
class Geometry:
    """What the sliders set: k, m and T of the neighborhoods, Nα and Nβ of the similarity."""

    candidates: int = 10
    flat: int = 3
    threshold: float = 0.9
    n_alpha: float = 4.0
    n_beta: float = 0.5
    admission: bool = True

    def within(self, candidates: int, width: int) -> Geometry:
        """As near to this as so many candidates and dimensions allow."""
        k = min(self.candidates, candidates)
        return replace(self, candidates=k, flat=min(self.flat, k, width))


@dataclass(frozen=True)
class Surroundings:
    """All that the sliders need of an embedding (n, d): some of its images, and the candidates of each.

    centers (c, d): the images' places. rows (c,): which rows they are, −1 for an image that is not among them.
    points (p, d), ids (p,): every candidate's place and row. candidates (c, k): rows of `points`, nearest first.
    """

    centers: Array
    rows: Array
    points: Array
    ids: Array
    candidates: Array

    def neighborhoods(self, geometry: Geometry) -> LinearNeighborhoods:
        """The linear neighborhood of each center, as arrays; its `neighbors` are rows of the embedding."""
        usable = geometry.within(self.candidates.shape[1], self.points.shape[1])
        near = self.candidates[:, :usable.candidates]
        with _one_thread():
            found = linear_neighborhoods_at(torch.from_numpy(self.centers), torch.from_numpy(self.points),
                                            torch.from_numpy(near), usable.flat, usable.threshold, usable.admission)
        arrays = {part.name: getattr(found, part.name).numpy() for part in fields(found)}
        return LinearNeighborhoods(**arrays | {"neighbors": self.ids[near]})


@contextmanager
def _one_thread() -> Iterator[None]:
    """Many small decompositions: beside a training run on all cores, several threads that wait for each other were
    15 times slower than one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def nearest_rows(embedding: Array, image: int | Array, count: int) -> Array:
    """The rows (c,) of an embedding (n, d) nearest to one of its own, or to a place (d,); at most `count`, nearest
    first, itself left out."""
    if not isinstance(image, int):
        return nearest(embedding, min(count, len(embedding)), image[None])[1][0]
    rows = nearest(embedding, min(count + 1, len(embedding)), np.asarray(embedding[image])[None])[1][0]
    return rows[rows != image][:count]


def surroundings(embedding: Array, rows: Array, most: int = 50, place: Array | None = None) -> Surroundings:
    """Rows (c,) of an embedding (n, d) with the candidates of each, at most `most`; `place` (d,), an image that is no
    row, is put before them.

    One exact search with all centers at once: what has to be computed anew where other images are looked at.
    """
    centers = np.asarray(embedding[rows], dtype=np.float32)
    rows = np.asarray(rows, dtype=np.int64)
    if place is not None:
        centers, rows = np.concatenate([np.asarray(place, dtype=np.float32)[None], centers]), np.append(-1, rows)
    width = min(most, len(embedding) - 1)
    found = nearest(embedding, width + 1, centers)[1]
    own = found == rows[:, None]
    own[~own.any(axis=1), -1] = True
    found = found[~own].reshape(len(centers), width)
    ids, candidates = np.unique(found, return_inverse=True)
    return Surroundings(centers, rows, np.asarray(embedding[ids], dtype=np.float32), ids,
                        candidates.reshape(found.shape))


def similarities(around: Surroundings, hoods: LinearNeighborhoods, geometry: Geometry) -> Array:
    """s (eq. 5) of every center to the first one, (c,)."""
    centers, basis = torch.from_numpy(around.centers), torch.from_numpy(hoods.basis)
    with _one_thread():
        found = cross_similarity(centers, basis, centers[:1], basis[:1], geometry.n_alpha, geometry.n_beta)
    return found[:, 0].numpy()


@dataclass(frozen=True)
class Direction:
    """v = y_i − y_j as one of the two flats splits it: o across and p along (eq. 2–4)."""

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
        """Of ‖v‖² what lies along the flat; 1 at distance zero."""
        whole = self.across**2 + self.along**2
        return self.along**2 / whole if whole else 1.0


@dataclass(frozen=True)
class Pair:
    """Two images: their distance and cosine, and v in the first one's flat and in the other's."""

    distance: float
    cosine: float
    first: Direction
    other: Direction

    @property
    def similarity(self) -> float:
        """s (eq. 5)."""
        return (self.first.similarity + self.other.similarity) / 2


def pair(places: Array, basis: Array, geometry: Geometry) -> Pair:
    """Two images at places (2, d) with their flats (2, d, m)."""
    both = torch.from_numpy(places)
    across, along = split(both, both, torch.from_numpy(basis))
    alpha, beta = decay(across, along, geometry.n_alpha, geometry.n_beta)

    def seen(point: int, center: int) -> Direction:
        return Direction(*(float(part[point, center]) for part in (across, along, alpha, beta)))

    lengths = both.norm(dim=1).prod().clamp_min(1e-12)
    return Pair(float((both[0] - both[1]).norm()), float(both[0] @ both[1] / lengths), seen(1, 0), seen(0, 1))


def coordinates(around: Surroundings, hoods: LinearNeighborhoods) -> tuple[Array, Array]:
    """The first center's candidates in its own flat (k, m), and how far each lies off it (k,)."""
    offsets = around.points[around.candidates[0, :hoods.members.shape[1]]].astype(np.float64) - around.centers[0]
    inside = offsets @ hoods.basis[0]
    return inside, np.sqrt(np.maximum((offsets**2).sum(axis=1) - (inside**2).sum(axis=1), 0))


@dataclass(frozen=True)
class Along:
    """Images that a direction leads to: their places in what was asked, from its far negative end to its positive one,
    their coordinates, and the share of each one's squared distance that lies in this direction, (a,) each."""

    places: Array
    coordinates: Array
    shares: Array


def along_directions(places: Array, center: Array, basis: Array, count: int = 4, least: float = 0.05) -> list[Along]:
    """For each direction (d, m) at a center (d,), the images among places (n, d) that lie most purely in it, at most
    `count` on either side, each with a share of at least `least`."""
    offsets = np.asarray(places, dtype=np.float64) - center
    inside = offsets @ basis
    shares = inside**2 / np.maximum((offsets**2).sum(axis=1), 1e-12)[:, None]
    found = []
    for values, share in zip(inside.T, shares.T, strict=True):
        sides = [np.flatnonzero(side & (share >= least)) for side in (values < 0, values > 0)]
        chosen = np.concatenate([side[np.argsort(-share[side], kind="stable")][:count] for side in sides])
        chosen = chosen[np.argsort(values[chosen], kind="stable")]
        found.append(Along(chosen, values[chosen], share[chosen]))
    return found


def hits(ordered: Array, counts: tuple[int, ...]) -> tuple[int, ...]:
    """How many of the first so many are right, of bools (n,) in a ranking's order."""
    return tuple(int(ordered[:count].sum()) for count in counts)


@dataclass(frozen=True)
class Heat:
    """A set's similarities beside its true classes.

    order (n,): its images sorted by class. values (n, n): s in that order. starts (c,): where each class begins.
    by_class (c, c): the mean of s between classes, without an image and itself.
    within, between: mean s of two images of one class, and of two. correlation: with whether the classes are equal,
    over all pairs. NaN where there are no such pairs.
    """

    order: Array
    values: Array
    starts: Array
    by_class: Array
    within: float
    between: float
    correlation: float


def heat(around: Surroundings, geometry: Geometry, labels: Array) -> Heat:
    """s among all centers, sorted by their labels (c,)."""
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    basis = torch.from_numpy(around.neighborhoods(geometry).basis[order])
    values = similarity(torch.from_numpy(around.centers[order]), basis, geometry.n_alpha, geometry.n_beta).numpy()
    pairs = np.triu_indices(len(order), 1)
    same, found = ordered[pairs[0]] == ordered[pairs[1]], values[pairs]
    within, between = (float(found[part].mean()) if part.any() else np.nan for part in (same, ~same))
    names, starts, codes = np.unique(ordered, return_index=True, return_inverse=True)
    member = np.eye(len(names))[codes]
    apart = 1 - np.eye(len(order))
    counts = member.T @ apart @ member
    by_class = np.divide(member.T @ (values * apart) @ member, counts, out=np.full(counts.shape, np.nan),
                         where=counts > 0)
    return Heat(order, values, starts, by_class, within, between,
                similarity_correlation(values, ordered) if np.isfinite(within + between) else np.nan)


def proxies_near(proxies: Proxies, embedding: Array, count: int) -> Array:
    """The rows (c, k) of an embedding (n, d) nearest to each proxy, at most `count`, nearest first."""
    return nearest(embedding, min(count, len(embedding)), proxies.places)[1]


def spread(proxies: Proxies) -> float:
    """The mean distance of two proxies; 0 with fewer than two."""
    return float(pdist(proxies.places).mean()) if len(proxies.places) > 1 else 0.0


def amid(positions: Array, rows: Array) -> Array:
    """The middle (c, 2) of the map positions (n, 2) of each line of rows (c, k): a place for what is not on the map."""
    return positions[rows].mean(axis=1)


def floored(shares: Array) -> Array:
    """Shares in percent with one decimal, rounded down, so that what lies below a threshold does not read as it."""
    return np.floor(1000 * np.asarray(shares) + 1e-6) / 10


def toy(n_alpha: float, n_beta: float, reach: float = 2.0, steps: int = 81) -> tuple[Array, Array]:
    """Similarity around a point in the plane whose flat is the first axis: the ticks (t,) of both axes, and s (t, t),
    a row for each place across the flat. The other point's flat is taken as parallel, so that s = s′."""
    ticks = torch.linspace(-reach, reach, steps)
    alpha, beta = decay(ticks.abs()[:, None], ticks.abs()[None], n_alpha, n_beta)
    return ticks.numpy(), (alpha * beta).numpy()
