"""Triplet and angular losses, and the smooth forms of SSDML and RPML with closed-form gradients.

U. K. Dutta, M. Harandi, C. Chandra Sekhar, "A Probabilistic Approach for Learning Embeddings without Supervision";
equation numbers are that paper's where no other is named. Rows are triplets: anchor, positive, negative (t, d) or
projected (t, l).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from udml_core.explanations import Triplets
from udml_core.geometry import Evaluation, Point
from udml_core.geometry.conjugate_gradient import Objective

Weight = Literal["bilinear", "concatenated"]
Scale = Literal["mean", "sum", "relative"]
TINY = 1e-12


def triplet_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 0.2) -> Tensor:
    """Σ [δ²(a,p) − δ²(a,n) + τ]₊ (eq. 1) of embeddings (t, l)."""
    return (_squared(anchor - positive) - _squared(anchor - negative) + margin).clamp_min(0).sum()


def angular_loss(anchor: Tensor, positive: Tensor, negative: Tensor, alpha: float = 45.0) -> Tensor:
    """Σ [δ²(a,p) − 4tan²α δ²(n,m)]₊ (eq. 2) of embeddings (t, l); α in degrees."""
    return angular_argument(anchor, positive, negative, alpha).clamp_min(0).sum()


def angular_argument(anchor: Tensor, positive: Tensor, negative: Tensor, alpha: float) -> Tensor:
    """z = δ²(a,p) − 4tan²α δ²(n,m), m = (a+p)/2 (eq. 8), (t,). The triplet violates its angle exactly when z > 0."""
    return _squared(anchor - positive) - tightness(alpha) * _squared(negative - (anchor + positive) / 2)


def angle(anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """arctan(‖a−p‖ / 2‖n−m‖) in degrees, (t,): the angle at the negative of the symmetrized triangle.

    It exceeds α exactly when z > 0; the vertex angle a–n–p does not have that property.
    """
    base = _squared(anchor - positive).sqrt()
    height = _squared(negative - (anchor + positive) / 2).sqrt()
    return torch.atan2(base, 2 * height).rad2deg()


def tightness(alpha: float) -> float:
    """κ = 4tan²α, α in degrees."""
    return 4.0 * math.tan(math.radians(alpha)) ** 2


def bilinear_weight(anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """w = (σ(aᵀp) + 1 − σ(mᵀn))/2 of rows already multiplied by R (eq. 25–27), (t,)."""
    similar = (anchor * positive).sum(1)
    dissimilar = ((anchor + positive) / 2 * negative).sum(1)
    return (torch.sigmoid(similar) + torch.sigmoid(-dissimilar)) / 2


def concatenated_weight(anchor: Tensor, positive: Tensor, negative: Tensor, parameter: Tensor) -> Tensor:
    """w = σ(rᵀ[m; n]) with r (2d,) (eq. 10), (t,)."""
    middle, far = parameter.chunk(2)
    return torch.sigmoid((anchor + positive) / 2 @ middle + negative @ far)


def weighted_angular_loss(anchor: Tensor, positive: Tensor, negative: Tensor, parameter: Tensor, projection: Tensor,
                          alpha: float, weight: Weight) -> Tensor:
    """J = Σ softplus(w·softplus(z)) (eq. 7, 9, 12) by autograd: for the network's step, and as the test of the
    closed form. `parameter` is R (d, l) for the bilinear weight and r (2d,) for the concatenated one."""
    z = angular_argument(anchor @ projection, positive @ projection, negative @ projection, alpha)
    if weight == "bilinear":
        w = bilinear_weight(anchor @ parameter, positive @ parameter, negative @ parameter)
    else:
        w = concatenated_weight(anchor, positive, negative, parameter)
    return _softplus(w * _softplus(z)).sum()


class _Triplets(Objective):
    """Points and fixed triplets of them.

    Points are projected once and triplets gather their rows, so a value costs O(n·d·l + t·l), a gradient the same
    again, and no d×d matrix appears.

    Args:
        points: X (n, d), unit rows.
        triplets: (t, 3) int64, rows of anchor, positive, negative.
        alpha: α in degrees.
    """

    def __init__(self, points: Tensor, triplets: Tensor, alpha: float) -> None:
        used, compact = torch.unique(triplets, return_inverse=True)
        self.points = points if len(used) == len(points) else points[used]
        self.anchor, self.positive, self.negative = compact.unbind(1)
        self.kappa = tightness(alpha)


class _Projected(Evaluation):
    """Triplets' points multiplied by L, and the argument z (t,) of eq. 8."""

    def __init__(self, objective: _Triplets, projection: Tensor) -> None:
        self.objective = objective
        self.projection = projection
        anchor, positive, negative = self._rows(objective.points @ projection)
        self.near = anchor - positive
        self.far = negative - (anchor + positive) / 2
        self.argument = _squared(self.near) - objective.kappa * _squared(self.far)

    def distances(self) -> dict[str, Tensor]:
        """What each triplet's argument is made of, (t,) each, under the names of `udml_core.explanations.Triplets`."""
        return {"argument": self.argument, "near": _squared(self.near), "far": _squared(self.far),
                "side": _squared(self.far - self.near / 2)}

    def _projection_gradient(self, to_near: Tensor, to_far: Tensor) -> Tensor:
        """2(A−P)ᵀdiag(u)(A−P)L + 2(N−M)ᵀdiag(v)(N−M)L, gathered on the points; u, v (t,) the derivatives of J with
        respect to the two squared distances."""
        near = 2 * to_near[:, None] * self.near
        far = to_far[:, None] * self.far
        return self._scatter(near - far, -near - far, 2 * far)

    def _rows(self, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        objective = self.objective
        return values[objective.anchor], values[objective.positive], values[objective.negative]

    def _scatter(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Xᵀ times the rows' contributions (t, l) added up on their points (n, l): (d, l)."""
        objective = self.objective
        sums = anchor.new_zeros(len(objective.points), anchor.shape[1])
        sums.index_add_(0, objective.anchor, anchor)
        sums.index_add_(0, objective.positive, positive)
        sums.index_add_(0, objective.negative, negative)
        return objective.points.mT @ sums


class SmoothAngular(_Triplets):
    """J = Σ softplus(z), its mean, or its relative form, as a function of L (SSDML eq. 3); see `smooth_angular_loss`.

    Args:
        points, triplets, alpha: as everywhere here. scale: which form.
    """

    def __init__(self, points: Tensor, triplets: Tensor, alpha: float, scale: Scale = "mean") -> None:
        super().__init__(points, triplets, alpha)
        self.scale = scale

    def __call__(self, point: Point) -> SmoothAngularEvaluation:
        return SmoothAngularEvaluation(self, *point)


class SmoothAngularEvaluation(_Projected):
    """J at L. unit: what distances are measured in, 1 but in the relative form. loss (t,): softplus(z/unit)."""

    objective: SmoothAngular

    def __init__(self, objective: SmoothAngular, projection: Tensor) -> None:
        super().__init__(objective, projection)
        self.unit = 1.0
        if objective.scale == "relative":
            self.unit = max(float((_squared(self.near) + _squared(self.far)).mean()), TINY)
        self.loss = _softplus(self.argument / self.unit)
        self.value = self._share() * float(self.loss.sum(dtype=torch.float64))

    def measures(self) -> dict[str, Tensor]:
        """What each triplet is to the loss, (t,) each, under the names of `udml_core.explanations.Triplets`."""
        unknown = torch.full_like(self.loss, torch.nan)
        return self.distances() | {"weight": torch.ones_like(self.loss), "similar": unknown, "dissimilar": unknown,
                                   "loss": self.loss}

    def gradient(self) -> Point:
        """∇J with respect to L: RPML's eq. 22 with σ(z) in place of the weights, and the unit's own part."""
        u = self._share() * torch.sigmoid(self.argument / self.unit) / self.unit
        growth = torch.zeros_like(u)
        if self.objective.scale == "relative":
            growth += (u * self.argument).sum() / self.unit / len(u)
        return (self._projection_gradient(u - growth, -self.objective.kappa * u - growth),)

    def _share(self) -> float:
        return 1.0 if self.objective.scale == "sum" else 1 / len(self.argument)


def smooth_angular_loss(anchor: Tensor, positive: Tensor, negative: Tensor, projection: Tensor, alpha: float,
                        scale: Scale = "mean") -> Tensor:
    """J = Σ softplus(z) (SSDML eq. 3), or its mean, by autograd: for the network's step, and as the test of the closed
    form.

    relative: the mean of softplus(z/u), u = mean(δ²(a,p) + δ²(n,m)). Unlike eq. 3 it does not change when all
    embeddings grow alike, so that nothing is won by it.
    """
    anchor, positive, negative = anchor @ projection, positive @ projection, negative @ projection
    z = angular_argument(anchor, positive, negative, alpha)
    if scale == "relative":
        far = negative - (anchor + positive) / 2
        z = z / (_squared(anchor - positive) + _squared(far)).mean().clamp_min(TINY)
    losses = _softplus(z)
    return losses.sum() if scale == "sum" else losses.mean()


class WeightedAngular(_Triplets):
    """J of eq. 12 on R^{d×l} × Grassmann (bilinear) or R^{2d} × Grassmann (concatenated), for fixed triplets.

    Args:
        points, triplets, alpha: as everywhere here. weight: the form of w.
    """

    def __init__(self, points: Tensor, triplets: Tensor, alpha: float, weight: Weight) -> None:
        super().__init__(points, triplets, alpha)
        self.weight = weight

    def __call__(self, point: Point) -> WeightedAngularEvaluation:
        return WeightedAngularEvaluation(self, *point)


class WeightedAngularEvaluation(_Projected):
    """J at (R or r, L).

    argument z (t,), weight w (t,) and value J: the quantities of eq. 8, 10 or 25, and 12.
    """

    objective: WeightedAngular

    def __init__(self, objective: WeightedAngular, parameter: Tensor, projection: Tensor) -> None:
        super().__init__(objective, projection)
        self.parameter = parameter
        self.weight = self._bilinear() if objective.weight == "bilinear" else self._concatenated()
        self.metric_loss = _softplus(self.argument)
        self.weighted = self.weight * self.metric_loss
        self.value = float(_softplus(self.weighted).sum(dtype=torch.float64))

    def measures(self) -> dict[str, Tensor]:
        """What each triplet is to the loss, (t,) each, under the names of `udml_core.explanations.Triplets`."""
        unknown = torch.full_like(self.weight, torch.nan)
        parts = self.objective.weight == "bilinear"
        return self.distances() | {
            "weight": self.weight, "similar": torch.sigmoid(self.similar) if parts else unknown,
            "dissimilar": torch.sigmoid(-self.dissimilar) if parts else unknown, "loss": _softplus(self.weighted)}

    def gradient(self) -> Point:
        """∇J with respect to the weight's parameter (eq. 21 or 28) and L (eq. 22)."""
        outer = torch.sigmoid(self.weighted)
        to_weight = outer * self.metric_loss
        if self.objective.weight == "bilinear":
            parameter = self._bilinear_gradient(to_weight)
        else:
            parameter = self._concatenated_gradient(to_weight)
        u = outer * self.weight * torch.sigmoid(self.argument)
        return parameter, self._projection_gradient(u, -self.objective.kappa * u)

    def _bilinear(self) -> Tensor:
        anchor, positive, negative = self._rows(self.objective.points @ self.parameter)
        self.similar = (anchor * positive).sum(1)
        self.dissimilar = ((anchor + positive) / 2 * negative).sum(1)
        self.bilinear_rows = anchor, positive, negative
        return (torch.sigmoid(self.similar) + torch.sigmoid(-self.dissimilar)) / 2

    def _bilinear_gradient(self, to_weight: Tensor) -> Tensor:
        """½[Aᵀdiag(q⁺)PR + Pᵀdiag(q⁺)AR − Mᵀdiag(q⁻)NR − Nᵀdiag(q⁻)MR], q± = g∘h±∘μ (eq. 28)."""
        anchor, positive, negative = self.bilinear_rows
        similar = (to_weight * _slope(self.similar) / 2)[:, None]
        dissimilar = (to_weight * _slope(self.dissimilar) / 2)[:, None]
        shared = dissimilar / 2 * negative
        return self._scatter(similar * positive - shared, similar * anchor - shared,
                             -dissimilar * (anchor + positive) / 2)

    def _concatenated(self) -> Tensor:
        middle, far = self.parameter.chunk(2)
        on_middle, on_far = self.objective.points @ middle, self.objective.points @ far
        objective = self.objective
        self.score = (on_middle[objective.anchor] + on_middle[objective.positive]) / 2 + on_far[objective.negative]
        return torch.sigmoid(self.score)

    def _concatenated_gradient(self, to_weight: Tensor) -> Tensor:
        """Cᵀ(g∘h∘μ), C = [M, N] (eq. 21)."""
        share = to_weight * _slope(self.score)
        objective = self.objective
        on_middle, on_far = (torch.zeros(len(objective.points), dtype=share.dtype, device=share.device)
                             for _ in range(2))
        on_middle.index_add_(0, objective.anchor, share / 2).index_add_(0, objective.positive, share / 2)
        on_far.index_add_(0, objective.negative, share)
        return torch.cat([on_middle @ objective.points, on_far @ objective.points])


def triplets_used(triplets: Tensor, measured: Sequence[Mapping[str, Tensor]]) -> Triplets:
    """Triplets (t, 3) with what the loss made of them: the evaluations' measures, in the triplets' order."""
    return Triplets(*triplets.unbind(1), **{name: torch.cat([one[name] for one in measured]) for name in measured[0]})


def _softplus(values: Tensor) -> Tensor:
    """log(1+eˣ), exact in float64 too: torch's own switches to x already at 20."""
    return functional.softplus(values, threshold=40.0)


def _squared(rows: Tensor) -> Tensor:
    return rows.square().sum(1)


def _slope(score: Tensor) -> Tensor:
    """σ′ = σ(s)σ(−s)."""
    return torch.sigmoid(score) * torch.sigmoid(-score)
