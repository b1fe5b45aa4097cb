"""Networks as ONNX graphs: written once, and run by ONNX Runtime on the CPU."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from udml_core.base.arrays import Array

INPUT, OUTPUT = "images", "embeddings"
OPSET = 20
BATCH = 8
"""Images at once: the activations of more do not fit into a processor's cache, which takes a quarter longer."""


class Graph:
    """A network that ONNX Runtime runs on the CPU, with as many threads as torch.

    Args:
        content: The graph, as `network_graph` returns it.
    """

    def __init__(self, content: bytes) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # waiting work costs nothing
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        self._type = np.uint8 if self._session.get_inputs()[0].type == "tensor(uint8)" else np.float32

    def __call__(self, images: Array) -> Array:
        """Return the rows (b, d) of images (b, 3, s, s), 0–255."""
        return np.concatenate([self._session.run([OUTPUT], {INPUT: np.ascontiguousarray(part, self._type)})[0]
                               for part in np.split(images, range(BATCH, len(images), BATCH))])


def paired_cosines(rows: Array, others: Array) -> Array:
    """Return the cosine similarity of each row (b, d) with the other row; two rows of zero agree."""
    lengths, own = np.linalg.norm(rows, axis=1), np.linalg.norm(others, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosines: Array = np.where((lengths == 0) & (own == 0), 1.0, (rows * others).sum(axis=1) / (lengths * own))
    return cosines


def engine_words() -> str:
    """Return the name and the version of the engine that runs graphs."""
    return f"ONNX Runtime {version('onnxruntime')}"


def network_graph(network: nn.Module, example: torch.Tensor) -> bytes:
    """Return a network as an ONNX graph, without names of files and lines of code.

    Args:
        network: The network, on the CPU.
        example: Images (b, 3, s, s), b ≥ 2, of the type and size that the graph will read; their number stays free.

    Raises:
        Exception: Any, if the network cannot be converted.
    """
    with _quiet():
        program = torch.onnx.export(
            network, (example,), dynamo=True, verbose=False, opset_version=OPSET, input_names=[INPUT],
            output_names=[OUTPUT], dynamic_shapes=({0: torch.export.Dim("batch")},))
    content: bytes = _without_traces(cast(Any, program).model_proto).SerializeToString()
    return content


def _without_traces(model: Any) -> Any:
    """Remove where in the code each part of a graph comes from, which names files of this computer."""
    graph = model.graph
    for part in (*graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer, graph, model):
        del part.metadata_props[:]
        part.doc_string = ""
    return model


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence torch's exporter, which warns about optional packages and its own code."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
