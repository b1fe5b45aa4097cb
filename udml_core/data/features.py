"""Frozen features and prepared images, computed once per (data set, encoder) and memory-mapped afterwards."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock

from udml_core.arrays import Array
from udml_core.backbones import Encoder, EncoderSpec
from udml_core.data.augmentation import VERSION, Augmentation
from udml_core.data.dataset import Dataset, Report
from udml_core.errors import UserError
from udml_core.files import replace_text
from udml_core.paths import dataset_cache

BLOCK = 64


def features_of(dataset: Dataset, encoder: Encoder, report: Report = lambda _share, _what: None) -> Array:
    """The frozen encoder's features of every image, (n, d) float32, read-only.

    Computed in blocks of 64 that are kept: a killed computation goes on where it stopped. Two processes that want the
    same features wait for each other.

    Raises:
        UserError: the encoder gives values that are not finite.
    """
    def compute(start: int, stop: int) -> Array:
        return embed_pixels(encoder, pixels[start:stop])

    pixels = _Prepared(dataset, encoder)
    path = features_path(dataset, encoder.spec)
    return _filled(path, (len(dataset), encoder.dimension), np.dtype(np.float32), compute, report, "features")


def features_path(dataset: Dataset, spec: EncoderSpec) -> Path:
    """Where the features lie once computed."""
    return dataset_cache(dataset.fingerprint) / f"{spec.key}.npy"


def pixels_of(dataset: Dataset, encoder: Encoder, report: Report = lambda _share, _what: None) -> Array:
    """Every image as the encoder reads it, (n, 3, s, s) uint8, or (n, 1, s, s) for gray data sets; read-only."""
    channels = 1 if dataset.gray else 3
    side = encoder.spec.size
    prepared = _Prepared(dataset, encoder)
    path = dataset_cache(dataset.fingerprint) / f"pixels-{side}.npy"
    return _filled(path, (len(dataset), channels, side, side), np.dtype(np.uint8),
                   lambda start, stop: prepared[start:stop][:, :channels], report, "images")


def views_of(dataset: Dataset, encoder: Encoder, positions: Array, count: int, augmentation: Augmentation, seed: int,
             report: Report = lambda _share, _what: None) -> Array:
    """The frozen encoder's features of `count` random views of some images, (n, count, d) float32, read-only.

    Args:
        positions: (n,) of the images in the data set.
    """
    pixels = pixels_of(dataset, encoder, report)
    device = next(encoder.buffers()).device

    def compute(start: int, stop: int) -> Array:
        random = torch.Generator().manual_seed(seed * 1_000_003 + start)
        images = torch.from_numpy(np.ascontiguousarray(pixels[positions[start:stop]])).to(device)
        drawn = [augmentation(images, random) for _ in range(count)]
        return np.stack([embed_pixels(encoder, view) for view in drawn], axis=1)

    asked = hashlib.sha1(repr((VERSION, augmentation, seed)).encode() + np.ascontiguousarray(positions).tobytes(),
                         usedforsecurity=False).hexdigest()[:12]
    path = dataset_cache(dataset.fingerprint) / f"{encoder.spec.key}-views{count}-{asked}.npy"
    return _filled(path, (len(positions), count, encoder.dimension), np.dtype(np.float32), compute, report,
                   f"features of {count} views")


def embed_pixels(encoder: torch.nn.Module, pixels: Array | torch.Tensor) -> Array:
    """What a module makes of prepared images (b, c, s, s), 0–255, on the module's device, (b, d) float32."""
    device = next(encoder.buffers()).device
    images = torch.from_numpy(np.ascontiguousarray(pixels)) if isinstance(pixels, np.ndarray) else pixels
    with torch.inference_mode():
        values = encoder(images.to(device)).float().cpu().numpy()
    if not np.isfinite(values).all():
        raise UserError("The encoder gave values that are not finite. Its training may have diverged: "
                        "lower the learning rate, or choose another backbone.")
    return np.asarray(values)


class _Prepared:
    """Slices of a data set as the encoder reads it; the block after the one asked for is read ahead."""

    def __init__(self, dataset: Dataset, encoder: Encoder) -> None:
        self._dataset = dataset
        self._encoder = encoder
        self._pool = ThreadPoolExecutor(max_workers=2)
        self._ahead: tuple[int, Future[Array]] | None = None

    def __getitem__(self, part: slice) -> Array:
        start, stop = part.start, part.stop
        if self._ahead is not None and self._ahead[0] == start:
            block = self._ahead[1].result()
        else:
            block = self._read(start, stop)
        following = min(stop + BLOCK, len(self._dataset))
        self._ahead = (stop, self._pool.submit(self._read, stop, following)) if following > stop else None
        return block

    def _read(self, start: int, stop: int) -> Array:
        return np.stack([self._encoder.prepare(self._dataset.images[index]) for index in range(start, stop)])


def _filled(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], compute: Callable[[int, int], Array],
            report: Report, what: str) -> Array:
    """The array at `path`, computed block by block where it is not complete."""
    kept = _kept(path, shape, dtype)
    if kept is not None:
        report(1.0, what)
        return kept
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        kept = _kept(path, shape, dtype)
        if kept is None:
            for share in _fill(path, shape, dtype, compute):
                report(share, what)
            kept = np.load(path, mmap_mode="r", allow_pickle=False)
    return kept


def _kept(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array | None:
    """The stored array; None where it is missing, cut short or not what is asked for, so that it is computed anew."""
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return array if array.shape == shape and array.dtype == dtype else None


def _fill(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any],
          compute: Callable[[int, int], Array]) -> Iterator[float]:
    partial, progress = path.with_suffix(".part"), path.with_suffix(".progress")
    done = _blocks_done(partial, progress, shape, dtype)
    if not done:
        progress.unlink(missing_ok=True)  # of a partial file that is gone
    array = np.lib.format.open_memmap(partial, mode="r+" if done else "w+", dtype=dtype, shape=shape)
    _reserve(partial)
    for start in range(done, shape[0], BLOCK):
        stop = min(start + BLOCK, shape[0])
        array[start:stop] = compute(start, stop)
        if start // BLOCK % 8 == 7:
            array.flush()
            replace_text(progress, json.dumps({"done": stop, "shape": shape, "dtype": str(dtype)}))
        yield stop / shape[0]
    array.flush()
    del array
    partial.replace(path)
    progress.unlink(missing_ok=True)


def _reserve(path: Path) -> None:
    """Take a file's whole room on the disk now: a memory map that finds it full later ends the process.

    Raises:
        UserError: there is not so much room.
    """
    if not hasattr(os, "posix_fallocate"):
        return
    size = path.stat().st_size
    try:
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            path.unlink()
            raise UserError(f"The disk is full: {path.parent} needs {size / 1e6:.1f} MB. "
                            "Free some space, or name another folder with UDML_CACHE.") from error


def _blocks_done(partial: Path, progress: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """How many rows of an interrupted computation can be kept."""
    try:
        state = json.loads(progress.read_text(encoding="utf-8"))
        fits = state["shape"] == list(shape) and state["dtype"] == str(dtype) and partial.exists()
        return int(state["done"]) if fits else 0
    except (OSError, ValueError, KeyError, TypeError):
        return 0
