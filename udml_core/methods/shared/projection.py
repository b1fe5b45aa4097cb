"""Where a projection starts, for every method that learns one, and whether the encoder below it can learn."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from udml_core.backbones import EncoderSpec, needs_batches
from udml_core.data.training import TrainingData
from udml_core.errors import UserError
from udml_core.geometry import Grassmann
from udml_core.methods.base import Method, Setting
from udml_core.methods.closed_form import check_directions, principal_directions
from udml_core.methods.embedder import unit
from udml_core.methods.shared.training import Network

Beginning = Literal["random", "pca"]


def check_projection(method: str, dimension: int, beginning: Beginning, images: int, width: int | None) -> None:
    """Refuse a dimension that the features, or for the principal components the images, do not allow.

    Raises:
        UserError: naming the method's field and what it allows.
    """
    if width is not None and dimension > width:
        raise UserError(f"{method}.dimension must be at most the features' width {width}, got {dimension}. "
                        "Lower the field 'dimension'.")
    if beginning == "pca":
        check_directions(dimension, images, width)


def first_projection(rows: Tensor, dimension: int, beginning: Beginning, seed: int) -> Tensor:
    """Orthonormal columns (d, dimension): the principal components of rows (n, d), or a random subspace."""
    if beginning == "pca":
        return principal_directions(rows, dimension)
    return Grassmann(rows.shape[1], dimension).random(seed)[0]


def check_trainable(encoder: EncoderSpec) -> None:
    """Reject a backbone without parameters.

    Raises:
        UserError: The encoder has nothing to train.
    """
    if not encoder.trainable:
        raise UserError(f"The backbone '{encoder.backbone}' has nothing to train. Set the field "
                        "'trains' to 'head', or choose another backbone.")


def check_batch_norm(method: Method, batch_norm: Literal["frozen", "batch"], encoder: EncoderSpec) -> None:
    """Reject frozen batch-normalization statistics that were never learned.

    Raises:
        UserError: The encoder trains from scratch with frozen statistics.
    """
    if method.trains_encoder and batch_norm == "frozen" and needs_batches(encoder):
        raise UserError(f"{type(method).__name__}.batch_norm must be 'batch' because {encoder.backbone} trains from "
                        "scratch and has no learned statistics to keep, got 'frozen'. Set the field 'batch_norm' to "
                        "'batch'.")


def first_network(method: Method, data: TrainingData, setting: Setting, dimension: int,
                  beginning: Beginning) -> Network:
    """The network that a method's linear head, and the encoder where that trains, begin as.

    Raises:
        UserError: the method's fields do not fit the features, or the encoder cannot train.
    """
    rows = unit(data.features)
    method.check(*rows.shape)
    if method.trains_encoder:
        check_trainable(setting.encoder.spec)
    weight = first_projection(rows, dimension, beginning, setting.seed)
    return Network(weight, setting.encoder if method.trains_encoder else None).to(setting.device).eval()
