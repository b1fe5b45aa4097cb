"""What a method learns: an encoder and a head on its features."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import torch
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn.functional import normalize

from udml_core.backbones import Encoder, EncoderSpec
from udml_core.data.storage import replace_bytes
from udml_core.errors import UserError

Array = np.ndarray[Any, Any]
FEATURE_CHUNK = 16_384


def unit(rows: Tensor) -> Tensor:
    """Rows divided by their length, (n, d); a zero row stays zero."""
    return normalize(rows, dim=1)


class Head(nn.Module):
    """Features x (b, d) to unit embeddings (b, l): unit((unit(x) − offset) · weight).

    weight (d, l): None is the identity. offset (d,): None is zero.
    """

    weight: Tensor | None
    offset: Tensor | None

    def __init__(self, weight: Tensor | None = None, offset: Tensor | None = None) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("offset", offset)

    def forward(self, features: Tensor) -> Tensor:
        rows = unit(features)
        if self.offset is not None:
            rows = rows - self.offset
        if self.weight is not None:
            rows = rows @ self.weight
        return unit(rows)


class Embedder(nn.Module):
    """Images (b, c, s, s), 0–255, to unit embeddings (b, l). Distances are Euclidean, so the order is the cosine's.

    encoder: frozen and shared, or trained, in which case `trained` says so and its weights are stored with the head.
    """

    def __init__(self, encoder: Encoder, head: Head | None = None, trained: bool = False) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head or Head()
        self.trained = trained

    def forward(self, images: Tensor) -> Tensor:
        embeddings: Tensor = self.head(self.encoder(images))
        return embeddings

    def embed_features(self, features: Array) -> Array:
        """Embeddings (n, l) float32 of the frozen encoder's features (n, d).

        Raises:
            ValueError: the encoder was trained, so its features are not the frozen ones.
        """
        if self.trained:
            raise ValueError("this embedder trained its encoder: embed images, not frozen features")
        device = next(self.encoder.buffers()).device
        parts = []
        with torch.inference_mode():
            for start in range(0, len(features), FEATURE_CHUNK):
                rows = torch.from_numpy(np.array(features[start : start + FEATURE_CHUNK], dtype=np.float32))
                parts.append(self.head(rows.to(device)).cpu().numpy())
        return np.concatenate(parts)

    def save(self, path: Path) -> None:
        """Store as safetensors: the head, the encoder's weights if they were trained, its spec as metadata."""
        tensors = {f"head.{name}": value for name, value in self.head.state_dict().items()}
        if self.trained:
            tensors |= {f"encoder.{name}": value for name, value in self.encoder.state_dict().items()}
        tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        metadata = {"encoder": self.encoder.spec.model_dump_json(), "trained": json.dumps(self.trained)}
        replace_bytes(path, save(tensors, metadata))

    @staticmethod
    def load(path: Path, device: torch.device | None = None) -> Embedder:
        """Read what `save` stored; nothing is unpickled.

        Raises:
            UserError: the file is missing, broken or not an embedder.
        """
        try:
            with safetensors.safe_open(path, framework="pt", device="cpu") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            spec = EncoderSpec.model_validate_json(metadata["encoder"])
            trained = bool(json.loads(metadata["trained"]))
        except (OSError, KeyError, ValueError, safetensors.SafetensorError) as error:
            raise UserError(f"{path} must be an embedder written by a run, and could not be read: {error}.") from error
        encoder = Encoder(spec)
        if trained:
            encoder.load_state_dict({name.removeprefix("encoder."): value for name, value in tensors.items()
                                     if name.startswith("encoder.")})
        head = Head(tensors.get("head.weight"), tensors.get("head.offset"))
        return Embedder(encoder, head, trained).to(device or torch.device("cpu")).eval()
