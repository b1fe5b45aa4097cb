"""PLM: a step computed by hand, the effect of every field, and rejected fields."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch

from tests.tiers import fast_first
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.augmentation import Augmentation
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import features_of, views_of
from udml_core.data.splits import make_split
from udml_core.data.training_data import TrainingData, training_data
from udml_core.methods import Epoch, Setting
from udml_core.methods.embedder import unit
from udml_core.methods.plm import PLM, _Proxies
from udml_core.methods.shared.projection import first_projection
from udml_core.numerics.explanations import Proxies
from udml_core.numerics.graph import Through, linear_neighborhoods
from udml_core.numerics.losses.piecewise import piecewise_loss, point_loss, similarity
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.sampling import generator, neighbor_batches

TINY: dict[str, Any] = {"dimension": 16, "epochs": 2, "proxies": 12, "learning_rate": 0.002}


@cache
def training_setup() -> tuple[TrainingData, Setting]:
    dataset = catalog.load("digits")
    encoder = Encoder(choose_spec("pixels", dataset.native_size, dataset.gray))
    train = make_split(dataset, "zero-shot").train
    views = views_of(dataset, encoder, train, 4, Augmentation(), 0)
    data = training_data(features_of(dataset, encoder), None, train, "none", views=views)
    return data, Setting(0, torch.device("cpu"), encoder)


def fit_epochs(**fields: Any) -> list[Epoch]:
    return list(PLM(**TINY | fields).fit(*training_setup()))


def drawn_views(points: torch.Tensor, epoch: int, whole: bool = True) -> torch.Tensor:
    """Return the unit features of two views of every image of an epoch's only batch.

    They are drawn from four random views, and from the whole image if `whole`.
    """
    data, setting = training_setup()
    random = generator(setting.seed, epoch)
    (batch,) = neighbor_batches(torch.from_numpy(nearest(points.numpy(), 4)[1]), len(data), random)
    assert data.views is not None
    cached = torch.from_numpy(data.views[batch.numpy()].copy())
    if whole:
        cached = torch.stack([data.features[batch], *cached.unbind(1)], dim=1)
    first, second = torch.rand(cached.shape[:2], generator=random).argsort(1)[:, :2].unbind(1)
    rows = torch.arange(len(cached))
    return unit(torch.cat([cached[rows, first], cached[rows, second]]))


def start_of(beginning: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the initial projection (64, 16) and bias (16,)."""
    data, setting = training_setup()
    rows = unit(data.features)
    if beginning != "centered":
        return first_projection(rows, 16, "pca" if beginning == "pca" else "random", setting.seed), torch.zeros(16)
    mean = rows.mean(0)
    components = torch.linalg.svd((rows - mean).double(), full_matrices=False).Vh[:16].T.float()
    weight = components * components.sum(0).sign()
    return weight, -mean @ weight


@pytest.mark.parametrize("change", fast_first([
    {}, {"admission": False}, {"similarity": "binary"}, {"proxies": 0}, {"flat": 5}, {"n_alpha": 1.0}, {"n_beta": 0.0},
    {"scale": 1.0}, {"threshold": 0.5}, {"candidates": 6}, {"similarity_gradient": True}, {"beginning": "random"},
    {"beginning": "pca"}, {"whole_view": False}, {"proxy_rate": 0.0}, {"proxy_rate": 50.0}, {"through": "origin"}], 4),
    ids=str)
def test_the_first_step_equals_the_equations_of_the_paper(change: dict[str, Any]) -> None:
    """Compute one batch: both views, the loss of eq. 9, Adam's first step and the moving average."""
    data, setting = training_setup()
    method = PLM(**TINY | {"epochs": 1, "batch": len(data), "momentum": 0.5} | change)
    (epoch,) = method.fit(data, setting)
    start, shift = start_of(change.get("beginning", "centered"))
    points = unit(unit(data.features) @ start + shift)
    views = drawn_views(points, 1, "whole_view" not in change)
    weight, bias = start.clone().requires_grad_(), shift.clone().requires_grad_()
    proxies, directions = (part.requires_grad_() for part in method._first_proxies(points, setting.seed))
    targets = unit(views @ start + shift)
    neighborhoods = linear_neighborhoods(targets, change.get("candidates", 10), change.get("flat", 3),
                                         change.get("threshold", 0.9), "admission" not in change,
                                         through=change.get("through", "point"))
    loss = piecewise_loss(unit(views @ weight + bias), targets, neighborhoods, proxies, directions,
                          n_alpha=change.get("n_alpha", 4.0), n_beta=change.get("n_beta", 0.5),
                          scale=change.get("scale", 2.0), kind=change.get("similarity", "linear"),
                          similarity_gradient="similarity_gradient" in change)
    for name, value in {"loss": loss.total, "point loss": loss.point, "proxy loss": loss.proxy,
                        "neighborhood loss": loss.neighborhood}.items():
        assert epoch.losses[name] == pytest.approx(value.item(), rel=1e-5)
    assert epoch.losses["admitted"] == pytest.approx(neighborhoods.members.float().mean().item())
    gradient, to_bias, to_proxies = torch.autograd.grad(loss.total, [weight, bias, proxies])
    stepped = start - 0.002 * gradient / (gradient.abs() + 1e-8)
    # Where the gradient is as small as rounding, Adam's step can have either sign.
    reliable = gradient.abs() > 1e-6
    assert reliable.float().mean() > 0.9
    torch.testing.assert_close(epoch.state["student.weight"][reliable], stepped[reliable], rtol=0, atol=2e-5)
    torch.testing.assert_close(epoch.state["teacher.weight"], (start + epoch.state["student.weight"]) / 2)
    if change.get("beginning", "centered") == "centered":
        assert (to_bias.abs() > 1e-6).all()
        torch.testing.assert_close(epoch.state["student.bias"], shift - 0.002 * to_bias.sign(), rtol=0, atol=2e-5)
        torch.testing.assert_close(epoch.state["teacher.bias"], (shift + epoch.state["student.bias"]) / 2)
        assert epoch.embedder.head.bias is not None
        torch.testing.assert_close(epoch.embedder.head.bias, epoch.state["student.bias"])
    else:
        assert not {"student.bias", "teacher.bias"} & {*epoch.state}
    rate = 0.002 * change.get("proxy_rate", 1.0)
    moved, reliable = proxies.detach() - rate * to_proxies.sign(), to_proxies.abs() > 1e-6
    assert not len(proxies) or reliable.float().mean() > 0.5
    torch.testing.assert_close(epoch.state["proxies.places"][reliable], moved[reliable], rtol=0, atol=0.02 * rate)


def test_the_second_step_takes_the_teachers_targets_and_its_own_gradient() -> None:
    """Compute two steps of Adam without proxies: the teacher's embeddings give the similarities of both."""
    data, setting = training_setup()
    fields = {"batch": len(data), "proxies": 0, "momentum": 0.5, "beginning": "pca"}
    *_, last = PLM(**TINY | fields).fit(data, setting)
    weight = first_projection(unit(data.features), 16, "pca", setting.seed)
    teacher, mean, variance = weight.clone(), torch.zeros_like(weight), torch.zeros_like(weight)
    for step in (1, 2):
        views = drawn_views(unit(unit(data.features) @ weight), step)
        targets = unit(views @ teacher)
        similarities = similarity(targets, linear_neighborhoods(targets, 10, 3, 0.9).basis)
        weight.requires_grad_()
        loss = point_loss(unit(views @ weight), similarities) / len(views)**2
        (gradient,) = torch.autograd.grad(loss, weight)
        assert step == 1 or last.losses["loss"] == pytest.approx(loss.item(), rel=1e-4)
        mean, variance = 0.9 * mean + 0.1 * gradient, 0.999 * variance + 0.001 * gradient.square()
        moved = 0.002 * mean / (1 - 0.9**step) / ((variance / (1 - 0.999**step)).sqrt() + 1e-8)
        weight = weight.detach() - moved
        teacher = (teacher + weight) / 2
    torch.testing.assert_close(last.state["student.weight"], weight, rtol=0, atol=1e-4)
    torch.testing.assert_close(last.state["teacher.weight"], teacher, rtol=0, atol=1e-4)


def test_proxies_are_explained_as_unit_points_with_orthonormal_directions() -> None:
    for epoch in fit_epochs():
        (record,) = epoch.explanations
        assert isinstance(record, Proxies)
        assert record.places.shape == (12, 16)
        torch.testing.assert_close(record.places.norm(dim=1), torch.ones(12))
        torch.testing.assert_close(record.directions.mT @ record.directions, torch.eye(3).expand(12, 3, 3),
                                   rtol=0, atol=1e-5)


def test_straightening_does_not_change_orthonormal_directions() -> None:
    directions = torch.linalg.qr(torch.randn(20, 16, 3, generator=generator(0, 0))).Q
    proxies = _Proxies(torch.randn(20, 16), directions)
    proxies.straighten()
    torch.testing.assert_close(proxies.directions.detach(), directions, rtol=0, atol=1e-6)


def test_a_proxy_rate_of_zero_keeps_the_initial_proxies() -> None:
    first, last = fit_epochs(proxy_rate=0.0)
    assert torch.equal(first.state["proxies.places"], last.state["proxies.places"])


@pytest.mark.parametrize(("fields", "message"), [
    ({"flat": 11}, "PLM.flat must be at most the number of candidates 10, got 11"),
    ({"dimension": 2, "flat": 3}, "PLM.flat must be at most the embedding's dimension 2, got 3"),
    ({"dimension": 100}, "PLM.dimension must be at most the features' dimension 64, got 100"),
    ({"batch": 5}, "PLM needs at least 6 training images in a batch for 10 candidates and groups of 5, got 5"),
    ({"trains": "all"}, "The backbone 'pixels' has nothing to train. Set the field 'trains' to 'head'"),
])
def test_impossible_fields_are_rejected_with_the_field_to_change(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        fit_epochs(**fields)


def test_proxies_start_at_distinct_images_while_there_are_enough() -> None:
    points = unit(torch.randn(30, 8, generator=torch.Generator().manual_seed(0)))
    for count, distinct in ((30, 30), (12, 12), (70, 30)):
        places, directions = PLM(proxies=count, dimension=8)._first_proxies(points, 0)
        assert len(places) == len(directions) == count
        assert len(places.unique(dim=0)) == distinct


@pytest.mark.parametrize("through", ["point", "origin"])
def test_proxies_start_with_the_neighborhood_of_their_image(through: Through) -> None:
    points = unit(torch.randn(30, 8, generator=torch.Generator().manual_seed(0)))
    places, directions = PLM(proxies=5, dimension=8, through=through)._first_proxies(points, 0)
    for place, basis in zip(places, directions, strict=True):
        nearest_ten = points[torch.cdist(place[None], points)[0].argsort()[:10]]
        rows = nearest_ten - place if through == "point" else torch.cat([place[None], nearest_ten])
        expected = torch.linalg.svd(rows.double(), full_matrices=False).Vh[:3].mT
        torch.testing.assert_close((basis @ basis.mT).double(), expected @ expected.mT, rtol=0, atol=1e-5)
