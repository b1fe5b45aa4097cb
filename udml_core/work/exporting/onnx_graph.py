"""Encoder and head as one ONNX graph, compared with torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError, quoted
from udml_core.base.files import replace_bytes
from udml_core.data.encoders.graphs import Graph, network_graph, paired_cosines
from udml_core.data.inference import embed_pixels
from udml_core.methods import Embedder

LEAST_COSINE = 0.999
LARGEST_DIFFERENCE = 0.045
"""Largest relative distance: that of vectors of equal length with the least cosine similarity."""


@dataclass(frozen=True)
class Agreement:
    """How well an ONNX graph agrees with torch.

    Attributes:
        images: Number of compared images.
        cosine: Smallest cosine similarity of the two embeddings of an image.
        difference: Largest Euclidean distance of the two embeddings, relative to the length of torch's.
    """

    images: int
    cosine: float
    difference: float


def write_onnx(embedder: Embedder, path: Path) -> None:
    """Write an embedder as an ONNX graph from images (b, 3, s, s) uint8, RGB, to embeddings (b, l) float32.

    The normalization of the images is part of the graph. Names of files and lines of code are removed.

    Args:
        embedder: The embedder, on the CPU.
        path: The file.

    Raises:
        UserError: The network cannot be converted.
    """
    size = embedder.encoder.spec.size
    try:
        content = network_graph(embedder, torch.zeros((2, 3, size, size), dtype=torch.uint8))
    except Exception as error:  # torch's tracer passes on any exception of a network
        cause = error.__cause__ or error  # torch's own message lists steps for its developers
        reason = next(iter(str(cause).strip().splitlines()), type(cause).__name__)
        raise UserError(f"The model could not be converted to ONNX: {quoted(reason)}. "
                        "Export with --no-onnx.") from error
    replace_bytes(path, content)


def compare(path: Path, embedder: Embedder, pixels: Array) -> Agreement:
    """Compare an ONNX graph with the embedder that it was made from.

    Args:
        path: The ONNX file.
        embedder: The embedder.
        pixels: Prepared images (b, 3, s, s) uint8.

    Raises:
        UserError: They disagree.
    """
    found, expected = Graph(path.read_bytes())(pixels), embed_pixels(embedder, pixels)
    agreement = _agreement(found, expected)
    if not (agreement.cosine > LEAST_COSINE and agreement.difference < LARGEST_DIFFERENCE):
        raise UserError(f"The ONNX graph must agree with torch (cosine similarity above {LEAST_COSINE}), and has a "
                        f"cosine similarity of {agreement.cosine:.6f} and a relative distance of "
                        f"{agreement.difference:.6f} on {len(pixels)} images. Export with --no-onnx.")
    return agreement


def _agreement(exported: Array, expected: Array) -> Agreement:
    """Compare embeddings (b, l); two embeddings of zero agree."""
    lengths, distances = np.linalg.norm(expected, axis=1), np.linalg.norm(exported - expected, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        differences = np.where((lengths == 0) & (distances == 0), 0.0, distances / lengths)
    return Agreement(len(expected), float(paired_cosines(exported, expected).min()), float(differences.max()))
