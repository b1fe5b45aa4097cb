"""Builds that are killed, canceled or repeated."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.numerics.galleries.literal import grouped
from udml_core.base.errors import UserError
from udml_core.numerics.galleries import StoredGallery, build, build_gallery

COUNT, SHARD = 6000, 1000
KILLED = f"""
import os, signal, sys
from pathlib import Path
import numpy as np
from udml_core.numerics.galleries import build, build_gallery, storage
build.LEAST_SHARD = {SHARD}
write = storage.write_shard
def write_shard(folder, manifest, shard, *rest):
    if shard.number == 2:  # in the middle of a shard
        (folder / "shards" / "00002.part").mkdir()
        os.kill(os.getpid(), signal.SIGKILL)
    write(folder, manifest, shard, *rest)
storage.write_shard = write_shard
build_gallery(np.load(sys.argv[1]), sys.argv[2], kind="ivf-pq")
"""


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "LEAST_SHARD", SHARD)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*")
            if path.is_file() and path.name not in ("manifest.json", "lock")}


@pytest.mark.slow
def test_a_killed_build_goes_on_with_the_next_shard(tmp_path: Path, small_shards: None) -> None:
    vectors = grouped(COUNT)
    np.save(tmp_path / "vectors.npy", vectors)
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "vectors.npy"), str(tmp_path / "killed")],
                          check=False)
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(UserError, match="not finished: it has 2,000 of 6,000 vectors"):
        StoredGallery.open(tmp_path / "killed")
    first = (tmp_path / "killed" / "shards" / "00000").stat().st_ino
    steps = list[str]()
    killed = build_gallery(vectors, tmp_path / "killed", lambda _share, step: steps.append(step), kind="ivf-pq")
    assert "training the index" not in steps
    assert steps.count("adding vectors") == 5  # four shards and the end
    assert (tmp_path / "killed" / "shards" / "00000").stat().st_ino == first
    whole = build_gallery(vectors, tmp_path / "whole", kind="ivf-pq")
    assert contents(killed.folder) == contents(whole.folder)
    assert killed.manifest.model_copy(update={"seconds": 0.0}) == whole.manifest.model_copy(update={"seconds": 0.0})


@pytest.mark.parametrize("step", ["training the index", "adding vectors", "measuring the recall"])
def test_a_canceled_build_continues(step: str, tmp_path: Path, small_shards: None) -> None:
    def cancel(share: float, reported: str) -> None:
        if reported == step and (share > 0.5 or step == "measuring the recall"):
            raise KeyboardInterrupt

    vectors = grouped(3000)
    with pytest.raises(KeyboardInterrupt):
        build_gallery(vectors, tmp_path / "gallery", cancel, kind="ivf")
    gallery = build_gallery(vectors, tmp_path / "gallery", kind="ivf")
    assert len(gallery) == 3000
    assert gallery.search(vectors[:9], 1)[1][:, 0].tolist() == list(range(9))


def test_a_finished_build_is_not_repeated(tmp_path: Path) -> None:
    vectors, steps = grouped(500), list[str]()
    build_gallery(vectors, tmp_path / "gallery")
    build_gallery(vectors, tmp_path / "gallery", lambda _share, step: steps.append(step))
    assert steps == []


@pytest.mark.parametrize("change", ["value", "ids", "kind", "rows"])
def test_a_folder_of_another_gallery_is_kept(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "DIGEST_ROWS", 64)
    vectors = grouped(500)
    build_gallery(vectors, tmp_path / "gallery", kind="ivf")
    other = vectors[:400] if change == "rows" else vectors.copy()
    if change == "value":
        other[77, 1] += 1  # one number of one vector
    with pytest.raises(UserError, match="holds a gallery of other vectors or of another kind"):
        build_gallery(other, tmp_path / "gallery", ids=np.arange(500)[::-1] if change == "ids" else None,
                      kind="flat" if change == "kind" else "ivf")
    assert len(StoredGallery.open(tmp_path / "gallery")) == 500


def test_a_folder_with_other_files_is_kept(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear")
    with pytest.raises(UserError, match="holds other files"):
        build_gallery(grouped(50), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize(("vectors", "message"), [
    (np.zeros((0, 4)), "at least one vector"), (np.zeros(4), "numbers"), (np.array([["a"]]), "numbers"),
    (np.array([[1.0], [np.inf]]), "finite")])
def test_unsuitable_vectors_are_refused(vectors: np.ndarray, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        build_gallery(vectors, tmp_path / "gallery")
