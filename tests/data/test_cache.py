"""The feature cache shared by several processes.

Processes are killed or wait, files are damaged, and the disk is full.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from filelock import FileLock

from tests.running import PROCESSES
from udml_core.base.errors import UserError
from udml_core.data import inference
from udml_core.data.dataset import ArrayImages, Dataset
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import BLOCK, features_of, features_path, pixels_of

IMAGES = 600
BLOCKS = -(-IMAGES // BLOCK)


def small_images() -> tuple[Dataset, Encoder]:
    """Return small random images and an encoder."""
    pixels = np.random.default_rng(0).integers(0, 256, (IMAGES, 8, 8), dtype=np.uint8)
    dataset = Dataset("small", "Small images", ArrayImages(pixels), None, (), "small-images", 8, True,
                      tuple(f"image {index}" for index in range(IMAGES)))
    return dataset, Encoder(choose_spec("cnn", 8, gray=True))


def compute_features(cache: Path, kill_at: int, connection: Connection) -> None:
    """Compute the features in a second process, which kills itself at block `kill_at`."""
    os.environ["UDML_CACHE"] = str(cache)
    dataset, encoder = small_images()
    embed, sizes = inference.embed_pixels, []

    def counted(module: torch.nn.Module, pixels: Any) -> Any:
        if len(sizes) == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        sizes.append(len(pixels))
        return embed(module, pixels)

    inference.embed_pixels = counted  # type: ignore[assignment]
    connection.send("ready")
    try:
        rows = features_of(dataset, encoder)
        connection.send((len(sizes), rows.shape, float(rows[0, 0])))
    except UserError as error:
        connection.send(str(error))


class SecondProcess:
    """A process that computes the features of the same images."""

    def __init__(self, cache: Path, kill_at: int = -1) -> None:
        self._connection, child = PROCESSES.Pipe()
        self.process = PROCESSES.Process(target=compute_features, args=(cache, kill_at, child))
        self.process.start()
        child.close()
        assert self.receive() == "ready"

    def receive(self) -> Any:
        assert self._connection.poll(240), "the process does not answer"
        return self._connection.recv()

    def exit_code(self) -> int | None:
        self.process.join(240)
        return self.process.exitcode


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def images(cache: Path) -> tuple[Dataset, Encoder]:
    """Images and an encoder, with an empty cache."""
    return small_images()


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the blocks that were encoded in this process."""
    sizes: list[int] = []
    embed = inference.embed_pixels

    def counted(encoder: torch.nn.Module, pixels: Any) -> Any:
        sizes.append(len(pixels))
        return embed(encoder, pixels)

    monkeypatch.setattr(inference, "embed_pixels", counted)
    return sizes


@pytest.mark.slow
def test_the_blocks_of_a_killed_process_are_reused(images: tuple[Dataset, Encoder], blocks: list[int],
                                                   cache: Path) -> None:
    assert SecondProcess(cache, kill_at=BLOCKS - 1).exit_code() == -signal.SIGKILL
    resumed = np.array(features_of(*images))
    assert 0 < len(blocks) <= BLOCKS - 8, "no block was reused"
    features_path(images[0], images[1].spec).unlink()
    np.testing.assert_array_equal(resumed, features_of(*images))


@pytest.mark.slow
def test_a_second_process_waits_for_the_features_and_computes_nothing(images: tuple[Dataset, Encoder],
                                                                      cache: Path) -> None:
    path = features_path(images[0], images[1].spec)
    path.parent.mkdir(parents=True)
    with FileLock(path.with_suffix(".lock")):
        second = SecondProcess(cache)
        second.process.join(0.5)
        assert second.process.is_alive()
        np.save(path, np.full((IMAGES, 128), 7.0, np.float32))
    assert second.receive() == (0, (IMAGES, 128), 7.0)
    assert second.exit_code() == 0


DAMAGED = {
    "empty": b"", "not an array": b"damaged", "fewer rows": np.zeros((IMAGES - 1, 128), np.float32),
    "another width": np.zeros((IMAGES, 64), np.float32), "another dtype": np.zeros((IMAGES, 128), np.float64),
    "objects": np.array([{}], dtype=object), "cut off": None, "begins like an archive": b"PK\3\4" + bytes(100),
    "empty archive": b"PK\5\6" + bytes(18),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_stored_file_that_does_not_hold_the_features_is_recomputed(
        kind: str, images: tuple[Dataset, Encoder], blocks: list[int]) -> None:
    expected = np.array(features_of(*images))
    path = features_path(images[0], images[1].spec)
    content = DAMAGED[kind]
    if isinstance(content, np.ndarray):
        np.save(path, content)
    else:
        path.write_bytes(path.read_bytes()[:50_000] if content is None else content)
    del blocks[:]
    np.testing.assert_array_equal(features_of(*images), expected)
    assert len(blocks) == BLOCKS


ENGINE = f"torch {torch.__version__}"


def progress_words(engine: str = ENGINE) -> str:
    """Return what a computation that stopped after 512 images wrote."""
    return json.dumps({"done": 512, "shape": [IMAGES, 128], "dtype": "float32", "engine": engine})


@pytest.mark.parametrize("progress", ["", "{}", "[1]", '{"done": 512, "shape": [9, 9], "dtype": "float32"}',
                                      progress_words()])
def test_a_progress_file_without_its_partial_file_is_ignored(
        progress: str, images: tuple[Dataset, Encoder], blocks: list[int]) -> None:
    path = features_path(images[0], images[1].spec)
    path.parent.mkdir(parents=True)
    path.with_suffix(".progress").write_text(progress)
    features_of(*images)
    assert len(blocks) == BLOCKS


@pytest.mark.parametrize("content", [b"PK\5\6" + bytes(18), b"damaged"])
def test_a_damaged_partial_file_is_ignored(content: bytes, images: tuple[Dataset, Encoder], blocks: list[int]) -> None:
    path = features_path(images[0], images[1].spec)
    path.parent.mkdir(parents=True)
    path.with_suffix(".part").write_bytes(content)
    path.with_suffix(".progress").write_text(progress_words())
    features_of(*images)
    assert len(blocks) == BLOCKS


@pytest.mark.parametrize(("engine", "computed"), [(ENGINE, BLOCKS - 8), ("another engine 1.0", BLOCKS)])
def test_only_the_engine_that_began_the_features_goes_on(
        engine: str, computed: int, images: tuple[Dataset, Encoder], blocks: list[int]) -> None:
    expected = np.array(features_of(*images))
    path = features_path(images[0], images[1].spec)
    assert json.loads(path.with_suffix(".json").read_text()) == {"engine": ENGINE}
    path.rename(path.with_suffix(".part"))
    path.with_suffix(".progress").write_text(progress_words(engine))
    del blocks[:]
    np.testing.assert_array_equal(features_of(*images), expected)
    assert len(blocks) == computed


def test_a_folder_in_place_of_the_features_gives_a_message(images: tuple[Dataset, Encoder]) -> None:
    path = features_path(images[0], images[1].spec)
    path.mkdir(parents=True)
    with pytest.raises(UserError, match=r"\.npy should be a file with .* but is a folder\. Remove the folder\."):
        features_of(*images)


def test_images_are_prepared_once_and_gray_images_in_one_channel(images: tuple[Dataset, Encoder]) -> None:
    dataset, encoder = images
    pixels = pixels_of(dataset, encoder)
    assert pixels.shape == (IMAGES, 1, 8, 8)
    expected = [np.asarray(dataset.images[index])[..., 0] for index in range(IMAGES)]
    np.testing.assert_array_equal(pixels[:, 0], expected)

    def fail(_image: object) -> None:
        raise AssertionError("the images were prepared again")

    encoder.prepare = fail  # type: ignore[method-assign, assignment]
    assert isinstance(pixels_of(dataset, encoder), np.memmap)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)], capture_output=True,
                      check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_cache_on_a_full_disk_raises_an_error_and_does_not_kill_the_process(small_disk: Path) -> None:
    """The features take 307 kB.

    Without reserved space, SIGBUS would kill a memory map that meets a full disk.
    """
    second = SecondProcess(small_disk)
    assert second.exit_code() == 0, "the process was killed"
    message = second.receive()
    assert "The disk is full" in message
    assert "needs 0.3 MB" in message
    assert not [path for path in small_disk.rglob("*") if path.is_file() and path.stat().st_size]


def test_disk_space_that_cannot_be_reserved_is_a_user_error(
        images: tuple[Dataset, Encoder], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", fail, raising=False)
    with pytest.raises(UserError, match=r"The disk is full: .* needs 0.3 MB.*UDML_CACHE"):
        features_of(*images)
