"""The closed set of array records that methods explain themselves with and pages draw.

The algorithms return these very records (tensors inside, NumPy arrays once stored), so nothing in a
method is computed for display. A reader matches on the record's type, never on the method.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch


@dataclass(frozen=True)
class Clusters:
    """Disjoint trees of points that ascend to a common authority (RPML eq. 3–4).

    labels (n,) int: the cluster of each point, 0 … c−1, numbered as their modes are.
    modes (c,) int: the point each cluster's members ascend to.
    parents (n,) int: the next point on each ascent path; a mode is its own parent.
    """

    labels: Any
    modes: Any
    parents: Any


@dataclass(frozen=True)
class Triplets:
    """Triplets as a method used them in one pass.

    anchor, positive, negative (t,) int: indices into the training images.
    argument (t,): z of RPML eq. 8; a triplet violates its angle exactly when z > 0.
    weight (t,): w of eq. 10 or 25, in (0, 1); 1 where the method weighs none.
    near, far, side (t,): the squared distances that z is made of, as the loss saw them: anchor to positive, negative to
    their midpoint, and anchor to negative. z = near − 4tan²α·far.
    similar, dissimilar (t,): the parts whose mean the bilinear weight is, σ(aᵀRRᵀp) and 1 − σ(mᵀRRᵀn); NaN for a
    weight without parts.
    loss (t,): softplus(w·softplus(z)) (eq. 12); softplus(z) without weights (SSDML eq. 3).
    """

    anchor: Any
    positive: Any
    negative: Any
    argument: Any
    weight: Any
    near: Any
    far: Any
    side: Any
    similar: Any
    dissimilar: Any
    loss: Any


@dataclass(frozen=True)
class LinearNeighborhoods:
    """The flat that the nearest neighbors of each point lie in, and who was admitted to it (PLM section 3.2).

    neighbors (n, k) int: the candidates of each point, nearest first.
    members (n, k) bool: which of them the flat was fitted to.
    basis (n, d, m): orthonormal directions of each flat, best fit first; the flat passes through the point itself.
    quality (n, k): the share ‖Pᵀv‖²/‖v‖² of each candidate's squared distance that the final flat holds, in [0, 1].
    worst (n, k): the least quality within the set that each candidate was tested with. A candidate was admitted if it
    reached T; 1 where there was no test (the first m − 1, and all without admission).
    """

    neighbors: Any
    members: Any
    basis: Any
    quality: Any
    worst: Any


@dataclass(frozen=True)
class Proxies:
    """Learnt points that stand for parts of the data, each with a flat of its own (PLM section 3.4).

    places (c, l): unit embeddings. directions (c, l, m): orthonormal.
    """

    places: Any
    directions: Any


@dataclass(frozen=True)
class Affinities:
    """What few labels say about a neighbor graph of some of the training images (SSDML, affinity propagation).

    points (p,) int: indices into the training images; everything else is by row of these.
    neighbors (p, k) int: the nearest of each, as indices into the training images, nearest first.
    before, after (p, k): the affinity to each neighbor, as labels alone say it (W0), and propagated (W).
    labels (p,) int: −1 where there is none.
    reach (p, c): the probability that a walk from the point ends at a label of each class; classes (c,) int.
    """

    points: Any
    neighbors: Any
    before: Any
    after: Any
    labels: Any
    reach: Any
    classes: Any


@dataclass(frozen=True)
class Pairs:
    """Pairs that a method learnt from, as they are after a pass.

    pairs (p, 2) int: indices into the training images. same (p,) bool: whether they are to be the same.
    before, after (p,): d² where the method started, and after the pass.
    argument (p,): m − y(b − d²) after the pass; the pair keeps its margin where that is at most 0, else it is the loss.
    """

    pairs: Any
    same: Any
    before: Any
    after: Any
    argument: Any


@dataclass(frozen=True)
class Prototypes:
    """Learnt rows l_t in the space of the features, which embed an image as [k(l_1, x), …, k(l_d, x)].

    rows (d, D), or (d, 2D) where features x are taken as [x⁺, x⁻]. What a row answers to most is what has the largest
    value in its column of the embedding.
    """

    rows: Any


@dataclass(frozen=True)
class Uncertainty:
    """How widely a variational method lets each training image's latent representation vary (PSLR eq. 6).

    sigma (n,): the mean of σ over the dimensions, of the image without augmentation, after a pass.
    """

    sigma: Any


@dataclass(frozen=True)
class LatentLayer:
    """What leads from an embedding x to the latent representation behind it, z = unit(ReLU(x · weight)) (PSLR eq. 2,
    A = I).

    weight (l, l).
    """

    weight: Any


Explanation = (Clusters | Triplets | LinearNeighborhoods | Proxies | Affinities | Pairs | Prototypes | Uncertainty
               | LatentLayer)
"""What a page can be asked to draw. A new record is added here, and every `match` then fails to type-check."""

KINDS: dict[str, type[Explanation]] = {
    "clusters": Clusters, "triplets": Triplets, "neighborhoods": LinearNeighborhoods, "proxies": Proxies,
    "affinities": Affinities, "pairs": Pairs, "prototypes": Prototypes, "uncertainty": Uncertainty,
    "latent": LatentLayer}


def name_of(record: Explanation) -> str:
    """The name under which a record is stored, for example ``clusters``."""
    return next(name for name, kind in KINDS.items() if isinstance(record, kind))


def to_arrays(record: Explanation) -> dict[str, np.ndarray[Any, Any]]:
    """The fields of a record as NumPy arrays on the CPU."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return {name: value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
            for name, value in values.items()}


def thinned(record: Explanation, limit: int) -> Explanation:
    """A record small enough to keep for every epoch: at most `limit` triplets or pairs, evenly spread over the pass.
    """
    match record:
        case Triplets() | Pairs():
            step = max(1, -(-len(getattr(record, fields(record)[0].name)) // limit))
            return replace(record, **{field.name: getattr(record, field.name)[::step] for field in fields(record)})
        case (Clusters() | LinearNeighborhoods() | Proxies() | Prototypes() | Affinities() | Uncertainty()
              | LatentLayer()):  # a row a point, or a whole: nothing can be left out
            return record
