"""The feature cache across processes: killed, shared, spoilt, and on a disk without room."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from filelock import FileLock

from udml_core.backbones import Encoder, choose_spec
from udml_core.data import catalog, features
from udml_core.data.dataset import Dataset
from udml_core.data.features import BLOCK, features_of, features_path, pixels_of
from udml_core.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = -(-1797 // BLOCK)
OTHER = """
import os, signal, sys
from udml_core.backbones import Encoder, choose_spec
from udml_core.data import catalog, features
dataset = catalog.load("digits")
encoder = Encoder(choose_spec("cnn", dataset.native_size, dataset.gray))
blocks, embed = [], features.embed_pixels
def counted(*given):
    if len(blocks) == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    blocks.append(1)
    return embed(*given)
features.embed_pixels = counted
print("ready", flush=True)
try:
    found = features.features_of(dataset, encoder)
    print(len(blocks), found.shape, float(found[0, 0]))
except Exception as error:
    print(type(error).__name__, error)
"""
"""Another process that wants the same features; it kills itself at a block."""


def other(kill_at: int = -1, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", OTHER, str(kill_at)], cwd=ROOT, env=os.environ | environment,
                            stdout=subprocess.PIPE, text=True)


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Dataset, Encoder]:
    """The digits and an encoder, with an empty cache."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    dataset = catalog.load("digits")
    return dataset, Encoder(choose_spec("cnn", dataset.native_size, dataset.gray))


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the blocks that went through an encoder in this process."""
    sizes: list[int] = []
    embed = features.embed_pixels

    def counted(encoder: torch.nn.Module, pixels: Any) -> Any:
        sizes.append(len(pixels))
        return embed(encoder, pixels)

    monkeypatch.setattr(features, "embed_pixels", counted)
    return sizes


def test_a_killed_process_leaves_its_blocks_to_the_next(digits: tuple[Dataset, Encoder], blocks: list[int]) -> None:
    with other(kill_at=BLOCKS - 3) as killed:
        killed.communicate(timeout=240)
    assert killed.returncode == -signal.SIGKILL
    found = np.array(features_of(*digits))
    assert 0 < len(blocks) <= BLOCKS - 24, "nothing was kept"
    features_path(digits[0], digits[1].spec).unlink()
    np.testing.assert_array_equal(found, features_of(*digits))


def test_who_comes_second_waits_and_computes_nothing(digits: tuple[Dataset, Encoder]) -> None:
    path = features_path(digits[0], digits[1].spec)
    path.parent.mkdir(parents=True)
    process = other()
    assert process.stdout is not None
    with FileLock(path.with_suffix(".lock")):
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        np.save(path, np.full((1797, 128), 7.0, np.float32))
    said, _ = process.communicate(timeout=240)
    assert said == "0 (1797, 128) 7.0\n"


SPOILT = {
    "nothing": b"", "no array": b"spoilt", "an older length": np.zeros((1796, 128), np.float32),
    "another width": np.zeros((1797, 64), np.float32), "another type": np.zeros((1797, 128), np.float64),
    "objects": np.array([{}], dtype=object), "cut": None,
}


@pytest.mark.parametrize("kind", SPOILT)
def test_a_stored_file_that_is_not_these_features_is_computed_again(
        kind: str, digits: tuple[Dataset, Encoder], blocks: list[int]) -> None:
    expected = np.array(features_of(*digits))
    path = features_path(digits[0], digits[1].spec)
    content = SPOILT[kind]
    if isinstance(content, np.ndarray):
        np.save(path, content)
    else:
        path.write_bytes(path.read_bytes()[:50_000] if content is None else content)
    del blocks[:]
    np.testing.assert_array_equal(features_of(*digits), expected)
    assert len(blocks) == BLOCKS


@pytest.mark.parametrize("progress", ["", "{}", "[1]", '{"done": 1024, "shape": [9, 9], "dtype": "float32"}',
                                      '{"done": 1024, "shape": [1797, 128], "dtype": "float32"}'])
def test_a_progress_file_that_does_not_fit_is_not_believed(
        progress: str, digits: tuple[Dataset, Encoder], blocks: list[int]) -> None:
    path = features_path(digits[0], digits[1].spec)
    path.parent.mkdir(parents=True)
    path.with_suffix(".progress").write_text(progress)
    features_of(*digits)
    assert len(blocks) == BLOCKS


def test_images_are_prepared_once_and_gray_ones_in_one_channel(digits: tuple[Dataset, Encoder]) -> None:
    dataset, encoder = digits
    pixels = pixels_of(dataset, encoder)
    assert pixels.shape == (1797, 1, 8, 8)
    np.testing.assert_array_equal(pixels[:, 0], [np.asarray(dataset.images[at])[..., 0] for at in range(1797)])

    def fail(_image: object) -> None:
        raise AssertionError("prepared again")

    encoder.prepare = fail  # type: ignore[method-assign, assignment]
    assert isinstance(pixels_of(dataset, encoder), np.memmap)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)], capture_output=True,
                      check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_cache_on_a_full_disk_is_told_and_ends_no_process(small_disk: Path) -> None:
    """The features measure 920 kB. A memory map that meets a full disk is ended by SIGBUS, so room is taken before."""
    with other(UDML_CACHE=str(small_disk)) as process:
        said, _ = process.communicate(timeout=240)
    assert process.returncode == 0, "the process was killed"
    assert "UserError The disk is full" in said
    assert "needs 0.9 MB" in said
    assert not [path for path in small_disk.rglob("*") if path.is_file() and path.stat().st_size]


def test_room_that_cannot_be_taken_is_a_message(
        digits: tuple[Dataset, Encoder], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_given: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(UserError, match=r"The disk is full: .* needs 0.9 MB.*UDML_CACHE"):
        features_of(*digits)
