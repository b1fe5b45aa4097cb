"""Damaged and hostile folders are refused with a message; nothing is unpickled, and no file can crash the process."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.numerics.galleries.literal import grouped
from udml_core.base.errors import UserError
from udml_core.numerics.galleries import StoredGallery, build_gallery, remove_vectors

COUNT = 400
SHARD = "shards/00000"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("galleries")
    for kind in ("flat", "ivf", "ivf-pq"):
        build_gallery(grouped(COUNT), root / kind, kind=kind)  # type: ignore[arg-type]
        remove_vectors(root / kind, np.arange(5))
    return {kind: root / kind for kind in ("flat", "ivf", "ivf-pq")}


def use(folder: Path) -> None:
    """Open and search a gallery, as a page would."""
    gallery = StoredGallery.open(folder)
    gallery.search(grouped(3), 10)
    gallery.search(grouped(3), 10, np.arange(COUNT) % 2 == 0, probes=10**6)


def in_manifest(**values: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return change


def saved(name: str, array: Any) -> Callable[[Path], None]:
    return lambda folder: np.save(folder / name, array)


def with_bytes(name: str, content: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content((folder / name).read_bytes())) and None


def fifo(folder: Path) -> None:
    (folder / SHARD / "ids.npy").unlink()
    os.mkfifo(folder / SHARD / "ids.npy")


class Harmful:
    """Would write a file if it were unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("unpickled",)


SIZES = np.zeros(32, np.int64)
SIZES[:2] = [COUNT + 1, -1]
DAMAGES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "no manifest": ("flat", lambda folder: (folder / "manifest.json").unlink()),
    "manifest of bytes": ("flat", with_bytes("manifest.json", lambda _: b"\xff\x00")),
    "deep manifest": ("flat", with_bytes("manifest.json", lambda _: b"[" * 100_000)),
    "long manifest": ("flat", with_bytes("manifest.json", lambda content: content + b" " * 5_000_000)),
    "unknown key": ("flat", in_manifest(pickle="x")),
    "unknown kind": ("flat", in_manifest(kind="hnsw")),
    "other format": ("flat", in_manifest(format=2)),
    "shard outside": ("flat", in_manifest(shards=[{"number": -1, "rows": COUNT}])),
    "fewer rows": ("flat", in_manifest(shards=[{"number": 0, "rows": COUNT - 1}])),
    "more rows": ("ivf", in_manifest(shards=[{"number": 0, "rows": COUNT + 1}])),
    "huge rows": ("ivf-pq", in_manifest(shards=[{"number": 0, "rows": 2**31}])),
    "other kind": ("flat", in_manifest(kind="ivf", lists=32)),
    "other dimension": ("flat", in_manifest(dimension=23)),
    "other dimension of lists": ("ivf", in_manifest(dimension=12)),
    "other number of lists": ("ivf", in_manifest(lists=16)),
    "other codes": ("ivf-pq", in_manifest(codes=3)),
    "no removed rows": ("flat", in_manifest(removed=9)),
    "removed beyond": ("ivf", saved("removed-00001.npy", np.array([0, 1, 2, 3, COUNT]))),
    "removed twice": ("ivf", saved("removed-00001.npy", np.array([0, 1, 1, 3, 4]))),
    "pickled ids": ("flat", lambda folder: np.save(folder / SHARD / "ids.npy", np.array([Harmful()] * COUNT))),
    "pipe": ("flat", fifo),
    "no vectors": ("ivf-pq", lambda folder: (folder / SHARD / "vectors.npy").unlink()),
    "text vectors": ("flat", saved(f"{SHARD}/vectors.npy", np.full((COUNT, 24), "a"))),
    "short vectors": ("flat", with_bytes(f"{SHARD}/vectors.npy", lambda content: content[:-4])),
    "no lists": ("ivf", lambda folder: (folder / SHARD / "lists.bin").unlink()),
    "short lists": ("ivf", with_bytes(f"{SHARD}/lists.bin", lambda content: content[:-8])),
    "long lists": ("ivf-pq", with_bytes(f"{SHARD}/lists.bin", lambda content: content + bytes(8))),
    "negative sizes": ("ivf", saved(f"{SHARD}/sizes.npy", SIZES)),
    "sizes of another sum": ("ivf", saved(f"{SHARD}/sizes.npy", np.full(32, 1))),
    "row numbers beyond": ("ivf", with_bytes(f"{SHARD}/lists.bin", lambda content: b"\x7f" * len(content))),
    "negative row numbers": ("ivf", with_bytes(f"{SHARD}/lists.bin", lambda content: b"\xfe" * len(content))),
    "row numbers beyond in codes": ("ivf-pq", with_bytes(f"{SHARD}/lists.bin",
                                                         lambda content: b"\x7f" * len(content))),
    "centers of another width": ("ivf", saved("centers.npy", np.zeros((32, 25), np.float32))),
    "centers of one axis": ("ivf", saved("centers.npy", np.zeros(32, np.float32))),
    "centers of doubles": ("ivf", saved("centers.npy", np.zeros((32, 24)))),
    "rotation of another width": ("ivf-pq", saved("rotation.npy", np.zeros((24, 9), np.float32))),
    "few codebooks": ("ivf-pq", saved("codebooks.npy", np.zeros((6, 200, 4), np.float32))),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_gallery_is_refused(name: str, built: dict[str, Path], tmp_path: Path,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    kind, damage = DAMAGES[name]
    shutil.copytree(built[kind], tmp_path / "gallery")
    damage(tmp_path / "gallery")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"gallery|should hold an array"):
        use(tmp_path / "gallery")
    assert not (tmp_path / "unpickled").exists()


@pytest.mark.parametrize("kind", ["flat", "ivf", "ivf-pq"])
def test_an_undamaged_copy_can_be_used(kind: str, built: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(built[kind], tmp_path / "gallery")
    use(tmp_path / "gallery")


@pytest.mark.parametrize("kind", ["ivf", "ivf-pq"])
def test_random_codes_change_results_only(kind: str, built: dict[str, Path], tmp_path: Path) -> None:
    """The codes and centers may have any bytes: a search then finds other rows, and no row that does not exist."""
    shutil.copytree(built[kind], tmp_path / "gallery")
    random = np.random.default_rng(0)
    path = tmp_path / "gallery" / "centers.npy"
    np.save(path, np.frombuffer(random.bytes(4 * np.load(path).size), np.float32).reshape(np.load(path).shape))
    try:
        ids = StoredGallery.open(tmp_path / "gallery").search(grouped(3), 10, probes=32)[1]
    except UserError:
        return
    assert ids.min() >= 5
    assert ids.max() < COUNT
