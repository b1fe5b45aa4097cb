"""The result of a method: an encoder and a head on its features."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors
import torch
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn.functional import normalize

from udml_core.base.arrays import Array, Integers, blocks
from udml_core.base.errors import UserError
from udml_core.base.files import check_regular, replace_bytes
from udml_core.data.encoders import Encoder, EncoderSpec
from udml_core.data.encoders.side_by_side import STATISTICS
from udml_core.numerics.losses.kernels import KernelName, kernel_of

Representation = Literal["instance", "latent"]


def unit(rows: Tensor) -> Tensor:
    """Divide each row (n, d) by its length; a zero row stays zero."""
    return normalize(rows, dim=1)


def histograms(rows: Tensor, split: bool = False) -> Tensor:
    """Divide each row by its sum; a zero row stays zero.

    Args:
        rows: Features x (n, D).
        split: Replace x by its positive and negative parts [x⁺, x⁻] (n, 2D), which are not negative.

    Raises:
        UserError: An entry is negative and `split` is False.
    """
    if split:
        rows = torch.cat([rows.clamp_min(0), (-rows).clamp_min(0)], dim=1)
    elif not torch.compiler.is_exporting() and (rows < 0).any():  # a graph has no branches that depend on values
        raise UserError(f"The kernels of NML and KML need features of at least 0; the smallest is "
                        f"{float(rows.min()):g}. Choose features that are not negative, or, for NML, set the field "
                        "'negative' to 'split', which replaces x by [x⁺, x⁻].")
    return normalize(rows, p=1.0, dim=1)


class Head(nn.Module):
    """A linear head: features x (b, d) to embeddings (b, l).

    The embedding is unit((unit(x) − offset)·weight + bias).

    Attributes:
        weight: Projection (d, l); None for the identity.
        offset: Offset (d,) before the projection; None for zero.
        bias: Bias (l,) after the projection; None for zero.
        normalized: Whether embeddings have unit length. If not, their distances are ‖(unit(x) − unit(x'))·weight‖, as
            methods that learn a Euclidean distance need it.
    """

    weight: Tensor | None
    offset: Tensor | None
    bias: Tensor | None

    def __init__(self, weight: Tensor | None = None, offset: Tensor | None = None, normalized: bool = True,
                 bias: Tensor | None = None) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("offset", offset)
        self.register_buffer("bias", bias)
        self.normalized = normalized

    def forward(self, features: Tensor) -> Tensor:
        rows = unit(features)
        if self.offset is not None:
            rows = rows - self.offset
        if self.weight is not None:
            rows = rows @ self.weight
        if self.bias is not None:
            rows = rows + self.bias
        return unit(rows) if self.normalized else rows

    def describe(self) -> dict[str, Any]:
        """Return what a file stores besides the tensors."""
        return {"kind": "linear", "normalized": self.normalized}


class KernelHead(nn.Module):
    """A kernel head: features x (b, D) to embeddings (b, l).

    The embedding is [k(l_1, h), …, k(l_c, h)]·weight with h = x/Σx.

    Attributes:
        rows: Rows l (c, D), or (c, 2D) with `split`: prototypes in NML, training images in KML.
        weight: Projection (c, l) in KML; None in NML.
        kernel: Name of the kernel.
        scale: Scale of the kernel.
        split: Whether h is computed from [x⁺, x⁻].
    """

    rows: Tensor
    weight: Tensor | None
    normalized = False

    def __init__(self, rows: Tensor, kernel: KernelName, scale: float, split: bool = False,
                 weight: Tensor | None = None) -> None:
        super().__init__()
        self.register_buffer("rows", rows)
        self.register_buffer("weight", weight)
        self.kernel, self.scale, self.split = kernel, scale, split

    def forward(self, features: Tensor) -> Tensor:
        points = histograms(features, self.split)
        values = kernel_of(self.kernel, self.scale, points.shape[1]).values(points, self.rows)
        return values if self.weight is None else values @ self.weight

    def describe(self) -> dict[str, Any]:
        """Return what a file stores besides the tensors."""
        return {"kind": "kernel", "kernel": self.kernel, "scale": self.scale, "split": self.split}


class LatentHead(nn.Module):
    """PSLR's head: features f (b, d) to instance features x or latent z.

    x = unit(unit(f)·weight) and z = unit(ReLU(x·latent)).

    z is the output of the graph layer for an image without neighbors. A row of z can be zero and then stays zero.

    Attributes:
        weight: Projection (d, l).
        latent: Graph layer (l, l).
        shown: Which of x and z is the embedding.
    """

    weight: Tensor
    latent: Tensor
    normalized = True

    def __init__(self, weight: Tensor, latent: Tensor, shown: Representation = "instance") -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("latent", latent)
        self.shown = shown

    def forward(self, features: Tensor) -> Tensor:
        rows = unit(unit(features) @ self.weight)
        return rows if self.shown == "instance" else self.latent_of(rows)

    def latent_of(self, instance: Tensor) -> Tensor:
        """Return z (b, l) of instance features x (b, l)."""
        return unit((instance @ self.latent).relu())

    def describe(self) -> dict[str, Any]:
        """Return what a file stores besides the tensors."""
        return {"kind": "latent", "shown": self.shown, "normalized": self.normalized}


AnyHead = Head | KernelHead | LatentHead


class Embedder(nn.Module):
    """Images (b, c, s, s), 0–255, to embeddings (b, l).

    Embeddings are compared by Euclidean distance.

    If the head is `normalized`, embeddings have unit length and the order equals that of the cosine similarity.

    Attributes:
        encoder: The encoder, frozen and shared or trained.
        head: The head on the encoder's features.
        trained: Whether the encoder was trained; its weights are then stored with the head.
    """

    def __init__(self, encoder: Encoder, head: AnyHead | None = None, trained: bool = False) -> None:
        super().__init__()
        self.encoder = encoder
        self.head: AnyHead = head or Head()
        self.trained = trained

    def forward(self, images: Tensor) -> Tensor:
        embeddings: Tensor = self.head(self.encoder(images))
        return embeddings

    def embed_features(self, features: Array, indices: Integers | None = None) -> Array:
        """Return the embeddings (n, l) float32 of the frozen encoder's features (n, d).

        Args:
            features: The features.
            indices: Rows (m,) to embed, which are read in blocks; all if None.

        Raises:
            ValueError: The encoder was trained, so the frozen features are not its own.
        """
        if self.trained:
            raise ValueError("this embedder trained its encoder: embed images, not frozen features")
        return self.apply_head(features, indices)

    def apply_head(self, features: Array, indices: Integers | None = None) -> Array:
        """Return the embeddings (n, l) float32 of this embedder's own features (n, d), or of some rows (m,)."""
        count = len(features) if indices is None else len(indices)
        device = next(self.encoder.buffers()).device
        embeddings = np.empty((0, 0), np.float32)
        with torch.inference_mode():
            for some in blocks(count, features.shape[1]):
                read = features[some] if indices is None else features[indices[some]]
                rows = torch.from_numpy(np.array(read, dtype=np.float32))
                part = self.head(rows.to(device)).cpu().numpy()
                if not some.start:
                    embeddings = np.empty((count, part.shape[1]), np.float32)
                embeddings[some] = part
        return embeddings

    def save(self, path: Path, whole: bool = False) -> None:
        """Write a safetensors file.

        It holds the head, the encoder's spec and, if trained, the encoder's weights; of several encoders side by side
        the statistics of the training images.

        Args:
            path: The file.
            whole: Whether it also holds the weights of a frozen encoder, so that they need not be found elsewhere.
        """
        tensors = {f"head.{name}": value for name, value in self.head.state_dict().items()}
        kept = self.encoder.state_dict()
        if not (self.trained or whole):  # all else is found elsewhere
            kept = {name: kept[name] for name in STATISTICS if name in kept}
        tensors |= {f"encoder.{name}": value for name, value in kept.items()}
        tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        metadata = {"encoder": self.encoder.spec.model_dump_json(), "trained": json.dumps(self.trained),
                    "head": json.dumps(self.head.describe())}
        replace_bytes(path, save(tensors, metadata))

    @staticmethod
    def load(path: Path, device: torch.device | None = None) -> Embedder:
        """Read a file that `save` wrote; nothing is unpickled.

        Raises:
            UserError: The file is missing, broken or not an embedder.
        """
        with _reading(path) as (metadata, file):
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            spec = EncoderSpec.model_validate_json(metadata["encoder"])
            trained = bool(json.loads(metadata["trained"]))
            head = _read_head(_head_of(metadata), tensors)
        weights = {name.removeprefix("encoder."): value for name, value in tensors.items()
                   if name.startswith("encoder.")}
        is_whole = not weights.keys() <= set(STATISTICS)
        encoder = Encoder(spec, filled=not is_whole)
        if trained or weights:
            encoder.load_state_dict(weights, strict=is_whole)
        return Embedder(encoder, head, trained).to(device or torch.device("cpu")).eval()


def is_normalized(path: Path) -> bool:
    """Return whether a stored embedder gives embeddings of unit length.

    The embedder is not loaded.

    Raises:
        UserError: The file is missing, broken or not an embedder.
    """
    with _reading(path) as (metadata, _):
        return bool(_head_of(metadata).get("normalized", False))


@contextmanager
def _reading(path: Path) -> Iterator[tuple[dict[str, str], Any]]:
    """Open a stored embedder and yield its metadata and the file."""
    try:
        check_regular(path)
        with safetensors.safe_open(path, framework="pt", device="cpu") as file:
            yield file.metadata() or {}, file
    except (OSError, KeyError, TypeError, ValueError, safetensors.SafetensorError) as error:
        raise UserError(f"{path} must be an embedder written by a run, and could not be read: {error}.") from error


def _head_of(metadata: dict[str, str]) -> dict[str, Any]:
    """Return a file's description of its head.

    Files without a description have the linear head of the first version.
    """
    return dict(json.loads(metadata.get("head", '{"kind": "linear", "normalized": true}')))


def _read_head(description: dict[str, Any], tensors: dict[str, Tensor]) -> AnyHead:
    """Build a head from its description in a file."""
    match description:
        case {"kind": "linear", **rest}:
            return Head(tensors.get("head.weight"), tensors.get("head.offset"), bias=tensors.get("head.bias"), **rest)
        case {"kind": "kernel", **rest}:
            return KernelHead(tensors["head.rows"], weight=tensors.get("head.weight"), **rest)
        case {"kind": "latent", "shown": shown}:
            return LatentHead(tensors["head.weight"], tensors["head.latent"], shown)
    raise ValueError(f"this version does not know its head {description}")
