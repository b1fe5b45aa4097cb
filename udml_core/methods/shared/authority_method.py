"""The base of RPML and sRPML.

It holds the pseudo-labels by authority ascent, the weight of a triplet, and the search on its manifold.

U. K. Dutta, M. Harandi, C. Chandra Sekhar, "A Probabilistic Approach for Learning Embeddings without Supervision";
equation numbers are that paper's.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Self, TypeVar

import torch
from pydantic import Field
from torch import Tensor

from udml_core.base.declaration import Shown
from udml_core.base.errors import UserError
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Method, Setting, State
from udml_core.methods.embedder import Embedder, Head, unit
from udml_core.methods.fields import Angle, Beginning, Dimension, Epochs, UnitLength
from udml_core.methods.shared.distributed import agree
from udml_core.methods.shared.epoch_loop import EncoderLoop
from udml_core.methods.shared.manifold_search import ManifoldSearch
from udml_core.methods.shared.projection import check_projection, first_projection
from udml_core.numerics.explanations import Clusters
from udml_core.numerics.geometry import Euclidean, Grassmann, Point, Product
from udml_core.numerics.graph import AuthorityGraph
from udml_core.numerics.losses.angular import Weight

FEWEST_IMAGES = 3
"""Images of the smallest training half with a triplet."""
EPSILONS = tuple(step / 100 for step in range(1, 100))
"""Values of ε that are tried where the default gives no positives or no negatives."""


class AuthorityMethod(Method):
    """Pseudo-labels, triplet weight, search space and initial point of RPML and sRPML."""

    needs_different_images: ClassVar[bool] = True
    clusters_by_ascent: ClassVar[bool] = True

    alpha: Angle = 45.0
    """Upper bound on half the angle at the negative (eq. 8). A smaller angle requires more distant negatives."""

    epsilon: Annotated[float, Field(ge=0, le=1), Shown(symbol="ε", step=0.01, label="Strictness of groups")] = 0.65
    """Least relevancy of an edge that authority ascent may follow (eq. 4). Lower values give fewer, larger clusters."""

    gamma: Annotated[float, Field(ge=0, le=100_000),
                     Shown(symbol="γ", step=1, high=1000, label="Authority factor")] = 100.0
    """Factor by which a difference in authority lowers the relevancy of an edge (eq. 3)."""

    n_neighbors: Annotated[int, Field(ge=2, le=500), Shown(symbol="k", step=1, high=200)] = 50
    """Neighbors of each image in the graph, at most the number of images less one."""

    dimension: Dimension = 128

    weight: Annotated[Weight, Shown(label="Triplet weight")] = "bilinear"
    """Weight of a triplet: the mean of two bilinear similarities (eq. 25, RPMLv1), or a function of the concatenated
    triplet (eq. 10), whose optimum is the collapse of all weights to 0."""

    beginning: Beginning = "random"
    """Initial projection: a random subspace as in the paper, or the principal components."""

    unit_length: UnitLength = False
    """Scale embeddings to unit length. By default, images are compared by the distance δ_L that the loss learns."""

    epochs: Epochs = 10
    """Epochs; each draws new triplets."""

    def check(self, images: int, width: int | None) -> None:
        if images < FEWEST_IMAGES:
            raise UserError(f"{type(self).__name__} needs at least {FEWEST_IMAGES} training images, two similar ones "
                            f"and a different one; got {images}. Add images, or choose another split or method.")
        check_projection(type(self).__name__, self.dimension, self.beginning, images, width)

    def suited(self, features: Tensor) -> Self:
        """Return the method with the ε nearest to the default that gives positives and negatives.

        The images of a small data set can all reach one mode at the default ε. Without such an ε, or with a given one,
        the method stays as it is.
        """
        if "epsilon" in self.model_fields_set or len(features) < FEWEST_IMAGES:
            return self
        graph = self._graph(features)
        for epsilon in sorted([self.epsilon, *EPSILONS], key=lambda value: abs(value - self.epsilon)):
            if 1 < len(graph.clusters(epsilon, self.gamma).modes) < len(features):
                return self.model_copy(update={"epsilon": epsilon}) if epsilon != self.epsilon else self
        return self

    def check_features(self, features: Tensor) -> None:
        self._clusters(features)

    def initial(self, data: TrainingData, setting: Setting) -> Embedder:
        return Embedder(setting.encoder, self._head(self._first_point(data, setting)))

    def _first_point(self, data: TrainingData, setting: Setting) -> Point:
        """Return the initial parameter of the weight and the initial L.

        R starts at a seeded Gaussian/√d, because R = 0 is a stationary point of eq. 28. r starts at 0, where w = ½.
        """
        rows = unit(data.features)
        self.check(*rows.shape)
        width = rows.shape[1]
        projection = first_projection(rows, self.dimension, self.beginning, setting.seed)
        if self.weight == "bilinear":
            parameter = Euclidean(width, self.dimension, scale=width**-0.5).random(setting.seed + 1)[0]
        else:
            parameter = torch.zeros(2 * width)
        return parameter.to(setting.device), projection.to(setting.device)

    def _head(self, point: Point) -> Head:
        """Return the projection by L, so that distances of embeddings are δ_L of unit features."""
        return Head(point[1], normalized=self.unit_length)

    def _manifold(self, width: int) -> Product:
        """Return R^{d×l} × Grassmann(l, d), or R^{2d} × Grassmann(l, d) (eq. 13)."""
        shape = (width, self.dimension) if self.weight == "bilinear" else (2 * width,)
        return Product(Euclidean(*shape), Grassmann(width, self.dimension))

    def _graph(self, features: Tensor) -> AuthorityGraph:
        return AuthorityGraph.build(unit(features).numpy(), min(self.n_neighbors, len(features) - 1))

    def _clusters(self, features: Tensor) -> Clusters:
        """Compute the pseudo-labels of frozen features (n, d).

        Raises:
            UserError: No cluster has two images, or all images are in one cluster.
        """
        clusters = self._graph(features).clusters(self.epsilon, self.gamma)
        if len(clusters.modes) == 1:
            raise UserError(f"Authority ascent put all {len(features)} images into one cluster at "
                            f"ε={self.epsilon:g}, so there are no negatives. Raise the field 'epsilon'.")
        if len(clusters.modes) == len(features):
            raise UserError(f"Authority ascent left each of the {len(features)} images alone at ε={self.epsilon:g}, so "
                            "there are no positives. Lower the field 'epsilon'.")
        return Clusters(*(torch.from_numpy(part) for part in (clusters.labels, clusters.modes, clusters.parents)))


AnyAuthorityMethod = TypeVar("AnyAuthorityMethod", bound=AuthorityMethod)


class AuthorityLoop(EncoderLoop[AnyAuthorityMethod]):
    """The search for the weight's parameter and L, on pseudo-labels that never change.

    Attributes:
        search: The search for both.
        labels: The pseudo-labels (n,).
    """

    def __init__(self, method: AnyAuthorityMethod, data: TrainingData, setting: Setting, start: State | None) -> None:
        """Compute or load the pseudo-labels; new ones are explained in the first epoch."""
        super().__init__(method, data, setting, start)
        if start is None:
            clusters = method._clusters(data.features)
            self.explained.append(clusters)
            self.labels, point, step = clusters.labels, method._first_point(data, setting), 0.0
        else:
            point = (start["parameter"].to(setting.device), start["projection"].to(setting.device))
            self.labels, step = start["labels"], float(start["step"])
        agree([self.labels])
        self.search = ManifoldSearch(method._manifold(data.features.shape[1]), point, step)

    def _head(self) -> Head:
        return self.method._head(self.search.point)

    def _state(self) -> dict[str, Tensor]:
        parameter, projection = self.search.point
        return super()._state() | {"parameter": parameter, "projection": projection, "labels": self.labels,
                                   "step": torch.tensor(self.search.step, dtype=torch.float64)}
