"""The array records that methods explain themselves with and pages draw.

The algorithms return these records, with tensors during training and NumPy arrays once stored, so a method computes
nothing for display. A reader matches on the type of the record, never on the method. Each field declares the type and
axes of its stored array as `misfit` reads them, and `stored_as` is the name of the record's file.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar, get_args, get_type_hints

import numpy as np
import torch

from udml_core.base.arrays import Array


@dataclass(frozen=True)
class Clusters:
    """Disjoint trees of points that ascend to a common authority mode (RPML eq. 3–4).

    Attributes:
        labels: Cluster of each point (n,) int, 0 … c−1; cluster j belongs to mode j.
        modes: Point that the members of each cluster ascend to (c,) int.
        parents: Next point on each ascent path (n,) int; a mode is its own parent.
    """

    stored_as: ClassVar = "clusters"
    labels: Annotated[Any, "int n"]
    modes: Annotated[Any, "int c"]
    parents: Annotated[Any, "int n"]


@dataclass(frozen=True)
class Triplets:
    """Triplets as a method used them in one epoch.

    Attributes:
        anchor: Anchors (t,) int, as indices into the training images.
        positive: Positives (t,) int, likewise.
        negative: Negatives (t,) int, likewise.
        argument: z of RPML eq. 8 (t,); a triplet violates the angular bound exactly when z > 0.
        weight: w of eq. 10 or 25 (t,), in (0, 1); 1 if the method does not weight triplets.
        near: Squared distance from anchor to positive (t,), as the loss saw it; z = near − 4tan²α·far.
        far: Squared distance from the negative to the midpoint of anchor and positive (t,), as the loss saw it.
        side: Squared distance from anchor to negative (t,), as the loss saw it.
        similar: σ(aᵀRRᵀp) (t,), the first of two parts whose mean is the bilinear weight; NaN for other weights.
        dissimilar: 1 − σ(mᵀRRᵀn) (t,), the second part of the bilinear weight; NaN for other weights.
        loss: softplus(w·softplus(z)) (t,) (eq. 12); softplus(z) without weights (SSDML eq. 3).
    """

    stored_as: ClassVar = "triplets"
    anchor: Annotated[Any, "int t"]
    positive: Annotated[Any, "int t"]
    negative: Annotated[Any, "int t"]
    argument: Annotated[Any, "float t"]
    weight: Annotated[Any, "float t"]
    near: Annotated[Any, "float t"]
    far: Annotated[Any, "float t"]
    side: Annotated[Any, "float t"]
    similar: Annotated[Any, "float t"]
    dissimilar: Annotated[Any, "float t"]
    loss: Annotated[Any, "float t"]


@dataclass(frozen=True)
class LinearNeighborhoods:
    """The linear subspace fitted to each point's nearest neighbors (PLM section 3.2).

    Attributes:
        neighbors: Candidates of each point (n, k) int, nearest first.
        members: Whether each candidate was admitted (n, k) bool; the subspace is fitted to the members.
        basis: Orthonormal basis P of each subspace (n, d, m), direction of largest variance first.
        quality: Share ‖Pᵀv‖²/‖v‖² of each candidate's squared distance within the final subspace (n, k), in [0, 1]. The
            distance is from the point, or from the origin if the subspaces pass through it.
        worst: Smallest quality in the set that each candidate was tested with (n, k). A candidate is admitted if the
            value reaches T. It is 1 for untested candidates: the first m, or m − 1 if the subspaces pass
            through the origin, and all without admission.
    """

    stored_as: ClassVar = "neighborhoods"
    neighbors: Annotated[Any, "int n k"]
    members: Annotated[Any, "bool n k"]
    basis: Annotated[Any, "float n d m"]
    quality: Annotated[Any, "float n k"]
    worst: Annotated[Any, "float n k"]


@dataclass(frozen=True)
class Proxies:
    """Learned proxies, each with a linear neighborhood of its own (PLM section 3.4).

    Attributes:
        places: Unit-length embeddings of the proxies (c, l).
        directions: Orthonormal basis of each linear neighborhood (c, l, m).
    """

    stored_as: ClassVar = "proxies"
    places: Annotated[Any, "float c l"]
    directions: Annotated[Any, "float c l m"]


@dataclass(frozen=True)
class Affinities:
    """Few labels propagated through the neighbor graph of some training images.

    This is SSDML's affinity propagation.

    Attributes:
        points: Images of the graph (p,) int, as indices into the training images; the other fields have a row for each.
        neighbors: Nearest neighbors (p, k) int, as indices into the training images, nearest first.
        before: Affinity to each neighbor from the labels alone, W0 (p, k).
        after: Affinity to each neighbor after propagation, W (p, k).
        labels: Class of each image (p,) int, −1 where unlabeled.
        reach: Probability that a random walk from the image ends at a label of each class (p, c).
        classes: Class of each column of `reach` (c,) int.
    """

    stored_as: ClassVar = "affinities"
    points: Annotated[Any, "int p"]
    neighbors: Annotated[Any, "int p k"]
    before: Annotated[Any, "float p k"]
    after: Annotated[Any, "float p k"]
    labels: Annotated[Any, "int p"]
    reach: Annotated[Any, "float p c"]
    classes: Annotated[Any, "int c"]


@dataclass(frozen=True)
class Pairs:
    """Pairs that a method learned from, as they are after an epoch.

    Attributes:
        pairs: Two images for each pair (p, 2) int, as indices into the training images.
        same: Whether the pair is similar (p,) bool.
        before: Squared distance d² before training (p,).
        after: Squared distance d² after the epoch (p,).
        argument: m − y(b − d²) after the epoch (p,). The pair keeps its margin if it is at most 0; otherwise it is the
            loss of the pair.
    """

    stored_as: ClassVar = "pairs"
    pairs: Annotated[Any, "int p 2"]
    same: Annotated[Any, "bool p"]
    before: Annotated[Any, "float p"]
    after: Annotated[Any, "float p"]
    argument: Annotated[Any, "float p"]


@dataclass(frozen=True)
class Prototypes:
    """Learned rows l_t that embed an image as [k(l_1, x), …, k(l_d, x)].

    The rows are in feature space.

    Attributes:
        rows: The rows (d, D), or (d, 2D) if features x are split into [x⁺, x⁻]. The images that a row responds to most
            have the largest values in its column of the embedding.
    """

    stored_as: ClassVar = "prototypes"
    rows: Annotated[Any, "float d w"]


@dataclass(frozen=True)
class Uncertainty:
    """Standard deviation of each training image's latent representation (PSLR eq. 6).

    Attributes:
        sigma: Mean of σ over the dimensions (n,), for images without augmentation, after an epoch.
    """

    stored_as: ClassVar = "uncertainty"
    sigma: Annotated[Any, "float n"]


@dataclass(frozen=True)
class LatentLayer:
    """The layer from an embedding x to its latent z = unit(ReLU(x · weight)).

    This is PSLR eq. 2 with A = I.

    Attributes:
        weight: The weight matrix (l, l).
    """

    stored_as: ClassVar = "latent"
    weight: Annotated[Any, "float l l"]


Explanation = (Clusters | Triplets | LinearNeighborhoods | Proxies | Affinities | Pairs | Prototypes | Uncertainty
               | LatentLayer)
"""Every record that a page can draw. Add a new record here; the type checker then reports each `match` without it."""

RECORDS: tuple[type[Explanation], ...] = get_args(Explanation)


def axes_of(record: type[Explanation]) -> dict[str, str]:
    """Return the types and axes of a record's stored arrays; see `misfit`."""
    hints = get_type_hints(record, include_extras=True)
    return {field.name: hints[field.name].__metadata__[0] for field in fields(record)}


def to_arrays(record: Explanation) -> dict[str, Array]:
    """Convert the fields of a record to NumPy arrays on the CPU."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return {name: value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
            for name, value in values.items()}


def thin(record: Explanation, limit: int) -> Explanation:
    """Reduce a record to at most `limit` triplets or pairs, evenly spread.

    Every epoch can then be stored.
    """
    match record:
        case Triplets() | Pairs():
            step = max(1, -(-len(getattr(record, fields(record)[0].name)) // limit))
            return replace(record, **{field.name: getattr(record, field.name)[::step] for field in fields(record)})
        case (Clusters() | LinearNeighborhoods() | Proxies() | Prototypes() | Affinities() | Uncertainty()
              | LatentLayer()):  # their rows cannot be dropped one by one
            return record
