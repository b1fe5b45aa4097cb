"""PLM: piecewise-linear manifolds and proxies with linear neighborhoods.

S. Bhatnagar, N. Ahuja, "Piecewise-Linear Manifolds for Deep Metric Learning"; equation numbers are that paper's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from udml_core.base.declaration import Shown
from udml_core.base.errors import UserError
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Epoch, Method, Setting, State
from udml_core.methods.embedder import Embedder, unit
from udml_core.methods.fields import BatchNorm, CenteredBeginning, Dimension, Epochs, KeptViews, Trains
from udml_core.methods.shared.distributed import agree, gather_rows
from udml_core.methods.shared.epoch_loop import NetworkLoop
from udml_core.methods.shared.projection import check_projection, first_network
from udml_core.methods.shared.training import Network, embed_jointly, trained_parameters
from udml_core.numerics.explanations import Proxies
from udml_core.numerics.graph import Through, linear_neighborhoods, linear_neighborhoods_at
from udml_core.numerics.losses.piecewise import SimilarityKind, piecewise_loss
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.sampling import generator, neighbor_batches


class PLM(Method):
    """Piecewise-linear manifolds of nearest-neighbor batches.

    A linear head learns on features of random views, or the encoder is trained end to end.

    L = (L_point + L_proxy + L_neigh)/|B|² (eq. 9). The similarity s of two points is the mean over both directions of
    α·β with α = (1+o/2)^−Nα and β = (1+p)^−Nβ (eq. 2–5), where o and p are the distances across and along a linear
    neighborhood. L_point and L_proxy fit distances to δ(1−s) (eq. 6–7), L_neigh fits the proxies' directions (eq. 8).

    The embedding is unit(unit(f)·W + b). By default it starts as the principal components of centered features. Without
    centering, all embeddings share a mean, and the first steps only push them apart. The targets δ(1−s) remain larger
    than the distance √2 of two independent directions, so δ = 2 still pushes nearly all pairs apart.

    Departures from the paper by default: a linear head, the rate of the proxies, and neighborhoods through the image
    rather than through the origin of the embedding.
    """

    card: ClassVar[Card] = Card(
        name="plm",
        order=30,
        title="PLM",
        paper="S. Bhatnagar, N. Ahuja: Piecewise-Linear Manifolds for Deep Metric Learning.",
        summary=("Looks at small groups of neighboring images and follows chains of neighbors to decide which images "
                 "belong together; then it trains the distances to agree. It needs no labels, and helps most when "
                 "the network itself is trained."),
        idea=("Fit a low-dimensional linear neighborhood to the nearest neighbors of each image, and admit only "
              "neighbors that lie in it. Two images are similar if a path along these neighborhoods joins them, and "
              "dissimilar if the path leads across; the distances are trained to agree. Proxies with linear "
              "neighborhoods represent the data outside a batch. PLM learns from random views of images, "
              "so that it needs images and no table of vectors."),
        supervision="none",
        promise="may fall",
        source=("Paper, table 1: gains with the encoder trained. A linear head on frozen features starts at PCA and "
                "has little to gain; see the record 'Methods without labels on birds' on the page "
                "Results."),
        on_fixed_features=("Expect next to no gain: on fixed features PLM begins as PCA and stays close to it. The run "
                           "shows linear neighborhoods."))

    shares_batches: ClassVar[bool] = True
    main_fields: ClassVar[tuple[str, ...]] = ("flat", "threshold", "dimension", "trains", "epochs", "learning_rate")

    dimension: Dimension = 128
    trains: Trains = "head"

    epochs: Epochs = 20
    """Epochs; each draws new nearest-neighbor batches. The paper trains a GoogLeNet for 200."""

    learning_rate: Annotated[float, Field(ge=0, le=1), Shown(low=1e-6, high=0.01, logarithmic=True)] = 1e-4
    """Learning rate of Adam on the network. The paper trains a GoogLeNet with 5e-4."""

    proxy_rate: Annotated[float, Field(ge=0, le=10_000),
                          Shown(step=1, high=100, label="Learning rate factor of the proxies")] = 1.0
    """Learning rate of the proxies as a multiple of the network's. With the paper's 100 all proxies can meet in one
    point; the curve 'proxy spread' then falls to 0."""

    candidates: Annotated[int, Field(ge=1, le=200),
                          Shown(symbol="k", step=1, high=50, label="Neighbor candidates")] = 10
    """Nearest embeddings in the batch that may enter a linear neighborhood."""

    flat: Annotated[int, Field(ge=1, le=50),
                    Shown(symbol="m", step=1, high=10, label="Neighborhood dimension")] = 3
    """Dimension of a linear neighborhood."""

    threshold: Annotated[float, Field(gt=0, le=1), Shown(symbol="T", step=0.01, label="Admission threshold")] = 0.9
    """Least share of every member's squared distance that lies within its linear neighborhood."""

    admission: Annotated[bool, Shown(label="Test candidates")] = True
    """Reject candidates that do not fit the linear neighborhood; if off, all candidates are members (ablation 1)."""

    through: Annotated[Through, Shown(label="Neighborhoods pass through")] = "point"
    """Linear neighborhoods pass through their image, with v_j = y_j − y_i, or through the origin of the embedding, with
    v_j = y_j. The paper's count, m points without error and the next one tested, fits the origin: m − 1 neighbors are
    members without a test. Through the image, m are, and at T = 0.9 the test admits hardly any further candidate. If
    features are not centered, vectors from the origin share their mean, and the test admits more."""

    similarity: SimilarityKind = "linear"
    """Similarity from distances along and across neighborhoods (eq. 2–5), or 1 for members and 0 for others
    (ablation 2)."""

    n_alpha: Annotated[float, Field(ge=0, le=100),
                       Shown(symbol="Nα", step=0.1, high=10, label="Decay across neighborhoods")] = 4.0
    """Decay of the similarity with the distance across a neighborhood (eq. 3). At 2Nβ or more, similarity falls faster
    across than along the neighborhood at every distance."""

    n_beta: Annotated[float, Field(ge=0, le=100),
                      Shown(symbol="Nβ", step=0.1, high=10, label="Decay along neighborhoods")] = 0.5
    """Decay of the similarity with the distance along a neighborhood (eq. 4)."""

    scale: Annotated[float, Field(gt=0, le=2), Shown(symbol="δ", step=0.05, label="Target distance")] = 2.0
    """Target distance of images with similarity 0 (eq. 6)."""

    proxies: Annotated[int, Field(ge=0, le=5000), Shown(symbol="Nρ", step=10, high=500)] = 100
    """Number of proxies that represent the data outside a batch."""

    similarity_gradient: Annotated[bool, Shown(label="Gradient through similarities")] = False
    """Let proxies learn through their similarities as well, which the paper leaves open."""

    momentum: Annotated[float, Field(ge=0, lt=1), Shown(symbol="γ", step=0.001, label="Teacher momentum")] = 0.999
    """Momentum of the teacher, an exponential moving average of the network (eq. 1)."""

    batch: Annotated[int, Field(ge=4, le=2000), Shown(step=1, high=400, label="Batch size")] = 100
    """Images in a batch; each appears in two random views."""

    group: Annotated[int, Field(ge=2, le=100), Shown(step=1, high=20, label="Group size")] = 5
    """Size of the groups in a batch: a seed image and its nearest neighbors."""

    views: KeptViews = 4
    """Views of each image that are cached unless the whole encoder is trained: frozen features of random views for the
    head, and activations of the whole image and of random views for the last blocks."""

    whole_view: Annotated[bool, Shown(label="Whole image as a view")] = True
    """Add the whole image to the cached random views, if only the head is trained. Retrieval embeds whole images."""

    beginning: CenteredBeginning = "centered"
    """Initial projection: the principal components of centered features with a learned bias, the principal components
    of the features as they are without a bias, or a random subspace without a bias."""

    batch_norm: BatchNorm = "frozen"
    """Freeze batch normalization as pretrained, freeze only its statistics, or use each batch's statistics, if encoder
    layers are trained."""

    @property
    def cached_views(self) -> int:
        return self.views

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        batches = images / self.batch
        step = 0.02 + 1e-8 * self.batch * width * self.dimension / 100 + 1e-4 * self.proxies
        return batches * step + (7 * images * image_seconds if self.trains_encoder else 0)

    def check(self, images: int, width: int | None) -> None:
        check_projection(type(self).__name__, self.dimension, self.beginning, images, width)
        if not self.flat <= self.candidates:
            raise UserError(f"{type(self).__name__}.flat must be at most the number of candidates {self.candidates}, "
                            f"got {self.flat}. Raise the field 'candidates' or lower 'flat'.")
        if self.flat > self.dimension:
            raise UserError(f"{type(self).__name__}.flat must be at most the embedding's dimension {self.dimension}, "
                            f"got {self.flat}. Lower the field 'flat'.")
        least = max(self.candidates // 2 + 1, self.group)
        if min(images, self.batch) < least:
            raise UserError(f"{type(self).__name__} needs at least {least} training images in a batch for "
                            f"{self.candidates} candidates and groups of {self.group}, got "
                            f"{min(images, self.batch)}. Raise the field 'batch', or lower 'candidates' or 'group'.")

    def initial(self, data: TrainingData, setting: Setting) -> Embedder:
        return self._network(data, setting).embedder(setting.encoder)

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        yield from _PLMLoop(self, data, setting, start).run()

    def _network(self, data: TrainingData, setting: Setting) -> Network:
        return first_network(self, data, setting, self.dimension, self.beginning)

    def _first_proxies(self, points: Tensor, seed: int) -> tuple[Tensor, Tensor]:
        """Return initial proxies (c, l) and directions (c, l, m).

        Proxies start at random training embeddings, distinct while there are enough, and their directions at the local
        principal components.
        """
        rounds = -(-self.proxies // len(points))
        random = generator(seed, 0)
        drawn = [torch.randperm(len(points), generator=random) for _ in range(rounds)]
        sample = torch.cat([*drawn, torch.zeros(0, dtype=torch.int64)])[:self.proxies]
        places = points[sample]
        if not self.proxies:
            return places, points.new_zeros(0, points.shape[1], self.flat)
        array = points.cpu().numpy()
        indices = nearest(array, min(self.candidates, len(points)), array[sample.numpy()])[1]
        neighbors = torch.from_numpy(indices).to(points.device)
        return places, linear_neighborhoods_at(places, points, neighbors, self.flat, admission=False,
                                               through=self.through).basis


class _PLMLoop(NetworkLoop[PLM]):
    """The student, its moving average (the teacher), the proxies, and Adam."""

    def __init__(self, method: PLM, data: TrainingData, setting: Setting, start: State | None) -> None:
        student = method._network(data, setting)
        agree([*student.parameters(), *student.buffers()])
        self.teacher, self.whole = student.momentum_copy(), method.whole_view
        points = embed_jointly(student, data, setting.device)
        self.proxies = _Proxies(*method._first_proxies(points, setting.seed)).to(setting.device)
        named = [(f"student.{name}", parameter) for name, parameter in trained_parameters(student)]
        groups: list[dict[str, Any]] = [
            {"params": [parameter for _, parameter in named]},
            {"params": [*self.proxies.parameters()], "lr": method.learning_rate * method.proxy_rate}]
        super().__init__(method, data, setting, start, student, torch.optim.Adam(groups, lr=method.learning_rate),
                         {"student": student, "teacher": self.teacher, "proxies": self.proxies},
                         [*named, *self.proxies.named_parameters()])
        agree(self.proxies.parameters())

    def _batches(self, epoch: int, random: torch.Generator) -> Iterable[Tensor]:
        points = embed_jointly(self.network, self.data, self.setting.device)
        neighbors = torch.from_numpy(nearest(points.cpu().numpy(), self.method.group - 1)[1])
        agree([neighbors])
        return neighbor_batches(neighbors, min(self.method.batch, len(self.data)), random)

    def _train(self, epoch: int, random: torch.Generator) -> dict[str, float]:
        curves = super()._train(epoch, random)
        self.explained += self.proxies.explained()
        return curves | self.proxies.spread()

    def _step(self, batch: Tensor, inputs: Tensor, random: torch.Generator) -> dict[str, float]:
        """Take one step on two views of every image of a batch (section 3.6.4)."""
        method, images = self.method, len(batch)
        views = self._views(inputs, 2, batch, random)
        # No gradient flows into the teacher: it provides fixed neighborhoods and similarities, and moves only as the
        # average of the student. Otherwise the student could lower its loss by changing its own targets.
        with torch.no_grad():
            targets = gather_rows(self.teacher(views), 2, images)
        neighborhoods = linear_neighborhoods(targets, method.candidates, method.flat, method.threshold,
                                             method.admission, method.through)
        # Routes of the gradients: the student learns from the point and the proxy loss only, through distances. The
        # proxies learn from the proxy loss, and their directions from the neighborhood loss. The similarities are
        # constants, unless `similarity_gradient` opens the route through them to proxies and directions.
        embeddings = gather_rows(self._replica(views), 2, images)
        loss = piecewise_loss(embeddings, targets, neighborhoods, self.proxies.places, self.proxies.directions,
                              n_alpha=method.n_alpha, n_beta=method.n_beta, scale=method.scale, kind=method.similarity,
                              similarity_gradient=method.similarity_gradient)
        self._descend(loss.total, self.proxies.parameters())
        # Adam's step leaves the set of orthonormal directions; distances along a neighborhood need them orthonormal.
        self.proxies.straighten()
        if method.batch_norm == "batch":
            # Each process normalized its own part of the batch. The teacher must be the same in all processes.
            agree(self.network.buffers())
        self.teacher.follow(self.network, method.momentum)
        return {"loss": loss.total.item(), "point loss": loss.point.item(), "proxy loss": loss.proxy.item(),
                "neighborhood loss": loss.neighborhood.item(), "admitted": neighborhoods.members.float().mean().item()}

class _Proxies(nn.Module):
    """Learned proxies.

    Attributes:
        places: ρ (c, l), of any length.
        directions: Ψ (c, l, m), with orthonormal columns.
    """

    def __init__(self, places: Tensor, directions: Tensor) -> None:
        super().__init__()
        self.places = nn.Parameter(places.clone())
        self.directions = nn.Parameter(directions.clone())

    def straighten(self) -> None:
        """Orthonormalize Ψ by a QR decomposition with a positive diagonal of R.

        The positive diagonal keeps the sign of each column, which Adam's moments refer to.
        """
        if not len(self.directions):
            return
        with torch.no_grad():
            q, r = torch.linalg.qr(self.directions)
            self.directions.copy_(q * torch.where(r.diagonal(dim1=1, dim2=2) < 0, -1.0, 1.0)[:, None])

    def spread(self) -> dict[str, float]:
        """Return the mean distance of two proxies.

        Near 0, all proxies represent the same point.
        """
        if len(self.places) < 2:
            return {}
        return {"proxy spread": torch.pdist(unit(self.places.detach())).mean().item()}

    def explained(self) -> tuple[Proxies, ...]:
        """Return the proxies as a record."""
        if not len(self.places):
            return ()
        return (Proxies(unit(self.places.detach()).clone(), self.directions.detach().clone()),)
