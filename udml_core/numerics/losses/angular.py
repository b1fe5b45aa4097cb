"""Triplet and angular losses, and the smooth losses of SSDML and RPML.

The smooth losses have closed-form gradients.

U. K. Dutta, M. Harandi, C. Chandra Sekhar, "A Probabilistic Approach for Learning Embeddings without Supervision".
Equation numbers are from this paper unless another is named. Rows are triplets: `anchor`, `positive` and `negative` are
(t, d), or (t, l) after projection.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from udml_core.numerics.explanations import Triplets
from udml_core.numerics.geometry import Evaluation, Point
from udml_core.numerics.geometry.conjugate_gradient import ManifoldFunction

Weight = Literal["bilinear", "concatenated"]
Scale = Literal["mean", "sum", "relative"]
TINY = 1e-12
"""Lower bound of the unit of distances in the relative loss, against division by zero."""


def triplet_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 0.2) -> Tensor:
    """Compute Σ [δ²(a,p) − δ²(a,n) + τ]₊ (eq. 1) of embeddings (t, l), with margin τ."""
    return (_squared(anchor - positive) - _squared(anchor - negative) + margin).clamp_min(0).sum()


def angular_loss(anchor: Tensor, positive: Tensor, negative: Tensor, alpha: float = 45.0) -> Tensor:
    """Compute Σ [δ²(a,p) − 4tan²α δ²(n,m)]₊ (eq. 2) of embeddings (t, l).

    α is in degrees.
    """
    return angular_argument(anchor, positive, negative, alpha).clamp_min(0).sum()


def angular_argument(anchor: Tensor, positive: Tensor, negative: Tensor, alpha: float) -> Tensor:
    """Compute z = δ²(a,p) − 4tan²α δ²(n,m) with m = (a+p)/2 (eq. 8), (t,).

    A triplet violates the bound on its half angle exactly when z > 0.
    """
    return _squared(anchor - positive) - tightness(alpha) * _squared(negative - (anchor + positive) / 2)


def angle(anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """Compute half the symmetrized triangle's angle at the negative, (t,) in degrees.

    It is arctan(‖a−p‖ / 2‖n−m‖), the angle between a side and the median, and exceeds α exactly when z > 0. The vertex
    angle a–n–p does not have this property.
    """
    base = _squared(anchor - positive).sqrt()
    height = _squared(negative - (anchor + positive) / 2).sqrt()
    return torch.atan2(base, 2 * height).rad2deg()


def tightness(alpha: float) -> float:
    """Return κ = 4tan²α, with α in degrees."""
    return 4.0 * math.tan(math.radians(alpha)) ** 2


def bilinear_weight(anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """Compute w = (σ(aᵀp) + 1 − σ(mᵀn))/2, (t,) (eq. 25–27).

    The rows are already multiplied by R.
    """
    similar = (anchor * positive).sum(1)
    dissimilar = ((anchor + positive) / 2 * negative).sum(1)
    return (torch.sigmoid(similar) + torch.sigmoid(-dissimilar)) / 2


def concatenated_weight(anchor: Tensor, positive: Tensor, negative: Tensor, parameter: Tensor) -> Tensor:
    """Compute w = σ(rᵀ[m; n]), (t,), with r (2d,) (eq. 10)."""
    middle, far = parameter.chunk(2)
    return torch.sigmoid((anchor + positive) / 2 @ middle + negative @ far)


def weighted_angular_loss(anchor: Tensor, positive: Tensor, negative: Tensor, parameter: Tensor, projection: Tensor,
                          alpha: float, weight: Weight) -> Tensor:
    """Compute J = Σ softplus(w·softplus(z)) (eq. 7, 9, 12) for autograd.

    The step on the network uses it, and the tests of the closed-form gradient.

    Args:
        anchor: (t, d).
        positive: (t, d).
        negative: (t, d).
        parameter: R (d, l) for the bilinear weight, r (2d,) for the concatenated weight.
        projection: L (d, l).
        alpha: α in degrees.
        weight: The form of w.
    """
    z = angular_argument(anchor @ projection, positive @ projection, negative @ projection, alpha)
    if weight == "bilinear":
        w = bilinear_weight(anchor @ parameter, positive @ parameter, negative @ parameter)
    else:
        w = concatenated_weight(anchor, positive, negative, parameter)
    return _softplus(w * _softplus(z)).sum()


class _Triplets(ManifoldFunction):
    """Points and fixed triplets of these points.

    Args:
        points: X (n, d), unit rows.
        triplets: (t, 3) int64, row numbers of anchor, positive and negative.
        alpha: α in degrees.
    """

    # Each point is projected once, and the triplets gather the projected rows. A value then costs O(n·d·l + t·l), a
    # gradient the same, and no d×d matrix appears.

    def __init__(self, points: Tensor, triplets: Tensor, alpha: float) -> None:
        used, compact = torch.unique(triplets, return_inverse=True)
        self.points = points if len(used) == len(points) else points[used]
        self.anchor, self.positive, self.negative = compact.unbind(1)
        self.kappa = tightness(alpha)


class _Projected(Evaluation):
    """The triplets' points multiplied by L, and the argument z (t,) of eq. 8."""

    def __init__(self, objective: _Triplets, projection: Tensor) -> None:
        self.objective = objective
        self.projection = projection
        anchor, positive, negative = self._rows(objective.points @ projection)
        self.base = anchor - positive
        self.median = negative - (anchor + positive) / 2
        self.argument = _squared(self.base) - objective.kappa * _squared(self.median)

    def distances(self) -> dict[str, Tensor]:
        """Return each triplet's argument and squared distances, (t,) each.

        The names are as in `explanations.Triplets`.
        """
        return {"argument": self.argument, "near": _squared(self.base), "far": _squared(self.median),
                "side": _squared(self.median - self.base / 2)}

    def _projection_gradient(self, to_base: Tensor, to_median: Tensor) -> Tensor:
        """Compute 2(A−P)ᵀdiag(u)(A−P)L + 2(N−M)ᵀdiag(v)(N−M)L, (d, l).

        Args:
            to_base: u (t,), the derivative of J with respect to δ²(a,p).
            to_median: v (t,), the derivative of J with respect to δ²(n,m).
        """
        # δ²(n,m) depends on n with factor 2, and through the midpoint m = (a+p)/2 on a and p with factor −1 each.
        base = 2 * to_base[:, None] * self.base
        median = to_median[:, None] * self.median
        return self._scatter(base - median, -base - median, 2 * median)

    def _rows(self, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        objective = self.objective
        return values[objective.anchor], values[objective.positive], values[objective.negative]

    def _scatter(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Sum the triplets' contributions (t, l) per point and multiply by Xᵀ, (d, l)."""
        objective = self.objective
        sums = anchor.new_zeros(len(objective.points), anchor.shape[1])
        sums.index_add_(0, objective.anchor, anchor)
        sums.index_add_(0, objective.positive, positive)
        sums.index_add_(0, objective.negative, negative)
        return objective.points.mT @ sums


class SmoothAngular(_Triplets):
    """J of SSDML eq. 3 as a function of L, for fixed triplets.

    Args:
        points: X (n, d), unit rows.
        triplets: (t, 3) int64, row numbers of anchor, positive and negative.
        alpha: α in degrees.
        scale: "sum", "mean" or "relative"; see `smooth_angular_loss`.
    """

    def __init__(self, points: Tensor, triplets: Tensor, alpha: float, scale: Scale = "mean") -> None:
        super().__init__(points, triplets, alpha)
        self.scale = scale

    def __call__(self, point: Point) -> SmoothAngularEvaluation:
        return SmoothAngularEvaluation(self, *point)


class SmoothAngularEvaluation(_Projected):
    """J at L.

    Attributes:
        unit: The unit of squared distances: their mean u in the relative form, otherwise 1.
        loss: (t,), softplus(z/unit).
        value: J.
    """

    objective: SmoothAngular

    def __init__(self, objective: SmoothAngular, projection: Tensor) -> None:
        super().__init__(objective, projection)
        self.unit = 1.0
        if objective.scale == "relative":
            self.unit = max(float((_squared(self.base) + _squared(self.median)).mean()), TINY)
        self.loss = _softplus(self.argument / self.unit)
        self.value = self._share() * float(self.loss.sum(dtype=torch.float64))

    def measures(self) -> dict[str, Tensor]:
        """Return each triplet's part in the loss, (t,) each.

        The names are as in `explanations.Triplets`.
        """
        unknown = torch.full_like(self.loss, torch.nan)
        return self.distances() | {"weight": torch.ones_like(self.loss), "similar": unknown, "dissimilar": unknown,
                                   "loss": self.loss}

    def gradient(self) -> Point:
        """Compute ∇J with respect to L: RPML's eq. 22 with σ(z) instead of the weights."""
        u = self._share() * torch.sigmoid(self.argument / self.unit) / self.unit
        growth = torch.zeros_like(u)
        if self.objective.scale == "relative":
            # The unit depends on L as well. Its derivative is the same for every squared distance.
            growth += (u * self.argument).sum() / self.unit / len(u)
        return (self._projection_gradient(u - growth, -self.objective.kappa * u - growth),)

    def _share(self) -> float:
        return 1.0 if self.objective.scale == "sum" else 1 / len(self.argument)


def smooth_angular_loss(anchor: Tensor, positive: Tensor, negative: Tensor, projection: Tensor, alpha: float,
                        scale: Scale = "mean") -> Tensor:
    """Compute the smooth angular loss (SSDML eq. 3) for autograd.

    The step on the network uses it, and the tests of the closed-form gradient.

    Args:
        anchor: (t, d).
        positive: (t, d).
        negative: (t, d).
        projection: L (d, l).
        alpha: α in degrees.
        scale: "sum" gives Σ softplus(z) as printed, "mean" its mean. "relative" gives the mean of softplus(z/u) with
            u = mean(δ²(a,p) + δ²(n,m)). Unlike the other two it does not change when all embeddings are scaled by one
            factor, so growth alone cannot lower it.
    """
    anchor, positive, negative = anchor @ projection, positive @ projection, negative @ projection
    z = angular_argument(anchor, positive, negative, alpha)
    if scale == "relative":
        far = negative - (anchor + positive) / 2
        z = z / (_squared(anchor - positive) + _squared(far)).mean().clamp_min(TINY)
    losses = _softplus(z)
    return losses.sum() if scale == "sum" else losses.mean()


class WeightedAngular(_Triplets):
    """J of eq. 12 for fixed triplets.

    The manifold is R^{d×l} × Grassmann (bilinear) or R^{2d} × Grassmann (concatenated).

    Args:
        points: X (n, d), unit rows.
        triplets: (t, 3) int64, row numbers of anchor, positive and negative.
        alpha: α in degrees.
        weight: The form of w.
    """

    def __init__(self, points: Tensor, triplets: Tensor, alpha: float, weight: Weight) -> None:
        super().__init__(points, triplets, alpha)
        self.weight = weight

    def __call__(self, point: Point) -> WeightedAngularEvaluation:
        return WeightedAngularEvaluation(self, *point)


class WeightedAngularEvaluation(_Projected):
    """J at (R or r, L).

    Attributes:
        argument: z (t,) (eq. 8).
        weight: w (t,) (eq. 10 or 25).
        metric_loss: μ = softplus(z), (t,) (eq. 7).
        weighted: f = w·μ, (t,) (eq. 9).
        value: J (eq. 12).
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
        """Return each triplet's part in the loss, (t,) each.

        The names are as in `explanations.Triplets`.
        """
        unknown = torch.full_like(self.weight, torch.nan)
        is_bilinear = self.objective.weight == "bilinear"
        return self.distances() | {
            "weight": self.weight, "similar": torch.sigmoid(self.similar) if is_bilinear else unknown,
            "dissimilar": torch.sigmoid(-self.dissimilar) if is_bilinear else unknown, "loss": _softplus(self.weighted)}

    def gradient(self) -> Point:
        """Compute ∇J with respect to the weight's parameter (eq. 21 or 28) and L (eq. 22)."""
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
        """Compute the gradient in R (eq. 28).

        It is ½[Aᵀdiag(q⁺)PR + Pᵀdiag(q⁺)AR − Mᵀdiag(q⁻)NR − Nᵀdiag(q⁻)MR], q± = g∘h±∘μ.
        """
        anchor, positive, negative = self.bilinear_rows
        similar = (to_weight * _slope(self.similar) / 2)[:, None]
        dissimilar = (to_weight * _slope(self.dissimilar) / 2)[:, None]
        shared = dissimilar / 2 * negative  # M is the mean of A and P, so its part is shared equally
        return self._scatter(similar * positive - shared, similar * anchor - shared,
                             -dissimilar * (anchor + positive) / 2)

    def _concatenated(self) -> Tensor:
        middle, far = self.parameter.chunk(2)
        on_middle, on_far = self.objective.points @ middle, self.objective.points @ far
        objective = self.objective
        self.score = (on_middle[objective.anchor] + on_middle[objective.positive]) / 2 + on_far[objective.negative]
        return torch.sigmoid(self.score)

    def _concatenated_gradient(self, to_weight: Tensor) -> Tensor:
        """Compute Cᵀ(g∘h∘μ) with C = [M, N] (eq. 21)."""
        share = to_weight * _slope(self.score)
        objective = self.objective
        on_middle, on_far = (torch.zeros(len(objective.points), dtype=share.dtype, device=share.device)
                             for _ in range(2))
        on_middle.index_add_(0, objective.anchor, share / 2).index_add_(0, objective.positive, share / 2)
        on_far.index_add_(0, objective.negative, share)
        return torch.cat([on_middle @ objective.points, on_far @ objective.points])


def triplets_used(triplets: Tensor, measures: Sequence[Mapping[str, Tensor]]) -> Triplets:
    """Combine triplets (t, 3) with the measures of their evaluations.

    The evaluations follow the order of the triplets.
    """
    return Triplets(*triplets.unbind(1), **{name: torch.cat([part[name] for part in measures]) for name in measures[0]})


def _softplus(values: Tensor) -> Tensor:
    """Compute log(1+eˣ) to float64 precision.

    torch's default returns x itself from 20 on.
    """
    return functional.softplus(values, threshold=40.0)


def _squared(rows: Tensor) -> Tensor:
    return rows.square().sum(1)


def _slope(score: Tensor) -> Tensor:
    """Return σ′ = σ(s)σ(−s).

    It keeps digits that σ(1 − σ) loses where σ rounds to 1.
    """
    return torch.sigmoid(score) * torch.sigmoid(-score)
