"""The initial projection of the methods that learn one."""

from __future__ import annotations

from torch import Tensor

from udml_core.base.errors import UserError
from udml_core.data.encoders import check_trainable
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Method, Setting
from udml_core.methods.closed_form import check_directions, principal_directions
from udml_core.methods.embedder import unit
from udml_core.methods.fields import Beginning, CenteredBeginning
from udml_core.methods.shared.training import Network, freeze_batch_norm
from udml_core.numerics.geometry import Grassmann


def check_projection(method: str, dimension: int, beginning: CenteredBeginning, images: int,
                     width: int | None) -> None:
    """Reject a dimension that is too large.

    The features limit it, and for principal components the images do as well.

    Args:
        method: Name of the method's class, for the message.
        dimension: Dimension l of the embedding.
        beginning: How the projection is initialized.
        images: Number of training images.
        width: Dimension d of the features; None if it is unknown.

    Raises:
        UserError: The message names the field, its largest value and the value received.
    """
    if width is not None and dimension > width:
        raise UserError(f"{method}.dimension must be at most the features' dimension {width}, got {dimension}. "
                        "Lower the field 'dimension'.")
    if beginning != "random":
        check_directions(dimension, images, width)


def first_projection(rows: Tensor, dimension: int, beginning: Beginning, seed: int) -> Tensor:
    """Return the initial projection with orthonormal columns.

    Args:
        rows: Unit features (n, d).
        dimension: Number l of columns.
        beginning: The principal components, or a random subspace.
        seed: Seed of the random subspace.

    Returns:
        The projection (d, l).
    """
    if beginning == "pca":
        return principal_directions(rows, dimension)
    return Grassmann(rows.shape[1], dimension).random(seed)[0]


def first_head(rows: Tensor, dimension: int, beginning: CenteredBeginning, seed: int) -> tuple[Tensor, Tensor | None]:
    """Return the initial projection and bias of a linear head.

    With `beginning` = "centered", W holds the principal components of the centered features and b = −mean·W, so that
    xW + b = (x − mean)W at the start.

    Args:
        rows: Unit features (n, d).
        dimension: Number l of columns.
        beginning: The principal components, with or without centering, or a random subspace.
        seed: Seed of the random subspace.

    Returns:
        The projection (d, l) with orthonormal columns and the bias (l,), None unless the features are centered.
    """
    if beginning != "centered":
        return first_projection(rows, dimension, beginning, seed), None
    mean = rows.mean(0)
    weight = principal_directions(rows, dimension, mean)
    return weight, -(mean @ weight)


def first_network(method: Method, data: TrainingData, setting: Setting, dimension: int,
                  beginning: CenteredBeginning, kind: type[Network] = Network) -> Network:
    """Return the untrained network, of the class `kind`.

    It has a linear head, with a bias if `beginning` is "centered", and the encoder if the method trains it.

    Raises:
        UserError: The method's fields do not fit the features, or the encoder cannot be trained.
    """
    rows = unit(data.features)
    method.check(*rows.shape)
    if method.trains_encoder:
        check_trainable(setting.encoder.spec)
    return network_with_head(method, setting, *first_head(rows, dimension, beginning, setting.seed), kind)


def network_with_head(method: Method, setting: Setting, weight: Tensor, bias: Tensor | None,
                      kind: type[Network] = Network) -> Network:
    """Return a network with a linear head, and with the encoder if the method trains it.

    Args:
        method: The method; its fields `trains` and `batch_norm` decide what is trained.
        setting: Device, encoder and its options.
        weight: The head's projection (d, l).
        bias: The head's bias (l,); None for zero.
        kind: The class of the network.
    """
    network = kind(weight, setting.encoder if method.trains_encoder else None, method.trained_part,
                   setting.precision, bias).to(setting.device).eval()
    if getattr(method, "batch_norm", "frozen") == "frozen":
        freeze_batch_norm(network)
    if setting.compile:
        network.compile_encoder()
    return network
