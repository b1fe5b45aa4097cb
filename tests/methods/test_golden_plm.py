"""PLM: two epochs with the encoder, repeated literally with plain torch."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from tests.methods.golden_steps import (
    IMAGES,
    SEED,
    WIDTH,
    Network,
    adam,
    assert_same_embedder,
    assert_same_state,
    double_precision,
    features,
    last_epoch,
    nearest_rows,
    network_of,
    random_frame,
    tiny_data,
    tiny_setting,
    trainable,
    unit,
)
from tests.tiers import fast_first
from udml_core.data.augmentation import Augmentation
from udml_core.data.training_data import TrainingData
from udml_core.methods import Setting
from udml_core.methods.fields import BatchNorm, CenteredBeginning
from udml_core.methods.plm import PLM
from udml_core.numerics.sampling import generator

DIMENSION, BATCH, GROUP, PROXIES, CANDIDATES, FLAT, THRESHOLD = 6, 12, 4, 5, 6, 2, 0.8
RATE, PROXY_RATE, MOMENTUM, N_ALPHA, N_BETA, SCALE, EPOCHS = 0.003, 3.0, 0.7, 3.0, 0.7, 1.5, 2
CROPS = Augmentation(smallest=0.16, flip=True, gray=0.0, jitter=None)


def embed(network: Network, images: Tensor, follows: bool) -> Tensor:
    return unit(features(network, images, follows) @ network["weight"] + network.get("bias", torch.zeros(())))


def centered_head(rows: Tensor) -> Network:
    """Return the principal components of centered features, and the bias that subtracts their mean."""
    mean = rows.mean(0)
    directions = torch.linalg.svd(rows - mean, full_matrices=False)[2][:DIMENSION].T
    weight = directions * directions.sum(0).sign()
    return {"weight": weight, "bias": -mean @ weight}


def top_directions(offsets: Tensor) -> Tensor:
    """Return the top m right singular vectors, (l, m)."""
    return torch.linalg.svd(offsets, full_matrices=False)[2][:FLAT].T


def neighborhood(points: Tensor, row: int, near: list[int]) -> tuple[Tensor, int]:
    """Return P_i and the number of members.

    A candidate must leave a share T of every member in the subspace.
    """
    members = near[:FLAT]
    for candidate in near[FLAT:]:
        offsets = points[[*members, candidate]] - points[row]
        inside = (offsets @ top_directions(offsets)).square().sum(1)
        if (inside >= THRESHOLD * offsets.square().sum(1)).all():
            members = [*members, candidate]
    return top_directions(points[members] - points[row]), len(members)


def directed(points: Tensor, centers: Tensor, bases: Tensor) -> Tensor:
    """Return the similarity s′ (n, c) with the neighborhood at j (eq. 2–4).

    s′(i,j) = (1+o/2)^−Nα·(1+p)^−Nβ.
    """
    offsets = points[:, None] - centers
    along = torch.einsum("ncd,cdm->ncm", offsets, bases).norm(dim=2)
    across = (offsets.square().sum(2) - along.square()).clamp_min(0).sqrt()
    return (1 + across / 2) ** -N_ALPHA * (1 + along) ** -N_BETA


def objective(student: Tensor, teacher: Tensor, bases: Tensor, places: Tensor, directions: Tensor) -> Tensor:
    """Return the loss (eq. 6–9) with constant similarities.

    L = (L_point + L_proxy + L_neigh)/|B|².
    """
    proxies = unit(places)
    among = directed(teacher, teacher, bases)
    among = (among + among.T) / 2
    fixed = proxies.detach()
    to_proxies = (directed(teacher, fixed, directions.detach()) + directed(fixed, teacher, bases).T) / 2
    first, second = torch.nonzero(~torch.eye(len(student), dtype=torch.bool)).T
    points = (SCALE * (1 - among[first, second]) - (student[first] - student[second]).norm(dim=1)).square().sum()
    proxy = (SCALE * (1 - to_proxies) - (student[:, None] - proxies).norm(dim=2)).square().sum()
    cosine = torch.einsum("ndp,cdk->ncpk", bases, directions / directions.norm(dim=1, keepdim=True)).norm(dim=2)
    return (points + proxy + (to_proxies[:, :, None] - cosine).square().sum()) / len(student) ** 2


def straight(directions: Tensor) -> Tensor:
    """Orthonormalize the columns one after another (Gram–Schmidt)."""
    columns: list[Tensor] = []
    for column in directions.unbind(2):
        for done in columns:
            column = column - (column * done).sum(1, keepdim=True) * done
        columns.append(unit(column))
    return torch.stack(columns, dim=2)


def literal_training(data: TrainingData, setting: Setting, batch_norm: BatchNorm,
                     head: Network) -> tuple[dict[str, Tensor], list[float]]:
    """Return the state after two epochs, and the loss of each batch of the last epoch."""
    student = network_of(setting) | head
    teacher, images = dict(student), data.images(torch.arange(IMAGES))
    points = embed(student, images, False)
    drawn = torch.randperm(IMAGES, generator=generator(SEED, 0))[:PROXIES]
    places = points[drawn]
    near = (places[:, None] - points).square().sum(2).argsort(1)[:, :CANDIDATES]
    directions = torch.stack([top_directions(points[rows] - place) for rows, place in zip(near, places, strict=True)])
    moments: dict[str, dict[str, Tensor]] = {}
    time, members = 0, list[int]()
    for epoch in range(1, EPOCHS + 1):
        random, losses = generator(SEED, epoch), []
        neighbors = nearest_rows(embed(student, images, False), GROUP - 1)
        order = torch.randperm(IMAGES, generator=random)
        for seeds in order[:IMAGES // BATCH * (BATCH // GROUP)].split(BATCH // GROUP):
            batch = images[torch.cat([seeds[:, None], neighbors[seeds]], dim=1).flatten()].double()
            draws = [torch.rand(BATCH, 23, generator=random) for _ in range(2)]
            views = torch.cat([CROPS.apply(batch, draw) for draw in draws])
            # The teacher keeps its statistics; only its average with the student moves it.
            targets = embed(teacher, views, False)
            candidates = nearest_rows(targets, CANDIDATES).tolist()
            bases, sizes = zip(*(neighborhood(targets, row, near) for row, near in enumerate(candidates)), strict=True)
            members += sizes
            weights, time = trainable(student, batch_norm), time + 1
            places, directions = (part.detach().requires_grad_() for part in (places, directions))
            rows = embed(student, views, batch_norm == "batch")
            loss = objective(rows, targets, torch.stack(bases), places, directions)
            parameters = weights | {"places": places, "directions": directions}
            gradients = torch.autograd.grad(loss, [*parameters.values()])
            adam(parameters, moments, gradients, time, dict.fromkeys(("places", "directions"), PROXY_RATE * RATE), RATE)
            student |= {name: parameters[name] for name in weights}
            places, directions = parameters["places"], straight(parameters["directions"])
            for name, value in student.items():
                floating = value.is_floating_point()
                teacher[name] = MOMENTUM * teacher[name] + (1 - MOMENTUM) * value if floating else value
            losses.append(loss.item())
    assert FLAT < sum(members) / len(members) < CANDIDATES, "some candidates should be admitted and some rejected"
    state = {"epoch": torch.tensor(EPOCHS), "proxies.places": places, "proxies.directions": directions}
    for role, network in (("student.", student), ("teacher.", teacher)):
        state |= {role + part_of(name): value for name, value in network.items()}
    for name, values in moments.items():
        owner = "" if name in {"places", "directions"} else "student."
        state |= {f"optimizer.{owner}{part_of(name)}.{key}": value for key, value in values.items()}
    return state, losses


def part_of(name: str) -> str:
    """Return a tensor's name in the state.

    The encoder's tensors have a prefix, the head's and the proxies' none.
    """
    return f"encoder.{name}" if name.startswith("network.") else name


def with_equal_signs(state: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give each singular vector of the state the expected sign.

    The sign is arbitrary and has no effect.
    """
    signs = (state["proxies.directions"] * expected["proxies.directions"]).sum(1, keepdim=True).sign()
    turned = ("proxies.directions", "optimizer.directions.exp_avg")
    return {name: value * signs if name in turned else value for name, value in state.items()}


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("batch_norm", fast_first(["batch", "frozen", "statistics"]))
@pytest.mark.parametrize("beginning", ["random", "centered"])
@double_precision()
def test_two_epochs_equal_the_algorithm_written_out(beginning: CenteredBeginning, batch_norm: BatchNorm,
                                                    resumed: bool) -> None:
    setting = tiny_setting()
    data = tiny_data(setting)
    method = PLM(trains="all", dimension=DIMENSION, batch=BATCH, group=GROUP, proxies=PROXIES,
                 candidates=CANDIDATES, flat=FLAT, threshold=THRESHOLD, learning_rate=RATE, proxy_rate=PROXY_RATE,
                 momentum=MOMENTUM, n_alpha=N_ALPHA, n_beta=N_BETA, scale=SCALE, epochs=EPOCHS, beginning=beginning,
                 batch_norm=batch_norm)
    head = centered_head(unit(data.features)) if beginning == "centered" else {
        "weight": random_frame(WIDTH, DIMENSION, SEED)}
    expected, losses = literal_training(data, setting, batch_norm, head)
    assert len(losses) >= 2, "Adam's moments and the teacher act from the second batch on"
    epoch = last_epoch(method, data, setting, resumed)
    assert_same_state(with_equal_signs(epoch.state, expected), expected)
    assert epoch.losses["loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-8)
    student = {name.removeprefix("student.encoder."): value for name, value in expected.items()}
    assert_same_embedder(epoch, data, student, expected["student.weight"], expected.get("student.bias", 0.0))
