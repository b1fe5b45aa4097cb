"""Rows of images by a network that does not train: ONNX Runtime on a CPU, torch on other devices.

ONNX Runtime computes the same features several times faster. A network is converted once and kept; torch computes
where it cannot be converted, or where the two disagree.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import torch
from filelock import FileLock
from torch import nn

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.base.files import read_json, replace_bytes, replace_text
from udml_core.base.paths import cache_folder
from udml_core.data.dataset import Dataset, reduced
from udml_core.data.encoders import Encoder
from udml_core.data.encoders.encoder import image_seconds
from udml_core.data.encoders.graphs import Graph, engine_words, network_graph, paired_cosines

Rows: TypeAlias = Callable[[Array | torch.Tensor], Array]
"""Returns the rows (b, d) float32 of prepared images (b, c, s, s), 0–255."""
LEAST_COSINE = 0.99999
COMPARED = 16
"""Images on which both engines are compared before ONNX Runtime is used."""
WORTH_SECONDS = 10.0
"""Expected seconds of torch from which a network is converted, which takes about five."""
NO_MEMORY = re.compile(r"(can't|failed to) allocate memory|bad.?alloc|(out of|not enough) memory", re.IGNORECASE)
"""Libraries report a lack of memory by a plain RuntimeError."""
_fitting: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()
"""The number of images that an encoder's device has memory for, where that is fewer."""
MOST_OPEN = 4
_opened: dict[Path, Graph] = {}
"""The graphs that this process opened last."""
_agreeing: dict[Path, bool] = {}
"""Whether the engines agree, by the file that says it."""
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Inference:
    """How rows of images are computed.

    Attributes:
        rows: Computes them.
        engine: The engine's name and version. Another engine's rows differ in their last digits.
        mean_of_parts: Computes the row (1, d) of several views of an image from the mean features of each of several
            encoders side by side; None for a single encoder.
    """

    rows: Rows
    engine: str
    mean_of_parts: Rows | None = None

    def mean_row(self, views: Array) -> Array:
        """Return the row (1, d) of the mean features of an image's prepared views (v, c, s, s)."""
        if self.mean_of_parts is not None:
            return self.mean_of_parts(views)
        mean: Array = self.rows(views).mean(axis=0, keepdims=True)
        return mean


def torch_inference(network: nn.Module) -> Inference:
    """Return a network's inference by torch, on its own device."""
    return Inference(partial(embed_pixels, network), f"torch {torch.__version__}")


def inference_of(encoder: Encoder, dataset: Dataset, count: int) -> Inference:
    """Choose the engine for an encoder that does not train.

    Args:
        encoder: The encoder.
        dataset: The data set, on some images of which the engines are compared once.
        count: Number of images to come; for a few, a network is not converted.
    """
    if encoder.spec.parts:
        return _inference_of_parts(encoder, dataset, count)
    by_torch = torch_inference(encoder)
    if next(encoder.buffers()).device.type != "cpu" or not encoder.spec.trainable:
        return by_torch
    path = _graph_path(encoder)
    graph = _open_graph(encoder, path, is_worth=count * image_seconds(encoder.spec) >= WORTH_SECONDS)
    if graph is None or not _agrees(graph, by_torch.rows, path, encoder, dataset):
        return by_torch
    return Inference(partial(_finite_rows, graph), engine_words())


def _inference_of_parts(encoder: Encoder, dataset: Dataset, count: int) -> Inference:
    """Return the inference of encoders side by side: each part by the engine that computes its stored features."""
    parts = [inference_of(part, dataset, count) for part in encoder.part_encoders]
    return Inference(lambda images: joined(encoder, [part.rows(images) for part in parts]),
                     ", ".join(dict.fromkeys(part.engine for part in parts)),
                     lambda views: joined(encoder, [part.mean_row(np.asarray(views)) for part in parts]))


def joined(encoder: Encoder, features: Sequence[Array]) -> Array:
    """Return the rows (…, l) float32 of encoders side by side from the features of each part, (…, d_i).

    Raises:
        UserError: The statistics of the training images are not known, or some features are not finite.
    """
    network = encoder.joint
    if not network.is_fitted:
        raise UserError("Several encoders side by side need statistics of training images, which are not stored here. "
                        "Start a run with them, or open a run that has them.")
    with torch.inference_mode():
        parts = [torch.from_numpy(np.array(rows, np.float32)).to(network.weight.device) for rows in features]
        return _finite(network.join(parts).cpu().numpy())


def embed_pixels(encoder: nn.Module, pixels: Array | torch.Tensor) -> Array:
    """Apply an encoder or embedder to prepared images by torch, on its own device.

    Args:
        encoder: A module from images to rows.
        pixels: Images (b, c, s, s), 0–255.

    Returns:
        Rows (b, d) float32.

    Raises:
        UserError: The module returns values that are not finite.
    """
    images = torch.from_numpy(np.ascontiguousarray(pixels)) if isinstance(pixels, np.ndarray) else pixels
    return _finite(in_batches(encoder, lambda batch: encoder(batch).float(), images).numpy())


def in_batches(encoder: nn.Module, compute: Callable[[torch.Tensor], torch.Tensor],
               images: torch.Tensor) -> torch.Tensor:
    """Compute rows of images on the encoder's device, in batches that its memory can hold.

    Raises:
        UserError: The memory does not hold a single image.
    """
    device = next(encoder.buffers()).device
    rows: list[torch.Tensor] = []
    start = 0
    while start < len(images) or not rows:  # a module decides on the shape without images
        size = min(_fitting.get(encoder, len(images)), len(images) - start)
        try:
            with torch.inference_mode():
                rows.append(compute(images[start : start + size].to(device)).cpu())
            start += size
        except torch.OutOfMemoryError as error:
            if size <= 1:
                raise UserError(f"The memory of the device '{device}' is too small for one image of "
                                f"{images.shape[-1]} pixels. Lower the image size, or choose a smaller backbone or "
                                "the device 'cpu'.") from error
            _fitting[encoder] = size // 2
            log.warning("the memory of %s holds fewer than %d images at once; trying %d", device, size, size // 2)
    return torch.cat(rows)


def _finite_rows(graph: Graph, pixels: Array | torch.Tensor) -> Array:
    return _finite(_rows_of(graph, pixels))


def _rows_of(graph: Graph, pixels: Array | torch.Tensor) -> Array:
    images = np.asarray(pixels)
    return graph(np.broadcast_to(images, (len(images), 3, *images.shape[2:])))


def _finite(rows: Array) -> Array:
    """Return rows whose values are finite.

    Raises:
        UserError: Some are not.
    """
    if not np.isfinite(rows).all():
        raise UserError(f"The encoder returned {(~np.isfinite(rows)).sum():,} values that are not finite. Its "
                        "training may have diverged. Lower the learning rate, or choose another backbone.")
    return np.asarray(rows)


def _agrees(graph: Graph, torch_rows: Rows, path: Path, encoder: Encoder, dataset: Dataset) -> bool:
    """Return whether both engines agree on images of a data set, compared once and stored beside the graph."""
    said = path.with_name(f"{path.stem}-{dataset.fingerprint[:12]}.json")
    if said not in _agreeing:
        cosine = _stored_cosine(said)
        if cosine is None:
            some = np.linspace(0, len(dataset) - 1, min(COMPARED, len(dataset))).astype(int)
            images = np.stack([encoder.prepare(reduced(dataset.images, int(index), encoder.needed_side))
                               for index in some])
            cosine = float(paired_cosines(torch_rows(images), _rows_of(graph, images)).min())
            replace_text(said, json.dumps({"cosine": cosine}))
        _agreeing[said] = cosine > LEAST_COSINE
        if not _agreeing[said]:
            log.warning("%s: ONNX Runtime's features have a cosine similarity of only %.6f with torch's, so torch "
                        "computes them", encoder.spec.words, cosine)
    return _agreeing[said]


def _stored_cosine(path: Path) -> float | None:
    """Return the smallest cosine similarity of both engines that an earlier process stored; None without it."""
    try:
        return float(read_json(path)["cosine"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _open_graph(encoder: Encoder, path: Path, is_worth: bool) -> Graph | None:
    """Open the kept graph of an encoder, written first if that is worth the time; None without one."""
    failed = path.with_suffix(".json")
    # Torch converts a network in one thread of a process only, so a page's thread never does.
    may_write = is_worth and threading.current_thread() is threading.main_thread() and not failed.is_file()
    if path not in _opened and not path.is_file() and not may_write:
        return None
    was_kept = path.is_file()
    try:
        if path not in _opened:
            path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(path.with_suffix(".lock")):
                if not path.is_file():
                    size = encoder.spec.size
                    replace_bytes(path, network_graph(encoder, torch.zeros(2, 3, size, size)))
            _opened[path] = Graph(path.read_bytes())
            while len(_opened) > MOST_OPEN:
                _opened.pop(next(iter(_opened)))
        return _opened[path]
    except Exception as error:  # torch's tracer and ONNX Runtime pass on any exception of a network
        reason = next(iter(str(error.__cause__ or error).strip().splitlines()), type(error).__name__)
        if _is_passing(error) or was_kept:
            log.warning("%s: torch computes the features this time: %s", encoder.spec.words, reason)
            if not _is_passing(error):  # the file is damaged
                path.unlink(missing_ok=True)
            return None
        log.warning("%s: torch computes the features, as ONNX Runtime cannot: %s", encoder.spec.words, reason)
        path.unlink(missing_ok=True)
        replace_text(failed, json.dumps({"reason": reason}))
        return None


def _is_passing(error: BaseException | None) -> bool:
    """Return whether a failure says nothing of the network: files could not be written or read, or memory was full."""
    while error is not None:
        if isinstance(error, OSError | MemoryError) or NO_MEMORY.search(str(error)):
            return True
        error = error.__cause__
    return False


def _graph_path(encoder: Encoder) -> Path:
    """Return the file of an encoder's graph, named by its settings, its weights and the versions of the packages."""
    digest = hashlib.sha1(f"{torch.__version__} {engine_words()}".encode(), usedforsecurity=False)
    for name, values in encoder.state_dict().items():
        digest.update(name.encode())
        digest.update(values.contiguous().flatten().view(torch.uint8).numpy())
    return cache_folder() / "graphs" / f"{encoder.spec.key}-{digest.hexdigest()[:16]}.onnx"
