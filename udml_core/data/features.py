"""Frozen features and prepared images, computed once and memory-mapped.

Each data set and encoder has its own files.
"""

from __future__ import annotations

import copy
import errno
import hashlib
import json
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from filelock import FileLock
from PIL import Image

from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import UserError, counted
from udml_core.base.files import read_array, read_json, replace_text
from udml_core.base.paths import dataset_cache
from udml_core.data.augmentation import VERSION, Augmentation
from udml_core.data.dataset import DETAIL, Dataset, Report, reduced
from udml_core.data.encoders import Encoder, EncoderSpec
from udml_core.data.inference import Inference, Rows, in_batches, inference_of, joined, torch_inference
from udml_core.data.reusing import Earlier, earlier_file

Compute: TypeAlias = Callable[[int, int], Array]
"""Returns the rows from a start to a stop index."""
BLOCK = 64
"""Images that are encoded at once, if the device's memory is large enough."""
FEW = 0
"""Of a few images, a network is not converted."""
TINY, MOST_AT_ONCE = 32, 20_000
"""Largest side in pixels, and largest number, of images whose pixels are read in a moment where a page needs them."""
COPIED = 4096
"""Rows that are copied at once."""
READERS = min(8, os.cpu_count() or 1)
"""Threads that read images; decoding and resizing run at once."""
AHEAD = 2
"""Blocks that each of several devices has in work, so that none waits for another."""
LOADING = "loading the network"
"""The step before the first image: a network is opened, and the first time converted."""
MEASURED_SECONDS = 1.0
"""Shortest time from which the speed of a computation is reported."""
KEPT_SECONDS = 2.0
"""Time after which finished rows are kept although few have come, so that they can be searched."""
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Work:
    """How the missing rows of an array are computed.

    Attributes:
        computes: For each device that shares the work, a function from a start and a stop index to rows.
        engine: Name and version of what computes them; empty if it does not change them.
    """

    computes: list[Compute]
    engine: str = ""


def features_of(dataset: Dataset, encoder: Encoder, report: Report = lambda _share, _step: None,
                devices: Sequence[str] = ()) -> Array:
    """Return the frozen encoder's features of every image, computed on first use.

    The features of a table are its own vectors. The computation stores its progress, so a killed computation resumes. A
    second process that needs the same features waits for the first. Of a folder that has changed, only the features of
    new and changed files are computed.

    Args:
        dataset: The data set.
        encoder: The frozen encoder.
        report: Receives the progress.
        devices: Further devices that share the images with the encoder's own, each with a copy of the encoder.

    Returns:
        Features (n, d) float32, memory-mapped and read-only; further devices of the same kind do not change them.

    Raises:
        UserError: The encoder returns values that are not finite, or the disk is full.
    """
    if dataset.vectors is not None:
        return dataset.vectors

    path = features_path(dataset, encoder.spec)
    earlier = None if encoder.spec.parts else _earlier_rows(dataset, path, (encoder.dimension,))
    missing = np.arange(len(dataset)) if earlier is None else earlier.missing

    def computing(own: Encoder, rows: Rows, lanes: int) -> Compute:
        pixels = PreparedImages(dataset, own, indices=missing, lanes=lanes)
        return lambda start, stop: rows(pixels[start:stop])

    if encoder.spec.parts:
        return joined_rows(path, encoder, (len(dataset),),
                           lambda part: features_of(dataset, part, report, devices), report, "features")
    share = _Sharing(encoder, devices, partial(inference_of, dataset=dataset, count=len(missing)), computing)

    def make() -> Work:
        report(0.0, LOADING)
        return share()

    return _load_or_compute(path, (len(dataset), encoder.dimension), np.dtype(np.float32), make, report, "features",
                            earlier)


def joined_rows(path: Path, encoder: Encoder, shape: tuple[int, ...], rows_of: Callable[[Encoder], Array],
                report: Report, step: str) -> Array:
    """Return the rows of encoders side by side, computed on first use from the stored rows of each part.

    Args:
        path: File of the rows.
        encoder: The encoders.
        shape: Shape of the rows without the dimension.
        rows_of: Returns the rows of a part, which are computed if they are not stored.
        report: Receives the progress.
        step: Name of the computation in progress reports.

    Returns:
        Rows (…, l) float32, memory-mapped and read-only.
    """
    def make() -> Work:
        parts = [rows_of(part) for part in encoder.part_encoders]
        return Work([lambda start, stop: joined(encoder, [rows[start:stop] for rows in parts])])

    return _load_or_compute(path, (*shape, encoder.dimension), np.dtype(np.float32), make, report, step)


def features_of_some(dataset: Dataset, encoder: Encoder, indices: Integers) -> Array:
    """Return the frozen encoder's features of a few images, (m, d) float32; they are not stored.

    Args:
        dataset: The data set.
        encoder: The frozen encoder.
        indices: Indices (m,) of the images.
    """
    if dataset.vectors is not None:
        return dataset.vectors[indices]
    pixels = PreparedImages(dataset, encoder, indices=indices)
    rows = inference_of(encoder, dataset, FEW).rows
    return np.concatenate([rows(pixels[start : min(start + BLOCK, len(indices))])
                           for start in range(0, len(indices), BLOCK)])


def features_path(dataset: Dataset, spec: EncoderSpec) -> Path:
    """Return the path of the stored features."""
    return features_file(dataset.fingerprint, spec)


def features_file(fingerprint: str, spec: EncoderSpec) -> Path:
    """Return the path of the stored features of the images with a fingerprint."""
    return dataset_cache(fingerprint) / f"{spec.key}.npy"


def stored_words(dataset: Dataset, spec: EncoderSpec) -> str:
    """Say of how many images the features are stored, so that they are not computed again; empty without any."""
    path = features_path(dataset, spec)
    earlier = None if spec.parts or path.exists() else earlier_file(dataset, path.name)
    if path.exists() or (earlier is not None and not len(earlier.missing)):
        return "The features of all images are stored and used again."
    return "" if earlier is None else (f"The features of {len(earlier.known):,} of {len(dataset):,} images are stored "
                                       "and used again.")


def are_features_at_hand(dataset: Dataset, spec: EncoderSpec) -> bool:
    """Return whether `features_at_hand` has the features."""
    return dataset.vectors is not None or _are_tiny(dataset, spec) or features_path(dataset, spec).exists()


def features_at_hand(dataset: Dataset, spec: EncoderSpec) -> Array:
    """Return all features (n, d) without a pass of the network: the stored ones, given vectors, or tiny pixels.

    Raises:
        UserError: The features are not stored.
    """
    if dataset.vectors is not None:
        return dataset.vectors
    if _are_tiny(dataset, spec) and not features_path(dataset, spec).exists():
        return features_of_some(dataset, Encoder(spec), np.arange(len(dataset)))
    return read_array(features_path(dataset, spec), mapped=True)


def features_so_far(dataset: Dataset, spec: EncoderSpec) -> tuple[Integers, Array] | None:
    """Return the images whose features are finished while others are computed; None without any.

    Args:
        dataset: The data set.
        spec: The encoder.

    Returns:
        The images (m,), ascending, and rows (n, d) of which theirs are finished, memory-mapped and read-only.
    """
    path = features_path(dataset, spec)
    try:
        rows = read_array(path.with_suffix(".part"), mapped=True)
        done = int(read_json(path.with_suffix(".progress"))["done"])
        earlier = _earlier_rows(dataset, path, rows.shape[1:])
        if len(rows) != len(dataset) or not 0 < done <= len(rows):
            return None
    except (OSError, UserError, ValueError, KeyError, TypeError):  # none is computed, or it has just ended
        return None
    if earlier is None:
        return np.arange(done), rows
    return np.sort(np.concatenate([earlier.known, earlier.missing[:done]])), rows


def _are_tiny(dataset: Dataset, spec: EncoderSpec) -> bool:
    """Return whether the features are the pixels of tiny images, which are read in a moment."""
    return spec.backbone == "pixels" and dataset.native_size <= TINY and len(dataset) <= MOST_AT_ONCE


def pixels_of(dataset: Dataset, encoder: Encoder, report: Report = lambda _share, _step: None) -> Array:
    """Return every image as the encoder reads it, prepared on first use.

    Returns:
        Images (n, 3, s, s) uint8, or (n, 1, s, s) for gray data sets, memory-mapped and read-only.
    """
    return _prepared_at(encoder.spec.size, dataset, encoder, report)


def crop_sources_of(dataset: Dataset, encoder: Encoder, augmentation: Augmentation,
                    report: Report = lambda _share, _step: None) -> Array:
    """Return every image at the size that random views are cropped from, prepared on first use.

    It shows the same square as `pixels_of`, with up to four times the pixels. Images without augmentation are read from
    `pixels_of`, so that they equal the input of the frozen features.

    Returns:
        Images (n, 3, S, S) uint8, or (n, 1, S, S) for gray data sets, memory-mapped and read-only.
    """
    return _prepared_at(augmentation.source_side(encoder.spec.size, dataset.native_size), dataset, encoder, report)


def _prepared_at(side: int, dataset: Dataset, encoder: Encoder, report: Report) -> Array:
    channels = 1 if dataset.gray else 3
    path = dataset_cache(dataset.fingerprint) / f"pixels-{side}{encoder.preparation.key}.npy"
    earlier = _earlier_rows(dataset, path, (channels, side, side))
    prepared = PreparedImages(dataset, encoder, side, None if earlier is None else earlier.missing)
    return _load_or_compute(path, (len(dataset), channels, side, side), np.dtype(np.uint8),
                            lambda: Work([lambda start, stop: prepared[start:stop][:, :channels]]), report, "images",
                            earlier)


def views_of(dataset: Dataset, encoder: Encoder, indices: Integers, count: int, augmentation: Augmentation, seed: int,
             report: Report = lambda _share, _step: None, devices: Sequence[str] = ()) -> Array:
    """Return the frozen encoder's features of random views, computed on first use.

    Args:
        dataset: The data set.
        encoder: The frozen encoder.
        indices: Indices (n,) of the images.
        count: Number of views of each image.
        augmentation: The random augmentation.
        seed: Seed of the views.
        report: Receives the progress.
        devices: Further devices that share the images; see `features_of`.

    Returns:
        Features (n, count, d) float32, memory-mapped and read-only.
    """
    def computing(own: Encoder, rows: Rows, lanes: int) -> Compute:
        draw = _random_views(dataset, own, indices, augmentation, seed, lanes)
        return lambda start, stop: np.stack([rows(view) for view in draw(start, stop, count)], axis=1)

    path = views_path(dataset, encoder.spec, indices, f"views{count}", augmentation, seed)
    if encoder.spec.parts:
        return joined_rows(path, encoder, (len(indices), count), lambda part: views_of(
            dataset, part, indices, count, augmentation, seed, report, devices), report,
            f"features of {counted(count, 'view')}")
    choose = partial(inference_of, dataset=dataset, count=count * len(indices))
    return _load_or_compute(path, (len(indices), count, encoder.dimension), np.dtype(np.float32),
                            _Sharing(encoder, devices, choose, computing), report,
                            f"features of {counted(count, 'view')}")


def activations_of(dataset: Dataset, encoder: Encoder, indices: Integers, count: int, augmentation: Augmentation,
                   seed: int, report: Report = lambda _share, _step: None, devices: Sequence[str] = ()) -> Array:
    """Return the activations of images and their random views after the encoder's early blocks.

    They are computed on first use.

    Args:
        dataset: The data set.
        encoder: The encoder, whose early blocks are frozen.
        indices: Indices (n,) of the images.
        count: Number v of views of each image. The first is the whole image; the others are random.
        augmentation: The random augmentation.
        seed: Seed of the views.
        report: Receives the progress.
        devices: Further devices that share the images; see `features_of`.

    Returns:
        Activations (n, v, c, h, w) float16, memory-mapped and read-only.

    Raises:
        UserError: An activation exceeds the range of float16, or the disk is too small.
    """
    def computing(own: Encoder, _rows: Rows, lanes: int) -> Compute:
        draw = _random_views(dataset, own, indices, augmentation, seed, lanes)
        whole = PreparedImages(dataset, own, encoder.spec.size, indices, lanes)

        def compute(start: int, stop: int) -> Array:
            views = [torch.from_numpy(np.ascontiguousarray(whole[start:stop])), *draw(start, stop, count - 1)]
            return np.stack([_early_activations(own, view) for view in views], axis=1)

        return compute

    blank = torch.zeros(1, 3, encoder.spec.size, encoder.spec.size, dtype=torch.uint8)
    shape = (len(indices), count, *_early_activations(encoder, blank).shape[1:])
    path = views_path(dataset, encoder.spec, indices, f"early{count}", augmentation, seed)
    return _load_or_compute(path, shape, np.dtype(np.float16),
                            _Sharing(encoder, devices, torch_inference, computing), report,
                            f"activations of {counted(count, 'view')}")


def _early_activations(encoder: Encoder, images: torch.Tensor) -> Array:
    """Return the activations (b, c, h, w) float16 of the encoder's early blocks."""
    activations = in_batches(encoder, lambda batch: encoder.early(batch).half(), images).numpy()
    if not np.isfinite(activations).all():
        raise UserError(f"The early blocks of '{encoder.spec.backbone}' return values beyond 65,504, the largest of "
                        "float16. Set the field 'trains' to 'head' or 'all', or choose another backbone.")
    return np.asarray(activations)


def _random_views(dataset: Dataset, encoder: Encoder, indices: Integers, augmentation: Augmentation,
                  seed: int, lanes: int) -> Callable[[int, int, int], list[torch.Tensor]]:
    """Return a function that draws random views of a block of images.

    Its arguments are the block's start and stop and the number of views. The images are read at the size that views
    are cropped from, and not stored.
    """
    size, device = encoder.spec.size, next(encoder.buffers()).device
    sources = PreparedImages(dataset, encoder, augmentation.source_side(size, dataset.native_size), indices, lanes)
    channels = 1 if dataset.gray else 3

    def draw(start: int, stop: int, count: int) -> list[torch.Tensor]:
        if not count:
            return []
        random = torch.Generator().manual_seed(seed * 1_000_003 + start)
        images = torch.from_numpy(np.ascontiguousarray(sources[start:stop][:, :channels])).to(device)
        return augmentation.views(images, random, size, count)

    return draw


def views_path(dataset: Dataset, spec: EncoderSpec, indices: Integers, kind: str, augmentation: Augmentation,
               seed: int) -> Path:
    """Return the path of what is computed from views.

    Args:
        dataset: The data set.
        spec: The frozen encoder.
        indices: Indices (n,) of the images.
        kind: `views` for features or `early` for activations, followed by the number of views.
        augmentation: The random augmentation.
        seed: Seed of the views.
    """
    key = hashlib.sha1(repr((VERSION, augmentation, seed)).encode() + np.ascontiguousarray(indices).tobytes(),
                       usedforsecurity=False).hexdigest()[:12]
    return dataset_cache(dataset.fingerprint) / f"{spec.key}-{kind}-{key}.npy"


def cached_rows(dataset: Dataset, makes: Mapping[str, Callable[[], Work]], shape: tuple[int, ...], report: Report,
                step: str) -> list[Array]:
    """Return arrays of rows computed from a data set's images, float32, memory-mapped and read-only.

    Missing arrays are computed together, block by block in turns, so that they can share what is read of an image.

    Args:
        dataset: The data set.
        makes: How missing rows are computed, by the file name without its extension; two different computations must
            have different names.
        shape: Shape of each array.
        report: Receives the progress.
        step: Name of the computation in progress reports.
    """
    files = {dataset_cache(dataset.fingerprint) / f"{name}.npy": make for name, make in makes.items()}
    return _load_or_compute_all(files, shape, np.dtype(np.float32), report, step)


class _Sharing:
    """Makes the functions by which several devices compute rows, each with a copy of the encoder.

    The copies are made on the call only, as stored rows need none.
    """

    def __init__(self, encoder: Encoder, devices: Sequence[str], choose: Callable[[Encoder], Inference],
                 computing: Callable[[Encoder, Rows, int], Compute]) -> None:
        self._encoder = encoder
        self._devices = devices
        self._choose = choose
        self._computing = computing

    def __call__(self) -> Work:
        encoders = [self._encoder, *(copy.deepcopy(self._encoder).to(device) for device in self._devices)]
        chosen = [self._choose(own) for own in encoders]
        return Work([self._computing(own, inference.rows, len(encoders))
                      for own, inference in zip(encoders, chosen, strict=True)], chosen[0].engine)


class PreparedImages:
    """Blocks of images as the encoder reads them.

    The next block is read in the background, by several threads: decoding of photographs takes longer than the network.
    """

    def __init__(self, dataset: Dataset, encoder: Encoder, side: int | None = None, indices: Integers | None = None,
                 lanes: int = 1, make: Callable[[Image.Image], Array] | None = None) -> None:
        """Choose the blocks.

        Args:
            dataset: The data set.
            encoder: The encoder.
            side: Side of the images, by default the encoder's.
            indices: The images, by default all.
            lanes: Number of devices that take turns; the next block is the one after their blocks.
            make: Prepares an image; by default as the encoder does.
        """
        self._dataset = dataset
        self._side = encoder.preparation.resized(side or encoder.spec.size)
        self._indices = np.arange(len(dataset)) if indices is None else indices
        self._make = make or partial(encoder.prepare, side=side)
        self._skipped = (lanes - 1) * BLOCK
        self._pool = ThreadPoolExecutor(max_workers=READERS)
        self._upcoming: tuple[int, list[Future[Array]]] | None = None

    def __getitem__(self, part: slice) -> Array:
        start, stop = part.start, part.stop
        reading = self._upcoming[1] if self._upcoming is not None and self._upcoming[0] == start else self._read(
            start, stop)
        following = stop + self._skipped
        next_stop = min(following + BLOCK, len(self._indices))
        self._upcoming = (following, self._read(following, next_stop)) if next_stop > following else None
        return np.stack([image.result() for image in reading])

    def _read(self, start: int, stop: int) -> list[Future[Array]]:
        return [self._pool.submit(self._prepare, int(index)) for index in self._indices[start:stop]]

    def _prepare(self, index: int) -> Array:
        return self._make(reduced(self._dataset.images, index, self._side))


def _load_or_compute(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], make: Callable[[], Work],
                     report: Report, step: str, earlier: Earlier | None = None) -> Array:
    """Map the array at `path`; compute and store its missing blocks first.

    Args:
        path: File of the array.
        shape: Expected shape.
        dtype: Expected data type.
        make: Returns how missing rows are computed.
        report: Receives the progress.
        step: Name of the computation in progress reports.
        earlier: Rows that are copied; `make` then computes the rows of its missing images.

    Raises:
        UserError: A folder has the name of the file.
    """
    return _load_or_compute_all({path: make}, shape, dtype, report, step, earlier)[0]


def _load_or_compute_all(makes: Mapping[Path, Callable[[], Work]], shape: tuple[int, ...], dtype: np.dtype[Any],
                         report: Report, step: str, earlier: Earlier | None = None) -> list[Array]:
    """Map the arrays at several paths as `_load_or_compute` does one, and compute missing blocks in turns."""
    stored = {path: _load(path, shape, dtype) for path in makes}
    missing = sorted(path for path, array in stored.items() if array is None)
    if not missing:
        report(1.0, step)
    with ExitStack() as locks:
        for path in missing:  # in the order of their names, so that two processes never wait for each other
            if path.is_dir():
                raise UserError(f"{path} should be a file with the result of '{step}', but is a folder. Remove the "
                                "folder.")
            path.parent.mkdir(parents=True, exist_ok=True)
            locks.enter_context(FileLock(path.with_suffix(".lock")))
        stored |= {path: _load(path, shape, dtype) for path in missing}
        computing = {path: _compute_blocks(path, shape, dtype, make(), earlier)
                     for path, make in makes.items() if stored[path] is None}
        for share, speed in _in_turns(list(computing.values())):
            report(share, step + speed)
        stored |= {path: np.load(path, mmap_mode="r", allow_pickle=False) for path in computing}
    return [array for path in makes if (array := stored[path]) is not None]


def _in_turns(computing: list[Iterator[tuple[float, str]]]) -> Iterator[tuple[float, str]]:
    """Advance the computation that is behind; yield the mean of their shares and the speed of the one that advanced."""
    shares = [0.0] * len(computing)
    left = dict(enumerate(computing))
    while left:
        last = min(left, key=lambda number: shares[number])
        try:
            shares[last], speed = next(left[last])
        except StopIteration:
            del left[last]
            continue
        yield sum(shares) / len(shares), speed


def _load(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array | None:
    """Map a stored array; return None if it must be recomputed.

    It must be if it is missing, damaged or of another shape or type.
    """
    try:
        array = read_array(path, mapped=True)
    except UserError:
        return None
    return array if array.shape == shape and array.dtype == dtype else None


def _compute_blocks(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any],
                    work: Work, earlier: Earlier | None) -> Iterator[tuple[float, str]]:
    """Compute an array's remaining blocks; yield the finished share and the speed in words before and after each."""
    missing = np.arange(shape[0]) if earlier is None else earlier.missing
    unfinished, progress = path.with_suffix(".part"), path.with_suffix(".progress")
    state = {"shape": list(shape), "dtype": str(dtype), "engine": work.engine}
    if earlier is not None:
        state["missing"] = hashlib.sha1(missing.tobytes(), usedforsecurity=False).hexdigest()
    done = _finished_rows(unfinished, progress, shape, dtype, state)
    if not done:
        progress.unlink(missing_ok=True)  # it may describe a partial file that was deleted
    array = np.lib.format.open_memmap(unfinished, mode="r+" if done else "w+", dtype=dtype, shape=shape)
    _reserve_space(unfinished)
    if earlier is not None and not done:
        _copy_rows(earlier, array)
        array.flush()
    yield done / max(1, len(missing)), ""
    begun = kept = time.monotonic()
    blocks = [(start, min(start + BLOCK, len(missing))) for start in range(done, len(missing), BLOCK)]
    for (start, stop), rows in zip(blocks, _rows_in_order(blocks, work.computes), strict=True):
        array[missing[start:stop]] = rows
        if start // BLOCK % 8 == 7 or time.monotonic() - kept > KEPT_SECONDS:
            array.flush()
            replace_text(progress, json.dumps({"done": stop} | state))
            kept = time.monotonic()
        seconds = max(time.monotonic() - begun, 1e-9)
        yield stop / len(missing), _speed_words((stop - done) / seconds) if seconds > MEASURED_SECONDS else ""
    array.flush()
    del array
    seconds = max(time.monotonic() - begun, 1e-9)
    log.info("%s: %d of %d rows computed%s, %.1f per second", path.stem, len(missing) - done, shape[0],
             work.engine and f" by {work.engine}", (len(missing) - done) / seconds)
    if work.engine:
        replace_text(path.with_suffix(".json"), json.dumps({"engine": _engines(work.engine, earlier)}))
    unfinished.replace(path)
    progress.unlink(missing_ok=True)


def _engines(engine: str, earlier: Earlier | None) -> str:
    """Return the engine that computed rows, with the engines of rows that were copied from an earlier state."""
    if earlier is None or not len(earlier.known):
        return engine
    try:
        known = str(read_json(earlier.path.with_suffix(".json"))["engine"])
    except (OSError, ValueError, KeyError, TypeError):
        known = "unknown"
    return ", ".join(dict.fromkeys([*known.split(", "), *engine.split(", ") * bool(len(earlier.missing))]))


def _earlier_rows(dataset: Dataset, path: Path, shape: tuple[int, ...]) -> Earlier | None:
    """Return the stored rows of unchanged images that a missing file can begin with; None without any.

    Args:
        dataset: The data set.
        path: The file.
        shape: Shape of a row.
    """
    earlier = None if path.exists() else earlier_file(dataset, path.name)
    if earlier is None:
        return None
    try:
        fits = read_array(earlier.path, mapped=True).shape == (earlier.count, *shape)
    except UserError:  # damaged
        return None
    return earlier if fits else None


def _copy_rows(earlier: Earlier, array: Array) -> None:
    """Copy the rows of unchanged images from an earlier state's array, in blocks."""
    stored, known = read_array(earlier.path, mapped=True), earlier.known
    for start in range(0, len(known), COPIED):
        images = known[start : start + COPIED]
        array[images] = stored[earlier.rows[images]]


def _rows_in_order(blocks: list[tuple[int, int]], computes: list[Compute]) -> Iterator[Array]:
    """Yield the rows of each block in order; several functions take turns and compute at once, each in its thread.

    Blocks do not depend on the number of functions, and so neither do the rows.
    """
    if len(computes) == 1:
        yield from (computes[0](*block) for block in blocks)
        return
    with ExitStack() as threads:
        pools = [threads.enter_context(ThreadPoolExecutor(max_workers=1)) for _ in computes]
        waiting: deque[Future[Array]] = deque()
        for number, block in enumerate(blocks):
            lane = number % len(computes)
            waiting.append(pools[lane].submit(computes[lane], *block))
            if len(waiting) == AHEAD * len(computes):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _speed_words(rate: float) -> str:
    """Return images per second as the detail of a step."""
    return f"{DETAIL}{rate:,.1f} images per second" if rate < 10 else f"{DETAIL}{rate:,.0f} images per second"


def _reserve_space(path: Path) -> None:
    """Reserve the disk space of a whole file.

    The system kills a process whose memory map meets a full disk.

    Raises:
        UserError: The disk has too little free space.
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
                            "Free some space, or set UDML_CACHE to another folder.") from error


def _finished_rows(unfinished: Path, progress: Path, shape: tuple[int, ...], dtype: np.dtype[Any],
                   state: dict[str, Any]) -> int:
    """Return the number of finished rows of an interrupted computation in the same state."""
    try:
        known = read_json(progress)
        fits = {name: known[name] for name in state} == state
        return int(known["done"]) if fits and _load(unfinished, shape, dtype) is not None else 0
    except (OSError, ValueError, KeyError, TypeError):
        return 0
